"""Norms of norms: derivatives and proximal steps where entries belong to groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._typing import Array
from .intercepts import monotone_root
from .projections import shrink_power
from .quadratic import Boundary

Groups = Sequence[NDArray[np.intp]]


def group_sizes(x: Array, groups: Groups, q: float) -> Array:
    """``|x_g|_q`` of every group, for x >= 0."""
    top = float(np.max(x, initial=0.0)) or 1.0
    return np.array([top * float(np.sum((x[at] / top) ** q)) ** (1.0 / q) for at in groups])


def grouped_boundary(place: Array, labels: NDArray[np.intp], p: float, q: float) -> Boundary:
    """``sum_j x_j^q / u_g^(q-1) <= u_g``, that is ``|x_g|_q <= u_g``, and ``sum_g u_g^p <= 1``, at ``(x, u) > 0``."""
    m, total = labels.size, place.size
    u, entries, groups = place[m:], np.arange(m), np.arange(total - m)
    share = place[:m] / u[labels]
    size = np.bincount(labels, weights=share**q, minlength=u.size)
    slopes = np.zeros((u.size + 1, total))
    slopes[labels, entries] = q * share ** (q - 1.0)
    slopes[groups, m + groups] = (1.0 - q) * size - 1.0
    slopes[-1, m:] = p * u ** (p - 1.0)

    def bend(prices: Array) -> Array:
        hessian = np.zeros((total, total))
        along = prices[-1] * p * (p - 1.0) * u ** (p - 2.0)
        if q != 1.0:
            price = prices[:-1] * q * (q - 1.0) / u
            hessian[entries, entries] = price[labels] * share ** (q - 2.0)
            across = -price[labels] * share ** (q - 1.0)
            hessian[entries, m + labels] = hessian[m + labels, entries] = across
            along = along + price * size
        hessian[m + groups, m + groups] = along
        return hessian

    return Boundary(np.append(u * (size - 1.0), float(np.sum(u**p)) - 1.0), slopes, bend)


def shrink_grouped(v: Array, price: float, groups: Groups, p: float, q: float) -> Array:
    """``argmin over x >= 0 of |x - v|^2 / 2 + (price / p) sum_g |x_g|_q^p`` for v >= 0.

    Solves ``x_j + price N_g^(p-q) x_j^(q-1) = v_j`` with ``N_g = |x_g|_q``, all groups at once; a group is zero where
    the price is too high (p = 1).
    """
    if price == 0.0:
        return v.copy()
    if p == q:  # the groups play no part
        return np.maximum(v - price, 0.0) if q == 1.0 else shrink_power(v, price, q - 1.0)
    label = np.empty(v.size, dtype=np.intp)
    for g, at in enumerate(groups):
        label[at] = g
    if q == 2.0:  # x is a multiple of v in every group
        sizes = group_sizes(v, groups, 2.0)
        left = np.maximum(sizes - price, 0.0) if p == 1.0 else shrink_power(sizes, price, p - 1.0)
        return v * np.divide(left, sizes, out=np.zeros_like(sizes), where=sizes > 0)[label]
    there = np.zeros(len(groups), dtype=bool)
    for g, at in enumerate(groups):
        # with p = 1 the dual norm must exceed the price, by more than rounding: the size would be below every double
        top = float(np.max(v[at], initial=0.0))
        there[g] = top > 0.0
        if top > 0.0 and p <= 1.0:
            dual = q / (q - 1.0)
            length = top * float(np.sum((v[at] / top) ** dual)) ** (1.0 / dual)
            there[g] = length > price * (1.0 + 1e-13)
    x = np.zeros_like(v)
    if np.any(there):
        kept = there[label]
        number = np.cumsum(there) - 1
        x[kept] = _shrink_all(v[kept], number[label[kept]], price, p, q)
    return x


def _shrink_all(v: Array, label: NDArray[np.intp], price: float, p: float, q: float) -> Array:
    """``shrink_grouped`` where no group vanishes.

    The sizes N are roots of a falling function of ``ln N``, one for each group: Newton's steps, kept inside a bracket.
    """
    top = np.zeros(int(np.max(label)) + 1)
    np.maximum.at(top, label, v)

    def entries(log_size: Array) -> tuple[Array, Array]:
        """x at sizes, and the slope of ``ln x`` in ``ln`` of what each power costs."""
        with np.errstate(over="ignore"):  # beyond the doubles x is as good as zero
            cost = np.minimum(price * np.exp((p - q) * log_size)[label], 1e200)
        if q == 1.0:
            x = np.maximum(v - cost, 0.0)
            return x, -np.divide(cost, x, out=np.zeros_like(x), where=x > 0)
        x = shrink_power(v, cost, q - 1.0)
        pull = cost * x ** (q - 1.0)
        return x, -pull / np.maximum(x + (q - 1.0) * pull, np.finfo(float).tiny)

    def excess(log_size: Array) -> tuple[Array, Array]:
        """``ln`` of what a size asks for over the size itself, and its slope."""
        # sizes and costs beyond the doubles are ends of a bracket: infinite values have the right sign there
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x, bend = entries(log_size)
            shares = np.exp(q * (np.log(x) - log_size[label]))
            total = np.bincount(label, weights=shares, minlength=top.size)
            slope = (p - q) * np.bincount(label, weights=shares * bend, minlength=top.size) / total - 1.0
            return np.log(total) / q, slope

    sums = np.bincount(label, weights=(v / top[label]) ** q, minlength=top.size)
    high = np.log(top) + np.log(sums) / q
    low, step = high - 1.0, 1.0
    for _ in range(12):  # exp(-4096) is below every double
        below = excess(low)[0] <= 0.0
        if not np.any(below):
            break
        step *= 2.0
        low = np.where(below, low - step, low)
    at = 0.5 * (low + high)
    for _ in range(200):
        value, slope = excess(at)
        low, high = np.where(value > 0.0, at, low), np.where(value > 0.0, high, at)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = at - value / slope
        moved = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        done = np.all(np.abs(moved - at) <= 1e-15 * (1.0 + np.abs(at)))
        at = moved
        if done:
            break
    return entries(at)[0]


def project_grouped(v: Array, groups: Groups, p: float, q: float) -> Array:
    """Nearest point to ``max(v, 0)`` in ``{x >= 0, sum_g |x_g|_q^p <= 1}``."""
    v = np.maximum(v, 0.0)

    def charge(x: Array) -> float:
        return float(np.sum(group_sizes(x, groups, q) ** p))

    if charge(v) <= 1.0:
        return v

    def at(log_price: float) -> Array:
        return shrink_grouped(v, float(np.exp(log_price)), groups, p, q)

    return at(monotone_root(lambda log_price: 1.0 - charge(at(log_price)), np.log(float(np.max(v)))))


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
