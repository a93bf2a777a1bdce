"""Generated encoding models: a few feature spaces, many targets, each made by some of the spaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["CASES", "Case", "Data"]

#: samples that test
TEST = 500


@dataclass(frozen=True)
class Data:
    """Feature spaces and targets of the training samples, then of the others."""

    views: list[np.ndarray]
    Y: np.ndarray
    n: int

    @property
    def train(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Samples to fit."""
        return [X[: self.n] for X in self.views], self.Y[: self.n]

    @property
    def test(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Samples to judge by."""
        return [X[self.n :] for X in self.views], self.Y[self.n :]


@dataclass(frozen=True)
class Case:
    """One setting.

    ``kind`` is ``linear``, ``gaussian`` (targets are smooth functions of the spaces), ``correlated`` (half of the
    columns' variance is common to all spaces), ``autocorrelated`` (rows and noise follow an AR(1) process),
    ``heavy tails`` (noise of a t distribution with 2.5 degrees of freedom) or ``dense`` (every space counts).
    """

    kind: str
    n: int
    m: int
    t: int
    signal: float = 0.75
    columns: int = 200
    large: bool = False

    @property
    def title(self) -> str:
        """Name in the table."""
        return f"{self.kind}, n = {self.n:,}, m = {self.m} of {self.columns}, {self.t:,} targets"

    def data(self, seed: int = 0) -> Data:
        """Make samples and targets."""
        rng = np.random.default_rng(seed)
        N = self.n + TEST
        views = [self._rows(rng, N) for _ in range(self.m)]
        if self.kind == "correlated":
            common = rng.normal(size=(N, self.columns))
            views = [np.sqrt(0.5) * (X + common) for X in views]
        Y = np.empty((N, self.t))
        for k in range(self.t):
            parts = [
                np.sqrt(w) * self._part(rng, X)
                for w, X in zip(self._shares(rng), views, strict=True)
                if w > 0
            ]
            noise = self._noise(rng, N)
            Y[:, k] = np.sqrt(self.signal) * np.sum(parts, axis=0) + np.sqrt(1 - self.signal) * noise
        return Data(views, Y, self.n)

    def _rows(self, rng: np.random.Generator, N: int) -> np.ndarray:
        X = rng.normal(size=(N, self.columns))
        return _ar(X) if self.kind == "autocorrelated" else X

    def _noise(self, rng: np.random.Generator, N: int) -> np.ndarray:
        if self.kind == "heavy tails":
            return rng.standard_t(2.5, size=N) / np.sqrt(5.0)
        noise = rng.normal(size=N)
        return _ar(noise) if self.kind == "autocorrelated" else noise

    def _shares(self, rng: np.random.Generator) -> np.ndarray:
        """Shares of the signal by space: one to three of them, or all."""
        if self.kind == "dense":
            return rng.dirichlet(np.ones(self.m))
        shares, used = np.zeros(self.m), int(rng.integers(1, 4))
        shares[rng.choice(self.m, size=used, replace=False)] = rng.dirichlet(np.ones(used))
        return shares

    def _part(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        if self.kind == "gaussian":  # a random function of a few directions
            f = np.sum(np.sin(X @ rng.normal(size=(self.columns, 3)) / np.sqrt(self.columns) * 1.5), axis=1)
            return (f - f.mean()) / f.std()
        return X @ rng.normal(size=self.columns) / np.sqrt(self.columns)


def _ar(X: np.ndarray, memory: float = 0.8) -> np.ndarray:
    out = X.copy()
    for i in range(1, len(X)):
        out[i] = memory * out[i - 1] + np.sqrt(1 - memory**2) * X[i]
    return out


CASES = [
    Case("linear", 300, 3, 100),
    Case("linear", 300, 8, 100),
    Case("dense", 300, 8, 1000, 0.9, large=True),
    Case("linear", 300, 8, 10_000, large=True),
    Case("linear", 1000, 8, 1000, large=True),
    Case("linear", 300, 3, 100, 0.55, 40),
    Case("linear", 300, 8, 100, 0.55, 40),
    Case("gaussian", 300, 8, 100, 0.75, 10),
    Case("correlated", 300, 3, 100),
    Case("autocorrelated", 300, 3, 100),
    Case("heavy tails", 300, 8, 100),
]
