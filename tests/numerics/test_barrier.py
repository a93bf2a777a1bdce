"""Quadratics under cuts on sets of weights: a conic solver's minima, by both kinds of steps."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from kernelweave._numerics import quadratic as barrier
from kernelweave.norms import ElasticBlocks, ElasticNet, Grouped

M = 12
LABELS = np.repeat(["a", "b", "c"], 4)
NORMS = {
    "grouped l1, 2": Grouped("l1", 2, LABELS),
    "grouped 1.5, l1": Grouped(1.5, "l1", LABELS),
    "grouped 2, l1": Grouped(2, "l1", LABELS),
    "elastic net": ElasticNet(),
    "elastic blocks": ElasticBlocks(),
}


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of low rank, with slopes that want most entries to vanish."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, M))
    return root.T @ root / M, 0.3 * rng.standard_normal(M), rng.standard_normal((3, M)) - 0.5, rng.random(3)


def minimised(norm, P, c, rows, gains):
    """The same on the variables of the norm's set, which may be more than the weights."""
    start = norm.inside(norm.start(M))
    wide = start.size - M
    P, c, rows = np.pad(P, (0, wide)), np.pad(c, (0, wide)), np.pad(rows, [(0, 0), (0, wide)])
    x, bounds, cuts = barrier.minimise_on_set(P, c, rows, gains, norm.boundary, start)
    return x[:M], bounds[:M], cuts


def charged(name: str, x: cp.Variable) -> cp.Expression:
    """What is at most one on the set, by definition."""
    if name == "elastic net":
        return 0.5 * cp.sum(x) + 0.5 * cp.sum_squares(x)
    if name == "elastic blocks":  # d / (1 - d / 2) = 2 / (1 - d / 2) - 2
        return 0.5 * cp.sum(2.0 * cp.inv_pos(1.0 - 0.5 * x) - 2.0)
    p, q = {"grouped l1, 2": (1, 2), "grouped 1.5, l1": (1.5, 1), "grouped 2, l1": (2, 1)}[name]
    return cp.norm(cp.hstack([cp.norm(x[np.flatnonzero(label == LABELS)], q) for label in "abc"]), p)


@pytest.mark.parametrize("way", ["pairs", "barrier"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NORMS)
def test_minima(monkeypatch, name: str, seed: int, way: str) -> None:
    if way == "barrier":
        monkeypatch.setattr(barrier, "MOST_PAIRS", 0)
    norm, (P, c, rows, gains) = NORMS[name].for_kernels(M), problem(seed)
    x, bounds, cuts = minimised(norm, P, c, rows, gains)
    value = 0.5 * x @ P @ x + c @ x + np.max(gains + rows @ x)
    v = cp.Variable(M, nonneg=True)
    objective = 0.5 * cp.quad_form(v, cp.psd_wrap(P)) + c @ v + cp.max(gains + rows @ v)
    least = cp.Problem(cp.Minimize(objective), [charged(name, v) <= 1.0]).solve("CLARABEL")
    assert value == pytest.approx(least, abs=1e-6)
    assert np.all(x > 0.0)
    assert np.all(bounds > 0.0)
    # multipliers of the barrier are those of a point beside its minimiser
    assert np.sum(cuts) == pytest.approx(1.0, abs=1e-2)
    assert cuts @ (np.max(gains + rows @ x) - gains - rows @ x) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("name", ["grouped 2, l1", "elastic net", "elastic blocks"])
def test_pairs_of_slacks_and_prices_need_no_barrier(monkeypatch, name: str) -> None:
    def barrier_step(*_: object) -> None:
        raise AssertionError("the barrier was asked")

    monkeypatch.setattr(barrier, "_centre", barrier_step)
    for seed in range(4):
        minimised(NORMS[name].for_kernels(M), *problem(seed))
