"""Problems for the SMO engine, and the conditions their solutions must meet."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel


def sample(n, seed=0, d=5):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = np.where(x[:, 0] + 0.7 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return x, y


def gram(x, kind):
    if kind == "linear":
        return x @ x.T
    if kind == "mixture":
        return 0.5 * rbf_kernel(x, gamma=0.1) + 0.3 * rbf_kernel(x, gamma=2.0) + 0.02 * x @ x.T
    return rbf_kernel(x, gamma=kind)


def hinge_box(y, c):
    return np.minimum(0.0, c * y), np.maximum(0.0, c * y)


def objective(K, beta, linear, ridge=0.0, kink=0.0):
    K = np.asarray(K, dtype=float)
    return linear @ beta - np.sum(kink * np.abs(beta)) - 0.5 * beta @ K @ beta - 0.5 * np.sum(ridge * beta**2)


def violation(K, beta, linear, lower, upper, ridge=0.0, kink=0.0, equality=True):
    """How far the optimality conditions are from holding, from their definition."""
    slope = linear - np.asarray(K, dtype=float) @ beta - ridge * beta
    up = np.where(beta < 0.0, slope + kink, slope - kink)[beta < upper]
    down = np.where(beta > 0.0, slope - kink, slope + kink)[beta > lower]
    if equality:
        return max(0.0, up.max() - down.min()) if up.size and down.size else 0.0
    return max(0.0, up.max(initial=0.0), -down.min(initial=0.0))


def check_solution(fit, K, linear, lower, upper, ridge=0.0, kink=0.0, equality=True, tol=1e-3):
    """Everything that a solution promises, whatever the problem."""
    scale = np.abs(np.asarray(K, dtype=float)) @ np.abs(fit.beta)
    assert np.all(fit.beta >= lower)
    assert np.all(fit.beta <= upper)
    np.testing.assert_allclose(
        fit.product,
        np.asarray(K, dtype=float) @ fit.beta,
        rtol=0,
        atol=1e-12 * (scale.max() + np.abs(linear).max()),
    )
    if equality:
        assert abs(fit.beta.sum()) <= 1e-12 * np.abs(fit.beta).sum()
    reached = violation(K, fit.beta, linear, lower, upper, ridge, kink, equality)
    assert fit.converged
    assert reached <= tol + 1e-12 * (1.0 + scale.max())
    assert fit.violation == pytest.approx(reached, rel=1e-6, abs=1e-11 * (1.0 + scale.max()))


CASES = {
    "hinge": {},
    "squared hinge": {"ridge": 0.25, "one_sided": True},
    "huber hinge": {"ridge": 0.1},
    "insensitive": {"kink": 0.2, "symmetric": True},
    "kinks of several sizes": {"kink": "some", "symmetric": True},
    "everything": {"kink": "some", "ridge": "some", "symmetric": True},
    "least squares": {"ridge": 0.5, "symmetric": True, "infinite": True},
}


def case(name, n, c, seed):
    options = CASES[name]
    rng = np.random.default_rng(seed)
    x, y = sample(n, seed)
    lower, upper = hinge_box(y, np.full(n, c))
    linear = y
    if options.get("symmetric"):
        lower, upper = np.full(n, -c), np.full(n, c)
        linear = x[:, 0] + 0.5 * rng.standard_normal(n)
    if options.get("one_sided"):
        lower, upper = np.where(y < 0.0, -np.inf, 0.0), np.where(y > 0.0, np.inf, 0.0)
    if options.get("infinite"):
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    terms = {}
    for term in ("ridge", "kink"):
        value = options.get(term, 0.0)
        some = rng.uniform(0.0, 0.5, n) * (rng.random(n) < 0.6)
        terms[term] = some if value == "some" else np.full(n, value)
    return x, linear, lower, upper, terms["ridge"], terms["kink"]
