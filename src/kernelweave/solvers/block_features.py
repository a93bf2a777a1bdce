"""Features block by block with their factors, and the loss in columns with the intercept's part taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._numerics.resources import default_budget
from .._numerics.stopping import check_time
from .._typing import Array, Index
from ..problems import MKLProblem
from ._base import block_sums, columns_of, derivative_of

#: rows that are copied, or whose weighted copy is multiplied, at once: they stay in the cache
ROWS = 1024
#: rows of a Gram matrix of many blocks that are multiplied at once
TALL = 8192
#: widths from which only the leading directions of a block are distinguished
WIDE = 400
#: leading directions of a wide block, at least where there are millions of features, and how many more are computed
LEADING, FEWEST, SPARE = 100, 10, 10
#: numbers that memory for copies is allocated for at once: for pieces as large as this a system has large pages
PIECE = 1 << 24
#: share of the memory there is that copies may take
SHARE = 0.25
#: largest entries of a block whose squares single precision can add up
SMALL, LARGE = 1e-12, 1e12
#: share of the largest curvature that block steps count on everywhere
LEAST = 1e-3


@dataclass
class BlockModel:
    """``A = Q diag(bend) Q' + rest (I - QQ')``, the curvature of the loss along a block, intercept eliminated.

    ``rest`` is None where Q is square.  ``means`` are the features' weighted means: how the intercept follows.
    """

    Q: Array
    bend: Array
    rest: float | None
    means: Array
    total: float  # sum of the curvatures
    age: int = 0
    stiffness: float = 1.0

    def times(self, total: float) -> BlockModel:
        """Return the model for curvatures with another sum, alike but for that."""
        share = total / self.total
        rest = None if self.rest is None else share * self.rest
        return BlockModel(self.Q, share * self.bend, rest, self.means, total)

    def bent(self, x: Array) -> float:
        """``x'Ax``, summed over columns."""
        inner = self.Q.T @ x
        along = float(np.sum(self.bend[:, None] * inner**2))
        return along if self.rest is None else along + self.rest * float(np.sum(x**2) - np.sum(inner**2))

    def solve(self, x: Array, ridge: float, u: Array, along: float) -> Array:
        """``(A + ridge I + along u u')^-1 x`` for a direction u of length one."""

        def plain(z: Array) -> Array:
            inner = self.Q.T @ z
            if self.rest is None:
                return np.asarray(self.Q @ (inner / (self.bend + ridge)[:, None]))
            off = 1.0 / (self.rest + ridge)
            return np.asarray(self.Q @ ((1.0 / (self.bend + ridge) - off)[:, None] * inner) + off * z)

        if along == 0.0:
            return plain(x)
        y, z = plain(x), plain(u)
        bottom = 1.0 + along * float(np.sum(u * z))
        return y - along * float(np.sum(u * y)) / bottom * z if bottom > 1e-12 else y


