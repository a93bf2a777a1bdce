"""Survival: optima against a conic solver and a Cox regression, curves, identities, edges, cross-validation, files."""

from __future__ import annotations

import io
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import kernelweave
import references as ref
from kernelweave import MKLSurvival, MKLSurvivalCV, losses, metrics, norms, survival
from kernelweave import kernels as kw
from kernelweave.exceptions import DegenerateModelWarning, GridEndWarning
from kernelweave.problems import newton

VIEWS = kw.per_view({"first": slice(0, 3), "last": slice(3, 6)}, kw.linear(), kw.gaussian(2.0))


def some(n: int = 80, seed: int = 0, ties: bool = False, censored: float = 2.0):
    """Six columns of which the first two say how soon."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    dies, until = rng.exponential(np.exp(-1.2 * X[:, 0] + 0.8 * X[:, 1])), rng.exponential(censored, n)
    time = np.minimum(dies, until)
    return X, survival(np.ceil(4 * time) if ties else time, dies <= until)


def quiet(model, *arguments, **named):
    """Fit where findings are not what is looked at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateModelWarning)
        return model.fit(*arguments, **named)


# ---- optima --------------------------------------------------------------------------------------------------------

NORMS = {
    "l1": (ref.l1_norm, "l1"),
    "1.5": (lambda: ref.lp_norm(1.5), 1.5),
    "2": (lambda: ref.lp_norm(2.0), 2),
    "sum": (ref.sum_norm, np.inf),
    "grouped": (lambda: ref.grouped_norm(1.0, 2.0, "aabb"), norms.Grouped(1.0, 2.0, list("aabb"))),
}


@pytest.mark.parametrize("loss", ["cox", "censored_squared"])
@pytest.mark.parametrize("norm", NORMS)
def test_optimum_is_the_conic_solver_s(norm, loss):
    """Ties, strata and weights, of which one is zero."""
    rng = np.random.default_rng(3)
    n, Ks = 25, ref.kernel_stack(25, 4)
    time, event, weight = rng.integers(1, 12, n) * 1.0, rng.random(n) < 0.7, rng.uniform(0.3, 2.0, n)
    weight[3] = 0.0
    stratum = rng.integers(0, 2, n) if loss == "cox" else None
    sign = np.where(event, 1.0, -1.0)
    y = sign * time if stratum is None else sign * (ref.STRATUM * stratum + time)
    reference, library = NORMS[norm]
    conic = ref.conic_optimum(
        Ks, y, 3.0 * weight, ref.loss_named(loss), reference(), fit_intercept=loss != "cox"
    )  # of Cox's a constant changes nothing
    model = MKLSurvival("precomputed", loss=loss, norm=library, C=3.0, normalize=None, tol=1e-8)
    model.fit(Ks, survival(time, event), sample_weight=weight, strata=stratum)
    assert model.status_ == "converged"
    assert model.certificate_.primal == pytest.approx(conic.value, rel=1e-6)
    assert model.certificate_.dual <= conic.value * (1 + 1e-6)
    assert model.dual_coef_[3] == 0.0


def test_one_linear_kernel_is_cox_regression():
    cox = pytest.importorskip("sksurv.linear_model")
    X, y = some(120, ties=True)
    model = quiet(MKLSurvival(kw.linear(), C=0.7, normalize=None, tol=1e-9), X, y)
    other = cox.CoxPHSurvivalAnalysis(alpha=1 / 0.7, ties="breslow", tol=1e-14, n_iter=500).fit(X, y)
    np.testing.assert_allclose(model.coef_.ravel(), other.coef_, atol=1e-5)
    np.testing.assert_array_equal(model.unique_times_, other.unique_times_)
    # curves of the same risks
    breslow = cox.coxph.BreslowEstimator().fit(model.predict(X), y["event"], y["time"])
    np.testing.assert_allclose(model.cum_baseline_hazard_.y, breslow.cum_baseline_hazard_.y, atol=1e-12)
    theirs = [curve(model.unique_times_) for curve in breslow.get_survival_function(model.predict(X[:9]))]
    np.testing.assert_allclose(model.predict_survival_function(X[:9], return_array=True), theirs, atol=1e-12)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("norm", ["l1", 2])
