"""A million rows of explicit features on a GPU: the fit, its profile, and products beside the limit of the memory.

Run ``python benchmarks/gpu_features.py`` (a minute or two, needs torch and a GPU); ``--device cpu --rows 20000 --quick``
tries the same code anywhere and writes nothing.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import platform
import pstats
from typing import Any

import numpy as np
import torch

from _report import show, write_table
from _targets import Targets
from gpu_mnist import Timed, copy_bandwidth, fitted, median_seconds, synchronize
from kernelweave.banks.torch_features import columns_times
from streaming import TOL, P, rows_of, views

NOTE = """Rows and views of `benchmarks/streaming.py`: 8 views of 3 columns, 256 random Fourier features each; logistic loss,
p = 1.5, C = 1, with an intercept, to a certified relative gap of 1e-2, the certificate in double precision. Features,
losses, gradients and the products of the certificate are computed on the device; what is sent are rows, targets and
vectors of n numbers. *Fit* is everything after the rows are in the host's memory, of a second fit in the same process
(*first fit*: with what torch loads). *Pass*: decision values, losses and gradient with one look at every feature, which
are two reads where a block does not stay in the cache. *Limit*: that many bytes at the bandwidth of a copy."""


def model_of(device: str, dtype: str) -> Timed:
    """The classifier, which keeps its bank."""
    storage = "auto" if dtype == "float32" else "lowrank"
    return Timed(
        views(), loss="logistic", norm=P, C=1.0, tol=TOL, solver="lbfgs", device=device, dtype=dtype, storage=storage,
        n_jobs=-1,
    )  # fmt: skip


def profiled(model: Timed, X: np.ndarray, y: np.ndarray, device: str) -> tuple[float, float, str]:
    """Seconds of building and of the whole fit, and where the host spent them."""
    watch = cProfile.Profile()
    watch.enable()
    build, total = fitted(model, X, y, device)
    watch.disable()
    text = io.StringIO()
    pstats.Stats(watch, stream=text).sort_stats("tottime").print_stats(25)
    return build, total, text.getvalue()


def products(bank: Any, device: str, bandwidth: float) -> list[dict[str, Any]]:
    """Ways to multiply with the features from either side, beside the limit."""
    n, width = bank.n, int(bank.starts[-1])
    w = torch.ones(width, 1, dtype=bank.working, device=device)
    a = torch.ones(n, 1, dtype=bank.working, device=device)
    ways = {
        "Z w, block by block": lambda: [Z @ w for _, Z in bank.kept],
        "Z'a, a product per block": lambda: [Z.T @ a[rows] for rows, Z in bank.kept],
        "Z'a, batches of pieces": lambda: [columns_times(Z, a[rows]) for rows, Z in bank.kept],
        "Z'a, a'Z per block": lambda: [a[rows].T @ Z for rows, Z in bank.kept],
        "Z'a, 16 columns": lambda: [Z.T @ a[rows].expand(-1, 16) for rows, Z in bank.kept],
    }
    limit = bank.nbytes / bandwidth
    rows = []
    for name, work in ways.items():
        seconds = median_seconds(work, device, 5)
        rows.append({"what": name, "ms": 1e3 * seconds, "limit, ms": 1e3 * limit, "ratio": seconds / limit})
    return rows


def seconds_of_a_pass(bank: Any, loss: Any, y: np.ndarray, device: str) -> float:
    """Decision values, losses and gradient, once."""
    w, b, c = np.ones((int(bank.starts[-1]), 1)), np.zeros(1), np.ones(bank.n)
    return median_seconds(lambda: bank.loss_sweep(w, b, loss, y, c), device, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dtypes", default="float32,float16")
    parser.add_argument("--quick", action="store_true", help="write nothing")
    options = parser.parse_args()
    device, targets, lines = options.device, Targets(), []
    bandwidth = copy_bandwidth(device)
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "CPU"
    print(f"{name}, torch {torch.__version__}, copy {bandwidth / 1e12:.3g} TB/s", flush=True)
    X, y = rows_of(options.rows, 1)
    X = X.astype(float)
    fitted(model_of(device, "float32"), X[:4000], y[:4000], device)
    for dtype in options.dtypes.split(","):
        model = model_of(device, dtype)
        _, first = fitted(model, X, y, device)
        del model.bank_
        build, total, profile = profiled(model, X, y, device)
        print(model.trace_.to_string(), profile, sep="\n", flush=True)
        bank = model.bank_
        sweep = seconds_of_a_pass(bank, model.loss_, y, device)
        limit = 2.0 * bank.nbytes / bandwidth
        new, labels = rows_of(20_000, 0)
        lines.append({
            "features": dtype, "n": bank.n, "GB": bank.nbytes / 1e9, "building, s": build, "fit, s": total,
            "first fit, s": first, "relative gap": model.certificate_.relative_gap,
            "objective": model.certificate_.primal, "passes": model.n_passes_, "pass, ms": 1e3 * sweep,
            "limit, ms": 1e3 * limit, "ratio": sweep / limit,
            "error, %": 100.0 * float(np.mean(model.predict(new.astype(float)) != labels)),
        })  # fmt: skip
        show(lines[-1:])
        show(products(bank, device, bandwidth))
        synchronize(device)
        del bank, model
        if device == "cuda":
            torch.cuda.empty_cache()
    targets.at_most("seconds of the fit, float32", lines[0]["fit, s"], 4.0)
    targets.at_most("certified relative gap", max(line["relative gap"] for line in lines), TOL)
    targets.at_most("a pass over its limit, float32", lines[0]["ratio"], 1.3)
    if not options.quick:
        note = (
            f"{name}, torch {torch.__version__}, copy {bandwidth / 1e12:.3g} TB/s. {NOTE}\n\n{targets.text()}"
        )
        write_table("gpu_features", lines, "python benchmarks/gpu_features.py", note)


if __name__ == "__main__":
    main()
