"""The linear program of LP-beta: weights on the simplex that give the outputs of several classifiers a large margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]

__all__ = ["MarginWeights", "largest_margin"]

#: times that rows are added; a handful is what it takes
MOST_ROUNDS = 100


class MarginWeights(NamedTuple):
    """Weights, the margin rho they reach and the value of the program."""

    weights: Array
    rho: float
    value: float


def largest_margin(leads: Array, nu: float, weight: Array) -> MarginWeights:
    """Maximise ``rho - sum_i w_i xi_i / (nu sum w)`` over weights on the simplex, rho and ``xi >= 0``.

    Under ``sum_j beta_j leads_icj >= rho - xi_i`` for all samples i and rivals c.  Only the rivals that come closest
    make a difference: rows are added where the last answer violates them, and at the end none is left, so that the
    answer is that of the whole program.

    Parameters
    ----------
    leads : array of shape (n, rivals, m)
        By how much classifier j prefers the sample's own class to each rival; ``y f`` with two classes.
    nu : float
        In (0, 1]: at most about this share of the weight lies below the margin.
    weight : array of shape (n,)
        Weights of the samples.
    """
    used = weight > 0
    leads, weight = leads[used], weight[used]
    n, _, m = leads.shape
    rows = np.arange(n)
    chosen = np.zeros(leads.shape[:2], dtype=bool)
    beta = np.full(m, 1.0 / m)
    # so much violation is rounding
    slack = 1e-9 * max(float(np.max(np.abs(leads), initial=0.0)), np.finfo(float).tiny)
    chosen[rows, np.argmin(leads @ beta, axis=1)] = True
    for _ in range(MOST_ROUNDS):
        beta, rho, xi, value = _solve(leads, chosen, nu, weight)
        reached = leads @ beta
        worst = np.argmin(reached, axis=1)
        missed = rho - xi - reached[rows, worst] > slack
        if not np.any(missed & ~chosen[rows, worst]):
            break
        chosen[rows[missed], worst[missed]] = True
    return MarginWeights(beta, rho, value)


def _solve(
    leads: Array, chosen: NDArray[np.bool_], nu: float, weight: Array
) -> tuple[Array, float, Array, float]:
    """The program with the chosen rows alone, by HiGHS."""
    n, _, m = leads.shape
    which, rival = np.nonzero(chosen)
    count = which.size
    # rho - leads beta - xi <= 0, variables beta (m), rho, xi (n)
    A = sp.hstack(
        [
            sp.csr_array(-leads[which, rival]),
            sp.csr_array(np.ones((count, 1))),
            sp.csr_array((-np.ones(count), (np.arange(count), which)), shape=(count, n)),
        ]
    ).tocsc()
    cost = np.concatenate([np.zeros(m), [-1.0], weight / (nu * np.sum(weight))])
    total = sp.csc_array(np.concatenate([np.ones(m), np.zeros(n + 1)])[None, :])
    bounds = np.array([(0.0, np.inf)] * m + [(-np.inf, np.inf)] + [(0.0, np.inf)] * n)
    program = linprog(
        cost, A_ub=A, b_ub=np.zeros(count), A_eq=total, b_eq=[1.0], bounds=bounds, method="highs"
    )
    if program.status != 0:
        raise ArithmeticError(f"the linear program of LP-beta was not solved: {program.message}")
    beta = np.maximum(program.x[:m], 0.0)
    return beta / beta.sum(), float(program.x[m]), program.x[m + 1 :], -float(program.fun)
