"""How C and norm are chosen: ties, what the scores leave open, folds, seconds; each by its definition."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold

from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.estimators._calibration import scaled_log_loss

from . import by_hand
from .data import bank

CS = np.logspace(-2, 3, 7)
FOLDS = StratifiedKFold(4, shuffle=True, random_state=3)
VIEWS = kw.per_view({"a": slice(0, 4), "b": slice(4, 8), "c": slice(8, 12)}, kw.linear())


def views(n: int = 60, seed: int = 103):
    """Three views of two classes; the second view repeats the first with noise."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["sick", "well"], n // 2))
    X = rng.normal(size=(n, 12))
    X[:, :4] += np.where(y == "sick", 1.5, 0.0)[:, None]
    X[:, 4:8] = X[:, :4] + 0.7 * rng.normal(size=(n, 4))
    return X, y


# ---- ties ------------------------------------------------------------------------------------------------------------


def loss_by_definition(values, codes):
    """Mean over folds of the log loss at the scale that is best for all samples together."""

    def mean_loss(scale, of_values, of_codes):
        if of_values.ndim == 1:
            return np.mean(np.logaddexp(0.0, -scale * np.where(of_codes == 1, 1.0, -1.0) * of_values))
        powers = np.exp(scale * (of_values - of_values.max(axis=1, keepdims=True)))
        shares = powers / powers.sum(axis=1, keepdims=True)
        return log_loss(of_codes, shares, labels=np.arange(of_values.shape[1]))

    pooled, all_codes = np.concatenate(values), np.concatenate(codes)
    found = minimize_scalar(
        lambda log_scale: mean_loss(np.exp(log_scale), pooled, all_codes), bounds=(-12.0, 12.0), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    return np.mean([mean_loss(np.exp(found.x), v, c) for v, c in zip(values, codes, strict=True)])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_log_loss_at_the_best_scale(classes, unit):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, classes, size) for size in (20, 31)]
    values = [rng.normal(size=(c.size, classes)) + 0.8 * np.eye(classes)[c] for c in codes]
    if classes == 2:
        values = [v[:, 1] - v[:, 0] for v in values]
    expected = loss_by_definition(values, codes)
    found = scaled_log_loss([(c, unit * v) for c, v in zip(codes, values, strict=True)])
    assert found == pytest.approx(expected, abs=1e-7)
    assert expected < np.log(classes)


def test_log_loss_at_its_ends():
    codes = np.array([0, 0, 1, 1])
    assert scaled_log_loss([(codes, np.array([-1.0, -2.0, 1.0, 3.0]))]) == pytest.approx(0.0, abs=1e-12)
    for values in (np.array([1.0, 2.0, -1.0, -3.0]), np.zeros(4)):  # the scale can only be made small
        assert scaled_log_loss([(codes, values)]) == pytest.approx(np.log(2))
    assert scaled_log_loss([(codes, np.zeros((4, 3)))]) == pytest.approx(np.log(3))
    assert scaled_log_loss([(codes, np.array([1.0, np.inf, 1.0, 2.0]))]) == np.inf


@pytest.mark.parametrize(
    ("options", "several"),
    [({}, False), ({"scoring": "balanced_accuracy"}, False), ({"scoring": "roc_auc"}, False),
     ({"loss": "logistic"}, False), ({}, True), ({"multi_class": "ovr"}, True)],
)  # fmt: skip
def test_equal_scores_are_told_apart_by_the_log_loss(options, several):
    X, y = by_hand.blobs(60) if several else views(seed=103 if "roc_auc" in options.values() else 8)
    spec = bank() if several else VIEWS
    clf = MKLClassifierCV(spec, Cs=CS, cv=FOLDS, tol=1e-8, **options).fit(X, y)
    means = clf.cv_results_.groupby("C")["score"].mean()
    tied = means.index[means >= means.max() - 1e-12].to_numpy()
    assert tied.size > 1, "a case without a tie tests nothing"
    parameters = {name: value for name, value in options.items() if name != "scoring"}
    losses = []
    codes = np.searchsorted(clf.classes_, y)
    for C in tied:
        fits = [
            (MKLClassifier(spec, C=C, tol=1e-8, **parameters).fit(X[train], y[train]), test)
            for train, test in FOLDS.split(X, y)
        ]
        values = [fit.decision_function(X[test]) for fit, test in fits]
        losses.append(loss_by_definition(values, [codes[test] for _, test in fits]))
    least = tied[np.array(losses) <= np.min(losses) + 1e-4 * abs(np.min(losses))]
    assert clf.C_ in least
    assert options or several or tied[0] not in least, "the smallest C would be taken for its loss here"
    assert clf.best_score_ == pytest.approx(means.max(), abs=1e-14)


