"""The data of the SMKL study: splits as in the paper, and its toy problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from kernelweave import kernels as kw

from ..datasets import load_text, load_uci
from ..methods import Split

TOY_RELEVANT, TOY_IRRELEVANT, TOY_SAMPLES = 34, 6, 500


def uci_split(name: str, seed: int) -> Split:
    """20 % to train on; zero mean and unit variance from the training part."""
    X, y = load_uci(name, return_X_y=True)
    return _standardised(np.asarray(X, dtype=float), np.asarray(y), 0.2, seed)


def uci_kernels() -> Any:
    """Gaussians of widths 2^-3..2^6 and polynomials of degrees 1..3 on every single feature."""
    return kw.preset("smkl")


def text_split(name: str, seed: int) -> Split:
    """10 % to train on; terms that no training document has are left out, the others standardised."""
    X, y = load_text(name, return_X_y=True)
    return _standardised(X.toarray(), np.asarray(y), 0.1, seed)


def toy_split(irrelevant: int, seed: int) -> Split:
    """500 points, the label from the mean of the first 34 dimensions, 10 % to train on; normal features.

    The paper does not say how the points are drawn.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(TOY_SAMPLES, TOY_RELEVANT + TOY_IRRELEVANT))
    y = np.where(X[:, :TOY_RELEVANT].mean(axis=1) > 0, 1, -1)
    return _standardised(X[:, : TOY_RELEVANT + irrelevant], y, 0.1, seed)


def _standardised(X: np.ndarray, y: np.ndarray, share: float, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, train_size=share, stratify=y, random_state=seed)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    varies = deviation > 1e-12 * (
        1.0 + np.abs(mean)
    )  # of a constant column rounding may leave more than zero
    mean, deviation = mean[varies], deviation[varies]
    return Split((X[:, varies] - mean) / deviation, y, (X_test[:, varies] - mean) / deviation, y_test)
