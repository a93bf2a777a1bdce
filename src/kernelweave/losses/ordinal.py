"""The loss of ordered classes: one function, and a threshold between every class and the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from .._numerics.namespace import expit, softplus
from .._numerics.projections import project_box_sum
from .._typing import Array
from ._base import Loss
from .margin import Logistic

#: steps of Newton's method at most, what is left of a margin of the table where it has arrived, shares next to 0 and 1
STEPS, ARRIVED, NEXT = 100, 1e-12, 1e-13


class Ordinal(Loss, registered_as="ordinal"):
    """``min over t of sum_i c_i sum_k ln(1 + exp(-s_ik (f_i - t_k)))``, s_ik = 1 where the class is above k, else -1.

    ``y`` are classes 0, 1, ..., K - 1 in their order.  The K - 1 thresholds t are best for the decision values of all
    samples together, so the loss is no sum over samples and needs no intercept; they come out in order.  With
    ``p_ik = 1 / (1 + exp(t_k - f_i))`` the dual set is that of tables p of shares with ``sum_i c_i (p_ik - [y_i > k]) =
    0``, ``beta_i = c_i (y_i - sum_k p_ik)``, and the gain their entropy ``sum c (-p ln p - (1 - p) ln (1 - p))``.

    Examples
    --------
    >>> import numpy as np
    >>> y, f = np.array([0.0, 1.0, 2.0]), np.array([-3.0, 0.0, 3.0])
    >>> Ordinal().thresholds(y, f, np.ones(3)).round(2)
    array([-1.5,  1.5])
    """

    tasks = frozenset({"classification"})
    has_curvature = True
    has_probabilities = True
    pooled = True

    def thresholds(self, y: Array, f: Array, c: Array) -> Array:
        levels = np.arange(int(np.max(y, initial=1.0)))
        sides, each = np.where(y[:, None] > levels, 1.0, -1.0), Logistic()
        return np.array([-each._intercept(sides[:, k], f, c) for k in levels])

    def scores(self, f: Array, thresholds: Array | None) -> Array:
        """Logarithms of the probabilities of the classes."""
        assert thresholds is not None
        above = np.column_stack([np.ones(len(f)), expit(f[:, None] - thresholds), np.zeros(len(f))])
        return np.log(np.maximum(above[:, :-1] - above[:, 1:], np.finfo(float).tiny))

    def probabilities(self, f: Array) -> Array:
        return np.exp(f)

    def _shares(self, y: Array, f: Array, c: Array) -> tuple[Array, Array]:
        over = f[:, None] - self.thresholds(y, f, c)
        return over, np.asarray(expit(over))

    def total(self, y: Array, f: Array, c: Array) -> float:
        over, _ = self._shares(y, f, c)
        above = y[:, None] > np.arange(over.shape[1])
        return float(c @ np.sum(softplus(np.where(above, -over, over)), axis=1))

    def slopes(self, y: Array, f: Array, c: Array) -> Array:
        return np.asarray(c * (np.sum(self._shares(y, f, c)[1], axis=1) - y))

    def second_order(self, y: Array, f: Array, c: Array) -> tuple[Array, Array, Array]:
        _, p = self._shares(y, f, c)
        bend = c[:, None] * p * (1.0 - p)
        D = bend.sum(axis=1)
        N = bend / np.maximum(D, np.finfo(float).tiny)[:, None]
        return D, N, np.diag(bend.sum(axis=0)) - bend.T @ N

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return y - np.max(y, initial=1.0), np.asarray(y)

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        """Nearest coefficients that are in their box and sum to zero; ``gain`` says whether a table belongs to them."""
        return project_box_sum(beta, *self.box(y, c))

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        return 0.0  # the thresholds are the intercepts

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        """Entropy of the table with these coefficients that has the most; -inf where there is none.

        The table has given sums of rows and columns, so it is ``p_ik = 1 / (1 + exp(t_k - f_i))``: for given t every row
        is a search for f_i, and Newton's method in t balances the columns.  Nothing is proved by a table that misses
        the sums of its columns.
        """
        used = c > 0
        y, beta, c = y[used], beta[used], c[used]
        if not np.any(beta):
            return 0.0  # a table of zeros and ones
        whole = float(np.sum(c))
        dues = np.array([float(np.sum(c[y > k])) for k in range(int(np.max(y)))])
        open_ = (dues > 0) & (dues < whole)
        # where nobody, or everybody, is above a threshold, shares are zero, or one
        rows, dues = y - beta / c - np.count_nonzero(dues >= whole), dues[open_]
        if np.any(rows < -ARRIVED) or np.any(rows > dues.size + ARRIVED):
            return -np.inf
        rows = np.clip(rows, NEXT, dues.size - NEXT)
        t, f = -logit(dues / whole), np.zeros_like(rows)
        value, missed, best = np.inf, np.inf, -np.inf
        for _ in range(STEPS):
            f, p = _rows_of(rows, t, f)
            off = dues - c @ p  # the gradient of what is minimised over t
            here = float(c @ (np.sum(softplus(f[:, None] - t), axis=1) - rows * f) + dues @ t)
            missed = float(np.max(np.abs(off)))
            if missed <= ARRIVED * whole:
                over = f[:, None] - t
                best = max(best, float(c @ np.sum(softplus(over) - p * over, axis=1)))
            if missed <= 1e-15 * whole or (np.isfinite(best) and here >= value):
                break
            bend = c[:, None] * p * (1.0 - p)
            D = np.maximum(bend.sum(axis=1), np.finfo(float).tiny)
            hessian = np.diag(bend.sum(axis=0)) - bend.T @ (bend / D[:, None])
            step = -np.linalg.lstsq(hessian, off, rcond=None)[0]
            # beyond a few units the quadratic model means nothing
            t, value = t + step * min(1.0, 3.0 / max(float(np.max(np.abs(step))), 1e-300)), here
        return best


def _rows_of(sums: Array, t: Array, f: Array) -> tuple[Array, Array]:
    """Return f and ``p_ik = 1 / (1 + exp(t_k - f_i))`` with these sums of rows, from near f."""
    at = logit(sums / t.size)
    low, high = np.min(t) + at, np.max(t) + at
    f = np.clip(f, low, high)
    for _ in range(STEPS):
        p = np.asarray(expit(f[:, None] - t))
        off = p.sum(axis=1) - sums
        low, high = np.where(off < 0, f, low), np.where(off > 0, f, high)
        moved = f - off / np.maximum(np.sum(p * (1.0 - p), axis=1), np.finfo(float).tiny)
        moved = np.where((moved >= low) & (moved <= high), moved, 0.5 * (low + high))
        arrived = np.all(np.abs(moved - f) <= 1e-9 * np.maximum(1.0, np.abs(f)))  # and the next step its square
        f = moved
        if arrived:
            break
    return f, np.asarray(expit(f[:, None] - t))
