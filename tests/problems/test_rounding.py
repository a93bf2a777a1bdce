"""What rounding may have done to a certificate is taken off it, and no more than that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave.banks import precomputed_bank
from kernelweave.losses import Squared
from kernelweave.norms import AtMost
from kernelweave.problems import MKLProblem, Point, with_certain_bounds


def test_a_cut_of_huge_coefficients_does_not_lower_the_bound_that_others_prove():
    n, C = 20, 10.0
    rng = np.random.default_rng(0)
    Ks = np.array([Z @ Z.T for Z in rng.normal(size=(3, n, 4))])
    y = rng.normal(size=n)
    bank, _ = precomputed_bank(Ks, normalize=None)
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
    assert certain.primal >= certain.dual
