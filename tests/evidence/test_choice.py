"""Weights chosen per target: near the best of many starts, the same for any batches, sane where nothing is to learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelweave.evidence import (
    Design,
    Folds,
    LeaveOneOut,
    Look,
    Points,
    Reml,
    Watch,
    WeightChoice,
    choose_weights,
)
from kernelweave.evidence import design as designs
from timed import fit_with_a_point

N, M, T = 60, 4, 12


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(N, 6)) for _ in range(M)]
    Y = np.empty((N, T))
    for k in range(T):
        used = rng.choice(M, size=1 + k % 2, replace=False)
        Y[:, k] = sum(views[j] @ rng.normal(size=6) for j in used) + 2.0 * rng.normal(size=N) + k
    return np.array([X @ X.T for X in views]), Y


def value(design: Design, d: np.ndarray, y: np.ndarray) -> float:
    return float(Reml().look(Points(design, d[None], np.array([1])), design.targets(y[:, None])).value[0])


def test_reml_is_near_the_best_of_many_starts() -> None:
    kernels, Y = data()
    design = Design.of(kernels)
    choice = choose_weights(design, Y, Reml())
    assert set(choice.status) == {"stationary"}
    rng = np.random.default_rng(1)
    for k in range(0, T, 4):
        best = min(
            minimize(
                lambda log_d, k=k: np.log(value(design, np.exp(log_d), Y[:, k])),
                rng.normal(size=M), bounds=[(-9.0, 6.0)] * M,
            ).fun
            for _ in range(3)
        )  # fmt: skip
        np.testing.assert_allclose(choice.value[k], value(design, choice.weights[k], Y[:, k]), rtol=1e-10)
        # a kernel enters only where it earns more than chance, and weights are on a lattice
        assert np.log(choice.value[k]) <= best + 6.0 / N


@pytest.mark.parametrize(
    "criterion", [Reml(), LeaveOneOut(), Folds(np.array_split(np.arange(N), 3))], ids=lambda one: one.name
)
def test_batches_change_nothing(criterion: Reml) -> None:
    kernels, Y = data()
    design = Design.of(kernels)
    finished: list[int] = []
    whole = choose_weights(design, Y, criterion)
    parts = choose_weights(design, Y, criterion, targets_in_batch=5, progress=finished.append)
    assert sum(finished) == T
    np.testing.assert_array_equal(whole.weights, parts.weights)
    np.testing.assert_allclose(whole.coef, parts.coef, atol=1e-10)
    # the coefficients are those of the weights
    G = np.eye(N) + np.tensordot(whole.weights[3], design.kernels, axes=1)
    np.testing.assert_allclose(G @ whole.coef[:, 3], design.targets(Y)[:, 3], atol=1e-9)
    # what is chosen does not depend on the units of a target
    scaled = choose_weights(design, Y * 1e6, criterion)
    np.testing.assert_array_equal(whole.weights, scaled.weights)


def test_constant_targets_and_noise() -> None:
    kernels, _ = data()
    design = Design.of(kernels)
    noise = np.random.default_rng(5).normal(size=(N, 40))
    choice = choose_weights(design, np.column_stack([np.full(N, 7.0), np.zeros(N), noise]), Reml())
    assert list(choice.status[:2]) == ["constant", "constant"]
    assert not choice.weights[:2].any()
    # nothing to predict: nearly all of the variance is left to the noise
    assert np.median(choice.weights[2:].sum(axis=1)) < 0.15
    assert np.any(~choice.weights[2:].any(axis=1))
    assert np.all(np.isfinite(choice.coef))


class Counted(Reml):
    """Notes how many mixtures are inverted together."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def look(self, points: Points, Y: np.ndarray) -> Look:
        self.sizes.append(len(points.weights))
        return super().look(points, Y)