def test_every_C_is_certified(C, norm):
    X, y = some(60, ties=True)
    model = quiet(MKLSurvival(VIEWS, C=C, norm=norm), X, y)
    assert model.status_ == "converged"
    assert model.certificate_.relative_gap <= 1e-3
    # in nats per event, or relative to the objective where that is less
    assert model.certificate_.gap <= 1e-3 * C * model.n_events_


def test_certificate_from_its_dual_point_alone():
    X, y = some()
    model = MKLSurvival(VIEWS, C=0.5).fit(X, y)
    proved = model.certificate_
    K = np.array([kernel(X, X) for kernel in model.kernels_])
    K /= np.mean(np.diagonal(K, axis1=1, axis2=2), axis=1)[:, None, None]
    rank = np.unique(y["time"], return_inverse=True)[1] + 1.0
    beta, target = proved.dual_point, np.where(y["event"], rank, -rank)
    gain, outside = ref.COX.gain(target, beta, np.full(len(y), 0.5))
    assert outside < 1e-12
    assert proved.dual == pytest.approx(gain - 0.5 * max(b @ beta for b in K @ beta), rel=1e-9)
    assert proved.unit == pytest.approx(0.5 * y["event"].sum())
    assert f"within {0.0 or ''}" in str(proved)
    assert "nats per event" in repr(proved)
    assert proved.relative_gap == pytest.approx(proved.gap / min(proved.primal, proved.unit))


def test_second_derivatives_of_the_value_in_the_weights():
    X, y = some(40)
    K = np.array([np.exp(-((X[:, [j]] - X[:, j]) ** 2)) for j in range(3)])
    bank = kernelweave.banks.build_bank(None, K, normalize=None)
    loss = losses.Cox()
    target = loss.encode(y["time"], y["event"], np.zeros(40, dtype=int))
    problem = kernelweave.problems.MKLProblem(bank, loss, norms.make_norm("l1"), target, 2.0)
    d, h = np.array([0.5, 0.2, 0.3]), 1e-4
    A = problem.oracle(d, target=1e-13, curvature=True).curvature.root.dense
    slopes = [
        [-0.5 * problem.oracle(d + sign * h * e, target=1e-13).quad for sign in (1, -1)] for e in np.eye(3)
    ]
    # of the last step of the inner problem, which is not the solution to the last digit
    expected = [(up - down) / (2 * h) for up, down in slopes]
    np.testing.assert_allclose(A.T @ A, expected, rtol=1e-3, atol=1e-3)


# ---- identities ----------------------------------------------------------------------------------------------------


def test_dual_coefficients_are_martingale_residuals_and_sum_to_zero():
    X, y = some(ties=True)
    strata = np.random.default_rng(1).integers(0, 2, len(y))
    model = quiet(MKLSurvival(VIEWS, C=0.3, norm=2, tol=1e-9), X, y, strata=strata)
    curves = model.predict_cumulative_hazard_function(X, strata=strata)
    expected = np.array([curve(time) for curve, time in zip(curves, y["time"], strict=True)])
    np.testing.assert_allclose(model.dual_coef_ / 0.3, y["event"] - expected, atol=1e-4)
    np.testing.assert_allclose(np.bincount(strata, model.dual_coef_), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.bincount(strata, y["event"] - expected), 0.0, atol=1e-9)
    assert np.mean(model.predict(X)) == pytest.approx(0.0, abs=1e-12)


def test_order_units_and_copies_change_nothing():
    X, y = some(50)
    model = MKLSurvival(kw.linear() + kw.gaussian(2.0), norm=2, C=0.3, normalize=None, tol=1e-8).fit(X, y)
    turn = np.random.default_rng(0).permutation(50)
    later = survival(np.exp(0.1 * y["time"]) - 1.0, y["event"])
    weight = np.ones(50)
    weight[turn[:10]] = 2.0
    for other, which in ((MKLSurvival, later), (MKLSurvival, y)):
        again = other(model.kernels, norm=2, C=0.3, normalize=None, tol=1e-8).fit(X[turn], which[turn])
        np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-4)
    heavy = clone(model).fit(X, y, sample_weight=weight)
    twice = np.repeat(np.arange(50), weight.astype(int))
    copies = quiet(clone(model), X[twice], y[twice])
    f, g = heavy.predict(X), copies.predict(X)
    np.testing.assert_allclose(f - f.mean(), g - g.mean(), atol=1e-4)
    curve, other = heavy.predict_survival_function(X[:3]), copies.predict_survival_function(X[:3])
    np.testing.assert_allclose(curve[0](y["time"]), other[0](y["time"]), atol=1e-4)
    assert heavy.n_events_ == y["event"].sum()


