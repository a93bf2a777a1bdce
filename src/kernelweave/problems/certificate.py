"""The proof of a fit: points, bounds, gap, and how much of it may be rounding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Array
from ..exceptions import CertificateError, NotFiniteError
from ..norms import Norm

if TYPE_CHECKING:
    from .mkl import MKLProblem


TINY = float(np.finfo(float).tiny)


def relative_gap(primal: float, dual: float, tiny: float = TINY, unit: float = 0.0) -> float:
    """``(P - D) / max(|P|, |D|, tiny)``; relative to ``unit`` where that is positive and less."""
    size = max(abs(primal), abs(dual), tiny)
    return (primal - dual) / (min(size, unit) if unit > 0.0 else size)


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
    strength : str
        Parameter that weighs the loss, by its name.
    unit : float
        What the gap is relative to where that is less than the objective (``Loss.unit``); 0: nothing.
    unit_name : str
        What a gap of ``unit`` is one of: "nats per event".
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
    strength: str = "C"
    unit: float = 0.0
    unit_name: str = ""

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
        """The gap relative to the larger of the two values, or to the unit if that is less, and to the margin."""
        return relative_gap(self.primal, self.dual, self.tiny, self.unit) / self.margin

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
        value, it, those = f"the objective at this {self.strength} is", "it", "this problem"
        if several:
            value = f"the objectives of {self.problems} problems, each at its C, add up to"
            it, those = "the sum", "these problems"
        if not np.isfinite(self.relative_gap):
            return (
                f"{value} {self.primal:.6g}, and nothing is proved about it: there is no finite lower bound"
            )
        scope = self.scope or "no other solution of the same problem"
        bound = f"{_rounded(self.dual, 6, ROUND_FLOOR):.6g}"
        near = f"{self.percent} %"
        if self.unit > 0.0:
            near = f"{_rounded(max(self.gap / self.unit, 1e-8), 2, ROUND_CEILING):.2g} {self.unit_name}"
        return (
            f"{value} {self.primal:.6g}, and {scope} can bring {it} below {bound}: the fit is proved to be within "
            f"{near} of the optimum of {those}"
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
    several = len(counts) > 1
    scopes = [f"in {n if several else 'each'} of them {scope}" for scope, n in counts.items() if scope]
    return Certificate(
        primal=sum(one.primal for one in certificates),
        dual=sum(one.dual for one in certificates),
        dual_point=np.stack([one.dual_point for one in certificates], axis=1),
        intercept=np.array([one.intercept for one in certificates]),
        margin=min(one.margin for one in certificates),
        scope="; ".join(scopes) if len(scopes) == len(counts) else "",
        problems=len(certificates),
        unit=sum(one.unit for one in certificates),
        unit_name=certificates[0].unit_name,
    )


def _rounded(value: float, digits: int, rounding: str) -> float:
    """Return a number with so many digits, rounded to the side on which it claims less; 1.9 stays 1.9."""
    slack = 1e-14 * abs(value) * (1.0 if rounding == ROUND_FLOOR else -1.0)
    return float(Context(prec=digits, rounding=rounding).create_decimal_from_float(float(value) + slack))


#: relative error of a sum over samples that is put down to double precision: some hundreds of units in the last place
ROUNDING = 1e-13
#: what rounding does to such a sum, relative to the root of the sum of the squares of its terms: errors of entries and
#: of partial sums are as often up as down.  Forms count one by one, of values many are added up, which then differ from
#: what is right by less: with 50 samples the largest error of a value was seen at 0.8 units of 2.2e-16, most at a third
UNIT, UNIT_OF_VALUES = 2.0 * float(np.finfo(float).eps), 0.5 * float(np.finfo(float).eps)
#: doubts below this share of the objective count as zero; crossings below it are not worth reading the diagonals
NEGLIGIBLE = 1e-9


def forms_doubt(lengths: Array, beta: Array) -> Array:
    """Bound of what rounding may have done to the forms ``b' K_j b`` of every column b of beta: ``(m,)`` or ``(m, k)``.

    ``lengths`` are the roots ``(m, n)`` of the kernels' diagonals, which bound every entry (Cauchy and Schwarz).
    """
    return np.asarray(UNIT * (lengths**2 @ beta**2))


def values_doubt(lengths: Array, beta: Array, weights: Array) -> Array:
    """Bound of what rounding may have done to the values ``sum_j d_j K_j b``, of the shape of beta.

    ``weights`` are ``(m,)``, or ``(m, k)`` where every column has its own.
    """
    reach = np.sqrt(lengths**2 @ beta**2)
    each = weights if weights.ndim == reach.ndim else weights[:, None]
    return np.asarray(UNIT_OF_VALUES * (lengths.T @ (each * reach)))


def with_certain_bounds(problem: MKLProblem, point: Point, certificate: Certificate) -> Certificate:
    """Return a certificate whose bounds hold in spite of rounding.

    Coefficients that cancel in huge kernels leave forms and decision values of which few digits are right, or none:
    what that may have done to the two bounds is charged to them, where it is not negligible.  Sums of squares of
    features that are streamed or on a cluster stay as they are: their rounding is relative to themselves.

    Parameters
    ----------
    problem : MKLProblem
    point : Point
        With its forms and decision values, and with those of the dual point where that is another.
    certificate : Certificate
        Of the point.
    """
    if problem.bank.streams or problem.bank.cluster_cost is not None:
        return certificate
    negligible = NEGLIGIBLE * max(abs(certificate.primal), abs(certificate.dual), certificate.tiny)
    lengths = problem.bank.rounding_lengths()
    loss, y, c = problem.loss, problem.y, problem.c
    assert point.quad is not None
    assert point.decision is not None
    f = point.decision + certificate.intercept
    blur = values_doubt(lengths, point.beta, point.weights)
    # the sum of value and intercept is rounded as well
    blur += 2.0 * UNIT_OF_VALUES * (np.abs(point.decision) + np.abs(certificate.intercept))
    # the worst that may have happened: every value moved to where its loss rises
    moved = loss.total(y, f + blur * np.sign(loss.total_gradient(y, f, c)), c) - loss.total(y, f, c)
    forms = forms_doubt(lengths, point.beta).reshape(problem.m, -1).sum(axis=1)
    above = moved + _widened(problem, point.weights, point.quad, forms)
    below = _dual_doubt(problem, point, certificate, lengths, negligible)
    if below > negligible and problem.fit_intercept and not problem.bank.by_products:
        # a constant kernel adds nothing to a form whose coefficients sum to zero; samples that are as long as the first
        # and at no angle to it are the same
        diagonals = np.maximum(problem.bank.diag(), 0.0)
        first = problem.bank.block(np.array([0]), np.arange(problem.n), np.arange(problem.m))[:, 0]
        constant = np.all((diagonals == diagonals[:, :1]) & (first == diagonals[:, :1]), axis=1)
        if np.any(constant):
            lengths = np.where(constant[:, None], 0.0, lengths)
            below = _dual_doubt(problem, point, certificate, lengths, negligible)
    if above > negligible:
        certificate = replace(certificate, primal=certificate.primal + above)
    return _lowered(problem, certificate, below) if below > negligible else certificate


def _dual_doubt(
    problem: MKLProblem, point: Point, certificate: Certificate, lengths: Array, negligible: float
) -> float:
    conjugate = problem.norm.conjugate
    none = conjugate(np.zeros(problem.m))

    def parts(beta: Array) -> tuple[float, Array, float]:
        """Doubt of the loss's part, doubts of the forms, and a bound of what these do to the conjugate."""
        forms = forms_doubt(lengths, beta).reshape(problem.m, -1).sum(axis=1)
        # a loss with an offset of its own gains nothing, exactly
        size = (
            float(np.sum(np.abs(beta) * np.maximum(np.abs(problem.y), 1.0)))
            if problem.loss.has_intercept
            else 0.0
        )
        own = UNIT * (size + abs(problem.gain(beta)))
        # weights sum to one, or the conjugate is subadditive
        return own, forms, max(conjugate(forms) - none, 0.5 * float(np.max(forms)))

    if certificate.cuts is not None:
        each = [parts(problem.repair(cut)) for cut in certificate.cuts]
        most = max(own + paid for own, _, paid in each)
        if most <= negligible:
            return 0.0
        # cuts of huge coefficients prove little, and what they prove is not what holds the bound up
        certain = problem.bound_of_cuts(
            certificate.cuts, np.array([own for own, _, _ in each]), np.array([forms for _, forms, _ in each])
        )
        return min(most, max(certificate.dual - certain, 0.0))
    beta = certificate.dual_point
    own, forms, paid = parts(beta)
    if own + paid <= negligible:
        return 0.0
    quad = None
    for known, of in ((point.quad, point.beta), (point.dual_quad, point.dual_beta)):
        if known is not None and of is not None and np.array_equal(of, beta):
            quad = known
    quad = np.maximum(problem.bank.quad(beta) if quad is None else quad, 0.0)
    return own + float(conjugate(quad + forms) - conjugate(quad))


