"""Stochastic steps on one sample at a time, for (2, r) block norms: Pegasos, UFO-MKL, OBSCURE, and exact ascent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._components import check_choice, is_number
from .._numerics.resources import default_budget
from .._numerics.stopping import check_time, in_time
from .._typing import Array, Index
from ..banks import BoundKernels, support
from ..banks.memory import refuse
from ..banks.normalise import Normaliser
from ..kernels import Kernel, n_samples, resolve_kernels, take
from ..losses import Loss, own_class
from ..norms import Norm
from ..problems import MKLProblem, Point
from ._base import Solver, block_sums, derivative_of

if TYPE_CHECKING:  # with numba, which is imported where something is compiled
    from .._numerics.online import Features

#: entries of kernel rows, or of features, at hand at a time
CHUNK = 20_000_000
#: epochs after which norms and products are computed afresh: updates leave rounding behind
REFRESH = 20
#: the objective of OBSCURE's online stage falls as long as ``patience`` epochs take this share of it away
FALL = 0.1
ITERATES = ("last", "best", "averaged")


def block_exponent(norm: Any) -> float:
    """The dual exponent q of a (2, r) norm."""
    r = float(norm.r)
    return r / (r - 1.0)


class _Products:
    """Products of every sample with every block ``theta_j = sum_i a_i phi_j(x_i)``, which compiled steps keep."""

    stored: Array  # what the steps keep up to date, linear in the coefficients
    whole: Any  # rows of all samples, where they are kept; elsewhere those of some are read at a time
    read: Callable[[Index], Any]
    all_rows = False  # whether every step reads a row, and not only those that move coefficients
    steps: Callable[..., None]  # compiled online steps
    ascent: Callable[..., int]  # compiled exact ascent

    def __init__(self, problem: MKLProblem, row: int) -> None:
        self.problem = problem
        self.n, self.m = problem.n, problem.m
        self.columns = 1 if problem.y.ndim == 1 else problem.y.shape[1]
        self.diag = np.ascontiguousarray(problem.bank.diag())
        self._work, self._chunk = self.columns * row, max(1, CHUNK // max(1, row))

    def sweep(self, order: Index, compiled: Callable[..., Any], *arguments: Any) -> int:
        """Run compiled steps on the samples in order, in place; return how many moved, if the steps say it."""
        moved = 0
        if self.whole is not None:
            for part in in_time(order, self._work):
                moved += compiled(part, part, self.whole, self.stored, self.diag, *arguments) or 0
            return moved
        for first in range(0, order.size, self._chunk):
            check_time()
            part = order[first : first + self._chunk]
            where, rows = np.arange(part.size), self.read(part)
            moved += compiled(part, where, rows, self.stored, self.diag, *arguments) or 0
        return moved

    def count(self, samples: int, updates: float) -> None:
        """Count rows as part of a pass: features of all samples, or kept rows of kernels of those that moved."""
        rows = updates if self.whole is not None else 0.0
        self.problem.bank.count((samples if self.all_rows else rows) * self.m * self.n)


class KernelProducts(_Products):
    """``P (k, m, n)``: every step that changes coefficients reads a row of every kernel."""

    def __init__(self, problem: MKLProblem) -> None:
        from .._numerics.online import ascend_kernel, kernel_steps

        super().__init__(problem, problem.m * problem.n)
        self.steps, self.ascent, self.read = kernel_steps, ascend_kernel, problem.bank.rows
        budget = default_budget()
        needed = 8 * self.columns * self.m * self.n
        if needed > budget:
            raise refuse(
                f"products of {self.n} samples with {self.m} kernels and {self.columns} classes", needed, budget,
                ["explicit features (kernels.nystrom, kernels.fourier)", "solver='auto'", "fewer kernels"],
            )  # fmt: skip
        self.stored, self.whole = np.zeros((self.columns, self.m, self.n)), None
        # rows are kept where they take no more than a quarter of what is left, else computed whenever they are read
        if 8 * self.m * self.n**2 <= (budget - needed) // 4:
            everyone = np.arange(self.n)
            check_time(preparing=True)
            self.whole = np.ascontiguousarray(problem.bank.block(everyone, everyone, np.arange(self.m)))

    def mixture(self, factors: Array) -> Array:
        """``sum_j factors_j`` times the products with block j, ``(n, k)``."""
        return np.tensordot(factors, self.stored, axes=(0, 1)).T

    def quad(self, a: Array) -> Array:
        """``a'K_j a`` for the coefficients a that ``stored`` belongs to."""
        return np.einsum("kmn,nk->m", self.stored, a)

    def reset(self, a: Array) -> None:
        """Make ``stored`` belong to the coefficients a."""
        self.stored[:] = self.problem.bank.apply(a).transpose(2, 0, 1)


