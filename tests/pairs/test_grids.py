"""Closed forms of what whole grids leave out, against fits without it, and the weights that are chosen by them."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLRegressor, MKLRegressorCV, PairKFold, Pairs, persistence
from kernelweave import kernels as kw
from kernelweave.evidence.grids import RIDGES, GridKernel
from kernelweave.norms.fixed import TwoStep

from .making import drugs_and_cells, psd

RNG = np.random.default_rng(0)
A, B, Y = psd(RNG, 1, 7)[0], psd(RNG, 1, 6)[0], RNG.normal(size=(7, 6)) + 2.0
TAU, SIGMA, RIDGE = 0.3, 0.7, 0.05


def refitted(out, has_intercept):
    """Predictions of the cells that are left out, from a linear system of all others."""
    K = np.kron(A, B) + TAU * np.kron(A, np.eye(6)) + SIGMA * np.kron(np.eye(7), B)
    out, y = out.ravel(), Y.ravel()
    n = np.count_nonzero(~out)
    system = np.zeros((n + has_intercept, n + has_intercept))
    system[:n, :n] = K[np.ix_(~out, ~out)] + RIDGE * np.eye(n)
    if has_intercept:
        system[n, :n] = system[:n, n] = 1.0
    solved = np.linalg.solve(system, np.append(y[~out], 0.0)[: n + has_intercept])
    return K[np.ix_(out, ~out)] @ solved[:n] + (solved[n] if has_intercept else 0.0)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("setting", ["pairs", "left", "right"])
def test_what_is_left_out_is_what_a_fit_of_the_others_says(setting, has_intercept):
    grid = GridKernel.of(A, B)
    found = grid.left_out(Y, grid.inverse(TAU, SIGMA, RIDGE), setting, has_intercept)
    for r in range(7):
        for c in range(6):
            out = np.zeros(Y.shape, dtype=bool)
            out[slice(None) if setting == "right" else r, slice(None) if setting == "left" else c] = True
            known = found[r : r + 1, c : c + 1] if setting == "pairs" else found[out][:, None]
            np.testing.assert_allclose(known.ravel(), refitted(out, has_intercept), atol=1e-8)


def test_two_steps_and_both_objects_left_out():
    grid = GridKernel.of(A, B)
    alpha, _ = grid.coefficients(Y, grid.inverse(TAU, SIGMA, TAU * SIGMA), False)
    steps = np.linalg.inv(A + SIGMA * np.eye(7)) @ Y @ np.linalg.inv(B + TAU * np.eye(6))
    np.testing.assert_allclose(alpha, steps, atol=1e-10)
    found = grid.both_left_out(Y, TAU, SIGMA)
    for r, c in ((0, 0), (3, 5), (6, 2)):
        rows, cols = np.delete(np.arange(7), r), np.delete(np.arange(6), c)
        left = A[r, rows] @ np.linalg.inv(A[np.ix_(rows, rows)] + SIGMA * np.eye(6))
        right = B[c, cols] @ np.linalg.inv(B[np.ix_(cols, cols)] + TAU * np.eye(5))
        assert found[r, c] == pytest.approx(left @ Y[np.ix_(rows, cols)] @ right, abs=1e-10)


@pytest.mark.parametrize("setting", ["pairs", "left", "right", "both"])
def test_ridges_are_those_of_the_least_error(setting):
    grid = GridKernel.of(A, B)
    tau, sigma = grid.best_ridges(Y, np.array([0.1, 1.0]), setting, False)

    def error(tau, sigma):
        if setting == "both":
            return np.mean((Y - grid.both_left_out(Y, tau, sigma)) ** 2)
        by = (grid.inverse(tau, sigma, ridge) for ridge in (0.1, 1.0))
        return min(np.mean((Y - grid.left_out(Y, g, setting, False)) ** 2) for g in by)

    assert error(tau, sigma) == pytest.approx(min(error(t, s) for t in RIDGES for s in RIDGES))


X, y = drugs_and_cells(3, 12, 10, 0.0)


@pytest.mark.parametrize("setting", ["pairs", "left", "right", "both"])
def test_a_search_tries_two_steps(setting, tmp_path):
    """On a whole grid their weights are ``u_i v_j``, as the closed forms in the setting of the folds say."""
    bank = kw.pairs(left=kw.gaussian([1.0, 2.0]), right=kw.linear())
    options = {"Cs": [0.1, 1.0], "cv": PairKFold(3, setting=setting), "center": False, "tol": 1e-5}
    search = MKLRegressorCV(bank, **options).fit(X, y)
    assert set(search.cv_results_["norm"]) == {"l1", "l1.33333", "l2", "uniform", "two-step"}
    sides = [
        np.mean([K / np.mean(np.diagonal(K)) for K in kernels], axis=0)
        for kernels in (
            [kernel(side.objects) for kernel in made.expand(kw.Schema.of(side.objects))]
            + [np.ones((len(side), len(side)))]
            for made, side in ((kw.gaussian([1.0, 2.0]), X.left), (kw.linear(), X.right))
        )
    ]
    tau, sigma = GridKernel.of(*sides).best_ridges(y.reshape(12, 10), np.array([5.0, 0.5]), setting, True)
    u, v = [1 / 3, 1 / 3, 1 / 3, sigma], [0.5, 0.5, tau]
    table = np.outer(u, v)  # (constant, constant) and (identity, identity) are no kernels
    norm = TwoStep(np.concatenate([table[0], table[1], table[2, [0, 2]], table[3, :2]]))
    model = MKLRegressor(bank, norm=norm, C=1.0, tol=1e-9).fit(X, y)
    persistence.save(model, tmp_path / "model.kw")
    np.testing.assert_array_equal(persistence.load(tmp_path / "model.kw").predict(X), model.predict(X))
    # the search with these weights alone has the same errors on the folds
    alone = MKLRegressorCV(bank, norm=norm, **options).fit(X, y)
    assert norm.weights_rule == "they are those of two-step ridge regression"
    tried = search.cv_results_[search.cv_results_["norm"] == "two-step"]
    np.testing.assert_allclose(
        tried["squared_error"].to_numpy(), alone.cv_results_["squared_error"].to_numpy(), rtol=5e-3
    )


@pytest.mark.parametrize("normalize", [None, "trace"])
def test_centred_kernels_get_the_same_two_steps(normalize):
    """An intercept takes up what centring does, so that the errors of whole grids are the same."""
    bank, errors = kw.pairs(left=kw.linear(), right=kw.gaussian(2.0)), []
    for center in (False, True):
        options = {"Cs": [0.1, 1.0], "cv": PairKFold(2), "center": center, "normalize": normalize}
        table = MKLRegressorCV(bank, **options).fit(X, y).cv_results_
        errors.append(table.loc[table["norm"] == "two-step", "squared_error"].to_numpy())
    # kernels are normalised anew on every fold
    np.testing.assert_allclose(errors[0], errors[1], rtol=0.05 if normalize else 1e-3)


def test_two_steps_where_the_grid_is_not_whole_or_sides_have_no_identity():
    few = X[np.arange(0, len(y), 2)]
    bank = kw.pairs(left=kw.linear(), right=kw.linear())
    made = MKLRegressorCV(bank, Cs=[1.0], cv=PairKFold(2, setting="left")).fit(few, y[::2])
    assert "two-step" in set(made.cv_results_["norm"])
    plain = kw.pairs(left=kw.linear() + kw.gaussian(1.0), right=kw.linear(), identity=False)
    made = MKLRegressorCV(plain, Cs=[1.0], cv=PairKFold(2, setting="left")).fit(few, y[::2])
    assert "two-step" not in set(made.cv_results_["norm"])
    kind = Pairs(X.left, index=np.argwhere(np.ones((12, 12))))
    own = kw.pairs(left=kw.linear(), symmetric=True)
    made = MKLRegressorCV(own, Cs=[1.0], cv=PairKFold(2)).fit(kind, RNG.normal(size=144))
    assert "two-step" not in set(made.cv_results_["norm"])
