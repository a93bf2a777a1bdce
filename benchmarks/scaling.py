"""Growth in samples and kernels, and the large cases within their memory; every case in a process of its own.

Run ``python benchmarks/scaling.py``; ``--quick`` stops at smaller sizes and writes nothing.

The sizes of papers on lp norms: a hundred thousand kernels, and fifty thousand points.

Run ``python benchmarks/scaling.py headline kernels`` or ``points`` (``--columns``, ``--widths``, ``--samples`` make
them smaller); every run adds its line to ``docs/results/headline.csv``.  Nothing is stored beyond what the memory
budget allows: chains of widths share one matrix, and what does not fit is computed as it is read.

How far each way of keeping a bank reaches, and a cost model of rounds, against what the other benchmarks measured.

Run ``python benchmarks/scaling.py limits`` after ``large.py cluster`` and ``large.py gpu``: it reads their tables in
``docs/results``, computes the rest on paper, and writes a table and a picture.

A fit and a prediction on 1, 2, 4, ... threads: how many cores of a machine are worth having.

Run ``python benchmarks/scaling.py threads``, a few minutes; ``--quick`` takes small problems and writes nothing,
``--profile`` prints where the calling thread spends its time on the most threads.

Prediction on many new rows: seconds, rows per second and memory, against SVC on the mixed kernel.

Run ``python benchmarks/scaling.py prediction``; ``--quick`` takes a tenth of the rows and writes nothing.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import tempfile
import time
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count
from sklearn.svm import SVC

import _measure as memory
from _measure import (
    RESULTS,
    SETTING,
    Problem,
    Targets,
    answer,
    generated,
    in_child,
    in_turns,
    machine,
    mid,
    pin,
    run_part,
    show,
    write_table,
)
from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks import BoundKernels, KernelFunction, bound, build_bank

WIDTHS = [2.0**k for k in range(-3, 7)]
SAMPLES = (250, 500, 1000, 2000)
FEATURES = (1, 3, 7, 15, 31, 63)  # with kernels of their own: m = 10 (features + 1) = 20, 40, ..., 640
GROWTH_NOTE = f"""{SETTING} Generated problems, `MKLClassifier` with Gaussians of ten widths, C = 1, l1 norm, to a
certified relative gap of 1e-3. *Growing n*: 10 features, Gaussians on all of them and on every single one, m = 110.
*Growing m*: n = {{fixed_n}}, {FEATURES[-1]} features, Gaussians on all of them and on every one of the first few.
*Seconds*: the fit with the building of the bank, median of {{repeats}}. *Peak MB*: most resident memory during the fit
over that before it; *stored stack MB*: what the m matrices would take. Each line is a process of its own. The last
lines are exponents, fitted by least squares on the logarithms.

{{targets}}"""
LARGE_NOTE = f"""{SETTING} Generated problems, C = 1, l1 norm, `MKLClassifier` with default parameters but for the
tolerance. Each line is a process of its own. *Imported MB*: resident after the imports and the making of the data,
before anything is built or compiled code loaded; *peak MB*: the most that the whole process ever held; *stored stack
MB*: what the m matrices would take. *Seconds*: the first fit of the process, with the building of the bank and the
loading of compiled code.

- wide: 1,000 features, ten Gaussians on every single one
- tall: 4 features, ten Gaussians on all and ten on every single one
- mid: 10 features, likewise

