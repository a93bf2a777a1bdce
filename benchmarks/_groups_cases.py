"""Problems of ``groups.py``: blocks of random Fourier features, and targets that a few blocks make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave.banks import LowRankBank
from kernelweave.losses import make_loss
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem

__all__ = ["CASES", "Case"]

#: blocks that make the target
TRUE = 5
#: columns of a group
COLUMNS = 4


@dataclass(frozen=True)
class Case:
    """A problem: how the groups of columns hang together, sizes, loss and C."""

    kind: str
    n: int
    groups: int
    width: int
    loss: str
    C: float
    rivals: tuple[str, ...] = ()
    quick: bool = False

    @property
    def title(self) -> str:
        """What it is, in words."""
        return f"{self.kind}, n = {self.n:,}, {self.groups} x {self.width}"

    def problem(self) -> MKLProblem:
        """Make the features and the targets; the blocks have mean diagonal one."""
        rng = np.random.default_rng(0)
        Z = np.empty((self.n, self.groups * self.width))
        signal = np.zeros(self.n)
        for j, (X, length) in enumerate(_columns(self.kind, self.n, self.groups, rng)):
            angles = X @ rng.normal(size=(X.shape[1], self.width // 2)) / (length * np.sqrt(X.shape[1]))
            mine = slice(j * self.width, (j + 1) * self.width)
            Z[:, mine] = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(self.width // 2)
            if j < TRUE:
                signal += np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
        y = signal / signal.std() + 0.5 * rng.normal(size=self.n)
        y = y if self.loss == "squared" else np.sign(y)
        bank = LowRankBank(Z, np.arange(self.groups + 1) * self.width)
        return MKLProblem(bank, make_loss(self.loss), make_norm("l1"), y, self.C)


def _columns(kind: str, n: int, groups: int, rng: np.random.Generator):
    """Columns of every group, and the width of its Gaussian."""
    if kind == "overlapping":
        pool = rng.normal(size=(n, 60))
        for _ in range(groups):
            yield pool[:, rng.choice(60, size=12, replace=False)], 1.0
        return
    if kind == "several widths":
        for _ in range(groups // 5):
            X = rng.normal(size=(n, COLUMNS))
            for length in 2.0 ** np.arange(-2, 3):
                yield X, length
        return
    factors = rng.normal(size=(n, 8))
    for _ in range(groups):
        own = rng.normal(size=(n, COLUMNS))
        shared = factors @ rng.normal(size=(8, COLUMNS)) / np.sqrt(8)
        yield (0.8 * shared + 0.6 * own if kind == "correlated" else own), 1.0


BOTH = ("celer", "skglm")
CASES = [
    Case("independent", 2_000, 50, 100, "squared", 1.0, BOTH, quick=True),
    Case("independent", 2_000, 50, 100, "logistic", 1.0, ("skglm",), quick=True),
    Case("independent", 10_000, 50, 100, "squared", 0.03, ("celer",)),
    Case("independent", 10_000, 50, 100, "logistic", 0.1, ("skglm",)),
    Case("correlated", 5_000, 50, 100, "squared", 0.03, ("celer",)),
    Case("correlated", 5_000, 50, 100, "logistic", 1.0, ("skglm",)),
    Case("overlapping", 5_000, 50, 100, "squared", 0.1, ("celer",)),
    Case("several widths", 5_000, 50, 100, "squared", 0.1, ("celer",)),
    Case("independent", 5_000, 500, 50, "squared", 0.1, ("celer",)),
    Case("independent", 10_000, 50, 100, "logistic", 1.0),
    Case("independent", 10_000, 50, 100, "logistic", 10.0),
    Case("independent", 10_000, 50, 100, "squared_hinge", 1.0),
    Case("independent", 10_000, 50, 100, "huber_hinge", 1.0),
    Case("independent", 50_000, 50, 100, "squared", 0.02),
    Case("independent", 50_000, 50, 100, "logistic", 0.3),
    Case("overlapping", 5_000, 50, 100, "logistic", 1.0),
    Case("several widths", 5_000, 50, 100, "logistic", 1.0),
    Case("independent", 10_000, 50, 100, "squared", 1.0, ("celer",)),
    Case("correlated", 5_000, 50, 100, "squared", 0.3, ("celer",)),
    Case("independent", 5_000, 500, 50, "squared", 0.3),
    Case("independent", 50_000, 50, 100, "squared", 0.3),
    Case("independent", 50_000, 50, 100, "logistic", 2.0),
]