class FeatureProducts(_Products):
    """``W (k, D)``: a step reads and changes the features of one sample, whatever n is."""

    all_rows = True

    def __init__(self, problem: MKLProblem) -> None:
        from .._numerics.online import Features, ascend_features, feature_steps

        factors = self.factors = problem.bank.factors()
        self.starts = factors.starts.astype(np.int64)
        super().__init__(problem, int(self.starts[-1]))
        self.steps, self.ascent, self.read = feature_steps, ascend_features, self._dense
        self.stored, self.whole = np.zeros((self.columns, int(self.starts[-1]))), None
        Z = factors.features
        if isinstance(Z, np.ndarray) and Z.dtype == np.float64 and Z.flags.c_contiguous:
            self.whole = Features(Z, self.starts, factors.scale)

    def _dense(self, part: Index) -> Features:
        from .._numerics.online import Features

        rows = self.factors.features[part]
        dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
        return Features(np.ascontiguousarray(dense), self.starts, self.factors.scale)

    def mixture(self, factors: Array) -> Array:
        spread = np.repeat(factors * self.factors.scale, self.factors.ranks)
        return np.asarray(self.factors.features @ (self.stored * spread).T)

    def quad(self, a: Array) -> Array:
        return np.asarray(block_sums(np.sum(self.stored**2, axis=0), self.starts) * self.factors.scale)

    def reset(self, a: Array) -> None:
        self.stored[:] = np.asarray(self.factors.features.T @ a).T


def products_of(problem: MKLProblem) -> KernelProducts | FeatureProducts:
    """Explicit features where the bank is made of them, products with every sample elsewhere."""
    return KernelProducts(problem) if problem.bank.features is None else FeatureProducts(problem)


