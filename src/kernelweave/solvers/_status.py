"""Why a fit ended, in a word and in a sentence; the certificate of the final point has the last word."""

from __future__ import annotations

__all__ = ["MESSAGES", "final_status"]

MESSAGES = {
    "converged": "the relative gap reached the tolerance",
    "stationary": "no step of the weights promises a gain worth having, and the fit with them reached the tolerance",
    "max_steps": "the steps allowed were used up before the weights were stationary",
    "max_iter": "the iterations allowed were used up",
    "max_seconds": "the time allowed was used up",
    "interrupted": "interrupted from the keyboard; the best point was kept",
    "stopped": "a callback asked to stop",
    "stalled": "the solver could not improve any further",
    "failed": "the solver broke down numerically; the best point before that was kept",
    "non_finite": "the solver produced values that are not finite; the best point before that was kept",
    "imprecise": "the solver's own figures reached the tolerance, the certificate recomputed from the kernels did not",
}


def final_status(status: str, gap: float, tol: float, chosen: bool = False) -> str:
    """Return what may be said of a point with this gap: ``converged`` exactly where it is within the tolerance.

    Parameters
    ----------
    status : str
        Why the solver stopped.
    gap : float
        Relative gap of the certificate; NaN is no gap at all.
    tol : float
    chosen : bool, default=False
        Whether the weights were chosen by a criterion that is not convex: then the gap is that of the fit with these
        weights, which says nothing of the choice, and the status of the choice is all that may be said of it.
    """
    if gap <= tol:
        return status if chosen else "converged"
    return "imprecise" if status in ("converged", "stationary", "constant", "max_steps") else status
