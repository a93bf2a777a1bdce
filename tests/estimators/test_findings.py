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
from kernelweave.exceptions import DegenerateModelWarning

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


def test_the_end_of_the_grid_is_said_and_not_warned_of():
    X, y = table(60, 60, 3.0)
    low = quietly(MKLClassifierCV(BANK, Cs=[1.0, 1e5, 1e6], cv=3), X, y)
    end = [sentence for sentence in low.findings_ if "end of the values tried" in sentence]
    assert bool(end) == (low.C_ in (1.0, 1e6))
    assert quietly(MKLClassifierCV(BANK, Cs=[1.0], cv=3), X, y).findings_ == ()
    smooth = np.sin(X[:, 0])
    least = MKLRegressorCV(BANK, Cs=[1e-6, 1e-5], cv=3).fit(X, smooth)
    assert least.findings_ == (
        "C = 1e-05 was chosen at the upper end of the values tried (1e-06 to 1e-05): a larger one may be better; widen Cs.",
    )


def test_samples_without_weight_do_not_count():
    X, y = table(90, 30, 6.0)
    weight = np.where(y == "malignant", 0.0, 1.0)
    weight[-4:] = 1.0  # four of the others are left
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateModelWarning)
        MKLClassifier(BANK).fit(X, y, sample_weight=weight)