class OnlineRun:
    """Coefficients, products and norms under online steps, in the papers' scale: our objective over ``sum c``."""

    def __init__(self, problem: MKLProblem, q: float, seed: int) -> None:
        from .._numerics.online import SIG

        self.problem, self.q, self.seed = problem, q, seed
        self.products = products_of(problem)
        cost = problem.c if problem.c.ndim == 1 else problem.c[:, 0]
        self.total = float(np.sum(cost))
        self.lam = 1.0 / self.total
        #: weights of the samples in the mean loss
        self.share = np.ascontiguousarray(cost * problem.n / self.total)
        shape = (problem.n, self.products.columns)
        self.A, self.H, self.window = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.older, self.visits, self.older_visits, self.next_reset = np.zeros(shape), 0, 0, 1
        self.sq, self.factors = np.zeros(problem.m), np.zeros(problem.m)
        self.scalars = np.zeros(6)
        self.scalars[SIG] = 1.0
        self.derivative = derivative_of(problem.loss, problem.y)
        self.epochs = 0
        self.dual_beta: Array | None = None
        self.dual_quad: Array | None = None

    def epoch(
        self, rule: int, eta: float = 0.0, radius: float = 1.0, cut: float = 0.0, order: Index | None = None
    ) -> int:
        """Visit every sample once, or those in ``order``; return how many coefficients changed."""
        from .._numerics.online import SIG, UPDATES, Coefficients, Norms, Steps, Work

        if order is None:
            order = np.random.default_rng([self.seed, self.epochs]).permutation(self.problem.n)
        before = self.scalars[UPDATES]
        coefficients = Coefficients(self.A, self.H, self.window)
        norms = Norms(self.sq, self.factors, self.scalars)
        steps = Steps(rule, self.q, self.lam, float(eta), float(radius), float(cut))
        work = Work(self.share, coefficients, norms, steps, self.derivative)
        self.products.sweep(order, self.products.steps, *work)
        updates = self.scalars[UPDATES] - before
        self.products.count(order.size, updates)
        self.epochs += 1
        self.visits += 1
        if self.epochs % REFRESH == 0:
            self.products.reset(self.A)
            self.sq[:] = self.products.quad(self.A) * self.scalars[SIG] ** 2
        return int(updates)

    def restart_clock(self) -> None:
        """Begin another stage: the time of its steps starts at zero, and so do the average and the dual point."""
        from .._numerics.online import EXTRA, SUM_SIG, TIME

        self.scalars[TIME] = self.scalars[EXTRA] = self.scalars[SUM_SIG] = 0.0
        self.H[:] = self.window[:] = self.older[:] = 0.0
        self.visits, self.older_visits, self.next_reset = 0, 0, 1

    def point(self, factors: Array, shrink: float) -> Point:
        """The function ``shrink sum_j factors_j theta_j`` with what is known of it."""
        from .._numerics.online import SIG

        shape = self.problem.y.shape
        if not np.any(factors > 0):
            return self._with_dual(Point(np.zeros(shape), self.problem.norm.start(self.problem.m)))
        scale = shrink * self.scalars[SIG]
        decision = (scale * self.products.mixture(factors)).reshape(shape)
        beta = (scale * self.A).reshape(shape)
        return self._with_dual(Point(beta, factors.copy(), shrink**2 * self.sq, decision))

    def averaged(self, shrink: float, of_norms: Any) -> Point:
        """The mean of the coefficients of this stage times ``shrink``, the factors from its norms; costs a pass."""
        from .._numerics.online import SUM_SIG, TIME

        steps = max(self.scalars[TIME], 1.0)
        mean = (shrink * (self.scalars[SUM_SIG] * self.A - self.H) / steps).reshape(self.problem.y.shape)
        quad = self.problem.bank.quad(mean)
        return self._with_dual(Point(mean, of_norms(quad), quad))

    def _with_dual(self, point: Point) -> Point:
        beta, quad = self.dual_beta, self.dual_quad
        if beta is None:  # nothing known yet: zero is in every dual set
            beta, quad = np.zeros(self.problem.y.shape), np.zeros(self.problem.m)
        return replace(point, dual_beta=beta, dual_quad=quad)

    def offer_dual(self, beta: Array, quad: Array) -> None:
        """Keep a dual point if it is the best so far."""
        dual = self.problem.dual
        if self.dual_beta is None or dual(beta, quad) > dual(self.dual_beta, self.dual_quad):
            self.dual_beta, self.dual_quad = beta, quad


class Pegasos(Solver, registered_as="pegasos"):
    """Pegasos extended to (2, r) norms, as [OJC10] compares with it; an iteration is an epoch over the samples.

    ``theta += z`` on every loss, ``w`` from the norms of theta over ``lam t``.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("stepwise loss", "block norm")
    summary = "stochastic steps of length 1 / (lam t) for (2, r) norms"
    intercepts = False
    default_max_iter = 1000
    mixes = False

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> OnlineRun:
        return OnlineRun(problem, block_exponent(problem.norm), self.random_state)

    def step(self, problem: MKLProblem, state: OnlineRun) -> OnlineRun:
        from .._numerics.online import TIME
        from .._numerics.online import UFO as RULE

        run, norm = state, problem.norm
        # the paper's alpha goes with the mean loss: ours over sum c
        run.epoch(RULE, cut=(norm.l1_term or 0.0) * run.lam)
        # every sample was visited equally often: theta / t is in the dual set (algorithms, section 2)
        to_dual = run.total / run.scalars[TIME]
        beta = (run.A * to_dual).reshape(problem.y.shape)
        run.offer_dual(beta, run.sq * to_dual**2)
        return run

    def point(self, state: OnlineRun) -> Point:
        from .._numerics.online import TIME, block_factors

        run, t = state, max(state.scalars[TIME], 1.0)
        factors = np.zeros(run.problem.m)
        block_factors(run.sq, run.q, (run.problem.norm.l1_term or 0.0) * run.lam * t, factors)
        return run.point(factors, 1.0 / (run.lam * t))


class UFO(Pegasos, registered_as="ufo"):
    """UFO-MKL: Pegasos with an l1 term on the block norms, ``norm=Elastic(alpha, r)``, which keeps few kernels.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("stepwise loss", "elastic norm")
    summary = "the same with an l1 term that keeps few kernels (Orabona and Luo 2011)"


