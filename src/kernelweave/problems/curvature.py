"""Second derivatives of J, the optimal value as a function of the weights.

On the free coefficients F (strictly inside their bounds) the solution moves with the weights like the solution of a
linear system, so that ``H = V' M V``, ``V_j = K_j beta`` on F and M the leading block of the inverse of
``[[K_FF + E, N], [N', 0]]``, E the curvature of the conjugate loss (zero for the hinge), N the constraints that hold
the coefficients together: ones with an intercept, and the normal of a budget that is spent.  Where a loss ties a row of
coefficients together (several classes), F has the directions in which a row is free to move instead of single entries.
The idea is Chapelle and Rakotomamonjy's (2008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from .._numerics.namespace import to_numpy
from ..losses import own_class
from .certificate import Array
from .fixed import FixedSolution

if TYPE_CHECKING:
    from .mkl import MKLProblem

__all__ = ["Curvature", "LateCurvature"]


class Curvature:
    """The Hessian of J at an inner solution, as a root A with ``A'A = H``.

    What it takes is gathered at once, while the mixed kernel exists; the factorisation waits until the root is asked
    for, because the last inner solution of a fit never needs it.
    """

    def __init__(
        self, problem: MKLProblem, K: Any, inner: FixedSolution, rows: np.ndarray, products: Array
    ) -> None:
        self.m = problem.m
        self._root: Array | None = None
        if problem.loss.joint and problem.loss.has_curvature:
            self._root = _softmax_root(problem, K, inner, rows, products)
        elif problem.loss.joint:
            self._parts = [_gather_rows(problem, K, inner.beta, rows, products)]
        elif problem.y.ndim == 1:
            self._parts = [_gather(problem, K, inner.beta, problem.y, problem.c, rows, products)]
        else:
            self._parts = [
                _gather(
                    problem, K, inner.beta[:, k], problem.y[:, k], problem.c[:, k], rows, products[:, :, k]
                )
                for k in range(problem.y.shape[1])
            ]

    @property
    def root(self) -> Array:
        """A of shape (free, m); the columns of the problem are stacked."""
        if self._root is None:
            self._root = np.vstack([self._root_of(*part) for part in self._parts])
            self._parts = []
        return self._root

    def _root_of(self, block: Array, V: Array, normals: Array) -> Array:
        free = V.shape[0]
        if free == 0:
            return np.zeros((0, self.m))
        lower = _stable_cholesky(block)
        A = solve_triangular(lower, V, lower=True, check_finite=False)
        taken: list[Array] = []
        for row in normals:
            normal = solve_triangular(lower, row, lower=True, check_finite=False)
            size = float(np.linalg.norm(normal))
            for other in taken:
                normal = normal - other * ((other @ normal) / (other @ other))
            # on free coefficients of one class both constraints are the same; a class without free rows has none
            if float(np.linalg.norm(normal)) <= 1e-9 * size or size == 0.0:
                continue
            taken.append(normal)
            A -= np.outer(normal, (normal @ A) / (normal @ normal))
        return A if len(taken) < free else np.zeros((0, self.m))


class LateCurvature:
    """A Hessian for which the bank has not been read yet: of a point that is expected to be the last."""

    def __init__(self, problem: MKLProblem, K: Any, inner: FixedSolution, rows: np.ndarray) -> None:
        self._parts = (problem, K, inner, rows)
        self._root: Array | None = None

    @property
    def root(self) -> Array:
        """As of ``Curvature``; the first look costs a pass."""
        if self._root is None:
            problem, K, inner, rows = self._parts
            products = problem.bank.apply(inner.beta, rows)
            self._root = Curvature(problem, K, inner, rows, products).root
        return self._root


def _gather(
    problem: MKLProblem, K: Any, beta: Array, y: Array, c: Array, rows: np.ndarray, products: Array
) -> tuple[Array, Array, Array]:
    """``K_FF + E``, the products ``K_j beta`` and the normals of the constraints, all on F; of one column."""
    used = rows[c[rows] > 0]
    unit = beta[used] / c[used]
    inside = problem.loss.interior(y[used], unit)
    free = used[inside]
    block = _square(K, free)
    block.flat[:: free.size + 1] += problem.loss.dual_curvature(y[free], unit[inside]) / c[free]
    normals = problem.loss.normals(y, beta, c)[:, free]
    if problem.fit_intercept:
        normals = np.vstack([np.ones(free.size), normals])
    return block, products[:, np.searchsorted(rows, free)].T, normals


def _square(K: Any, at: np.ndarray) -> Array:
    """Rows and columns ``at`` of the mixed kernel, on the host wherever the matrix lives."""
    if isinstance(K, np.ndarray):
        return np.asarray(K[np.ix_(at, at)])
    return to_numpy(K[at][:, at]).astype(float)


def _gather_rows(
    problem: MKLProblem, K: Any, beta: Array, rows: np.ndarray, products: Array
) -> tuple[Array, Array, Array]:
    """The same where rows sum to zero: F has an orthonormal basis of the directions in which each row can move.

    Entries at their upper bound (zero for other classes, c for the own) are held; the rest keep their sum.
    """
    from .._numerics.row_newton import free_directions

    bound = np.ascontiguousarray(problem.c[rows, 0])
    # what is within rounding of its bound is at it
    part = beta[rows]
    upper = np.where(problem.y[rows] > 0, bound[:, None], 0.0)
    part = np.where(part >= upper - 1e-9 * bound[:, None], upper, part)
    where, Q = free_directions(part, own_class(problem.y[rows]), bound)
    block = _square(K, rows[where]) * (Q @ Q.T)
    V = np.einsum("mfk,fk->fm", products[:, where], Q)
    return block, V, Q.T if problem.fit_intercept else np.zeros((0, where.size))


def _softmax_root(problem: MKLProblem, K: Any, inner: FixedSolution, rows: np.ndarray, products: Array) -> Array:
    """The root where all classes are tied by a softmax: ``H = V'R (I + R'K R)^-1 R'V``, ``V_j = K_j beta``.

    At the inner solution the probabilities are ``Y - beta / c``; the system is that of the Newton step.
    """
    from .softmax import SoftmaxSystem

    c = np.ascontiguousarray(problem.c[rows, 0])
    p = np.clip((problem.y[rows] > 0) - inner.beta[rows] / c[:, None], 0.0, 1.0)
    system = SoftmaxSystem(_square(K, rows), p, c, problem.fit_intercept)
    right = system.transposed(products)
    solved = system.solve(right, 1e-6)
    H = np.einsum("aik,bik->ab", right, solved)
    values, axes = np.linalg.eigh(0.5 * (H + H.T))
    return np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T


def _stable_cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor, with as small a ridge as makes it exist."""
    size = float(np.mean(np.diagonal(matrix)))
    ridge = 1e-8 * size
    while True:
        lifted = matrix.copy()
        lifted.flat[:: matrix.shape[0] + 1] += ridge
        try:
            return cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 100.0
