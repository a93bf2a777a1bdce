"""Noisy labels: the estimate, the suspects, and every method against its definition."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from kernelweave import MeanKernelRidgeClassifier, MKLClassifier, NoisyLabelMKLClassifier
from kernelweave import kernels as kw
from kernelweave.estimators._noise import confident_joint, estimate_noise
from kernelweave.estimators.baselines import leave_one_out
from kernelweave.kernels import Schema, expand_kernels, resolve_kernels
from kernelweave.losses.margin import CorrectedLogistic, CorrectedSquared

BANK = kw.gaussian([1.0, 3.0, 9.0]) + kw.linear()


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def flipped(y, rate, seed=0):
    rng = np.random.default_rng(seed)
    wrong = rng.random(y.size) < rate
    return np.where(wrong, 1 - y, y), wrong


# ---- leave-one-out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_leaving_one_out(intercept, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 2))
    K = X @ X.T + np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    y = rng.normal(size=(15, 2))
    w = rng.uniform(0.5, 2.0, size=15) if weighted else np.ones(15)
    w[[2, 7]] = 0.0 if weighted else 1.0
    C = 0.7
    found = leave_one_out(K, y, np.array([C]), intercept, w)
    for i in range(15):
        rest = np.flatnonzero((np.arange(15) != i) & (w > 0))
        A = np.zeros((rest.size + 1, rest.size + 1))
        A[:-1, :-1] = K[np.ix_(rest, rest)] + np.diag(0.5 / (C * w[rest]))
        A[:-1, -1] = A[-1, :-1] = 1.0 if intercept else 0.0
        A[-1, -1] = 0.0 if intercept else 1.0
        solved = np.linalg.solve(A, np.vstack([y[rest], np.zeros((1, 2))]))
        wanted = K[i, rest] @ solved[:-1] + (solved[-1] if intercept else 0.0)
        np.testing.assert_allclose(found.predictions[i], wanted, atol=1e-9)
    misses = (found.predictions - y)[w > 0]
    assert found.errors[0] == pytest.approx(w[w > 0] @ np.mean(misses**2, axis=1) / w.sum())


# ---- how many are wrong, and which ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2, 0.3])
def test_the_rate_is_found_where_classes_are_apart(cancer, rate):
    X, y = cancer
    errors, covered = [], 0
    for seed in range(3):
        noisy, wrong = flipped(y, rate, seed)
        clf = NoisyLabelMKLClassifier(BANK).fit(X, noisy)
        errors.append(clf.noise_rate_ - wrong.mean())
        low, high = clf.noise_rate_interval_
        covered += low <= wrong.mean() <= high
        assert 0 <= low <= clf.noise_rate_ <= high <= 0.5
        assert "rests on the assumption" in clf.noise_rate_basis_
        assert clf.findings_[-1] == clf.noise_rate_basis_
    assert abs(np.mean(errors)) < 0.03
    assert covered >= 2


def test_suspects_are_the_flipped_ones(cancer):
    X, y = cancer
    noisy, wrong = flipped(y, 0.2)
    clf = NoisyLabelMKLClassifier(BANK).fit(X, noisy)
    top = clf.suspects_[: round(0.2 * y.size)]
    assert wrong[top].sum() / wrong.sum() > 0.85
    assert np.all(np.diff(clf.label_quality_[clf.suspects_]) >= 0)
    assert np.all((clf.label_quality_ >= 0) & (clf.label_quality_ <= 1))
    # quality is a probability: about as many labels are wrong as it says
    assert np.sum(1 - clf.label_quality_) == pytest.approx(wrong.sum(), rel=0.35)


def test_flips_of_one_class_only_are_told_from_those_of_the_other(cancer):
    X, y = cancer
    rng = np.random.default_rng(1)
    noisy = np.where((y == 1) & (rng.random(y.size) < 0.3), 0, y)
    rates = NoisyLabelMKLClassifier(BANK).fit(X, noisy).class_noise_rates_
    assert rates[1] == pytest.approx(0.3, abs=0.08)
    assert rates[0] < 0.1


def test_labels_of_pure_chance_are_as_bad_as_it_gets():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 4)
    found = estimate_noise(K, y, 2)
    assert 0.3 < found.rate <= 0.5
    assert found.interval[1] <= 0.5


def test_the_interval_is_that_of_agresti_and_coull_where_no_prediction_is_wrong():
    """Two groups that are apart: the upper end is of the confident half, the lower one zero."""
    codes = np.repeat([0, 1], 20)
    found = estimate_noise(10.0 * (codes[:, None] == codes) + 0.1 * np.eye(40), codes, 2)
    p = (0 + 2) / (20 + 4)
    assert found.rate == 0.0
    assert found.interval == (0.0, pytest.approx(2.0 * np.sqrt(p * (1 - p) / (20 + 4))))


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(y.size) < 0.15
    noisy = np.where(wrong, (y + rng.integers(1, 3, y.size)) % 3, y)
    clf = NoisyLabelMKLClassifier(BANK).fit(scale(X), noisy)
    assert clf.noise_rate_ == pytest.approx(wrong.mean(), abs=0.06)
    assert clf.class_noise_rates_.shape == (3,)
    assert np.ndim(clf.C_) == 0  # one C for all classes: each alone would be tuned on a third of the evidence
    assert clf.score(scale(X), y) > 0.92
    for method in ("confident", "stochastic", "trimmed", "ramp", "corrected"):
        assert NoisyLabelMKLClassifier(BANK, method=method).fit(scale(X), noisy).score(scale(X), y) > 0.85


def test_the_rate_of_several_classes_is_read_off_the_sure_half():
    """Sure are the samples whose largest score is far above the second."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 2))
    y = np.argmax(
        X @ np.array([[1.0, -0.5, -0.5], [0.0, 0.9, -0.9]]) + 0.5 * rng.normal(size=(150, 3)), axis=1
    )
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    scores = leave_one_out(K, np.where(y[:, None] == np.arange(3), 1.0, -1.0)).predictions
    top = np.sort(scores, axis=1)
    half = np.argsort(top[:, 1] - top[:, 2], kind="stable")[:75]
    wrong = np.argmax(scores, axis=1) != y
    assert np.mean(wrong[half]) < 0.5 * np.mean(wrong)
    assert estimate_noise(K, y, 3).rate == pytest.approx(np.mean(wrong[half]), abs=0.02)


