"""Which views are worth measuring: the model on every subset of them."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...estimators.subsets import SubsetFits
from ...inspection import kernel_views, view_subsets
from ...inspection.subsets import MOST_VIEWS
from ...inspection.views import transformed
from .._html import number, short, table
from .._subject import Subject

__all__ = ["section"]

#: samples up to which every subset of views is tried
MOST_SAMPLES = 3000


def section(subject: Subject) -> str:
    """Return the accuracy of every subset of two to five views."""
    refits = subject.refits
    names = list(dict.fromkeys(str(view) for view in kernel_views(subject.model)))
    few = 2 <= len(names) <= MOST_VIEWS and len(subject.y) <= MOST_SAMPLES
    if not (subject.estimator.fits_subsets and few):
        return ""
    splits = refits.splits[: refits.folds]
    subsets = view_subsets(subject.model, subject.X, subject.y, splits=splits)
    shown = refits.main.shown
    rows = [
        [row.views, int(row.kernels), (row.score, shown(row.score)), (row.sd, number(row.sd)),
         (row.seconds, number(row.seconds))]
        for row in subsets.itertuples()
    ]  # fmt: skip
    head = ["views", "kernels", refits.main.name, "sd over folds", "seconds of a fit"]
    differ = (
        " C is that of the whole fit here, and there is one round of folds: the numbers differ a little from those of "
        "“How good it is”."
    )
    return (
        '<h2 id="subsets">Which views are worth measuring</h2><p>The same model on every subset of its views, on the '
        f"{refits.folds} folds of the first round. A subset that does as well as all views together saves the cost of "
        f"the others; differences well below the spread over folds mean nothing.{differ}</p>"
        + f"<p>{escape(_worth(subject, subsets, names))}</p>"
        + table(head, rows, "Subsets of views, the best first")
    )


def _worth(subject: Subject, subsets: Any, names: list[str]) -> str:
    """Say whether there is a view that the model does as well without, at every C that the scores leave open."""
    shown = subject.refits.main.shown
    scores = dict(zip(subsets["views"], subsets["score"], strict=True))
    whole = scores[", ".join(names)]
    without = np.array([scores[", ".join(other for other in names if other != name)] for name in names])
    least = int(np.argmax(without))
    name, of_least = names[least], float(without[least])
    elsewhere = _at_other_Cs(subject, names)
    also = ""
    if elsewhere:
        others = " and ".join(f"C = {short(C)}" for C, *_ in elsewhere)
        also = f"; the same holds at {others}, which the scores do not tell from this choice"
    if of_least >= whole:
        other = [(C, all_, left) for C, all_, left in elsewhere if left[least] < all_]
        if not other:
            return (
                f"Without {name!r} the model does as well on held-out samples ({shown(of_least)}, and {shown(whole)} "
                f"with all views{also}): the view need not be measured for this purpose, and a refit without it "
                f"(inspection.drop_view) no longer asks for it."
            )
        C, all_, left = other[0]
        return (
            f"Whether {name!r} is needed is not decided: without it the model does as well at C = "
            f"{short(float(subject.estimator.C_))} ({shown(of_least)}; with all views {shown(whole)}), but not at C = "
            f"{short(C)} ({shown(left[least])}; {shown(all_)}), and the cross-validated scores do not tell these "
            "choices apart."
        )
    spare = [(C, all_, left) for C, all_, left in elsewhere if np.any(left >= all_)]
    if spare:
        C, all_, left = spare[0]
        other_name = names[int(np.argmax(left))]
        return (
            f"Whether every view is needed is not decided: at C = {short(float(subject.estimator.C_))} each helps "
            f"({shown(of_least)} without {name!r}, {shown(whole)} with all views), but at C = {short(C)}, which the "
            f"cross-validated scores do not tell from it, the model does as well without {other_name!r} "
            f"({shown(float(left.max()))}; {shown(all_)})."
        )
    return (
        f"Every view helps: {name!r} is the one whose loss costs least ({shown(of_least)} without it, "
        f"{shown(whole)} with all views{also})."
    )


def _at_other_Cs(subject: Subject, names: list[str]) -> list[tuple[float, float, Any]]:
    """Scores with all views and without each, at the ends of the values of C that the scores do not tell apart."""
    ties, own = subject.ties, float(np.mean(subject.estimator.C_))
    if ties is None:
        return []
    norm = ties.choices.loc[ties.choices["tie"] == "chosen", "norm"].iloc[0]
    Cs = ties.choices.loc[ties.choices["norm"] == norm, "C"]
    ends = sorted({float(Cs.min()), float(Cs.max())} - {own})
    if not ends:
        return []
    views = np.array([str(view) for view in kernel_views(subject.model)], dtype=object)
    subsets = [np.arange(views.size), *(np.flatnonzero(views != name) for name in names)]
    fits = SubsetFits(subject.estimator, transformed(subject.model, subject.X), subject.y)
    refits, made = subject.refits, []
    for C in ends:
        means = fits.scores(subsets, refits.splits[: refits.folds], C)[0].mean(axis=1)
        made.append((C, float(means[0]), means[1:]))
    return made
