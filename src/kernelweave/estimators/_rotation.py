"""Many targets as few: under the squared loss a table of targets can be rotated, and its rank is at most n."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..problems import Certificate, MKLProblem, Point, with_certain_bounds
from ._tasks import Task
from ._types import Array

__all__ = ["Rotated", "rotated"]


@dataclass(frozen=True)
class Rotated:
    """A task whose targets ``Y`` were replaced by ``F = Y Q``, Q with orthonormal columns and ``F F' = Y Y'``.

    Objective, weights and quadratic forms are the same; coefficients and intercepts turn with the targets.
    """

    task: Task
    axes: Array

    def back(
        self, beta: Array, weights: Array, proved: Certificate, problem: MKLProblem
    ) -> tuple[Array, Certificate]:
        """Return the coefficients for the targets themselves, and what ``problem`` proves of them.

        ``proved`` is the certificate of fewer columns: the coefficients of its lower bound are taken over.
        """
        dual = proved.dual_point
        turned, turned_dual = beta @ self.axes.T, dual @ self.axes.T
        point = Point(
            turned,
            weights,
            _quad(problem, turned),
            problem.bank.mix_product(weights, turned),
            turned_dual,
            _quad(problem, problem.repair(turned_dual)),
            cuts=None if proved.cuts is None else proved.cuts @ self.axes.T,
        )
        return turned, with_certain_bounds(problem, point, problem.certificate(point))


def _quad(problem: MKLProblem, beta: Array) -> Array:
    """Quadratic forms of more columns than rows: those of a square factor of their Gram matrix."""
    triangle: Array = np.asarray(np.linalg.qr(beta.T, mode="r"))
    return problem.bank.quad(triangle.T)


def rotated(task: Task) -> Rotated | None:
    """Return the task with n columns of targets, None where that gains nothing or changes the problem."""
    if task.y.ndim == 1 or not task.loss.least_squares or task.y.shape[1] <= task.y.shape[0]:
        return None
    axes, triangle = np.linalg.qr(task.y.T)
    start = task.start
    if start is not None:
        start = Point(start.beta @ axes, start.weights)
    return Rotated(replace(task, y=np.ascontiguousarray(triangle.T), start=start), axes)
