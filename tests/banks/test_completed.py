"""Completed banks, against explicit features and definitions."""

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks import KernelFunction, MatrixRows, completed_bank
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.views import Views

SIZES = {"a": 4, "b": 3, "c": 5}


def some_views(n, seed=0, lost=0.4, poison=np.nan):
    """Views of a common cause, each lost at random; no sample without any."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=(n, 3))
    blocks = {
        name: cause @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in SIZES.items()
    }
    gone = rng.random((n, len(SIZES))) < lost
    gone[gone.all(axis=1), rng.integers(0, 3)] = False
    for k, name in enumerate(blocks):
        blocks[name][gone[:, k]] = np.nan
    views = Views(blocks)
    for k, block in enumerate(views.blocks):
        block[gone[:, k]] = poison
    return views


def bank_of(views, how="predict", spec=None, **options):
    spec = kw.linear() if spec is None else spec
    return completed_bank(expand_kernels(spec, Schema.of(views)), views, how, **options)


def values_of(bank, weights, coef, new):
    return KernelFunction.mixture(bank, np.asarray(weights), coef, 0.0)(new)


def cross_of(bank, new):
    """Kernels between new samples and all training samples, ``(m, n_new, n)``."""
    return np.stack([values_of(bank, weights, np.eye(bank.n), new) for weights in np.eye(bank.m)])


def matrices_of(bank):
    everyone = np.arange(bank.n)
    return bank.block(everyone, everyone, np.arange(bank.m))


def explicit_completion(views, how):
    """Complete centred and scaled linear features view by view, from the definition."""
    features = []
    for k, block in enumerate(views.blocks):
        have = views.present[:, k]
        z = np.zeros(block.shape)
        z[have] = block[have] - block[have].mean(axis=0)
        features.append(z / np.sqrt(np.mean(np.sum(z[have] ** 2, axis=1))))
    completed = [z.copy() for z in features]
    for i, row in enumerate(views.present):
        for k in np.flatnonzero(~row):
            have = views.present[:, k]
            if how == "mean":
                continue  # the mean of centred features
            others = np.hstack([features[s] for s in np.flatnonzero(row)]) / np.sqrt(row.sum())
            penalty = best_penalty(others[have], features[k][have])
            completed[k][i] = ridge(others[have], features[k][have], penalty, others[i])
    return completed


def ridge(x, z, penalty, new):
    """What ridge regression with an intercept, from features x to features z, says of a new sample."""
    if np.isinf(penalty):
        return z.mean(axis=0)
    centred = x - x.mean(axis=0)
    slopes = np.linalg.solve(centred.T @ centred + penalty * np.eye(x.shape[1]), centred.T @ z)
    return z.mean(axis=0) + (new - x.mean(axis=0)) @ slopes


def best_penalty(predictors, features):
    """Leave samples out one by one, for every penalty."""
    n = len(predictors)
    centred = predictors - predictors.mean(axis=0)
    unit = np.sum(centred**2) / n
    errors = {np.inf: 0.0} | {rate * unit: 0.0 for rate in (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)}
    for penalty in errors:
        for i in range(n):
            rest = np.arange(n) != i
            predicted = ridge(predictors[rest], features[rest], penalty, predictors[i])
            errors[penalty] += np.sum((features[i] - predicted) ** 2)
    return min(errors, key=errors.get)


@pytest.mark.parametrize("how", ["mean", "predict"])
def test_completed_kernels_are_those_of_completed_features(how):
    views = some_views(26)
    bank = bank_of(views, how, center=True)
    for matrix, z in zip(matrices_of(bank), explicit_completion(views, how), strict=True):
        np.testing.assert_allclose(matrix, z @ z.T, atol=1e-10)


@pytest.mark.parametrize("how", ["mean", "predict"])
@pytest.mark.parametrize(
    "options", [{}, {"center": True}, {"normalize": "cosine"}, {"normalize": None, "center": True}]
)
def test_training_rows_as_new_rows_agree(how, options):
    views = some_views(40, seed=1)
    spec = kw.linear() + kw.gaussian([1.0, 2.0], relative=True)
    bank = bank_of(views, how, spec, **options)
    bank.source.means = None  # as in a model that was saved
    np.testing.assert_allclose(cross_of(bank, views), matrices_of(bank), atol=1e-12)


def test_missing_rows_are_never_read():
    spec = kw.gaussian([1.0, 2.0], relative=True) + kw.linear().on(["a", "b"])
    results = []
    for poison in (np.nan, np.inf, 1e300):
        views = some_views(30, seed=2, poison=poison)
        bank = bank_of(views, "predict", spec)
        results.append((matrices_of(bank), cross_of(bank, views)))
    for matrices, cross in results[1:]:
        np.testing.assert_array_equal(matrices, results[0][0])
        np.testing.assert_array_equal(cross, results[0][1])


def test_positive_semidefinite_for_any_mask():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        views = some_views(int(rng.integers(12, 24)), seed, rng.uniform(0.1, 0.6))
        if views.present.sum(axis=0).min() < 2:
            continue
        bank = bank_of(views, "predict", kw.gaussian(1.0, relative=True), center=bool(seed % 2))
        for matrix in matrices_of(bank):
            lowest = np.linalg.eigvalsh(matrix)[0]
            assert lowest > -1e-12 * np.trace(matrix)


def test_patterns_never_seen_in_training():
    views = some_views(40, seed=3, lost=0.0)
    block = views.blocks[1]
    block[:8] = np.nan
    views = Views(dict(views.items()))  # only b is ever missing
    bank = bank_of(views)
    assert bank.source.patterns.tolist() == [[True, False, True]]
    new = Views({name: block[10:20].copy() for name, block in views.items()})
    new.present[:5, 0] = False
    new.present[5:, [0, 2]] = False
    coef = np.random.default_rng(0).normal(size=40)
    values = values_of(bank, np.ones(3), coef, new)
    again = values_of(bank, np.ones(3), coef, new[[7, 2]])  # nothing depends on who else is asked about
    np.testing.assert_allclose(again, values[[7, 2]], rtol=1e-10)
    each = [values_of(bank, weights, coef, new) for weights in np.eye(3)]
    np.testing.assert_allclose(values_of(bank, [2.0, 0.0, 1.0], coef, new), 2.0 * each[0] + each[2])
    function = KernelFunction.mixture(bank, np.array([2.0, 0.0, 1.0]), coef, 0.0)
    np.testing.assert_allclose(
        function.by_kernel(new), np.stack([2.0 * each[0], 0.0 * each[1], each[2]], axis=1)
    )


def test_held_out_samples_are_completed_as_new_ones_are():
    views = some_views(40, seed=4)
    train = np.random.default_rng(0).permutation(40)[:28]
    test = np.setdiff1d(np.arange(40), train)
    for options in ({}, {"center": True}, {"normalize": "cosine", "center": True}):
        spec = kw.gaussian(1.0, relative=True)
        whole = bank_of(views, "predict", spec, train=train, **options)
        alone = bank_of(views[np.sort(train)], "predict", spec, **options)
        everyone, kernels = np.arange(40), np.arange(3)
        np.testing.assert_allclose(
            whole.block(np.sort(train), np.sort(train), kernels), matrices_of(alone), atol=1e-10
        )
        np.testing.assert_allclose(
            whole.block(test, np.sort(train), kernels), cross_of(alone, views[test]), atol=1e-10
        )
        assert np.linalg.eigvalsh(whole.block(everyone, everyone, kernels)).min() > -1e-10


def test_a_view_of_noise_is_not_predictable_and_one_of_a_common_cause_is():
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(200, 4))
    shown = cause @ rng.normal(size=(4, 6)) + 0.2 * rng.normal(size=(200, 6))
    noise = rng.permutation(shown)
    lost = rng.random(200) < 0.3
    views = Views({"cause": cause, "shown": np.where(lost[:, None], np.nan, shown), "noise": noise})
    bank = bank_of(views)
    r2 = dict(zip([part.name for part in bank.source.parts], bank.source.predictability, strict=True))
    assert r2["shown"] > 0.8
    assert r2["noise"] < 0.01


def test_matrices_with_a_mask():
    views = some_views(36, seed=5)
    spec = kw.gaussian(1.0, relative=True)
    bank = bank_of(views, "predict", spec)
    raw = []
    for k, part in enumerate(bank.source.parts):
        rows = np.flatnonzero(views.present[:, k])
        matrix = np.full((36, 36), np.nan)
        matrix[np.ix_(rows, rows)] = part.bound.kernels[0](views[rows])
        raw.append(matrix)
    stacked = completed_bank(None, np.stack(raw), "predict")
    np.testing.assert_allclose(matrices_of(stacked), matrices_of(bank), atol=1e-10)
    np.testing.assert_allclose(cross_of(stacked, MatrixRows(np.stack(raw))), matrices_of(bank), atol=1e-10)


def test_too_few_samples_are_refused():
    views = Views({"a": np.ones((4, 2)), "b": np.where(np.arange(4)[:, None] == 1, 1.0, np.nan)})
    with pytest.raises(ValueError, match="only 1 of 4 training samples have 'b'"):
        bank_of(views)


def test_a_matrix_that_is_no_kernel_is_refused_where_views_are_missing_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    lacking = np.where(np.arange(40)[:, None] % 5 == 0, np.nan, X)
    model = MKLClassifier(kw.function(lambda a, b: -abs(float(a @ b))), missing="mean")
    with pytest.raises(ValueError, match="is not positive semi-definite"):
        model.fit({"a": X, "b": lacking}, rng.random(40) > 0.5)
