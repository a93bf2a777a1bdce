"""What a solver hands over, and what can be proved of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["TINY", "Certificate", "Point", "relative_gap"]

TINY = float(np.finfo(float).tiny)


def relative_gap(primal: float, dual: float, tiny: float = TINY) -> float:
    """``(P - D) / max(|P|, |D|, tiny)``."""
    return (primal - dual) / max(abs(primal), abs(dual), tiny)


@dataclass(frozen=True)
class Point:
    """Coefficients shared by all kernels, and the weights of the kernels.

    Attributes
    ----------
    beta : array of shape (n,) or (n, k)
        Signed coefficients.
    weights : array of shape (m,)
        Kernel weights, non-negative.
    quad : array of shape (m,), optional
        ``beta' K_j beta``, where the solver has it from the bank already.
    decision : array like beta, optional
        ``sum_j weights_j K_j beta``, likewise.
    dual_beta, dual_quad : arrays, optional
        Other coefficients for the lower bound, where the solver knows better ones than ``beta``.
    blocks : array of shape (m,), optional
        Block norms of a function whose blocks have coefficients of their own; its values are ``decision``, and it is
        what the upper bound is computed from.  ``beta`` and ``weights`` are the point with shared coefficients that it
        can be exchanged for, and all that prediction knows.
    cuts : array of shape (c, n) or (c, n, k), optional
        Coefficients whose cuts prove a lower bound together, where the weights are a choice among subsets.
    cuts_bound : float, optional
        That bound, where the solver has it already.
    """

    beta: Array
    weights: Array
    quad: Array | None = None
    decision: Array | None = None
    dual_beta: Array | None = None
    dual_quad: Array | None = None
    blocks: Array | None = None
    cuts: Array | None = None
    cuts_bound: float | None = None


@dataclass(frozen=True)
class Certificate:
    """An upper and a lower bound of the optimal value, each with the point that attains it.

    Attributes
    ----------
    primal : float
        Objective at the point that is used for prediction.
    dual : float
        Lower bound of the optimum, the dual objective at ``dual_point``.
    dual_point : array of shape (n,) or (n, k)
        Coefficients in the dual set: anyone can recompute ``dual`` from them.
    intercept : float or array
        Best intercept at the primal point (0 without one).
    tiny : float
        What counts as zero: rounding.  Where nothing is to be learnt (a constant target) both bounds are of that size,
        and their ratio would mean nothing.
    margin : float
        Size of the decision values that matter (``Loss.margin``); 1 but for a budgeted loss whose budget binds.
    cuts : array of shape (c, n) or (c, n, k), optional
        Where ``dual`` takes more than one dual point (at most k kernels): coefficients whose cuts, notation (10), have
        no subset below ``dual``.
    """

    primal: float
    dual: float
    dual_point: Array
    intercept: Any = 0.0
    tiny: float = TINY
    margin: float = 1.0
    cuts: Array | None = None

    @property
    def finite(self) -> bool:
        """Whether both bounds are numbers: nothing is proved otherwise."""
        return bool(np.isfinite(self.primal) and np.isfinite(self.dual))

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far from optimal."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap relative to the larger of the two values, and to the margin."""
        return relative_gap(self.primal, self.dual, self.tiny) / self.margin

    def with_dual_of(self, other: Certificate) -> Certificate:
        """Return this primal value with the better of the two dual bounds."""
        if other.dual > self.dual:
            return replace(self, dual=other.dual, dual_point=other.dual_point, cuts=other.cuts)
        return self

    def __repr__(self) -> str:
        return (
            f"Certificate: objective {self.primal:.6g} is proved to be within {100 * max(self.relative_gap, 0):.2g} % "
            f"of the optimum (lower bound {self.dual:.6g})"
        )