def test_annotators_decide_the_rate_where_there_are_several(cancer):
    X, y = cancer
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((y.size, 3)) < 0.3, 1 - y[:, None], y[:, None]).astype(float)
    votes[rng.random(votes.shape) < 0.2] = np.nan
    votes[np.isnan(votes).all(axis=1), 0] = 0.0
    clf = NoisyLabelMKLClassifier(BANK).fit(X, votes)
    wrong = np.mean(clf.annotated_.labels != y)
    low, high = clf.noise_rate_interval_
    assert low <= wrong <= high
    assert clf.noise_rate_ == pytest.approx(wrong, abs=0.06)
    assert "annotators contradict each other" in clf.noise_rate_basis_
    assert clf.class_noise_rates_.shape == (2,)
    known = NoisyLabelMKLClassifier(BANK, noise_rate=0.2).fit(X, votes)
    assert known.noise_rate_ == 0.2
    assert known.findings_ == ()


# ---- the methods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        (0.5, "; {} suspected labels count 0.5"),
        (0.0, "; {} suspected labels left out"),
        (1.0, ""),
        (None, ""),
    ],
)
def test_auto_is_ridge_on_the_mean_kernel_and_says_so(cancer, weight, what):
    X, y = cancer
    noisy, wrong = flipped(y, 0.2)
    clf = NoisyLabelMKLClassifier(BANK, suspect_weight=weight).fit(X, noisy)
    suspects = confident_by_hand(X, noisy, BANK)
    assert wrong[suspects].mean() > 0.8
    share = np.where(suspects, 1.0 if weight is None else weight, 1.0)
    if what:
        np.testing.assert_array_equal(clf.sample_share_, share)
    else:
        assert not hasattr(clf, "sample_share_")
    ridge = MeanKernelRidgeClassifier(BANK).fit(X, noisy, sample_weight=share)
    np.testing.assert_allclose(clf.decision_function(X), ridge.decision_function(X), atol=1e-8)
    said = f"squared loss on the mean kernel, C = {ridge.C_:.3g}, by leave-one-out"
    assert clf.picked_ == said + what.format(suspects.sum())
    assert clf.certificate_.relative_gap < 1e-3


