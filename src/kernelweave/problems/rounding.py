"""How much of a certificate may be rounding, and what is beyond it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..exceptions import CertificateError, NotFiniteError
from .certificate import Array, Certificate, Point

if TYPE_CHECKING:
    from .mkl import MKLProblem

__all__ = [
    "UNIT",
    "forms_doubt",
    "rounding_doubt",
    "values_doubt",
    "with_certain_bounds",
    "without_crossed_bounds",
]

#: relative error of a sum over samples that is put down to double precision: some hundreds of units in the last place
ROUNDING = 1e-13
#: what rounding does to such a sum, relative to the root of the sum of the squares of its terms: errors of entries and
#: of partial sums are as often up as down.  Forms count one by one, of values many are added up, which then differ from
#: what is right by less: with 50 samples the largest error of a value was seen at 0.8 units of 2.2e-16, most at a third
UNIT, UNIT_OF_VALUES = 2.0 * float(np.finfo(float).eps), 0.5 * float(np.finfo(float).eps)
#: doubts below this share of the objective are not told from zero; crossings are not worth the look at the diagonals
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

    Coefficients that cancel in huge kernels leave forms and decision values of which few digits are right, or none.
    What rounding may have taken from the objective is added to it, and what it may have added to the lower bound is
    taken off, where that is not negligible.  Sums of squares of features that are streamed or on a cluster are left as
    they are: their rounding is relative to themselves.

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
    above = _primal_doubt(problem, point, certificate, lengths)
    below = _dual_doubt(problem, point, certificate, lengths, negligible)
    if below > negligible and problem.fit_intercept:
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


def _primal_doubt(problem: MKLProblem, point: Point, certificate: Certificate, lengths: Array) -> float:
    loss, y, c = problem.loss, problem.y, problem.c
    assert point.quad is not None
    assert point.decision is not None
    f = point.decision + certificate.intercept
    blur = values_doubt(lengths, point.beta, point.weights)
    # the sum of value and intercept is rounded as well
    blur += 2.0 * UNIT_OF_VALUES * (np.abs(point.decision) + np.abs(certificate.intercept))
    # the worst that may have happened: every value moved to where its loss rises
    moved = loss.total(y, f + blur * np.sign(loss.gradient(y, f)), c) - loss.total(y, f, c)
    forms = forms_doubt(lengths, point.beta).reshape(problem.m, -1).sum(axis=1)
    return moved + _widened(problem, point.weights, point.quad, forms)


def _dual_doubt(
    problem: MKLProblem, point: Point, certificate: Certificate, lengths: Array, negligible: float
) -> float:
    conjugate = problem.norm.conjugate
    none = conjugate(np.zeros(problem.m))

    def parts(beta: Array) -> tuple[float, Array, float]:
        """Doubt of the loss's part, doubts of the forms, and what these do to the conjugate, without a look at them."""
        forms = forms_doubt(lengths, beta).reshape(problem.m, -1).sum(axis=1)
        size = float(np.sum(np.abs(beta) * np.maximum(np.abs(problem.y), 1.0)))
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
    return replace(
        certificate, dual=problem.zero_bound, dual_point=np.zeros_like(certificate.dual_point), cuts=None
    )


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
    doubt = rounding_doubt(problem, point, certificate)
    if certificate.dual - certificate.primal <= doubt:
        return _lowered(problem, certificate, doubt)
    raise CertificateError(
        f"the lower bound {certificate.dual:.6g} lies above the objective {certificate.primal:.6g}, beyond rounding: "
        f"value and conjugate of the loss {problem.loss!r} or of the norm {problem.norm!r} do not belong together, or "
        "a kernel is not positive semidefinite. No certificate can be given; check conjugate(u) = max over f of "
        "u f - value(f)"
    )


def rounding_doubt(problem: MKLProblem, point: Point, certificate: Certificate) -> float:
    """Bound of what double precision alone may have added to the two bounds.

    Products of a kernel with coefficients are sums of terms whose size the diagonals bound (Cauchy and Schwarz).
    """
    lengths = np.sqrt(np.maximum(problem.bank.diag(), 0.0))
    reach = _reach(lengths, point.beta)
    blur = ROUNDING * np.einsum("j,ji,j->i", point.weights, lengths, reach)
    quad, f = problem.bank.judged(point.weights, point.beta)
    f = f + certificate.intercept
    blur = blur[:, None] if f.ndim == 2 else blur
    moved = [
        abs(problem.loss.total(problem.y, f + sign * blur, problem.c) - _total(problem, f))
        for sign in (-1, 1)
    ]
    charged = _widened(problem, point.weights, quad, ROUNDING * reach**2)
    other = problem.bank.quad(certificate.dual_point)
    paid = problem.norm.conjugate(other + ROUNDING * _reach(lengths, certificate.dual_point) ** 2)
    gained = float(np.sum(np.abs(certificate.dual_point) * np.maximum(np.abs(problem.y), 1.0)))
    own = abs(certificate.primal) + abs(certificate.dual) + gained
    return float(max(moved) + charged + paid - problem.norm.conjugate(other) + ROUNDING * own)


def _reach(lengths: Array, beta: Array) -> Array:
    """``sum_i |beta_i| sqrt(K_j,ii)`` by kernel, the columns added up."""
    size = np.abs(beta) if beta.ndim == 1 else np.sum(np.abs(beta), axis=1)
    return lengths @ size


def _total(problem: MKLProblem, f: Array) -> float:
    return problem.loss.total(problem.y, f, problem.c)


def _widened(problem: MKLProblem, weights: Array, quad: Array, doubt: Array) -> float:
    """What the regulariser gains where every quadratic form is larger by its doubt."""
    quad = np.maximum(quad, 0.0)
    wide, plain = weights * np.sqrt(quad + doubt), weights * np.sqrt(quad)
    return problem.norm.regulariser(wide, weights) - problem.norm.regulariser(plain, weights)
