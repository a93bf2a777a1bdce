"""The data of the StPMKL study: splits as in the paper, and labels flipped at random in the training part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import BudgetedHinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem

from ..datasets import load_uci
from ..methods import Split


@dataclass(frozen=True)
class FlippedSplit(Split):
    """A split whose training labels are noisy; ``flipped`` says which are wrong."""

    flipped: np.ndarray

    @property
    def realised(self) -> float:
        """Share of the training labels that are wrong."""
        return float(self.flipped.mean())


def study_kernels() -> Any:
    """Gaussians of widths 2^-3..2^6 on all features and on every single one."""
    return kw.preset("stpmkl")


def flipped_split(name: str, q: float, seed: int) -> FlippedSplit:
    """80 % to train on, features scaled to [0, 1] by the training part, each training label flipped with probability q.

    The same seed flips more labels at a larger q, never other ones.
    """
    X, y = load_uci(name, return_X_y=True)
    y = np.where(np.asarray(y) == np.unique(y)[1], 1, -1)
    X, X_test, y, y_test = train_test_split(
        np.asarray(X, dtype=float), y, test_size=0.2, stratify=y, random_state=seed
    )
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    span[span == 0] = 1.0
    flipped = np.random.default_rng([seed, 1]).random(y.size) < q
    return FlippedSplit((X - low) / span, np.where(flipped, -y, y), (X_test - low) / span, y_test, flipped)


def problem_of(split: Split, lam: float, rho: float) -> MKLProblem:
    """StPMKL in the paper's units: ``C = 1 / (lam n)``, ``budget = rho / n``, no intercept."""
    bank = build_bank(study_kernels().expand(kw.Schema(split.X.shape[1])), split.X)
    n = split.y.size
    loss = BudgetedHinge(min(1.0, rho / n))
    return MKLProblem(bank, loss, L1(), split.y.astype(float), 1.0 / (lam * n), fit_intercept=False)
