"""Multi-epoch SVRG on explicit features [APO17]: corrected, and the printed algorithm beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._components import check_choice
from .._numerics.stopping import in_time
from .._typing import Array
from ..problems import MKLProblem, Point
from ._base import Solver, block_sums, columns_of, derivative_of

#: weights change when the gap for the weights at hand is at most so many times what other weights could gain
READY = 30.0
#: how far the weights go towards, and beyond, the closed form: over-relaxation of an alternation, stable below 2
BEYOND = 1.6
#: new weights may make the objective so many times worse for the moment, or go only a quarter of the way, ...
ROUGH = 2.0
#: ... and less than this share of the way is none
NEAREST = 1e-3
#: back to the best snapshot with half the step: where the objective is so many times that of f = 0, ...
WILD = 3.0
#: ... and after so many epochs without a better gap (which is far from monotone)
PATIENCE = 100
#: after so many halvings the step is not what hinders: nothing more is expected
SHORTEST = 2.0**-10
#: an epoch of the printed method that is longer than so many passes is cut: early in a run, its schedule asks for more
#: steps than anyone would take
LONGEST = 100.0


class SVRG(Solver, registered_as="svrg"):
    """Epochs of variance-reduced stochastic gradients with fixed kernel weights, the weights in closed form between.

    An epoch takes a full gradient (one pass), which also gives the certificate, and as many steps on single samples as
    there are samples (another pass).  Kernels without explicit features are factorised once.

    Parameters
    ----------
    variant : {"corrected", "paper"}, default="corrected"
        The method that converges, or the printed one, for comparison.
    step_size : float, default=1.0
        Step length in units of one over the smoothness, at most 1; halved by itself where it turns out too long.
    epoch : float, default=1.0
        Steps between two full gradients, in units of the number of samples.
    accuracy : float, default=1e-4
        The relative accuracy that the schedule of ``variant="paper"`` is laid out for.
    random_state : int, default=0
        Seed of the order of the samples.

    Notes
    -----
    All iterates have one vector of coefficients a for all kernels, ``f_j = d_j sum_i a_i k_j(x_i, .)``, as those of
    every other solver: what is certified is what predicts.
    """

    needs = ("simple derivative", "smooth norm")
    default_max_iter = 5000
    summary = "variance-reduced stochastic gradients on explicit features"
    mixes = False

    def __init__(
        self,
        variant: str = "corrected",
        step_size: float = 1.0,
        epoch: float = 1.0,
        accuracy: float = 1e-4,
        random_state: int = 0,
    ) -> None:
        self.variant = variant
        self.step_size = step_size
        self.epoch = epoch
        self.accuracy = accuracy
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> SVRGState | PaperRun:
        check_choice("variant of svrg", self.variant, ("corrected", "paper"))
        if not 0.0 < self.step_size <= 1.0:
            raise ValueError(f"step_size of svrg must be in (0, 1], got {self.step_size!r}")
        if not self.epoch > 0.0:
            raise ValueError(f"epoch of svrg must be > 0, got {self.epoch!r}")
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(f"accuracy of svrg must be in (0, 1), got {self.accuracy!r}")
        if self.variant == "paper":
            return PaperRun(problem, self.accuracy, self.random_state)
        run, norm = SVRGRun(problem, float(self.epoch), self.random_state), problem.norm
        k = run.c.shape[1]
        a, u, d = np.zeros((problem.n, k)), np.zeros((run.block_of.size, k)), norm.start(problem.m)
        if start is not None:
            a, d = columns_of(start.beta).copy(), norm.scaled(start.weights)
            if not norm.fixed:  # a weight of exactly zero could never grow again
                d = np.where(d > 0, d, 1e-3 * np.max(d))
            u = columns_of(run.factors.adjoint(a))
            problem.bank.count(run.one_pass)
        unknown: list[Any] = [np.zeros(0)] * 6
        return run.snapshot(SVRGState(run, a, u, d, np.zeros(k), float(self.step_size), *unknown))

    def step(self, problem: MKLProblem, state: SVRGState | PaperRun) -> SVRGState | PaperRun:
        return state.next_epoch() if isinstance(state, PaperRun) else state.run.next_epoch(state)

    def point(self, state: SVRGState | PaperRun) -> Point:
        return state.point()


def shares(curvature: Array) -> Array:
    """Probabilities of the samples, proportional to what each adds to the curvature: the largest step is then safe."""
    total = float(np.sum(curvature))
    return curvature / total if total > 0 else np.full(curvature.size, 1.0 / curvature.size)


def draw(share: Array, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """How often each sample is visited: ``steps * share`` on average, and never more than one off."""
    ends = np.floor(np.cumsum(share) * steps + rng.uniform(1e-9, 1.0 - 1e-9))
    return np.diff(ends, prepend=0.0).astype(np.intp)


@dataclass(frozen=True)
class SVRGState:
    """A snapshot: coefficients a with ``u = Z'a``, weights d, intercept b, and the full gradient there."""

    run: SVRGRun
    a: Array
    u: Array
    d: Array
    b: Array
    step: float
    f: Array
    table: Array  # beta = -c l'(f + b), in the dual set
    G: Array  # Z'table
    lengths: Array  # sum_j d_j |x_i^j|^2
    dual: Array  # the better one of table and a, the latter moved into the dual set
    forms: Array  # beta'K_j beta of the dual point
    upper: float = np.inf  # the objective, the weights being what they are
    inner: float = np.inf  # gap of the problem with these weights
    outer: float = np.inf  # what other weights could gain: the gap is the sum of both, at most
    best: SVRGState | None = None
    idle: int = 0
    reach: float = 1.0  # share of the way to new weights that was accepted the last time

    @property
    def gap(self) -> float:
        return self.inner + self.outer

    @property
    def finished(self) -> bool:
        return self.step < SHORTEST

    def point(self) -> Point:
        """All that a certificate needs is known from the snapshot."""
        shape, quad = self.run.problem.y.shape, self.run.quad(self.u)
        a, f, dual = self.a.reshape(shape), self.f.reshape(shape), self.dual.reshape(shape)
        return Point(a, self.d, quad, f, dual, self.forms)


