"""Which training samples a Nystroem approximation stands on, and how many."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from ._helpers import n_samples, take
from ._kernel import Kernel

__all__ = ["SAMPLINGS", "choose_landmarks"]

SAMPLINGS = ("uniform", "leverage")
#: with more samples than this, landmarks are chosen among a random part, and errors measured on it
MOST = 20_000
#: landmarks tried first where an error is asked for
FIRST = 32


def choose_landmarks(
    kernel: Kernel, A: Any, most: int | None, sampling: str, error: float | None, draw: np.random.RandomState
) -> np.ndarray:
    """Row numbers of the landmarks, sorted.

    ``most`` is their number; where ``error`` is given, the fewest (up to ``most``) whose features leave no more than
    that share of the trace.
    """
    n = n_samples(A)
    if sampling == "uniform" and error is None:
        return np.sort(draw.permutation(n)[:most])
    pool = np.sort(draw.permutation(n)[: min(n, MOST)])
    samples = A if pool.size == n else take(A, pool)
    most = pool.size if most is None else min(most, pool.size)
    if error is None:
        return np.sort(pool[_order(kernel, samples, most, sampling, draw)[:most]])
    size = min(FIRST, most)
    order = _order(kernel, samples, min(most, 8 * FIRST), sampling, draw)
    while True:
        left = trace_errors(kernel, samples, order[:size])
        reached = np.flatnonzero(left <= error)
        if reached.size:
            return np.sort(pool[order[: reached[0] + 1]])
        if size == most:
            return np.sort(pool[order[:size]])
        size = min(2 * size, most)


def _order(kernel: Kernel, samples: Any, rank: int, sampling: str, draw: np.random.RandomState) -> np.ndarray:
    """All samples in the order in which they become landmarks."""
    n = n_samples(samples)
    if sampling == "uniform":
        return draw.permutation(n)
    scores = leverage_scores(kernel, samples, rank, draw)
    # sorting by log(u) / p draws without replacement with probabilities p (Efraimidis and Spirakis 2006)
    return np.argsort(-np.log(draw.uniform(size=n)) / np.maximum(scores, 1e-300))


def leverage_scores(kernel: Kernel, samples: Any, rank: int, draw: np.random.RandomState) -> np.ndarray:
    """Ridge leverage scores ``diag K (K + lam I)^-1``, from a uniform sample of twice the rank.

    lam is the mean of what the best approximation of this rank leaves of the trace (Musco and Musco 2017): directions
    that rank cannot hold count for nothing.  What the sample itself leaves is a better guess where it missed something.
    """
    n = n_samples(samples)
    pilot = np.sort(draw.permutation(n)[: min(n, 2 * rank)])
    seen = take(samples, pilot)
    inside = kernel(seen)
    diagonal = kernel.diag(samples)
    trace = float(np.sum(diagonal))

    def unexplained(ridge: float) -> np.ndarray:
        factor = cho_factor(inside + ridge * np.eye(pilot.size))
        left = np.empty(n)
        height = max(1, 2_000_000 // pilot.size)
        for top in range(0, n, height):
            rows = np.arange(top, min(n, top + height))
            across = kernel(take(samples, rows), seen)
            left[rows] = diagonal[rows] - np.einsum("ij,ij->i", across, cho_solve(factor, across.T).T)
        return left

    values = np.linalg.eigvalsh(inside)[::-1] * (n / pilot.size)
    left = trace - float(np.sum(values[:rank]))
    if pilot.size < n:
        left = max(left, float(np.sum(unexplained(1e-8 * trace / n))))
    lam = max(left / rank, 1e-10 * trace)
    return np.clip(unexplained(lam * pilot.size / n) / lam, 0.0, 1.0)


def trace_errors(kernel: Kernel, samples: Any, order: np.ndarray) -> np.ndarray:
    """Share of the trace that the first 1, 2, ... of these landmarks leave unexplained."""
    landmarks = take(samples, order)
    inside = kernel(landmarks)
    jitter = 1e-12 * float(np.mean(np.diagonal(inside)))
    while True:
        try:
            lower = cholesky(inside + jitter * np.eye(order.size), lower=True)
            break
        except LinAlgError:  # landmarks that are (almost) copies of each other
            jitter *= 100.0
    explained = np.zeros(order.size)
    n = n_samples(samples)
    height = max(1, 2_000_000 // order.size)
    for top in range(0, n, height):
        across = kernel(landmarks, take(samples, np.arange(top, min(n, top + height))))
        explained += np.sum(solve_triangular(lower, across, lower=True) ** 2, axis=1)
    return 1.0 - np.cumsum(explained) / float(np.sum(kernel.diag(samples)))
