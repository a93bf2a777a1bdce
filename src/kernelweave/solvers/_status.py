"""Why a fit ended, in a word and in a sentence; the certificate of the final point has the last word."""

from __future__ import annotations

__all__ = ["MESSAGES", "final_status"]

MESSAGES = {
    "converged": "the relative gap reached the tolerance",
    "max_iter": "the iterations allowed were used up",
    "max_seconds": "the time allowed was used up",
    "interrupted": "interrupted from the keyboard; the best point was kept",
    "stopped": "a callback asked to stop",
    "stalled": "the solver could not improve any further",
    "failed": "the solver broke down numerically; the best point before that was kept",
    "non_finite": "the solver produced values that are not finite; the best point before that was kept",
    "imprecise": "the solver's own figures reached the tolerance, the certificate recomputed from the kernels did not",
}


def final_status(status: str, gap: float, tol: float) -> str:
    """Return what may be said of a point with this gap: ``converged`` exactly where it is within the tolerance.

    Parameters
    ----------
    status : str
        Why the solver stopped.
    gap : float
        Relative gap of the certificate; NaN is no gap at all.
    tol : float
    """
    if gap <= tol:
        return "converged"
    return "imprecise" if status == "converged" else status
