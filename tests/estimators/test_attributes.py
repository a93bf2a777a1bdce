"""What a fitted estimator tells: shapes, names, the table of the way there."""

from __future__ import annotations

import html
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kernelweave import (
    AlignmentClassifier,
    BestKernelClassifier,
    LPBetaClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    persistence,
    solvers,
)
from kernelweave import kernels as kw
from kernelweave.banks import Decision

from . import by_hand
from .data import bank

COLUMNS = ["iteration", "seconds", "passes", "primal", "dual", "relative_gap", "active_kernels"]

CASES = {
    "binary": (MKLClassifier(bank()), by_hand.moons, (10,), (60,), ()),
    "binary lp": (MKLClassifier(bank(), norm=2), by_hand.moons, (10,), (60,), ()),
    "one against the rest": (MKLClassifier(bank(), multi_class="ovr"), by_hand.blobs, (3, 9), (60, 3), (3,)),
    "joint": (MKLClassifier(bank()), by_hand.blobs, (9,), (60, 3), (3,)),
    "shared weights": (MKLClassifier(bank(), multi_class="shared"), by_hand.blobs, (9,), (60, 3), (3,)),
    "regression": (MKLRegressor(bank()), by_hand.curve, (9,), (60,), ()),
}


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    estimator, make, *shapes = CASES[request.param]
    X, y = make(60)
    return estimator.fit(X, y), X, y, shapes


def test_shapes(fitted):
    model, X, y, (weights, coef, intercept) = fitted
    assert model.weights_.shape == weights
    assert model.dual_coef_.shape == coef
    assert np.shape(model.intercept_) == intercept
    assert model.certificate_.dual_point.shape == coef
    assert model.n_features_in_ == X.shape[1]
    if isinstance(model, MKLClassifier):
        assert np.array_equal(model.classes_, np.unique(y))
        assert np.array_equal(model.support_, np.flatnonzero(model.dual_coef_.reshape(60, -1).any(axis=1)))


def test_names(fitted):
    model, X, _, (weights, _, _) = fitted
    assert model.kernel_names_.shape == weights[-1:]
    assert all(isinstance(name, str) for name in model.kernel_names_)
    assert list(model.kernel_names_[:5]) == [
        "gaussian(width=0.25)",
        "gaussian(width=0.5)",
        "gaussian(width=1)",
        "gaussian(width=2)",
        "linear",
    ]
    assert model.kernel_names_[5] == "polynomial(degree=2) on features 0, 1"
    assert model.kernel_names_[-1] == f"laplacian(width=1) on feature {X.shape[1] - 1}"


def test_certificate_and_status(fitted):
    model, *_ = fitted
    assert model.status_ == "converged"
    assert -1e-12 <= model.certificate_.relative_gap <= 1e-3
    assert "optimum" in repr(model.certificate_)
    assert all(c.relative_gap <= 1e-3 for c in model.certificates_)
    assert model.solver_ in set(solvers.registry) - {"auto"}
    assert model.bank_bytes_ > 0


def test_trace(fitted):
    model, *_ = fitted
    trace = model.trace_
    assert isinstance(trace, pd.DataFrame)
    several = len(model.certificates_) > 1
    assert list(trace.columns) == (["problem", *COLUMNS] if several else COLUMNS)
    assert trace["iteration"].dtype.kind == trace["active_kernels"].dtype.kind == "i"
    assert not trace.isna().any().any()
    if several:
        assert list(trace["problem"].unique()) == list(model.classes_)
    groups = [part for _, part in trace.groupby("problem", sort=False)] if several else [trace]
    assert max(len(part) for part in groups) == model.n_iter_
    for part in groups:
        assert list(part["iteration"]) == list(range(1, len(part) + 1))
        for column in ("seconds", "passes"):
            assert np.all(np.diff(part[column]) > 0), column
        assert np.all(np.diff(part["primal"]) <= 0)  # best so far
        assert np.all(np.diff(part["dual"]) >= 0)
        assert np.all(np.diff(part["relative_gap"]) <= 0)
        gap = (part["primal"] - part["dual"]) / np.maximum(part["primal"].abs(), part["dual"].abs())
        np.testing.assert_allclose(part["relative_gap"], gap)
        assert part["relative_gap"].iloc[-1] <= 1e-3
        assert np.all(part["relative_gap"].iloc[:-1] > 1e-3)
        assert np.all((part["active_kernels"] >= 1) & (part["active_kernels"] <= model.weights_.shape[-1]))
    # what the estimator reads after the loop, for the final certificate, is counted too
    assert (
        model.n_passes_ >= trace["passes"].groupby(trace.get("problem", 0 * trace["iteration"])).max().sum()
    )


