"""Norms with structure in the weights against a conic solver that is given the set of weights itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import references as ref
from kernelweave.banks import build_bank
from kernelweave.norms import ElasticBlocks
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve

from .making import STRUCTURED, make_case
from .test_optimum import check_optimum

FIVE = [ref.HINGE, ref.SQUARED_HINGE, ref.LOGISTIC, ref.SQUARED, ref.epsilon_insensitive(0.1)]
#: every norm with every loss, one after the other with and without an intercept; all of them with and without are in
#: benchmarks/structure.py
CASES = [
    pytest.param(
        norm, loss, (a + b) % 2 == 0, id=f"{norm}-{loss.label}-{'with' if (a + b) % 2 == 0 else 'without'}"
    )
    for (a, norm), (b, loss) in product(enumerate(STRUCTURED), enumerate(FIVE))
]


@pytest.mark.parametrize(("norm", "loss", "fit_intercept"), CASES)
def test_every_norm_and_loss(norm, loss, fit_intercept):
    check_optimum(make_case(loss, norm, fit_intercept, n=10, m=5))


def test_the_update_of_pronto_leaves_our_optimum_where_it_is():
    """``1 / (sqrt(mu) / lambda_j + 1 - mu)`` with ``lambda = t / (sqrt(mu) sum(t))``, as its elastic-net MKL has it."""
    mu = 0.4
    stack = ref.kernel_stack(20, 5, 0)
    bank = build_bank(None, stack, normalize=None)
    problem = MKLProblem(bank, ref.HINGE.make(), ElasticBlocks(mu), ref.targets(20, False, 0), 3.0)
    point = solve(problem, registry["newton"](), Stop(tol=1e-9)).point
    t = point.weights * np.sqrt(ref.quadratic_forms(stack, point.beta))
    used = t > 0
    share = t[used] / (np.sqrt(mu) * t.sum())
    np.testing.assert_allclose(1 / (np.sqrt(mu) / share + 1 - mu), point.weights[used], rtol=1e-3)
