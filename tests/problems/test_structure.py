"""Norms with structure in the weights against a conic solver that is given the set of weights itself."""

from __future__ import annotations

import pytest

import references as ref

from .making import STRUCTURED, make_case
from .test_optimum import check_optimum, with_and_without

FIVE = [ref.HINGE, ref.SQUARED_HINGE, ref.LOGISTIC, ref.SQUARED, ref.epsilon_insensitive(0.1)]
#: one of each kind; the others differ from these in a number, and are run with one loss
EVERY_LOSS = ["elastic-strong", "elastic_net-0.5", "grouped-1-2", "grouped-2-1", "l1-fixed"]


@pytest.mark.parametrize("norm", EVERY_LOSS)
@pytest.mark.parametrize("loss", FIVE, ids=lambda loss: loss.label)
@with_and_without
def test_every_loss(norm, loss, fit_intercept):
    check_optimum(make_case(loss, norm, fit_intercept, n=14, m=5))


@pytest.mark.parametrize("norm", sorted(set(STRUCTURED) - set(EVERY_LOSS)))
@pytest.mark.parametrize("loss", [ref.HINGE, ref.LOGISTIC], ids=lambda loss: loss.label)
def test_other_numbers(norm, loss):
    check_optimum(make_case(loss, norm, True, n=14, m=5))