def test_weight_zero_is_absence():
    X, y = some(60, ties=True)
    out = np.random.default_rng(0).random(60) < 0.3
    model = MKLSurvival(VIEWS, C=0.5, normalize=None, tol=1e-7)
    held = quiet(clone(model), X, y, sample_weight=np.where(out, 0.0, 1.0))
    gone = quiet(clone(model), X[~out], y[~out])
    assert held.certificate_.primal == pytest.approx(gone.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(held.predict(X), gone.predict(X), atol=1e-3)
    np.testing.assert_array_equal(held.unique_times_, gone.unique_times_)
    np.testing.assert_array_equal(held.observed_, gone.observed_)


# ---- curves --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["cox", "censored_squared"])
def test_curves_fall_and_medians_are_where_they_cross(loss):
    X, y = some()
    model = MKLSurvival(VIEWS, loss=loss, C=0.3).fit(X, y)
    curves, table = (
        model.predict_survival_function(X[:8]),
        model.predict_survival_function(X[:8], return_array=True),
    )
    hazards = model.predict_cumulative_hazard_function(X[:8], return_array=True)
    assert table.shape == hazards.shape == (8, model.unique_times_.size)
    np.testing.assert_allclose(table, np.exp(-hazards), atol=1e-14)
    assert np.all(np.diff(table, axis=1) <= 0)
    for curve, row, median in zip(curves, table, model.predict_median(X[:8]), strict=True):
        np.testing.assert_allclose(curve(model.unique_times_), row, atol=1e-14)
        assert curve(0.0) == 1.0
        assert curve(1e9) == curve.y[-1]
        if np.isfinite(median):
            assert curve(median) <= 0.5 < curve(median * (1 - 1e-9))
        else:
            assert curve.y[-1] > 0.5
    # who is at risk sooner has the lower curve
    order = np.argsort(model.predict(X[:8]))
    assert np.all(np.diff(hazards[order].sum(axis=1)) >= 0)
    assert model.score(X, y) == metrics.concordance(y, model.predict(X)) == model.concordance_


def test_log_times_are_predicted():
    """Without censoring the loss is least squares on log times, and the ratio's curve that of the residuals."""
    X, y = some(censored=1e9)
    model = MKLSurvival(VIEWS, loss="censored_squared", C=0.3, norm=2, tol=1e-8).fit(X, y)
    plain = kernelweave.MKLRegressor(VIEWS, C=0.3, norm=2, tol=1e-8).fit(X, np.log(y["time"]))
    np.testing.assert_allclose(-model.predict(X), plain.predict(X), atol=1e-3)
    ratio = np.sort(y["time"] * np.exp(model.predict(X)))
    np.testing.assert_allclose(model.cum_baseline_hazard_.x, ratio, rtol=1e-12)
    np.testing.assert_allclose(model.cum_baseline_hazard_.y, np.cumsum(1.0 / np.arange(80, 0, -1)), rtol=1e-9)


def test_strata_have_baselines_of_their_own():
    X, y = some()
    centre = np.random.default_rng(0).choice(["north", "south"], len(y))
    model = MKLSurvival(VIEWS, C=0.3).fit(X, y, strata=centre)
    assert set(model.cum_baseline_hazard_) == set(model.baseline_survival_) == {"north", "south"}
    own = model.cum_baseline_hazard_["south"]
    south = centre == "south"
    assert set(own.x) == set(y["time"][south])
    e, last = np.exp(model.predict(X)), 0.0
    for time in np.unique(y["time"][south]):
        at_risk = south & (y["time"] >= time)
        last += np.sum(south & (y["time"] == time) & y["event"]) / np.sum(e[at_risk])
        assert own(time) == pytest.approx(last, rel=1e-10)
    north = model.predict_survival_function(X[:1], strata=["north"])[0]
    assert north(own.x[-1]) != model.predict_survival_function(X[:1], strata=["south"])[0](own.x[-1])
    with pytest.raises(ValueError, match="'east' was not among"):
        model.predict_survival_function(X[:1], strata=["east"])
    with pytest.raises(ValueError, match="fitted with strata"):
        model.predict_median(X[:1])
    with pytest.raises(ValueError, match="fitted without strata"):
        MKLSurvival(VIEWS).fit(X, y).predict_median(X[:1], strata=["north"])
    for wrong, words in (
        (centre[:3], "one label per sample"),
        (np.where(south, None, "a"), "missing for some"),
    ):
        with pytest.raises(ValueError, match=words):
            MKLSurvival(VIEWS).fit(X, y, strata=wrong)
    with pytest.raises(ValueError, match="use loss='cox'"):
        MKLSurvival(VIEWS, loss="censored_squared").fit(X, y, strata=centre)


# ---- edges ---------------------------------------------------------------------------------------------------------


def test_without_events_nothing_can_be_learnt():
    X, y = some()
    none = survival(y["time"], np.zeros(len(y), dtype=bool))
    for loss in ("cox", "censored_squared"):
        with pytest.raises(ValueError, match="no sample has the event: nothing can be learnt"):
            MKLSurvival(VIEWS, loss=loss).fit(X, none)
    with pytest.raises(ValueError, match="no sample with weight has the event"):
        MKLSurvival(VIEWS).fit(X, y, sample_weight=np.where(y["event"], 0.0, 1.0))


@pytest.mark.parametrize("case", ["one", "last", "alone"])
def test_few_events(case):
    X, y = some(20)
    event, strata = np.zeros(20, dtype=bool), None
    event[np.argmax(y["time"]) if case == "last" else np.argmin(y["time"])] = True
    if case == "alone":
        event[:], strata = True, np.arange(20)
    with pytest.warns(DegenerateModelWarning, match="1 events" if case == "one" else "Nothing can be learnt"):
        model = MKLSurvival(VIEWS).fit(X, survival(y["time"], event), strata=strata)
    assert model.status_ == "converged"
    if case != "one":
        assert model.certificate_.primal == model.null_loss_ == 0.0
        assert not np.any(model.predict(X))
    assert any("event" in said for said in model.findings_)
    assert np.isnan(model.concordance_) == (case == "last")


def test_all_times_tied_and_time_zero():
    X, y = some(30)
    model = MKLSurvival(VIEWS).fit(X, survival(np.zeros(30), y["event"]))
    assert model.status_ == "converged"
    assert any("share their time" in said for said in model.findings_)
    assert model.predict_survival_function(X[:1])[0](0.0) < 1.0
    with pytest.raises(
        ValueError, match=r"loss='censored_squared' takes the logarithm of times, and 30 of them"
    ):
        MKLSurvival(VIEWS, loss="censored_squared").fit(X, survival(np.zeros(30), y["event"]))
    # of one log time alone the constant is all there is
    same = MKLSurvival(VIEWS, loss="censored_squared").fit(X, survival(np.full(30, 5.0), np.ones(30)))
    assert same.status_ == "converged"
    np.testing.assert_allclose(same.predict(X), -np.log(5.0), atol=1e-6)


def test_nearly_all_have_the_event():
    X, y = some(60)
    event = np.ones(60, dtype=bool)
    assert MKLSurvival(VIEWS).fit(X, survival(y["time"], event)).findings_ == ()
    event[:3] = False
    findings = MKLSurvival(VIEWS).fit(X, survival(y["time"], event)).findings_
    assert findings == ("57 of 60 samples have the event: is it coded the other way round?",)


def test_strata_without_events_contribute_nothing():
    X, y = some(60)
    strata = np.r_[np.zeros(40), np.ones(20)]
    event = y["event"] & (strata == 0)
    both = survival(y["time"], event)
    model = MKLSurvival(VIEWS, normalize=None, C=0.3, tol=1e-7).fit(X, both, strata=strata)
    assert not np.any(model.dual_coef_[40:])
    alone = MKLSurvival(VIEWS, normalize=None, C=0.3, tol=1e-7).fit(X[:40], both[:40])
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-6)
    assert np.all(model.predict_median(X[40:], strata=np.ones(20)) == np.inf)