# ---- confident learning --------------------------------------------------------------------------------------------


def leave_one_out_probabilities(X, y, bank, weights=None):
    """Calibrated predictions of ridge on a mixture for samples that it has not seen; of the mean kernel by default."""
    kernels = resolve_kernels(expand_kernels(bank, Schema.of(X)), X)
    K = np.average([kernel(X) * len(X) / np.trace(kernel(X)) for kernel in kernels], axis=0, weights=weights)
    k = int(y.max()) + 1
    scores = leave_one_out(K, np.where(y[:, None] == np.arange(k), 1.0, -1.0)).predictions
    features = scores[:, 1:] if k == 2 else scores
    return LogisticRegression(C=1e3, max_iter=1000).fit(features, y).predict_proba(features)


def confident_by_hand(X, y, bank, weights=None):
    """Which labels the confident joint contradicts: sample by sample, as [Northcutt et al. 2021, (1)] has it."""
    P = leave_one_out_probabilities(X, y, bank, weights)
    thresholds = [
        np.mean([p[j] for p, label in zip(P, y, strict=True) if label == j]) for j in range(P.shape[1])
    ]
    suspects = []
    for p, label in zip(P, y, strict=True):
        candidates = [(p[j], j) for j in range(P.shape[1]) if p[j] >= thresholds[j] - 1e-12]
        suspects.append(bool(candidates) and max(candidates)[1] != label)
    return np.array(suspects)


def test_the_confident_joint_is_its_definition():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 1.0, 1.0], size=400)
    codes = np.array([rng.choice(3, p=p) for p in P])
    joint, likely = confident_joint(P, codes)
    thresholds = np.array([P[codes == j, j].mean() for j in range(3)])
    counts = np.zeros((3, 3))
    for p, label, found in zip(P, codes, likely, strict=True):
        above = [j for j in range(3) if p[j] >= thresholds[j]]
        wanted = max(above, key=lambda j: p[j]) if above else -1
        assert found == wanted
        if above:
            counts[label, wanted] += 1
    wanted = counts / counts.sum(axis=1, keepdims=True) * np.bincount(codes)[:, None] / 400
    np.testing.assert_allclose(joint, wanted, atol=1e-12)
    np.testing.assert_allclose(joint.sum(axis=1), np.bincount(codes) / 400)
    # samples that do not count change nothing
    doubled, _ = confident_joint(np.vstack([P, P]), np.concatenate([codes, 2 - codes]), np.arange(800) < 400)
    np.testing.assert_allclose(doubled, joint)


@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("norm", ["l1", "uniform"])
def test_confident_is_the_weighted_fit_without_its_suspects(cancer, norm, weight):
    X, y = cancer
    noisy, wrong = flipped(y[:300], 0.2)
    options = {"norm": norm, "C": 2.0, "tol": 1e-7}
    clf = NoisyLabelMKLClassifier(BANK, method="confident", suspect_weight=weight, **options).fit(
        X[:300], noisy
    )
    share = np.where(confident_by_hand(X[:300], noisy, BANK), weight, 1.0)
    np.testing.assert_array_equal(clf.sample_share_, share)
    plain = MKLClassifier(BANK, **options).fit(X[:300], noisy, sample_weight=share)
    assert clf.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=2e-3)
    assert wrong[share < 1].mean() > 0.7
    assert clf.score(X[300:], y[300:]) > 0.9
    assert f"{np.count_nonzero(share < 1)} suspected labels" in clf.picked_
    assert not hasattr(clf, "objectives_")  # one choice, before the fit


