"""The loss of ordered classes: one function, and a threshold between every class and the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from .._numerics.namespace import expit, softplus
from .._numerics.projections import project_box_sum
from .._typing import Array, Index
from ._base import Loss
from .margin import Logistic

#: steps of Newton's method at most, and the share of a column's sum that is left where it has arrived
STEPS, ARRIVED = 100, 1e-9
#: by how much coefficients may be outside their box, distance from a threshold at which shares are 0 or 1
NEXT, FAR = 1e-13, 740.0
TINY = float(np.finfo(float).tiny)


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
    array([-1.54,  1.54])
    """

    tasks = frozenset({"classification"})
    has_probabilities = True
    coupled = True
    ordered = True

    def thresholds(self, y: Array, f: Array, c: Array) -> Array:
        levels = np.arange(int(np.max(y, initial=1.0)))
        sides, each = np.where(y[:, None] > levels, 1.0, -1.0), Logistic()
        return np.array([-each._intercept(sides[:, k], f, c) for k in levels])

    def class_scores(self, f: Array, thresholds: Array | None) -> Array:
        """Logarithms of the probabilities of the classes."""
        assert thresholds is not None
        above = np.column_stack([np.ones(len(f)), expit(f[:, None] - thresholds), np.zeros(len(f))])
        return np.log(np.maximum(above[:, :-1] - above[:, 1:], TINY))

    def probabilities(self, f: Array) -> Array:
        return np.exp(f)

    def _sides(self, y: Array, f: Array, c: Array) -> tuple[Array, Array]:
        """Return s_ik, and how far decision values are on the right side of the thresholds."""
        t = self.thresholds(y, f, c)
        sides = np.where(y[:, None] > np.arange(t.size), 1.0, -1.0)
        return sides, sides * (f[:, None] - t)

    def total(self, y: Array, f: Array, c: Array) -> float:
        return float(c @ np.sum(softplus(-self._sides(y, f, c)[1]), axis=1))

    def total_gradient(self, y: Array, f: Array, c: Array) -> Array:
        sides, inside = self._sides(y, f, c)
        return np.asarray(-c * np.sum(sides * expit(-inside), axis=1))

    def _bend(self, y: Array, f: Array, c: Array) -> Array:
        """Second derivatives of the terms in ``f_i - t_k``."""
        _, inside = self._sides(y, f, c)
        return np.asarray(c[:, None] * expit(inside) * expit(-inside))

    def total_curvature(self, y: Array, f: Array, c: Array) -> Array:
        return np.asarray(self._bend(y, f, c).sum(axis=1))  # thresholds that follow only take something off

    def hessian_root(self, y: Array, f: Array, c: Array) -> OrdinalRoot:
        order = np.flatnonzero(c > 0)
        return OrdinalRoot(self._bend(y, f, c)[order], order)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return y - np.max(y, initial=1.0), np.asarray(y)

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        """Nearest coefficients that are in their box and sum to zero; ``gain`` says whether a table belongs to them."""
        return project_box_sum(beta, *self.box(y, c))

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        return 0.0  # the thresholds are the intercepts

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        """Entropy of the table with these coefficients that has the most; -inf where there is none.

        The sums of its rows and columns are given, so it is ``p_ik = 1 / (1 + exp(t_k - f_i))``: for given t a row is
        a search for f_i, and Newton's method in t balances the columns.
        """
        used = c > 0
        y, beta, c = y[used], beta[used], c[used]
        if not np.any(beta):
            return 0.0  # a table of zeros and ones
        above = y[:, None] > np.arange(int(np.max(y)))
        share = c @ above / np.sum(c)
        some = (share > 0.0) & (share < 1.0)  # below or above the other thresholds is nobody
        sides, t, b = np.where(above[:, some], 1.0, -1.0), -logit(share[some]), beta / c
        most = np.count_nonzero(sides > 0, axis=1)
        low, high = most - t.size - NEXT, most + NEXT
        if np.any(b < low) or np.any(b > high):
            return -np.inf
        b, f = np.clip(b, low + 2 * NEXT, high - 2 * NEXT), np.zeros_like(b)
        for _ in range(STEPS):
            f = _values_of(b, sides, t, f)
            inside = sides * (f[:, None] - t)
            a = c[:, None] * expit(-inside)
            off, bend = np.sum(sides * a, axis=0), a * expit(inside)
            hessian = np.diag(bend.sum(axis=0)) - bend.T @ (
                bend / np.maximum(bend.sum(axis=1), TINY)[:, None]
            )
            scale = 1.0 / np.sqrt(np.maximum(bend.sum(axis=0), TINY))
            step = scale * np.linalg.lstsq(scale[:, None] * hessian * scale, scale * off, rcond=None)[0]
            if np.max(np.abs(off)) <= ARRIVED * np.sum(a):
                size = np.abs(inside)
                entropy = float(c @ np.sum(softplus(-size) + size * expit(-size), axis=1))
                # the value is that of the balanced table, to second order and from below
                return entropy + float(off @ t) - float(off @ step)
            # beyond a few units the quadratic model means nothing
            t = t - step * min(1.0, 3.0 / max(float(np.max(np.abs(step))), TINY))
        return -np.inf


class OrdinalRoot:
    """R with ``R R' = D - U W^-1 U'``: the bends U of samples at thresholds, their sums D by sample and W by threshold.

    Thresholds that follow take off what the few singular values of ``D^-1/2 U W^-1/2`` say.
    """

    def __init__(self, bend: Array, order: Index) -> None:
        self.order, self.root = order, np.sqrt(bend.sum(axis=1))
        sides = np.sqrt(np.maximum(bend.sum(axis=0), TINY))
        self.P, sizes, _ = np.linalg.svd(
            bend / np.maximum(self.root, TINY)[:, None] / sides, full_matrices=False
        )
        self.less = 1.0 - np.sqrt(np.maximum(1.0 - sizes**2, 0.0))

    def times(self, z: Array) -> Array:
        """``R z``."""
        return np.asarray(self.root * (z - self.P @ (self.less * (self.P.T @ z))))

    def transposed(self, v: Array) -> Array:
        """``R'v``; leading axes are columns."""
        v = v * self.root
        return np.asarray(v - ((v @ self.P) * self.less) @ self.P.T)

    def sandwich(self, K: Array) -> Array:
        """``R'K R``, of a matrix of all samples."""
        inside = K if self.order.size == len(K) else K[np.ix_(self.order, self.order)]
        half = self.transposed(inside)  # K R
        return np.ascontiguousarray(self.transposed(half.T))


def _values_of(b: Array, sides: Array, t: Array, f: Array) -> Array:
    """Return f with ``sum_k s_ik / (1 + exp(s_ik (f_i - t_k))) = b_i``, from near f."""
    low, high = np.full_like(f, np.min(t) - FAR), np.full_like(f, np.max(t) + FAR)
    f = np.clip(f, low, high)
    for _ in range(STEPS):
        inside = sides * (f[:, None] - t)
        a = expit(-inside)
        off = np.sum(sides * a, axis=1) - b  # falls with f
        low, high = np.where(off > 0, f, low), np.where(off < 0, f, high)
        moved = f + off / np.maximum(np.sum(a * expit(inside), axis=1), TINY)
        moved = np.where((moved >= low) & (moved <= high), moved, 0.5 * (low + high))
        arrived = np.all(
            np.abs(moved - f) <= 1e-9 * np.maximum(1.0, np.abs(f))
        )  # and the next step its square
        f = moved
        if arrived:
            break
    return f
