"""What a solver hands over, and what can be proved of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..norms import Norm

Array = NDArray[np.float64]

__all__ = ["TINY", "Certificate", "Point", "joined", "relative_gap", "scope_of"]

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
    scope : str
        Weights and functions that ``dual`` is a bound for, in words: ``scope_of`` the problem.
    problems : int
        Number of problems whose objectives, and bounds, are added up here.
    """

    primal: float
    dual: float
    dual_point: Array
    intercept: Any = 0.0
    tiny: float = TINY
    margin: float = 1.0
    cuts: Array | None = None
    scope: str = ""
    problems: int = 1

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

    @property
    def percent(self) -> str:
        """Relative gap in percent, in two digits that are never less than it is; a millionth at least, for rounding."""
        return f"{_rounded(100.0 * max(self.relative_gap, 1e-8), 2, ROUND_CEILING):.2g}"

    def __str__(self) -> str:
        """Say what is proved: the one place where this sentence is written."""
        several = self.problems > 1
        value, it, those = "the objective at this C is", "it", "this problem"
        if several:
            value = f"the objectives of {self.problems} problems, each at its C, add up to"
            it, those = "the sum", "these problems"
        if not np.isfinite(self.relative_gap):
            return (
                f"{value} {self.primal:.6g}, and nothing is proved about it: there is no finite lower bound"
            )
        scope = self.scope or "no other solution of the same problem"
        bound = f"{_rounded(self.dual, 6, ROUND_FLOOR):.6g}"
        return (
            f"{value} {self.primal:.6g}, and {scope} can bring {it} below {bound}: the fit is proved to be within "
            f"{self.percent} % of the optimum of {those}"
        )

    def __repr__(self) -> str:
        return f"Certificate: {self}"


def scope_of(norm: Norm, m: int, columns: int = 1, completed: bool = False, given: Sequence[str] = ()) -> str:
    """Say which weights and functions the lower bound of a problem is for, as it is read before "can bring it below".

    Parameters
    ----------
    norm : Norm
        Of the problem: it says which weights it allows.
    m : int
        Number of kernels.
    columns : int
        Functions with the same weights: classes or targets that are learnt together.
    completed : bool
        Whether the kernels were completed for samples that lack a view.
    given : sequence of str
        What else is taken as given, beginning with "with": the samples that a method has chosen, for example.
    """
    kernels = "these kernels, as completed for samples that lack a view," if completed else "these kernels"
    functions = "no function" if columns == 1 else f"no {columns} functions with the same weights"
    held = 0 if norm.fixed else m - norm.learnt(m).size
    conditions, of = list(given), ""
    if norm.fixed:
        conditions.append("with these weights")
    elif held:
        conditions.append(f"with the given weights of {held} of {m} kernels")
        of = " for the others"
    weights = f"no {norm.allowed_weights}{of} and " if norm.allowed_weights else ""
    return "".join(f"{condition}, " for condition in conditions) + f"{weights}{functions} on {kernels}"


def joined(certificates: Sequence[Certificate]) -> Certificate:
    """Return one certificate of independent problems: their objectives add up, and so do their bounds."""
    counts = Counter(one.scope for one in certificates)
    scopes = [
        f"in {'each' if len(counts) == 1 else count} of them {scope}"
        for scope, count in counts.items()
        if scope
    ]
    return Certificate(
        primal=sum(one.primal for one in certificates),
        dual=sum(one.dual for one in certificates),
        dual_point=np.stack([one.dual_point for one in certificates], axis=1),
        intercept=np.array([one.intercept for one in certificates]),
        margin=min(one.margin for one in certificates),
        scope="; ".join(scopes) if len(scopes) == len(counts) else "",
        problems=len(certificates),
    )


def _rounded(value: float, digits: int, rounding: str) -> float:
    """Return a number with so many digits, rounded to the side on which it claims less.

    What the last bits of a double say does not count: 1.9 stays 1.9.
    """
    slack = 1e-14 * abs(value) * (1.0 if rounding == ROUND_FLOOR else -1.0)
    return float(Context(prec=digits, rounding=rounding).create_decimal_from_float(float(value) + slack))
