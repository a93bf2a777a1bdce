"""Learning from a stream: OBSCURE's online stage on one batch after another, keeping support vectors alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..banks import BoundKernels, support
from ..banks.normalise import Normaliser
from ..kernels import resolve_kernels
from ..kernels._helpers import n_samples, take
from ..losses import Loss
from ..solvers._online import block_exponent, derivative_of

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
        cls, kernels: Any, samples: Any, normalize: str | None, norm: Any, eta: float, columns: int
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

    @property
    def weights(self) -> Array:
        """Factors of the kernels: ``f = sum_j weights_j sum_i (coef_i / q) k_j(x_i, .)``."""
        from .._numerics.online import block_factors

        factors = np.zeros(self.quad.size)
        block_factors(self.quad, self.q, 0.0, factors)
        return factors

    def learn(self, batch: Any, y: Array, weight: Array, loss: Loss) -> int:
        """Visit the samples of a batch in their order; return how many changed the function."""
        from .._numerics.online import FIXED_STEP, SIG, block_factors, kernel_epoch

        size, columns = n_samples(batch), self.coef.shape[1]
        known = self.bound
        P = np.zeros((columns, self.quad.size, size))
        if self.coef.shape[0]:
            P += np.einsum("mbs,sk->kmb", known.cross(batch), self.coef)
        rows = BoundKernels(known.kernels, batch, known.normaliser).cross(batch)
        A, H, window = np.zeros((3, size, columns))
        scalars, factors = np.zeros(7), np.zeros(self.quad.size)
        scalars[SIG] = 1.0
        block_factors(self.quad, self.q, 0.0, factors)
        order = np.arange(size)
        form = derivative_of(loss, y)
        kernel_epoch(
            order, order, rows, P, np.ascontiguousarray(np.diagonal(rows, axis1=1, axis2=2)), A, H, window,
            self.quad, factors, scalars, FIXED_STEP, self.q, 1.0, self.eta, 1.0, 0.0, weight,
            form.kind, form.target, form.width, form.low, form.high,
        )  # fmt: skip
        used = support(A)
        self.bound = BoundKernels(known.kernels, _joined(known.samples, take(batch, used)), known.normaliser)
        self.coef = np.vstack([self.coef, A[used]])
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
