"""The convex problems that a fit consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .._estimating import TimeShares, class_columns
from ..banks import Bank
from ..losses import Loss
from ..norms import Norm
from ..problems import MKLProblem, Point
from ..solvers import Solution, follow_path
from ._plan import Plan
from ._types import Array, Codes, Label

__all__ = ["Task", "class_tasks", "path_of"]


@dataclass(frozen=True)
class Task:
    """One convex problem, before it meets a bank.

    Attributes
    ----------
    y : array of shape (n,) or (n, k)
        Targets.
    weight : array of shape (n,)
        Factors of C by sample.
    label : object
        What the problem is called in messages and tables.
    loss, norm, C :
        What is minimised.
    start : Point or None
        Where to begin.
    of : str
        What the label is the name of.
    given : tuple of str
        What was chosen before the problem was posed, in words: its certificate says so.
    """

    y: Array
    weight: Array
    label: Label
    loss: Loss
    norm: Norm
    C: float
    start: Point | None = None
    of: str = "class"
    given: tuple[str, ...] = ()

    def problem(self, bank: Bank, fit_intercept: bool) -> MKLProblem:
        """Return the problem on a bank."""
        return MKLProblem(bank, self.loss, self.norm, self.y, self.C, self.weight, fit_intercept, self.given)


def class_tasks(codes: Codes, weight: Array, classes: Array, each: bool, plan: Plan) -> list[Task]:
    """Tasks of a classification: one where there are two classes or all are learnt together, else one per class."""

    def task(y: Array, label: Label) -> Task:
        return Task(y, weight, label, plan.loss, plan.norm, plan.C)

    if classes.size == 2 and not plan.loss.joint:
        return [task(np.where(codes == 1, 1.0, -1.0), classes[1])]
    columns = class_columns(codes, classes.size)
    if not each:
        return [task(columns, "all")]
    return [task(column, label) for column, label in zip(columns.T.copy(), classes, strict=True)]


def path_of(
    task: Task,
    bank: Bank,
    plan: Plan,
    Cs: Array,
    stops: TimeShares,
    known: Mapping[float, Array] | None = None,
) -> Iterator[tuple[float, MKLProblem, Solution]]:
    """Follow a task over values of C, smallest first; ``known``: weights to begin with, by C."""
    return follow_path(
        bank,
        task.loss,
        task.norm,
        plan.solver_for(task.loss, task.norm, bank),
        task.y,
        list(Cs),
        stops,
        sample_weight=task.weight,
        fit_intercept=plan.fit_intercept,
        callback=plan.callback,
        verbose=plan.verbose,
        known=known,
    )
