"""A fit and a prediction on 1, 2, 4, ... threads: how many cores of a machine are worth having.

Run ``python benchmarks/cores.py``, a few minutes; ``--quick`` takes small problems and writes nothing, ``--profile``
prints where the calling thread spends its time on the most threads.

Prediction on many new rows: seconds, rows per second and memory, against SVC on the mixed kernel.

Run ``python benchmarks/cores.py prediction``; ``--quick`` takes a tenth of the rows and writes nothing.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.svm import SVC

import _measure as memory
from _measure import answer, in_child, in_turns, pin
from _problems import SETTING, Problem, generated, mid
from _report import Targets, machine, run_part, show, write_table
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


# Prediction on many new rows.

BLOCK = 125  # rows that SVC is given at a time: 250,000 kernel values, the block that suits our own prediction best
PREDICTION_NOTE = f"""\
{SETTING} The model is `MKLClassifier(kernels.preset("stpmkl"))` on the mid problem, C = 1, l1 norm, to
1e-3; the new rows are training rows with noise. Seconds of `decision_function`, median of {{repeats}}.

*SVC, mixed kernel*: `SVC(kernel="precomputed")` fitted on the same weighted sum of kernels, asked in blocks of {BLOCK}
rows against all training rows, as it has to be; the kernels with weight are computed one by one. *Kernel seconds*:
the part of that which computes kernels; libsvm's own part is the rest. *Extra MB*: most resident memory during the
prediction over that before it. *Same sign*: share of rows on which the decision has the sign of the first line's;
*times the first*: seconds over that line's. Each line is a process of its own.

{{targets}}"""


def setting(small: bool, rows: int) -> tuple[Problem, np.ndarray]:
    """The training problem, and new rows like it: values far out would be quicker or slower to exponentiate."""
    problem = generated(400, 10) if small else mid()
    random = np.random.default_rng(1)
    new = problem.X[random.integers(problem.n, size=rows)] + random.normal(0, 0.3, (rows, problem.X.shape[1]))
    return problem, new


def _timed(decide: Any, repeats: int) -> tuple[dict[str, Any], np.ndarray]:
    """Memory of the first call, seconds of them all."""
    decide(slice(0, 10))
    before = memory.resident()
    resettable = memory.reset_peak()
    values = decide(slice(None))
    extra = memory.peak() - before if resettable else float("nan")
    seconds = in_turns({"it": lambda: decide(slice(None))}, repeats)["it"].seconds
    return {"seconds": seconds, "rows a second": values.size / seconds, "extra MB": extra / 1e6}, values


def ours_case(dtype: str, small: bool, rows: int, repeats: int, signs: str) -> dict[str, Any]:
    """Inside a child: the estimator's own prediction."""
    problem, new = setting(small, rows)
    model = MKLClassifier(problem.kernels, dtype=dtype).fit(problem.X, problem.y)
    facts, values = _timed(lambda part: model.decision_function(new[part]), repeats)
    return {
        "what": f"MKLClassifier, {dtype}",
        **facts,
        "kernel seconds": "",
        "kernels": int(np.count_nonzero(model.weights_)),
        "support": int(model.support_.size),
        "same sign": _same(values, signs, write=dtype == "float64"),
    }


def svc_case(small: bool, rows: int, repeats: int, signs: str) -> dict[str, Any]:
    """Inside a child: a support vector machine on the mixed kernel that the model found."""
    problem, new = setting(small, rows)
    model = MKLClassifier(problem.kernels).fit(problem.X, problem.y)
    kernels = problem.expanded
    in_use = np.flatnonzero(model.weights_)
    in_kernels: list[float] = []

    def mixed(part: np.ndarray) -> np.ndarray:
        # Gaussians have a diagonal of ones: trace normalisation does not change them
        start = time.perf_counter()
        total = np.zeros((len(part), problem.n))
        for j in in_use:
            total += model.weights_[j] * kernels[j](part, problem.X)
        in_kernels.append(time.perf_counter() - start)
        return total

    svc = SVC(kernel="precomputed", C=1.0).fit(mixed(problem.X), problem.y)

    def decide(part: slice) -> np.ndarray:
        in_kernels.clear()
        wanted = new[part]
        return np.concatenate(
            [svc.decision_function(mixed(wanted[top : top + BLOCK])) for top in range(0, len(wanted), BLOCK)]
        )

    facts, values = _timed(decide, repeats)
    return {
        "what": "SVC, mixed kernel",
        **facts,
        "kernel seconds": float(np.sum(in_kernels)),
        "kernels": in_use.size,
        "support": int(svc.support_.size),
        "same sign": _same(values, signs),
    }


def _same(values: np.ndarray, path: str, write: bool = False) -> float:
    """Share of rows with the sign of the first line's decision, which leaves its signs in a file."""
    if write:
        np.save(path, values > 0)
    return float(np.mean((values > 0) == np.load(path)))


def prediction_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, nothing is written")
    parser.add_argument("--case", choices=("ours", "svc"), help=argparse.SUPPRESS)
    parser.add_argument("--parameters", type=json.loads, default={}, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin()
    if options.case:
        answer({"ours": ours_case, "svc": svc_case}[options.case](**options.parameters))
        return
    quick = options.quick
    print(machine())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        common = {
            "small": quick,
            "rows": 10_000 if quick else 100_000,
            "repeats": 1 if quick else 3,
            "signs": f"{folder}/signs.npy",
        }
        rows.append(in_child([__file__, "prediction"], "ours", dtype="float64", **common))
        rows.append(in_child([__file__, "prediction"], "ours", dtype="float32", **common))
        rows.append(in_child([__file__, "prediction"], "svc", **common))
    for row in rows:
        row["times the first"] = row["seconds"] / rows[0]["seconds"]
    show(rows)
    targets = Targets()
    targets.at_most(f"extra MB while {common['rows']:,} rows are predicted", rows[0]["extra MB"], 100)
    targets.at_least("same signs as SVC on the same mixed kernel", rows[2]["same sign"], 0.99)
    if not quick:
        note = PREDICTION_NOTE.format(repeats=common["repeats"], targets=targets.text())
        write_table("prediction", rows, "python benchmarks/cores.py prediction", note)


if __name__ == "__main__":
    run_part(main, prediction=prediction_main)
