"""Solutions and logarithms of a large symmetric matrix that is only multiplied with, by a block Lanczos process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import Array
from .stopping import out_of_time

#: blocks after which convergence is looked at
EACH = 4


def block_lanczos(
    system: Callable[[Array], Array], Z: Array, most: int, change: float, residual: float
) -> tuple[Array, Array]:
    """Return ``A^-1 z`` and ``z'log(A) z`` for every row z, A at least one, from one basis that is kept orthogonal.

    At most ``most`` blocks are added, until the sum of the logarithms changes by no more than ``change`` in one, and
    the relative residuals are no more than ``residual``.
    """
    k, n = Z.shape
    first, R = np.linalg.qr(Z.T)
    basis, T = np.empty((0, n), Z.dtype), np.zeros((0, 0))
    block, last = np.ascontiguousarray(first.T), np.inf
    for count in range(1, most + 1):
        basis = np.concatenate([basis, block])
        W = system(block)
        H = basis @ W.T
        T = np.pad(T, (0, k))
        T[:, -k:], T[-k:] = H, H.T
        W = W - H.T @ basis
        q, r = np.linalg.qr(W.T)
        q, more = np.linalg.qr(q - basis.T @ (basis @ q))  # once more: rounding
        block, r = np.ascontiguousarray(q.T), more @ r
        # what remains is rounding, or there is nothing left
        nothing = np.linalg.norm(r) <= 100 * np.finfo(Z.dtype).eps * np.max(np.abs(T))
        ended = nothing or count == most or (count + 1) * k > n or out_of_time()
        if count % EACH and not ended:
            continue
        values, axes = np.linalg.eigh(T)
        values = np.maximum(values, 1.0)  # as they are but for rounding
        start = axes[:k].T @ R
        logs = np.log(values) @ start**2
        inner = axes @ (start / values[:, None])
        missed, sizes = np.linalg.norm(r @ inner[-k:], axis=0), np.linalg.norm(R, axis=0)
        ended |= last - np.sum(logs) <= EACH * change and bool(np.all(missed <= residual * sizes))
        if ended:
            break
        last = float(np.sum(logs))
    return np.asarray(inner.T @ basis, dtype=float), np.asarray(logs, dtype=float)