@dataclass
class _ObscureState:
    run: OnlineRun
    radius: float | None = None
    # while the online stage lasts: the point of its last epoch, and the objectives at the ends of all
    reached: Point | None = None
    objectives: list[float] = field(default_factory=list)


class Obscure(Solver, registered_as="obscure"):
    """Two stages of online steps for (2, r)-norm MKL; an iteration is an epoch over the samples.

    The first stage finds a region of good solutions quickly and, through Theorem 2, a radius R that the optimum lies
    within; the second converges at the rate of Theorem 1.

    Parameters
    ----------
    eta : float, default=2.0
        Step length of the first stage (the paper's 2 for kernels of unit diagonal).
    online_epochs : int, default=500
        Most epochs of the first stage; it ends before that after an epoch without an update.
    patience : int or None, default=10
        The first stage also ends when its objective has not fallen by a tenth in this many epochs: soon where C is
        small, where steps of a fixed length go on beyond the optimum, and late where it is large.  None: never, as in
        the paper.
    iterate : {"best", "last", "averaged"}, default="best"
        Which point to return: the best or the last of those at the ends of epochs, or the best mean of all coefficients
        of the second stage so far, to which Theorem 1 applies.
    certify_every : int, default=5
        Epochs between two computations of the lower bound, which costs a pass where kernels are not explicit features.
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("stepwise loss", "block norm")
    intercepts = False
    default_max_iter = 1000
    mixes = False
    summary = "online, then strongly convex stochastic steps in a ball (Orabona et al. 2010)"

    def __init__(
        self,
        eta: float = 2.0,
        online_epochs: int = 500,
        patience: int | None = 10,
        iterate: str = "best",
        certify_every: int = 5,
        random_state: int = 0,
    ) -> None:
        self.eta = eta
        self.online_epochs = online_epochs
        self.patience = patience
        self.iterate = iterate
        self.certify_every = certify_every
        self.random_state = random_state

    @property
    def keeps_last(self) -> bool:  # type: ignore[override]
        return self.iterate == "last"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _ObscureState:
        check_choice("iterate of obscure", self.iterate, ITERATES)
        if not self.eta > 0:
            raise ValueError(f"eta of obscure must be > 0, got {self.eta!r}")
        if self.patience is not None and not self.patience >= 1:
            raise ValueError(f"patience of obscure must be >= 1 or None, got {self.patience!r}")
        return _ObscureState(OnlineRun(problem, block_exponent(problem.norm), self.random_state))

    def step(self, problem: MKLProblem, state: _ObscureState) -> _ObscureState:
        from .._numerics.online import FIXED_STEP, STRONGLY_CONVEX

        run = state.run
        if state.radius is None:
            updates = run.epoch(FIXED_STEP, self.eta)
            state.reached = run.point(run.factors, 1.0 / run.q)
            state.objectives.append(problem.primal(state.reached)[0])
            # the best objective of the last epochs may be hardly below that of the epochs before them
            seen, last = state.objectives, self.patience
            still = last and len(seen) > last and min(seen[-last:]) > (1.0 - FALL) * min(seen[:-last])
            if updates == 0 or run.epochs >= self.online_epochs or still:
                state.radius, state.reached = radius_of(run, min(state.objectives)), None
                run.restart_clock()
            return state
        run.epoch(STRONGLY_CONVEX, radius=state.radius)
        if run.visits % self.certify_every == 0 or run.visits < 3:
            # a sample's mean negative gradient over the last visits, at least half of them all, is in its dual set
            cost = run.share * run.total / problem.n
            visits = run.visits + run.older_visits
            beta = ((run.window + run.older) * (cost[:, None] / visits)).reshape(problem.y.shape)
            run.offer_dual(beta, problem.bank.quad(beta))
            if run.visits >= run.next_reset:
                run.older[:], run.older_visits = run.window, run.visits
                run.window[:] = 0.0
                run.visits, run.next_reset = 0, 2 * run.next_reset
        return state

    def point(self, state: _ObscureState) -> Point:
        if state.reached is not None:
            return state.reached
        if self.iterate == "averaged" and state.radius is not None and state.run.visits > 0:
            return state.run.averaged(1.0 / state.run.q, state.run.problem.norm.weights)
        # w_j = (1/q) (|theta_j| / |theta|_q)^(q-2) theta_j
        return state.run.point(state.run.factors, 1.0 / state.run.q)


def radius_of(run: OnlineRun, objective: float) -> float:
    """Theorem 2: the optimum's norm is at most ``sqrt(2 objective / lam)`` at any point, and ``1 / sqrt(lam)``."""
    return float(min(np.sqrt(2.0 * (objective / run.total) / run.lam), 1.0 / np.sqrt(run.lam)))


