"""Recompute what criteria by evidence say of their weights, from ``docs/many_targets.md``, with NumPy alone."""

from __future__ import annotations

import numpy as np

from .bounds import LONG


def _ridge(K, y, w, intercept):
    """Coefficients and intercept of the ridge regression with mixed kernel K and unit ridge, samples weighted by w."""
    n = len(y)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + np.diag(1.0 / w)
    A[n, n] = 1.0
    if intercept:
        A[:n, n] = A[n, :n] = 1.0
        A[n, n] = 0.0
    solution = np.linalg.solve(A, np.append(y, 0.0))
    return solution[:n], solution[n] if intercept else 0.0


def held_out(K, y, w, intercept, folds):
    """Sum of the squared weighted errors of samples that are left out fold by fold, each fold by a fit without it."""
    missed = 0.0
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(y)), fold)
        if rest.size == 0:
            return np.nan
        a, b = _ridge(K[np.ix_(rest, rest)], y[rest], w[rest], intercept)
        missed += float(np.sum(w[fold] * (y[fold] - K[np.ix_(fold, rest)] @ a - b) ** 2))
    return missed


def _reml(K, y, w, intercept):
    root = np.sqrt(w)
    u = root / np.linalg.norm(root) if intercept else np.zeros(len(y))
    J = np.eye(len(y)) - np.outer(u, u)
    G = np.eye(len(y)) + J @ (root[:, None] * K * root) @ J
    z = J @ (root * y)
    f = len(y) - int(intercept)
    q = z @ np.linalg.solve(G, z)
    return float(np.exp((np.linalg.slogdet(G)[1] + f * np.log(q / f)) / f))


#: value of a criterion at a mixed kernel that stands beside a ridge of one, by its name
VALUES = {
    "reml": lambda K, y, w, intercept, folds: _reml(K, y, w, intercept),
    "loo": lambda K, y, w, intercept, folds: held_out(K, y, w, intercept, _single(y)) / len(y),
    "folds": lambda K, y, w, intercept, folds: held_out(K, y, w, intercept, folds) / sum(map(len, folds)),
}


def _single(y):
    return [np.array([i]) for i in range(len(y))]


def check_choice(name, K, unsure, y, w, intercept, folds, weights, C, value, score) -> list[str]:
    """Hold the value and the score of one target to their definitions, at the weights and C that were chosen.

    ``K`` are the kernels on the samples that are used, ``unsure`` how far rounding may have moved their entries,
    ``folds`` positions among these samples.
    """
    mixed = np.asarray(np.tensordot(np.asarray(weights, dtype=LONG) * 2 * C, K, axes=1), dtype=float)
    y, w = np.asarray(y, dtype=float), np.asarray(w, dtype=float)
    with np.errstate(all="ignore"):
        scaled = np.sqrt(np.outer(w, w)) * mixed
        moved = np.sqrt(np.outer(w, w)) * np.tensordot(np.asarray(weights) * 2 * C, unsure, axes=1)
        condition = 1.0 + float(np.linalg.norm(scaled, 2)) if np.all(np.isfinite(scaled)) else np.inf
    offset = float(np.max(np.abs(y))) / max(float(np.std(y)), 1e-300)
    # inverses are in single precision where the condition is below 10,000
    slack = (
        1e-5
        + 6e-8 * len(y) * min(condition, 1e4)
        + 1e-13 * condition * max(1.0, float(np.max(w) / np.min(w)))
        + 1e-14 * offset
        + float(np.linalg.norm(np.asarray(moved, dtype=float)))  # beside eigenvalues of at least one
    )
    if not slack < 0.05 or len(y) < 3:
        return []  # double precision cannot tell
    found = []
    if name in VALUES:
        by_definition = VALUES[name](mixed, y, w, intercept, folds)
        if np.isfinite(by_definition) and not abs(value - by_definition) <= slack * abs(by_definition):
            found.append(f"{name} is {value!r}, by definition {by_definition!r} (slack {slack:.1e})")
    total = float(np.sum(w * (y - (np.sum(w * y) / np.sum(w) if intercept else 0.0)) ** 2))
    missed = held_out(mixed, y, w, intercept, folds if name == "folds" else _single(y))
    by_definition = 1.0 - missed / total
    if np.isfinite(by_definition) and not abs(score - by_definition) <= slack * (1 + missed / total):
        found.append(f"score {score!r}, by leaving out {by_definition!r} (slack {slack:.1e})")
    return found