def _lowered(problem: MKLProblem, certificate: Certificate, doubt: float) -> Certificate:
    """Take a doubt off the lower bound, which never falls below what coefficients of zero prove."""
    lower = certificate.dual - doubt
    if lower >= problem.zero_bound:
        return replace(certificate, dual=lower)
    zero = np.zeros_like(certificate.dual_point)
    return replace(certificate, dual=problem.zero_bound, dual_point=zero, cuts=None)


def without_crossed_bounds(problem: MKLProblem, point: Point, certificate: Certificate) -> Certificate:
    """Return a certificate whose lower bound is below the objective, or raise where that is beyond rounding.

    Bounds that cross by rounding are taken apart by what rounding may have done.  Beyond that weak duality leaves two
    causes: a conjugate that does not belong to its loss or norm, or kernels that are not positive semidefinite.  Bounds
    that are not finite prove nothing, and raise too.
    """
    if not certificate.finite:
        raise NotFiniteError(
            f"the objective ({certificate.primal:g}) or its lower bound ({certificate.dual:g}) is not finite, so that "
            "nothing is proved of the fit: scale the features and the targets (StandardScaler), use "
            "normalize='trace', or choose a C nearer to 1"
        )
    size = max(abs(certificate.primal), abs(certificate.dual), certificate.tiny)
    if not certificate.dual - certificate.primal > NEGLIGIBLE * size:
        return certificate
    # what double precision alone may have added to the two bounds: products of a kernel with coefficients are sums of
    # terms whose size the diagonals bound (Cauchy and Schwarz), at most sum_i |beta_i| sqrt(K_j,ii) by kernel
    lengths = np.sqrt(np.maximum(problem.bank.diag(), 0.0))
    sizes = (np.abs(b).reshape(problem.n, -1).sum(axis=1) for b in (point.beta, certificate.dual_point))
    reach, other_reach = (lengths @ size for size in sizes)
    blur = ROUNDING * np.einsum("j,ji,j->i", point.weights, lengths, reach)
    quad, f = problem.bank.judged(point.weights, point.beta)
    f = f + certificate.intercept
    blur = blur[:, None] if f.ndim == 2 else blur
    plain = problem.loss.total(problem.y, f, problem.c)
    moved = [abs(problem.loss.total(problem.y, f + sign * blur, problem.c) - plain) for sign in (-1, 1)]
    charged = _widened(problem, point.weights, quad, ROUNDING * reach**2)
    other = problem.bank.quad(certificate.dual_point)
    paid = problem.norm.conjugate(other + ROUNDING * other_reach**2)
    gained = float(np.sum(np.abs(certificate.dual_point) * np.maximum(np.abs(problem.y), 1.0)))
    own = abs(certificate.primal) + abs(certificate.dual) + gained
    doubt = float(max(moved) + charged + paid - problem.norm.conjugate(other) + ROUNDING * own)
    if certificate.dual - certificate.primal <= doubt:
        return _lowered(problem, certificate, doubt)
    raise CertificateError(
        f"the lower bound {certificate.dual:.6g} lies above the objective {certificate.primal:.6g}, beyond rounding: "
        f"value and conjugate of the loss {problem.loss!r} or of the norm {problem.norm!r} do not belong together, or "
        "a kernel is not positive semidefinite. No certificate can be given; check conjugate(u) = max over f of "
        "u f - value(f)"
    )


def _widened(problem: MKLProblem, weights: Array, quad: Array, doubt: Array) -> float:
    """Return what the regulariser gains where every quadratic form is larger by its doubt."""
    quad = np.maximum(quad, 0.0)
    wide, plain = weights * np.sqrt(quad + doubt), weights * np.sqrt(quad)
    return problem.norm.regulariser(wide, weights) - problem.norm.regulariser(plain, weights)
