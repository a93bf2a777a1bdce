"""Fits on pairs: the same as on matrices, certified, and everything else that people do with a model."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from kernelweave import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    PairKFold,
    Pairs,
    inspection,
    persistence,
)
from kernelweave import kernels as kw
from kernelweave.banks.pairs import MixedProducts
from kernelweave.norms import Grouped

from .making import drugs_and_cells, psd

X, Y = drugs_and_cells()
LABELS = np.where(np.median(Y) < Y, 1, -1)
BANK = kw.pairs(left=kw.gaussian([1.0, 2.0]), right=kw.gaussian([1.0, 3.0]) + kw.linear())
TOL = 1e-6


def fits(loss, norm, tol=TOL, **others):
    """The same problem by products and on matrices."""
    made = []
    for storage in ("auto", "dense"):
        if loss in ("squared", "epsilon_insensitive"):
            model, y = MKLRegressor(BANK, loss=loss, norm=norm, tol=tol, storage=storage, **others), Y
        else:
            model, y = MKLClassifier(BANK, loss=loss, norm=norm, tol=tol, storage=storage, **others), LABELS
        made.append(model.fit(X, y))
    return made


def same(one, other, tol=TOL):
    a, b = one.certificate_, other.certificate_
    assert max(a.relative_gap, b.relative_gap) <= tol
    assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1 + 1e-12)
    assert abs(a.primal - b.primal) <= (a.relative_gap + b.relative_gap) * abs(a.primal) + 1e-12


@pytest.mark.parametrize(
    "norm", ["l1", 1.2, 2, "uniform", "entropy", Grouped("l1", 2, groups="views")], ids=str
)
@pytest.mark.parametrize(
    "loss", ["squared", "logistic", "squared_hinge", "huber_hinge", "hinge", "epsilon_insensitive"]
)
def test_every_loss_and_norm_is_that_of_explicit_matrices(loss, norm):
    by_products, dense = fits(loss, norm, C=2.0)
    assert (by_products.decision_.storage, dense.decision_.storage) == ("products", "dense")
    same(by_products, dense)
    np.testing.assert_allclose(
        by_products.predict(X)
        if loss in ("squared", "epsilon_insensitive")
        else by_products.decision_function(X),
        dense.predict(X) if loss in ("squared", "epsilon_insensitive") else dense.decision_function(X),
        atol=0.02,
    )


@pytest.mark.parametrize(
    "solver",
    ["newton", "silp", "level", "simplemkl", "nesterov", "working_set", "lp_analytic", "proximal_newton"],
)
def test_solvers_that_ask_for_other_things_find_the_same(solver):
    loss = "squared_hinge" if solver in ("working_set", "nesterov") else "logistic"
    norm, tol = (1.5 if solver == "lp_analytic" else "l1"), 1e-4
    one, other = fits(loss, norm, tol, solver=solver, C=0.5)
    same(one, other, tol)


@pytest.mark.parametrize(
    "options", [{"C": 1e-2}, {"C": 30.0}, {"fit_intercept": False}, {"center": True}], ids=str
)
def test_extremes_of_C_no_intercept_and_centred_kernels(options):
    same(*fits("squared", "l1", **options))
    one, other = fits("logistic", 1.5, **options)
    same(one, other)
    new = Pairs(np.random.default_rng(9).normal(size=(3, 3)), X.right.objects, [[0, 1], [2, 8], [1, 1]])
    np.testing.assert_allclose(one.decision_function(new), other.decision_function(new), atol=0.02)


def test_weights_of_samples_and_several_targets():
    weight = np.random.default_rng(0).choice([0.0, 1.0, 3.0], len(Y))
    several = np.column_stack([Y, -(Y**2)])
    for y, own in ((Y, weight), (several, None), (several, weight)):
        made = [MKLRegressor(BANK, tol=TOL, storage=s).fit(X, y, own) for s in ("auto", "dense")]
        same(*made)
    codes = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
    for options in ({}, {"loss": "logistic", "multi_class": "shared"}, {"loss": "multinomial"}):
        made = [MKLClassifier(BANK, tol=1e-5, storage=s, **options).fit(X, codes) for s in ("auto", "dense")]
        same(*made, 1e-5)


def test_the_optimum_is_that_of_a_conic_solver():
    cp = pytest.importorskip("cvxpy")
    few = X[:30]
    model = MKLRegressor(BANK, tol=1e-8, C=1.5, normalize=None).fit(few, Y[:30])
    kernels = [kernel(few) for kernel in BANK.expand(kw.Schema.of(few))]
    n, beta, t = 30, cp.Variable(30), cp.Variable()
    roots = [np.linalg.cholesky(K + 1e-11 * np.eye(n)).T for K in kernels]
    dual = cp.Maximize(Y[:30] @ beta - cp.sum_squares(beta) / (4 * 1.5) - t)
    problem = cp.Problem(dual, [cp.sum_squares(R @ beta) / 2 <= t for R in roots] + [cp.sum(beta) == 0])
    problem.solve(solver=cp.CLARABEL)
    assert model.certificate_.primal == pytest.approx(problem.value, rel=1e-6)


@pytest.mark.parametrize("sign", ["symmetric", "antisymmetric"])
def test_pairs_of_one_kind(sign):
    rng = np.random.default_rng(0)
    proteins = rng.normal(size=(9, 3))
    P = Pairs(proteins, index=[(i, j) for i in range(9) for j in range(i)])
    z = rng.normal(size=len(P))
    bank = kw.pairs(kw.gaussian([1.0, 2.0]), symmetric=sign)
    made = [
        MKLRegressor(bank, tol=TOL, storage=s, fit_intercept=sign == "symmetric").fit(P, z)
        for s in ("auto", "dense")
    ]
    same(*made)
    turned = Pairs(P.left, index=P.index[:, ::-1])
    values, back = made[0].predict(P), made[0].predict(turned)
    np.testing.assert_allclose(back, values if sign == "symmetric" else -values, atol=1e-10)
    # a holder of its own for the same objects, and a new one
    new = Pairs(np.vstack([proteins[:2], rng.normal(size=(1, 3))]), index=[[0, 1], [2, 1]])
    np.testing.assert_allclose(made[0].predict(new), made[1].predict(new), atol=1e-3)
    with pytest.raises(ValueError, match="pairs of one kind"):
        MKLRegressor(bank).fit(X, Y)
    with pytest.raises(ValueError, match="two kinds, and the model was fitted on pairs of one kind"):
        made[0].predict(Pairs(proteins, proteins.copy(), [[0, 1]]))


# ---- what must not matter ----------------------------------------------------------------------------------------------


def test_order_sides_and_names_of_objects_do_not_matter():
    first = MKLRegressor(BANK, tol=1e-8).fit(X, Y)
    rng = np.random.default_rng(1)
    order, drugs = rng.permutation(len(Y)), rng.permutation(8)
    place = np.argsort(drugs)
    shuffled = Pairs(X.left.objects[drugs], X.right.objects, np.column_stack([place[X.left_of], X.right_of]))[
        order
    ]
    second = MKLRegressor(BANK, tol=1e-8).fit(shuffled, Y[order])
    swapped = Pairs(X.right.objects, X.left.objects, X.index[:, ::-1])
    third = MKLRegressor(kw.pairs(left=BANK.right, right=BANK.left), tol=1e-8).fit(swapped, Y)
    for other, samples in ((second, shuffled[np.argsort(order)]), (third, swapped)):
        assert other.certificate_.primal == pytest.approx(first.certificate_.primal, rel=3e-8)
        np.testing.assert_allclose(other.predict(samples), first.predict(X), atol=2e-3)
    spread = Pairs(
        np.vstack([X.left.objects, np.zeros((2, 3))]), X.right.objects, X.index
    )  # objects in no pair
    assert MKLRegressor(BANK, tol=1e-8).fit(spread, Y).certificate_.primal == first.certificate_.primal


def test_one_right_object_makes_ordinary_kernels():
    drugs, y = np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=40)
    alone = Pairs(drugs, np.ones((1, 1)), np.column_stack([np.arange(40), np.zeros(40, int)]))
    kernels = kw.gaussian([0.5, 1.0, 2.0])
    made = MKLRegressor(
        kw.pairs(left=kernels, right=kw.constant(), main=False, identity=False), tol=1e-8
    ).fit(alone, y)
    plain = MKLRegressor(kernels, tol=1e-8).fit(drugs, y)
    assert made.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-8)
    np.testing.assert_allclose(made.predict(alone), plain.predict(drugs), atol=1e-3)


@pytest.mark.parametrize("what", ["inverse", "hessian"])
def test_certificates_hold_whatever_is_guessed(monkeypatch, what):
    """Only time may change where the preconditioner or the model of the Hessian is noise."""
    wanted = MKLRegressor(BANK, tol=1e-5).fit(X, Y).certificate_
    rng = np.random.default_rng(0)
    if what == "inverse":
        factors = rng.uniform(0.1, 10.0, len(Y))
        monkeypatch.setattr(
            MixedProducts,
            "inverse",
            lambda self, noise: lambda a: np.where(np.isfinite(noise), factors, 0.0) * a,
        )
    else:
        monkeypatch.setattr(MixedProducts, "hessian", lambda self, *_: psd(rng, 1, self.store.m)[0])
    got = MKLRegressor(BANK, tol=1e-5, max_iter=300).fit(X, Y).certificate_
    assert got.relative_gap <= 1e-5
    assert got.dual <= wanted.primal * (1 + 1e-12)
    assert wanted.dual <= got.primal * (1 + 1e-12)


def test_few_of_many_pairs_go_one_by_one():
    rng = np.random.default_rng(3)
    drugs, cells = rng.normal(size=(80, 3)), rng.normal(size=(90, 3))
    at = rng.permutation(80 * 90)[:250]
    few = Pairs(drugs, cells, np.column_stack(np.divmod(at, 90)))
    y = np.sin(drugs[few.left_of, 0]) * cells[few.right_of, 0] + 0.1 * rng.normal(size=250)
    bank = kw.pairs(left=kw.gaussian([1.0, 3.0]), right=kw.gaussian(1.0))
    for estimator, target, loss in ((MKLRegressor, y, "squared"), (MKLClassifier, y > 0, "squared_hinge")):
        made = [estimator(bank, loss=loss, tol=1e-5, storage=s).fit(few, target) for s in ("auto", "dense")]
        same(*made, 1e-5)


# ---- as people use it --------------------------------------------------------------------------------------------------


def test_searches_clones_pickles_and_files(tmp_path):
    model = MKLRegressor(BANK)
    assert len(cross_val_score(model, X, Y, cv=PairKFold(3, setting="right"))) == 3
    by_folds = MKLRegressorCV(BANK, Cs=[1.0], norm="l1", cv=PairKFold(3, setting="left"))
    persistence.save(clone(by_folds).fit(X, Y), tmp_path / "folds.kw")
    again = persistence.load(tmp_path / "folds.kw")
    assert (again.cv.n_splits, again.cv.setting) == (3, "left")
    search = GridSearchCV(model, {"C": [0.1, 1.0], "kernels__identity": [True, False]}, cv=3).fit(X, Y)
    assert set(search.best_params_) == {"C", "kernels__identity"}
    fitted = clone(model).fit(X, Y)
    persistence.save(fitted, tmp_path / "model.kw")
    new = Pairs(np.random.default_rng(2).normal(size=(2, 3)), X.right.objects, [[0, 3], [1, 0], [1, 1]])
    for again in (pickle.loads(pickle.dumps(fitted)), persistence.load(tmp_path / "model.kw")):
        for samples in (X, new):
            np.testing.assert_array_equal(again.predict(samples), fitted.predict(samples))
    parts = inspection.contributions(fitted, new)
    np.testing.assert_allclose(parts.decision, fitted.predict(new), atol=1e-10)
    with pytest.raises(ValueError, match="samples that are no pairs"):
        fitted.predict(X, return_std=True)


def test_C_is_chosen_in_the_setting_of_use_and_by_evidence():
    for setting in ("pairs", "left"):
        model = MKLRegressorCV(BANK, Cs=[0.1, 1.0], cv=PairKFold(3, setting=setting)).fit(X, Y)
        train, test = next(PairKFold(3, setting=setting).split(X))
        row = model.cv_results_.query("fold == 0 and C == 1.0 and norm == 'uniform'").iloc[0]
        own = MKLRegressor(BANK, norm="uniform", center=True, tol=1e-6).fit(X[train], Y[train])
        wanted = np.mean((own.predict(X[test]) - Y[test]) ** 2)
        assert row["squared_error"] == pytest.approx(wanted, rel=2e-2)
    # random labels: nothing is clearly ahead of equal weights
    noise = np.random.default_rng(0).normal(size=len(Y))
    careful = MKLRegressorCV(BANK, Cs=[0.01, 1.0], cv=PairKFold(3, setting="left")).fit(X, noise)
    assert careful.norm_.fixed
    classifier = MKLClassifierCV(BANK, loss="logistic", Cs=[1.0], cv=PairKFold(3, setting="right")).fit(
        X, LABELS
    )
    assert len(classifier.cv_results_) == 3
    assert MKLRegressorCV(BANK, criterion="reml").fit(X, Y).status_ == "stationary"


def test_tables_of_objects_are_brought_by_name():
    drugs = pd.DataFrame(
        X.left.objects, columns=["mass", "charge", "rings"], index=[f"d{k}" for k in range(8)]
    )
    pairs = Pairs(drugs, X.right.objects, X.index)
    bank = kw.pairs(left=kw.gaussian(1.0).on(["mass", "rings"]), right=kw.linear())
    model = MKLRegressor(bank).fit(pairs, Y)
    known = Pairs(drugs.iloc[[3]], X.right.objects, [["d3", 2]])
    both = (pairs.left_of == 3) & (pairs.right_of == 2)
    if both.any():
        assert model.predict(known)[0] == pytest.approx(model.predict(pairs[both])[0])
    renamed = Pairs(drugs.set_axis(["new"] * 1 + [f"x{k}" for k in range(7)]), X.right.objects, X.index)
    assert not np.allclose(
        model.predict(renamed), model.predict(pairs)
    )  # strangers have no effect of their own
    with pytest.raises(ValueError, match="in another order"):
        model.predict(Pairs(drugs[["rings", "mass", "charge"]], X.right.objects, [[0, 0]]))
    with pytest.raises(ValueError, match="there is no 'rings'"):
        model.predict(Pairs(drugs.rename(columns={"rings": "cycles"}), X.right.objects, [[0, 0]]))
    with pytest.raises(ValueError, match="left objects of X have 2 columns"):
        model.predict(Pairs(drugs.iloc[:, :2], X.right.objects, [[0, 0]]))


def test_views_matrices_and_lists_as_sides():
    rng = np.random.default_rng(0)
    A, B = psd(rng, 3, 8), psd(rng, 2, 9)
    held = MKLRegressor(kw.pairs(left=A, right=list(B))).fit(Pairs(8, 9, X.index), Y)
    assert held.kernel_names_[0] == "held 0 x held 0"
    assert held.certificate_.relative_gap <= 1e-3
    omics = {"mrna": X.right.objects[:, :2], "protein": X.right.objects[:, 2:]}
    bank = kw.pairs(left=kw.linear(), right=kw.gaussian(1.0), main=False, identity=False)
    views = MKLRegressor(bank).fit(Pairs(X.left.objects, omics, X.index), Y)
    assert views.kernel_names_.tolist() == [
        "linear x gaussian(width=1) on mrna",
        "linear x gaussian(width=1) on protein",
    ]
    strings = ["C", "CC", "CCC", "O", "CO", "N", "CN", "OO"]
    overlap = kw.function(lambda a, b: float(len(set(a) & set(b))), name="overlap")
    table = MKLRegressor(kw.pairs(left=overlap, right=kw.linear())).fit(
        Pairs(strings, X.right.objects, X.index), Y
    )
    assert table.predict(Pairs(["CCN"], X.right.objects, [[0, 0]])).shape == (1,)
    sparse = pytest.importorskip("scipy.sparse")
    some = Pairs(sparse.csr_matrix(X.left.objects), X.right.objects, X.index)
    whole = MKLRegressor(BANK, tol=1e-7).fit(X, Y)
    assert MKLRegressor(BANK, tol=1e-7).fit(some, Y).certificate_.primal == pytest.approx(
        whole.certificate_.primal, rel=1e-6
    )


def test_the_table_of_weights_and_groups_of_either_side():
    model = MKLRegressor(BANK).fit(X, Y)
    table = inspection.pair_table(model, margins=True)
    assert table.shape == (5, 6)
    assert table.loc["all", "all"] == pytest.approx(1.0)
    assert np.isnan(table.loc["identity", "identity"])
    assert np.isnan(table.loc["constant", "constant"])
    right = Grouped("l1", 2, groups=BANK.groups(X, "right"))
    grouped = MKLRegressor(BANK, norm=right).fit(X, Y)
    assert set(grouped.view_weights_) == {
        "gaussian(width=1)",
        "gaussian(width=3)",
        "linear",
        "constant",
        "identity",
    }
    left = MKLRegressor(BANK, norm=Grouped("l1", 2, groups="views")).fit(X, Y)
    assert set(left.view_weights_) == {"gaussian(width=1)", "gaussian(width=2)", "constant", "identity"}
    with pytest.raises(ValueError, match="Pairs"):
        inspection.pair_table(MKLRegressor(kw.linear()).fit(X.left.objects, np.arange(8.0)))


def test_weight_on_single_objects_alone_is_said():
    rng = np.random.default_rng(0)
    effects = rng.normal(size=8)[X.left_of]
    bank = kw.pairs(left=kw.constant(1e-9), right=kw.constant(1e-9), main=True)
    with pytest.warns(match="whether two left objects are the same"):
        model = MKLRegressor(bank, norm=Grouped("l1", 2, groups=bank.groups(X))).fit(X, effects)
    new = Pairs(np.full((1, 3), 7.0), X.right.objects, [[0, 0]])
    assert model.predict(new)[0] == pytest.approx(model.intercept_, abs=1e-6)


ONE_KIND = Pairs(X.right.objects, index=[(i, j) for i in range(9) for j in range(i)])


#: two symmetries in one bank
BOTH_SIGNS = kw.pairs(kw.linear(), main=False, identity=False, symmetric="symmetric") + kw.pairs(
    kw.gaussian(1.0), main=False, identity=False, symmetric="antisymmetric"
)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MKLRegressor(kw.gaussian(1.0)).fit(X, Y), "kernels.pairs"),
        (lambda: MKLRegressor().fit(X, Y), "kernels.pairs"),
        (lambda: MKLRegressor(BANK).fit(np.zeros((9, 2)), np.arange(9.0)), "X = Pairs"),
        (lambda: MKLRegressor(BANK, normalize="cosine").fit(X, Y), "not for pairs"),
        (lambda: MKLRegressor(BANK, missing="mean").fit(X, Y), "samples are pairs"),
        (lambda: MKLRegressor(BANK).fit(X, Y).predict(np.zeros((3, 2))), "fitted on pairs, but X is ndarray"),
        (lambda: MKLRegressor(kw.linear()).fit(np.eye(3), [0.0, 1, 2]).predict(X), "other samples, but X is Pairs"),
        (lambda: kw.pairs(left=None), "left is missing"),
        (lambda: kw.pairs(kw.linear(), main=2), "main must be True or False"),
        (lambda: kw.pairs(kw.linear(), symmetric="both"), "symmetric must be"),
        (lambda: BANK.groups(X, "top"), "side must be"),
        (lambda: MKLRegressor(kw.pairs(kw.always(kw.linear()), kw.linear())).fit(X, Y), "always counts"),
        (lambda: MKLRegressor(BOTH_SIGNS).fit(ONE_KIND, Y[:36]), "of one symmetry"),
        (lambda: MKLRegressor(BANK).fit(X[:1], Y[:1]), "minimum of 2"),
        (lambda: MKLRegressor(BANK).fit(Pairs(8, 9, X.index), Y), "works on rows of numbers"),
        (lambda: MKLRegressor(BANK).fit(X, Y[:-1]), "inconsistent"),
        (lambda: MKLRegressor(BANK, memory_budget=1000).fit(X, Y), "Ways out"),
        (lambda: MKLRegressor(kw.pairs(left=np.eye(4), right=np.eye(9))).fit(Pairs(8, 9, X.index), Y), "holds 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_a_way_out(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_gaps_in_the_objects_are_refused():
    drugs = X.left.objects.copy()
    drugs[2, 1] = np.nan
    with pytest.raises(ValueError, match="left objects contain NaN"):
        MKLRegressor(BANK).fit(Pairs(drugs, X.right.objects, X.index), Y)


def test_a_fit_of_many_pairs_allocates_nothing_of_their_square_nor_of_pairs_times_kernels():
    rng = np.random.default_rng(0)
    size, kernels = 500, 12
    A = psd(rng, kernels, size, 20)
    y = (A[0] @ rng.normal(size=(size, size)) @ A[1]).ravel()
    y = y / np.std(y) + 0.5 * rng.normal(size=y.size)
    grid = Pairs.from_grid(size, size, y.reshape(size, size))
    model = MKLRegressor(kw.pairs(left=A, right=A, main=False, identity=False), norm=2, tol=0.1, C=0.1)
    MKLRegressor(BANK).fit(X, Y)  # what is imported and compiled is not counted
    tracemalloc.start()
    try:
        model.fit(grid, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    n, m = len(grid), kernels**2
    assert model.certificate_.relative_gap <= 0.1
    assert model.n_iter_ > 1
    assert peak < 8 * n * m < 8 * n**2
