"""Second derivatives of J, the optimal value as a function of the weights, and a root of them column by column.

On the free coefficients F (strictly inside their bounds) the solution moves with the weights like the solution of a
linear system, so that ``H = V' M V``, ``V_j = K_j beta`` on F and M the leading block of the inverse of
``[[K_FF + E, N], [N', 0]]``, E the curvature of the conjugate loss (zero for the hinge), N the constraints that hold
the coefficients together: ones with an intercept, and the normal of a budget that is spent.  Where a loss ties a row of
coefficients together (several classes), F has the directions in which a row is free to move instead of single entries.
The idea is Chapelle and Rakotomamonjy's (2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._numerics.by_class import ClassFactors, factor_flops
from .._numerics.namespace import to_numpy
from .._numerics.tiles import TiledFactor, factorise, principal_part
from .._typing import Array
from ..losses import Loss
from .certificate import TINY
from .fixed import FixedSolution, multiplies_only

if TYPE_CHECKING:
    from .mkl import MKLProblem

#: steps of conjugate gradients, and what they leave
MOST_STEPS, STEPS_GAP = 50, 1e-2
#: classes are factorised where that takes no more operations than this, or than so many of these steps: few are taken
#: where the matrix is well conditioned, and many where it is not
EXACT_FLOPS, WORTH_STEPS = 1e9, 5
#: all classes at once are, where that takes no more operations for each than calls for one class alone would
AT_ONCE = 1e6
#: share of the rows below which it pays to copy the part of a matrix that they need
WORTH_A_COPY = 0.8
#: share of the free coefficients that may end at a bound on the way to other weights, to first order
MOST_STOPPED = 0.4


class Curvature:
    """The Hessian of J at an inner solution, as a root A with ``A'A = H`` that is factorised when it is asked for.

    With ``products``, ``K_j beta`` on the rows, what it takes is gathered at once; without, the bank is read then.
    """

    def __init__(
        self,
        problem: MKLProblem,
        K: Any,
        inner: FixedSolution,
        rows: np.ndarray,
        products: Array | None = None,
    ) -> None:
        self.m, self.inner = problem.m, inner
        # a loss that is curved keeps the block regular; a ridge in proportion to a large kernel would drown it
        self._ridge = 1e-15 if problem.loss.has_curvature or problem.loss.ridge else 1e-8
        self._root: Root | None = None
        self._later: Callable[[], RootPart] | None = None
        #: matrix on the free coefficients, products and normals of the constraints there, by column
        self._parts: list[tuple[Array, Array, Array]] = []
        #: which coefficients are free, and their bounds
        self._moving: tuple[Any, Array, Array] | None = None
        self._unread = None if products is not None else (problem, K, inner, rows)
        self._by_products = multiplies_only(K)
        if products is not None:
            self._collect(problem, K, inner, rows, products)

    def _collect(
        self, problem: MKLProblem, K: Any, inner: FixedSolution, rows: np.ndarray, products: Array
    ) -> None:
        loss, beta, y, c = problem.loss, inner.beta, problem.y, problem.c
        if loss.coupled:  # V'R (I + R'K R)^-1 R'V, with R at the solution
            root, factor = inner.bend or (loss.hessian_root(y, inner.decision + inner.intercept, c), None)
            if factor is None:
                system = root.sandwich(np.asarray(to_numpy(K), dtype=float))
                system.flat[:: len(system) + 1] += 1.0
                factor = stable_cholesky(system, 1e-15)
            V = root.transposed(products[:, np.searchsorted(rows, root.order)])
            self._root = Root([RootPart(V.T, factor)], self.m)
            return
        if not loss.joint and y.ndim == 1:
            free, *part = _gather(problem, loss, K, beta, y, c, rows, products)
            self._parts = [tuple(part)]  # type: ignore[list-item]
            if not loss.has_curvature:  # Newton's method gains nothing by a better start
                self._moving = (free, *loss.box(y[free], c[free]))
            return
        alike = loss.least_squares and bool(np.all(c == c[:, :1]))
        if not (loss.joint or alike):
            self._parts = [
                _gather(problem, loss.column(k), K, beta[:, k], y[:, k], c[:, k], rows, products[:, :, k])[1:]
                for k in range(y.shape[1])
            ]
            return
        whole = isinstance(K, np.ndarray) and rows.size == problem.n
        block = np.asarray(K, dtype=float) if whole else principal_part(K, rows)
        if not loss.joint:
            self._later = partial(_least_squares_part, problem, block, inner, rows, products)
        elif loss.has_curvature:
            self._later = partial(_softmax_part, problem, block, inner, rows, products)
        else:
            # entries of the rows below their bounds, zero for other classes and c for the own, by more than rounding
            bound = c[rows]
            loose = np.asarray(beta[rows] < np.where(y[rows] > 0, bound, 0.0) - 1e-9 * bound)
            directions = int(np.sum(np.maximum(np.count_nonzero(loose, axis=1) - 1, 0)))
            if directions**3 <= 3.0 * AT_ONCE * loose.shape[1]:
                self._at_once(block, loose, products, rows, problem)
                return
            of_a_step = 2.0 * rows.size * products.size
            if factor_flops(loose) > max(EXACT_FLOPS, WORTH_STEPS * of_a_step):
                self._later = partial(_part_by_steps, block, loose, products, problem.fit_intercept)
                return
            at_bound = np.where(y[rows] > 0, bound, 0.0)
            self._later = partial(
                self._by_class, block, loose, products, rows, at_bound, problem.fit_intercept
            )

    def _at_once(
        self, K: Array, loose: np.ndarray, products: Array, rows: np.ndarray, problem: MKLProblem
    ) -> None:
        """Gather the directions in which an entry of a row moves, and its own class, or another, gives way."""
        own = np.argmax(problem.y[rows], axis=1)
        each = np.arange(rows.size)
        partner = np.where(loose[each, own], own, np.argmax(loose, axis=1))
        moves = loose & (np.count_nonzero(loose, axis=1) > 1)[:, None]
        moves[each, partner] = False
        at, classes = np.nonzero(moves)
        signs = np.eye(loose.shape[1])
        signs = signs[classes] - signs[partner[at]]
        V = products[:, at, classes] - products[:, at, partner[at]]
        normals = signs.T if problem.fit_intercept else np.zeros((0, at.size))
        self._parts = [(K[np.ix_(at, at)] * (signs @ signs.T), V.T, normals)]
        upper = np.zeros(at.size)  # those that give way are at home where the row sums to zero
        self._moving = (rows[at], classes), np.full(at.size, -np.inf), upper

    def _by_class(
        self, K: Array, loose: np.ndarray, products: Array, rows: np.ndarray, upper: Array, intercept: bool
    ) -> RootPart:
        """The root from factors of single classes and what ties them in rows and intercepts."""
        ridge = np.full(loose.shape[0], self._ridge * (float(np.trace(K)) / max(len(K), 1) or 1.0))
        factors = ClassFactors(K, loose, ridge, 0.0, intercept)
        upper = factors.gather(upper)
        self._moving = (rows[factors.at], factors.classes), np.full(upper.size, -np.inf), upper
        return RootPart(factors.gather(products).T, factors)

    @property
    def root(self) -> Root:
        """A of shape (free, m); the columns of the problem are stacked."""
        if self._unread is not None and self._by_products:
            self._later, self._unread = partial(_hessian_by_products, *self._unread[:3]), None
        if self._unread is not None:
            problem, K, inner, rows = self._unread
            self._collect(problem, K, inner, rows, problem.bank.apply(inner.beta, rows))
            self._unread = None
        if self._root is None:
            parts = [] if self._later is None else [self._later()]
            for block, V, normals in self._parts:
                if V.shape[0] == 0:
                    continue
                factor = stable_cholesky(block, self._ridge)
                taken: list[Array] = []
                for normal in (factor.solve(normal) for normal in normals):
                    size = float(np.linalg.norm(normal))
                    for other in taken:
                        normal = normal - other * ((other @ normal) / (other @ other))
                    # on free coefficients of one class both constraints are one; a class without free rows has none
                    if float(np.linalg.norm(normal)) > 1e-9 * size and size > 0.0:
                        taken.append(normal)
                if len(taken) < V.shape[0]:
                    parts.append(RootPart(V, factor, taken))
            self._root = Root(parts, self.m)
            self._parts, self._later = [], None
        return self._root

    @property
    def free(self) -> int:
        """How many directions the coefficients are free to move in; of a smooth loss those that are not zero."""
        if self._by_products:
            return int(np.count_nonzero(self.inner.beta))
        return sum(part.free for part in self.root.parts)

    def ahead(self, shift: Array) -> FixedSolution:
        """Where to start once the weights have moved by ``shift``: where the solution is then, to first order.

        Free coefficients move so that their decision values stay what they are, up to the intercept; the others stay.
        The factor that this takes is there once the root has been asked for; where that says little, all stay.
        """
        root, moving, beta = self._root, self._moving, self.inner.beta
        if root is None or moving is None or len(root.parts) != 1 or root.parts[0].factor is None:
            return self.inner
        free, lower, upper = moving
        moved = beta[free] - root.parts[0].factor.solve(root.times(shift), transposed=True)
        inside = np.count_nonzero((moved >= lower) & (moved <= upper))
        if 2 * self.free <= np.count_nonzero(beta) or inside < (1.0 - MOST_STOPPED) * len(moved):
            return self.inner
        out = beta.copy()
        out[free] = np.clip(moved, lower, upper)
        return replace(self.inner, beta=out)


def _gather(
    problem: MKLProblem,
    loss: Loss,
    K: Any,
    beta: Array,
    y: Array,
    c: Array,
    rows: np.ndarray,
    products: Array,
) -> tuple[np.ndarray, Array, Array, Array]:
    """F, ``K_FF + E``, the products ``K_j beta`` and the normals of the constraints, all on F; of one column."""
    used = rows[c[rows] > 0]
    unit = beta[used] / c[used]
    inside = loss.interior(y[used], unit)
    free = used[inside]
    block = principal_part(K, free)
    block.flat[:: free.size + 1] += loss.dual_curvature(y[free], unit[inside]) / c[free]
    normals = [np.ones(free.size)] if problem.fit_intercept else []
    budget = loss.dual_budget(y, c)
    if budget is not None:
        beyond = y * beta - budget.free
        if float(np.sum(np.maximum(beyond, 0.0))) >= budget.limit * (1.0 - 1e-7):  # it is spent
            normals.append(np.where(beyond > 0, y, 0.0)[free])
    V = products[:, np.searchsorted(rows, free)].T
    return free, block, V, np.array(normals).reshape(len(normals), free.size)


def _part_of(H: Array) -> RootPart:
    values, axes = np.linalg.eigh(0.5 * (H + H.T))
    return RootPart(np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T))


def _part_by_steps(K: Array, loose: np.ndarray, products: Array, fit_intercept: bool) -> RootPart:
    """The root for so many free entries that factorisations would take longer than the fit: by conjugate gradients.

    The system is K on the directions in which loose entries keep the sums of rows and, with an intercept, of columns: a
    projection, which costs next to nothing.  What few steps find of H is never more than H, and nearly all of it.
    """
    moving = np.count_nonzero(loose, axis=1) > 1
    if np.count_nonzero(moving) < WORTH_A_COPY * moving.size:  # the others' rows are zero throughout
        K, loose, products = principal_part(K, np.flatnonzero(moving)), loose[moving], products[:, moving]
        moving = moving[moving]
    free = loose & moving[:, None]
    share = free / np.maximum(np.count_nonzero(free, axis=1), 1)[:, None]
    between = np.diag(free.sum(axis=0).astype(float)) - free.T.astype(float) @ share
    back = np.linalg.pinv(between, rcond=1e-10, hermitian=True)

    def project(v: Array) -> Array:
        v = free * v - share * np.sum(free * v, axis=-1, keepdims=True)
        if not fit_intercept:
            return v
        shift = (np.sum(v, axis=-2) @ back)[..., None, :]
        return v - (free * shift - share * np.sum(free * shift, axis=-1, keepdims=True))

    matrix = K.astype(np.float32)  # a model needs no more digits
    m, n, k = products.shape

    def times(v: Array) -> Array:
        flat = np.moveaxis(v, 0, 1).reshape(n, m * k).astype(np.float32)
        return np.moveaxis((matrix @ flat).reshape(n, m, k), 1, 0).astype(float)

    right = project(products)
    z, r = np.zeros_like(right), right.copy()
    d = r.copy()
    size = np.sum(r * r, axis=(1, 2), keepdims=True)
    enough = STEPS_GAP**2 * size
    for _ in range(MOST_STEPS):
        if np.all(size <= enough):
            break
        q = project(times(d))
        bend = np.sum(d * q, axis=(1, 2), keepdims=True)
        step = np.divide(size, bend, out=np.zeros_like(size), where=bend > 0)
        z += step * d
        r -= step * q
        new = np.sum(r * r, axis=(1, 2), keepdims=True)
        d = r + np.divide(new, size, out=np.zeros_like(size), where=size > 0) * d
        size = new
    return _part_of(np.einsum("aik,bik->ab", right, z))


def _hessian_by_products(problem: MKLProblem, K: Any, inner: FixedSolution) -> RootPart:
    """The root of a model of H where the mixed kernel is something to multiply with; columns of targets add up."""
    from .by_products import noise_of

    y, c, beta = (values.reshape(problem.n, -1) for values in (problem.y, problem.c, inner.beta))
    H = np.zeros((problem.m, problem.m))
    for k in range(y.shape[1]):
        noise = noise_of(problem.loss.column(k), y[:, k], beta[:, k], c[:, k])
        H += K.hessian(beta[:, k], noise, problem.fit_intercept)
    return _part_of(H)


def _least_squares_part(
    problem: MKLProblem, K: Any, inner: FixedSolution, rows: np.ndarray, products: Array
) -> RootPart:
    """The root for columns of targets under the squared loss: one factor serves all of them.

    ``H_jk = sum over columns of V_j'M V_k``, M the inverse of ``K + 1 / (2c)``, deflated by the ones of an intercept.
    """
    c = problem.c[rows, 0]
    m, n, _ = products.shape
    block = np.array(K, dtype=float)
    block.flat[:: n + 1] += problem.loss.dual_curvature(problem.y[rows, 0], inner.beta[rows, 0] / c) / c
    factor = stable_cholesky(block, 1e-15)
    columns = np.moveaxis(products, 0, 1).reshape(n, -1)
    solved = factor.solve(columns)
    if problem.fit_intercept:
        ones = factor.solve(np.ones(n))
        solved -= np.multiply.outer(ones, (ones @ solved) / (ones @ ones))
    by_kernel = np.moveaxis(solved.reshape(n, m, -1), 1, 0).reshape(m, -1)
    return _part_of(by_kernel @ by_kernel.T)


def _softmax_part(
    problem: MKLProblem, K: Any, inner: FixedSolution, rows: np.ndarray, products: Array
) -> RootPart:
    """The root of ``H = V'R (I + R'K R)^-1 R'V``, ``V_j = K_j beta``, where all classes are tied by a softmax."""
    from .joint import SoftmaxSystem

    c = np.ascontiguousarray(problem.c[rows, 0])
    # at the inner solution the probabilities are Y - beta / c
    p = np.clip((problem.y[rows] > 0) - inner.beta[rows] / c[:, None], 0.0, 1.0)
    system = SoftmaxSystem(K, p, c, problem.fit_intercept)
    right = system.transposed(products)
    return _part_of(np.einsum("aik,bik->ab", right, system.solve(right, 1e-6)))


