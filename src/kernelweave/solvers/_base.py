"""The contract of a solver, ``init``, ``step``, ``point``; what it may need of a loss and a norm; which one to take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import losses, norms
from .._components import Component, Registry
from .._typing import Array, Index
from ..banks import Bank
from ..banks.decide import KNOWN, Abilities, Asked, decide
from ..banks.facts import facts_of_bank
from ..losses import Loss
from ..norms import Norm
from ..problems import FixedSolution, MKLProblem, Point


class Derivative(NamedTuple):
    """``-l'(f)`` of every sample for compiled code; see ``_numerics.svrg`` and ``_numerics.online`` for the kinds."""

    kind: int
    target: Array
    width: float
    low: Array
    high: Array


def derivative_of(loss: Loss, y: Array) -> Derivative:
    """Read the derivative off the loss: maximising the dual of one sample over b gives ``b = -l'(f)``."""
    low, high = (columns_of(bound) for bound in loss.bounds(y))
    if loss.joint:
        from .._numerics.online import MULTICLASS

        return Derivative(MULTICLASS, np.zeros_like(low), 1.0, low, high)
    from .._numerics.svrg import CLIPPED, SIGMOID

    if loss.sigmoid:
        return Derivative(SIGMOID, np.zeros_like(low), 1.0, low, high)
    quadratic = loss.quadratic_dual(y)
    assert quadratic is not None
    # a corner is a line of next to no width
    width = 1e-12 if quadratic.kink == 0.0 and quadratic.ridge == 0.0 else float(quadratic.ridge)
    return Derivative(CLIPPED, columns_of(quadratic.linear), width, low, high)


def has_simple_derivative(loss: Loss) -> bool:
    """Whether the loss is smooth with a sigmoid, or the clipped line of a strongly concave quadratic dual."""
    if loss.smoothness is None:
        return False
    if loss.sigmoid:
        return True
    quadratic = loss.quadratic_dual(np.ones(1))
    return quadratic is not None and quadratic.kink == 0.0 and quadratic.ridge > 0.0


def is_smooth(loss: Loss) -> bool:
    """Whether a loss has a gradient everywhere."""
    return loss.smoothness is not None or loss.has_curvature


def has_bounded_steps(loss: Loss) -> bool:
    """Whether online steps serve: a sum over samples of a loss whose gradients are simple and bounded."""
    if loss.joint:
        return loss.smoothness is None
    corner = loss.has_saddle_form and type(loss).total is Loss.total
    return (corner or has_simple_derivative(loss)) and bool(np.all(np.isfinite(loss.bounds(np.ones(1)))))


def columns_of(values: Any) -> Array:
    """``(n,)`` as one column; contiguous."""
    values = np.ascontiguousarray(values, dtype=float)
    return values[:, None] if values.ndim == 1 else values


def block_sums(values: Array, starts: Index) -> Array:
    """Sums of ``(R,)`` values over the blocks that begin at ``starts``; zero for those without features."""
    return np.add.reduceat(np.append(values, 0.0), starts[:-1]) * (np.diff(starts) > 0)


class Requirement(NamedTuple):
    """A property of the loss or of the norm; the names that have it come from the registry."""

    of: str  # "loss" or "norm"
    about: str
    test: Callable[[Any], bool]
    also: str = ""  # what has the property and no name

    def __str__(self) -> str:
        """Say what is needed, with the names that have it: ``a smooth loss (logistic, squared)``."""
        registry: Any = losses.registry if self.of == "loss" else norms.registry
        names = [name for name in registry if self.test(registry[name]())]
        others = [self.also] if self.also else []
        if not self.about:
            return " or ".join([f"{self.of}={name!r}" for name in names] + others)
        return f"{self.about} ({', '.join(names + others)})"


def _leaves_samples_out(loss: Loss) -> bool:
    """Whether zero is a corner of the dual, sample by sample: an end of its bounds, or a kink."""
    if loss.joint:
        return loss.smoothness is None
    quadratic = loss.quadratic_dual(np.ones(1))
    if quadratic is None or type(loss).dual_budget is not Loss.dual_budget:
        return False
    return quadratic.kink > 0.0 or bool(quadratic.lower[0] == 0.0)