def test_suspects_come_from_the_mixture_that_auto_takes(cancer):
    """Few kernels on all columns, many on single ones: both groups count alike, also in predictions about labels."""
    X, y = cancer
    noisy, _ = flipped(y[:250], 0.25)
    bank = kw.gaussian([4.0, 8.0]) + kw.per_feature(kw.gaussian(1.0))
    weights = np.r_[np.full(2, 1 / 4), np.full(30, 1 / 60)]
    for method in ("auto", "confident"):
        clf = NoisyLabelMKLClassifier(bank, method=method, suspect_weight=0.5).fit(X[:250], noisy)
        np.testing.assert_array_equal(clf.sample_share_ < 1, confident_by_hand(X[:250], noisy, bank, weights))
    assert np.any(
        (clf.sample_share_ < 1) != confident_by_hand(X[:250], noisy, bank)
    )  # the mean kernel differs


def test_predictions_that_contradict_a_third_of_the_labels_name_no_suspects(cancer):
    X, y = cancer
    for rate, filtered in ((0.28, True), (0.4, False)):
        noisy, _ = flipped(y, rate)
        clf = NoisyLabelMKLClassifier(BANK, suspect_weight=0.5).fit(X, noisy)
        kernels = [kernel(X) for kernel in BANK]
        K = np.mean([one * len(X) / np.trace(one) for one in kernels], axis=0)
        scores = leave_one_out(K, np.where(noisy[:, None] == [0, 1], 1.0, -1.0)).predictions
        contradicted = np.mean(np.argmax(scores, axis=1) != noisy)
        assert (contradicted <= 1 / 3) == filtered
        assert np.any(clf.sample_share_ < 1) == filtered
        assert ("all labels count alike, because predictions contradict" in clf.picked_) != filtered
        # who asks for the filter gets it
        asked = NoisyLabelMKLClassifier(BANK, method="confident").fit(X, noisy)
        assert np.any(asked.sample_share_ < 1)


def test_suspects_of_several_classes():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(y.size) < 0.25
    noisy = np.where(wrong, (y + rng.integers(1, 3, y.size)) % 3, y)
    for multi_class in ("ovr", "shared"):
        clf = NoisyLabelMKLClassifier(BANK, method="confident", multi_class=multi_class).fit(scale(X), noisy)
        np.testing.assert_array_equal(clf.sample_share_ < 1, confident_by_hand(scale(X), noisy, BANK))
        assert clf.sample_share_.shape == (150,)
        assert clf.confident_joint_.shape == (3, 3)
        assert 1 - np.trace(clf.confident_joint_) == pytest.approx(wrong.mean(), abs=0.06)
        assert clf.score(scale(X), y) > 0.9
    again = NoisyLabelMKLClassifier(BANK, method="confident", multi_class="shared", random_state=3).fit(
        scale(X), noisy
    )
    np.testing.assert_array_equal(again.sample_share_, clf.sample_share_)  # nothing is drawn
    np.testing.assert_array_equal(again.dual_coef_, clf.dual_coef_)


