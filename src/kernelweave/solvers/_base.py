"""What a solver is: ``init``, ``step``, ``point``.  The loop, the stopping and the judging are not its business."""

from __future__ import annotations

from typing import Any, ClassVar

from .._components import Component, Registry
from ..losses import Loss
from ..norms import Norm
from ..problems import MKLProblem, Point
from ._requirements import REQUIREMENTS

__all__ = ["REQUIREMENTS", "Solver", "fitting_solvers", "make_solver", "registry"]

registry: Registry[Solver] = Registry("solver", "kernelweave.solvers")


class Solver(Component):
    """An iterative method for an ``MKLProblem``.

    A subclass declares ``needs`` (keys of ``REQUIREMENTS``) and defines

    - ``init(problem, start, tol)``: return the state, a small dataclass of its own; ``start`` is a Point or None and
      ``tol`` the relative gap that will be asked for, by which inner precision can be chosen;
    - ``step(problem, state)``: return the next state;
    - ``point(state)``: return the point to be judged.

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
        return [str(REQUIREMENTS[need]) for need in self.needs if not REQUIREMENTS[need].met(loss, norm)]

    @classmethod
    def serves(cls, loss: Loss, norm: Norm) -> bool:
        """Return whether the combination has all that this solver needs."""
        return all(REQUIREMENTS[need].met(loss, norm) for need in cls.needs)


def fitting_solvers(loss: Loss, norm: Norm, fit_intercept: bool = False) -> list[str]:
    """Names of the solvers that serve a loss and a norm, and an intercept where one is wanted."""
    return [
        name
        for name in registry
        if registry[name].serves(loss, norm) and (registry[name].intercepts or not fit_intercept)
    ]


def _other_reading(loss: Loss) -> str:
    """Name the other loss for several classes, which more solvers serve."""
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