def test_bad_parameters_and_targets():
    X, y = some(30)
    with pytest.raises(ValueError, match="not for survival; losses that are: censored_squared, cox"):
        MKLSurvival(VIEWS, loss="hinge").fit(X, y)
    with pytest.raises(ValueError, match="not for classification"):
        kernelweave.MKLClassifier(VIEWS, loss="cox").fit(X, y["event"])
    with pytest.raises(ValueError, match=r"kernelweave\.survival\(time, event\)"):
        MKLSurvival(VIEWS).fit(X, y["time"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MKLSurvival(VIEWS).fit(X, y[:20])
    with pytest.raises(AttributeError, match="once the estimator is fitted"):
        _ = MKLSurvival(VIEWS).cum_baseline_hazard_
    with pytest.raises(ValueError, match="does not fit"):
        MKLSurvival(VIEWS, solver="working_set").fit(X, y)


# ---- kinds of samples ----------------------------------------------------------------------------------------------


def test_tables_are_joined_by_name():
    X, y = some(40)
    names = [f"patient {i}" for i in range(40)]
    views = {"rna": pd.DataFrame(X[:, :3], index=names), "dna": pd.DataFrame(X[:, 3:], index=names[::-1])}
    views["dna"] = views["dna"].loc[names].iloc[::-1]
    table = pd.DataFrame({"time": y["time"], "event": y["event"]}, index=names)
    spec = kw.linear().on("rna") + kw.linear().on("dna")
    turned = table.iloc[np.random.default_rng(0).permutation(40)]
    one, other = MKLSurvival(spec, C=0.3).fit(views, table), MKLSurvival(spec, C=0.3).fit(views, turned)
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-9)
    assert one.score(views, turned) == pytest.approx(one.score(views, table))
    assert set(one.view_weights_) == {"rna", "dna"}


def test_incomplete_views_and_adjustment():
    X, y = some(50)
    missing = X.copy()
    missing[::5, 3:] = np.nan
    model = MKLSurvival(VIEWS, missing="mean", C=0.3).fit(missing, y)
    assert model.status_ == "converged"
    adjusted = MKLSurvival(
        kw.always(kw.linear().on([0, 1]), weight=100.0)
        + kw.gaussian(2.0).on([2, 3])
        + kw.gaussian(2.0).on([4, 5]),
        C=0.3,
    ).fit(X, y)
    assert adjusted.weights_[0] == 100.0
    assert adjusted.weights_[1:].sum() == pytest.approx(1.0)
    assert adjusted.score(X, y) > 0.7


def test_explicit_features_and_single_precision():
    X, y = some(70)
    exact = MKLSurvival(kw.linear() + kw.polynomial(2), norm=2, C=0.2, tol=1e-6).fit(X, y)
    for options in ({"dtype": "float32"}, {"storage": "lazy"}, {"storage": "lowrank"}):
        other = MKLSurvival(kw.linear() + kw.polynomial(2), norm=2, C=0.2, tol=1e-4, **options).fit(X, y)
        assert other.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-3)


