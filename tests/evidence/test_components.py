"""Variance components of one target: at the top of the likelihood, with the standard errors of the definition."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.evidence import Design, Reml, choose_weights, log_likelihood, variance_components


def design(n: int = 80, seed: int = 0) -> Design:
    rng = np.random.default_rng(seed)
    views = [rng.normal(size=(n, 8)), rng.normal(size=(n, 60))]
    return Design.of(np.array([X @ X.T for X in views]))


def simulated(made: Design, variances: np.ndarray, t: int, seed: int = 1) -> np.ndarray:
    covariance = np.tensordot(variances[:-1], made.kernels, axes=1) + variances[-1] * np.eye(made.n)
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ np.random.default_rng(seed).normal(size=(made.n, t))


def test_one_target_stands_where_the_likelihood_is_flat() -> None:
    made = design()
    y = simulated(made, np.array([1.0, 1.5, 1.0]), 1)
    choice = choose_weights(made, y, Reml(), exact=True)
    d = choice.weights[0]
    assert np.all(d > 0)
    assert choice.slope[0] < 1e-6
    top = log_likelihood(made, d, y)[0]
    for j in range(2):
        for factor in (0.97, 1.03):
            moved = d.copy()
            moved[j] *= factor
            assert log_likelihood(made, moved, y)[0] < top
    # many targets stop at the nearest useful point of the lattice, this side of it
    assert log_likelihood(made, choose_weights(made, y, Reml()).weights[0], y)[0] < top


def test_standard_errors_are_those_of_the_information_by_eigenvalues() -> None:
    """With one kernel everything is diagonal in its eigenvectors."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 15))
    made = Design.of((X @ X.T)[None])
    y = simulated(made, np.array([2.0, 1.0]), 1)[:, 0]
    components = variance_components(made, np.array([1.7]), y)
    # the intercept is made the last eigenvector, and left out
    values, vectors = np.linalg.eigh(made.kernels[0] + 1e3 * np.outer(made.direction, made.direction))
    contrasts = np.arange(39)
    values = np.maximum(values[contrasts], 0.0)
    noise = np.mean((vectors[:, contrasts].T @ made.targets(y[:, None])[:, 0]) ** 2 / (1 + 1.7 * values))
    total = noise * (1 + 1.7 * values)
    rows = np.stack([values, np.ones_like(values)]) / total
    np.testing.assert_allclose(components.covariance, np.linalg.inv(0.5 * rows @ rows.T), rtol=1e-8)
    np.testing.assert_allclose(components.variance, [1.7 * noise, noise], rtol=1e-10)


def test_standard_errors_are_the_spread_of_repeated_estimates() -> None:
    made, truth = design(), np.array([1.0, 1.5, 1.0])
    Y = simulated(made, truth, 150)
    choice = choose_weights(made, Y, Reml(), exact=True)
    found = [variance_components(made, choice.weights[k], Y[:, k]) for k in range(150)]
    variances, shares = np.array([one.variance for one in found]), np.array([one.share for one in found])
    errors = np.array([one.error for one in found])
    np.testing.assert_allclose(np.nanmedian(errors, axis=0), variances.std(axis=0), rtol=0.35)
    share_errors = np.nanmedian([one.share_error for one in found], axis=0)
    np.testing.assert_allclose(share_errors, shares.std(axis=0), rtol=0.35)
    np.testing.assert_allclose(variances.mean(axis=0), truth, rtol=0.25)


def test_table_of_the_estimator() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    y = X[:, :3] @ [1.0, -1.0, 1.0] + rng.normal(size=90)
    bank = kw.per_view({"a": slice(0, 3), "b": slice(3, 6)}, kw.linear())
    model = MKLRegressorCV(bank, criterion="reml").fit(X, y)
    table = model.variance_components_
    assert list(table.index) == [*model.kernel_names_, "noise"]
    np.testing.assert_allclose(table["share"].sum(), 1.0)
    assert abs(table["variance"]["noise"] - 1.0) < 3 * table["standard_error"]["noise"]
    assert np.isfinite(table["standard_error"][table["variance"] > 0]).all()
    several = MKLRegressorCV(bank, criterion="reml").fit(X, np.column_stack([y, -y]))
    assert not hasattr(several, "variance_components_")
    assert not hasattr(MKLRegressorCV(bank, criterion="loo").fit(X, y), "variance_components_")
    model.fit(X, np.full(90, 2.0))
    assert not hasattr(model, "variance_components_")


def test_what_repeats_within_a_group_is_left_out_at_prediction() -> None:
    rng = np.random.default_rng(1)
    groups, signal = np.repeat(np.arange(40), 3), rng.normal(size=(120, 5))
    own = 2.0 * rng.normal(size=(40, 4))[groups]
    Y = signal @ rng.normal(size=(5, 4)) + own + 0.5 * rng.normal(size=(120, 4))
    X = np.column_stack([signal, groups])
    bank = kw.per_view({"signal": slice(0, 5)}, kw.linear()) + kw.per_view({"group": [5]}, kw.gaussian(0.1))
    model = MKLRegressorCV(bank, criterion="reml", nuisance="group").fit(X, Y)
    assert np.all(model.weights_[:, 1] > 0)
    new = X.copy()
    new[:, 5] = 3.0  # whatever group a new sample names
    np.testing.assert_allclose(model.predict(new), model.predict(X), atol=1e-9)
    plain = MKLRegressorCV(bank, criterion="reml").fit(X, Y)
    np.testing.assert_array_equal(plain.weights_, model.weights_)
    assert np.abs(plain.predict(X) - model.predict(X)).max() > 1.0
    # without the kernel of the groups their means are noise that is not independent
    slope = signal @ np.linalg.lstsq(signal, Y - own, rcond=None)[0]
    assert np.corrcoef(model.predict(X).ravel(), slope.ravel())[0, 1] > 0.9
    for nuisance, message in [("gruop", "no kernel, view or position"), ([0, 1], "nothing is left")]:
        with pytest.raises(ValueError, match=message):
            MKLRegressorCV(bank, criterion="reml", nuisance=nuisance).fit(X, Y)
    with pytest.raises(ValueError, match="go with the criteria by evidence"):
        MKLRegressorCV(bank, nuisance="group").fit(X, Y)
    with pytest.raises(ValueError, match="no nuisance kernels"):
        model.predict(X, return_std=True)
