"""Entropic mirror descent on kernels of one trace, done right: Algorithms 1, 2 and 3 of [KTBB10], corrected.

The logarithms ``B`` accumulate the gradients and the kernels are ``tau softmax(B)``.  (Algorithms 1 and 2 as printed
pair the eigenvalues of K with the eigenvectors of the gradient instead, which converges to nothing: ``variant="paper"``
of ``eskl``.)  The step needs no Lipschitz constant: ``eta = .35 sqrt(2 k ln n / (t h^2))``, with h^2 an average
of the squared half-spreads of the gradients' spectra that soon forgets the first, large ones.  For any steps, started
from the identity,

    min over t of f(K_t) - f* <= tau (k ln n + 1/2 sum eta^2 h^2) / sum eta

which is Proposition 3.1 and Theorem 3.2 with the half-spread h in place of the Lipschitz constant; ``rate`` has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...problems import FixedSolution
from ..problems import DualPoint, SimilarityPoint, SimilarityProblem
from ._base import SimilaritySolver
from ._omega import solve_omega
from ._partial import PartialDual

Array = NDArray[np.float64]

__all__ = ["MirrorDescent", "MirrorState"]

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
    champion: SimilarityPoint | None = None
    value: float = np.inf


class MirrorDescent(SimilaritySolver):
    """What ``eskl``, ``emkl`` and ``rekl`` share; they differ in the problem alone.

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
        self.check_every = check_every
        self.partial_steps = partial_steps
        self.uniform_start = uniform_start
        self.step_size = step_size

    def init(self, problem: Any, start: Any, tol: float) -> MirrorState:
        """Return the state after the first SVM."""
        if self.step_size not in ("adaptive", "proposition"):
            raise ValueError(f"step_size must be 'adaptive' or 'proposition', got {self.step_size!r}")
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
        state.weights = problem.better_weights(kernels, beta)  # for the gradient, and for the next SVM
        shares = 1.0 / state.weights
        Z = problem.multipliers(kernels)
        self._average(state, beta, shares, Z, kernels)
        G = problem.gradient(Z, beta, shares)
        self._move(problem, state, G)
        if state.iteration == 1 or state.iteration % self.check_every == 0:
            self._check(problem, state, DualPoint(beta, shares, kernels=kernels))
        return state

    def point(self, state: MirrorState) -> SimilarityPoint:
        """Return the kernels that an SVM was solved with; at a check the best of three."""
        assert state.best is not None
        return state.best

    def rate(self, problem: SimilarityProblem, state: MirrorState) -> float:
        """Bound on the best objective so far, above the optimum: the corrected Proposition 3.1."""
        n = problem.n
        start = problem.k * (np.log(n) if self.uniform_start else np.log(n / self.start_share))
        return problem.trace * float(start + 0.5 * state.spent) / state.steps

    def _average(self, state: MirrorState, *new: Array) -> None:
        w = 4.0 / (state.iteration + 3.0)
        old = state.averages or new
        state.averages = tuple((1.0 - w) * a + w * b for a, b in zip(old, new, strict=True))

    def _move(self, problem: SimilarityProblem, state: MirrorState, G: Array) -> None:
        low, high = problem.extremes(G)
        squares = float(np.sum((0.5 * (high - low)) ** 2))
        room = 2.0 * problem.k * np.log(problem.n)
        if self.step_size == "adaptive":
            w = 4.0 / (state.iteration + 3.0)
            state.squares = (1.0 - w) * state.squares + w * squares
            eta = FACTOR * np.sqrt(room / (state.iteration * max(state.squares, 1e-300)))
        else:
            state.squares = max(state.squares, squares)
            eta = np.sqrt(room / (state.iteration * max(state.squares, 1e-300)))
        state.steps += eta
        state.spent += eta**2 * squares
        state.logs = state.logs - eta * G
        state.kernels = problem.from_logs(state.logs)

    def _check(self, problem: SimilarityProblem, state: MirrorState, own: DualPoint) -> None:
        """Bounds at the averages and at the best kernels for them; the objective at those kernels, too."""
        assert state.best is not None
        beta, shares, Z, kernels = state.averages
        tight = state.partial.solve(problem, beta, shares, kernels, self.partial_steps)
        duals = (own, DualPoint(beta, shares, Z, kernels), *tight)
        value = problem.primal(state.best.kernels, state.best.beta, state.best.weights)[0]
        best, value = (
            (state.champion, state.value) if state.value < value and state.champion else (state.best, value)
        )
        for candidate in self._candidates(best.kernels, kernels, state.partial.kernels):
            inner, weights, reached = solve_omega(
                problem, candidate, state.weights, state.target, state.inner, 3
            )
            if reached < value:
                best, value = SimilarityPoint(inner.beta, weights, kernels=candidate), reached
        state.champion, state.value = best, value
        state.best = replace(best, duals=duals)

    def _candidates(self, best: Array, average: Array, tight: Array | None) -> Iterator[Array]:
        """Yield kernels that may beat the best so far: averages, best responses, and some of the way to those.

        Omega is smooth where the SVM has one solution, so moving from the best kernels towards the best response to
        the coefficients goes down (a Frank-Wolfe step); how far is tried.
        """
        yield average
        if tight is not None:
            yield tight
            for share in (0.1, 0.3, 0.6):
                yield (1.0 - share) * best + share * tight
