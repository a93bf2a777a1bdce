"""Seconds, memory and passes to a certified optimum, beside what else there is for many kernels.

Run ``python benchmarks/rivals.py`` where the extra ``rivals`` is installed (a missing rival is listed as such);
``--quick`` takes the small problem, one run each, and writes nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from _children import answer, in_child
from _counts import counted
from _memory import GB, peak, reset_peak, resident
from _report import machine, show, write_table
from _rivals import METHODS, PROBLEMS, RANDOM_SEARCH, TOL, C, Data, Method
from _targets import Targets
from _threads import pin
from kernelweave import MKLClassifier

#: seconds after which one run is enough
LONG = 10.0
COLUMNS = (
    "seconds", "CPU seconds", "CPU seconds, kernels given", "extra memory, GB", "certified gap", "passes", "SVMs",
    "kernels in use", "accuracy",
)  # fmt: skip
NOTE = """The kernels: Gaussians of widths 2^-3..2^6 on all features and on every single one, trace-normalised (their
diagonal is 1); features standardised on the training rows. One thread, after compilation, every program on the same
kernels; medians of {repeats}, of one run where that took more than {long:g} s.

- *small*: {small}.
- *mid*: {mid}.

kernelweave: l1 norm, hinge loss, C = {C:g}, with an intercept, stopped at a **certified relative gap of {tol:g}**,
no tuning. SVC on the mean kernel: C = {C:g}, with an intercept, its own stopping (tol = 1e-3). Ridge on the mean
kernel: C by leave-one-out among 41 values. EasyMKL of MKLpy: another objective (the margin distribution), lam = 0.1
as by default, its own stopping, no certificate. himalaya: another objective (ridge on -1 and 1), random search over
{random_small} (small) and {random_mid} (mid) random weightings, 7 values of the ridge by 5-fold cross-validation,
with an intercept, no certificate. skglm: group lasso with the squared loss on 20 Nystroem features a kernel, at a
twentieth of the penalty that leaves nothing, its own stopping (1e-4), another objective on other features, no
certificate.

*Seconds*: from samples to a fitted model, the kernel matrices included, by the clock; *CPU seconds*: those of the one
thread, which a busy machine disturbs less; *kernels given*: without computing the matrices (a bank here, a numpy stack
for the rivals). *Extra memory*: peak resident memory of such a fit above what the process had before, in a
process of its own. *Passes*: entries of the (m, n, n) tensor read, over m n^2, the final certificate included.
*SVMs*: inner solves. *Accuracy*: on the test rows, for orientation: one split, no tuning.

{targets}"""


class Timed(NamedTuple):
    """Median seconds of the repetitions: by the clock, and of the processor."""

    wall: float
    cpu: float


def timed(function: Callable[[], Any], repeats: int, first: Timed | None = None) -> Timed:
    """Time a function several times, once where that took long; a first run that took very long is that one."""
    if first is not None and first.wall > 3 * LONG:
        return first
    runs: list[Timed] = []
    while len(runs) < repeats and not (runs and runs[0].wall > LONG):
        gc.collect()
        runs.append(once(function)[0])
    return Timed(statistics.median(run.wall for run in runs), statistics.median(run.cpu for run in runs))


def once(function: Callable[[], Any]) -> tuple[Timed, Any]:
    """One run: its seconds, and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu), result