def test_no_class_is_filtered_away():
    """Labels of one class that all others contradict: at most half of them, and none of a class of four."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    for count in (2, 4, 5, 9, 30):
        y = np.zeros(200, dtype=int)
        y[:100] = 1
        X[:100, 0] += 4.0 if count == 2 else 0.0
        y[:count] = 2  # in the midst of class 1
        for method, weight in (("auto", 0.0), ("confident", 0.0), ("confident", 0.5)):
            clf = NoisyLabelMKLClassifier(BANK, method=method, suspect_weight=weight).fit(X, y)
            for label in range(3):
                own = y == label
                assert np.count_nonzero(clf.sample_share_[own] < 1) <= (
                    own.sum() // 2 if own.sum() >= 5 else 0
                )
            assert np.isfinite(clf.decision_function(X)).all()


def test_few_samples_and_samples_without_weight():
    rng = np.random.default_rng(0)
    for n in (4, 6, 9, 12):
        X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
        clf = NoisyLabelMKLClassifier(BANK, suspect_weight=0.0).fit(X, y)
        assert np.unique(y[clf.sample_share_ > 0]).size == 2
    X, y = load_breast_cancer(return_X_y=True)
    noisy, _ = flipped(y, 0.2)
    weight = (np.arange(y.size) % 3 > 0).astype(float)
    clf = NoisyLabelMKLClassifier(BANK, suspect_weight=0.5).fit(scale(X), noisy, sample_weight=weight)
    assert np.all(clf.sample_share_[weight == 0] == 1)
    assert np.any(clf.sample_share_[weight > 0] < 1)


def test_a_given_rate_limits_the_suspects(cancer):
    X, y = cancer
    noisy, _ = flipped(y, 0.2)
    free = NoisyLabelMKLClassifier(BANK, suspect_weight=0.5).fit(X, noisy)
    few = NoisyLabelMKLClassifier(BANK, suspect_weight=0.5, noise_rate=0.05).fit(X, noisy)
    none = NoisyLabelMKLClassifier(BANK, suspect_weight=0.5, noise_rate=0.0).fit(X, noisy)
    assert np.count_nonzero(few.sample_share_ < 1) == round(0.05 * y.size)
    assert np.all(free.sample_share_[few.sample_share_ < 1] < 1)
    assert np.all(none.sample_share_ == 1)
    # those that are contradicted the most
    P = leave_one_out_probabilities(X, noisy, BANK)
    lead = P[np.arange(y.size), 1 - noisy] - P[np.arange(y.size), noisy]
    kept = lead[few.sample_share_ < 1]
    assert kept.min() >= np.sort(lead[free.sample_share_ < 1])[::-1][kept.size - 1] - 1e-9


def test_another_method_forgets_what_the_last_one_counted(cancer):
    X, y = cancer
    clf = NoisyLabelMKLClassifier(BANK, method="trimmed", noise_rate=0.1).fit(X[:100], y[:100])
    assert hasattr(clf, "objectives_")
    clf.set_params(method="stochastic").fit(X[:100], y[:100])
    assert not hasattr(clf, "sample_share_")
    assert not hasattr(clf, "objectives_")


def test_auto_tells_groups_of_kernels_apart():
    """Few kernels that see the interaction, many that cannot: their mean hardly sees it either."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    pair = kw.gaussian([0.5, 1.0]).on([0, 1])
    bank = pair + kw.per_feature(kw.gaussian(2.0 ** np.arange(-3, 5)))
    clf = NoisyLabelMKLClassifier(bank).fit(X, y)
    assert clf.picked_.startswith("squared loss on the mean of the kernels on 2 columns")
    np.testing.assert_allclose(clf.weights_, np.where(np.arange(98) < 2, 0.5, 0.0))
    # noise leaves doubt, and then both groups count alike
    clf = NoisyLabelMKLClassifier(bank).fit(X, flipped(y, 0.1)[0])
    assert clf.picked_.startswith("squared loss on the mean of all groups of kernels alike")
    np.testing.assert_allclose(clf.weights_, np.where(np.arange(98) < 2, 1 / 4, 1 / 192))
    fresh = rng.normal(size=(300, 12))
    right = (fresh[:, 0] * fresh[:, 1] > 0).astype(int)
    assert clf.score(fresh, right) > MeanKernelRidgeClassifier(bank).fit(X, y).score(fresh, right) + 0.03