class BlockFeatures:
    """Products with the features, block by block.

    ``adjoint_all`` and what is not ``quick`` are as precise as the features.  ``pull`` and ``push`` are for steps,
    which make up for what they get wrong: where they are ``single`` they read copies in single precision of blocks
    that lie side by side, row by row, in double precision, which is three times as quick.
    """

    def __init__(self, problem: MKLProblem, single: bool) -> None:
        self.bank = problem.bank
        self.factors = problem.bank.factors()
        self.n, self.m = problem.n, problem.m
        self.starts, self.ranks = self.factors.starts, self.factors.ranks
        # a kernel that may have no weight has no features
        self.root = np.sqrt(self.factors.scale) * (problem.norm.start(problem.m) > 0)
        self.block_of = np.repeat(np.arange(self.m), self.ranks)
        self.width = int(self.starts[-1])
        features: Any = getattr(self.factors, "features", None)
        plain = isinstance(features, np.ndarray) and features.dtype == np.float64
        self.single = single and plain and 4 * features.size <= SHARE * default_budget()
        self._kept: dict[int, Any] = {}
        self._piece: NDArray[np.float32] = np.empty(0, dtype=np.float32)

    def place(self, j: int) -> slice:
        """Columns of block j."""
        return slice(int(self.starts[j]), int(self.starts[j + 1]))

    def count(self, width: float) -> None:
        """Count a product with so many columns; forth and back over all of them are one pass."""
        self.bank.count(0.5 * self.m * float(self.n) ** 2 * width / max(self.width, 1))

    def block(self, j: int) -> Any:
        """Features of block j, without its factor."""
        if j not in self._kept:
            self._kept[j] = self.factors.block_features(j)
        return self._kept[j]

    def at_hand(self, j: int) -> Any:
        """Features of block j as steps read them: a copy, once there is one, also of an earlier fit."""
        found = self.factors.notes.get(("copy", j)) if self.single else None
        return self.block(j) if found is None else found

    def bring(self, blocks: Index) -> None:
        """Copy blocks that steps will read, that have no copy yet and that single precision can hold, row by row."""
        new = []
        for j in (int(j) for j in blocks if self.single and 0 < self.ranks[j] <= WIDE):
            if ("copy", j) not in self.factors.notes:
                Z = self.block(j)
                if self._piece.size < Z.size:
                    self._piece = np.empty(max(PIECE, Z.size), dtype=np.float32)
                new.append((j, Z, self._piece[: Z.size].reshape(Z.shape)))
                self._piece = self._piece[Z.size :]
        with np.errstate(over="ignore"):
            for top in range(0, self.n if new else 0, ROWS):
                for _, Z, copy in new:
                    copy[top : top + ROWS] = Z[top : top + ROWS]
        for j, _, copy in new:
            if SMALL < max(float(np.max(copy)), -float(np.min(copy))) < LARGE:
                self.factors.notes["copy", j] = copy

    def pull(self, j: int, a: Array) -> Array:
        """``Z_j' a``, for a step."""
        Z = self.at_hand(j)
        self.count(float(self.ranks[j]))
        return self.root[j] * np.asarray(Z.T @ a.astype(Z.dtype, copy=False), dtype=float)

    def push(self, j: int, v: Array) -> Array:
        """``Z_j v``, for a step."""
        Z = self.at_hand(j)
        self.count(float(self.ranks[j]))
        return np.asarray(Z @ (self.root[j] * v).astype(Z.dtype, copy=False), dtype=float)

    def adjoint_all(self, a: Array) -> Array:
        """``Z' a`` over all blocks."""
        self.count(float(self.width))
        return np.asarray(self.root[self.block_of][:, None] * self.factors.adjoint(a))

    def forward_of(self, w: Array, active: Index, quick: bool = False) -> Array:
        """``sum_j Z_j w_j`` over some blocks; ``quick`` as a step would."""
        if quick and self.single:
            return sum((self.push(int(j), w[self.place(j)]) for j in active), np.zeros((self.n, w.shape[1])))
        w = self.root[self.block_of][:, None] * w
        f = np.zeros((self.n, w.shape[1]))
        for Z, place in self._stretches(active):
            f += np.asarray(Z @ w[place].astype(Z.dtype, copy=False), dtype=float)
        return f

    def adjoint_of(self, a: Array, active: Index, quick: bool = False) -> Array:
        """``Z_j' a`` of some blocks, zeros elsewhere; ``quick`` as a step would."""
        out = np.zeros((self.width, a.shape[1]))
        if quick and self.single:
            for j in active:
                out[self.place(j)] = self.pull(int(j), a)
            return out
        for Z, place in self._stretches(active):
            out[place] = Z.T @ a.astype(Z.dtype, copy=False)
        return self.root[self.block_of][:, None] * out

    def _stretches(self, active: Index) -> Iterator[tuple[Any, slice]]:
        """Features of some blocks, neighbours in one piece, and their columns."""
        for run in np.split(active, np.flatnonzero(np.diff(active) > 1) + 1):
            if run.size:
                place = slice(int(self.starts[run[0]]), int(self.starts[run[-1] + 1]))
                self.count(float(place.stop - place.start))
                yield self.factors.block_features(int(run[0]), int(run[-1]) + 1), place

    def norms(self, w: Array) -> Array:
        """Lengths of the blocks of a vector ``(R, k)``."""
        return np.sqrt(block_sums(np.einsum("ik,ik->i", w, w), self.starts))

    def model(self, j: int, h: Array, means: Array, likeness: float) -> BlockModel:
        """Curvature ``Z_j' diag(h) Z_j`` of block j around given means.

        One of an earlier fit serves if it is precise enough and its weights were as alike but for a factor (0 equal).
        """
        centred, total, root = bool(np.any(means)), float(np.sum(h)), float(self.root[j])
        if j in self.factors.notes:
            made_for, was_centred, was_single, noted = self.factors.notes[j]
            alike = float(np.sum(np.abs(h / np.sum(h) - made_for / np.sum(made_for)))) <= likeness
            if alike and centred == was_centred and (self.single or not was_single):
                return noted.times(total)
        check_time()
        if self.ranks[j] > WIDE:
            # leading directions by a randomised range finder; the shortest of them, and a little, bounds the rest
            Z = self.block(j)

            def curved(x: Array) -> Array:
                along = h[:, None] * np.asarray(Z @ x, dtype=float)
                return root**2 * np.asarray(Z.T @ along, dtype=float) - total * np.outer(means, means @ x)

            # those of all blocks are kept
            leading = int(np.clip(SHARE * default_budget() / (8 * self.width), FEWEST, LEADING))
            basis = np.linalg.qr(np.random.default_rng(0).normal(size=(means.size, leading + SPARE)))[0]
            for _ in range(3):
                check_time()
                basis = np.linalg.qr(curved(basis))[0]
            bend, turn = np.linalg.eigh(basis.T @ curved(basis))
            rest = max(1.2 * float(bend[SPARE]), 0.0)
            model = BlockModel(basis @ turn[:, SPARE:], np.maximum(bend[SPARE:], 0.0), rest, means, total)
        else:
            self.bring(np.array([j]))
            weighted = _weighted_gram(self.at_hand(j), h)
            gram = root**2 * weighted - total * np.outer(means, means)
            # NumPy's needs a fraction of SciPy's time to find the size of LAPACK's workspace
            bend, Q = np.linalg.eigh(gram)
            model = BlockModel(Q, np.maximum(bend, 0.0), None, means, total)
        if model.total > 0.0:
            # for weights that sum to one: it waits for the next fit
            self.factors.notes[j] = h, centred, self.single, model.times(1.0)
        return model

    def gram(self, h: Array, columns: Index, centred: bool) -> Array:
        """``Z' diag(h) Z`` of some columns of all blocks, centred by h where there is an intercept."""
        self.count(float(columns.size))
        whole = np.zeros((columns.size + 1, columns.size + 1))
        for top in range(0, self.n, TALL):
            check_time()
            rows = np.arange(top, min(self.n, top + TALL))
            whole += self.factors.gram(rows, h[rows], columns)
        root, total = self.root[self.block_of][columns], float(whole[-1, -1])
        sums = root * whole[-1, :-1]
        gram = root[:, None] * whole[:-1, :-1] * root
        return gram - np.outer(sums, sums) / total if centred and total > 0.0 else gram