def test_the_smallest_C_where_the_losses_are_equal_too():
    """Once no coefficient is at its bound a larger C changes nothing: decision values are the same, bit by bit."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2.0, 0.5, size=(30, 2)), rng.normal(2.0, 0.5, size=(30, 2))])
    clf = MKLClassifierCV(kw.linear(), Cs=[10.0, 100.0, 1000.0], cv=3, tol=1e-9).fit(X, np.repeat([0, 1], 30))
    assert clf.C_ == 10.0
    assert clf.ties_["tie"].tolist() == ["chosen", "equal", "equal"]


def test_a_tied_norm_does_not_take_the_place_of_the_default():
    X, y = views()
    clf = MKLClassifierCV(VIEWS, Cs=CS, norms=["uniform", "l1", 2], cv=FOLDS).fit(X, y)
    means = clf.cv_results_.groupby(["norm", "C"])["score"].mean()
    assert means["l1"].max() == means.max()
    assert means["l2"].max() == means.max()
    assert clf.norm_.label == "l1"


# ---- what the scores leave open --------------------------------------------------------------------------------------


def test_ties_are_the_pairs_within_a_standard_error_of_the_choice():
    X, y = views()
    clf = MKLClassifierCV(VIEWS, Cs=CS, norms=["l1", 2], cv=FOLDS).fit(X, y)
    wide = clf.cv_results_.pivot(index="fold", columns=["norm", "C"], values="score")
    ours = wide[clf.norm_.label, clf.C_]
    expected = {}
    for pair in wide:
        lead = ours - wide[pair]
        if abs(lead.mean()) <= 1e-12:
            expected[pair] = "equal"
        elif lead.mean() <= lead.std(ddof=1) / np.sqrt(4):
            expected[pair] = "within a standard error"
    expected[clf.norm_.label, clf.C_] = "chosen"
    found = {(row.norm, row.C): row.tie for row in clf.ties_.itertuples()}
    assert found == expected
    assert len(found) > 3
    for row in clf.ties_.itertuples():
        assert row.score == pytest.approx(wide[row.norm, row.C].mean())


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_tied_weights_are_those_of_fits_on_all_samples(multi_class):
    X, y = views()
    y = np.where(np.arange(60) % 3 == 0, "other", y)
    options = {"multi_class": multi_class, "tol": 1e-7}
    clf = MKLClassifierCV(VIEWS, Cs=CS, norms=["l1", "uniform"], cv=FOLDS, **options).fit(X, y)
    assert clf.tied_weights_.shape == (len(clf.ties_), 3)
    assert set(clf.ties_["norm"]) == {"l1", "uniform"}
    for row, shares in zip(clf.ties_.itertuples(), clf.tied_weights_, strict=True):
        alone = MKLClassifier(VIEWS, C=row.C, norm=row.norm, **options).fit(X, y)
        weights = np.atleast_2d(alone.weights_)
        np.testing.assert_allclose(shares, (weights / weights.sum(axis=1)[:, None]).mean(axis=0), atol=0.02)


def test_weights_that_change_among_ties_are_a_finding():
    X, y = views()
    clf = MKLClassifierCV(VIEWS, Cs=CS, cv=FOLDS).fit(X, y)
    reach = np.ptp(clf.tied_weights_, axis=0)
    assert np.max(reach) > 0.1
    sentence = clf.findings_[0]
    assert sentence.startswith(f"C is not decided by the scores: {len(clf.ties_)} of the 7 values of C tried")
    view = "abc"[int(np.argmax(reach))]
    low, high = clf.tied_weights_[:, np.argmax(reach)].min(), clf.tied_weights_[:, np.argmax(reach)].max()
    assert f"'{view}' {low:.2f} to {high:.2f}" in sentence
    # one view: its share is one, whatever C is; weights that are not learnt do not change
    for spec, options in [(kw.gaussian([1.0, 2.0, 4.0]), {}), (VIEWS, {"norm": "uniform"})]:
        steady = MKLClassifierCV(spec, Cs=CS, cv=FOLDS, **options).fit(X, y)
        assert len(steady.ties_) > 1
        assert not [sentence for sentence in steady.findings_ if "not decided" in sentence]


def test_ties_of_several_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    Y = np.column_stack([X[:, 0], X[:, 5], X[:, 9]]) + rng.normal(size=(60, 3))
    each = MKLRegressorCV(VIEWS, Cs=CS, cv=4).fit(X, Y)
    assert set(each.ties_["target"]) == {0, 1, 2}
    assert each.tied_weights_.shape == (len(each.ties_), 3)
    for k in range(3):
        alone = MKLRegressorCV(VIEWS, Cs=CS, cv=4).fit(X, Y[:, k])
        own = each.ties_["target"] == k
        np.testing.assert_array_equal(each.ties_.loc[own, "C"], alone.ties_["C"])
        np.testing.assert_allclose(each.tied_weights_[own], alone.tied_weights_, atol=5e-3)
    again = each.set_params(criterion="reml").fit(X, Y)
    assert not hasattr(again, "ties_")
    assert not hasattr(again, "tied_weights_")


# ---- regression: four norms by the squared error ---------------------------------------------------------------------


def regression(n: int = 60, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    return X, X[:, 0] + 0.5 * X[:, 5] + rng.normal(size=n)


def test_four_norms_by_the_least_squared_error():
    X, y = regression()
    model = MKLRegressorCV(VIEWS, Cs=CS, cv=4, tol=1e-6).fit(X, y)
    table = model.cv_results_
    assert list(dict.fromkeys(table["norm"])) == ["l1", "l1.33333", "l2", "uniform"]
    means = table.groupby(["norm", "C"], sort=False)["squared_error"].mean()
    assert (model.norm_.label, model.C_) == means.idxmin()
    # two cells by hand
    given = {"l1": "l1", "l1.33333": 4 / 3, "l2": 2, "uniform": "uniform"}
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    for norm, C, fold in [("l1", CS[2], 0), ("uniform", CS[4], 2)]:
        train, test = splits[fold]
        alone = MKLRegressor(VIEWS, norm=given[norm], C=C, center=True, tol=1e-6).fit(X[train], y[train])
        cell = table[(table["norm"] == norm) & (table["C"] == C) & (table["fold"] == fold)]
        errors = (alone.predict(X[test]) - y[test]) ** 2
        assert cell["squared_error"].item() == pytest.approx(errors.mean(), rel=1e-2)
        assert cell["score"].item() == pytest.approx(
            1 - errors.sum() / np.sum((y[test] - y[test].mean()) ** 2), abs=0.01
        )
    best = table[(table["norm"] == model.norm_.label) & (table["C"] == model.C_)]
    assert model.scores_ == pytest.approx(best["score"].mean())


def test_which_norms_are_tried():
    X, y = regression()

    def tried(spec, **options):
        return set(MKLRegressorCV(spec, Cs=[0.1, 1.0], cv=3, **options).fit(X, y).cv_results_["norm"])

    assert tried(VIEWS, norm=2) == {"l2"}
    assert tried(VIEWS, norms=["l1", 2]) == {"l1", "l2"}
    assert tried(VIEWS, solver="level") == {"l1"}  # which takes no other
    assert tried(kw.linear()) == {"l1"}  # one kernel: nothing to choose
    with pytest.raises(ValueError, match="needs norm='l1'"):
        tried(VIEWS, norm=2, solver="level")
    assert MKLRegressorCV(VIEWS).get_params()["norm"] == "auto"


def test_a_scoring_of_ones_own_decides():
    X, y = regression()
    model = MKLRegressorCV(VIEWS, Cs=CS, cv=4, scoring="neg_median_absolute_error").fit(X, y)
    assert "squared_error" not in model.cv_results_
    means = model.cv_results_.groupby(["norm", "C"], sort=False)["score"].mean()
    assert means[model.norm_.label, model.C_] == means.max() == model.best_score_

    def coarse(estimator, X, y):
        return 1.0

    tied = MKLRegressorCV(VIEWS, Cs=CS, cv=KFold(4), norm="l1", scoring=coarse).fit(X, y)
    by_error = MKLRegressorCV(VIEWS, Cs=CS, cv=KFold(4), norm="l1").fit(X, y)
    assert tied.C_ == by_error.C_


# ---- folds and seconds -----------------------------------------------------------------------------------------------


def test_folds_of_a_number_are_shuffled():
    """Sorted rows: folds of neighbours would ask a model about a range that it has not seen."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 6.0, 120))
    y = np.sin(x) + 0.1 * rng.normal(size=120)
    grid = np.linspace(0.1, 5.9, 100)
    spec = kw.gaussian([0.5, 1.0, 2.0])
    for options in ({}, {"random_state": 0}, {"random_state": 7}, {"criterion": "folds"}):
        model = MKLRegressorCV(spec, **options).fit(x[:, None], y)
        assert model.scores_ > 0.95
        assert model.score(grid[:, None], np.sin(grid)) > 0.97
    neighbours = MKLRegressorCV(spec, cv=KFold(5)).fit(x[:, None], y)
    assert neighbours.scores_ < 0.5  # a splitter is taken as it is