# fmt: off
REQUIREMENTS = {
    "simplex": Requirement("norm", "", lambda norm: norm.simplex),
    "convex weights": Requirement("norm", "a norm that is convex in the weights", lambda norm: norm.convex_in_weights),
    "projection": Requirement("norm", "a norm whose weights can be projected",
                              lambda norm: norm.convex_in_weights and norm.has_projection),
    "analytic weights": Requirement("norm", "a norm with closed-form weights", lambda norm: norm.analytic),
    "fixed weights": Requirement("norm", "", lambda norm: norm.fixed, "kernelweave.norms.Fixed(weights)"),
    "quadratic dual": Requirement("loss", "a loss whose dual is quadratic without a kink",
                                  lambda loss: loss.has_quadratic_dual),
    "smooth dual": Requirement("norm", "a norm whose dual is smooth, or can be made so",
                               lambda norm: norm.smooth_conjugate or norm.simplex),
    "saddle form": Requirement("loss", "a loss whose dual is linear", lambda loss: loss.has_saddle_form),
    "prox": Requirement("norm", "a norm with a proximal operator",
                        lambda norm: norm.has_prox and (norm.convex_in_weights or norm.fixed)),
    "smooth loss": Requirement("loss", "a smooth loss", is_smooth),
    "summed loss": Requirement("loss", "a smooth loss of one column of decision values",
                               lambda loss: is_smooth(loss) and not loss.joint),
    "simple derivative": Requirement("loss", "a smooth loss whose derivative is compiled", has_simple_derivative),
    "block loss": Requirement("loss", "a smooth loss whose derivative is compiled, or a softmax",
                              lambda loss: loss.smoothness is not None and (loss.joint or has_simple_derivative(loss))),
    "block exponent": Requirement("norm", "a (2, r) block norm with 1 <= r <= 2",
                                  lambda norm: norm.r is not None and 1.0 <= norm.r <= 2.0 and norm.l1_term is None,
                                  "a number p >= 1"),
    "block step": Requirement("norm", "a norm with an exact step on one block", lambda norm: norm.has_block_step,
                              "a number p >= 1, kernelweave.norms.Grouped(outer, inner) with outer > 1"),
    "joint loss": Requirement("loss", "a loss with corners that judges several classes together",
                              lambda loss: loss.joint and loss.smoothness is None),
    "stepwise loss": Requirement("loss", "a loss with a simple, bounded gradient", has_bounded_steps),
    "block norm": Requirement("norm", "a (2, r) block norm with r > 1",
                              lambda norm: norm.smooth_on_blocks and norm.r is not None and 1.0 < norm.r <= 2.0,
                              "kernelweave.norms.Block(r), a number p > 1"),
    "elastic norm": Requirement("norm", "a norm with an l1 term", lambda norm: norm.l1_term is not None,
                                "kernelweave.norms.Elastic(alpha, r)"),
    "choice of subsets": Requirement("norm", "", lambda norm: norm.combinatorial),
    "sparse dual": Requirement("loss", "a loss that leaves samples without coefficients", _leaves_samples_out),
    "convex or fixed weights": Requirement("norm", "a norm that is convex in the weights, or fixed ones",
                                           lambda norm: norm.fixed or norm.convex_in_weights),
    "smooth norm": Requirement("norm", "a norm with a gradient", lambda norm: norm.smooth_on_blocks),
}
# fmt: on


#: largest factor between the sizes of kernels that equal weights are fair to
ALIKE = 1e3


def begin(problem: MKLProblem, start: Point | None) -> tuple[NDArray[np.float64], FixedSolution | None]:
    """First weights, and an inner solution to start from where a point is given.

    Without one the weights are equal, but for kernels of very different sizes those of blocks that make equal decision
    values: kernels of raw data differ by powers of ten, and a mixture that is all but one kernel tells nothing of the
    others.  A function of norm t in the space of a kernel with mean diagonal s has values of the size ``t sqrt(s)``.
    """
    norm = problem.norm
    if start is not None:
        # the inner solver of a joint loss moves coefficients into the dual set itself, at less than a projection's cost
        beta = start.beta if problem.loss.joint else problem.repair(start.beta)
        inner = FixedSolution(beta, np.zeros_like(beta), 0.0, np.inf, -np.inf, 0)
        return norm.scaled(start.weights), inner
    equal = norm.start(problem.m)
    if norm.fixed or not (norm.convex_in_weights or norm.analytic):
        return equal, None
    sizes = problem.bank.mean_diagonals()
    there = sizes > 0
    if not np.any(there) or np.max(sizes[there]) <= ALIKE * np.min(sizes[there]):
        return equal, None
    if not norm.convex_in_weights:  # the maximum norm: weights follow the quadratic forms
        return norm.weights(sizes), None
    blocks = np.where(there, np.sqrt(np.min(sizes[there]) / np.where(there, sizes, 1.0)), 0.0)
    return norm.weights_of_blocks(blocks), None


def inner_target(gap: float, tol: float, share: float = 0.1) -> float:
    """Relative gap for the next inner solve: a share of what is left, never finer than the goal needs."""
    return float(min(1e-2, max(share * gap, share * tol)))


registry: Registry[Solver] = Registry("solver", "kernelweave.solvers")


