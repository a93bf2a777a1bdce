"""Problems (2), (4), (6) and (7) of [KTBB10] as conic programs, for a solver that knows nothing of ours (cvxpy).

Omega in primal form: functions ``f_i`` with ``f_i' K_i^+ f_i <= t``, a linear matrix inequality by Schur's complement.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["conic_optimum"]

Array = NDArray[np.float64]


def conic_optimum(problem: str, S: Array, y: Array, C: float, rho: float, loss: str) -> float:
    """Return the optimal value.

    Parameters
    ----------
    problem : {"indsvm", "eskl", "emkl", "rekl"}
    S : array of shape (m, n, n)
    y : array of shape (n,)
    C, rho : float
    loss : {"l1", "frobenius", "squared"}
    """
    import cvxpy as cp

    m, n, _ = S.shape
    t, b = cp.Variable(), cp.Variable()
    constraints: list[Any] = []
    kernels, functions = [], []
    for i in range(1 if problem in ("eskl", "indsvm") else m):
        f = cp.Variable((n, 1))
        if problem == "rekl":
            V = np.linalg.eigh(S[i])[1]
            mu, share = cp.Variable(n, nonneg=True), cp.Variable(n)
            K = V @ cp.diag(mu) @ V.T
            turned = V.T @ f
            constraints += [cp.quad_over_lin(turned[j, 0], mu[j]) <= share[j] for j in range(n)]
            constraints += [cp.sum(share) <= t, cp.sum(mu) == n]
        else:
            bordered = cp.Variable((n + 1, n + 1), PSD=True)
            K = bordered[:n, :n]
            constraints += [bordered[:n, n:] == f, bordered[n, n] == t]
            constraints += [] if problem == "indsvm" else [cp.trace(K) == n]
        kernels.append(K)
        functions.append(f)
    distance = {
        "l1": lambda X: cp.sum(cp.abs(X)) / n,
        "frobenius": lambda X: cp.norm(X, "fro"),
        "squared": lambda X: cp.sum_squares(X) / n,
    }[loss]
    whole: Any = sum(functions)
    hinge = cp.sum(cp.pos(1 - cp.multiply(y, whole[:, 0] + b)))
    kernels = kernels * m if len(kernels) == 1 else kernels
    away = sum(distance(K - Si) for K, Si in zip(kernels, S, strict=True))
    program = cp.Problem(cp.Minimize(t / 2 + C * hinge + rho * away), constraints)
    return float(program.solve(solver=cp.CLARABEL))