def test_limits_checkpoint_and_warm_start(tmp_path):
    X, y = some(60)
    model = MKLSurvival(VIEWS, C=0.5, warm_start=True, checkpoint=tmp_path / "fit.npz").fit(X, y)
    first = model.n_iter_
    model.checkpoint = None
    assert model.fit(X, y).n_iter_ <= first
    with pytest.warns(kernelweave.exceptions.KernelWeaveConvergenceWarning, match="max_iter"):
        short = MKLSurvival(VIEWS, C=10.0, max_iter=1, tol=1e-9).fit(X, y)
    assert short.status_ == "max_iter"
    assert short.certificate_.dual <= short.certificate_.primal <= short.null_loss_ * 10.0


def test_large_bounds_are_raised_in_stages_where_the_direct_way_fails(monkeypatch):
    """With four steps at a time: from a bound of ten by the root of ten each, in units of the mean diagonal."""
    bounds, descend = [], newton.descend

    def noted(inner, *arguments, **named):
        bounds.append(float(np.max(inner.c)))
        return descend(inner, *arguments, **named)

    monkeypatch.setattr(newton, "descend", noted)
    monkeypatch.setattr(newton, "MOST", 4)
    X, y = some(60)
    weight = np.linspace(0.5, 1.0, 60)
    model = MKLSurvival(kw.gaussian(4.0), norm="uniform", C=300.0, tol=1e-3).fit(X, y, sample_weight=weight)
    assert model.status_ == "converged"
    np.testing.assert_allclose(bounds[:5], [300.0, 10.0, 10.0**1.5, 100.0, 300.0])