@pytest.mark.parametrize("estimator", [MKLClassifierCV(VIEWS, Cs=3), MKLRegressorCV(VIEWS, Cs=3)])
def test_which_folds(estimator):
    X, y = views() if isinstance(estimator, MKLClassifierCV) else regression(90)
    kind = StratifiedKFold if isinstance(estimator, MKLClassifierCV) else KFold
    for seed in (None, 0, 5):
        estimator.set_params(random_state=seed, cv=4)
        ours = estimator.fit(X, y).cv_results_["score"]
        folds = kind(4, shuffle=True, random_state=0 if seed is None else seed)
        theirs = estimator.set_params(cv=folds).fit(X, y).cv_results_["score"]
        np.testing.assert_array_equal(ours, theirs)


def test_samples_left_out_one_by_one():
    X, y = regression(30)
    model = MKLRegressorCV(VIEWS, Cs=[0.1, 1.0], norm="l1", cv=LeaveOneOut()).fit(X, y)
    errors = model.cv_results_[model.cv_results_["C"] == model.C_]["squared_error"]
    assert model.scores_ == pytest.approx(1 - errors.sum() / np.sum((y - y.mean()) ** 2))
    labels = y > 0
    with pytest.raises(ValueError, match="undefined on every fold"):
        MKLClassifierCV(VIEWS, Cs=[0.1, 1.0], cv=LeaveOneOut(), scoring="roc_auc").fit(X, labels)


