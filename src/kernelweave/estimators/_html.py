"""What a notebook shows of a fitted estimator, below scikit-learn's diagram: the certificate and the weights."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

from .._components import ShownInNotebooks

__all__ = ["FitSummary"]

TOP = 8
#: colours that can be read on the light and the dark background of a notebook
LOOKS = "font-size:90%;margin:.5em 0 0 .25em"
BAR = "display:inline-block;height:.7em;vertical-align:middle;background:#4a7fb0"


class FitSummary(ShownInNotebooks):
    """Adds a summary of the fit to the diagram of an estimator with weights and a certificate."""

    def _html_repr(self) -> str:
        return str(estimator_html_repr(self)) + fit_summary(self)


def fit_summary(estimator: Any) -> str:
    """Return HTML about a fit, nothing where there is none yet."""
    if not hasattr(estimator, "certificate_") or not hasattr(estimator, "weights_"):
        return ""
    from .fitted import weight_origin  # not needed before somebody looks

    weights = np.atleast_2d(estimator.weights_).mean(axis=0)
    order = np.argsort(-weights, kind="stable")
    used = int(np.count_nonzero(weights))
    largest = float(weights[order[0]])
    shown = order[: min(TOP, used)]
    rows = "".join(_row(str(estimator.kernel_names_[j]), float(weights[j]), largest) for j in shown)
    rest = f"<div>and {used - TOP} others</div>" if used > TOP else ""
    origin = weight_origin(estimator)
    each = ", means over the classes" if np.ndim(estimator.weights_) == 2 else ""
    return (
        f'<div style="{LOOKS}"><div>{escape(repr(estimator.certificate_))}.</div>'
        f"<div>{escape(origin.sentence)}</div><div>{used} of {weights.size} kernels have weight{each}:</div>"
        f"<table>{rows}</table>{rest}</div>"
    )


def _row(name: str, weight: float, largest: float) -> str:
    length = 8.0 * weight / largest if largest > 0 else 0.0
    return (
        f'<tr><td style="text-align:left">{escape(name)}</td><td style="text-align:right">{weight:.3f}</td>'
        f'<td style="text-align:left"><span style="{BAR};width:{length:.2f}em"></span></td></tr>'
    )
