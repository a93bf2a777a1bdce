"""The budgeted hinge from the outside: by name, by instance, with every kind of solver, weights and classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier, losses
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveConvergenceWarning

BANK = kw.gaussian((0.5, 1.0, 2.0)) + kw.per_feature(kw.gaussian(1.0))


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(80, 5, n_informative=3, flip_y=0.2, random_state=0)
    return scale(X), y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "level", "nesterov", "mirror_prox"])
def test_every_solver_gives_the_same_classifier(noisy, solver, fit_intercept):
    loss = losses.BudgetedHinge(budget=0.3)
    model = MKLClassifier(BANK, loss=loss, solver=solver, fit_intercept=fit_intercept, C=0.5).fit(*noisy)
    assert model.certificate_.relative_gap <= model.tol
    assert 0.0 < model.certificate_.margin < 1.0
    best = MKLClassifier(BANK, loss=loss, tol=1e-7, fit_intercept=fit_intercept, C=0.5).fit(*noisy)
    assert model.certificate_.primal == pytest.approx(best.certificate_.primal, rel=1e-3)
    scores, exact = model.decision_function(noisy[0]), best.decision_function(noisy[0])
    clear = np.abs(exact) > 0.1 * np.abs(exact).max()
    np.testing.assert_array_equal(np.sign(scores[clear]), np.sign(exact[clear]))


def test_by_name_it_is_the_hinge(noisy):
    named = MKLClassifier(BANK, loss="budgeted_hinge").fit(*noisy)
    plain = MKLClassifier(BANK, loss="hinge").fit(*noisy)
    np.testing.assert_array_equal(named.dual_coef_, plain.dual_coef_)


def test_parameters_can_be_searched_and_cloned(noisy):
    model = MKLClassifier(BANK, loss=losses.BudgetedHinge(), C=0.5, tol=1e-2)
    assert clone(model).set_params(loss__budget=0.25).loss.budget == 0.25
    search = GridSearchCV(model, {"loss__budget": [0.2, 0.6]}, cv=2).fit(*noisy)
    assert search.best_params_["loss__budget"] in (0.2, 0.6)


def test_sample_weights_are_repetitions(noisy):
    X, y = noisy
    weight = np.random.default_rng(0).integers(0, 3, size=80).astype(float)
    options = {"loss": losses.BudgetedHinge(0.3), "C": 0.5, "tol": 1e-7, "normalize": None}
    weighted = MKLClassifier(BANK, **options).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(80), weight.astype(int))
    repeated = MKLClassifier(BANK, **options).fit(X[rows], y[rows])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("shared", [False, True])
def test_several_classes(shared):
    X, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=1)
    loss = losses.BudgetedHinge(0.3)
    model = MKLClassifier(BANK, loss=loss, multi_class="shared" if shared else "ovr", C=0.3).fit(scale(X), y)
    assert model.certificate_.margin < 1.0
    assert all(certificate.relative_gap <= model.tol for certificate in model.certificates_)
    assert model.score(scale(X), y) > 0.6


def test_a_mirror_prox_fit_that_is_cut_short_predicts_what_it_certifies(noisy):
    X, y = noisy
    model = MKLClassifier(BANK, loss=losses.BudgetedHinge(0.3), solver="mirror_prox", max_iter=3, tol=1e-9)
    with pytest.warns(KernelWeaveConvergenceWarning, match="mirror_prox"):
        model.fit(X, y)
    f = model.decision_function(X)
    signs = np.where(y == 1, 1.0, -1.0)
    charged = losses.BudgetedHinge(0.3).total(signs, f, np.ones(80))
    assert model.certificate_.primal > charged
    assert model.certificate_.dual <= model.certificate_.primal