# ---- cross-validation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "likelihood", "concordance", "concordance_ipcw", "brier"])
def test_search_is_what_fits_by_hand_say(scoring):
    """Mean scores are those of separate fits on the training samples of every fold."""
    X, y = some(70, ties=True)
    Cs = [0.01, 1.0]
    search = quiet(
        MKLSurvivalCV(kw.linear() + kw.gaussian(2.0), Cs=Cs, cv=3, scoring=scoring, norm=2, tol=1e-7), X, y
    )
    scores = search.cv_results_.groupby("C")["score"].mean()
    folds = kernelweave.estimators._search.folds_of(3, y["event"].astype(int), True, None, None)
    for C in Cs:
        by_hand = []
        for train, test in folds:
            model = quiet(MKLSurvival(search.kernels, norm=2, C=C, tol=1e-7), X[train], y[train])
            by_hand.append(metrics.scorer(scoring or "likelihood")(model, X[test], y[test]))
        assert scores[C] == pytest.approx(np.mean(by_hand), abs=2e-4)
    assert scores.idxmax() == search.C_
    assert search.best_score_ == pytest.approx(scores.max())
    assert search.certificate_.relative_gap <= 1e-7


def test_search_over_norms_strata_and_its_refusals():
    X, y = some(60)
    strata = np.random.default_rng(0).integers(0, 2, 60)
    options = {"Cs": [0.1, 1.0], "norms": ["l1", 2, "uniform"], "cv": 3}
    search = MKLSurvivalCV(VIEWS, **options).fit(X, y, strata=strata)
    assert set(search.cv_results_["norm"]) == {"l1", "l2", "uniform"}
    assert search.norm_.label in ("l1", "l2", "uniform")
    assert set(search.cum_baseline_hazard_) == {0, 1}
    assert search.tied_weights_.shape[1] == 4
    log_times = MKLSurvivalCV(VIEWS, loss="censored_squared", Cs=[0.1, 1.0], cv=3, scoring="brier").fit(X, y)
    assert log_times.C_ in (0.1, 1.0)
    with pytest.raises(ValueError, match="is Cox's partial likelihood"):
        MKLSurvivalCV(VIEWS, loss="censored_squared", scoring="likelihood").fit(X, y)
    with pytest.raises(ValueError, match="scoring must be None or one of likelihood"):
        MKLSurvivalCV(VIEWS, scoring="accuracy").fit(X, y)
    event = np.zeros(60, dtype=bool)
    event[[0, 15]] = True
    with pytest.raises(ValueError, match="no held-out sample with the event"):
        MKLSurvivalCV(VIEWS, cv=KFold(6)).fit(X, survival(y["time"], event))
    with pytest.raises(ValueError, match="no training sample with the event"):
        MKLSurvivalCV(VIEWS, cv=[(np.arange(30, 60), np.arange(30))]).fit(X, survival(y["time"], event))


def test_default_grid_reaches_from_a_ten_thousandth_to_a_hundred():
    X, y = some(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GridEndWarning)
        search = MKLSurvivalCV(kw.linear(), cv=2).fit(X, y)
    np.testing.assert_allclose(sorted(search.cv_results_["C"].unique()), np.logspace(-4, 2, 10))