{{targets}}"""


def _megabytes(size: float) -> float:
    return size / 1e6


def _stack(problem: Problem) -> float:
    return _megabytes(8.0 * problem.m * problem.n**2)


def growth_case(n: int, features: int, chosen: int, repeats: int) -> dict[str, Any]:
    """Inside a child: seconds, passes and peak memory of one size, compiled code loaded before."""
    tiny = generated(60, 2)
    MKLClassifier(tiny.kernels).fit(tiny.X, tiny.y)
    gaussians = kw.gaussian(WIDTHS)
    problem = generated(n, features, kernels=gaussians + kw.per_feature(gaussians, columns=range(chosen)))
    before = memory.resident()
    resettable = memory.reset_peak()
    model = MKLClassifier(problem.kernels).fit(problem.X, problem.y)
    extra = memory.peak() - before if resettable else float("nan")
    fit = in_turns({"fit": lambda: MKLClassifier(problem.kernels).fit(problem.X, problem.y)}, repeats)["fit"]
    return {
        "n": problem.n,
        "m": problem.m,
        "seconds": fit.seconds,
        "passes": model.n_passes_,
        "iterations": model.n_iter_,
        "peak MB": _megabytes(extra),
        "bank MB": _megabytes(model.bank_bytes_),
        "stored stack MB": _stack(problem),
        "relative gap": model.certificate_.relative_gap,
    }


def large_problem(name: str, scale: float) -> tuple[Problem, float]:
    """The problem and its tolerance; ``scale`` shrinks it for quick runs."""
    if name == "wide":
        return generated(
            500, int(1000 * scale), kernels=kw.per_feature(kw.gaussian(WIDTHS)), name="wide"
        ), 1e-3
    if name == "tall":
        return generated(int(10_000 * scale), 4, name="tall"), 1e-2
    return mid(), 1e-3


def large_case(name: str, scale: float) -> dict[str, Any]:
    """Inside a child: one fit, and the peak of the whole process."""
    problem, tol = large_problem(name, scale)
    imported = memory.resident()
    start = time.perf_counter()
    model = MKLClassifier(problem.kernels, tol=tol).fit(problem.X, problem.y)
    return {
        "case": name,
        "n": problem.n,
        "m": problem.m,
        "to": tol,
        "relative gap": model.certificate_.relative_gap,
        "passes": model.n_passes_,
        "iterations": model.n_iter_,
        "seconds": time.perf_counter() - start,
        "imported MB": _megabytes(imported),
        "peak MB": _megabytes(memory.peak()),
        "bank MB": _megabytes(model.bank_bytes_),
        "stored stack MB": _stack(problem),
    }


def exponents(rows: list[dict[str, Any]], variable: str) -> dict[str, Any]:
    """A line of exponents, from straight lines through the logarithms."""
    size = np.log([row[variable] for row in rows])
    line: dict[str, Any] = dict.fromkeys(rows[0], "")
    line["growing"] = f"exponent in {variable}"
    for key in ("seconds", "passes", "peak MB", "bank MB"):
        line[key] = float(np.polyfit(size, np.log([row[key] for row in rows]), 1)[0])
    return line


def growth(quick: bool) -> None:
    """Sizes one after the other, and the exponents."""
    repeats, fixed_n = (1, 300) if quick else (5, 500)
    in_n, in_m = [], []
    for n in SAMPLES[:3] if quick else SAMPLES:
        row = in_child(__file__, "growth", n=n, features=10, chosen=10, repeats=repeats)
        in_n.append({"growing": "n", **row})
    for chosen in FEATURES[:4] if quick else FEATURES:
        row = in_child(__file__, "growth", n=fixed_n, features=FEATURES[-1], chosen=chosen, repeats=repeats)
        in_m.append({"growing": "m", **row})
    lines = [exponents(in_n, "n"), exponents(in_m, "m")]
    rows = in_n + in_m + lines
    show(rows)
    targets = Targets()
    # the sizes are few and the fit has an error: a tenth is allowed for it
    targets.at_most("exponent of seconds in n", lines[0]["seconds"], 2.1)
    targets.at_most("exponent of peak memory in n", lines[0]["peak MB"], 2.1)
    targets.at_most("exponent of seconds in m", lines[1]["seconds"], 1.1)
    targets.at_most("exponent of peak memory in m", lines[1]["peak MB"], 1.1)
    if not quick:
        note = GROWTH_NOTE.format(repeats=repeats, fixed_n=fixed_n, targets=targets.text())
        write_table("scaling", rows, "python benchmarks/scaling.py", note)


def large(quick: bool) -> None:
    """The large cases and their limits."""
    limits = {"wide": 4000.0, "tall": 8000.0}
    rows = []
    for name in ("mid", "wide", "tall"):
        rows.append(in_child(__file__, "large", name=name, scale=0.1 if quick else 1.0))
        show(rows[-1:])
    targets = Targets()
    for row in rows:
        what = f"{row['case']} (n = {row['n']}, m = {row['m']})"
        if row["case"] == "mid":
            targets.at_most(
                f"{what}: MB over the imported process", row["peak MB"] - row["imported MB"], 500.0
            )
        else:
            targets.at_most(f"{what}: peak MB of the process", row["peak MB"], limits[row["case"]])
        targets.at_most(f"{what}: certified relative gap", row["relative gap"], row["to"])
    if not quick:
        note = LARGE_NOTE.format(targets=targets.text())
        write_table("scaling_large", rows, "python benchmarks/scaling.py --only large", note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, nothing is written")
    parser.add_argument("--only", choices=("growth", "large"), help="one of the two tables")
    parser.add_argument("--case", choices=("growth", "large"), help=argparse.SUPPRESS)
    parser.add_argument("--parameters", type=json.loads, default={}, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin()
    if options.case:
        answer({"growth": growth_case, "large": large_case}[options.case](**options.parameters))
        return
    print(machine())
    if options.only != "large":
        growth(options.quick)
    if options.only != "growth":
        large(options.quick)


# A hundred thousand kernels, fifty thousand points.

HEADLINE_NOTE = """\
Generated problems (`make_classification`, features standardised), Gaussian kernels normalised by their trace,
hinge loss with an intercept, C = 1, to a certified relative gap of 1e-2. *kernels*: Gaussians on every single column,
their widths spread evenly in powers of two. *points*: Gaussians on groups of columns. SMO-MKL (Vishwanathan et al.
2010) reports 100,000 kernels in about 7 minutes and 50,000 points in less than 30, on one core, without a certificate;
its machine and data are not these. Lines of smaller sizes say what was run; nothing is extrapolated. *Seconds* are
those of the whole fit with the building of the bank; peak memory is the process's."""


