"""How far each way of keeping a bank reaches, and a cost model of rounds, against what the other benchmarks measured.

Run ``python benchmarks/scale.py`` after ``cluster.py`` and ``gpu_mnist.py``: it reads their tables in ``docs/results``,
computes the rest on paper, and writes a table and a picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from _report import RESULTS, show, write_table

GB = 1e9
#: bytes that may be used: half of a laptop of 24 GB, nine tenths of an H200, half of a worker of 64 GB
LAPTOP, H200, WORKER, WORKERS = 12e9, 126e9, 32e9, 10
#: features per kernel, and how many numbers per sample the client keeps (targets, costs, coefficients, decision values)
FEATURES, VECTORS = 256, 10
#: what a round costs beyond its work, in seconds, and how many evaluations and certificates a fit took to 1e-2
OVERHEAD, EVALUATIONS, CERTIFICATES = 0.006, 60, 3
#: random Fourier features that a core computes in a second, and how often a fit computes them all: to keep them, and in
#: double precision for the traces, the sample, the final certificate and prediction
RATE, SWEEPS = 70e6, 5
NOTE = f"""*Limits*: bytes alone. Samples that fit for m kernels; matrices need the mixed kernel beside them.

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
    width = FEATURES * m
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


def main() -> None:
    rows = measured_rows()
    for n, workers in ((1e7, 2), (1e8, 10), (1e9, 100)):
        seconds = modelled(n, 2048, 4, workers, 100e9, EVALUATIONS, CERTIFICATES, 1e9)
        rows.append(row("on paper", n, 2048, 4, workers, seconds, np.nan, 16 * workers))
    show(rows)
    limits = most_samples(np.array([1.0, 10.0, 100.0, 1000.0]))
    reach = [{"kept": name, **{f"m = {m}": float(f"{n:.2g}") for m, n in zip((1, 10, 100, 1000), values, strict=True)}}
             for name, values in limits.items()]  # fmt: skip
    show(reach)
    write_table("scale_limits", reach, "python benchmarks/scale.py", NOTE.split("\n\n")[0])
    write_table("scale", rows, "python benchmarks/scale.py", NOTE.split("\n\n", 1)[1])
    picture()


if __name__ == "__main__":
    main()
