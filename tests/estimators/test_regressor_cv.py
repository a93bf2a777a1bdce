"""MKLRegressorCV: certified paths, and weights per target by evidence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit, cross_val_predict

from kernelweave import MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveWarning

VIEWS = kw.per_view({"a": slice(0, 4), "b": slice(4, 8), "c": slice(8, 12)}, kw.linear())
EVIDENCE = ["reml", "loo", "folds"]


def data(n: int = 80, t: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Target k is made by view k modulo 3 alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    Y = np.stack([X[:, 4 * (k % 3) : 4 * (k % 3) + 4] @ rng.normal(size=4) for k in range(t)], axis=1)
    return X, Y + 0.7 * rng.normal(size=(n, t)) + 5.0


@pytest.mark.parametrize("criterion", EVIDENCE)
def test_every_target_finds_its_view(criterion: str) -> None:
    X, Y = data()
    model = MKLRegressorCV(VIEWS, criterion=criterion).fit(X[:60], Y[:60])
    assert model.criterion_ == criterion
    assert model.weights_.shape == (6, 3)
    assert list(np.argmax(model.weights_, axis=1)) == [0, 1, 2, 0, 1, 2]
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)
    assert model.predict(X[60:]).shape == (20, 6)
    assert model.score(X[60:], Y[60:]) > 0.6
    assert set(model.targets_["status"]) <= {"stationary", "max_steps"}
    assert model.targets_["relative_gap"].max() < 1e-9
    assert np.all(model.targets_[criterion] > 0)
    np.testing.assert_allclose(model.C_, 0.5 / model.alpha_)


@pytest.mark.parametrize("criterion", EVIDENCE)
def test_predictions_are_those_of_kernel_ridge_and_scores_of_samples_left_out(criterion: str) -> None:
    X, Y = data(60, 2)
    model = MKLRegressorCV(VIEWS, criterion=criterion, cv=KFold(4)).fit(X, Y)
    parts = [X[:, 4 * j : 4 * j + 4] - X[:, 4 * j : 4 * j + 4].mean(axis=0) for j in range(3)]
    K = [P @ P.T / np.mean(np.sum(P**2, axis=1)) for P in parts]
    # a large constant kernel is an intercept without a penalty
    for k in range(2):
        mixed = np.tensordot(model.weights_[k], K, axes=1) + 1e6
        ridge = KernelRidge(alpha=model.alpha_[k], kernel="precomputed")
        np.testing.assert_allclose(
            model.predict(X)[:, k], ridge.fit(mixed, Y[:, k]).predict(mixed), atol=1e-4
        )
        folds = KFold(4 if criterion == "folds" else 60)
        held_out = cross_val_predict(ridge, mixed, Y[:, k], cv=folds)
        expected = 1 - np.sum((Y[:, k] - held_out) ** 2) / np.sum((Y[:, k] - Y[:, k].mean()) ** 2)
        np.testing.assert_allclose(model.scores_[k], expected, atol=1e-4)


@pytest.mark.parametrize("criterion", EVIDENCE)
def test_samples_without_weight_are_not_there_and_one_target_is_a_vector(criterion: str) -> None:
    X, Y = data(60, 2)
    weight = np.ones(60)
    weight[50:] = 0.0
    folds = [(np.delete(np.arange(60), test), test) for test in np.array_split(np.arange(60), 6)]
    # the last fold has no weight at all, and counts for nothing
    one = MKLRegressorCV(VIEWS, criterion=criterion, normalize=None, cv=folds).fit(X, Y[:, 0], weight)
    short = [(np.delete(np.arange(50), test), test) for test in np.array_split(np.arange(50), 5)]
    other = MKLRegressorCV(VIEWS, criterion=criterion, normalize=None, cv=short).fit(X[:50], Y[:50, 0])
    assert one.weights_.shape == (3,)
    assert isinstance(float(one.alpha_), float)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-7)
    twice = MKLRegressorCV(VIEWS, criterion="reml").fit(X, Y, np.full(60, 2.0))
    np.testing.assert_allclose(
        twice.predict(X), MKLRegressorCV(VIEWS, criterion="reml").fit(X, Y).predict(X), atol=0.1
    )


def test_convex_on_one_target_is_the_best_of_a_certified_path() -> None:
    X, y = make_regression(60, 12, n_informative=3, noise=20.0, random_state=0)
    Cs = [0.01, 0.1, 1.0]
    model = MKLRegressorCV(VIEWS, Cs=Cs, norms=["l1", 2], cv=KFold(3)).fit(X, y)
    table = model.cv_results_
    assert len(table) == 3 * 3 * 2
    assert table["relative_gap"].max() <= 1e-2  # ten times tol, that of the fit with what is chosen
    assert model.certificate_.relative_gap <= 1e-3
    means = table.groupby(["norm", "C"])["score"].mean()
    assert means[model.norm_.label, model.C_] == means.max() == model.scores_
    again = MKLRegressor(VIEWS, C=model.C_, norm=model.norm_, center=True).fit(X, y)
    np.testing.assert_allclose(model.predict(X), again.predict(X), atol=1e-6)
    assert list(model.targets_["status"]) == ["certified"]
    # one cell of the table, fitted by hand
    train, test = next(KFold(3).split(X))
    fold = MKLRegressor(VIEWS, C=0.1, center=True).fit(X[train], y[train])
    cell = table[(table["norm"] == "l1") & (table["C"] == 0.1) & (table["fold"] == 0)]["score"].item()
    np.testing.assert_allclose(cell, fold.score(X[test], y[test]), atol=5e-3)


def test_convex_chooses_per_target_or_for_all() -> None:
    X, Y = data(50, 3)
    Y[:, 2] = np.random.default_rng(0).normal(size=50)
    each = MKLRegressorCV(VIEWS, Cs=[0.01, 1.0], cv=3).fit(X, Y)
    assert each.weights_.shape == (3, 3)
    assert each.C_.shape == (3,)
    assert each.C_[2] < each.C_[0]
    assert set(each.cv_results_["target"]) == {0, 1, 2}
    alone = MKLRegressorCV(VIEWS, Cs=[0.01, 1.0], cv=3).fit(X, Y[:, 1])
    assert each.C_[1] == alone.C_
    shared = MKLRegressorCV(VIEWS, Cs=[0.01, 1.0], cv=3, multi_output="shared").fit(X, Y)
    assert shared.weights_.shape == (3,)
    assert shared.predict(X).shape == (50, 3)


def test_groups_blocks_and_warnings() -> None:
    X, Y = data(30, 2)
    X, Y, groups = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0), np.repeat(np.arange(30), 2)
    with pytest.warns(KernelWeaveWarning, match="promises too much"):
        twins = MKLRegressorCV(kw.gaussian([0.3, 3.0]), criterion="loo").fit(X, Y)
    honest = MKLRegressorCV(kw.gaussian([0.3, 3.0]), criterion="folds", cv=GroupKFold(5)).fit(
        X, Y, groups=groups
    )
    assert twins.scores_.mean() > 0.99 > honest.scores_.mean()
    with pytest.raises(ValueError, match=r"KFold\(shuffle=False\)"):
        MKLRegressorCV(VIEWS, criterion="folds", cv=TimeSeriesSplit(3)).fit(X, Y)
    with pytest.raises(ValueError, match="groups are for"):
        MKLRegressorCV(VIEWS, criterion="reml").fit(X, Y, groups=groups)


def test_bad_input() -> None:
    X, Y = data(30, 3)
    for parameters, message in [
        ({"criterion": "best"}, "criterion must be one of"),
        ({"criterion": "reml", "loss": "epsilon_insensitive"}, "loss='squared'"),
        ({"criterion": "reml", "norms": ["l1"]}, "norms are for"),
        ({"criterion": "reml", "multi_output": "shared"}, "shared weights"),
        ({"criterion": "reml", "targets_in_batch": 0}, "targets_in_batch"),
        ({"criterion": "reml", "memory_budget": "50KB"}, "Ways out"),
        ({"criterion": "reml", "memory_budget": "2KB"}, "fits of 2 targets at a time"),
        ({"normalize": "cosine"}, "GridSearchCV over MKLRegressor"),
    ]:
        with pytest.raises(ValueError, match=message):
            MKLRegressorCV(VIEWS, **parameters).fit(X, Y)
    with pytest.raises(ValueError, match="no targets"):
        MKLRegressorCV(VIEWS, criterion="reml").fit(X, Y[:, :0])
    model = MKLRegressorCV(VIEWS, criterion="reml")
    Y[:, 1] = 3.0
    fitted = clone(model).fit(X, Y)
    assert fitted.targets_["status"][1] == "constant"
    assert fitted.alpha_[1] == np.inf
    np.testing.assert_allclose(fitted.predict(X)[:, 1], 3.0)
    Y[2, 0] = np.nan
    assert MKLRegressorCV(VIEWS, Cs=[0.1, 1.0], cv=3).fit(X, Y).status_ == "converged"
    Y[:, 0] = np.nan
    with pytest.raises(ValueError, match="no value at all"):
        clone(model).fit(X, Y)


@pytest.mark.parametrize("criterion", EVIDENCE)
def test_what_evidence_cannot_weigh_is_refused(criterion: str) -> None:
    X, Y = data(30, 3)
    held = kw.linear() + kw.always(kw.gaussian(1.0), 0.5)
    with pytest.raises(
        ValueError, match=f"criterion='{criterion}' takes the weights of all kernels from a rule"
    ):
        MKLRegressorCV(held, criterion=criterion).fit(X, Y)
    Y[:, 1] = np.nan
    Y[0, 1] = 3.0
    weight = np.ones(30)
    weight[0] = 0.0
    with pytest.raises(ValueError, match="target 1 has no value at samples that have weight: leave it out"):
        MKLRegressorCV(VIEWS, criterion=criterion).fit(X, Y, weight)


@pytest.mark.parametrize("criterion", EVIDENCE)
def test_targets_that_lack_samples_are_fitted_without_them(criterion: str) -> None:
    X, Y = data(60, 4)
    Y[[3, 7], 1] = Y[[3, 7], 2] = Y[50:, 3] = np.nan
    model = MKLRegressorCV(VIEWS, criterion=criterion, normalize=None, cv=KFold(4))
    fitted = clone(model).fit(X, Y)
    assert fitted.weights_.shape == (4, 3)
    for k in range(4):
        known = np.isfinite(Y[:, k]).astype(float)
        target = np.column_stack([np.where(known, Y[:, k], 0.0)] * 2)
        alone = clone(model).fit(X, target, sample_weight=known)
        np.testing.assert_array_equal(fitted.weights_[k], alone.weights_[0])
        np.testing.assert_allclose(fitted.predict(X)[:, k], alone.predict(X)[:, 0], atol=1e-8)
        np.testing.assert_allclose(fitted.scores_[k], alone.scores_[0], atol=1e-6)
    assert fitted.certificate_.relative_gap < 1e-9
    with pytest.raises(ValueError, match="missing entries"):
        fitted.predict(X, return_std=True)
    # one pattern fewer: the targets that are left have what they had
    two = clone(model).fit(X, Y[:, :3])
    np.testing.assert_array_equal(two.weights_, fitted.weights_[:3])
    np.testing.assert_allclose(two.scores_, fitted.scores_[:3], atol=1e-9)


def test_batches_and_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = data(50, 9)
    whole = MKLRegressorCV(VIEWS, criterion="reml").fit(X, Y)
    parts = MKLRegressorCV(VIEWS, criterion="reml", targets_in_batch=2, verbose=1).fit(X, Y)
    np.testing.assert_array_equal(whole.weights_, parts.weights_)
    np.testing.assert_allclose(whole.predict(X), parts.predict(X), atol=1e-8)
    pd = pytest.importorskip("pandas")
    pd.testing.assert_frame_equal(whole.targets_, parts.targets_, rtol=1e-4, atol=1e-6)
    assert "9/9" in capsys.readouterr().err


def test_blocks_of_time_are_left_out_as_wholes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 12))
    drift = np.repeat(rng.normal(size=(6, 3)), 15, axis=0)  # a level of its own for every stretch of time
    Y = X[:, :3] + 3.0 * drift + 0.5 * rng.normal(size=(90, 3))
    X = np.column_stack([X, np.arange(90)])
    bank = VIEWS + kw.per_view({"time": [12]}, kw.gaussian(3.0))
    blocks = MKLRegressorCV(bank, criterion="folds", cv=KFold(6, shuffle=False)).fit(X, Y)
    mixed = MKLRegressorCV(bank, criterion="folds", cv=KFold(6, shuffle=True, random_state=0)).fit(X, Y)
    # the time helps where neighbours are left in, and not where a whole stretch is left out
    assert np.all(mixed.weights_[:, 3] > 0)
    assert blocks.weights_[:, 3].mean() < 0.5 * mixed.weights_[:, 3].mean()
    assert mixed.scores_.mean() > blocks.scores_.mean() + 0.2


def test_bounds_by_evidence_are_in_double_precision_whatever_the_storage():
    """Objective and lower bound of ``dtype='float32'`` are those of the kernels themselves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    model = MKLRegressorCV(kw.linear(), criterion="reml", dtype="float32").fit(X, y)
    Z = X - X.mean(axis=0)
    K = Z @ Z.T
    K /= np.mean(np.diagonal(K))
    f = model.weights_[0] * K @ model.dual_coef_ + model.intercept_
    charged = 0.5 * model.weights_[0] * model.dual_coef_ @ K @ model.dual_coef_
    objective = charged + model.C_ * np.sum((y - f) ** 2)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-12)
    assert model.certificate_.dual <= objective * (1 + 1e-12)
