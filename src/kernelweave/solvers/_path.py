"""A regularisation path: many values of C on one bank, each fit started from the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._typing import Array
from ..banks import Bank
from ..losses import Loss
from ..norms import Norm
from ..problems import MKLProblem, Point
from ._base import Solver
from ._loop import Solution, Stop, solve


def follow_path(
    bank: Bank,
    loss: Loss,
    norm: Norm,
    solver: Solver,
    y: Array,
    Cs: Sequence[float],
    stop: Stop | Callable[[], Stop],
    *,
    sample_weight: Array | None = None,
    fit_intercept: bool = True,
    callback: Any = None,
    verbose: int = 0,
    known: Mapping[float, Array] | None = None,
) -> Iterator[tuple[float, MKLProblem, Solution]]:
    """Solve for every C in turn, smallest first, and yield each with its problem.

    The weights and coefficients of one C are the start of the next; coefficients at their bound move with it.  ``stop``
    may be asked for every C.  ``known`` has the weights that were found on nearly the same samples, by C: on the next
    fold they are a better start than those of the last C.
    """
    start: Point | None = None
    last: MKLProblem | None = None
    known = {} if known is None else known
    for C in sorted(float(c) for c in Cs):
        problem = MKLProblem(bank, loss, norm, y, C, sample_weight, fit_intercept)
        if start is not None and last is not None:
            beta = _moved(start.beta, last, problem)
            # where no coefficient is at its bound the old solution is the new one, and all is known about it
            start = start if np.array_equal(beta, start.beta) else Point(beta, known.get(C, start.weights))
        elif C in known:
            start = Point(np.zeros(problem.y.shape), known[C])
        own_stop = stop if isinstance(stop, Stop) else stop()
        solution = solve(problem, solver, own_stop, start=start, callback=callback, verbose=verbose)
        start, last = solution.point, problem
        yield C, problem, solution


def _moved(beta: Array, old: MKLProblem, new: MKLProblem) -> Array:
    """Coefficients for a new C: those at their bound follow it, free ones stay (for large C all of them do)."""
    out = beta.copy()
    used = old.c > 0
    if old.loss.joint:  # a row is at its bound where its own class is, and follows as a whole
        own = np.max(beta, axis=1)
        held = used[:, 0] & (own >= (1.0 - 1e-7) * old.c[:, 0])
        out[held] *= new.c[held] / old.c[held]
        return out
    bound = np.zeros(beta.shape, dtype=bool)
    bound[used] = ~old.loss.interior(old.y[used], beta[used] / old.c[used], 1e-7)
    out[bound] *= new.c[bound] / old.c[bound]
    return out