@pytest.mark.parametrize("method", ["auto", "confident", "stochastic", "trimmed", "ramp", "corrected"])
def test_every_method_lives_with_noise(cancer, method):
    X, y = cancer
    noisy, _ = flipped(y, 0.15)
    clf = NoisyLabelMKLClassifier(BANK, method=method).fit(X[:400], noisy[:400])
    assert clf.score(X[400:], y[400:]) > 0.9
    assert clf.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("method", ["trimmed", "ramp"])
def test_rounds_lower_the_objective_and_end_where_nothing_moves(cancer, method):
    X, y = cancer
    noisy, wrong = flipped(y[:200], 0.2)
    clf = NoisyLabelMKLClassifier(BANK, method=method, noise_rate=0.2, tol=1e-6).fit(X[:200], noisy)
    values = np.array(clf.objectives_)
    assert values.size > 1
    assert np.all(np.diff(values[1 if method == "trimmed" else 0 :]) <= 1e-5 * values[0])
    # what was left out is what was flipped, mostly
    assert wrong[clf.sample_share_ == 0].mean() > 0.7
    losses = np.maximum(0, 1 - np.where(noisy == 1, 1, -1) * clf.decision_function(X[:200]))
    if method == "ramp":
        np.testing.assert_array_equal(clf.sample_share_ == 1, losses < 1)
    else:
        assert clf.sample_share_.sum() == 160
        assert losses[clf.sample_share_ == 1].max() <= losses[clf.sample_share_ == 0].min() + 1e-6
    # the last fit is the weighted problem of those samples
    kept = clf.sample_share_ == 1
    alone = MKLClassifier(BANK, tol=1e-6).fit(X[:200], noisy, sample_weight=kept.astype(float))
    np.testing.assert_allclose(alone.decision_function(X), clf.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("method", ["trimmed", "ramp"])
def test_samples_are_chosen_by_decisions_with_the_intercept(method):
    """Far from the origin the intercept is most of what tells the classes apart."""
    X = np.linspace(4.0, 6.0, 41)[:, None]
    y = (X[:, 0] > 5.0).astype(int)
    y[[3, 37]] = 1 - y[[3, 37]]
    clf = NoisyLabelMKLClassifier(
        kw.linear(), method=method, noise_rate=2 / 41, normalize=None, C=100.0, tol=1e-6
    ).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(clf.sample_share_ == 0), [3, 37])


@pytest.mark.parametrize("method", ["trimmed", "ramp"])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 100.0])
def test_rounds_never_leave_a_class_out(method, C):
    X, y = make_classification(60, 4, weights=[0.8], flip_y=0.2, random_state=1)
    clf = NoisyLabelMKLClassifier(BANK, method=method, noise_rate=0.3, C=C, max_rounds=6).fit(X, y)
    assert np.unique(y[clf.sample_share_ > 0]).size == 2
    assert np.isfinite(clf.decision_function(X)).all()
    assert len(clf.objectives_) <= 6


