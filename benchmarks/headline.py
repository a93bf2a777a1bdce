"""The sizes that lp-norm papers boast of: a hundred thousand kernels, and fifty thousand points.

Run ``python benchmarks/headline.py kernels`` or ``points`` (``--columns``, ``--widths``, ``--samples`` make them
smaller); every run adds its line to ``docs/results/headline.csv``.  Nothing is stored beyond what the memory budget
allows: chains of widths share one matrix, and what does not fit is computed as it is read.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
import pandas as pd

from _problems import generated
from _report import RESULTS, show, write_table
from _threads import pin
from kernelweave import MKLClassifier
from kernelweave import kernels as kw

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


def main() -> None:
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
    write_table("headline", rows, "python benchmarks/headline.py", NOTE)


if __name__ == "__main__":
    main()
