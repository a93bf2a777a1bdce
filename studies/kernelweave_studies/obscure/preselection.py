"""Kernels preselected by the closed-form leave-one-out error of an LS-SVM: one of every family, as in the paper."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave import kernels as kw
from kernelweave.estimators import MKLClassifier
from kernelweave.estimators.baselines import leave_one_out
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.norms import Block
from kernelweave.solvers.online import Obscure

from ..study import Key, Report, Row
from ..tables import mean_sd
from .data import MFEAT, WIDTHS, bind, mfeat_split, several_per_view, splits_of

SIZES, P, C, EPOCHS = (100, 300, 1000), 1.05, 10.0, 60
SETTINGS = {"p": P, "C": C, "epochs": EPOCHS, "widths": WIDTHS, "version": 2}


def loo_errors(split: Any) -> tuple[list[Any], np.ndarray]:
    """Kernels and the error of each alone, by an LS-SVM with its best regularisation, every sample left out in turn."""
    bank, bound = bind(several_per_view(), split.X)
    classes = np.unique(split.y)
    table = np.where(split.y[:, None] == classes, 1.0, -1.0)
    everyone, errors = np.arange(bank.n), []
    for j in range(bank.m):
        left_out = leave_one_out(bank.block(everyone, everyone, np.array([j]))[0], table)
        errors.append(float(np.mean(classes[np.argmax(left_out.predictions, axis=1)] != split.y)))
    return bound.kernels, np.array(errors)


def preselected(kernels: Sequence[Any], errors: np.ndarray) -> list[Any]:
    """The kernel of the smallest error of every view."""
    a_view = len(WIDTHS)
    best = [
        first + int(np.argmin(errors[first : first + a_view])) for first in range(0, len(kernels), a_view)
    ]
    return [kernels[j] for j in best]


def keys(repeats: int) -> list[Key]:
    """A split of every size before the next split."""
    return [{"n": n, "seed": t} for t in range(repeats) for n in SIZES]


def work(key: Key) -> list[Row]:
    """OBSCURE, the optimum, and the mean kernel, on all kernels and on the chosen ones."""
    split = mfeat_split(int(key["n"]), int(key["seed"]))
    chosen = preselected(*loo_errors(split))
    banks = {
        "all 36": several_per_view(),
        f"{len(chosen)} preselected": sum(chosen[1:], kw.as_spec(chosen[0])),
    }
    joint: dict[str, Any] = {"norm": Block(P), "C": C, "fit_intercept": False}
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
        for name, bank in banks.items():
            models = {
                "OBSCURE": MKLClassifier(bank, **joint, solver=Obscure(), max_iter=EPOCHS),
                "optimum": MKLClassifier(bank, **joint),
                "mean kernel": MKLClassifier(bank, norm="uniform", C=C, fit_intercept=False),
            }
            for method, model in models.items():
                wrong = 1.0 - float(model.fit(split.X, split.y).score(split.X_test, split.y_test))
                rows.append({"kernels": name, "method": method, "error": wrong})
    return rows


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Accuracy with all kernels and with the chosen ones."""
    table: list[Row] = []
    for (method, kernels), these in rows.groupby(["method", "kernels"], sort=False):
        sizes = {f"n = {n}": mean_sd(1.0 - part["error"]) for n, part in these.groupby("n")}
        table.append({"method": method, "kernels": kernels, **sizes})
    note = (
        f"Accuracy in %. {MFEAT}, {splits_of(rows)}. Of the Gaussians of six widths per view, the one "
        "with the smallest leave-one-out error of an LS-SVM (in closed form, its regularisation by the same errors) is "
        f"kept: one per family, as in the paper. p = {P:g}, C = {C:g}, no intercept; OBSCURE {EPOCHS} epochs."
    )
    report.table(table, note, "Kernels preselected by leave-one-out")
    return []
