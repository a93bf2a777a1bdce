"""What rounding may have done to a certificate is taken off it, and no more than that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.banks import build_bank
from kernelweave.exceptions import CertificateError
from kernelweave.losses import Hinge, Squared
from kernelweave.norms import L1, AtMost
from kernelweave.problems import MKLProblem, Point, with_certain_bounds, without_crossed_bounds


def test_a_cut_of_huge_coefficients_does_not_lower_the_bound_that_others_prove():
    n, C = 20, 10.0
    rng = np.random.default_rng(0)
    Ks = np.array([Z @ Z.T for Z in rng.normal(size=(3, n, 4))])
    y = rng.normal(size=n)
    bank = build_bank(None, Ks, normalize=None)
    problem = MKLProblem(bank, Squared(), AtMost(1), y, C, fit_intercept=False)
    # the ridge regressions on every kernel, and their optimal values y'beta/2
    betas = [np.linalg.solve(K + np.eye(n) / (2 * C), y) for K in Ks]
    values = [0.5 * float(y @ beta) for beta in betas]
    best = int(np.argmin(values))
    point = Point(betas[best], np.eye(3)[best], cuts=np.array([*betas, 1e9 * rng.normal(size=n)]))
    quad, decision = bank.judged(point.weights, point.beta)
    known = replace(point, quad=quad, decision=decision)
    certificate = problem.certificate(known)
    assert certificate.cuts is not None  # no single point proves as much
    certain = with_certain_bounds(problem, known, certificate)
    assert certain.dual <= values[best] * (1 + 1e-12)
    assert certain.dual >= values[best] * (1 - 1e-6)
    # rounding that is negligible is charged to neither bound
    assert certain.primal >= certain.dual * (1 - 1e-12)
    assert without_crossed_bounds(problem, known, certain) is certain


def test_bounds_that_cross_by_no_more_than_rounding_are_taken_apart():
    """A form that cancels from terms of 1e14 may be wrong by 1e-2; one of terms of 100 may not."""
    n = 10
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    for size, allowed in ((1e12, True), (1.0, False)):
        bank = build_bank(None, np.full((1, n, n), size) + np.eye(n), normalize=None)
        problem = MKLProblem(bank, Hinge(), L1(), y, 1.0)
        point = Point(np.zeros(n), np.ones(1))
        fair = problem.certificate(point)
        crossed = replace(fair, dual_point=y, dual=fair.primal + 1e-3)
        if allowed:
            assert without_crossed_bounds(problem, point, crossed).dual <= fair.primal
        else:
            with pytest.raises(CertificateError, match="beyond rounding"):
                without_crossed_bounds(problem, point, crossed)


def test_what_is_unsure_of_cuts_lowers_their_bound():
    rng = np.random.default_rng(1)
    bank = build_bank(None, np.array([Z @ Z.T for Z in rng.normal(size=(3, 12, 4))]), normalize=None)
    problem = MKLProblem(bank, Squared(), AtMost(1), rng.normal(size=12), 1.0, fit_intercept=False)
    betas = 0.1 * rng.normal(size=(2, 12))
    known = problem.bound_of_cuts(betas)
    assert problem.bound_of_cuts(betas, np.full(2, 0.5)) == pytest.approx(known - 0.5, rel=1e-9)
    assert problem.bound_of_cuts(betas, 0.0, np.full((2, 3), 0.5)) == pytest.approx(known - 0.25, rel=1e-9)
