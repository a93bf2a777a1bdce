"""A learnt function, ready for new samples: kernels with weight, on the samples that have a coefficient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels import Kernel
from ._base import Array, Index
from .normalise import Normaliser

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KernelFunction", "PredictingKernels", "Term", "WhoLacksWhat", "active_kernels"]


class WhoLacksWhat(NamedTuple):
    """What is known of training samples that lack kernels; nothing of kernels that no sample can lack.

    ``predictability`` is the R2 of every part of the kernels from the others, ``patterns`` a table of who lacks what.
    """

    predictability: dict[str, float] | None = None
    patterns: pd.DataFrame | None = None


class PredictingKernels(Protocol):
    """Kernels bound to training samples, wherever those are: in memory, in a file, on a cluster, with the user."""

    @property
    def normaliser(self) -> Normaliser:
        """Factors and centres, learnt on the training samples."""

    @property
    def kernels(self) -> list[Kernel]:
        """Settled; none where the user computes them."""

    @property
    def samples(self) -> Any:
        """Those that are kept; None where kernels are computed without."""

    def restrict(self, kernels: Index, coef: Array) -> tuple[PredictingKernels, Array]:
        """Keep these kernels and what they need; return the coefficients that go with it."""

    def alone(self, j: int) -> PredictingKernels:
        """Return the kernel at position j by itself."""

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """``sum_j weights_j K_j(new, samples) coef``."""

    def who_lacks_what(self) -> WhoLacksWhat:
        """Return what is known of training samples that lack some of the kernels."""


def active_kernels(weights: Array) -> Index:
    """Kernels with weight, of ``(m,)`` or ``(k, m)`` weights."""
    return np.flatnonzero(weights if weights.ndim == 1 else np.any(weights != 0, axis=0))


@dataclass(frozen=True)
class Term:
    """Kernels that share their coefficients: ``sum_j weights_j K_j coef``.

    ``index`` says which kernels of the model they are.
    """

    kernels: PredictingKernels
    index: Index
    weights: Array
    coef: Array

    @classmethod
    def of(cls, bound: PredictingKernels, index: Index, weights: Array, coef: Array) -> Term:
        """Keep what some kernels need of the training samples; ``weights`` are those of all kernels."""
        kept, coef_kept = bound.restrict(index, coef)
        return cls(kept, index, weights[..., index], coef_kept)

    def each(self) -> Iterator[Term]:
        """Yield the kernels one by one."""
        for position, j in enumerate(self.index):
            yield Term(self.kernels.alone(position), np.array([j]), self.weights[..., [position]], self.coef)


@dataclass(frozen=True)
class KernelFunction:
    """``f = sum of terms + intercept`` of m kernels.

    A mixture of kernels is one term; where every kernel has coefficients of its own, each is a term.
    """

    terms: list[Term]
    intercept: float | Array
    m: int

    @classmethod
    def mixture(
        cls, bound: PredictingKernels, weights: Array, coef: Array, intercept: float | Array
    ) -> KernelFunction:
        """Return the function of a learnt mixture."""
        return cls([Term.of(bound, active_kernels(weights), weights, coef)], intercept, weights.shape[-1])

    @property
    def active(self) -> Index:
        """Kernels with weight."""
        return np.concatenate([term.index for term in self.terms])

    def __call__(self, new: Any, dtype: Any = np.float64, device: Any = None) -> Array:
        """Values at new samples, ``(n_new,)`` or ``(n_new, k)``; on a device where one is named and can do it."""
        total: Any = self.intercept
        for term in self.terms:
            kernels: Any = term.kernels
            if device is not None:
                from .device_decision import at_device

                kernels = at_device(kernels, device)
            total = kernels.decision(new, term.weights, term.coef, dtype) + total
        return np.asarray(total)

    def each(self) -> Iterator[Term]:
        """Yield the kernels with weight one by one."""
        for term in self.terms:
            yield from term.each()

    def by_kernel(self, new: Any) -> NDArray[np.float64]:
        """What each kernel adds to the values at new samples, ``(n_new, m)`` or ``(n_new, m, k)``."""
        parts = {
            int(term.index[0]): term.kernels.decision(new, term.weights, term.coef) for term in self.each()
        }
        shape = np.shape(next(iter(parts.values()))) if parts else np.shape(self(new))
        out = np.zeros((shape[0], self.m, *shape[1:]))
        for j, values in parts.items():
            out[:, j] = values
        return out