def test_stochastic_without_noise_and_with_the_whole_budget_is_l1():
    X, y = make_classification(80, 4, flip_y=0.1, random_state=0)
    clf = NoisyLabelMKLClassifier(BANK, method="stochastic", budget=1.0, C=0.5, tol=1e-6).fit(X, y)
    plain = MKLClassifier(BANK, C=0.5, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(("make", "base"), [(CorrectedLogistic, "logistic"), (CorrectedSquared, "squared")])
@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.2, 0.2), (0.3, 0.1)])
def test_corrected_losses_are_unbiased(make, base, rates):
    """The expectation over the flips of the corrected loss is the loss of the clean label, up to a constant in f."""
    loss, clean = make(*rates), make()
    rho = {1.0: rates[0], -1.0: rates[1]}
    f = np.linspace(-3, 3, 13)
    for y in (1.0, -1.0):
        ones = np.full(f.shape, y)
        expected = (1 - rho[y]) * loss.value(ones, f) + rho[y] * loss.value(-ones, f)
        wanted = clean.value(ones, f)
        np.testing.assert_allclose(expected - expected[6], wanted - wanted[6], atol=1e-12)
        slope = (1 - rho[y]) * loss.gradient(ones, f) + rho[y] * loss.gradient(-ones, f)
        np.testing.assert_allclose(slope, clean.gradient(ones, f), atol=1e-12)
        # Fenchel-Young with equality at the gradient
        u = loss.gradient(ones, f)
        np.testing.assert_allclose(loss.value(ones, f) + loss.conjugate(ones, u), u * f, atol=1e-9)
        low, high = loss.bounds(ones)
        assert np.all((-u >= low - 1e-12) & (-u <= high + 1e-12))


@pytest.mark.parametrize("make", [CorrectedLogistic, CorrectedSquared])
@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((0.5, 0.5), r"positive_rate \+ negative_rate must be below 1, got 1:"),
        ((0.3, 0.9), r"positive_rate \+ negative_rate must be below 1, got 1\.2:"),
        ((1.0, 0.0), r"positive_rate must be a share in \[0, 1\), got 1\.0"),
        ((0.0, -0.1), r"negative_rate must be a share in \[0, 1\), got -0\.1"),
    ],
)
def test_rates_that_leave_nothing_in_the_labels_are_refused(make, rates, said):
    X, y = make_classification(20, 4, random_state=0)
    with pytest.raises(ValueError, match=said):
        MKLClassifier(BANK, loss=make(*rates)).fit(X, y)
    make(0.5, 0.49).check()


def test_corrected_without_noise_is_the_plain_loss(cancer):
    X, y = cancer
    for loss in ("logistic", "squared"):
        clf = NoisyLabelMKLClassifier(BANK, method="corrected", loss=loss, noise_rate=0.0, tol=1e-6).fit(
            X[:100], y[:100]
        )
        plain = MKLClassifier(BANK, loss=loss, tol=1e-6).fit(X[:100], y[:100])
        np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_estimated_rates_never_contradict_the_labels(loss):
    """Chance labels of few positives: rates near one half, which the labels cannot have come from."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), (rng.random(80) < 0.2).astype(int)
    clf = NoisyLabelMKLClassifier(BANK, method="corrected", loss=loss).fit(X, y)
    assert np.isfinite(clf.decision_function(X)).all()
    with pytest.raises(ValueError, match="noise_rate contradicts the labels"):
        NoisyLabelMKLClassifier(BANK, method="corrected", loss=loss, noise_rate={0: 0.4, 1: 0.1}).fit(X, y)


# ---- several annotators --------------------------------------------------------------------------------------------


def test_annotators_are_joined_and_their_agreement_counts(cancer):
    X, y = cancer
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((y.size, 5)) < 0.25, 1 - y[:, None], y[:, None]).astype(float)
    votes[rng.random(votes.shape) < 0.3] = np.nan
    votes[:, 0] = np.where(np.isnan(votes).all(axis=1), y, votes[:, 0])
    clf = NoisyLabelMKLClassifier(BANK).fit(X, votes)
    assert clf.score(X, y) > 0.94
    assert clf.classes_.tolist() == [0, 1]
    assert clf.annotated_.confidence.min() >= 0.5
    same = NoisyLabelMKLClassifier(BANK)
    same.fit(X, clf.annotated_.labels, sample_weight=clf.annotated_.confidence)
    np.testing.assert_allclose(same.decision_function(X), clf.decision_function(X), atol=1e-9)


def test_the_classifier_joins_the_annotators(cancer, monkeypatch):
    """Votes counted in place of crowd-kit's model: what matters is who votes."""
    X, y = cancer
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((y.size, 2)) < 0.3, 1 - y[:, None], y[:, None])
    asked = []

    class Counted:
        def __init__(self, n_iter):
            pass

        def fit_predict_proba(self, table):
            asked.append(table)
            return pd.crosstab(table["task"], table["label"], normalize="index")

    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", SimpleNamespace(DawidSkene=Counted))
    monkeypatch.setitem(sys.modules, "crowdkit", SimpleNamespace())
    alone = NoisyLabelMKLClassifier(BANK, crowd="dawid_skene", crowd_rounds=0).fit(X, votes)
    joined = NoisyLabelMKLClassifier(BANK, crowd="dawid_skene", crowd_rounds=2).fit(X, votes)
    assert [len(table) for table in asked] == [2 * y.size] * 2 + [3 * y.size] * 2
    assert (asked[-1]["worker"] == "the classifier").sum() == y.size
    assert np.mean(joined.annotated_.labels == y) > np.mean(alone.annotated_.labels == y) + 0.1
    assert joined.score(X, y) > 0.9


