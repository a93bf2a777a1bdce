"""Small indefinite similarities with labels."""

from __future__ import annotations

import numpy as np


def similarities(n=20, m=2, seed=0, noise=0.1):
    """Gaussians of several widths plus symmetric noise, scaled to ``tr(S_+) = n``; labels from the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    stack = []
    for i in range(m):
        E = rng.normal(size=(n, n))
        S = np.exp(-squares / (8 * (1 + i) ** 2)) + noise * (E + E.T) / 2
        values = np.linalg.eigvalsh(S)
        stack.append(S * n / values[values > 0].sum())
    return np.array(stack), y


def random_kernels(problem, rng):
    """Feasible kernels of a problem, at random."""
    if problem.targets.ndim == 2 or hasattr(problem, "vectors"):
        return np.stack([problem.trace * rng.dirichlet(np.ones(problem.n)) for _ in range(problem.m)])
    found = []
    for _ in range(problem.k):
        A = rng.normal(size=(problem.n, problem.n))
        K = A @ A.T
        found.append(K * problem.trace / np.trace(K))
    return np.stack(found)
