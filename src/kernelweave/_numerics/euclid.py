"""Squared Euclidean distances by matrix products, to rows that stay the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import Array

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
    known, known_norms = _augmented(points - centre)

    def distances(new: Array) -> Array:
        rows, norms = _augmented(new - centre)
        check_norms(norms, known_norms)
        return _squared(rows, norms, known, known_norms)

    return distances


def distances_among(points: Array) -> Callable[[int, int], Array]:
    """Return the function of ``top, bottom`` that gives squared distances between rows top..bottom-1 and 0..bottom-1.

    >>> distances_among(np.array([[0.0, 0.0], [3.0, 4.0]]))(1, 2)
    array([[25.,  0.]])
    """
    known, norms = _augmented(points - points.mean(axis=0))
    check_norms(norms, norms)

    def distances(top: int, bottom: int) -> Array:
        return _squared(known[top:bottom], norms[top:bottom], known[:bottom], norms[:bottom])

    return distances


def _augmented(rows: Array) -> tuple[Array, Array]:
    """Rows about their mean, so that fewer digits are lost, with ones and squared norms beside them; and the norms."""
    norms = np.einsum("ij,ij->i", rows, rows)
    return np.hstack([rows, np.ones((len(rows), 1)), norms[:, None]]), norms


def _squared(new: Array, new_norms: Array, known: Array, known_norms: Array) -> Array:
    """Squared distances ``|x|^2 + |z|^2 - 2 x.z`` by one matrix product; close pairs from their differences."""
    rows = new[:, :-2]
    squared = np.hstack([-2.0 * rows, new_norms[:, None], np.ones((len(rows), 1))]) @ known.T
    # pairs so close beside their norms that the product has lost their digits; others too where norms differ much
    most = CANCELLED * (new_norms.max(initial=0.0) + known_norms.max(initial=0.0))
    i, j = np.nonzero(squared <= most)
    lost = squared[i, j] <= CANCELLED * (new_norms[i] + known_norms[j])
    i, j = i[lost], j[lost]
    for part in range(0, i.size, PAIRS_AT_ONCE):
        some = slice(part, part + PAIRS_AT_ONCE)
        differences = rows[i[some]] - known[j[some], :-2]
        squared[i[some], j[some]] = np.einsum("ij,ij->i", differences, differences)
    return squared
