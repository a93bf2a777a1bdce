"""ESKL: one kernel from all similarities, problem (4) of [KTBB10]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problems import FixedSolution
from ..problems import DualPoint, SimilarityPoint, SingleKernelProblem
from ..traces import entropic_vector
from ._dual_ascent import AscentState, ascend, begin, point_of
from ._mirror import MirrorDescent

Array = NDArray[np.float64]

__all__ = ["ESKL"]


@dataclass
class _PrintedState:
    """Eigenvalues as Algorithm 1 carries them, and the kernel it pairs them with."""

    values: Array
    kernel: Array
    iteration: int = 0
    lipschitz: float = 0.0
    inner: FixedSolution | None = None
    seen: SimilarityPoint | None = None


class ESKL(MirrorDescent, registered_as="eskl"):
    """Mirror descent on one kernel; for the squared loss accelerated ascent on the coefficients.

    Parameters
    ----------
    variant : {"corrected", "paper"}
        ``paper`` is Algorithm 1 as printed, which does not converge: there to be looked at.
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
        self.variant = variant
        self.fast = fast

    def init(self, problem: Any, start: Any, tol: float) -> Any:
        """Return the state of the way that the loss and the variant ask for."""
        if self.variant not in ("corrected", "paper"):
            raise ValueError(f"variant must be 'corrected' or 'paper', got {self.variant!r}")
        if self.variant == "paper":
            n, tau = problem.n, problem.trace
            return self.step(problem, _PrintedState(np.full(n, tau / n), tau / n * np.eye(n)))
        if self.fast and problem.loss.quadratic:
            return begin(problem, start, tol)
        return super().init(problem, start, tol)

    def step(self, problem: Any, state: Any) -> Any:
        """Return the next state."""
        if isinstance(state, AscentState):
            return ascend(problem, state)
        return _printed(problem, state) if isinstance(state, _PrintedState) else super().step(problem, state)

    def point(self, state: Any) -> SimilarityPoint:
        """Return the point to be judged."""
        if isinstance(state, AscentState):
            return point_of(state)
        if isinstance(state, _PrintedState):
            assert state.seen is not None
            return state.seen
        return super().point(state)


def _printed(problem: SingleKernelProblem, state: _PrintedState) -> _PrintedState:
    """Algorithm 1 to the letter, the step that of Proposition 3.1 with the largest gradient so far as constant."""
    state.iteration += 1
    K, weight = state.kernel[None], np.ones(1)
    state.inner = problem.svm(K, weight, 1e-4, state.inner)
    beta = state.inner.beta
    state.seen = SimilarityPoint(beta, weight, kernels=K, duals=(DualPoint(beta, weight, kernels=K),))
    G = problem.gradient(problem.multipliers(K), beta, weight)[0]
    state.lipschitz = max(state.lipschitz, float(np.linalg.norm(G)))
    eta = np.sqrt(2.0 * np.log(problem.n) / state.iteration) / max(state.lipschitz, 1e-300)
    d, V = np.linalg.eigh(G)
    # eigenvalues of K, eigenvectors of G: they do not belong together
    state.values = entropic_vector(np.log(np.maximum(state.values, 1e-300)) - eta * d, problem.trace)
    state.kernel = (V * state.values) @ V.T
    return state