def test_scikit_learn_s_tools():
    X, y = some(60)
    model = MKLSurvival(VIEWS, C=0.3)
    for name in metrics.SCORES:
        assert np.all(np.isfinite(cross_val_score(model, X, y, cv=3, scoring=metrics.scorer(name))))
    plain = cross_val_score(model, X, y, cv=3)
    np.testing.assert_allclose(
        plain, cross_val_score(model, X, y, cv=3, scoring=metrics.scorer("concordance"))
    )
    grid = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert grid.best_params_["C"] in (0.1, 1.0)


def test_strata_are_routed():
    import sklearn

    X, y = some(45)
    with sklearn.config_context(enable_metadata_routing=True):
        model = MKLSurvival(kw.linear()).set_fit_request(strata=True, sample_weight=True)
        strata = np.arange(45) % 2
        grid = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(
            X, y, strata=strata, sample_weight=np.ones(45)
        )
    assert set(grid.best_estimator_.cum_baseline_hazard_) == {0, 1}


class Numbers(MKLSurvival):
    """Takes the targets that scikit-learn's checks make: all are times of events."""

    def _joined(self, X, y):
        if y is None or getattr(y, "dtype", np.dtype(int)).names:
            return X, y
        time = np.abs(np.asarray(y, dtype=float).ravel())
        return X, survival(time, np.ones(time.size, dtype=bool))


def test_scikit_learn_s_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(Numbers(kw.linear(), C=0.1), on_fail=None)
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    # as for the other estimators, whose kernels have a scale that is learnt on the rows given
    assert failed <= {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["cox", "censored_squared"])
def test_files_and_pickles(tmp_path, loss):
    X, y = some(40)
    strata = np.random.default_rng(0).choice(["a", "b"], 40) if loss == "cox" else None
    model = MKLSurvival(VIEWS, loss=loss, C=0.3).fit(X, y, strata=strata)
    kernelweave.persistence.save(model, tmp_path / "model.skops")
    for other in (
        kernelweave.persistence.load(tmp_path / "model.skops"),
        pickle.load(io.BytesIO(pickle.dumps(model))),
    ):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.observed_, model.observed_)
        np.testing.assert_array_equal(other.predict_median(X, strata), model.predict_median(X, strata))
        assert (other.n_events_, other.null_loss_, other.concordance_) == (
            model.n_events_, model.null_loss_, model.concordance_
        )  # fmt: skip
        assert str(other.certificate_) == str(model.certificate_)


def test_a_damaged_baseline_is_refused():
    X, y = some(40)
    model = MKLSurvival(VIEWS, C=0.3).fit(X, y)
    whole = vars(model)["_baseline"]
    from dataclasses import replace

    for wrong in (
        replace(whole, starts=np.array([0, 3])),
        replace(whole, hazard=whole.hazard[:-1]),
        replace(whole, places=whole.places.astype(int)),
        replace(whole, followed=replace(whole.followed, event=whole.followed.weight)),
    ):
        with pytest.raises(ValueError, match="baseline hazard of the model is none"):
            wrong.check()


# ---- explicit features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", 1.5])
@pytest.mark.parametrize("place", ["memory", "stream", "device"])
def test_sums_over_explicit_features(norm, place):
    """Sweeps over features, in memory, block by block and on a device of torch, reach the optimum of Newton's method."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12))
    dies, until = rng.exponential(np.exp(-X[:, 0] - X[:, 5])), rng.exponential(1.0, 600)
    y = survival(np.ceil(20 * np.minimum(dies, until)), dies <= until)
    bank = kw.per_view({"a": slice(0, 4), "b": slice(4, 8), "c": slice(8, 12)}, kw.linear())
    strata, weight = rng.integers(0, 2, 600), rng.choice([0.0, 1.0, 2.5], 600)
    options = {"norm": norm, "C": 0.1, "tol": 1e-6}
    exact = quiet(MKLSurvival(bank, solver="newton", storage="dense", **options), X, y, weight, strata)
    if place == "stream":
        options["storage"] = "stream"
    elif place == "device":
        pytest.importorskip("torch")
        options["device"] = "cpu"
        options["storage"] = "auto"
    model = quiet(MKLSurvival(bank, **options), X, y, weight, strata)
    assert model.status_ == "converged"
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=3e-6)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-2)
    if place != "device":
        assert model.solver_ == ("proximal_newton" if norm == "l1" else "lbfgs")
        assert model.decision_.representation == "features"