def test_passes_are_counted_from_nothing_at_every_fit():
    X, y = by_hand.moons(60)
    model = MKLClassifier(bank())
    first = model.fit(X, y).n_passes_
    assert model.fit(X, y).n_passes_ == pytest.approx(first)
    assert 0 < first < 60


@pytest.mark.parametrize("solver", ["newton", "level", "silp", "simplemkl", "subgradient"])
def test_solver_by_name_and_by_instance(solver):
    X, y = by_hand.moons(60)
    by_name = MKLClassifier(bank(), solver=solver).fit(X, y)
    by_instance = MKLClassifier(bank(), solver=solvers.registry[solver]()).fit(X, y)
    assert by_name.solver_ == by_instance.solver_ == solver
    np.testing.assert_allclose(by_name.weights_, by_instance.weights_, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "picked"),
    [
        ({}, "newton"),
        ({"norm": 2.0}, "newton"),
        ({"norm": "uniform"}, "fixed_weights"),
        ({"norm": "max"}, "lp_analytic"),
        ({"norm": "entropy"}, "newton"),
        ({"norm": "max", "loss": "logistic"}, "lp_analytic"),
    ],
)
def test_auto_says_what_it_picked(options, picked):
    X, y = by_hand.moons(60)
    model = MKLClassifier(bank(), **options).fit(X, y)
    assert model.solver_ == picked
    assert model.solver == "auto"


def test_sparse_choice_and_dense_choice():
    X, y = by_hand.moons(80, 4)
    sparse = MKLClassifier(bank(), norm="l1", tol=1e-5).fit(X, y).weights_
    dense = MKLClassifier(bank(), norm=4, tol=1e-5).fit(X, y).weights_
    assert np.count_nonzero(sparse) < 10  # exact zeros
    assert np.all(dense > 0)
    assert sparse.sum() == pytest.approx(1.0)
    assert (dense**4).sum() == pytest.approx(1.0, abs=1e-6)


def test_planted_feature_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = np.abs(X[:, 4]) > 0.7
    clf = MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0])), C=5.0).fit(X, y)
    on_four = ["feature 4" in name for name in clf.kernel_names_]
    assert clf.weights_[on_four].sum() > 0.6
    assert np.flatnonzero(clf.weights_).size < 12


def test_a_fit_says_what_was_decided_and_why(fitted):
    model, X, y, _ = fitted
    decision = model.decision_
    assert isinstance(decision, Decision)
    assert (decision.solver, decision.place) == (model.solver_, "host")
    assert (decision.representation, decision.storage) == ("mixed", "family")
    assert decision.bytes >= model.bank_bytes_
    assert decision.reason == str(decision)
    assert decision.reason.startswith(f"{model.solver_} on explicit features and packed matrices: n = 60, ")
    assert html.escape(decision.reason) in model._repr_html_()
    named = clone(model).set_params(solver="newton", storage="lazy").fit(X, y)
    assert named.decision_.rules == ("computed entries", "as asked")
    assert named.decision_.reason.endswith("it is asked for")


def test_the_reason_goes_to_stderr_with_verbose(capfd):
    X, y = by_hand.moons(60)
    model = MKLClassifier(bank(), verbose=2).fit(X, y)
    out, err = capfd.readouterr()
    assert " ".join(err.split()) == str(model.decision_)
    assert max(map(len, err.splitlines())) <= 100
    assert str(model.decision_) not in out


X2, Y2 = by_hand.moons(60)


@pytest.mark.parametrize(
    ("model", "solver", "rule"),
    [
        (MKLClassifierCV(bank(), Cs=[1.0], cv=2), "newton", "second order"),
        (MKLRegressorCV(bank(), Cs=[1.0], cv=2, norm="l1"), "newton", "second order"),
        (MKLRegressorCV(bank(), criterion="loo"), "loo", "as asked"),
        (MeanKernelClassifier(bank()), "fixed_weights", "given weights"),
        (BestKernelClassifier(bank(), cv=2), "fixed_weights", "given weights"),
        (AlignmentClassifier(bank()), "fixed_weights", "given weights"),
        (MeanKernelRidgeClassifier(bank()), "fixed_weights", "given weights"),
        (NoisyLabelMKLClassifier(bank()), "fixed_weights", "given weights"),
        (LPBetaClassifier(bank(), n_folds=2), "linear programming", "as asked"),
        (MKLClassifier(kw.random_fourier(1.0), storage="stream", loss="logistic", norm=2), "svrg", "steps on single rows"),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else str(one),
)  # fmt: skip
def test_every_estimator_with_a_bank_keeps_the_decision(model, solver, rule, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).fit(X2, Y2)
    assert (model.decision_.solver, model.decision_.rules[1]) == (solver, rule)
    assert getattr(model, "solver_", solver) == solver
    persistence.save(model, tmp_path / "model.kw")
    assert persistence.load(tmp_path / "model.kw").decision_ == model.decision_
