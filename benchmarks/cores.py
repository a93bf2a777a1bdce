"""A fit and a prediction on 1, 2, 4, ... threads: how many cores of a machine are worth having.

Run ``python benchmarks/cores.py``, a few minutes; ``--quick`` takes small problems and writes nothing, ``--profile``
prints where the calling thread spends its time on the most threads.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from typing import Any

import numpy as np
from joblib import cpu_count

from _measure import in_turns
from _problems import generated
from _report import Targets, machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks import BoundKernels, KernelFunction, bound, build_bank

COUNTS = (1, 2, 4, 8, 16)
NOTE = """A fit of `MKLClassifier(kernels.preset("stpmkl"), tol=1e-3)` on a generated problem (n = {n}, m = {m}, C = 1),
and values at {rows} new rows of a function on {support} support vectors and 9 Gaussians of doubling widths on 10
columns. BLAS has one thread throughout; *threads* is `n_jobs`. *NumPy* is how small tasks are still predicted, one
exponential per kernel value. *Times one thread*: seconds of the first line of its kind over these. *Same bits*: whether
weights, coefficients and values are those of one thread, to the last bit. Seconds are medians of {repeats}.

{targets}"""


def fits(n: int, counts: tuple[int, ...], profile: bool) -> list[dict[str, Any]]:
    """Fit once on every number of threads."""
    problem = generated(n, 10)
    MKLClassifier(problem.kernels, n_jobs=2).fit(problem.X[:300], problem.y[:300])  # compiles
    rows: list[dict[str, Any]] = []
    first = None
    for threads in counts:
        model = MKLClassifier(problem.kernels, tol=1e-3, n_jobs=threads)
        watched = cProfile.Profile() if profile and threads == counts[-1] else None
        if watched is not None:
            watched.enable()
        seconds = in_turns({"it": lambda model=model: model.fit(problem.X, problem.y)}, 1)["it"].seconds
        if watched is not None:
            watched.disable()
            pstats.Stats(watched).sort_stats("tottime").print_stats(20)
        first = first or model
        same = all(
            np.array_equal(getattr(model, name), getattr(first, name)) for name in ("weights_", "dual_coef_")
        )
        rows.append(
            line("fit", threads, seconds, rows, model.n_passes_, model.certificate_.relative_gap, same)
        )
        show(rows[-1:])
    return rows


def predictions(rows: int, support: int, counts: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    """Values at new rows, by NumPy and by the compiled code on every number of threads."""
    random = np.random.default_rng(0)
    X, new = random.normal(size=(support, 10)), random.normal(size=(rows, 10))
    kernels = list(kw.gaussian(2.0 ** np.arange(-3, 6)))
    normaliser = build_bank(kernels, X[:50])[1]
    coef, weights = random.normal(size=support), random.random(9)
    function = KernelFunction.mixture(BoundKernels(kernels, X, normaliser), weights, coef, 0.0)
    model = MKLClassifier(kernels).fit(X[:60], X[:60, 0] > 0)
    model._function = function
    kept = bound.FEW_VALUES
    lines: list[dict[str, Any]] = []
    first = None
    for what, threads in [("prediction, NumPy", 1), *(("prediction", count) for count in counts)]:
        bound.FEW_VALUES = np.inf if "NumPy" in what else 0
        model.n_jobs = threads
        model.decision_function(new[: max(1, rows // 20)])  # compiles
        timed = in_turns({"it": lambda: model.decision_function(new)}, 1 if "NumPy" in what else repeats)[
            "it"
        ]
        if threads == 1:
            first = timed.result
        same = np.array_equal(timed.result, first)
        lines.append(
            line(what, threads, timed.seconds, [r for r in lines if r["what"] == what], "", "", same)
        )
        show(lines[-1:])
    bound.FEW_VALUES = kept
    return lines


def line(
    what: str, threads: int, seconds: float, others: list[dict], passes: Any, gap: Any, same: bool
) -> dict:
    """Return a line of the table; the first of its kind is what the others are held against."""
    one = others[0]["seconds"] if others else seconds
    return {
        "what": what, "threads": threads, "seconds": seconds, "times one thread": one / seconds,
        "passes": passes, "relative gap": gap, "same bits": same,
    }  # fmt: skip


def judge(rows: list[dict[str, Any]], most: int) -> Targets:
    """Hold the table against what was aimed at; speed-ups on a machine with as many cores as they are for."""
    targets = Targets()
    fit = [row for row in rows if row["what"] == "fit"]
    predicted = [row for row in rows if row["what"] == "prediction"]
    slow = next(row for row in rows if "NumPy" in row["what"])
    if most >= 16:
        targets.at_least("fit: times faster on 16 threads", fit[-1]["times one thread"], 6)
        targets.at_least("prediction: times faster on 16 threads", predicted[-1]["times one thread"], 8)
    targets.at_least(
        "prediction on one thread: times faster than NumPy", slow["seconds"] / predicted[0]["seconds"], 5
    )
    targets.at_most(
        "lines whose bits depend on the threads", sum(not row["same bits"] for row in fit + predicted), 0
    )
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, nothing is written")
    parser.add_argument("--profile", action="store_true", help="where the calling thread spends its time")
    options = parser.parse_args()
    pin()
    print(machine())
    counts = tuple(count for count in COUNTS if count <= max(2, cpu_count()))
    n, new, support, repeats = (1500, 2000, 1500, 1) if options.quick else (8000, 20_000, 8000, 3)
    rows = predictions(new, support, counts, repeats) + fits(n, counts, options.profile)
    show(rows)
    targets = judge(rows, counts[-1])
    if not options.quick:
        note = NOTE.format(n=n, m=110, rows=new, support=support, repeats=repeats, targets=targets.text())
        write_table("cores", rows, "python benchmarks/cores.py", note)


if __name__ == "__main__":
    main()
