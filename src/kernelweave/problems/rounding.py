"""How much of a certificate may be rounding, and what is beyond it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..exceptions import CertificateError, NotFiniteError
from .certificate import Array, Certificate, Point

if TYPE_CHECKING:
    from .mkl import MKLProblem

__all__ = ["rounding_doubt", "without_crossed_bounds"]

#: relative error of a sum over samples that is put down to double precision: some hundreds of units in the last place
ROUNDING = 1e-13
#: crossings below this share of the objective are not worth the look at the diagonals
NEGLIGIBLE = 1e-9


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
        lower = certificate.dual - doubt
        if lower >= problem.zero_bound:
            return replace(certificate, dual=lower)
        return replace(certificate, dual=problem.zero_bound, dual_point=np.zeros_like(certificate.dual_point))
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
