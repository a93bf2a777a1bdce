"""Data and kernels of the OBSCURE study: mfeat in place of flowers and Caltech, MNIST in four blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import MulticlassHinge
from kernelweave.norms import Norm
from kernelweave.problems import MKLProblem

from ..datasets import load_mfeat, load_mnist
from ..methods import Split

#: the paper's grids
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)
C_GRID = (1.0, 10.0, 100.0, 1000.0)
#: exp(-d / mean d) of the paper, d the squared distance: a width of 1/sqrt(2) typical distances
ONE_WIDTH = float(np.sqrt(0.5))
#: images to train on in MNIST
IMAGES = 60_000
#: for banks with several kernels per view, in typical distances
WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
MFEAT = (
    "mfeat, six views of 2,000 handwritten digits (in place of Oxford flowers and Caltech-101, whose kernels are not "
    "available), features standardised by the training part"
)


def mfeat_split(n: int, seed: int) -> Split:
    """n samples to train on, as many of every class, the others to test on."""
    from sklearn.model_selection import train_test_split

    X, y = load_mfeat(return_X_y=True, download=False)
    train, test = train_test_split(np.arange(len(y)), train_size=n, stratify=y, random_state=seed)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return Split(X[train], y[train], X[test], y[test])


@cache
def mfeat_views() -> dict[str, list[int]]:
    """Columns of the six views."""
    data: Any = load_mfeat(download=False)
    return dict(data.views)


def one_per_view() -> Any:
    """Return six kernels: one Gaussian per view, as wide as a typical distance."""
    return kw.per_view(mfeat_views(), kw.gaussian(ONE_WIDTH, relative=True))


def several_per_view() -> Any:
    """36 kernels: Gaussians of six widths per view, most of them poor or redundant, as Caltech's 39 are."""
    return kw.per_view(mfeat_views(), kw.gaussian(WIDTHS, relative=True))


@cache
def _mnist() -> Any:
    return load_mnist()


def mnist_split(n: int, seed: int = 0) -> Split:
    """n of the 60,000 images, in a random order, to train on; all 10,000 of the test set."""
    data = _mnist()
    chosen = np.random.default_rng(seed).permutation(IMAGES)[:n]
    return Split(data.data[chosen], data.target[chosen], data.test_data, data.test_target)


def blocks() -> dict[str, list[int]]:
    """Pixels of the four 14 x 14 blocks."""
    halves = {"top": range(14), "bottom": range(14, 28)}, {"left": range(14), "right": range(14, 28)}
    return {
        f"{row} {side}": [28 * i + j for i in halves[0][row] for j in halves[1][side]]
        for row in halves[0]
        for side in halves[1]
    }


def mnist_kernels(degree: int, width: float) -> Any:
    """Linear, polynomial and Gaussian on every block: 12 kernels."""
    return kw.per_view(blocks(), kw.linear(), kw.polynomial(degree), kw.gaussian(width, relative=True))


def bind(kernels: Any, X: np.ndarray, **options: Any) -> tuple[Any, Any]:
    """Bank on training samples, and what predicts from it."""
    expanded = kw.expand_kernels(kw.as_spec(kernels), kw.Schema.of(X))
    resolved = kw.resolve_kernels(expanded, X)
    bank = build_bank(resolved, X, **{"normalize": "trace", **options})
    return bank, bank.source


def problem_of(bank: Any, y: np.ndarray, norm: Norm, C: float) -> MKLProblem:
    """The paper's (9) times C n: multiclass hinge, no intercept."""
    table = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    return MKLProblem(bank, MulticlassHinge(), norm, table, C, None, False)


def splits_of(rows: Any) -> str:
    """How many splits the rows come from, in words."""
    count = int(rows["seed"].nunique())
    return f"{count} split{'s' if count > 1 else ''}"
