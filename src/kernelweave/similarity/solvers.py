"""Solvers of the similarity problems: ESKL, EMKL, REKL and IndSVM, with a registry of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from .._components import Registry, check_choice
from .._numerics.stopping import check_time, out_of_time
from .._typing import Array
from ..problems import FixedSolution, relative_gap
from ..solvers import Solver
from .problems import (
    DualPoint,
    IndefiniteSVMProblem,
    RestrictedKernelsProblem,
    SeparateKernelsProblem,
    SimilarityPoint,
    SimilarityProblem,
    SingleKernelProblem,
    entropic_vector,
)

similarity_solvers: Registry[SimilaritySolver] = Registry(
    "similarity solver", "kernelweave.similarity.solvers"
)


class SimilaritySolver(Solver):
    """An iterative method for one of the similarity problems; the contract is that of ``Solver``."""

    components = similarity_solvers
    #: the class of problems it solves
    problem: ClassVar[type[SimilarityProblem]] = SimilarityProblem
    default_max_iter: ClassVar[int] = 300

    def point(self, state: Any) -> SimilarityPoint:
        """Return the point to be evaluated: kernels that an SVM was solved with."""
        return state.best  # type: ignore[no-any-return]


@dataclass
class PartialDual:
    """Kernels that are best for given coefficients, for a tight lower bound; kept, as coefficients change slowly.

    They solve ``min over kernels of <slope, K> + rho sum_i L(A(K) - S_i)``, with ``A`` the embedding of the kernels
    among the targets.
    """

    kernels: Array | None = None
    split: Array | None = None  # kernels, scaled multipliers and penalty of ADMM
    scaled: Array | None = None
    penalty: float = 1.0

    def solve(
        self, problem: SimilarityProblem, beta: Array, shares: Array, start: Array, steps: int
    ) -> list[DualPoint]:
        """Return points for the lower bound, and keep the best kernels for these coefficients."""
        S, rho, loss = problem.targets, problem.rho, problem.loss
        slope = problem.slope(beta, shares)
        first = problem.residuals(start)[0]
        duals: list[DualPoint] = []
        at_kink = False
        if loss.curvature(first) is not None:
            # each loss replaced by the parabola ``c_i |X|^2`` that touches it: exact at once for the squared loss
            last, kernels = np.inf, start if self.kernels is None else self.kernels
            for _ in range(steps):
                check_time()
                c = rho * np.array([loss.curvature(X) for X in problem.residuals(kernels)])
                weighted = problem.pull(c.reshape(-1, *[1] * (S.ndim - 1)) * S)
                kernels = problem.project((weighted - 0.5 * slope) / problem.copies(c))
                value = float(np.sum(slope * kernels)) + rho * float(problem.losses(kernels).sum())
                if abs(last - value) <= 1e-6 * abs(value):
                    break
                last = value
            self.kernels = kernels
            duals.append(DualPoint(beta, shares, kernels=kernels))
            size = np.array([np.linalg.norm(X) for X in problem.residuals(kernels)])
            whole = np.array([np.linalg.norm(matrix) for matrix in S])
            smooth = loss.curvature(1e-3 * S[0]) == loss.curvature(S[0])
            at_kink = not smooth and bool(np.any(size < 1e-2 * whole))
        # ADMM where there is no parabola, and where a residual vanishes: at a kink one gradient says nothing, and
        # the multiplier has to be found
        if loss.prox(first, 1.0) is None or (duals and not at_kink):
            return duals
        # residuals are split off and shrunk by the loss's prox; ``penalty * scaled / rho`` is a subgradient
        kernels = start if self.split is None else self.split
        if self.scaled is None:
            Z = problem.multipliers(kernels)
            # a step of the prox that moves residuals by about a quarter of the similarities
            self.penalty = 4.0 * rho * max(float(np.linalg.norm(Z)), 1e-9) / float(np.linalg.norm(S))
            self.scaled = rho * Z / self.penalty
        U, t = self.scaled, self.penalty
        ones = problem.copies(np.ones(problem.m))
        Z, before = np.zeros_like(S), None
        embedded = problem.residuals(kernels) + S
        for _ in range(steps):
            check_time()
            moved = embedded - S + U
            X = np.stack([np.asarray(loss.prox(matrix, rho / t)) for matrix in moved])
            Z = (t / rho) * (moved - X)
            kernels = problem.project((problem.pull(S + X - U) - slope / t) / ones)
            embedded = problem.residuals(kernels) + S
            apart = embedded - S - X
            U = U + apart
            if before is not None:  # neither the split nor the residuals may lag far behind the other
                split, change = float(np.linalg.norm(apart)), float(np.linalg.norm(X - before))
                factor = 2.0 if split > 5.0 * change else 0.5 if change > 5.0 * split else 1.0
                t, U = factor * t, U / factor
            before = X
        self.split, self.scaled, self.penalty = kernels, U, t
        if loss.curvature(S[0]) is None:
            self.kernels = kernels
        return [*duals, DualPoint(beta, shares, Z, kernels)]


def solve_omega(
    problem: SimilarityProblem,
    kernels: Array,
    weights: Array,
    target: float,
    start: FixedSolution | None = None,
    rounds: int = 10,
) -> tuple[FixedSolution, Array, float]:
    """Return an SVM's solution, the weights it was solved with, and the objective there; the best of some rounds.

    With one kernel this is a single SVM.  ``norm="max"`` of ``MKLClassifier`` is the same for kernels that are given.
    """
    charge = problem.rho * float(problem.losses(kernels).sum())
    best: tuple[FixedSolution, Array, float] | None = None
    for _ in range(1 if problem.k == 1 else rounds):
        start = problem.svm(kernels, weights, target, start)
        products = problem.products(kernels, start.beta)
        q = np.maximum(problem.quad(products, start.beta), 0.0)
        f = np.tensordot(weights, products, axes=1) + start.intercept
        upper = problem.norm.half_square(weights * np.sqrt(q)) + problem.hinge.total(problem.y, f, problem.c)
        lower = problem.hinge.gain(problem.y, start.beta, problem.c) - problem.norm.conjugate(q)
        if best is None or upper + charge < best[2]:
            best = start, weights, upper + charge
        if relative_gap(upper, lower) <= 10 * target or out_of_time():
            break
        weights = problem.norm.weights(q)
    assert best is not None
    return best


@dataclass
class AscentState:
    """Coefficients, the point that momentum has carried on to, and the kernel and value at the coefficients."""

    beta: Array
    ahead: Array
    momentum: float
    lipschitz: float
    kernel: Array
    value: float
    inner: FixedSolution
    target: float
    finished: bool = False

    @property
    def best(self) -> SimilarityPoint:
        """The best kernel for the coefficients, with its SVM, and the coefficients as the dual point."""
        dual = DualPoint(self.beta, np.ones(1), kernels=self.kernel)
        return SimilarityPoint(self.inner.beta, np.ones(1), kernels=self.kernel, duals=(dual,))


def _best_kernel(problem: SimilarityProblem, beta: Array) -> tuple[Array, float]:
    """``K*`` and ``h`` at coefficients."""
    check_time()
    problem.passes += 1.0
    slope = problem.slope(beta, np.ones(1))
    mean = problem.similarities.mean(axis=0)[None]
    K = problem.project(mean - slope * (problem.n / (2.0 * problem.rho * problem.m)))
    value = float(np.sum(problem.y * beta)) + float(np.sum(slope * K))
    return K, value + problem.rho * float(problem.losses(K).sum())


class IndSVM(SimilaritySolver, registered_as="indsvm"):
    """Accelerated ascent on the coefficients with the kernel in closed form, (3).

    ``sum_i |K - S_i|^2 = m |K - mean S|^2 + const``, so for given coefficients the best kernel is a projection,
    ``K*(beta) = Proj(mean S + beta beta' / (4 r))`` with ``r = rho m / n``, which is (3) of [KTBB10] with a trace, and
    ``h(beta) = 1'a - beta'K*beta / 2 + rho sum L(K* - S_i)`` is concave with the gradient ``y - K* beta``: FISTA with
    backtracking, one decomposition per trial and no SVM but those for the upper bound.
    """

    problem = IndefiniteSVMProblem
    summary = "one kernel of any trace, squared loss"

    def init(self, problem: Any, start: Any, tol: float) -> AscentState:
        """Return the state at the SVM on the projected mean."""
        mean = problem.similarities.mean(axis=0)
        K = problem.project(mean[None])
        target = min(1e-3, max(0.1 * tol, 1e-6))
        inner = problem.svm(K, np.ones(1), target)
        beta = problem.repair(inner.beta if start is None else start.beta)
        kernel, value = _best_kernel(problem, beta)
        top = float(np.abs(np.linalg.eigvalsh(K[0])[-1])) + 1e-12
        inner = problem.svm(kernel, np.ones(1), target, inner)
        return AscentState(beta, beta, 1.0, top, kernel, value, inner, target)

    def step(self, problem: Any, state: AscentState) -> AscentState:
        """One step of FISTA, begun again where the momentum leads downhill."""
        ahead, momentum = state.ahead, state.momentum
        while True:
            kernel, here = state.kernel, state.value
            if ahead is not state.beta:
                kernel, here = _best_kernel(problem, ahead)
            gradient = problem.y - kernel[0] @ ahead
            lipschitz = 0.7 * state.lipschitz
            while True:
                beta = problem.repair(ahead + gradient / lipschitz)
                moved = beta - ahead
                kernel, value = _best_kernel(problem, beta)
                promised = here + float(np.sum(gradient * moved)) - 0.5 * lipschitz * float(np.sum(moved**2))
                if value >= promised - 1e-12 * abs(here) or lipschitz > 1e12 * state.lipschitz:
                    break
                lipschitz *= 2.0
            if value >= state.value or ahead is state.beta:
                break
            ahead, momentum = state.beta, 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        carried = beta + (momentum - 1.0) / following * (beta - state.beta)
        inner = problem.svm(kernel, np.ones(1), state.target, state.inner)
        size = float(np.max(np.abs(beta), initial=1e-300))
        still = float(np.max(np.abs(beta - state.beta))) <= 1e-14 * size
        return AscentState(beta, carried, following, lipschitz, kernel, value, inner, state.target, still)


# Entropic mirror descent on kernels of one trace: Algorithms 1, 2 and 3 of [KTBB10], corrected.
#
# The logarithms ``B`` accumulate the gradients and the kernels are ``tau softmax(B)``.  (Algorithms 1 and 2 as printed
# pair the eigenvalues of K with the eigenvectors of the gradient instead, which converges to nothing:
# ``variant="paper"`` of ``eskl``.)  The step needs no Lipschitz constant: ``eta = .35 sqrt(2 k ln n / (t h^2))``, with
# h^2 an average of the squared half-spreads of the gradients' spectra that soon forgets the first, large ones.  For any
# steps, started from the identity,
#
#     min over t of f(K_t) - f* <= tau (k ln n + 1/2 sum eta^2 h^2) / sum eta
#
# which is Proposition 3.1 and Theorem 3.2 with the half-spread h in place of the Lipschitz constant (``rate``).


#: of the step that the bound asks for: shorter ones do better than the worst case
FACTOR = 0.35


@dataclass
class MirrorState:
    """Where mirror descent is: logarithms, kernels and weights, averages, and what the steps have added up to."""

    logs: Array
    kernels: Array
    weights: Array
    target: float
    iteration: int = 0
    inner: FixedSolution | None = None
    squares: float = 0.0  # sum of squared half-spreads
    steps: float = 0.0  # sum of eta
    spent: float = 0.0  # sum of eta^2 h^2
    averages: tuple[Array, ...] = ()
    partial: PartialDual = field(default_factory=PartialDual)
    best: SimilarityPoint | None = None
    best_ever: SimilarityPoint | None = None
    value: float = np.inf


class MirrorDescent(SimilaritySolver):
    """Base of ``eskl``, ``emkl`` and ``rekl``; they differ in the problem alone.

    Parameters
    ----------
    check_every : int
        Iterations between tight bounds; each costs a few SVMs and decompositions.
    partial_steps : int
        Steps towards the best kernels for given coefficients, a check.
    uniform_start : bool
        Start from the identity, as the propositions do, instead of near the similarities.
    step_size : {"adaptive", "proposition"}
        ``proposition`` is ``sqrt(2 k ln n / t) / h``, h the largest half-spread so far.
    """

    #: share of the identity in the start near the similarities, on which the rate depends
    start_share: ClassVar[float] = 0.05

    def __init__(
        self,
        check_every: int = 10,
        partial_steps: int = 10,
        uniform_start: bool = False,
        step_size: str = "adaptive",
    ) -> None:
        self.check_every, self.partial_steps = check_every, partial_steps
        self.uniform_start, self.step_size = uniform_start, step_size

    def init(self, problem: Any, start: Any, tol: float) -> MirrorState:
        """Return the state after the first SVM."""
        check_choice("step_size", self.step_size, ("adaptive", "proposition"))
        logs = problem.first_logs(self.uniform_start)
        target = min(1e-3, max(0.1 * tol, 1e-6))
        state = MirrorState(logs, problem.from_logs(logs), problem.norm.start(problem.k), target)
        return self.step(problem, state)

    def step(self, problem: Any, state: MirrorState) -> MirrorState:
        """One SVM, one update of gamma, one gradient step; every so often the tight bounds."""
        state.iteration += 1
        kernels, weights = state.kernels, state.weights
        state.inner = problem.svm(kernels, weights, state.target, state.inner)
        beta = state.inner.beta
        state.best = SimilarityPoint(beta, weights, kernels=kernels)
        # (10) in closed form, ``gamma ~ sqrt(q)``: for the gradient, and for the next SVM
        state.weights = problem.norm.weights(problem.quad(problem.products(kernels, beta), beta))
        shares = 1.0 / state.weights
        Z = problem.multipliers(kernels)
        new = beta, shares, Z, kernels
        w = 4.0 / (state.iteration + 3.0)
        old = state.averages or new
        state.averages = tuple((1.0 - w) * a + w * b for a, b in zip(old, new, strict=True))
        G = problem.gradient(Z, beta, shares)
        low, high = problem.extremes(G)
        squares = float(np.sum((0.5 * (high - low)) ** 2))
        room = 2.0 * problem.k * np.log(problem.n)
        adaptive = self.step_size == "adaptive"
        state.squares = (1.0 - w) * state.squares + w * squares if adaptive else max(state.squares, squares)
        share = FACTOR if adaptive else 1.0
        eta = share * np.sqrt(room / (state.iteration * max(state.squares, 1e-300)))
        state.steps += eta
        state.spent += eta**2 * squares
        state.logs = state.logs - eta * G
        state.kernels = problem.from_logs(state.logs)
        if state.iteration > 1 and state.iteration % self.check_every:
            return state
        # bounds at the averages and at the best kernels for them; the objective at those kernels, too
        own = DualPoint(beta, shares, kernels=kernels)
        beta, shares, Z, kernels = state.averages
        tight = state.partial.solve(problem, beta, shares, kernels, self.partial_steps)
        duals = (own, DualPoint(beta, shares, Z, kernels), *tight)
        best = state.best
        value = problem.primal(best.kernels, best.beta, best.weights)[0]
        if state.value < value and state.best_ever:
            best, value = state.best_ever, state.value
        # averages, best responses, and some of the way to those: Omega is smooth where the SVM has one solution, so
        # moving from the best kernels towards the best response goes down (a Frank-Wolfe step); how far is tried
        candidates, response = [kernels], state.partial.kernels
        if response is not None:
            ways = [(1.0 - share) * best.kernels + share * response for share in (0.1, 0.3, 0.6)]
            candidates += [response, *ways]
        for candidate in candidates:
            svm, weights, reached = solve_omega(
                problem, candidate, state.weights, state.target, state.inner, 3
            )
            if reached < value:
                best, value = SimilarityPoint(svm.beta, weights, kernels=candidate), reached
        state.best_ever, state.value = best, value
        state.best = replace(best, duals=duals)
        return state

    def rate(self, problem: SimilarityProblem, state: MirrorState) -> float:
        """Bound on the best objective so far, above the optimum: the corrected Proposition 3.1."""
        n = problem.n
        start = problem.k * (np.log(n) if self.uniform_start else np.log(n / self.start_share))
        return problem.trace * float(start + 0.5 * state.spent) / state.steps


@dataclass
class _PrintedState:
    """Eigenvalues as Algorithm 1 carries them, and the kernel it pairs them with."""

    values: Array
    kernel: Array
    iteration: int = 0
    lipschitz: float = 0.0
    inner: FixedSolution | None = None
    best: SimilarityPoint | None = None


class ESKL(MirrorDescent, registered_as="eskl"):
    """Mirror descent on one kernel; for the squared loss accelerated ascent on the coefficients.

    Parameters
    ----------
    variant : {"corrected", "paper"}
        ``paper`` is Algorithm 1 as printed, which does not converge.
    fast : bool
        Whether the squared loss takes its own way, tens of iterations instead of hundreds.
    check_every, partial_steps, uniform_start, step_size :
        As for ``MirrorDescent``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.solvers import Stop, solve
    >>> S = np.array([[1.0, 0.9, -0.4], [0.9, 1.0, 0.8], [-0.4, 0.8, 1.0]])
    >>> problem = SingleKernelProblem(S, np.array([1.0, 1.0, -1.0]), loss="frobenius")
    >>> solve(problem, ESKL(), Stop(tol=1e-2)).converged
    True
    """

    problem = SingleKernelProblem
    summary = "one kernel for all similarities, by entropic mirror descent"

    def __init__(
        self,
        variant: str = "corrected",
        fast: bool = True,
        check_every: int = 10,
        partial_steps: int = 10,
        uniform_start: bool = False,
        step_size: str = "adaptive",
    ) -> None:
        super().__init__(check_every, partial_steps, uniform_start, step_size)
        self.variant, self.fast = variant, fast

    def init(self, problem: Any, start: Any, tol: float) -> Any:
        """Return the state of the way that the loss and the variant ask for."""
        check_choice("variant", self.variant, ("corrected", "paper"))
        if self.variant == "paper":
            n, tau = problem.n, problem.trace
            return self.step(problem, _PrintedState(np.full(n, tau / n), tau / n * np.eye(n)))
        if self.fast and problem.loss.quadratic:
            return IndSVM().init(problem, start, tol)
        return super().init(problem, start, tol)

    def step(self, problem: Any, state: Any) -> Any:
        """Return the next state."""
        if isinstance(state, AscentState):
            return IndSVM().step(problem, state)
        if not isinstance(state, _PrintedState):
            return super().step(problem, state)
        # Algorithm 1 to the letter, the step that of Proposition 3.1 with the largest gradient so far as constant
        state.iteration += 1
        K, weight = state.kernel[None], np.ones(1)
        state.inner = problem.svm(K, weight, 1e-4, state.inner)
        beta = state.inner.beta
        state.best = SimilarityPoint(beta, weight, kernels=K, duals=(DualPoint(beta, weight, kernels=K),))
        G = problem.gradient(problem.multipliers(K), beta, weight)[0]
        state.lipschitz = max(state.lipschitz, float(np.linalg.norm(G)))
        eta = np.sqrt(2.0 * np.log(problem.n) / state.iteration) / max(state.lipschitz, 1e-300)
        d, V = np.linalg.eigh(G)
        # eigenvalues of K, eigenvectors of G: they do not belong together
        state.values = entropic_vector(np.log(np.maximum(state.values, 1e-300)) - eta * d, problem.trace)
        state.kernel = (V * state.values) @ V.T
        return state


class EMKL(MirrorDescent, registered_as="emkl"):
    """Mirror descent on m kernels, one SVM and m decompositions an iteration; parameters as ``MirrorDescent``."""

    problem = SeparateKernelsProblem
    summary = "a kernel for every similarity, all of them used alike"


class REKL(MirrorDescent, registered_as="rekl"):
    """Mirror descent on eigenvalues: m decompositions in all, then vectors; parameters as ``MirrorDescent``."""

    problem = RestrictedKernelsProblem
    summary = "new eigenvalues for every similarity, eigenvectors kept"
