"""The default is a safe choice: method and rule by comparison, rho scaled to the matrix, warnings where rows mislead."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from kernelweave import SimilarityClassifier, held_similarities
from kernelweave.exceptions import DegenerateModelWarning

from .making import similarities

S, Y = similarities(n=70, m=3, seed=0)
TRAIN, TEST = np.arange(40), np.arange(40, 70)
BLOCK, ROWS = S[:, TRAIN][:, :, TRAIN], S[:, TEST][:, :, TRAIN]


def structured(n=90, seed=0):
    """A similarity that is strongly indefinite: half of what tells the classes apart is in negative eigenvalues."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], n // 3)
    good, bad = rng.normal(size=(n, 6)), rng.normal(size=(n, 6))
    good[:, 0] += 2.0 * (y == 1)
    bad[:, 0] += 4.0 * (y == 2)
    return good @ good.T - bad @ bad.T, y


def test_the_default_compares_and_says_what_it_took():
    clf = SimilarityClassifier().fit(BLOCK, Y[TRAIN])
    assert clf.method_ in ("denoise", "flip", "features")
    assert clf.solver_ == "fixed_weights"
    assert set(clf.comparison_["method"]) == {"denoise", "flip", "features"}
    told = SimilarityClassifier(method=clf.method_, rule=clf.rule_).fit(BLOCK, Y[TRAIN])
    np.testing.assert_array_equal(clf.decision_function(ROWS), told.decision_function(ROWS))
    assert not hasattr(told, "comparison_")
    again = clone(clf).set_params(random_state=7).fit(BLOCK, Y[TRAIN])
    assert again.method_ in ("denoise", "flip", "features")
    classical = SimilarityClassifier(rule="classical").fit(BLOCK, Y[TRAIN])
    assert set(classical.comparison_["rule"]) == {"classical"}
    assert classical.rule_ == "classical"


def test_the_default_is_near_the_best_where_the_choice_matters():
    above = []
    for seed in range(4):
        K, y = structured(seed=seed)
        order = np.random.default_rng(seed).permutation(90)
        a, b = order[:60], order[60:]
        block, rows = K[np.ix_(a, a)], K[np.ix_(b, a)]
        told = [
            SimilarityClassifier(method=m, rule="classical").fit(block, y[a]).score(rows, y[b])
            for m in ("denoise", "flip", "features")
        ]
        above.append(max(told) - SimilarityClassifier().fit(block, y[a]).score(rows, y[b]))
        assert max(told) - min(told) > 0.1  # or this would test nothing
    assert np.mean(above) <= 0.05


def test_a_linear_kernel_is_certified_at_once():
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = SimilarityClassifier().fit(X @ X.T, y)
    assert clf.certificate_.relative_gap <= 1e-2
    assert clf.status_ == "converged"
    assert clf.score(X @ X.T, y) > 0.9


def test_few_samples_of_a_class_take_the_first_candidate():
    y = np.zeros(40, dtype=int)
    y[0] = 1
    clf = SimilarityClassifier().fit(BLOCK[0], y)
    assert (clf.method_, clf.rule_, len(clf.comparison_)) == ("denoise", "classical", 0)


@pytest.mark.parametrize("given", [{"rho": 5.0}, {"loss": "squared"}, {"solver": "eskl"}])
def test_parameters_of_learned_kernels_need_a_method_that_learns_one(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"{name} is for learned kernels.*method='eskl'"):
        SimilarityClassifier(**given).fit(BLOCK, Y[TRAIN])


@pytest.mark.parametrize("loss", ["frobenius", "squared"])
def test_the_scaled_rho_keeps_the_kernel_near_whatever_the_matrix(loss):
    """The same rule on a mild and on a strongly indefinite similarity: the kernel moves, and not far."""
    mild = S[0]
    strong, y = structured()
    for K, labels in ((mild, Y), (strong, y == 2)):
        clf = SimilarityClassifier(method="eskl", loss=loss, tol=5e-2, max_iter=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            clf.fit(K, labels)
            kept = SimilarityClassifier(method="denoise").fit(K, labels).kernel_
        moved = np.linalg.norm(clf.kernel_ - kept) / np.linalg.norm(kept)
        assert 1e-4 < moved < 0.5
        assert clf.rho_ > 0


def test_rows_that_do_not_follow_the_kernel_are_a_finding():
    """A kernel of pure noise can be fitted perfectly, while smoothed rows say next to nothing of it."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(60, 60))
    y = rng.integers(0, 2, 60)
    clf = SimilarityClassifier(method="shift", rule="smooth", C=100.0)
    with pytest.warns(DegenerateModelWarning, match="do not follow the kernel") as caught:
        clf.fit(noise + noise.T, y)
    assert clf.findings_[0] == str(caught[0].message)
    assert SimilarityClassifier().fit(held_similarities(S).stack[0], Y).findings_ == ()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rho": "much"}, "rho must be 'auto' or"),
        ({"rule": "rough"}, "rule must be one of auto"),
        ({"normalize": "no"}, "normalize must be True or False"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False"),
        ({"method": "automatic"}, "Did you mean 'auto'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SimilarityClassifier(**parameters).fit(BLOCK, Y[TRAIN])