@pytest.mark.parametrize("exact", [False, True])
def test_inverses_are_counted_and_as_many_at_once_as_fit(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels, Y = data()
    design = Design.of(kernels)
    bound = 8 * N**2 * design.chunk
    assert bound <= designs.CHUNK < bound + 8 * N**2
    counted = Counted()
    whole: WeightChoice = choose_weights(design, Y, counted, exact=exact)
    assert whole.factorisations[0] == sum(counted.sizes)
    assert max(counted.sizes) > 3
    monkeypatch.setattr(designs, "CHUNK", 8 * N**2 * 3)
    few = Counted()
    parts = choose_weights(design, Y, few, exact=exact)
    assert max(few.sizes) == 3
    assert parts.factorisations[0] == sum(few.sizes)
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=1e-3, atol=1e-6)
    monkeypatch.setattr(designs, "CHUNK", 1)
    assert design.chunk == 1


@pytest.mark.parametrize("exact", [False, True])
def test_a_callback_is_told_of_every_step(exact: bool) -> None:
    """The last row is of the weights that are chosen, where all targets are one batch and begin at one point."""
    kernels, Y = data()
    design, Y = Design.of(kernels), Y[:, 5:]
    rows: list[dict[str, float]] = []
    choice = choose_weights(design, Y, Reml(), exact=exact, watch=Watch(callback=rows.append))
    assert [row["iteration"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[-1]["active_kernels"] == np.count_nonzero(choice.weights, axis=1).max()
    assert all(0 < row["targets"] <= 60 for row in rows)
    stopped = choose_weights(design, Y, Reml(), exact=exact, watch=Watch(callback=lambda row: True))
    assert set(stopped.status) <= {"stopped", "stationary"}
    assert "stopped" in stopped.status
    rows.clear()  # kernels of any weight are active, also where the noise is larger than what they explain
    noise = 6.0 * np.random.default_rng(0).normal(size=Y.shape)
    weak = choose_weights(design, Y + noise, Reml(), exact=exact, watch=Watch(callback=rows.append))
    assert 0.0 < weak.weights.max() < 1.0
    assert rows[-1]["active_kernels"] == np.count_nonzero(weak.weights, axis=1).max()


@pytest.mark.parametrize("exact", [False, True])
def test_an_interrupt_ends_the_choice_between_two_inverses(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels, Y = data()
    design = Design.of(kernels)
    monkeypatch.setattr(designs, "CHUNK", 1)  # one mixture at a time

    class Interrupted(Reml):
        looks = 0

        def look(self, points: Points, Y: np.ndarray) -> Look:
            self.looks += 1
            if self.looks == last:
                deadline.interrupt()
            return super().look(points, Y)

    last = np.inf
    whole = Interrupted()
    assert set(choose_weights(design, Y, whole, exact=exact).status) == {"stationary"}
    # weights to begin with are evaluated in any case: those of the lattice, and of what leaves it
    for last in (whole.looks - 2,) if exact else (T + 1, T + 4, whole.looks - 2):
        criterion = Interrupted()
        told: list[int] = []
        with fit_with_a_point() as deadline:
            choice = choose_weights(design, Y, criterion, exact=exact, progress=told.append)
        assert exact or sum(told) == T  # also of those that the end came too early for
        assert criterion.looks == last
        assert exact or "interrupted" in choice.status
        assert np.all(np.isfinite(choice.coef))


def test_steps_that_do_not_help_are_followed_by_shorter_ones() -> None:
    """Or else they would be tried again until there are no more steps."""
    left = 0
    for seed in (3, 9):
        rng = np.random.default_rng(seed)
        views = [rng.normal(size=(30, 4)) for _ in range(6)]
        pairs = [rng.choice(6, 2, replace=False) for _ in range(20)]
        Y = np.stack([sum(views[j] @ rng.normal(size=4) for j in pair) for pair in pairs], axis=1)
        Y += rng.choice([0.01, 0.3, 2.0], size=20) * rng.normal(size=Y.shape)
        kernels = [
            np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8.0) if k % 2 else X @ X.T
            for k, X in enumerate(views)
        ]
        choice = choose_weights(Design.of(np.array(kernels)), Y, Reml())
        left += np.count_nonzero(choice.status != "stationary")
    assert left <= 3