def kernels_case(options: argparse.Namespace) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """Many kernels: every column by itself, at many widths."""
    problem = generated(options.samples or 500, options.columns or 1000)
    widths = 2.0 ** np.linspace(-3.0, 6.0, options.widths or 100)
    return kw.per_feature(kw.gaussian(widths)), problem.X, problem.y, {}


def points_case(options: argparse.Namespace) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """Many points: fifty kernels on groups of twenty columns."""
    problem = generated(options.samples or 50_000, options.columns or 20)
    columns = problem.X.shape[1]
    groups = {f"group {g}": list(range(g, columns, 10)) for g in range(min(10, columns))}
    bank = kw.per_view(groups, kw.gaussian([0.5, 1.0, 2.0, 4.0, 8.0]))
    return bank, problem.X, problem.y, {"dtype": "float32"}


def headline_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=("kernels", "points"))
    parser.add_argument("--norm", default="1.5", help="a number p, or l1")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--widths", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", default="12GB")
    parser.add_argument("--seconds", type=float, help="most seconds of the fit")
    options = parser.parse_args()
    pin()
    bank, X, y, extra = {"kernels": kernels_case, "points": points_case}[options.case](options)
    norm = options.norm if options.norm == "l1" else float(options.norm)
    common = {
        "norm": norm,
        "C": 1.0,
        "tol": 1e-2,
        "n_jobs": options.jobs,
        "memory_budget": options.budget,
        **extra,
    }
    MKLClassifier(kw.gaussian([1.0, 2.0]), **common).fit(X[:60], y[:60])  # compiles
    began, processor = time.perf_counter(), time.process_time()
    model = MKLClassifier(bank, max_seconds=options.seconds, verbose=2, **common).fit(X, y)
    line = {
        "case": options.case, "n": len(y), "m": len(model.weights_), "norm": options.norm, "threads": options.jobs,
        "seconds": time.perf_counter() - began, "processor": time.process_time() - processor,
        "relative gap": model.certificate_.relative_gap, "status": model.status_, "solver": model.solver_,
        "passes": model.n_passes_, "iterations": model.n_iter_, "kernels used": int(np.count_nonzero(model.weights_)),
        "support": int(model.support_.size), "bank, GB": model.bank_bytes_ / 1e9,
        "peak, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip
    known = []
    if (RESULTS / "headline.csv").exists():
        known = pd.read_csv(RESULTS / "headline.csv").to_dict("records")
    key = ("case", "n", "m", "norm", "threads")
    rows = [row for row in known if any(str(row[k]) != str(line[k]) for k in key)] + [line]
    show([line])
    write_table("headline", rows, "python benchmarks/scaling.py headline", HEADLINE_NOTE)


# How far each way of keeping a bank reaches, and a cost model.

GB = 1e9
#: bytes that may be used: half of a laptop of 24 GB, nine tenths of an H200, half of a worker of 64 GB
LAPTOP, H200, WORKER, WORKERS = 12e9, 126e9, 32e9, 10
#: features per kernel, and how many numbers per sample the client keeps (targets, costs, coefficients, decision values)
LIMITS_FEATURES, VECTORS = 256, 10
#: what a round costs beyond its work, in seconds, and how many evaluations and certificates a fit took to 1e-2
OVERHEAD, EVALUATIONS, CERTIFICATES = 0.006, 60, 3
#: random Fourier features that a core computes in a second, and how often a fit computes them all: to keep them, and in
#: double precision for the traces, the sample, the final certificate and prediction
RATE, SWEEPS = 70e6, 5
LIMITS_NOTE = f"""*Limits*: bytes alone. Samples that fit for m kernels; matrices need the mixed kernel beside them.

*Rounds of a fit on explicit features* (`lbfgs`, a smooth loss, an lp norm), R features in all, W workers that read
memory at B bytes per second, b bytes per number, k columns, h = {1e3 * OVERHEAD:.0f} ms of overhead: an evaluation is
one round, sends and receives 8 (R + 1) k bytes per worker, and reads 2 n R b / W; a certificate is three rounds with
8 n k bytes each way. Seconds = evaluations (2 n R b / (W B) + h) + certificates 3 (n R b / (W B) + h + 8 n k /
network). A worker keeps n R b / W and its raw rows, the client about {VECTORS} numbers per sample. *Measured*: the
rounds of [cluster.md](cluster.md) and the passes of [gpu_mnist.md](gpu_mnist.md) that read what is stored, with their
own counts and their own bandwidth in the model. *Computing features*: to keep them, and again, in double precision, for
the final certificate: about {SWEEPS} sweeps at {RATE / 1e6:.0f} million per core and second; measured: all of the fit
that is not in the rounds above. *On paper*: {EVALUATIONS} evaluations and {CERTIFICATES} certificates, about what was
measured; workers of 16 cores that read 100 GB/s, a network of 1 GB/s at the client.
"""


def most_samples(m: np.ndarray) -> dict[str, np.ndarray]:
    """Largest n for m kernels, by what its bytes allow."""
    width = LIMITS_FEATURES * m
    return {
        "packed matrices in 12 GB": np.sqrt(LAPTOP / (4 * m + 16)),
        "float32 on one H200": np.sqrt(H200 / (4 * m + 4)),
        "half precision on one H200": np.sqrt(H200 / (2 * m + 4)),
        "kernels on 10 workers of 64 GB": np.minimum(
            np.sqrt(WORKERS * WORKER / (8 * m)), np.sqrt(LAPTOP / 16)
        ),
        "features in 12 GB": LAPTOP / (8 * width),
        "features on one H200": H200 / (4 * width),
        "features on 10 workers of 64 GB": WORKERS * WORKER / (4 * width),
        "features streamed, one machine": np.full(m.shape, LAPTOP / (8 * VECTORS)),
    }


def picture() -> None:
    """Lines of the largest n against m."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    m = np.geomspace(1, 10_000, 200)
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    styles = {"packed": ("C0", "-"), "float32": ("C1", "-"), "half": ("C1", "--"), "kernels": ("C2", "-"),
              "features in": ("C0", ":"), "features on one": ("C1", ":"), "features on 10": ("C2", ":"),
              "features streamed": ("C3", ":")}  # fmt: skip
    for name, n in most_samples(m).items():
        color, line = next(style for start, style in styles.items() if name.startswith(start))
        axes.loglog(m, n, line, color=color, label=name)
    axes.set_xlabel("kernels m")
    axes.set_ylabel("samples n that fit")
    axes.grid(alpha=0.3)
    axes.set_xlim(1, 10_000)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(RESULTS / "scale.png", dpi=110)


def modelled(n: float, width: int, item: int, workers: int, speed: float, evaluations: float, certificates: float,
             network: float) -> float:  # fmt: skip
    """Seconds of the rounds of a fit on features, by the model."""
    look = n * width * item / (workers * speed)
    exchange = 8.0 * n / network if np.isfinite(network) else 0.0
    return evaluations * (2 * look + OVERHEAD) + certificates * 3 * (look + OVERHEAD + exchange)


def row(
    what: str, n: float, width: int, item: int, workers: int, seconds: float, measured: float,
    cores: int, computing: float = np.nan,
) -> dict[str, Any]:  # fmt: skip
    """A row of the table."""
    return {
        "what": what,
        "n": n,
        "R": width,
        "workers": workers,
        "features a worker, GB": n * width * item / workers / GB,
        "client's vectors, GB": 8 * VECTORS * n / GB,
        "sent and received an evaluation, kB": 2 * workers * 8 * (width + 1) / 1e3,
        "model, s": seconds,
        "measured, s": measured,
        "measured / model": measured / seconds,
        "computing features, model, s": SWEEPS * n * width / (cores * RATE),
        "computing features, measured, s": computing,
    }


def measured_rows() -> list[dict[str, Any]]:
    """The model beside the tables of the other benchmarks."""
    rows = []
    table = RESULTS / "cluster.csv"
    if table.exists():
        cluster = pd.read_csv(table)
        for _, run in cluster[cluster["problem"] == "features"].iterrows():
            workers, looks = (
                int(run["workers"]),
                run["limit, s"],
            )  # bytes that were read, over their own bandwidth
            model = looks + OVERHEAD * run["rounds"]
            spent = run["reading, s"] + 1e-3 * run["overhead a round, ms"] * run["rounds"]
            rest = run["fit, s"] - spent
            rows.append(row("cluster, measured", run["n"], 2048, 4, workers, model, spent, workers, rest))
    table = RESULTS / "gpu_mnist.csv"
    if table.exists():
        gpu = pd.read_csv(table)
        for _, run in gpu[gpu["problem"] == "features"].iterrows():
            model, spent = (1e-3 * run["passes"] * run[f"{what}, ms"] for what in ("limit", "pass"))
            rows.append(
                row("one H200, measured", run["n"], 2048, 4, 1, model, spent, 16, run["fit, s"] - spent)
            )
    return rows


def limits_main() -> None:
    rows = measured_rows()
    for n, workers in ((1e7, 2), (1e8, 10), (1e9, 100)):
        seconds = modelled(n, 2048, 4, workers, 100e9, EVALUATIONS, CERTIFICATES, 1e9)
        rows.append(row("on paper", n, 2048, 4, workers, seconds, np.nan, 16 * workers))
    show(rows)
    limits = most_samples(np.array([1.0, 10.0, 100.0, 1000.0]))
    reach = [{"kept": name, **{f"m = {m}": float(f"{n:.2g}") for m, n in zip((1, 10, 100, 1000), values, strict=True)}}
             for name, values in limits.items()]  # fmt: skip
    show(reach)
    write_table("scale_limits", reach, "python benchmarks/scaling.py limits", LIMITS_NOTE.split("\n\n")[0])
    write_table("scale", rows, "python benchmarks/scaling.py limits", LIMITS_NOTE.split("\n\n", 1)[1])
    picture()


# Threads.

COUNTS = (1, 2, 4, 8, 16)
THREADS_NOTE = """\
A fit of `MKLClassifier(kernels.preset("stpmkl"), tol=1e-3)` on a generated problem (n = {n}, m = {m}, C = 1),
and values at {rows} new rows of a function on {support} support vectors and 9 Gaussians of doubling widths on 10
columns. BLAS has one thread throughout; *threads* is `n_jobs`. *NumPy* is how small tasks are still predicted, one
exponential per kernel value. *Times one thread*: seconds of the first line of its kind over these. *Same bits*: whether
weights, coefficients and values are those of one thread, to the last bit. Seconds are medians of {repeats}.

{targets}"""


def thread_fits(n: int, counts: tuple[int, ...], profile: bool) -> list[dict[str, Any]]:
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
            thread_line("fit", threads, seconds, rows, model.n_passes_, model.certificate_.relative_gap, same)
        )
        show(rows[-1:])
    return rows


def thread_predictions(
    rows: int, support: int, counts: tuple[int, ...], repeats: int
) -> list[dict[str, Any]]:
    """Values at new rows, by NumPy and by the compiled code on every number of threads."""
    random = np.random.default_rng(0)
    X, new = random.normal(size=(support, 10)), random.normal(size=(rows, 10))
    kernels = list(kw.gaussian(2.0 ** np.arange(-3, 6)))
    normaliser = build_bank(kernels, X[:50]).source.normaliser
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
            thread_line(what, threads, timed.seconds, [r for r in lines if r["what"] == what], "", "", same)
        )
        show(lines[-1:])
    bound.FEW_VALUES = kept
    return lines


def thread_line(
    what: str, threads: int, seconds: float, others: list[dict], passes: Any, gap: Any, same: bool
) -> dict:
    """Return a line of the table; the first of its kind is what the others are held against."""
    one = others[0]["seconds"] if others else seconds
    return {
        "what": what, "threads": threads, "seconds": seconds, "times one thread": one / seconds,
        "passes": passes, "relative gap": gap, "same bits": same,
    }  # fmt: skip


def thread_targets(rows: list[dict[str, Any]], most: int) -> Targets:
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


def threads_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, nothing is written")
    parser.add_argument("--profile", action="store_true", help="where the calling thread spends its time")
    options = parser.parse_args()
    pin()
    print(machine())
    counts = tuple(count for count in COUNTS if count <= max(2, cpu_count()))
    n, new, support, repeats = (1500, 2000, 1500, 1) if options.quick else (8000, 20_000, 8000, 3)
    rows = thread_predictions(new, support, counts, repeats) + thread_fits(n, counts, options.profile)
    show(rows)
    targets = thread_targets(rows, counts[-1])
    if not options.quick:
        note = THREADS_NOTE.format(
            n=n, m=110, rows=new, support=support, repeats=repeats, targets=targets.text()
        )
        write_table("cores", rows, "python benchmarks/scaling.py threads", note)


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


def new_rows(small: bool, rows: int) -> tuple[Problem, np.ndarray]:
    """The training problem, and new rows like it: values far out would be quicker or slower to exponentiate."""
    problem = generated(400, 10) if small else mid()
    random = np.random.default_rng(1)
    new = problem.X[random.integers(problem.n, size=rows)] + random.normal(0, 0.3, (rows, problem.X.shape[1]))
    return problem, new


def _predicted(decide: Any, repeats: int) -> tuple[dict[str, Any], np.ndarray]:
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
    problem, new = new_rows(small, rows)
    model = MKLClassifier(problem.kernels, dtype=dtype).fit(problem.X, problem.y)
    facts, values = _predicted(lambda part: model.decision_function(new[part]), repeats)
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
    problem, new = new_rows(small, rows)
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

    facts, values = _predicted(decide, repeats)
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
        write_table("prediction", rows, "python benchmarks/scaling.py prediction", note)


if __name__ == "__main__":
    run_part(
        main, headline=headline_main, limits=limits_main, threads=threads_main, prediction=prediction_main
    )
