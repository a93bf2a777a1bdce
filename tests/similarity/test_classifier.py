"""SimilarityClassifier: what goes in, what comes out, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import DenoiseSpectrum, SimilarityClassifier, held_similarities
from kernelweave.exceptions import KernelWeaveConvergenceWarning, KernelWeaveWarning
from kernelweave.similarity.fits import METHODS

from .making import similarities

S, Y = similarities(n=70, m=3, seed=0)
TRAIN, TEST = np.arange(40), np.arange(40, 70)
BLOCK, ROWS = S[:, TRAIN][:, :, TRAIN], S[:, TEST][:, :, TRAIN]
#: three classes that the second similarity knows about
THREE = np.digitize(S[1][:, :5].mean(axis=1), np.quantile(S[1][:, :5].mean(axis=1), [0.33, 0.67]))


def fitted(method="eskl", stack=BLOCK, **parameters):
    return SimilarityClassifier(method=method, **{"tol": 3e-2, **parameters}).fit(stack, Y[TRAIN])


@pytest.mark.filterwarnings("ignore:similarity 0 is not symmetric")  # some checks pass anything square
@parametrize_with_checks(
    [SimilarityClassifier(method="denoise"), SimilarityClassifier(method="rekl", tol=0.5)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["smooth", "classical"])
def test_every_method_learns_and_leaves_what_it_should(method, rule):
    clf = fitted(method, rule=rule, C=100.0 if method == "features" else 1.0)
    assert clf.score(ROWS, Y[TEST]) > 0.6
    assert clf.kernel_.shape == (40, 40)
    assert np.linalg.eigvalsh(clf.kernel_)[0] > -1e-8
    assert clf.weights_.shape == (3,)
    assert clf.dual_coef_.shape == (40,)
    assert -1e-9 <= clf.certificate_.relative_gap <= 3e-2
    assert clf.certificate_.primal >= clf.certificate_.dual
    assert clf.trace_["relative_gap"].iloc[-1] == pytest.approx(
        clf.certificate_.relative_gap, rel=0.5, abs=1e-3
    )
    assert list(clf.kernel_names_) == [f"similarity {j}" for j in range(3)]
    assert clf.eigenvalues_.shape == (3, 40)
    assert hasattr(clf, "kernels_") == (method in ("emkl", "rekl"))


@pytest.mark.parametrize("method", METHODS)
def test_a_prediction_uses_its_own_row_and_the_training_block_alone(method):
    clf = fitted(method)
    together = clf.decision_function(ROWS)
    order = np.random.default_rng(0).permutation(len(TEST))
    np.testing.assert_allclose(clf.decision_function(ROWS[:, order]), together[order], rtol=1e-10)
    alone = [clf.decision_function(ROWS[:, [i]])[0] for i in range(5)]
    np.testing.assert_allclose(alone, together[:5], rtol=1e-10)


def test_the_smooth_rule_is_what_it_says():
    one = BLOCK[:1]
    clf = fitted("denoise", one)
    K = clf.kernel_
    nu = np.trace(K) / 40
    s = clf.scales_[0] * ROWS[0]
    expected = s @ np.linalg.solve(K + nu * np.eye(40), K @ clf.dual_coef_) + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(ROWS[:1]), expected, rtol=1e-8)
    # it minimises |k - s|^2 + nu k'K^+k
    k = K @ np.linalg.solve(K + nu * np.eye(40), s[0])
    values, V = np.linalg.eigh(K)
    keep = values > 1e-9 * values[-1]

    def cost(k):
        return np.sum((k - s[0]) ** 2) + nu * np.sum((V[:, keep].T @ k) ** 2 / values[keep])

    rng = np.random.default_rng(0)
    for _ in range(10):
        assert cost(k) <= cost(k + 0.01 * K @ rng.normal(size=40))


def test_emkl_adds_up_the_rows_of_its_kernels():
    clf = fitted("emkl")
    decision = np.zeros(len(TEST))
    for i in range(3):
        K = clf.kernels_[i]
        k = clf.scales_[i] * ROWS[i] @ np.linalg.solve(K + np.trace(K) / 40 * np.eye(40), K)
        decision += clf.weights_[i] * k @ clf.dual_coef_
    np.testing.assert_allclose(clf.decision_function(ROWS), decision + clf.intercept_, rtol=1e-8)
    np.testing.assert_allclose(clf.kernel_, np.tensordot(clf.weights_, clf.kernels_, 1))


def test_losses_join_the_similarities_of_a_row_each_in_its_way():
    for loss, join in (
        ("squared", lambda rows, clf: rows.mean(axis=0)),
        ("l1", lambda rows, clf: np.median(rows, axis=0)),
        ("frobenius", lambda rows, clf: np.tensordot(clf.weights_, rows, 1)),
    ):
        clf = fitted("eskl", loss=loss, max_iter=40, tol=0.3)
        K = clf.kernel_
        s = join(clf.scales_[:, None, None] * ROWS, clf)
        w = np.linalg.solve(K + np.trace(K) / 40 * np.eye(40), K @ clf.dual_coef_)
        np.testing.assert_allclose(clf.decision_function(ROWS), s @ w + clf.intercept_, rtol=1e-8)
        if loss == "frobenius":
            away = [np.linalg.norm(K - f * B) for f, B in zip(clf.scales_, BLOCK, strict=True)]
            np.testing.assert_allclose(
                clf.weights_, (1 / np.array(away)) / np.sum(1 / np.array(away)), rtol=1e-6
            )


def test_a_garbage_similarity_counts_less_under_frobenius():
    rng = np.random.default_rng(3)
    E = rng.normal(size=(40, 40))
    clf = fitted("eskl", np.stack([BLOCK[1], BLOCK[2], E + E.T]))
    assert clf.weights_[2] < 0.8 * clf.weights_[:2].min()


def test_denoise_of_one_similarity_is_an_svm_on_the_clipped_matrix():
    clf = fitted("denoise", BLOCK[0], rule="classical", tol=1e-6)
    values, V = np.linalg.eigh(BLOCK[0])
    K = (V * np.maximum(values, 0)) @ V.T
    scale = 40 / np.trace(K)
    other = SVC(kernel="precomputed", tol=1e-8).fit(scale * K, Y[TRAIN])
    rows = scale * ROWS[0] @ V[:, values > 0] @ V[:, values > 0].T
    np.testing.assert_allclose(
        clf.decision_function(ROWS[0]), other.decision_function(rows), rtol=0.02, atol=5e-3
    )


def test_matrices_holders_and_functions_are_the_same():
    x = np.random.default_rng(1).normal(size=(50, 2))
    y = (x[:, 0] > 0).astype(int)

    def likeness(a, b):
        return float(np.tanh(a @ b) + 1.0)

    def closeness(a, b):
        return float(-np.abs(a - b).sum() + 3.0)

    matrices = np.array([[[f(a, b) for b in x] for a in x] for f in (likeness, closeness)])
    first, last = np.arange(35), np.arange(35, 50)
    given = SimilarityClassifier(method="rekl").fit(matrices[:, :35, :35], y[:35])
    listed = SimilarityClassifier(method="rekl").fit([M[:35, :35] for M in matrices], y[:35])
    held = SimilarityClassifier(held_similarities(matrices, ["a", "b"]), method="rekl").fit(first, y[:35])
    called = SimilarityClassifier([likeness, closeness], method="rekl").fit(x[:35], y[:35])
    expected = given.decision_function(matrices[:, 35:, :35])
    for found in (
        listed.decision_function(matrices[:, 35:, :35]),
        held.decision_function(last),
        called.decision_function(x[35:]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert list(held.kernel_names_) == ["a", "b"]
    assert list(called.kernel_names_) == ["likeness", "closeness"]


def test_strings():
    def common(a, b):
        return len(set(a) & set(b)) - 0.2 * abs(len(a) - len(b))

    words = ["weave", "wave", "waves", "weaver", "knot", "knit", "knits", "knitted"]
    clf = SimilarityClassifier(common).fit(words, list("wwwwkkkk"))
    assert clf.predict(["weaving", "knots"]).tolist() == ["w", "k"]


def test_several_similarities_in_a_search():
    held = held_similarities(S)
    model = SimilarityClassifier(held, method="rekl", tol=0.05)
    search = GridSearchCV(model, {"rho": [0.5, 5.0], "loss": ["frobenius", "squared"]}, cv=3)
    search.fit(TRAIN[:, None], Y[TRAIN])
    assert search.score(TEST[:, None], Y[TEST]) > 0.7
    assert clone(model).similarity is held


def test_one_similarity_in_a_search_is_sliced_both_ways():
    scores = cross_val_score(SimilarityClassifier(method="denoise"), S[1], Y, cv=3)
    by_hand = []
    from sklearn.model_selection import StratifiedKFold

    for train, test in StratifiedKFold(3).split(S[1], Y):
        clf = SimilarityClassifier(method="denoise").fit(S[1][np.ix_(train, train)], Y[train])
        by_hand.append(clf.score(S[1][np.ix_(test, train)], Y[test]))
    np.testing.assert_allclose(scores, by_hand)


@pytest.mark.parametrize("method", ["eskl", "emkl", "rekl", "indsvm", "denoise"])
@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_three_classes(method, multi_class):
    labels = np.array(["low", "middle", "high"])[THREE]
    clf = SimilarityClassifier(method=method, multi_class=multi_class, tol=0.1, C=10.0)
    clf.fit(BLOCK, labels[TRAIN])
    assert clf.decision_function(ROWS).shape == (30, 3)
    assert clf.score(BLOCK, labels[TRAIN]) > 0.6
    each = multi_class == "ovr" and method != "denoise"
    assert clf.kernel_.shape == ((3, 40, 40) if each else (40, 40))
    assert clf.weights_.shape == ((3, 3) if each else (3,))
    assert clf.certificate_.relative_gap <= 0.1
    assert ("problem" in clf.trace_) == each


def test_one_against_the_rest_is_what_two_classes_are():
    clf = fitted("rekl")
    three = SimilarityClassifier(method="rekl", tol=3e-2).fit(BLOCK, THREE[TRAIN])
    two = SimilarityClassifier(method="rekl", tol=3e-2).fit(BLOCK, THREE[TRAIN] == 1)
    np.testing.assert_allclose(three.decision_function(ROWS)[:, 1], two.decision_function(ROWS))
    assert clf.classes_.tolist() == [-1.0, 1.0]


def test_weights_of_samples_and_classes():
    weight = np.ones(40)
    weight[::4] = 0.0
    zeroed = SimilarityClassifier(method="eskl", loss="squared").fit(BLOCK, Y[TRAIN], sample_weight=weight)
    assert np.all(zeroed.dual_coef_[::4] == 0)
    factor = SimilarityClassifier(method="denoise", class_weight={-1.0: 2.0, 1.0: 3.0}, tol=1e-6)
    same = SimilarityClassifier(method="denoise", tol=1e-6)
    np.testing.assert_allclose(
        factor.fit(BLOCK, Y[TRAIN]).decision_function(ROWS),
        same.fit(BLOCK, Y[TRAIN], sample_weight=np.where(Y[TRAIN] > 0, 3.0, 2.0)).decision_function(ROWS),
        atol=1e-6,
    )


@pytest.mark.parametrize("class_weight", ["balanced", {1.0: 4.0}])
def test_weights_of_samples_are_samples_repeated_in_an_svm(class_weight):
    rare = np.where(np.arange(40) < 30, Y[TRAIN], 1.0)
    counts = np.where(rare > 0, 1 + np.arange(40) % 2, 4)  # the rare class weighs more than the other
    clf = SimilarityClassifier(method="denoise", rule="classical", class_weight=class_weight, tol=1e-8)
    clf.fit(BLOCK[0], rare, sample_weight=counts)
    rows = np.repeat(np.arange(40), counts)
    svm = SVC(kernel="precomputed", class_weight=class_weight, tol=1e-8)
    svm.fit(clf.kernel_[np.ix_(rows, rows)], rare[rows])
    # under the classical rule a training row becomes its row of the kernel
    np.testing.assert_allclose(
        clf.decision_function(BLOCK[0]), svm.decision_function(clf.kernel_[:, rows]), atol=1e-4
    )


def test_scale_does_not_matter():
    one = fitted("eskl").decision_function(ROWS)
    other = (
        SimilarityClassifier(method="eskl", tol=3e-2).fit(BLOCK * 7.0, Y[TRAIN]).decision_function(ROWS * 7.0)
    )
    np.testing.assert_allclose(one, other, atol=0.02)  # both within the tolerance of the same optimum
    raw = fitted("denoise", BLOCK * 7.0, normalize=False)
    np.testing.assert_array_equal(raw.scales_, 1.0)


def test_a_fitted_model_can_be_pickled():
    clf = fitted("rekl")
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.decision_function(ROWS), clf.decision_function(ROWS))


def test_a_fit_cut_short_says_so():
    with pytest.warns(KernelWeaveConvergenceWarning, match="the iterations allowed were used up"):
        SimilarityClassifier(method="eskl", loss="l1", max_iter=2, tol=1e-4).fit(BLOCK, Y[TRAIN])


def test_a_callback_stops():
    seen = []
    with pytest.warns(KernelWeaveConvergenceWarning, match="callback"):
        SimilarityClassifier(
            method="eskl", loss="l1", tol=1e-5, callback=lambda row: seen.append(row) or len(seen) == 3
        ).fit(BLOCK, Y[TRAIN])
    assert [row["iteration"] for row in seen] == [1, 2, 3]


# ---- what is refused ----------------------------------------------------------------------------------------------


def test_asymmetry_is_repaired_and_reported():
    skewed = BLOCK[0].copy()
    skewed[0, 1] += 5.0
    with pytest.warns(KernelWeaveWarning, match=r"similarity 0 is not symmetric: .* 19 %") as caught:
        clf = SimilarityClassifier(method="denoise").fit(skewed, Y[TRAIN])
    assert len(caught) == 1
    same = SimilarityClassifier(method="denoise").fit((skewed + skewed.T) / 2, Y[TRAIN])
    np.testing.assert_array_equal(clf.dual_coef_, same.dual_coef_)


def broken(change):
    stack = BLOCK.copy()
    change(stack)
    return stack


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (BLOCK[0][:, :39], "must be square"),
        (BLOCK[:, :, :39], "must be square"),
        (broken(lambda s: s[1].__setitem__((3, 4), np.nan)), "matrix 1 contains NaN"),
        (broken(lambda s: s[2].fill(0.0)), "similarity 2 is zero"),
        (-np.eye(40), "no positive eigenvalue"),
        ([np.eye(40), np.eye(39)], "of one shape"),
        (BLOCK[:, :30, :30], "inconsistent numbers of samples"),
    ],
)
def test_bad_similarities(X, words):
    with pytest.raises(ValueError, match=words):
        SimilarityClassifier(method="denoise").fit(X, Y[TRAIN])


@pytest.mark.parametrize(
    ("stack", "rows", "words"),
    [
        (BLOCK, ROWS[:, :, :39], r"must have shape \(3, n_new, 40\)"),
        (BLOCK, ROWS[:2], r"must have shape \(3, n_new, 40\)"),
        (BLOCK[0], ROWS[0][:, :39], "39 features"),
        (BLOCK, np.full_like(ROWS, np.nan), "rows of new samples: matrix 0 contains NaN"),
    ],
)
def test_bad_rows(stack, rows, words):
    clf = fitted("denoise", stack)
    with pytest.raises(ValueError, match=words):
        clf.predict(rows)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ((lambda X: np.nan, np.sign), "the value is nan"),
        ((lambda X: X, np.sign), "one number"),
        ((lambda X: 0.0, lambda X: X[0]), r"the subgradient should have shape \(40, 40\)"),
        ((lambda X: 0.0, lambda X: X * np.nan), "the subgradient contains nan"),
        ((lambda X: 0.0, np.sign, lambda Z: np.nan), "conjugate is nan"),
        ("l2", "unknown similarity loss"),
    ],
)
def test_bad_losses(loss, words):
    with pytest.raises(ValueError, match=words):
        SimilarityClassifier(method="eskl", loss=loss).fit(BLOCK, Y[TRAIN])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "esk"}, "Did you mean 'eskl'"),
        ({"rho": 0.0}, "rho must be"),
        ({"C": -1.0}, "C must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"rule": "naive"}, "rule must be"),
        ({"multi_class": "all"}, "multi_class must be"),
        ({"similarity": "cosine"}, "similarity must be"),
        ({"similarity": []}, "similarity must be"),
        ({"method": "eskl", "solver": "rekl"}, "needs a solver of its own kind"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        SimilarityClassifier(**parameters).fit(BLOCK, Y[TRAIN])


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        SimilarityClassifier().fit(BLOCK, np.ones(40))
    with pytest.raises(ValueError, match="at least two classes"):
        SimilarityClassifier().fit(BLOCK, Y[TRAIN], sample_weight=(Y[TRAIN] > 0).astype(float))


def test_holders_are_checked():
    with pytest.raises(ValueError, match="2 names"):
        held_similarities(S, ["a", "b"])
    with pytest.warns(KernelWeaveWarning, match="a is not symmetric"):
        held_similarities(np.array([[1.0, 2.0], [0.0, 1.0]]), ["a"])
    with pytest.raises(ValueError, match="asks for sample 70"):
        SimilarityClassifier(held_similarities(S)).fit(np.arange(71), np.arange(71) % 2)


def test_denoise_in_a_pipeline_gives_the_same_kernel():
    step = DenoiseSpectrum().fit(BLOCK[0])
    np.testing.assert_allclose(step.kernel_, fitted("denoise", BLOCK[0]).kernel_)
