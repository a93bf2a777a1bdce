"""OBSCURE's online stage on one batch after another, keeping support vectors alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...banks import BoundKernels, support
from ...banks.normalise import Normaliser
from ...kernels import Kernel, n_samples, resolve_kernels, take
from ...losses import Loss
from ...norms import Norm
from .._derivatives import derivative_of
from ._products import block_exponent

Array = NDArray[np.float64]

__all__ = ["Stream"]


@dataclass
class Stream:
    """Support vectors with their coefficients ``(n_sv, k)``, and the squared block norms of what they make up."""

    bound: BoundKernels
    coef: Array
    quad: Array
    q: float
    eta: float

    @classmethod
    def begin(
        cls, kernels: list[Kernel], samples: Any, normalize: str | None, norm: Norm, eta: float, columns: int
    ) -> Stream:
        """Settle kernels and their normalisation on the first batch."""
        resolved = resolve_kernels(kernels, samples)
        m = len(resolved)
        normaliser = Normaliser.empty(normalize, False, m, n_samples(samples), [k.name for k in resolved])
        for j, kernel in enumerate(resolved):
            normaliser.learn(j, kernel.diag(samples))
        none = take(samples, np.zeros(0, dtype=np.intp))
        q = block_exponent(norm)
        return cls(BoundKernels(resolved, none, normaliser), np.zeros((0, columns)), np.zeros(m), q, eta)

    def check(self, columns: int | None = None) -> None:
        """Raise a ValueError where the parts do not fit together: compiled code reads as far as they say.

        They always do in a stream that ``partial_fit`` made; a file may hold another one.
        """
        m, rows = len(self.bound.kernels), n_samples(self.bound.samples)
        for name, array, shape in (
            ("coef", self.coef, (rows, self.coef.shape[1] if np.ndim(self.coef) == 2 else columns)),
            ("quad", self.quad, (m,)),
            ("scale", self.bound.normaliser.scale, (m,)),
        ):
            fits = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape
            if not (fits and np.all(np.isfinite(array))):
                raise ValueError(
                    f"the state of partial_fit is damaged: {name} is not a finite array of {shape}"
                )
        if columns is not None and self.coef.shape[1] != columns:
            raise ValueError(
                f"the state of partial_fit is damaged: it has {self.coef.shape[1]} functions, the classes {columns}"
            )
        for name, value in (("exponent", self.q), ("step", self.eta)):
            if not (isinstance(value, int | float | np.number) and 0 < value < np.inf):
                raise ValueError(
                    f"the state of partial_fit is damaged: its {name} is {value!r}, no number > 0"
                )

    @property
    def weights(self) -> Array:
        """Factors of the kernels: ``f = sum_j weights_j sum_i (coef_i / q) k_j(x_i, .)``."""
        from ..._numerics.online import block_factors

        factors = np.zeros(self.quad.size)
        block_factors(self.quad, float(self.q), 0.0, factors)
        return factors

    def learn(self, batch: Any, y: Array, weight: Array, loss: Loss) -> int:
        """Visit the samples of a batch in their order; return how many changed the function."""
        from ..._numerics.online import (
            FIXED_STEP,
            SIG,
            Coefficients,
            Norms,
            Steps,
            block_factors,
            kernel_steps,
        )

        self.check(1 if y.ndim == 1 else y.shape[1])
        size, columns = n_samples(batch), self.coef.shape[1]
        known = self.bound
        P = np.zeros((columns, self.quad.size, size))
        if self.coef.shape[0]:
            P += np.einsum("mbs,sk->kmb", known.cross(batch), self.coef)
        rows = BoundKernels(known.kernels, batch, known.normaliser).cross(batch)
        coefficients = Coefficients(*np.zeros((3, size, columns)))
        norms = Norms(self.quad, np.zeros(self.quad.size), np.zeros(6))
        norms.scalars[SIG] = 1.0
        # floats and a copy, whatever was given: compiled functions are compiled anew for every kind of argument
        q, eta = float(self.q), float(self.eta)
        block_factors(self.quad, q, 0.0, norms.factors)
        order, diagonal = np.arange(size), np.diagonal(rows, axis1=1, axis2=2).copy()
        steps = Steps(FIXED_STEP, q, lam=1.0, eta=eta, radius=1.0, cut=0.0)
        kernel_steps(
            order, order, rows, P, diagonal, weight, coefficients, norms, steps, derivative_of(loss, y)
        )
        used = support(coefficients.A)
        self.bound = BoundKernels(known.kernels, _joined(known.samples, take(batch, used)), known.normaliser)
        self.coef = np.vstack([self.coef, coefficients.A[used]])
        return int(used.size)


def _joined(first: Any, second: Any) -> Any:
    """Samples one after the other, of whatever kind they are."""
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second])
    if hasattr(first, "shape"):
        return np.concatenate([first, second])
    return [*first, *second]
