"""Sparse MKL on a GPU: a million rows, 50 groups of 100 random Fourier features, the l1 norm.

Run ``python benchmarks/groups_gpu.py`` on a machine with a GPU; ``--device cpu --rows 20000 --dry`` tries the code
anywhere and writes nothing.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch

from _report import Targets, show, write_table
from kernelweave import MKLClassifier
from kernelweave import kernels as kw

GROUPS, COLUMNS, FEATURES, WIDTH, TOL = 50, 3, 100, 2.0, 1e-3
SECONDS = 15.0
NOTE = """Rows of N(0, I), 50 groups of 3 columns, 100 random Fourier features of a Gaussian of width 2 each;
`y = sign(x0 + .5 x3 x4 + sin(2 x6) + .5 noise)`: three groups count. Logistic loss, l1, C of the table over n, with
intercept, to a certified relative gap of 1e-3, recomputed from features in double precision. *Fit* is all of it, from
rows in the host's memory; a fit of 20,000 rows has compiled what is compiled. *Found*: whether the groups with weight
include the three.

{targets}"""


def rows_of(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, GROUPS * COLUMNS))
    signal = X[:, 0] + 0.5 * X[:, 3] * X[:, 4] + np.sin(2 * X[:, 6])
    return X, np.where(signal + 0.5 * rng.normal(size=n) > 0, 1, -1)


def fitted(
    X: np.ndarray, y: np.ndarray, C: float, dtype: str, options: argparse.Namespace
) -> dict[str, object]:
    """One fit on the device."""
    bank = [
        kw.random_fourier(WIDTH, n_features=FEATURES).on(list(range(COLUMNS * g, COLUMNS * (g + 1))))
        for g in range(GROUPS)
    ]
    model = MKLClassifier(
        bank, loss="logistic", norm="l1", C=C / len(y), tol=TOL, device=options.device, dtype=dtype
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:20_000], y[:20_000])
    if options.device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    new, labels = rows_of(20_000, 1)
    chosen = set(np.flatnonzero(model.weights_ > 1e-6))
    return {
        "features": dtype, "n": len(y), "C": C, "solver": model.solver_, "fit, s": seconds,
        "relative gap": model.certificate_.relative_gap, "status": model.status_, "passes": model.n_passes_,
        "iterations": model.n_iter_, "groups with weight": len(chosen), "found": {0, 1, 2} <= chosen,
        "accuracy": float(np.mean(model.predict(new) == labels)),
        "peak, GB": torch.cuda.max_memory_allocated() / 1e9 if options.device == "cuda" else float("nan"),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    options = parser.parse_args()
    X, y = rows_of(options.rows, 0)
    targets, rows = Targets(), []
    for C, dtype in (
        (1000.0, "float32"),
        (1000.0, "float16"),
        (10_000.0, "float32"),
        (1_000_000.0, "float32"),
    ):
        row = fitted(X, y, C, dtype, options)
        rows.append(row)
        show([row])
        name = f"n = {len(y):,}, C = {C:g}, {dtype}"
        targets.at_most(f"{name}: seconds", float(row["fit, s"]), SECONDS)
        targets.at_most(f"{name}: certified relative gap", float(row["relative gap"]), TOL)
        if not options.dry:
            where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}. "
            write_table(
                "groups_gpu",
                rows,
                "python benchmarks/groups_gpu.py",
                where + NOTE.format(targets=targets.text()),
            )


if __name__ == "__main__":
    main()
