"""Convex losses of the difference between a kernel and a similarity, with a registry of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._components import Component, Registry
from .._typing import Array


def make_similarity_loss(loss: Any) -> SimilarityLoss:
    """Return a loss from a name, an instance, or a pair of functions (value, subgradient).

    >>> make_similarity_loss("frobenius")
    FrobeniusLoss()
    """
    if isinstance(loss, tuple | list):
        if not (2 <= len(loss) <= 4 and callable(loss[0]) and callable(loss[1])):
            raise ValueError(
                "a similarity loss of your own is a pair of functions (value, subgradient), optionally followed by "
                f"the conjugate and the proximal operator; got {loss!r}"
            )
        return UserLoss(*loss)
    if callable(loss) and not isinstance(loss, type | SimilarityLoss):
        raise ValueError(f"a similarity loss needs two functions (value, subgradient), got only {loss!r}")
    return similarity_losses.make(loss, SimilarityLoss)  # type: ignore[type-abstract]


similarity_losses: Registry[SimilarityLoss] = Registry("similarity loss", "kernelweave.similarity.losses")


class SimilarityLoss(Component):
    """A convex function of ``X = K - S``: how far a kernel may be from a similarity, and at what price.

    Losses are weighted so that rho is free of dimension: with matrices of trace n, residuals of the size of the
    matrices cost about the same under every loss, whatever n is.  On the *spectrum* (REKL) ``X`` is the vector of
    differences of eigenvalues.

    ``value`` and ``subgradient`` are needed.  ``conjugate`` (of any point that is a mixture of subgradients) gives the
    Fenchel-Jensen bound; ``curvature`` or ``prox`` gives the partial dual, the tight one.
    """

    components = similarity_losses
    #: the value depends on the eigenvalues of X alone, and is the same function of the vector of them
    spectral: ClassVar[bool] = False
    #: the squared distance from the mean of the similarities, up to a constant
    quadratic: ClassVar[bool] = False

    def value(self, X: Array) -> float:
        """Return the loss."""
        raise NotImplementedError

    def subgradient(self, X: Array) -> Array:
        """Return a subgradient."""
        raise NotImplementedError

    def conjugate(self, Z: Array) -> float | None:
        """``max over X of <Z, X> - L(X)``, None where it is not known."""
        return None

    def curvature(self, X: Array) -> float | None:
        """Return c with ``L(X') <= L(X) + c (|X'|^2 - |X|^2)`` for every X', None where there is none."""
        return None

    def prox(self, X: Array, step: float) -> Array | None:
        """``argmin over x of L(x) + |x - X|^2 / (2 step)``, None where it is not known."""
        return None

    def aggregate(self, rows: Array, shares: Array) -> Array:
        """Several similarities of a new row in one, ``(m, ...) -> (...)``: what the loss makes of several."""
        return np.tensordot(shares, rows, axes=1)

    def shares(self, residuals: Array) -> Array:
        """Return how much each similarity says in ``aggregate``: by the slope of its loss per distance."""
        size = np.array([np.linalg.norm(X) for X in residuals])
        slope = np.array([np.linalg.norm(self.subgradient(X)) for X in residuals])
        pull = slope / np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))
        return pull / pull.sum() if pull.sum() > 0 else np.full(size.size, 1.0 / size.size)


class SquaredLoss(SimilarityLoss, registered_as="squared"):
    """``(1/n) |X|_F^2``: only the mean of the similarities matters."""

    spectral = True
    quadratic = True

    def value(self, X: Array) -> float:
        return float(np.sum(X * X)) / X.shape[0]

    def subgradient(self, X: Array) -> Array:
        return np.asarray((2.0 / X.shape[0]) * X)

    def conjugate(self, Z: Array) -> float:
        return 0.25 * Z.shape[0] * float(np.sum(Z * Z))

    def curvature(self, X: Array) -> float:
        return 1.0 / X.shape[0]

    def prox(self, X: Array, step: float) -> Array:
        return X / (1.0 + 2.0 * step / X.shape[0])


