"""Squared Euclidean distances by matrix products, to rows that stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._typing import Array, Index

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
    centre = points.mean(axis=0)
    known = _Centred.of(points - centre)

    def distances(new: Array) -> Array:
        rows = _Centred.of(new - centre)
        check_norms(rows.norms, known.norms)
        return _squared(rows, known)

    return distances


def distances_among(points: Array) -> Callable[[int, int], Array]:
    """Return the function of ``top, bottom`` that gives squared distances between rows top..bottom-1 and 0..bottom-1.

    >>> distances_among(np.array([[0.0, 0.0], [3.0, 4.0]]))(1, 2)
    array([[25.,  0.]])
    """
    known = _Centred.of(points - points.mean(axis=0))
    check_norms(known.norms, known.norms)

    def distances(top: int, bottom: int) -> Array:
        return _squared(known.part(top, bottom), known.part(0, bottom))

    return distances


class _Centred(NamedTuple):
    """Rows about their mean: distances do not change with the origin, but the digits lost do.

    ``right`` has the rows, ones and their squared norms side by side: a matrix product with ``left`` of other rows is
    all of ``|x|^2 + |z|^2 - 2 x.z``.
    """

    right: Array
    norms: Array

    @classmethod
    def of(cls, rows: Array) -> _Centred:
        norms = np.einsum("ij,ij->i", rows, rows)
        return cls(np.hstack([rows, np.ones((len(rows), 1)), norms[:, None]]), norms)

    @property
    def rows(self) -> Array:
        return self.right[:, :-2]

    @property
    def left(self) -> Array:
        return np.hstack([-2.0 * self.rows, self.norms[:, None], np.ones((len(self.norms), 1))])

    def part(self, top: int, bottom: int) -> _Centred:
        return _Centred(self.right[top:bottom], self.norms[top:bottom])


def _squared(rows: _Centred, known: _Centred) -> Array:
    """Squared distances from centred rows; close pairs from their differences."""
    squared = rows.left @ known.right.T
    i, j = _lost_digits(squared, rows.norms, known.norms)
    for part in range(0, i.size, PAIRS_AT_ONCE):
        some = slice(part, part + PAIRS_AT_ONCE)
        differences = rows.rows[i[some]] - known.rows[j[some]]
        squared[i[some], j[some]] = np.einsum("ij,ij->i", differences, differences)
    return squared


def _lost_digits(squared: Array, left: Array, right: Array) -> tuple[Index, Index]:
    """Pairs that are so close beside their norms that the product has lost their digits."""
    most = CANCELLED * (left.max(initial=0.0) + right.max(initial=0.0))
    i, j = np.nonzero(squared <= most)  # all of them, and others where norms differ much
    lost = squared[i, j] <= CANCELLED * (left[i] + right[j])
    return i[lost], j[lost]
