"""What a fit says of itself first: one class for nearly everything, C at an end of its grid."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import (
    LPBetaClassifier,
    MeanKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
)
from kernelweave import (
    kernels as kw,
)
from kernelweave._estimating import end_of_grid, undecided
from kernelweave.exceptions import DegenerateModelWarning, GridEndWarning, KernelWeaveWarning

BANK = kw.gaussian([1.0, 4.0]) + kw.linear()


def table(n_first: int, n_second: int, shift: float, seed: int = 0):
    """Two classes in four columns, ``shift`` apart in the first one."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["benign", "malignant"], [n_first, n_second])
    X = rng.normal(size=(y.size, 4))
    X[:, 0] += np.where(y == "malignant", shift, 0.0)
    return X, y


def quietly(estimator, X, y):
    """Fit; no finding may be a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateModelWarning)
        return clone(estimator).fit(X, y)


@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifier(BANK, C=0.01),
        MeanKernelClassifier(BANK, C=0.01),
        LPBetaClassifier(BANK, C=0.01),
        NoisyLabelMKLClassifier(BANK, method="trimmed", C=0.01),
        MKLClassifierCV(BANK, Cs=[0.003, 0.01], cv=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_one_class_for_nearly_everything_is_a_warning_and_a_finding(estimator):
    X, y = table(90, 30, 1.0)
    with pytest.warns(DegenerateModelWarning, match="predicts class 'benign' for 1.. of 1") as caught:
        fitted = estimator.fit(X, y)
    assert len([one for one in caught if issubclass(one.category, DegenerateModelWarning)]) == 1
    assert caught[0].filename == __file__
    assert isinstance(fitted.findings_, tuple)
    assert fitted.findings_[0] == str(caught[0].message)
    assert "class_weight='balanced'" in fitted.findings_[0]


def test_samples_without_weight_are_not_counted():
    X, y = table(90, 30, 1.0)
    weight = np.where(np.arange(120) < 80, 1.0, 0.0)
    weight[110:] = 1.0  # 80 and 10 are left
    with pytest.warns(DegenerateModelWarning, match=r"'benign' for 90 of 90 training samples, though 10"):
        MKLClassifier(BANK, C=0.01).fit(X, y, weight)


def test_useful_models_have_no_finding():
    X, y = table(90, 30, 3.0)
    assert quietly(MKLClassifier(BANK), X, y).findings_ == ()
    assert quietly(MKLClassifier(BANK, class_weight="balanced", C=0.01), X, y).findings_ == ()
    rare = table(300, 6, 8.0)  # 2 % of the samples, and found
    assert quietly(MKLClassifier(BANK), *rare).findings_ == ()


def test_three_classes_of_which_one_answers_for_all():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [80, 20, 20])
    with pytest.warns(DegenerateModelWarning, match=r"class 0 for 120 of 120 training samples, though 40"):
        MKLClassifier(BANK, C=1e-3).fit(rng.normal(size=(120, 3)), y)


def test_the_search_judges_by_held_out_samples():
    """A fit may know its training samples by heart and say one class for all others."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 20])
    with pytest.warns(DegenerateModelWarning, match="of 80 held-out samples"):
        MKLClassifierCV(kw.gaussian(0.01), Cs=[10.0], cv=4).fit(rng.normal(size=(80, 5)), y)


def test_the_end_of_the_grid_is_a_warning_where_the_scores_still_rise():
    X, _ = table(60, 60, 3.0)
    with pytest.warns(GridEndWarning, match="C = 1e-05 was chosen at the upper end") as caught:
        least = MKLRegressorCV(BANK, Cs=[1e-6, 1e-5], cv=3).fit(X, np.sin(X[:, 0]))
    assert caught[0].filename == __file__
    assert least.findings_[-1] == str(caught[0].message)
    assert least.findings_[-1].endswith("(1e-06 to 1e-05): a larger one may be better; widen Cs.")
    with pytest.warns(GridEndWarning, match="for 2 of 2 targets at the upper end"):
        MKLRegressorCV(BANK, Cs=[1e-6, 1e-5], cv=3).fit(X, np.sin(X[:, :2]))
    rare, labels = table(90, 30, 4.0)
    with pytest.warns(GridEndWarning, match="upper end of the values tried .0.001 to 0.05.*larger one may"):
        MKLClassifierCV(BANK, Cs=[0.001, 0.05], cv=3).fit(rare, labels)


def test_flat_scores_at_the_end_of_the_grid_are_said_and_not_warned_of():
    X, y = table(60, 60, 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelWeaveWarning)
        flat = MKLClassifierCV(BANK, Cs=[1e5, 1e6], cv=3).fit(X, y)
        inside = MKLClassifierCV(BANK, Cs=[1.0], cv=3).fit(X, y)
    assert "where the scores are flat" in flat.findings_[-1]
    assert "would hardly change them" in flat.findings_[-1]
    assert inside.findings_ == ()


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_where_the_scores_are_flat(C):
    """A lead within its standard error over the folds, or within a thousandth, is none."""
    Cs = np.array([1.0, 10.0, 100.0])
    sign = 1 if C == 100.0 else -1
    rising = np.array([[0.5, 0.6, 0.7], [0.4, 0.5, 0.61], [0.6, 0.71, 0.8]])[:, ::sign]
    assert end_of_grid(C, Cs, rising)[1]
    noisy = np.array([[0.5, 0.6, 0.9], [0.4, 0.7, 0.61], [0.6, 0.71, 0.7]])[:, ::sign]
    assert not end_of_grid(C, Cs, noisy)[1]
    hardly = np.array([[0.5, 0.8, 0.80001], [0.4, 0.7, 0.70001]])[:, ::sign]
    assert not end_of_grid(C, Cs, hardly)[1]
    assert end_of_grid(10.0, Cs, rising) is None
    # a small error that is halved is no flat one; a single fold has no standard error
    halved = -np.array([[1.0, 0.001, 0.0005]])[:, ::sign]
    assert end_of_grid(C, Cs, halved, error="squared_error")[1]
    assert (
        "(0.0005, and 0.0005 at C = 10)"
        in end_of_grid(C, Cs, -np.array([[1.0, 5e-4, 5e-4]])[:, ::sign], error="squared_error")[0]
    )


def test_samples_without_weight_do_not_count():
    X, y = table(90, 30, 6.0)
    weight = np.where(y == "malignant", 0.0, 1.0)
    weight[-4:] = 1.0  # four of the others are left
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateModelWarning)
        MKLClassifier(BANK).fit(X, y, sample_weight=weight)


def test_sentences_name_the_error():
    rising = -np.array([[0.9, 0.5, 0.1], [0.8, 0.5, 0.2]])
    Cs = np.array([0.1, 1.0, 10.0])
    assert end_of_grid(10.0, Cs, rising, error="poisson_deviance")[1]
    flat = end_of_grid(10.0, Cs, -np.array([[0.9, 0.2, 0.2]]), error="pinball_loss")[0]
    assert "pinball losses are flat" in flat
    shares = np.array([[1.0, 0.0], [0.5, 0.5]])
    said = undecided(Cs[:2], ["l1", "l1"], 3, np.array([0.4, 0.4]), 0, shares, ["a", "b"], "poisson_deviance")
    assert "not decided by the Poisson deviances" in said