class FrobeniusLoss(SimilarityLoss, registered_as="frobenius"):
    """``|X|_F``: the further a similarity is, the less it says."""

    spectral = True

    def value(self, X: Array) -> float:
        return float(np.linalg.norm(X))

    def subgradient(self, X: Array) -> Array:
        size = float(np.linalg.norm(X))
        return X / size if size > 0 else np.zeros_like(X)

    def conjugate(self, Z: Array) -> float:
        return 0.0 if float(np.linalg.norm(Z)) <= 1.0 + 1e-9 else np.inf

    def curvature(self, X: Array) -> float:
        return 0.5 / max(float(np.linalg.norm(X)), 1e-9)

    def prox(self, X: Array, step: float) -> Array:
        size = float(np.linalg.norm(X))
        return X * max(1.0 - step / size, 0.0) if size > 0 else X.copy()


class AbsoluteLoss(SimilarityLoss, registered_as="l1"):
    """``(1/n) sum_ij |X_ij|``.

    >>> AbsoluteLoss().value(np.array([[1.0, -1.0], [-1.0, 0.0]]))
    1.5
    """

    def value(self, X: Array) -> float:
        return float(np.sum(np.abs(X))) / X.shape[0]

    def subgradient(self, X: Array) -> Array:
        return np.sign(X) / X.shape[0]

    def conjugate(self, Z: Array) -> float:
        return 0.0 if float(np.max(np.abs(Z))) * Z.shape[0] <= 1.0 + 1e-9 else np.inf

    def prox(self, X: Array, step: float) -> Array:
        return np.asarray(np.sign(X) * np.maximum(np.abs(X) - step / X.shape[0], 0.0))

    def aggregate(self, rows: Array, shares: Array) -> Array:
        return np.asarray(np.median(rows, axis=0))

    def shares(self, residuals: Array) -> Array:
        # the median decides entry by entry; over all entries a similarity counts as it agrees with the kernel
        size = np.array([self.value(X) for X in residuals])
        pull = 1.0 / np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))
        return pull / pull.sum()


class UserLoss(SimilarityLoss):
    """A convex loss from functions of a symmetric ``(n, n)`` array.

    Parameters
    ----------
    function : callable
        ``function(X) -> float``.
    slope : callable
        ``slope(X) -> (n, n)`` array, a subgradient.
    conjugate_function, prox_function : callable, optional
        ``conjugate_function(Z) -> float`` and ``prox_function(X, step) -> (n, n)`` array: tighter certificates.

    Examples
    --------
    >>> huber = UserLoss(
    ...     lambda X: float(np.sum(np.where(abs(X) < 1, X * X / 2, abs(X) - 0.5))) / len(X),
    ...     lambda X: np.clip(X, -1, 1) / len(X),
    ... )
    >>> huber.value(np.array([[0.0, 2.0], [2.0, 0.0]]))
    1.5
    """

    registered_as = "user"

    def __init__(
        self,
        function: Callable[[Array], float],
        slope: Callable[[Array], Array],
        conjugate_function: Callable[[Array], float] | None = None,
        prox_function: Callable[[Array, float], Array] | None = None,
    ) -> None:
        self.function, self.slope = function, slope
        self.conjugate_function, self.prox_function = conjugate_function, prox_function

    def value(self, X: Array) -> float:
        value = self.function(X.copy())
        if np.ndim(value) != 0:
            raise ValueError(
                "the similarity loss is not usable: the value should be one number, but has shape "
                f"{np.shape(value)}"
            )
        if not np.isfinite(float(value)):
            raise ValueError(f"the similarity loss is not usable: the value is {float(value)}")
        return float(value)

    def subgradient(self, X: Array) -> Array:
        return _matrix(self.slope(X.copy()), X.shape, "the subgradient")

    def conjugate(self, Z: Array) -> float | None:
        if self.conjugate_function is None:
            return None
        value = float(self.conjugate_function(Z.copy()))
        if np.isnan(value):
            raise ValueError("the similarity loss is not usable: its conjugate is nan")
        return value

    def prox(self, X: Array, step: float) -> Array | None:
        if self.prox_function is None:
            return None
        return _matrix(self.prox_function(X.copy(), step), X.shape, "the proximal operator")


def _matrix(value: Any, shape: tuple[int, ...], what: str) -> Array:
    matrix = np.asarray(value, dtype=float)
    if matrix.shape != shape:
        raise ValueError(
            f"the similarity loss is not usable: {what} should have shape {shape}, but has {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError(f"the similarity loss is not usable: {what} contains nan or infinity")
    return 0.5 * (matrix + matrix.T)
