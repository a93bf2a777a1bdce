"""Explicit features: landmarks by leverage scores or to an error, quick waves, and the transformer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import KernelFeatures, MKLClassifier
from kernelweave import kernels as kw
from kernelweave.kernels import approximate as fourier
from kernelweave.kernels.approximate import choose_landmarks, leverage_scores, trace_errors
from kernelweave.losses import make_loss
from kernelweave.norms import Lp
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, 1, 0)


def lost(kernel, samples) -> float:
    """Share of the trace that an approximation loses, by its definition."""
    exact = kernel.kernel(samples)
    return float(np.trace(exact - kernel(samples)) / np.trace(exact))


# ---- landmarks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["uniform", "leverage"])
@pytest.mark.parametrize("error", [0.3, 0.03])
def test_as_few_landmarks_as_the_error_takes(sampling, error):
    kernel = kw.nystroem(kw.gaussian(2.0), error=error, sampling=sampling).resolve(X)
    assert lost(kernel, X) <= error * (1 + 1e-6)
    fewer = kw.gaussian(2.0)
    order = kernel.landmarks
    assert len(order) < 120
    # the search is in a fixed order, so that one landmark less would not do: checked on the errors themselves
    drawn = choose_landmarks(fewer, X, None, sampling, error, np.random.RandomState(0))
    assert len(drawn) == len(order)


def test_errors_of_prefixes_are_those_of_the_approximations():
    order = rng.permutation(120)[:15]
    errors = trace_errors(kw.gaussian(2.0), X, order)
    K = kw.gaussian(2.0)(X)
    for size in (1, 4, 15):
        part = order[:size]
        approximation = K[:, part] @ np.linalg.pinv(K[np.ix_(part, part)]) @ K[part]
        assert errors[size - 1] == pytest.approx(1 - np.trace(approximation) / np.trace(K), abs=1e-7)
    assert np.all(np.diff(errors) <= 1e-12)


def test_copies_of_a_sample_are_no_trouble():
    doubled = np.vstack([X[:30], X[:30]])
    assert np.isfinite(trace_errors(kw.gaussian(1.0), doubled, np.arange(60))).all()


def test_most_landmarks_that_may_be_used():
    kernel = kw.nystroem(kw.gaussian(0.2), rank=20, error=1e-6).resolve(X)
    assert kernel.rank(4) == 20
    assert lost(kernel, X) > 1e-6


def test_leverage_scores_are_those_of_the_definition_where_the_sample_is_everything():
    K = kw.gaussian(1.0)(X)
    scores = leverage_scores(kw.gaussian(1.0), X, 60, np.random.RandomState(0))
    values = np.linalg.eigvalsh(K)[::-1]
    lam = (np.trace(K) - values[:60].sum()) / 60
    exact = np.diag(K @ np.linalg.inv(K + lam * np.eye(120)))
    np.testing.assert_allclose(scores, exact, atol=1e-8)


def test_leverage_finds_the_rare_samples():
    """A few samples far from the crowd: drawn by leverage they become landmarks, drawn uniformly they are missed."""
    crowd = 0.1 * np.random.default_rng(1).normal(size=(600, 2))
    far = 5.0 * np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [0.0, 2.0]])
    samples = np.vstack([crowd, far])
    errors = {}
    for sampling in ("uniform", "leverage"):
        made = [
            kw.nystroem(kw.gaussian(1.0), rank=15, random_state=seed, sampling=sampling).resolve(samples)
            for seed in range(5)
        ]
        errors[sampling] = np.mean([np.max(np.abs(k.kernel(samples) - k(samples))) for k in made])
    assert errors["uniform"] > 0.9
    assert errors["leverage"] < 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": "best"}, r"one of uniform, leverage, got 'best'"),
        ({"error": 0.0}, r"the error of nystroem must be a finite number > 0"),
        ({"error": 10**400}, r"the error of nystroem must be a finite number > 0"),
        ({"error": 1.5}, r"share of the trace, below 1, got 1.5"),
        ({"rank": 2.5}, r"the rank of nystroem must be a finite whole number"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        kw.nystroem(kw.gaussian(1.0), **options)
    with pytest.raises(ValueError, match=message):
        KernelFeatures(kw.gaussian(1.0), **options).fit(X)


def test_neither_rank_nor_error():
    with pytest.raises(ValueError, match="needs a rank, or an error"):
        KernelFeatures(kw.gaussian(1.0), rank=None).fit(X)


# ---- waves ---------------------------------------------------------------------------------------------------------


def test_quick_cosines_and_sines():
    angles = np.concatenate(
        [rng.uniform(-1e6, 1e6, 9900), rng.normal(size=9900), np.arange(-100, 100) * np.pi / 4]
    ).reshape(-1, 4)  # so many that they are compiled
    kernel = fourier.RandomFourier(kw.gaussian(1.0), 8, frequencies=np.eye(4))
    expected = 0.5 * np.hstack([np.cos(angles), np.sin(angles)])
    assert angles.size >= fourier.MANY
    np.testing.assert_allclose(kernel.features(angles), expected, atol=3e-16)


def test_many_random_features_are_those_of_few():
    kernel = kw.random_fourier(1.0, n_features=1000).resolve(X)
    many = kernel.features(np.vstack([X] * 5))  # compiled
    few = kernel.features(X[:10])
    np.testing.assert_allclose(many[:10], few, atol=1e-14)
    np.testing.assert_allclose(np.sum(many**2, axis=1), 1.0)
    wild = kernel.features(1e8 * np.vstack([X] * 5))  # beyond what is compiled
    np.testing.assert_allclose(np.sum(wild**2, axis=1), 1.0)


# ---- the transformer -----------------------------------------------------------------------------------------------


def test_inner_products_are_the_kernels():
    spec = kw.polynomial(2) + kw.gaussian(1.0) + kw.linear().on([0, 2])
    features = KernelFeatures(spec, rank=120, normalize=None).fit(X)
    Z = features.transform(X)
    for j, kernel in enumerate([kw.polynomial(2), kw.gaussian(1.0), kw.linear().on([0, 2])]):
        part = Z[:, features.starts_[j] : features.starts_[j + 1]]
        np.testing.assert_allclose(part @ part.T, kernel(X), atol=1e-6)
    assert list(features.kernel_names_[1:]) == ["gaussian(width=1)", "linear on features 0, 2"]
    names = features.get_feature_names_out()
    assert len(names) == Z.shape[1] == features.starts_[-1]
    assert names[-1] == "linear on features 0, 2: 1"


def test_traces_are_one():
    features = KernelFeatures(kw.gaussian([0.5, 2.0]) + kw.linear(), error=0.1, rank=None)
    Z = features.fit_transform(X)
    sums = np.add.reduceat(np.mean(Z**2, axis=0), features.starts_[:-1])
    np.testing.assert_allclose(sums, 1.0)
    np.testing.assert_allclose(features.transform(X), Z)


def test_sparse_samples_stay_sparse():
    S = sp.random(40, 8, density=0.2, format="csr", random_state=0)
    features = KernelFeatures(kw.per_view({"a": [0, 1, 2], "b": [3, 4, 5, 6, 7]}, kw.linear())).fit(S)
    Z = features.transform(S)
    assert sp.issparse(Z)
    np.testing.assert_allclose(
        Z.toarray(), KernelFeatures(features.kernels).fit_transform(S.toarray()), atol=1e-12
    )


def test_a_bank_for_solvers():
    features = KernelFeatures(kw.gaussian([1.0, 4.0]), rank=30).fit(X)
    labels = np.where(y == 1, 1.0, -1.0)
    problem = MKLProblem(features.bank(X), make_loss("logistic"), Lp(1.5), labels)
    found = {name: solve(problem, registry[name](), Stop(tol=1e-6)) for name in ("svrg", "lbfgs", "newton")}
    values = [solution.certificate.primal for solution in found.values()]
    np.testing.assert_allclose(values, values[0], rtol=2e-6)
    # and the same through the estimator
    spec = kw.nystroem(kw.gaussian([1.0, 4.0]), rank=30)
    clf = MKLClassifier(spec, loss="logistic", norm=1.5, tol=1e-6, solver="svrg").fit(X, labels)
    assert clf.certificate_.primal == pytest.approx(values[0], rel=2e-6)


def test_in_a_pipeline_and_a_search():
    pipeline = make_pipeline(KernelFeatures(kw.gaussian([0.5, 2.0])), LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"kernelfeatures__rank": [5, 40]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    clone(pipeline).fit(X, y).predict(X)


def test_ridge_on_features_is_kernel_ridge():
    from sklearn.kernel_ridge import KernelRidge

    target = X[:, 0] ** 2 + X[:, 1]
    Z = KernelFeatures(kw.gaussian(1.0), rank=120, normalize=None).fit_transform(X)
    ours = Ridge(alpha=0.3, fit_intercept=False).fit(Z, target).predict(Z)
    theirs = KernelRidge(alpha=0.3, kernel="precomputed").fit(kw.gaussian(1.0)(X), target)
    np.testing.assert_allclose(ours, theirs.predict(kw.gaussian(1.0)(X)), atol=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="'trace' or None, got 'cosine'"):
        KernelFeatures(kw.linear(), normalize="cosine").fit(X)
    with pytest.raises(ValueError, match="not precomputed matrices"):
        KernelFeatures("precomputed").fit(kw.gaussian([1.0, 2.0])[0](X)[None])
    with pytest.raises(ValueError, match="X has 2 features"):
        KernelFeatures(kw.linear()).fit(X).transform(X[:, :2])


@parametrize_with_checks([KernelFeatures(kw.gaussian(1.0) + kw.linear(), rank=10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("shape", [(50, 6), (5, 12)])
def test_principal_components_are_those_of_scikit_learn_and_few_columns_are_all_kept(shape):
    from sklearn.decomposition import PCA

    X = np.random.default_rng(3).normal(size=shape) * np.arange(1.0, shape[1] + 1) + 7.0
    new = X[:3] + 1.0
    kernel = kw.principal(2).resolve(X)
    pca = PCA(2, svd_solver="full").fit(X)
    np.testing.assert_allclose(np.abs(kernel.features(new)), np.abs(pca.transform(new)), atol=1e-9)
    np.testing.assert_allclose(
        kernel.features(sp.csr_matrix(new)),
        kw.principal(2).resolve(sp.csr_matrix(X)).features(new),
        atol=1e-9,
    )
    assert kw.principal(20).resolve(X).rank(shape[1]) == min(shape)
    with pytest.raises(ValueError, match="n_components of principal"):
        kw.principal(0)
    with pytest.raises(ValueError, match="settled on"):
        kernel.features(X[:, :2])
