"""Newton's method on the blocks that are not zero, by conjugate gradients, and what it says of shared coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..._numerics.deadline import check_time
from ._iterate import Iterate, Place

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: features up to which Newton's system is factorised where conjugate gradients did not solve it, and what is added to
#: its diagonal, over the mean: kernels that are there twice make it singular
LARGEST, TINY = 2000, 1e-12
#: steps along a direction, each half as long
LINE = 10

__all__ = ["Exchange", "exchanges", "newton_step"]


@dataclass
class _System:
    """``(Z'HZ + regulariser) v = -g`` on the active blocks, with a preconditioner of one block at a time.

    The regulariser turns a block by its ridge, and changes lengths by the matrix ``bend``, both of the norm.
    """

    at: Iterate
    active: Index
    hessian: Callable[[Array], Array]
    ridge: Array  # of every block: factor of the identity
    u: Array  # directions of the blocks
    bend: Array | None = (
        None  # (active, active): second derivatives in the lengths, less the ridge; None for zero
    )
    least: float = 0.0  # share of the largest curvature of the loss that every sample has at least
    quick: bool = False  # whether products may be as rough as those of steps
    whole: tuple[Index, Any] | None = None  # columns of the active blocks, and the factorised system

    def product(self, v: Array) -> tuple[Array, Array, Array]:
        """Return the system's product with v, ``Zv`` and ``HZv``."""
        features = self.at.features
        moved = features.forward_of(v, self.active, self.quick)
        bent = self.hessian(moved)
        out = features.adjoint_of(bent, self.active, self.quick) + self.regulariser(v)
        return out, moved, bent

    def regulariser(self, v: Array) -> Array:
        spread = self.at.features.block_of
        out = self.ridge[spread][:, None] * v
        if self.bend is not None:
            along = np.zeros_like(self.ridge)
            along[self.active] = self.bend @ _block_sums(self.at, self.u * v)[self.active]
            out += along[spread][:, None] * self.u
        return out

    def factorise(self) -> None:
        """Have the whole system for a preconditioner, where blocks alone say too little of it and it is small."""
        at = self.at
        columns = np.flatnonzero(np.isin(at.features.block_of, self.active))
        if not at.hard or columns.size > LARGEST or at.f.shape[1] > 1:
            return
        A = at.features.gram(at.loss.curvature(at.f, self.least)[:, 0], columns, at.problem.fit_intercept)
        blocks = at.features.block_of[columns]
        A[np.diag_indices_from(A)] += self.ridge[blocks]
        if self.bend is not None:
            inside = np.searchsorted(self.active, blocks)
            A += self.u[columns] * self.bend[np.ix_(inside, inside)] * self.u[columns].T
        A[np.diag_indices_from(A)] += TINY * float(np.trace(A)) / columns.size
        with suppress(np.linalg.LinAlgError):
            self.whole = columns, cho_factor(A, lower=True, overwrite_a=True, check_finite=False)

    def precondition(self, x: Array) -> Array:
        out = np.zeros_like(x)
        if self.whole is not None:
            columns, factor = self.whole
            out[columns] = cho_solve(factor, x[columns], check_finite=False)
            return out
        for number, j in enumerate(self.active):
            place = self.at.features.place(j)
            own = 0.0 if self.bend is None else float(self.bend[number, number])
            out[place] = self.at.model(int(j)).solve(x[place], self.ridge[j], self.u[place], own)
        return out


def _block_sums(at: Iterate, values: Array) -> Array:
    sums = np.append(np.sum(values, axis=1), 0.0)
    return np.add.reduceat(sums, at.features.starts[:-1]) * (at.features.ranks > 0)


def _iterations(system: _System, residual: Array, most: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Conjugate gradients from zero: v, the residual, ``Zv`` and ``HZv`` after every iteration."""
    n, k = system.at.f.shape
    v, moved, bent = np.zeros_like(residual), np.zeros((n, k)), np.zeros((n, k))
    z = system.precondition(residual)
    p, size = z, float(np.sum(residual * z))
    for _ in range(most):
        check_time()
        image, forth, back = system.product(p)
        curvature = float(np.sum(p * image))
        if not curvature > 0.0 or not size > 0.0:
            return
        step = size / curvature
        v, residual = v + step * p, residual - step * image
        moved, bent = moved + step * forth, bent + step * back
        yield v, residual, moved, bent
        z = system.precondition(residual)
        before, size = size, float(np.sum(residual * z))
        p = z + size / before * p


def newton_step(at: Iterate, near: bool = True, most: int = 20, share: float = 0.1) -> bool:
    """Take one Newton step among the blocks that are not zero, as long as it lowers the objective.

    At lengths t, directions u and weights ``d = weights_of_blocks(t)`` the regulariser has the gradient ``w_j / d_j``
    and the Hessian ``(I - u_j u_j') / d_j``, and between blocks ``u_j M_jl u_l'`` with M the norm's own on lengths.
    Where conjugate gradients failed before, the system is factorised if it is small; and unless the end is ``near``, a
    bound of the regulariser takes its place, ``1/2 sum_j |w_j|^2 / d_j``, which has no direction without curvature.
    """
    active = at.active
    if active.size == 0:
        return False
    norm, t = at.problem.norm, at.t
    d = norm.weights_of_blocks(t)
    ridge = np.zeros_like(t)
    ridge[active] = 1.0 / d[active]
    bend, near = None, (near and not at.singular) or not at.hard
    if near:
        bend = norm.restricted(active).block_hessian(t[active]) - np.diag(ridge[active])
    u, spread = at.directions, at.features.block_of
    least = at.caution if at.hard else 0.0
    system = _System(at, active, at.loss.hessian(at.f, least), ridge, u, bend, least, quick=not at.hard)
    system.factorise()
    gradient = at.features.adjoint_of(at.beta, active) - ridge[spread][:, None] * at.w
    goal = share * float(np.sqrt(np.sum(gradient**2)))
    v, moved = None, None
    for v, residual, moved, _ in _iterations(system, gradient, most):  # noqa: B007
        if float(np.sqrt(np.sum(residual**2))) <= goal:
            break
    else:
        at.hard = True
    if v is None or moved is None:
        return False
    step = _go_along(at, v, moved)
    if at.hard and near and step < 0.25:
        at.singular = True
    elif step == 1.0:
        at.caution *= 0.25
    elif step < 0.5:
        at.caution = min(2.0 * at.caution, 1.0)
    return step > 0.0


def _go_along(at: Iterate, v: Array, moved: Array) -> float:
    """Go along a direction as far as shorter and shorter steps lower the objective more and more; return how far."""
    start, best = Place(at.w, at.b, at.f), 0.0
    for shorter in range(LINE):
        step = 0.5**shorter
        if at.try_place(Place(start.w + step * v, start.b, start.f + step * moved)):
            best = step
        elif best > 0.0:
            break
    return best


@dataclass
class Exchange:
    """Coefficients shared by all kernels, with their image ``Z'beta`` on the active blocks and zeros elsewhere.

    ``excess`` is how far their function is expected above the Newton point, were the blocks not alike at all.
    """

    beta: Array
    image: Array
    excess: float
    last: bool


def exchanges(at: Iterate, beta: Array, image: Array, weights: Array, most: int) -> Iterator[Exchange]:
    """Coefficients whose function, with the weights at hand, comes closer and closer to that of the coordinates.

    The first are those to begin with.

    What predicts is ``w_j = d_j Z_j'beta``.  With ``beta = -c l'(f)`` that is a gradient step of length one from w, far
    too long where C is large.  ``beta - HZv`` gives ``w + v + d r`` with r the residual of Newton's system for fixed
    weights: solved exactly it is the Newton point, a better one than w.

    Parameters
    ----------
    at : Iterate
    beta, image : arrays of shape (n, k) and (R, k)
        Coefficients to begin with, and ``Z'beta``.
    weights : array of shape (m,)
    most : int
        Iterations.
    """
    active = np.flatnonzero(weights)
    ridge = np.zeros_like(weights)
    ridge[active] = 1.0 / weights[active]
    system = _System(at, active, at.loss.hessian(at.f), ridge, at.directions)
    system.factorise()
    spread = at.features.block_of
    image = np.where((weights > 0)[spread][:, None], image, 0.0)
    residual = image - ridge[spread][:, None] * at.w
    yield Exchange(beta, image, _excess(at, weights, residual), False)
    for done, (v, left, _, bent) in enumerate(_iterations(system, residual, most), start=1):
        # Z'(beta - HZv) = image - Z'HZv, and Z'HZv = residual - left - v / d
        moved = image - (residual - left - ridge[spread][:, None] * v)
        yield Exchange(beta - bent, moved, _excess(at, weights, left), done == most)


def _excess(at: Iterate, weights: Array, left: Array) -> float:
    """``1/2 (d r)'(A + 1/d)(d r)`` summed over the blocks: what a step too far by ``d r`` costs."""
    total = 0.0
    for j in np.flatnonzero(weights):
        r = left[at.features.place(int(j))]
        total += weights[j] ** 2 * at.model(int(j)).bent(r) + weights[j] * float(np.sum(r**2))
    return 0.5 * total