def stable_cholesky(matrix: Array, least: float = 1e-8) -> TiledFactor:
    """Cholesky factor, with as small a ridge as makes it exist, at least that share of the mean diagonal.

    Without any weight on kernels the matrix may be zero: the share is of one then.
    """
    mean = float(np.mean(np.diagonal(matrix)))
    ridge = least * (mean if mean > TINY else 1.0)
    while np.isfinite(ridge):
        try:
            return factorise(matrix, ridge)
        except np.linalg.LinAlgError:
            ridge *= 100.0
    raise np.linalg.LinAlgError("a matrix of second derivatives is not finite")


class RootPart(NamedTuple):
    """``A = P L^-1 V``: a Cholesky factor, and a projection off the normals of the constraints, orthogonal vectors.

    Without a factor it is V itself.
    """

    V: Array
    factor: TiledFactor | ClassFactors | None = None
    normals: Sequence[Array] = ()

    @property
    def free(self) -> int:
        """Directions in which coefficients are free to move: entries that are tied in rows have fewer."""
        return self.V.shape[0] - (self.factor.rows if isinstance(self.factor, ClassFactors) else 0)

    def solved(self, right: Array) -> Array:
        """``P L^-1 right``, of a vector or of columns."""
        if self.factor is None:
            return right
        values = self.factor.solve(right)
        for normal in self.normals:
            values = values - np.multiply.outer(normal, (normal @ values) / (normal @ normal))
        return values

    def transposed(self, left: Array) -> Array:
        """``A' left``, of a vector."""
        for normal in self.normals:
            left = left - normal * ((normal @ left) / (normal @ normal))
        if self.factor is not None:
            left = self.factor.solve(left, transposed=True)
        return np.asarray(self.V.T @ left)