class SVRGRun:
    """One fit: the features, what of the loss is compiled, and the epochs."""

    def __init__(self, problem: MKLProblem, epoch: float, seed: int) -> None:
        self.problem = problem
        self.factors = problem.bank.factors()
        self.block_of = np.repeat(np.arange(problem.m), self.factors.ranks)
        self.rng = np.random.default_rng(seed)
        self.c = columns_of(problem.c)
        self.one_pass = problem.m * float(problem.n) ** 2
        self.derivative = derivative_of(problem.loss, problem.y)
        self.steps = max(1, round(epoch * problem.n))
        assert problem.loss.smoothness is not None
        zero = np.zeros(problem.y.shape)
        b = problem.loss.best_intercept(problem.y, zero, problem.c) if problem.fit_intercept else 0.0
        self.nothing = max(problem.loss.total(problem.y, zero + b, problem.c), problem.tiny)
        self.bend = float(problem.loss.smoothness) * np.max(self.c, axis=1)

    def quad(self, u: Array) -> Array:
        """``s_j = |x^j|^2`` of a vector in feature space, block by block."""
        return block_sums(np.sum(u**2, axis=1), self.factors.starts) * self.factors.scale

    def snapshot(self, state: SVRGState) -> SVRGState:
        """Full gradient at the state's function, as coefficients in the dual set; one pass.

        The better one of them and of the state's own is the dual point.  The gap is split into what is left to gain
        with these weights, and by other ones.
        """
        problem, shape = self.problem, self.problem.y.shape
        # weight of every feature, the kernel's factor included
        e = (state.d * self.factors.scale)[self.block_of]
        w = e[:, None] * state.u
        b = state.b
        # a is an average of past gradients, and the better bound until late; off the set, it needs its image again
        inside = columns_of(problem.repair(state.a.reshape(shape)))
        beside = None if np.array_equal(inside, state.a) else inside
        problem.bank.count(self.one_pass)
        if problem.fit_intercept:
            # the best intercept is known after all rows were seen: streamed ones are read again for the gradient
            if self.factors.streams:
                f, _, _, lengths = self.factors.sweep(w, self._respond, e)
                problem.bank.count(self.one_pass)
            else:
                f, lengths = columns_of(self.factors.forward(w)), self.factors.lengths(e)
            b = np.atleast_1d(problem.loss.best_intercept(problem.y, f.reshape(shape), problem.c))
            table = columns_of(problem.repair(self._respond(slice(None), f + b).reshape(shape)))
            both = self.factors.adjoint(table if beside is None else np.hstack([table, beside]))
        else:
            f, table, both, lengths = self.factors.sweep(w, self._respond, e, beside)
        k = table.shape[1]
        G, image = np.ascontiguousarray(both[:, :k]), state.u if beside is None else both[:, k:]
        candidates = [(table, self.quad(G)), (inside, self.quad(image))]
        gains = [problem.gain(beta.reshape(shape)) for beta, _ in candidates]
        bounds = [gain - problem.norm.conjugate(s) for gain, (_, s) in zip(gains, candidates, strict=True)]
        better = int(bounds[1] > bounds[0])
        dual, forms = candidates[better]
        upper = 0.5 * float(state.d @ self.quad(state.u))
        shift = b if problem.y.ndim == 2 else b[0]
        upper += problem.loss.total(problem.y, f.reshape(shape) + shift, problem.c)
        below = gains[better] - 0.5 * float(state.d @ forms)
        return replace(
            state, b=b, f=f, table=table, G=G, lengths=lengths, dual=dual, forms=forms,
            upper=float(upper), inner=float(upper - below), outer=float(below - bounds[better]),
        )  # fmt: skip

    def _respond(self, rows: Any, f: Array) -> Array:
        """Coefficients ``-c l'(f)``, which are in the dual set where there is no intercept."""
        problem = self.problem
        y, c = problem.y[rows], problem.c[rows]
        return columns_of(-c * problem.loss.gradient(y, f.reshape(y.shape)))

    def next_epoch(self, state: SVRGState) -> SVRGState:
        """Steps with the weights fixed, new weights, and the snapshot there; or back, with shorter steps."""
        a, u, b = self._walk(state)
        best = state if state.best is None or state.gap < state.best.gap else state.best
        back = replace(best, step=0.5 * state.step, best=None, idle=0)
        blocks = state.d * np.sqrt(self.quad(u))
        if not (np.all(np.isfinite(blocks)) and np.all(np.isfinite(b))):
            return back
        # weights as far towards their goal as the objective bears.  a is kept, not w: new weights before the steps have
        # done their work would only undo it, and where decision values are many times what the regulariser wants, even
        # small changes of the weights cost more than they gain
        reach = state.reach if state.inner <= READY * state.outer else 0.0
        here, norm, goal = replace(state, a=a, u=u, b=b), self.problem.norm, state.d
        if reach > 0:  # weights of (2), and beyond them
            goal = closed = norm.weights_of_blocks(blocks)
            if not norm.fixed:
                moved = np.divide(closed, state.d, out=np.zeros_like(closed), where=state.d > 0)
                goal = norm.scaled(closed * moved ** (BEYOND - 1.0))
        while True:
            d = state.d if reach == 0.0 else norm.scaled(state.d ** (1.0 - reach) * goal**reach)
            fresh = self.snapshot(replace(here, d=d))
            if reach == 0.0:  # a wait leaves the reach as it was, ...
                break
            if fresh.upper <= ROUGH * state.upper:
                fresh = replace(fresh, reach=min(1.0, 2.0 * reach))  # ... an update lets it recover
                break
            reach = 0.25 * reach if reach > NEAREST else 0.0
            here = replace(here, reach=max(reach, NEAREST))
        idle = 0 if fresh.gap < best.gap else state.idle + 1
        if idle > PATIENCE or not fresh.upper <= WILD * self.nothing:
            return back
        return replace(fresh, best=replace(best, best=None), idle=idle)

    def _walk(self, state: SVRGState) -> tuple[Array, Array, Array]:
        """One epoch of steps on single samples."""
        from .._numerics import svrg as compiled

        problem, e = self.problem, (state.d * self.factors.scale)[self.block_of]
        lengths = state.lengths
        offset = 0.0
        if problem.fit_intercept:
            # one more feature, constant and without a price: as long as the others together
            offset = float(np.mean(lengths)) or 1.0
            lengths = lengths + offset
        curvature = self.bend * lengths
        # h = step / (L_d + lambda) of the paper's objective, times lambda
        eta = state.step / (1.0 + float(np.sum(curvature)))
        share = shares(curvature)
        visits = draw(share, self.steps, self.rng)
        powers = np.power(1.0 - eta, np.arange(int(visits.sum()) + 1, dtype=float))
        snapshot = compiled.Snapshot(e, state.table, state.G, self.c, state.table.sum(axis=0))
        pace = compiled.Pace(eta, eta * offset, share, powers)
        last, touched = (np.zeros(array.shape[0], dtype=np.int64) for array in (state.a, state.u))
        walk = compiled.Walk(state.u.copy(), state.a.copy(), state.b.copy(), last, touched)
        time, sparse = 0, False
        for rows, Z in self.factors.shuffled(self.rng):
            order = self.rng.permutation(np.repeat(np.arange(rows.size), visits[rows]))
            sparse = sparse or hasattr(Z, "indptr")
            for part in in_time(order, self.block_of.size * self.c.shape[1]):
                fixed = (part, rows, time, walk, snapshot, pace, self.derivative)
                if hasattr(Z, "indptr"):
                    csr = compiled.SparseRows(Z.data, Z.indices, Z.indptr)
                    time = compiled.sparse_steps(csr, *fixed)
                else:
                    time = compiled.dense_steps(Z, *fixed)
        problem.bank.count(time / problem.n * problem.m * float(problem.n) ** 2)
        # coefficients and their image are brought up to date
        compiled.lazy_finish(walk.a, snapshot.table, walk.last, powers, time)
        if sparse:
            compiled.lazy_finish(walk.u, snapshot.G, walk.touched, powers, time)
        return walk.a, walk.u, walk.b


