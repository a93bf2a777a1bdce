"""The budgeted hinge by its definitions: sorted losses, conditional value at risk, the sets of (10) and (11)."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import references as ref
from kernelweave.losses import BudgetedHinge, Hinge, budget_from_noise_rate

seeds = st.integers(0, 2**32 - 1)


def sample(rng: np.random.Generator, n: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, decision values and weights, some of them zero."""
    c = rng.uniform(0.1, 3.0, size=n) * (rng.uniform(size=n) > 0.2)
    c[0] = 1.0
    return rng.choice([-1.0, 1.0], size=n), rng.normal(scale=2.0, size=n), c


@pytest.mark.parametrize("rho", [1, 3, 7, 19, 20])
def test_total_is_the_sum_of_the_largest_losses(rho):
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, f, _ = sample(rng)
        losses = np.sort(np.maximum(1 - y * f, 0))[::-1]
        total = BudgetedHinge(rho / 20).total(y, f, np.ones(20))
        assert total == pytest.approx(losses[:rho].sum(), rel=1e-12)
        # half of one more
        if rho < 20:
            total = BudgetedHinge((rho + 0.5) / 20).total(y, f, np.ones(20))
            assert total == pytest.approx(losses[:rho].sum() + 0.5 * losses[rho], rel=1e-12)


@given(seed=seeds, budget=st.floats(0.02, 0.99), base=st.sampled_from([0.0, 0.01]))
def test_total_is_rho_times_the_conditional_value_at_risk(seed, budget, base):
    """``min over s of limit s + sum weight (l - s)_+``: convex in s with corners at the losses, so those are enough."""
    y, f, c = sample(np.random.default_rng(seed))
    losses = np.maximum(1 - y * f, 0)
    limit = (budget - base) * c.sum()
    values = [limit * s + (1 - base) * c @ np.maximum(losses - s, 0) for s in [0.0, *losses]]
    total = BudgetedHinge(budget, base).total(y, f, c)
    assert total == pytest.approx(base * c @ losses + min(values), rel=1e-12, abs=1e-12)
    assert total == pytest.approx(ref.budgeted_hinge(budget, base).total(y, f, c), rel=1e-12)


@pytest.mark.parametrize("base", [0.0, 0.25])
def test_total_is_the_support_function_of_the_dual_set(base):
    """(10) and (11) of the paper by a linear program."""
    rng = np.random.default_rng(1)
    for budget in (0.3, 0.6, 0.95):
        y, f, c = sample(rng)
        a = cp.Variable(20)
        limit = (budget - base) * c.sum()
        rows = [a >= 0, a <= c, cp.sum(cp.pos(a - base * c)) <= limit]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = cp.Problem(cp.Maximize(a @ (1 - y * f)), rows).solve(solver=cp.CLARABEL)
        loss = BudgetedHinge(budget, base)
        assert loss.total(y, f, c) == pytest.approx(best, rel=1e-6)
        worst = loss.worst(y, f, c)
        assert np.all((worst >= 0) & (worst <= c * (1 + 1e-12)))
        assert np.sum(np.maximum(worst - base * c, 0)) <= limit * (1 + 1e-12)
        assert worst @ np.maximum(1 - y * f, 0) == pytest.approx(best, rel=1e-6)


@given(seed=seeds)
def test_the_whole_budget_is_the_plain_hinge(seed):
    y, f, c = sample(np.random.default_rng(seed))
    whole, plain = BudgetedHinge(), Hinge()
    assert whole.total(y, f, c) == plain.total(y, f, c)
    assert whole.best_intercept(y, f, c) == plain.best_intercept(y, f, c)
    beta = np.random.default_rng(seed).normal(size=20)
    np.testing.assert_array_equal(whole.project(y, beta, c, True), plain.project(y, beta, c, True))
    inside = plain.project(y, beta, c, False)
    assert whole.gain(y, inside, c) == plain.gain(y, inside, c)
    assert whole.margin(y, f, c) == 1.0


@given(seed=seeds, budget=st.floats(0.02, 0.99), base=st.sampled_from([0.0, 0.01]))
def test_worst_weights_attain_the_total(seed, budget, base):
    """Equality in Fenchel-Young: the filled weights are a subgradient of the total."""
    y, f, c = sample(np.random.default_rng(seed))
    loss = BudgetedHinge(budget, base)
    beta = y * loss.worst(y, f, c) * (1 - y * f > 0)
    total = loss.total(y, f, c)
    assert loss.gain(y, beta, c) - beta @ f == pytest.approx(total, rel=1e-10, abs=1e-10)