@dataclass
class Stream:
    """Support vectors with their coefficients ``(n_sv, k)``, and the squared block norms of what they make up."""

    bound: BoundKernels
    coef: Array
    quad: Array
    q: float
    eta: float

    @classmethod
    def begin(
        cls, kernels: list[Kernel], samples: Any, normalize: str | None, norm: Norm, eta: float, columns: int
    ) -> Stream:
        """Settle kernels and their normalisation on the first batch."""
        resolved = resolve_kernels(kernels, samples)
        m = len(resolved)
        normaliser = Normaliser.empty(normalize, False, m, n_samples(samples), [k.name for k in resolved])
        for j, kernel in enumerate(resolved):
            normaliser.learn(j, kernel.diag(samples))
        none = take(samples, np.zeros(0, dtype=np.intp))
        q = block_exponent(norm)
        return cls(BoundKernels(resolved, none, normaliser), np.zeros((0, columns)), np.zeros(m), q, eta)

    def check(self, columns: int | None = None) -> None:
        """Raise a ValueError where the parts do not fit together: compiled code reads as far as they say.

        They always do in a stream that ``partial_fit`` made; a file may hold another one.
        """
        m, rows = len(self.bound.kernels), n_samples(self.bound.samples)
        damaged = "the state of partial_fit is damaged"
        for name, array, shape in (
            ("coef", self.coef, (rows, self.coef.shape[1] if np.ndim(self.coef) == 2 else columns)),
            ("quad", self.quad, (m,)),
            ("scale", self.bound.normaliser.scale, (m,)),
        ):
            fits = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape
            if not (fits and np.all(np.isfinite(array))):
                raise ValueError(f"{damaged}: {name} is not a finite array of {shape}")
        if columns is not None and self.coef.shape[1] != columns:
            raise ValueError(f"{damaged}: it has {self.coef.shape[1]} functions, the classes {columns}")
        for name, value in (("exponent", self.q), ("step", self.eta)):
            if not (is_number(value) and 0 < value < np.inf):
                raise ValueError(f"{damaged}: its {name} is {value!r}, no number > 0")

    @property
    def weights(self) -> Array:
        """Factors of the kernels: ``f = sum_j weights_j sum_i (coef_i / q) k_j(x_i, .)``."""
        from .._numerics.online import block_factors

        factors = np.zeros(self.quad.size)
        block_factors(self.quad, float(self.q), 0.0, factors)
        return factors

    def learn(self, batch: Any, y: Array, weight: Array, loss: Loss) -> int:
        """Visit the samples of a batch in their order; return how many changed the function."""
        from .._numerics import online as compiled

        self.check(1 if y.ndim == 1 else y.shape[1])
        size, columns = n_samples(batch), self.coef.shape[1]
        known = self.bound
        P = np.zeros((columns, self.quad.size, size))
        if self.coef.shape[0]:
            P += np.einsum("mbs,sk->kmb", known.cross(batch), self.coef)
        rows = BoundKernels(known.kernels, batch, known.normaliser).cross(batch)
        coefficients = compiled.Coefficients(*np.zeros((3, size, columns)))
        norms = compiled.Norms(self.quad, np.zeros(self.quad.size), np.zeros(6))
        norms.scalars[compiled.SIG] = 1.0
        # floats and a copy, whatever was given: compiled functions are compiled anew for every kind of argument
        q, eta = float(self.q), float(self.eta)
        compiled.block_factors(self.quad, q, 0.0, norms.factors)
        order, diagonal = np.arange(size), np.diagonal(rows, axis1=1, axis2=2).copy()
        steps = compiled.Steps(compiled.FIXED_STEP, q, lam=1.0, eta=eta, radius=1.0, cut=0.0)
        work = compiled.Work(weight, coefficients, norms, steps, derivative_of(loss, y))
        compiled.kernel_steps(order, order, rows, P, diagonal, *work)
        used = support(coefficients.A)
        parts: list[Any] = [known.samples, take(batch, used)]
        if sp.issparse(known.samples):
            samples = sp.vstack(parts, format="csr")
        elif hasattr(known.samples, "iloc"):
            import pandas as pd

            samples = pd.concat(parts)
        else:
            samples = np.concatenate(parts) if hasattr(known.samples, "shape") else [*parts[0], *parts[1]]
        self.bound = BoundKernels(known.kernels, samples, known.normaliser)
        self.coef = np.vstack([self.coef, coefficients.A[used]])
        return int(used.size)