def measured(method: Method, data: Data, repeats: int) -> dict[str, Any]:
    """One line of the table."""
    row: dict[str, Any] = {"problem": data.title, "method": method.name}
    row |= dict.fromkeys(COLUMNS, "")
    if not method.installed:
        return row | {"seconds": "not installed"}
    try:
        with counted() as counts:
            first, model = once(lambda: method.whole(data))  # compiles what is left, and is counted
        row["accuracy"] = float(np.mean(method.labels(data, model) == data.y_test))
        row["certified gap"] = max(model.certificate_.relative_gap, 0.0) if method.certified else "no"
        if isinstance(model, MKLClassifier):
            row |= {"passes": model.n_passes_, "SVMs": counts.solves}
            row["kernels in use"] = int(np.count_nonzero(model.weights_))
        del model
        row["seconds"], row["CPU seconds"] = timed(lambda: method.whole(data), repeats, first)
        if method.kernels is not None and method.fit is not None:
            kernels = method.kernels(data)
            row["CPU seconds, kernels given"] = timed(lambda: method.fit(data, kernels), repeats).cpu
            del kernels
        row["extra memory, GB"] = in_child(__file__, method.name, problem=data.name)["extra"] / GB
    except Exception as error:  # a rival that fails is a line of the table, not the end of it
        if method.package is None:
            raise
        row["seconds"] = f"failed: {type(error).__name__}"
        warnings.warn(f"{method.name} on {data.name}: {error}", stacklevel=1)
    return row


def memory_of(name: str, problem: str) -> None:
    """In a child: the extra peak memory of one whole fit, after one on a few rows that loads and compiles."""
    method = next(known for known in METHODS if known.name == name)
    data = PROBLEMS[problem]()
    few = np.r_[np.flatnonzero(data.y > 0)[:20], np.flatnonzero(data.y < 0)[:20]]
    method.whole(Data(data.name, data.X[few], data.y[few], data.X_test, data.y_test, ""))
    gc.collect()
    before = resident()
    reset_peak()
    model = method.whole(data)
    answer({"extra": peak() - before})
    del model


def targets_of(rows: list[dict[str, Any]]) -> Targets:
    """What the project asks of itself."""
    targets = Targets()

    def cell(problem: str, method: str, column: str) -> Any:
        return next(
            r[column] for r in rows if r["problem"].startswith(problem) and r["method"].startswith(method)
        )

    for problem, limit, memory, easy, himalaya in (
        ("small", 0.05, 0.5, 3.0, 1.0),
        ("mid", 10.0, 0.5, 4.0, 100.0),
    ):
        if not any(r["problem"].startswith(problem) for r in rows):
            continue
        ours = "kernelweave, auto"
        seconds = cell(problem, ours, "seconds")
        targets.at_most(f"{problem}: seconds from samples to a certified gap of {TOL:g}", seconds, limit)
        targets.at_most(f"{problem}: extra memory, GB", cell(problem, ours, "extra memory, GB"), memory)
        targets.at_most(f"{problem}: certified relative gap", cell(problem, ours, "certified gap"), TOL)
        for rival, least in (("MKLpy EasyMKL", easy), ("himalaya", himalaya)):
            theirs = cell(problem, rival, "CPU seconds")
            if isinstance(theirs, float):
                ratio = theirs / cell(problem, ours, "CPU seconds")
                targets.at_least(f"{problem}: {rival} takes this many times as long (CPU)", ratio, least)
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="the small problem, one run each, nothing is written"
    )
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--parameters", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", FutureWarning)
    if arguments.case:
        memory_of(arguments.case, **json.loads(arguments.parameters))
        return
    print(machine())
    repeats = {"small": 1} if arguments.quick else {"small": 5, "mid": 5}
    rows, sources = [], {}
    for name, times in repeats.items():
        data = PROBLEMS[name]()
        sources[name] = data.source
        for method in METHODS:
            if name in method.problems:
                rows.append(measured(method, data, times))
                print(f"{name}, {method.name}: {rows[-1]['seconds']} s", flush=True)
    show(rows)
    targets = targets_of(rows)
    if not arguments.quick:
        note = NOTE.format(
            repeats="5", long=LONG, C=C, tol=TOL, targets=targets.text(), **sources,
            random_small=RANDOM_SEARCH["small"], random_mid=RANDOM_SEARCH["mid"],
        )  # fmt: skip
        write_table("rivals", rows, "python benchmarks/rivals.py", note)


if __name__ == "__main__":
    main()
