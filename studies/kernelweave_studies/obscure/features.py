"""Figure 4 for large n: OBSCURE on explicit features of MNIST's twelve kernels, where no kernel matrix is needed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave import kernels as kw
from kernelweave.kernels import stack_features
from kernelweave.norms import Block
from kernelweave.problems import Point
from kernelweave.solvers.online import Obscure

from ..study import Key, Report, Row
from .data import bind, blocks, mnist_split, problem_of
from .mnist import NOTE, chosen, peak
from .mnist import SETTINGS as SEARCH
from .walk import walk

SIZES = (5_000, 20_000, 60_000)
#: samples that span the features of a polynomial or Gaussian kernel of a block; epochs in all
LANDMARKS, EPOCHS = 300, 40
SETTINGS = {**SEARCH, "landmarks": LANDMARKS, "epochs": EPOCHS}


def keys(repeats: int) -> list[Key]:
    """As many sizes as repeats, the smallest first."""
    return [{"n": n} for n in SIZES[:repeats]]


def feature_kernels(degree: int, width: float) -> Any:
    """The linear kernels are explicit as they are, the others by the Nystroem approximation."""
    others = (kw.polynomial(degree), kw.gaussian(width, relative=True))
    return kw.per_view(blocks(), kw.linear(), *(kw.nystroem(kernel, LANDMARKS) for kernel in others))


def work(key: Key) -> list[Row]:
    """OBSCURE's way at one size."""
    degree, width, p, C, _, tuning = chosen(int(key["n"]))
    split = mnist_split(int(key["n"]))
    began = time.process_time()
    bank, bound = bind(feature_kernels(degree, width), split.X, storage="lowrank", mixing=False)
    building = time.process_time() - began
    there, _ = stack_features(bound.kernels, split.X_test)

    def error(point: Point) -> float:
        spread = np.repeat(point.weights * bank.scale, bank.ranks)
        values = there @ (spread[:, None] * (bank.features.T @ point.beta))
        return float(np.mean(np.argmax(values, axis=1) != split.y_test))

    rows = walk(problem_of(bank, split.y, Block(p), C), Obscure(), EPOCHS, error, 600.0)
    about: Row = {
        "features": int(bank.ranks.sum()), "degree": degree, "width": width, "p": p, "C": C, "building": building,
        "tuning_seconds": tuning, "peak_gb": peak(),
    }  # fmt: skip
    return [{**row, **about, "seconds": row["seconds"] + building} for row in rows]


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Errors and seconds, and the picture."""
    table: list[Row] = []
    for n, these in rows.groupby("n"):
        these = these.sort_values("epoch")
        last, online = these.iloc[-1], these[these["stage"] == "online"]
        table.append(
            {
                "n": int(n), "features": int(last["features"]), "epochs": int(last["epoch"]),
                "test error, %": 100 * float(last["error"]),
                "after the first epoch, %": 100 * float(these["error"].iloc[0]),
                "after the online stage, %": 100 * float(online["error"].iloc[-1]),
                "seconds": float(last["seconds"]), "of them for features": float(last["building"]),
                "objective": float(last["objective"]), "lower bound": float(last["bound"]),
                "degree": int(last["degree"]), "width": float(last["width"]), "p": float(last["p"]),
                "C": float(last["C"]), "seconds to choose": float(last["tuning_seconds"]),
                "peak, GB": float(last["peak_gb"]),
            }
        )  # fmt: skip
    note = (
        f"{NOTE} The polynomial and Gaussian kernels by the Nystroem approximation with {LANDMARKS} landmarks each, "
        f"degree, width, p and C as for the exact kernels. OBSCURE: {EPOCHS} epochs, eta = 2; the last iterate."
    )
    report.table(
        table, note, "MNIST on explicit features: error and objective against time (Figure 4, large n)"
    )
    report.picture(_draw(rows))
    return [f"n = {line['n']:,}: {line['test error, %']:.2f} % in {line['seconds']:.0f} s" for line in table]


def _draw(rows: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, (n, these) in enumerate(rows.groupby("n")):
        these = these.sort_values("epoch")
        # the stages share the point between them, so that the line does not break
        first = int((these["stage"] == "online").sum())
        for part, line in ((these.iloc[: first + 1], "--"), (these.iloc[first:], "-")):
            label = f"n = {n:,}" if line == "-" else None
            left.semilogx(part["seconds"], 100 * (1 - part["error"]), ls=line, color=f"C{k}", label=label)
            right.loglog(part["seconds"], part["objective"], ls=line, color=f"C{k}", label=label)
    left.set_ylabel("test accuracy, %")
    right.set_ylabel("objective")
    left.legend(fontsize="small")
    for ax in (left, right):
        ax.set_xlabel("seconds (dashed: online)")
    return figure