class Root:
    """A matrix A of m columns with ``A'A = H``, of which only the columns that are asked for are computed.

    A model of J is minimised over the kernels in use and a few others; products with the whole root need a single
    triangular solve.

    Parameters
    ----------
    parts : list of RootPart
        Rows of A, one part below the other.
    m : int
        Number of columns.
    """

    def __init__(self, parts: Sequence[RootPart], m: int) -> None:
        self.parts = [part for part in parts if part.V.shape[0]]
        self.shape = (sum(part.V.shape[0] for part in self.parts), m)
        self._known = np.empty(self.shape, order="F")
        self._there = np.zeros(m, dtype=bool)

    def columns(self, which: np.ndarray) -> Array:
        """Columns of A by their numbers; computed when they are first asked for."""
        new = which[~self._there[which]]
        if new.size:
            none = np.zeros((0, new.size))
            self._known[:, new] = np.concatenate(
                [none, *(part.solved(part.V[:, new]) for part in self.parts)]
            )
            self._there[new] = True
        return self._known[:, which]

    @property
    def dense(self) -> Array:
        """All of A."""
        self.columns(np.arange(self.shape[1]))
        return self._known

    def among(self, kernels: np.ndarray) -> Root:
        """The root of some of the kernels."""
        if kernels.size == self.shape[1]:
            return self
        return Root([part._replace(V=part.V[:, kernels]) for part in self.parts], kernels.size)

    def times(self, z: Array) -> Array:
        """``A z``."""
        used = z.nonzero()[0]
        if self._there[used].all():
            return np.asarray(self._known[:, used] @ z[used])
        return np.concatenate([np.zeros(0), *(part.solved(part.V @ z) for part in self.parts)])

    def transposed(self, w: Array) -> Array:
        """``A' w``."""
        out, first = np.zeros(self.shape[1]), 0
        for part in self.parts:
            out += part.transposed(w[first : first + part.V.shape[0]])
            first += part.V.shape[0]
        return out
