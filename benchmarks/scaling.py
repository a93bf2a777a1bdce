"""Growth in samples and kernels, and the large cases within their memory; every case in a process of its own.

Run ``python benchmarks/scaling.py``; ``--quick`` stops at smaller sizes and writes nothing.

The sizes of papers on lp norms: a hundred thousand kernels, and fifty thousand points.

Run ``python benchmarks/scaling.py headline kernels`` or ``points`` (``--columns``, ``--widths``, ``--samples`` make
them smaller); every run adds its line to ``docs/results/headline.csv``.  Nothing is stored beyond what the memory
budget allows: chains of widths share one matrix, and what does not fit is computed as it is read.

How far each way of keeping a bank reaches, and a cost model of rounds, against what the other benchmarks measured.

Run ``python benchmarks/scaling.py limits`` after ``cluster.py`` and ``gpu_mnist.py``: it reads their tables in
``docs/results``, computes the rest on paper, and writes a table and a picture.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np
import pandas as pd

import _measure as memory
from _measure import answer, in_child, in_turns, pin
from _problems import SETTING, Problem, generated, mid
from _report import RESULTS, Targets, machine, run_part, show, write_table
from kernelweave import MKLClassifier
from kernelweave import kernels as kw

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

NOTE = """Generated problems (`make_classification`, features standardised), Gaussian kernels normalised by their trace,
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
    write_table("headline", rows, "python benchmarks/scaling.py headline", NOTE)


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


if __name__ == "__main__":
    run_part(main, headline=headline_main, limits=limits_main)
