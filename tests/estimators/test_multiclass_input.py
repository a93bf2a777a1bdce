"""Several classes and bad input: a clear error, or a fit where there is nothing wrong."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLClassifierCV, norms
from kernelweave import kernels as kw

BANK = kw.gaussian([0.5, 1.0, 2.0])


@pytest.fixture(scope="module")
def alone():
    """Three classes, one of them of a single sample."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    y[0] = 2
    return 2.0 * np.eye(3)[y] + 0.3 * rng.normal(size=(30, 3)), y


@pytest.mark.parametrize("r", [0.5, 0.99, 2.5, -1.0, np.nan])
def test_block_exponents_that_are_none(r):
    with pytest.raises(ValueError, match="Block needs 1 <= r <= 2 or r = inf"):
        norms.Block(r)


@pytest.mark.parametrize("p", [0.5, 0.999, 0.0])
def test_exponents_on_the_weights_below_one(p, alone):
    with pytest.raises(ValueError, match=r"Lp needs p > 1.*for the block exponent r use"):
        MKLClassifier(BANK, norm=p).fit(*alone)


def test_a_joint_loss_one_against_the_rest(alone):
    with pytest.raises(ValueError, match="judges all classes together: use multi_class='joint'"):
        MKLClassifier(BANK, loss="multiclass_hinge", multi_class="ovr").fit(*alone)


def test_a_class_with_one_sample_can_be_learnt(alone):
    X, y = alone
    for norm in ("l1", norms.Block(1.25)):
        clf = MKLClassifier(BANK, norm=norm, C=10.0).fit(X, y)
        assert clf.predict(X[:1]) == 2
        assert clf.certificate_.relative_gap <= 1e-3


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_class_with_one_sample_cannot_be_cross_validated(alone):
    with pytest.raises(ValueError, match="no training sample of class"):
        MKLClassifierCV(BANK, Cs=[1.0, 10.0], cv=3).fit(*alone)


@pytest.mark.parametrize("solver", ["obscure", "pegasos", "dual_ascent"])
def test_online_solvers_name_what_they_need(solver, alone):
    with pytest.raises(ValueError, match=r"needs a \(2, r\) block norm with r > 1"):
        MKLClassifier(BANK, norm="l1", solver=solver, fit_intercept=False).fit(*alone)
    with pytest.raises(ValueError, match="has no intercept: use fit_intercept=False"):
        MKLClassifier(BANK, norm=norms.Block(1.5), solver=solver).fit(*alone)
