"""What a solver is: ``init``, ``step``, ``point``.  The loop, the stopping and the judging are not its business."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._components import Component, Registry
from ..losses import Loss
from ..norms import Norm
from ..problems import MKLProblem, Point
from ._svrg_forms import has_bounded_steps, has_simple_derivative

__all__ = ["REQUIREMENTS", "Solver", "fitting_solvers", "make_solver", "registry"]

#: what a solver may need of a loss and a norm: the test, and how to say it
REQUIREMENTS: dict[str, tuple[Callable[[Loss, Norm], bool], str]] = {
    "simplex": (lambda loss, norm: norm.simplex, "norm='l1'"),
    "convex weights": (
        lambda loss, norm: norm.convex_in_weights,
        "a norm that is convex in the weights (l1, lp, entropy)",
    ),
    "projection": (
        lambda loss, norm: norm.convex_in_weights and type(norm).project is not Norm.project,
        "a norm whose weights can be projected (l1, lp)",
    ),
    "analytic weights": (
        lambda loss, norm: norm.analytic,
        "a norm with closed-form weights (lp with p > 1, max)",
    ),
    "fixed weights": (lambda loss, norm: norm.fixed, "norm='uniform' or fixed weights"),
    "quadratic dual": (
        lambda loss, norm: loss.has_quadratic_dual,
        "a loss whose dual is quadratic without a kink (hinge, squared_hinge, huber_hinge, squared)",
    ),
    "smooth dual": (
        lambda loss, norm: norm.smooth_conjugate or norm.simplex,
        "a norm whose dual is smooth (lp with p > 1, entropy, uniform) or l1, by smoothing it",
    ),
    "saddle form": (
        lambda loss, norm: loss.has_saddle_form,
        "a loss whose dual is linear (hinge, budgeted_hinge)",
    ),
    "prox": (
        lambda loss, norm: type(norm).prox is not Norm.prox and (norm.convex_in_weights or norm.fixed),
        "a norm with a proximal operator (l1, lp, uniform)",
    ),
    "smooth loss": (
        lambda loss, norm: loss.smoothness is not None,
        "a smooth loss (logistic, squared, squared_hinge, huber_hinge)",
    ),
    "simple derivative": (
        lambda loss, norm: has_simple_derivative(loss),
        "a smooth loss whose derivative is compiled (logistic, squared, squared_hinge, huber_hinge)",
    ),
    "joint loss": (
        lambda loss, norm: loss.joint and loss.smoothness is None,
        "a loss with corners that judges several classes together (multiclass_hinge)",
    ),
    "stepwise loss": (
        lambda loss, norm: has_bounded_steps(loss),
        "a loss with a simple, bounded gradient (multiclass_hinge, hinge, huber_hinge, logistic)",
    ),
    "block norm": (
        lambda loss, norm: norm.smooth_on_blocks and 1.0 < getattr(norm, "r", 0.0) <= 2.0,
        "a (2, r) block norm with r > 1 (kernelweave.norms.Block(r), or a number p > 1)",
    ),
    "elastic norm": (
        lambda loss, norm: hasattr(norm, "alpha"),
        "kernelweave.norms.Elastic(alpha, r), the norm with an l1 term",
    ),
    "sparse dual": (
        lambda loss, norm: (loss.joint and loss.smoothness is None) or _leaves_samples_out(loss),
        "a loss that leaves samples without coefficients (hinge, multiclass_hinge, squared_hinge, huber_hinge, "
        "epsilon_insensitive)",
    ),
    "closed-form or fixed weights": (
        lambda loss, norm: norm.fixed or (norm.analytic and norm.convex_in_weights),
        "a norm with closed-form weights (lp with p > 1) or fixed ones (uniform)",
    ),
    "smooth norm": (
        lambda loss, norm: norm.smooth_on_blocks,
        "a norm with a gradient (lp with p > 1, uniform)",
    ),
}


def _leaves_samples_out(loss: Loss) -> bool:
    """Whether zero is a corner of the dual, sample by sample: an end of its bounds, or a kink."""
    quadratic = loss.quadratic_dual(np.ones(1))
    if quadratic is None or type(loss).dual_budget is not Loss.dual_budget:
        return False
    return quadratic.kink > 0.0 or bool(quadratic.lower[0] == 0.0)


class Solver(Component):
    """An iterative method for an ``MKLProblem``.

    A subclass declares ``needs`` (keys of ``REQUIREMENTS``) and defines

    - ``init(problem, start, tol)``: return the state, a small dataclass of its own; ``start`` is a Point or None and
      ``tol`` the relative gap that will be asked for, by which inner precision can be chosen;
    - ``step(problem, state)``: return the next state;
    - ``point(state)``: return the point to be judged.

    A state with a true ``finished`` attribute tells the loop that nothing more can be gained.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    #: iterations when the caller does not say
    default_max_iter: ClassVar[int] = 1000
    #: idle iterations in a row, which close next to nothing of the gap, after which the solver gives up; None: never
    most_idle: ClassVar[int | None] = None
    #: whether it works on the mixed kernel, a matrix of n x n; if not, explicit features are all the memory it needs
    mixes: ClassVar[bool] = True
    #: whether it learns an intercept; if not, ``fit_intercept=False`` is the only way to use it
    intercepts: ClassVar[bool] = True
    #: whether a start is used; the online methods of the papers begin at zero
    takes_start: ClassVar[bool] = True
    #: whether the last point is returned, and not the best: only for methods whose last iterate is under study
    keeps_last: bool = False
    #: one line for tables
    summary: ClassVar[str] = ""

    def __init_subclass__(cls, registered_as: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if registered_as is not None:
            cls.registered_as = registered_as
            registry.add(registered_as, cls)

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> Any:
        """Return the first state."""
        raise NotImplementedError

    def step(self, problem: MKLProblem, state: Any) -> Any:
        """Return the next state."""
        raise NotImplementedError

    def point(self, state: Any) -> Point:
        """Return the point that the state stands for."""
        raise NotImplementedError

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

    def unmet(self, loss: Loss, norm: Norm) -> list[str]:
        """Return what this solver needs and the combination does not have."""
        return [REQUIREMENTS[need][1] for need in self.needs if not REQUIREMENTS[need][0](loss, norm)]


registry: Registry[Solver] = Registry("solver", "kernelweave.solvers")


def fitting_solvers(loss: Loss, norm: Norm, fit_intercept: bool = False) -> list[str]:
    """Names of the solvers that serve a loss and a norm, and an intercept where one is wanted."""
    return [
        name
        for name in registry
        if not registry[name]().unmet(loss, norm) and (registry[name].intercepts or not fit_intercept)
    ]


def _other_reading(loss: Loss) -> str:
    """Way out for solvers that know no softmax."""
    if loss.joint and loss.smoothness is not None:
        return (
            ". With multi_class='shared' logistic losses are added up, each class against the rest: more solvers "
            "serve that"
        )
    return ""


def make_solver(solver: Any, loss: Loss, norm: Norm, fit_intercept: bool = False) -> Solver:
    """Return a solver from a name or an instance, or say why it does not fit and which would."""
    made: Solver = registry.make(solver, Solver)  # type: ignore[type-abstract]
    unmet = made.unmet(loss, norm)
    if unmet:
        fitting = ", ".join(repr(name) for name in fitting_solvers(loss, norm, fit_intercept))
        raise ValueError(
            f"solver {made.registered_as!r} needs {' and '.join(unmet)}; it does not fit loss={loss!r} with "
            f"norm={norm.label!r}. Solvers that fit: {fitting}{_other_reading(loss)}"
        )
    made.check_intercept(fit_intercept)
    return made
