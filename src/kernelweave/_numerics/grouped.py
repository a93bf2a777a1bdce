"""Norms of norms: derivatives and proximal steps where entries belong to groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .barrier import Boundary
from .projections import shrink_power
from .scalar import monotone_root

Array = NDArray[np.float64]
Groups = Sequence[NDArray[np.intp]]

__all__ = ["grouped_boundary", "prox_grouped", "shrink_grouped"]


def group_sizes(x: Array, groups: Groups, q: float) -> Array:
    """``|x_g|_q`` of every group, for x >= 0."""
    top = float(np.max(x, initial=0.0)) or 1.0
    return np.array([top * float(np.sum((x[at] / top) ** q)) ** (1.0 / q) for at in groups])


def grouped_boundary(place: Array, groups: Groups, p: float, q: float) -> Boundary:
    """``|x_g|_q <= u_g`` for every group and ``sum_g u_g^p <= 1``, at ``place = (x, u) > 0``.

    In the form ``sum_j x_j^q / u_g^(q-1) - u_g <= 0``, which is smooth where a group vanishes, too.
    """
    k, total = len(groups), place.size
    m = total - k
    u = place[m:]
    values, slopes = np.empty(k + 1), np.zeros((k + 1, total))
    shares = [place[at] / u[g] for g, at in enumerate(groups)]
    for g, (at, share) in enumerate(zip(groups, shares, strict=True)):
        size = float(np.sum(share**q))
        values[g] = u[g] * (size - 1.0)
        slopes[g, at] = q * share ** (q - 1.0)
        slopes[g, m + g] = (1.0 - q) * size - 1.0
    values[k] = float(np.sum(u**p)) - 1.0
    slopes[k, m:] = p * u ** (p - 1.0)

    def bend(prices: Array) -> Array:
        hessian = np.zeros((total, total))
        hessian[range(m, total), range(m, total)] = prices[k] * p * (p - 1.0) * u ** (p - 2.0)
        if q == 1.0:
            return hessian
        for g, (at, share) in enumerate(zip(groups, shares, strict=True)):
            price = prices[g] * q * (q - 1.0) / u[g]
            hessian[at, at] = price * share ** (q - 2.0)
            hessian[at, m + g] = hessian[m + g, at] = -price * share ** (q - 1.0)
            hessian[m + g, m + g] += price * float(np.sum(share**q))
        return hessian

    return Boundary(values, slopes, bend)


def shrink_grouped(v: Array, price: float, groups: Groups, p: float, q: float) -> Array:
    """``argmin over x >= 0 of |x - v|^2 / 2 + (price / p) sum_g |x_g|_q^p`` for v >= 0."""
    x = np.zeros_like(v)
    for at in groups:
        x[at] = _shrink_group(v[at], price, p, q)
    return x


def _shrink_group(v: Array, price: float, p: float, q: float) -> Array:
    """Solve ``x_j + price N^(p-q) x_j^(q-1) = v_j`` with ``N = |x|_q``; zero where the price is too high (p = 1)."""
    top = float(np.max(v, initial=0.0))
    if top <= 0.0 or price == 0.0:
        return v.copy()
    if p == 1.0 and _dual_size(v, q) <= price:
        return np.zeros_like(v)

    def at(size: float) -> Array:
        if q == 1.0:
            return np.maximum(v - price * size ** (p - 1.0), 0.0)
        return shrink_power(v, price * size ** (p - q), q - 1.0)

    def excess(log_size: float) -> float:
        # the ratio of what the size asks for to the size falls with it
        size = float(np.exp(log_size))
        asked = float(np.sum((at(size) / size) ** q)) ** (1.0 / q)
        return 1.0 - asked

    return at(float(np.exp(monotone_root(excess, np.log(top)))))


def _dual_size(v: Array, q: float) -> float:
    if q == 1.0:
        return float(np.max(v))
    dual = q / (q - 1.0)
    top = float(np.max(v))
    return top * float(np.sum((v / top) ** dual)) ** (1.0 / dual)


def prox_grouped(t: Array, mu: float, groups: Groups, p: float, q: float) -> Array:
    """``argmin over x >= 0 of |x - t|^2 / 2 + (mu / 2) | |x_g|_q |_p^2`` for t >= 0."""
    top = float(np.max(t, initial=0.0))
    if mu == 0.0 or top <= 0.0:
        return t.copy()

    def at(size: float) -> Array:
        return shrink_grouped(t, mu * size ** (2.0 - p), groups, p, q)

    def excess(log_size: float) -> float:
        size = float(np.exp(log_size))
        found = group_sizes(at(size), groups, q)
        return 1.0 - float(np.sum((found / size) ** p)) ** (1.0 / p)

    return at(float(np.exp(monotone_root(excess, np.log(top)))))