def test_the_exact_set_is_tighter():
    X, y = make_classification(80, 4, flip_y=0.2, random_state=0)
    options = {"method": "stochastic", "noise_rate": 0.3, "tol": 1e-6}
    loose, exact = (
        NoisyLabelMKLClassifier(BANK, exact_set=exact, **options).fit(X, y).certificate_.primal
        for exact in (False, True)
    )
    assert exact <= loose * (1 + 1e-6)  # a maximum over a smaller set


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "stocastic"}, "Did you mean 'stochastic'"),
        ({"noise_rate": 0.5}, r"noise_rate must be a share in \[0, 0.5\)"),
        ({"noise_rate": -0.1}, r"noise_rate must be a share in \[0, 0.5\)"),
        ({"noise_rate": "guess"}, "'estimate' or a share"),
        ({"noise_rate": {7: 0.1}}, "names the class 7"),
        ({"noise_rate": {0: 0.7}}, "noise_rate of class 0"),
        ({"budget": 0.0}, r"budget must be in \(0, 1\]"),
        ({"crowd": "vote"}, "crowd must be one of majority"),
        ({"method": "corrected", "loss": "hinge"}, "needs loss='logistic' or 'squared'"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"suspect_weight": 1.5}, r"suspect_weight must be a share in \[0, 1\]"),
        ({"suspect_weight": "none"}, r"suspect_weight must be a share in \[0, 1\]"),
        ({"suspect_weight": True}, r"suspect_weight must be a share in \[0, 1\]"),
        ({"crowd_rounds": -1}, "crowd_rounds must be a whole number >= 0"),
    ],
)
def test_bad_parameters(cancer, options, words):
    X, y = cancer
    with pytest.raises(ValueError, match=words):
        NoisyLabelMKLClassifier(BANK, **options).fit(X[:60], y[:60])


def test_corrected_with_shared_weights_is_refused_for_several_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="use multi_class='ovr'"):
        NoisyLabelMKLClassifier(BANK, method="corrected", multi_class="shared").fit(X, y)


def test_a_sample_without_any_label_is_named():
    votes = [["a", "b"], [None, None], ["b", "b"]]
    with pytest.raises(ValueError, match=r"no label for 1 of 3 samples \(1\)"):
        NoisyLabelMKLClassifier().fit(np.eye(3), votes)


def test_what_annotators_said_is_forgotten_with_the_next_fit():
    X, y = make_classification(40, 4, random_state=0)
    several = np.column_stack([y, y, np.where(np.arange(40) < 5, 1 - y, y)])
    clf = NoisyLabelMKLClassifier(BANK, method="trimmed", noise_rate=0.1, max_rounds=2).fit(X, several)
    assert np.array_equal(clf.annotated_.labels, y)
    assert not hasattr(clf.fit(X, y), "annotated_")