@dataclass
class _AscentState:
    products: KernelProducts | FeatureProducts
    beta: Array
    quad: Array
    epoch: int = 0
    finished: bool = False

    def __post_init__(self) -> None:
        problem = self.products.problem
        self.weights = problem.norm.weights(self.quad)
        self.decision = self.products.mixture(self.weights)
        value = problem.norm.conjugate(self.quad)
        upper = value + problem.loss.total(problem.y, self.decision, problem.c)
        self.gap = upper - problem.gain(self.beta) + value


class DualAscent(Solver, registered_as="dual_ascent"):
    """Move weight between two classes of one sample, exactly, on the dual with the norm in it; sample after sample.

    Always in the dual set, so the certificate is free.  An iteration is an epoch over the samples; those whose own part
    of the gap is small are passed over.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("joint loss", "block norm")
    intercepts = False
    default_max_iter = 3000
    mixes = False
    summary = "exact pairwise ascent on the multiclass dual"

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _AscentState:
        products = products_of(problem)
        beta = np.zeros(problem.y.shape)
        if start is not None:
            beta = np.ascontiguousarray(problem.repair(start.beta))
            products.reset(beta)
        return _AscentState(products, beta, products.quad(beta))

    def step(self, problem: MKLProblem, state: _AscentState) -> _AscentState:
        from .._numerics.online import OnlineRows

        rng = np.random.default_rng([self.random_state, state.epoch])
        quad, beta = state.quad.copy(), state.beta.copy()
        share = 0.1 * max(state.gap, 0.0) / problem.n
        own, bounds = own_class(problem.y), np.ascontiguousarray(problem.c[:, 0])
        rows = OnlineRows(beta, quad, own, bounds, block_exponent(problem.norm), share)
        moved = state.products.sweep(rng.permutation(problem.n), state.products.ascent, rows)
        state.products.count(problem.n, moved)
        epoch = state.epoch + 1
        if epoch % REFRESH == 0:
            state.products.reset(beta)
            quad = state.products.quad(beta)
        return _AscentState(state.products, beta, quad, epoch, finished=moved == 0)

    def point(self, state: _AscentState) -> Point:
        return Point(state.beta, state.weights, state.quad, state.decision)
