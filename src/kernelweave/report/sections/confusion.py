"""Which classes are taken for which."""

from __future__ import annotations

from html import escape

import numpy as np

from .._html import percent, table
from .._subject import Subject

__all__ = ["section"]

#: classes up to which the whole matrix is shown
MOST_CLASSES = 20


def section(subject: Subject) -> str:
    """Return the confusion matrix of held-out predictions; nothing for a regression."""
    refits = subject.refits
    if refits.classes is None:
        return ""
    counts = refits.confusion
    names = [str(label) for label in refits.classes]
    totals = counts.sum(axis=1)
    recall = np.divide(np.diag(counts), totals, out=np.zeros_like(totals), where=totals > 0)
    predicted = counts.sum(axis=0)
    precision = np.divide(
        np.diag(counts), predicted, out=np.full_like(predicted, np.nan), where=predicted > 0
    )
    # beyond this many columns nobody reads a matrix: the two shares of each class remain
    shown = range(len(names)) if len(names) <= MOST_CLASSES else range(0)
    head = ["label", *(f"predicted {names[k]}" for k in shown), "samples", "found", "right when predicted"]
    rows = [
        [
            name,
            *((counts[i, k], _count(counts[i, k])) for k in shown),
            round(totals[i]),
            (recall[i], percent(recall[i])),
            (precision[i], percent(precision[i])),
        ]
        for i, name in enumerate(names)
    ]
    rounds = "" if refits.rounds == 1 else f", the mean of {refits.rounds} rounds"
    text = (
        f"Samples by label and held-out prediction{rounds}: the share on the diagonal is the accuracy above, the mean "
        "of the column “found” the balanced accuracy."
    )
    return f'<h3 id="confusion">What is taken for what</h3><p>{escape(text)}</p>' + table(
        head, rows, "Confusion matrix of held-out predictions"
    )


def _count(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"
