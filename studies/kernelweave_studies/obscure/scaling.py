"""An epoch's time against the number of samples, on explicit features."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kernelweave import kernels as kw
from kernelweave.norms import Block
from kernelweave.solvers.online import DualAscent, Obscure, Pegasos

from ..study import Key, Report, Row
from .data import bind, blocks, mnist_split, problem_of
from .walk import warm_up

SIZES = (5_000, 10_000, 20_000, 40_000, 60_000)
P, C, EPOCHS, ONLINE = 1.25, 1.0, 6, 3
SOLVERS = {
    "OBSCURE": lambda: Obscure(online_epochs=ONLINE),
    "Pegasos": lambda: Pegasos(),
    "dual ascent": lambda: DualAscent(),
}
SETTINGS = {"p": P, "C": C, "epochs": EPOCHS, "online": ONLINE, "version": 1}


def keys(repeats: int) -> list[Key]:
    """Every size with every solver."""
    return [{"n": n, "method": m, "seed": t} for t in range(repeats) for n in SIZES for m in SOLVERS]


def work(key: Key) -> list[Row]:
    """Seconds of every epoch."""
    split = mnist_split(int(key["n"]), int(key["seed"]))
    bank, _ = bind(kw.per_view(blocks(), kw.linear()), split.X, storage="lowrank", mixing=False)
    problem = problem_of(bank, split.y, Block(P), C)
    solver = SOLVERS[str(key["method"])]()
    few = mnist_split(200, int(key["seed"]))
    small, _ = bind(kw.per_view(blocks(), kw.linear()), few.X, storage="lowrank", mixing=False)
    state = solver.init(problem_of(small, few.y, Block(P), C), None, 1e-3)
    for _ in range(EPOCHS):  # compiles the loops on features
        state = solver.step(problem_of(small, few.y, Block(P), C), state)
    warm_up(solver, problem)
    state, rows = solver.init(problem, None, 1e-3), []
    for epoch in range(1, EPOCHS + 1):
        began = time.process_time()
        state = solver.step(problem, state)
        rows.append({"epoch": epoch, "epoch_seconds": time.process_time() - began})
    return rows


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Return the seconds per epoch, and the exponent of n."""
    targets, table = report.targets(), []
    for method, these in rows.groupby("method", sort=False):
        # a busy machine only ever adds to a time
        least = these.groupby(["n", "seed"])["epoch_seconds"].median().groupby("n").min()
        exponent = float(np.polyfit(np.log(least.index), np.log(least), 1)[0])
        table.append(
            {
                "method": method,
                **{f"n = {n:,}": float(s) for n, s in least.items()},
                "exponent of n": exponent,
            }
        )
        if method == "OBSCURE":
            targets.at_most("OBSCURE: exponent of n in the time of an epoch, 5,000 to 60,000", exponent, 1.1)
    note = (
        f"Median seconds (processor time) of an epoch ({ONLINE} online, {EPOCHS - ONLINE} batch, bounds included). "
        "MNIST, linear kernels on the four 14 x 14 blocks as explicit features (784 in all), ten classes, "
        f"p = {P:g}, C = {C:g}, one core.\n\n{targets.text()}"
    )
    report.table(table, note, "Time of an epoch against n")
    return [str(target) for target in targets.all]