def _weighted_gram(Z: Any, h: Array) -> Array:
    """``Z' diag(h) Z`` in double precision."""
    level = float(h[0])
    even = bool(np.all(h == level))
    if sp.issparse(Z):
        weighted = Z * level if even else Z.multiply(h[:, None]).tocsc()
        return np.asarray((Z.T @ weighted).todense(), dtype=float)
    if even:
        return level * np.asarray(Z.T @ Z, dtype=float)
    root = np.sqrt(h)[:, None].astype(Z.dtype)
    gram = np.zeros((Z.shape[1], Z.shape[1]))
    for top in range(0, Z.shape[0], ROWS):
        part = Z[top : top + ROWS] * root[top : top + ROWS]
        gram += part.T @ part
    return gram


class LossModel:
    """Loss of decision values ``(n, k)``, its slopes and its curvature, every sample with its own C."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        self.c = columns_of(problem.c)
        self.softmax = problem.loss.joint
        quadratic = problem.loss.quadratic_dual(problem.y)
        #: whether the curvature is the same everywhere, so that a quadratic model is exact
        self.constant = quadratic is not None and bool(np.all(np.isinf([quadratic.lower, quadratic.upper])))
        if not self.softmax:
            self.derivative: tuple[Any, ...] = tuple(derivative_of(problem.loss, problem.y))
            assert problem.loss.smoothness is not None
            self.steepest = float(problem.loss.smoothness) * self.c

    def evaluate(self, f: Array) -> tuple[float, Array]:
        """Return the loss, and ``beta = -c l'(f)``."""
        if self.softmax:
            y, c = self.problem.y, self.problem.c
            return self.problem.loss.total(y, f, c), -c * self.problem.loss.gradient(y, f)
        from .._numerics.block_steps import loss_and_slopes

        beta = np.empty_like(f)
        return float(loss_and_slopes(f, self.c, *self.derivative, beta)), beta

    def best_intercept(self, f: Array) -> Array:
        """Return the constants that suit decision values without any."""
        problem = self.problem
        if not problem.fit_intercept:
            return np.zeros(f.shape[1])
        b = problem.loss.best_intercept(problem.y, f.reshape(problem.y.shape), problem.c)
        return np.atleast_1d(np.asarray(b, dtype=float))

    def common_curvature(self, f: Array) -> Array:
        """One number for every sample that bounds the curvature of all its columns: exact where there is one."""
        if self.softmax:
            p = self.problem.loss.probabilities(f)
            # Gershgorin: diag(p) - pp' is at most 2 p (1 - p), and never more than 1/2
            return np.asarray(self.c[:, 0] * np.minimum(np.max(2.0 * p * (1.0 - p), axis=1), 0.5))
        # a piecewise quadratic loss is a line at most samples, perhaps at all: steps would have no measure
        return np.max(self.curvature(f, LEAST), axis=1)

    def curvature(self, f: Array, least: float = 0.0) -> Array:
        """``c l''(f)`` of every sample and column, at least a share of the largest, where there is no softmax."""
        from .._numerics.block_steps import loss_curvature

        h = np.empty_like(f)
        loss_curvature(f, self.c, *self.derivative, h)
        return np.maximum(h, least * self.steepest) if least > 0.0 else h

    def hessian(self, f: Array, least: float = 0.0) -> Callable[[Array], Array]:
        """Return the map of directions ``(n, k)`` to ``H x``, the intercept moving along as is best.

        No curvature is below a share of the largest (but for a softmax, which has none that is zero).
        """
        if self.softmax:
            p, c = self.problem.loss.probabilities(f), self.c

            def plain(x: Array) -> Array:
                return np.asarray(c * p * (x - np.sum(p * x, axis=1, keepdims=True)))

            if not self.problem.fit_intercept:
                return plain
            # constants of the columns: a small system, singular along equal ones
            inverse = np.linalg.pinv(np.diag(np.sum(c * p, axis=0)) - (c * p).T @ p, hermitian=True)

            def centred(x: Array) -> Array:
                along = plain(x)
                return along - plain(np.broadcast_to(inverse @ np.sum(along, axis=0), x.shape))

            return centred
        h = self.curvature(f, least)
        total = np.sum(h, axis=0)
        shifted = self.problem.fit_intercept & (total > 0)

        def bend(x: Array) -> Array:
            along = h * x
            mean = np.where(shifted, np.sum(along, axis=0) / np.where(shifted, total, 1.0), 0.0)
            return np.asarray(along - h * mean)

        return bend