def schedule(delta: Array, L: float, strength: Array) -> tuple[Array, Array]:
    """Step and number of steps of (5) for a decrease by ``delta`` of a problem with this strong convexity."""
    kappa = L / strength  # at least 2, by the clip of line 16
    step = 1.0 / (4.0 / delta * (L - strength) + 2.0 * L)
    many = 4.0 * (kappa - 1.0) / delta + 2.0 * kappa
    return step, many * np.log(2.0 / delta + (2.0 * kappa - 1.0) / (kappa - 1.0))


def work_done(L: float, strength: Array, step: Array, many: Array) -> Array:
    """Decrease c of (6) by an epoch of so many such steps."""
    left = np.exp(many * np.log1p(-np.minimum(strength * step, 1.0 - 1e-12)))
    kept = 1.0 - 2.0 * L * step
    return left / np.maximum((1.0 - left) * kept, 1e-300) + 2.0 * (L - strength) * step / kept


class PaperRun:
    """Algorithm 1 of [APO17] with the schedule of its Proposition 1, misprints repaired; it is its own state.

    Only problems with one column and no intercept, as in the paper.  What is kept of it, and why it does not converge
    as claimed, is in ``docs/svrg.md``: blocks that stop at different times, strong convexity clipped at L/2 (line 16)
    although the step is taken on the unclipped problem, and a promise that forgets that the weights change.
    ``Delta_j`` (4) is garbled in print; taken as ``(eps / prod c)^(1 / (J - j + 1))``.
    """

    def __init__(self, problem: MKLProblem, accuracy: float, seed: int) -> None:
        if problem.fit_intercept or problem.y.ndim == 2:
            raise ValueError(
                "svrg(variant='paper') has no intercept and one target, as in the paper: use fit_intercept=False and "
                "two classes (or multi_class='ovr'), or variant='corrected'"
            )
        factors = problem.bank.factors()
        if factors.features is None:
            raise ValueError("svrg(variant='paper') needs its features in memory: use variant='corrected'")
        self.problem, self.accuracy, self.rng = problem, accuracy, np.random.default_rng(seed)
        features = factors.features
        self.Z = np.ascontiguousarray(features.toarray() if hasattr(features, "toarray") else features)
        self.starts, self.root = factors.starts, np.sqrt(factors.scale)
        self.block_of = np.repeat(np.arange(problem.m), factors.ranks)
        self.total = float(np.sum(problem.c))
        self.lam = 1.0 / self.total  # the paper's objective is ours over the sum of c
        loss = derivative_of(problem.loss, problem.y)
        self.loss = loss._replace(target=loss.target[:, 0], low=loss.low[:, 0], high=loss.high[:, 0])
        lengths = factors.diag().sum(axis=0)
        assert problem.loss.smoothness is not None
        # L bounds the gradient of every sample's loss
        self.L = float(problem.loss.smoothness) * float(np.max(problem.c * lengths)) * problem.n / self.total
        self.w = np.zeros(self.Z.shape[1])
        self.d = np.full(problem.m, 1.0 / problem.m)  # line 1; F^(-1/p) would be right
        self.epochs, self.done = max(1, int(np.ceil(np.log(1.0 / accuracy)))), 0
        self.past: list[tuple[Array, Array]] = []  # steps and their numbers of the epochs so far
        self._snapshot()

    @property
    def finished(self) -> bool:
        return self.done >= self.epochs or not np.all(np.isfinite(self.w))

    def _snapshot(self) -> None:
        problem = self.problem
        problem.bank.count(problem.m * float(problem.n) ** 2)
        self.f = self.Z @ (self.root[self.block_of] * self.w)
        self.beta = problem.repair(-problem.c * problem.loss.gradient(problem.y, self.f))
        self.G = self.root[self.block_of] * (self.Z.T @ self.beta)

    def next_epoch(self) -> PaperRun:
        """Lines 3 to 17."""
        from .._numerics.svrg import PaperBlocks, paper_steps

        problem, n = self.problem, self.problem.n
        clipped = np.minimum(self.lam / np.maximum(self.d, 1e-300), 0.5 * self.L)  # line 16
        past = np.ones(problem.m)
        for step, many in self.past:  # line 17
            past *= np.minimum(work_done(self.L, clipped, step, many), 1e30)
        left = self.epochs - self.done
        # an epoch that by (6) did nothing asks the impossible of the next: kept within what can be run
        delta = np.clip((self.accuracy / np.clip(past, 1e-300, 1e300)) ** (1.0 / left), 1e-6, 0.99)
        step, many = schedule(delta, self.L, clipped)
        many = np.minimum(np.ceil(many), LONGEST * n)
        # line 4, with the normaliser that its law lacks: T = t with probability (1 - strength step)^(m - t)
        rate = -np.log1p(-np.maximum(clipped * step, 1e-300))
        whole = -np.expm1(-many * rate)
        back = -np.log1p(-self.rng.uniform(size=problem.m) * whole) / rate
        stop = np.maximum(many - np.floor(back), 1.0).astype(np.int64)
        order = self.rng.integers(0, n, size=int(stop.max()))
        w = self.w.copy()
        strength = self.lam / np.maximum(self.d, 1e-300)
        with np.errstate(over="ignore", invalid="ignore"):
            paper_steps(
                self.Z, order, w, PaperBlocks(self.starts, self.root, strength, step, stop),
                -self.G / self.total, self.beta * n / self.total, problem.c * n / self.total, self.loss,
            )  # fmt: skip
        # a block that has stopped costs nothing: inner steps count by the blocks that moved
        problem.bank.count(float(stop.sum()) * n)
        self.past.append((step, many))
        self.w, self.done = w, self.done + 1
        blocks = np.sqrt(block_sums(w**2, self.starts))
        if np.all(np.isfinite(blocks)):
            self.d = problem.norm.weights_of_blocks(blocks)
        self._snapshot()
        return self

    def point(self) -> Point:
        """Blocks with coefficients of their own; those of the gradient are what they can be exchanged for."""
        blocks, quad = np.sqrt(block_sums(self.w**2, self.starts)), block_sums(self.G**2, self.starts)
        weights = self.problem.norm.weights_of_blocks(blocks)
        return Point(self.beta, weights, quad, self.f, blocks=blocks)