class Solver(Component):
    """An iterative method for an ``MKLProblem``.

    A subclass declares ``needs`` (keys of ``REQUIREMENTS``) and defines

    - ``init(problem, start, tol)``: return the state, a small dataclass of its own; ``start`` is a Point or None and
      ``tol`` the relative gap that will be asked for, by which inner precision can be chosen;
    - ``step(problem, state)``: return the next state;
    - ``point(state)``: return the point to be evaluated; by default ``state.oracle.point``.

    A state with a true ``finished`` attribute tells the loop that nothing more can be gained.
    """

    components = registry
    needs: ClassVar[tuple[str, ...]] = ()
    #: iterations when the caller does not say
    default_max_iter: ClassVar[int] = 1000
    #: idle iterations in a row, which close next to nothing of the gap, after which the solver gives up; None: never
    most_idle: ClassVar[int | None] = None
    #: whether it works on the mixed kernel, a matrix of n x n; if not, explicit features are all the memory it needs
    mixes: ClassVar[bool] = True
    #: whether it learns an intercept; if not, ``fit_intercept=False`` is the only way to use it
    intercepts: ClassVar[bool] = True
    #: whether the last point is returned, and not the best: only for methods whose last iterate is under study
    keeps_last: bool = False
    #: one line for tables
    summary: ClassVar[str] = ""

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> Any:
        """Return the first state."""
        raise NotImplementedError

    def step(self, problem: MKLProblem, state: Any) -> Any:
        """Return the next state."""
        raise NotImplementedError

    def point(self, state: Any) -> Point:
        """Return the point that the state stands for: by default that of its ``oracle``."""
        point: Point = state.oracle.point
        return point

    def finish(self, problem: MKLProblem, best: Point) -> Point | None:
        """Return a better point from the best one found, if there is a cheap way; asked once, after the loop."""
        return None

    def check_intercept(self, fit_intercept: bool) -> None:
        """Raise where an intercept is asked of a solver without one."""
        if fit_intercept and not self.intercepts:
            raise ValueError(
                f"solver {self.registered_as!r} has no intercept: use fit_intercept=False, or another solver "
                "(solver='auto')"
            )

    @classmethod
    def serves(cls, loss: Loss, norm: Norm) -> bool:
        """Return whether the combination has all that this solver needs."""
        needs = (REQUIREMENTS[need] for need in cls.needs)
        return all(need.test(loss if need.of == "loss" else norm) for need in needs)


def fitting_solvers(loss: Loss, norm: Norm, fit_intercept: bool = False) -> list[str]:
    """Names of the solvers that serve a loss and a norm, and an intercept where one is wanted."""
    return [
        name
        for name in registry
        if registry[name].serves(loss, norm) and (registry[name].intercepts or not fit_intercept)
    ]


def make_solver(solver: Any, loss: Loss, norm: Norm, fit_intercept: bool = False) -> Solver:
    """Return a solver from a name or an instance, or say why it does not fit and which would."""
    made: Solver = registry.make(solver, Solver)  # type: ignore[type-abstract]
    needs = (REQUIREMENTS[need] for need in made.needs)
    unmet = [str(need) for need in needs if not need.test(loss if need.of == "loss" else norm)]
    if unmet:
        fitting = ", ".join(repr(name) for name in fitting_solvers(loss, norm, fit_intercept))
        message = (
            f"solver {made.registered_as!r} needs {' and '.join(unmet)}; it does not fit loss={loss!r} with "
            f"norm={norm.label!r}. Solvers that fit: {fitting}"
        )
        if loss.joint and loss.smoothness is not None:  # the other loss for several classes
            message += (
                ". With multi_class='shared' logistic losses are added up, each class against the rest: more solvers "
                "serve that"
            )
        raise ValueError(message)
    made.check_intercept(fit_intercept)
    return made


def abilities(loss: Loss, norm: Norm) -> Abilities:
    """Return what a loss and a norm let solvers do: what the rules that choose one have to know of both."""
    return Abilities(
        frozenset(name for name in KNOWN if registry[name].serves(loss, norm)),
        loss.smoothness is not None and not (loss.joint or loss.coupled), loss.sigmoid,
        not (loss.has_curvature or loss.ridge or loss.joint), norm.analytic, loss.coupled,
        f"loss={loss!r} with norm={norm.label!r}",
    )  # fmt: skip


def choose_solver(loss: Loss, norm: Norm, bank: Bank) -> Solver:
    """Return the solver that ``solver="auto"`` stands for on a bank that is there: the first rule that holds."""
    chosen = decide(facts_of_bank(bank, abilities(loss, norm)), Asked(kept=bank.decision))
    return registry[chosen.solver]()
