"""How far predictions of a regression are from the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...displays.colours import ACCENT, INK, tidy
from .._drawing import WIDTH, drawn
from .._html import figure, table
from .._subject import Subject

__all__ = ["section"]

#: samples listed with the largest errors
WORST = 10
#: points drawn; a page with more is slow, and nobody sees them
MOST_POINTS = 2000


def section(subject: Subject) -> str:
    """Return held-out predictions and residuals of the first round; nothing for classes."""
    refits = subject.refits
    if refits.classify:
        return ""
    y = np.asarray(subject.y, dtype=float)
    if y.ndim != 1:
        return ""
    predicted = refits.ours.predicted[0].astype(float)
    error = y - predicted
    order = np.argsort(-np.abs(error), kind="stable")[:WORST]
    rows = [[subject.names[i], float(y[i]), float(predicted[i]), float(error[i])] for i in order]
    return (
        '<h3 id="residuals">Residuals</h3><p>Held-out predictions of the first round. A band that bends, or widens to '
        "one side, is a sign of what the model has not learnt, or of targets that want a logarithm.</p>"
        + figure(_picture(predicted, error), "Residual (target minus prediction) against prediction.")
        + table(["row", "target", "predicted", "residual"], rows, "The largest residuals")
    )


def _picture(predicted: Any, error: Any) -> str:
    step = max(1, -(-len(error) // MOST_POINTS))

    def draw(ax: Any) -> None:
        ax.axhline(0.0, color=ACCENT, linewidth=1.6)
        ax.plot(predicted[::step], error[::step], "o", color=INK, markersize=4, alpha=0.6)
        ax.set(xlabel="predicted", ylabel="residual")
        tidy(ax, "both")

    what = "Dots: residual of every held-out sample against its prediction"
    return drawn(draw, (WIDTH, 3.8), what, "residuals")