@pytest.mark.parametrize("estimator", [MKLClassifierCV(VIEWS, Cs=3, cv=3), MKLRegressorCV(VIEWS, Cs=3, cv=3)])
def test_seconds_of_every_fit(estimator):
    X, y = views() if isinstance(estimator, MKLClassifierCV) else regression(90)
    began = time.perf_counter()
    estimator.fit(X, y)
    elapsed = time.perf_counter() - began
    table = estimator.cv_results_
    assert ((table["fit_time"] > 0) != table["dropped"]).all()
    assert (table["score_time"] >= 0).all()
    assert 0 < estimator.refit_time_ + table["fit_time"].sum() + table["score_time"].sum() < elapsed


def test_a_hopeless_C_is_left_out_of_later_folds():
    """It has lost by more than its standard errors, is marked, and cannot be chosen; without it the choice is the same."""
    X, y = views(180)
    few = np.flatnonzero(y == "sick")[:40]  # with next to no C all are well
    rows = np.sort(np.concatenate([few, np.flatnonzero(y == "well")]))
    X, y = X[rows], y[rows]
    options = {"Cs": [1e-4, 0.1, 1.0], "cv": 6, "tol": 1e-3}
    model = MKLClassifierCV(VIEWS, norm="uniform", **options).fit(X, y)
    table = model.cv_results_
    left_out = table[table["dropped"]]
    assert set(left_out["C"]) == {1e-4}
    assert left_out["fold"].tolist() == list(range(left_out["fold"].min(), 6))
    assert left_out["fold"].min() >= 3
    assert left_out["score"].isna().all()
    assert not left_out[["n_iter", "passes", "fit_time"]].any(axis=None)
    assert len(table) == 3 * 6
    assert model.C_ != 1e-4
    assert 1e-4 not in set(model.ties_["C"])
    assert model.certificate_.relative_gap <= 1e-3
    assert table["relative_gap"].max() <= 1e-2
    without = MKLClassifierCV(VIEWS, norm="uniform", **options | {"Cs": [0.1, 1.0]}).fit(X, y)
    assert without.C_ == model.C_


def test_the_only_defined_value_is_never_dropped():
    X, y = views(60)
    model = MKLClassifierCV(VIEWS, Cs=[1.0], cv=5).fit(X, y)
    assert not model.cv_results_["dropped"].any()
