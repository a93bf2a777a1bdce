"""How close to optimal: the certificate in words, and the bounds over the fit."""

from __future__ import annotations

from html import escape
from typing import Any

from ...displays import ConvergenceDisplay
from .._drawing import WIDTH, drawn
from .._html import figure
from .._subject import Subject

__all__ = ["section"]


def section(subject: Subject) -> str:
    """Return the certificate; a picture where the fit has a trace."""
    estimator = subject.estimator
    certificate = estimator.certificate_
    proved = str(certificate)
    sentence = (
        f"{proved[:1].upper()}{proved[1:]}. That is a proof about the optimisation, which anyone can recompute from "
        "the coefficients; other norms and other values of C are other problems, and how good the model is on new "
        "data is the question of “How good it is”."
    )
    if hasattr(estimator, "objectives_"):
        sentence += (
            " The method chooses samples as it goes: the proof is for the last choice, not for all of them."
        )
    if estimator.status_ == "stationary":
        sentence += (
            f" The weights themselves were chosen by {estimator.criterion}, which is not a convex problem: they are "
            "known to be stationary, not to be the best."
        )
    rounds = f"{estimator.n_iter_} iteration{'s' if estimator.n_iter_ != 1 else ''}"
    facts = (
        f"The solver {estimator.solver_} took {rounds} and {estimator.n_passes_:.1f} passes over the kernels "
        f"({estimator.status_.replace('_', ' ')})."
    )
    page = f'<h2 id="convergence">How close to optimal</h2><p class="note">{escape(sentence)}</p><p>{escape(facts)}</p>'
    if getattr(estimator, "trace_", None) is None:
        return page
    return page + figure(
        _picture(estimator), "Upper and lower bound of the optimal value as the fit went on."
    )


def _picture(estimator: Any) -> str:
    """The bounds of the optimum over the fit, or the gaps of several problems."""
    several = "problem" in estimator.trace_
    return drawn(
        lambda ax: ConvergenceDisplay.from_estimator(estimator, ax=ax, kind="gap" if several else "bounds"),
        (WIDTH, 3.4), "Curves: the objective falls and its proved lower bound rises until they meet", "convergence",
    )  # fmt: skip
