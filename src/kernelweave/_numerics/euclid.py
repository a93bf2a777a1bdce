"""Squared Euclidean distances by matrix products, to rows that stay the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["CANCELLED", "check_norms", "distances_among", "distances_to"]

Array = NDArray[np.float64]

#: below this share of the squared norms, the expanded square has lost too many digits and is computed again
CANCELLED = 1e-6
PAIRS_AT_ONCE = 4096


def check_norms(left: Array, right: Array) -> None:
    """Raise where squared norms, and so distances, are not finite."""
    if not np.isfinite(left.max(initial=0.0) + right.max(initial=0.0)):
        raise ValueError("squared distances overflow: scale the features first (StandardScaler)")


def distances_to(points: Array) -> Callable[[Array], Array]:
    """Return the function from new rows to their squared distances to ``points``, of which much is computed here.

    >>> distances_to(np.array([[0.0, 0.0], [3.0, 4.0]]))(np.array([[0.0, 0.0]]))
    array([[ 0., 25.]])
    """
    centre, known, right = _centred(points)

    def distances(new: Array) -> Array:
        rows = new - centre
        left = np.einsum("ij,ij->i", rows, rows)
        check_norms(left, right)
        return _squared(rows, left, known, right)

    return distances


def distances_among(points: Array) -> Callable[[int, int], Array]:
    """Return the function of ``top, bottom`` that gives squared distances between rows top..bottom-1 and 0..bottom-1.

    >>> distances_among(np.array([[0.0, 0.0], [3.0, 4.0]]))(1, 2)
    array([[25.,  0.]])
    """
    _, known, norms = _centred(points)
    check_norms(norms, norms)

    def distances(top: int, bottom: int) -> Array:
        return _squared(known[top:bottom], norms[top:bottom], known[:bottom], norms[:bottom])

    return distances


def _centred(points: Array) -> tuple[Array, Array, Array]:
    """Mean, centred points and their squared norms: distances do not change with the origin, but the digits lost do."""
    centre = points.mean(axis=0)
    known = np.ascontiguousarray(points - centre)
    return centre, known, np.einsum("ij,ij->i", known, known)


def _squared(rows: Array, left: Array, known: Array, right: Array) -> Array:
    """Squared distances from centred rows and their squared norms; close pairs from their differences."""
    squared = rows @ known.T
    squared *= -2.0
    scale = np.add.outer(left, right)
    squared += scale
    scale *= CANCELLED
    i, j = np.nonzero(squared <= scale)
    for part in range(0, i.size, PAIRS_AT_ONCE):
        some = slice(part, part + PAIRS_AT_ONCE)
        differences = rows[i[some]] - known[j[some]]
        squared[i[some], j[some]] = np.einsum("ij,ij->i", differences, differences)
    return squared
