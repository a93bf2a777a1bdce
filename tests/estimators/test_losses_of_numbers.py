"""Quantiles, outliers and counts: regressions compared with scikit-learn's linear models and a conic solver."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import KFold

import references as ref
from kernelweave import MKLRegressor, MKLRegressorCV, losses, norms
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import Huber, Pinball
from kernelweave.persistence import load, save
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, choose_solver, solve
from references import kernel_stack

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + (0.2 + 0.4 * np.abs(X[:, 0])) * RNG.standard_t(3, size=80)
COUNTS = RNG.poisson(np.exp(0.5 + 0.6 * X[:, 0])).astype(float)
EXPOSURE = RNG.uniform(0.5, 4.0, size=80)
WEIGHT = RNG.choice([0.0, 0.5, 1.0, 2.0], size=80)
BANK = kw.gaussian([1.0, 3.0]) + kw.linear()
LEVELS = [0.1, 0.5, 0.9]


# ---- scikit-learn's linear models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.85])
def test_quantiles_are_those_of_scikit_learn_on_a_linear_kernel(quantile):
    """Of piecewise linear losses alone the optimum is a vertex, where it stays for every C that is large enough."""
    ours = MKLRegressor(kw.linear(), loss="quantile", quantiles=quantile, C=1e3, normalize=None, tol=1e-9)
    ours.fit(X, Y, sample_weight=WEIGHT)
    theirs = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    assert ours.score(X, Y, WEIGHT) == pytest.approx(theirs_d2(theirs, quantile), abs=0.01)


def theirs_d2(model, quantile):
    """scikit-learn interpolates the quantile of the constant model."""
    return d2_pinball_score(Y, model.predict(X), sample_weight=WEIGHT, alpha=quantile)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.85])
def test_the_lasso_of_quantiles_on_linear_kernels_of_columns(quantile):
    """Under l1 the norm is ``(sum |w_j|)^2 / 2``, whose slope at the optimum is that of a lasso."""
    C = 0.5
    ours = MKLRegressor(
        kw.per_feature(kw.linear()), loss="quantile", quantiles=quantile, C=C, normalize=None, tol=1e-9
    ).fit(X, Y, sample_weight=WEIGHT)
    alpha = np.abs(ours.coef_).sum() / (C * WEIGHT.sum())
    theirs = QuantileRegressor(quantile=quantile, alpha=alpha).fit(X, Y, sample_weight=WEIGHT)

    def objective(model):
        loss = mean_pinball_loss(Y, model.predict(X), sample_weight=WEIGHT, alpha=quantile)
        return loss + alpha * np.abs(model.coef_).sum()

    assert np.count_nonzero(ours.coef_) > 1
    assert objective(ours) == pytest.approx(objective(theirs), rel=1e-6)


def test_counts_are_those_of_scikit_learn_on_a_linear_kernel():
    alpha = 0.2
    theirs = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=1000).fit(X, COUNTS, sample_weight=WEIGHT)
    ours = MKLRegressor(
        kw.linear(), loss="poisson", C=1 / (alpha * WEIGHT.sum()), normalize=None, tol=1e-11
    ).fit(X, COUNTS, sample_weight=WEIGHT)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert ours.score(X, COUNTS) == pytest.approx(
        d2_tweedie_score(COUNTS, ours.predict(X), power=1), abs=1e-9
    )


# ---- several quantiles ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", 1.5, "grouped", "uniform"])
def test_several_quantiles_are_the_optimum_of_their_sum(norm):
    """The sum of the losses under shared weights, with an intercept each and weights of samples."""
    n, m, C = 25, 3, 2.0
    Ks = kernel_stack(n, m)
    y, weight = Y[:n], WEIGHT[:n]
    made = norms.Grouped(1.5, 2.0, ["a", "a", "b"]) if norm == "grouped" else norms.make_norm(norm)
    problem = MKLProblem(
        build_bank(None, Ks, normalize=None),
        Pinball(LEVELS),
        made,
        np.repeat(y[:, None], 3, axis=1),
        C,
        weight,
    )
    found = solve(
        problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol=1e-8)
    ).certificate
    blocks = []
    values, vectors = zip(*(np.linalg.eigh(K) for K in Ks), strict=True)
    Z = [
        v[:, e > 1e-12 * e[-1]] * np.sqrt(e[e > 1e-12 * e[-1]]) for e, v in zip(values, vectors, strict=True)
    ]
    W = [cp.Variable((z.shape[1], 3)) for z in Z]
    blocks = [cp.norm(cp.vec(w, order="F")) for w in W]
    t, b = cp.hstack(blocks), cp.Variable((1, 3))
    f = sum(z @ w for z, w in zip(Z, W, strict=True)) + np.ones((n, 1)) @ b
    r = y[:, None] - f
    charge = cp.sum(
        cp.multiply(
            C * weight[:, None], cp.maximum(cp.multiply(LEVELS, r), cp.multiply(np.array(LEVELS) - 1, r))
        )
    )
    if norm == "l1":
        regulariser, limits = cp.square(cp.sum(t)) / 2, []
    elif norm == "uniform":
        regulariser, limits = m * cp.sum_squares(t) / 2, []
    else:
        d = cp.Variable(m, nonneg=True)
        length = (
            cp.power(cp.norm(d[:2], 2), 1.5) + cp.power(d[2], 1.5)
            if norm == "grouped"
            else cp.sum(cp.power(d, 1.5))
        )
        squares = sum(cp.quad_over_lin(cp.vec(w, order="F"), d[j]) for j, w in enumerate(W))
        regulariser, limits = squares / 2, [length <= 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how accurate it is is seen from both bounds
        best = cp.Problem(cp.Minimize(regulariser + charge), limits).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
        )
    assert found.primal == pytest.approx(best, rel=1e-6)
    assert found.dual == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("multi_output", ["shared", "each"])
def test_quantiles_do_not_cross_and_sorting_them_costs_nothing(multi_output):
    levels = [0.3, 0.4, 0.5, 0.6, 0.7]
    model = MKLRegressor(
        kw.gaussian([0.7, 1.0]), loss="quantile", quantiles=levels, multi_output=multi_output, C=100.0
    ).fit(X, Y)
    new = np.random.default_rng(1).normal(size=(300, 4))
    raw, sorted_ = model._decision(new), model.predict(new)
    assert np.any(np.diff(raw, axis=1) < 0)  # each by itself, they would cross
    assert np.all(np.diff(sorted_, axis=1) >= 0)
    assert sorted_.shape == (300, 5)
    y = np.random.default_rng(2).normal(size=300)
    before, after = (
        np.sum(
            [np.maximum(q * (y - f), (q - 1) * (y - f)) for q, f in zip(levels, table.T, strict=True)], axis=0
        )
        for table in (raw, sorted_)
    )
    assert np.all(after <= before + 1e-12)


def test_quantiles_with_weights_of_their_own_are_fits_of_their_own():
    each = MKLRegressor(BANK, loss="quantile", quantiles=LEVELS, multi_output="each", norm=1.5).fit(X, Y)
    assert each.weights_.shape == (3, 3)
    for k, level in enumerate(LEVELS):
        alone = MKLRegressor(BANK, loss=Pinball(level), norm=1.5).fit(X, Y)
        np.testing.assert_array_equal(each.weights_[k], alone.weights_)
        np.testing.assert_array_equal(each.dual_coef_[:, k], alone.dual_coef_)
    assert each.loss_.get_params() == {"quantile": LEVELS}
    shares = [d2_pinball_score(Y, each.predict(X)[:, k], alpha=level) for k, level in enumerate(LEVELS)]
    assert each.score(X, Y) == pytest.approx(
        np.mean(shares), abs=0.01
    )  # another definition of an empirical quantile


def test_one_quantile_is_a_column_where_it_is_given_as_a_list():
    assert MKLRegressor(BANK, loss="quantile", quantiles=[0.9]).fit(X, Y).predict(X).shape == (80, 1)
    high = MKLRegressor(BANK, loss="quantile", quantiles=0.9).fit(X, Y).predict(X)
    assert high.shape == (80,)
    assert np.mean(high >= Y) > 0.8


def test_a_share_of_the_samples_is_below_a_quantile():
    """At most a share q is below and 1 - q above: the condition of the intercept, on the samples of the fit."""
    model = MKLRegressor(BANK, loss="quantile", quantiles=LEVELS, tol=1e-6).fit(X, Y)
    for level, f in zip(LEVELS, model._decision(X).T, strict=True):
        assert np.mean(f > Y + 1e-6) <= 1 - level + 1e-9 or np.mean(f - 1e-6 > Y) <= level + 1e-9
        assert np.mean(f + 1e-4 >= Y) >= level - 1e-9
        assert np.mean(f - 1e-4 > Y) <= level + 1e-9


# ---- offsets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "lp", "grouped", "uniform"])
@pytest.mark.parametrize("name", ["quantile", "huber", "poisson"])
def test_the_optimum_with_weights_and_an_intercept_is_that_of_a_conic_solver(name, norm):
    loss = {"quantile": ref.pinball(0.3), "huber": ref.huber(0.5), "poisson": ref.POISSON}[name]
    reference = {
        "l1": ref.l1_norm(), "lp": ref.lp_norm(1.5), "grouped": ref.grouped_norm(1.0, 2.0, "aab"), "uniform": ref.uniform_norm(),
    }[norm]  # fmt: skip
    n, C = 25, 2.0
    Ks, y = ref.kernel_stack(n, 3), COUNTS[:n] if name == "poisson" else ref.targets(n, True)
    problem = MKLProblem(
        build_bank(None, Ks, normalize=None), loss.make(), reference.make(), y, C, WEIGHT[:n]
    )
    solver = choose_solver(problem.loss, problem.norm, problem.bank)
    found = solve(problem, solver, Stop(tol=1e-9, max_iter=500)).certificate
    conic = ref.conic_optimum(Ks, y, C * WEIGHT[:n], loss, reference, True)
    assert found.primal == pytest.approx(conic.value, rel=1e-6)
    assert found.dual == pytest.approx(conic.value, rel=1e-6)


def test_an_offset_is_in_the_expected_count():
    """The optimum of the counts themselves, ``exp(f + offset)``, by a conic solver."""
    n, C, offset = 30, 0.7, np.log(EXPOSURE[:30])
    K = X[:n] @ X[:n].T
    model = MKLRegressor(kw.linear(), loss="poisson", C=C, normalize=None, tol=1e-9)
    model.fit(X[:n], COUNTS[:n], sample_weight=WEIGHT[:n], offset=offset)
    w, b, y = cp.Variable(4), cp.Variable(), COUNTS[:n]
    f = X[:n] @ w + b + offset
    constant = y - np.where(y > 0, y * np.log(np.maximum(y, 1)), 0)
    charge = (C * WEIGHT[:n]) @ (cp.exp(f) - cp.multiply(y, f) - constant)
    best = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + charge)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.coef_[0], w.value, atol=1e-5)
    assert K.shape == (n, n)
    np.testing.assert_allclose(
        model.predict(X, offset=np.log(EXPOSURE)), EXPOSURE * model.predict(X), rtol=1e-12
    )


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "epsilon_insensitive"])
def test_an_offset_is_taken_off_the_targets_of_other_losses(loss):
    offset = X[:, 3]
    with_it = MKLRegressor(BANK, loss=loss).fit(X, Y + offset, offset=offset)
    without = MKLRegressor(BANK, loss=loss).fit(X, Y)
    np.testing.assert_allclose(with_it.predict(X), without.predict(X), atol=1e-9)
    assert with_it.score(X, Y + offset, offset=offset) == pytest.approx(
        without.score(X, Y), abs=0.2 if loss != "squared" and loss != "epsilon_insensitive" else 0.5
    )


@pytest.mark.parametrize("multi_output", ["shared", "each"])
def test_an_offset_of_several_targets(multi_output):
    table = np.column_stack([COUNTS, np.roll(COUNTS, 1)])
    model = MKLRegressor(BANK, loss="poisson", multi_output=multi_output).fit(
        X, table, offset=np.log(EXPOSURE)
    )
    rates = MKLRegressor(BANK, loss="poisson", multi_output=multi_output).fit(
        X, table / EXPOSURE[:, None], sample_weight=EXPOSURE
    )
    np.testing.assert_allclose(model.predict(X), rates.predict(X), rtol=1e-9)
    assert 0 < model.score(X, table, offset=np.log(EXPOSURE)) < 1


# ---- cross-validation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["quantile", "poisson", "huber"])
def test_cross_validation_goes_by_the_error_of_the_loss(loss):
    y, Cs, folds = (COUNTS if loss == "poisson" else Y), [0.01, 0.3, 10.0], KFold(3)
    offset = np.log(EXPOSURE) if loss == "poisson" else None
    more = {"quantiles": 0.8} if loss == "quantile" else {}
    search = MKLRegressorCV(BANK, loss=loss, norm="l1", Cs=Cs, cv=folds, center=False, **more)
    search.fit(X, y, offset=offset)
    table, error = search.cv_results_, search.loss_.error
    by_hand = []
    for C in Cs:
        for train, test in folds.split(X):
            model = MKLRegressor(BANK, loss=search.loss_, C=C, tol=1e-4)
            known = None if offset is None else offset[train]
            predicted = model.fit(X[train], y[train], offset=known).predict(
                X[test], offset=None if offset is None else offset[test]
            )
            if loss == "quantile":
                by_hand.append(mean_pinball_loss(y[test], predicted, alpha=0.8))
            elif loss == "poisson":
                by_hand.append(mean_poisson_deviance(y[test], predicted))
            else:
                r, delta = np.abs(y[test] - predicted), search.loss_.delta
                by_hand.append(np.mean(np.where(r <= delta, r**2 / 2, delta * r - delta**2 / 2)))
    by_hand = np.reshape(by_hand, (3, 3))
    known = table.pivot_table(index="C", columns="fold", values=error).to_numpy()
    np.testing.assert_allclose(known, by_hand, rtol=0.08)  # folds are solved roughly
    assert Cs[int(np.argmin(known.mean(axis=1)))] == search.C_
    assert "squared_error" not in table
    # of the user's own score predictions are given, and not logarithms
    other = MKLRegressorCV(
        BANK, loss=loss, norm="l1", Cs=Cs[:2], cv=folds, scoring="neg_mean_absolute_error", **more
    )
    scores = other.fit(X, y).cv_results_["score"]
    assert np.all(scores < 0)
    assert np.all(np.abs(scores) < 3 * np.mean(np.abs(y)))


@pytest.mark.parametrize("multi_output", ["shared", "each"])
def test_cross_validation_of_several_quantiles(multi_output):
    search = MKLRegressorCV(
        BANK,
        loss="quantile",
        quantiles=[0.2, 0.8],
        norm="l1",
        Cs=[0.1, 1.0, 10.0],
        cv=3,
        multi_output=multi_output,
    ).fit(X, Y)
    assert search.predict(X).shape == (80, 2)
    assert np.shape(search.C_) == ((2,) if multi_output == "each" else ())
    assert np.all(np.isfinite(search.scores_))
    assert "pinball_loss" in search.cv_results_
    alone = MKLRegressorCV(BANK, loss="quantile", quantiles=[0.8], norm="l1", Cs=[0.1], cv=3).fit(X, Y)
    assert alone.predict(X).shape == (80, 1)
    one_by_one = MKLRegressorCV(BANK, loss="quantile", norm="l1", Cs=[0.1, 1.0], cv=20).fit(X[:20], Y[:20])
    assert np.isfinite(one_by_one.best_score_)


@pytest.mark.parametrize("multi_output", ["shared", "each"])
def test_the_right_share_of_held_out_samples_is_below_the_quantiles_of_a_search(multi_output):
    levels, folds = [0.1, 0.9], KFold(4)
    search = MKLRegressorCV(
        BANK,
        loss="quantile",
        quantiles=levels,
        norm="l1",
        Cs=[10.0],
        cv=folds,
        multi_output=multi_output,
        center=False,
    ).fit(X, Y)
    held_out = np.empty((80, 2))
    for train, test in folds.split(X):
        model = MKLRegressor(
            BANK, loss="quantile", quantiles=levels, C=10.0, multi_output=multi_output, tol=1e-5
        ).fit(X[train], Y[train])
        held_out[test] = model._decision(X[test])
    assert (
        np.mean(held_out[:, 0] < Y) - np.mean(held_out[:, 1] < Y) < 0.75
    )  # they are too close to each other
    for k, level in enumerate(levels):
        below = np.mean(Y[:, None] < held_out[:, [k]] + search.shift_[k] + np.array([-0.02, 0.02]), axis=0)
        assert below[0] <= level + 1e-9
        assert below[1] >= level - 1e-9
    np.testing.assert_allclose(
        search.predict(X), np.sort(search._decision(X) + search.shift_, axis=1), atol=1e-12
    )
    squared = MKLRegressorCV(BANK, norm="l1", Cs=[10.0], cv=3).fit(X, Y)
    assert not hasattr(squared, "shift_")
    search.set_params(loss="squared", quantiles=None).fit(X, Y)
    assert not hasattr(search, "shift_")


# ---- outliers ------------------------------------------------------------------------------------------------------


def test_the_scale_of_the_noise_is_found_and_outliers_do_not_move_it():
    rng = np.random.default_rng(3)
    Z = rng.uniform(-3, 3, size=(400, 1))
    clean = np.sin(Z[:, 0])
    y = clean + 0.2 * rng.normal(size=400)
    plain = MKLRegressor(kw.gaussian([1.0]), loss="huber").fit(Z, y)
    assert plain.loss_.delta == pytest.approx(1.345 * 0.2, rel=0.15)
    times = MKLRegressor(kw.gaussian([1.0]), loss="huber").fit(Z, 100 * y)
    assert times.loss_.delta == pytest.approx(100 * plain.loss_.delta, rel=1e-9)
    wild = y.copy()
    wild[::8] += 50.0
    robust = MKLRegressor(kw.gaussian([1.0]), loss="huber", C=10.0).fit(Z, wild)
    assert robust.loss_.delta < 2 * plain.loss_.delta
    squared = MKLRegressor(kw.gaussian([1.0]), loss="squared", C=10.0).fit(Z, wild)
    assert np.sqrt(np.mean((robust.predict(Z) - clean) ** 2)) < 0.15
    assert np.sqrt(np.mean((squared.predict(Z) - clean) ** 2)) > 1.0
    assert MKLRegressor(kw.gaussian([1.0]), loss=Huber(0.7)).fit(Z, y).loss_.delta == 0.7
    assert 0 < robust.score(Z, wild) < 1


@pytest.mark.parametrize("y", [np.zeros(12), np.r_[np.zeros(11), 5.0]], ids=["constant", "all but one"])
def test_the_scale_of_targets_that_hardly_differ(y):
    fitted = MKLRegressor(kw.linear(), loss="huber").fit(np.arange(12.0)[:, None], y)
    assert np.isfinite(fitted.loss_.delta)
    assert fitted.loss_.delta > 0


def test_several_targets_have_a_scale_each_where_they_have_weights_each():
    table = np.column_stack([Y, 100 * Y])
    fitted = MKLRegressor(BANK, loss="huber", multi_output="each").fit(X, table)
    np.testing.assert_allclose(fitted.predict(X)[:, 1], 100 * fitted.predict(X)[:, 0], rtol=0.02, atol=0.5)


# ---- refusals, files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "y", "more", "words"),
    [
        ({"loss": "squared", "quantiles": [0.5]}, Y, {}, "quantiles go with loss='quantile'"),
        ({"loss": "quantile", "quantiles": [0.5, 0.1]}, Y, {}, "increasing order"),
        ({"loss": "quantile", "quantiles": 1.5}, Y, {}, "strictly between 0 and 1"),
        (
            {"loss": "quantile", "quantiles": [0.1, 0.9]},
            np.column_stack([Y, Y]),
            {},
            "a model for each target",
        ),
        ({"loss": "poisson"}, Y, {}, "counts or rates, which are >= 0"),
        ({"loss": "poisson"}, COUNTS, {"offset": np.zeros(3)}, "one per sample"),
        ({"loss": "poisson"}, COUNTS, {"offset": np.full(80, np.nan)}, "finite numbers"),
        ({"loss": Huber(-1.0)}, Y, {}, "delta > 0"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, y, more, words):
    with pytest.raises(ValueError, match=words):
        MKLRegressor(BANK, **parameters).fit(X, y, **more)


def test_evidence_takes_an_offset_and_no_other_loss():
    offset = X[:, 3]
    shifted = MKLRegressorCV(BANK, criterion="reml").fit(X, Y + offset, offset=offset)
    plain = MKLRegressorCV(BANK, criterion="reml").fit(X, Y)
    np.testing.assert_allclose(shifted.predict(X), plain.predict(X), atol=1e-9)
    values, deviations = shifted.predict(X[:3], return_std=True, offset=np.ones(3))
    np.testing.assert_allclose(values, plain.predict(X[:3]) + 1.0, atol=1e-9)
    assert np.all(deviations > 0)
    with pytest.raises(ValueError, match="is for loss='squared'"):
        MKLRegressorCV(BANK, criterion="reml", loss="poisson").fit(X, COUNTS)


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "quantile", "quantiles": [0.1, 0.9]},
        {"loss": "quantile", "quantiles": [0.1, 0.9], "multi_output": "each"},
        {"loss": "huber"},
        {"loss": "poisson"},
        {"loss": "quantile", "quantiles": [0.1, 0.9], "Cs": [0.1], "cv": 2},
    ],
    ids=repr,
)
def test_saved_and_loaded_again(parameters, tmp_path):
    model = (MKLRegressorCV if "cv" in parameters else MKLRegressor)(BANK, **parameters).fit(X, COUNTS)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, COUNTS) == model.score(X, COUNTS)
    assert repr(again.loss_) == repr(model.loss_)


def test_known_weights_of_a_path_over_C_follow_several_quantiles():
    from kernelweave.solvers import follow_path

    bank, y = build_bank(None, kernel_stack(20, 3), normalize=None), np.repeat(Y[:20, None], 2, axis=1)
    solver = choose_solver(Pinball([0.2, 0.8]), norms.make_norm("l1"), bank)
    weight = np.where(np.arange(20) < 3, 0.0, 1.0)
    found = list(
        follow_path(
            bank,
            Pinball([0.2, 0.8]),
            norms.make_norm("l1"),
            solver,
            y,
            [0.1, 1.0, 10.0],
            Stop(tol=1e-6),
            sample_weight=weight,
        )
    )
    for C, _, one in found:
        alone = MKLProblem(bank, losses.Pinball([0.2, 0.8]), norms.make_norm("l1"), y, C, weight)
        fresh = solve(alone, solver, Stop(tol=1e-6)).certificate
        assert one.certificate.primal == pytest.approx(fresh.primal, rel=2e-6)