def test_gain_is_minus_infinity_beyond_the_budget():
    y, c = np.ones(4), np.ones(4)
    loss = BudgetedHinge(0.5)
    assert loss.gain(y, np.array([1.0, 1.0, 0.0, 0.0]), c) == 2.0
    assert loss.gain(y, np.array([1.0, 1.0, 0.1, 0.0]), c) == -np.inf
    both = np.stack([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.1, 0.0]], axis=1)
    assert loss.gain(np.ones((4, 2)), both, np.ones((4, 2))) == -np.inf


def test_margin_is_what_the_threshold_leaves():
    y, c = np.ones(4), np.ones(4)
    f = np.array([1.5, 0.5, 0.2, -1.0])  # losses 0, .5, .8, 2
    for budget, margin in ((0.75, 0.5), (0.6, 0.5), (0.5, 0.2), (1.0, 1.0), (0.99, 1.0)):
        assert BudgetedHinge(budget).margin(y, f, c) == pytest.approx(margin)
    assert BudgetedHinge(0.25).margin(y, f, c) == 1e-6  # a threshold above one: no classifier yet
    assert BudgetedHinge(0.5, 0.1).margin(y, f, c) == pytest.approx(0.2)
    assert BudgetedHinge(0.25, 0.1).margin(y, f, c) == pytest.approx(0.1)


# ---- from the noise rate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "q", "confidence"), [(50, 0.3, 0.9), (280, 0.2, 0.95), (10_000, 0.4, 0.99)])
def test_budget_from_noise_rate(n, q, confidence):
    """(11) in its own units: a in [0, 1 + tau]^n, sum a <= n (1 - q + eps + tau)."""
    delta = 1 - confidence
    eps, tau = np.sqrt(np.log(2 / delta) / (2 * n)), np.sqrt(np.log(1 / delta) / 2)
    budget, factor = budget_from_noise_rate(n, q, confidence)
    assert factor == pytest.approx(1 + tau)
    assert budget * n * factor == pytest.approx(min(n * (1 - q + eps + tau), n * (1 + tau)))
    relaxed = BudgetedHinge.from_noise_rate(n, q, confidence)
    exact = BudgetedHinge.from_noise_rate(n, q, confidence, exact_set=True)
    assert (relaxed.budget, relaxed.base) == (budget, 0.0)
    assert exact.budget == budget
    # (10) in its own units: sum [a - tau]_+ <= n (1 - q + eps)
    assert exact.base * factor == pytest.approx(tau)
    assert (exact.budget - exact.base) * n * factor == pytest.approx(min(n * (1 - q + eps), n))


def test_little_noise_or_few_samples_leave_the_plain_hinge():
    assert budget_from_noise_rate(20, 0.1)[0] == 1.0
    assert budget_from_noise_rate(10**6, 0.0)[0] == 1.0


def test_the_relaxed_set_charges_more_than_the_exact_one():
    rng = np.random.default_rng(2)
    relaxed = BudgetedHinge.from_noise_rate(400, 0.4)
    exact = BudgetedHinge.from_noise_rate(400, 0.4, exact_set=True)
    strictly = 0
    for _ in range(20):
        y, f, c = sample(rng, 400)
        charged = exact.total(y, f, c), relaxed.total(y, f, c), Hinge().total(y, f, c)
        assert charged[0] <= charged[1] * (1 + 1e-12) <= charged[2] * (1 + 2e-12)
        strictly += charged[0] < charged[1] * (1 - 1e-6)
    assert strictly > 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 0.1), "number of samples"),
        ((9, 1.0), "noise_rate"),
        ((9, -0.1), "noise_rate"),
        ((9, 0.1, 1.0), "confidence"),
    ],
)
def test_noise_rates_out_of_range(arguments, words):
    with pytest.raises(ValueError, match=words):
        budget_from_noise_rate(*arguments)


def test_the_margin_of_several_columns_is_the_smallest():
    rng = np.random.default_rng(0)
    y, f, c = np.where(rng.normal(size=(30, 3)) > 0, 1.0, -1.0), rng.normal(size=(30, 3)), np.ones((30, 3))
    f[:, 1] *= 0.1
    loss = BudgetedHinge(0.6)
    each = [loss.margin(y[:, k], f[:, k], c[:, k]) for k in range(3)]
    assert min(each) < max(each)
    assert loss.margin(y, f, c) == min(each)
