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
    """Say whether there is a view that the model does as well without, at every choice that the scores leave open."""
    shown = subject.refits.main.shown
    scores = dict(zip(subsets["views"], subsets["score"], strict=True))
    whole = scores[", ".join(names)]
    without = np.array([scores[", ".join(other for other in names if other != name)] for name in names])
    least = int(np.argmax(without))
    name, of_least = names[least], float(without[least])
    here, elsewhere = _at_tied_choices(subject, names)
    also = ""
    if elsewhere:
        others = " and ".join(which for which, *_ in elsewhere)
        others = others if len(elsewhere) <= 2 else f"{len(elsewhere)} others"
        also = f"; the same holds at {others} of the choices that the scores do not tell from this one"
    if of_least >= whole:
        contrary = next((found for found in elsewhere if found[2][least] < found[1]), None)
        if contrary is None:
            return (
                f"Without {name!r} the model does as well on held-out samples ({shown(of_least)}, and {shown(whole)} "
                f"with all views{also}): the view need not be measured for this purpose, and a refit without it "
                f"(inspection.drop_view) no longer asks for it."
            )
        which, all_, left = contrary
        return (
            f"Whether {name!r} is needed is not decided: without it the model does as well at {here} "
            f"({shown(of_least)}, and {shown(whole)} with all views), but not at {which} ({shown(float(left[least]))}, "
            f"and {shown(all_)} with all views), and the cross-validated scores do not tell these choices apart."
        )
    contrary = next((found for found in elsewhere if np.any(found[2] >= found[1])), None)
    if contrary is not None:
        which, all_, left = contrary
        return (
            f"Whether every view is needed is not decided: at {here} each helps ({shown(of_least)} without {name!r}, "
            f"{shown(whole)} with all views), but at {which}, which the cross-validated scores do not tell from it, "
            f"the model does as well without {names[int(np.argmax(left))]!r} ({shown(float(left.max()))}, and "
            f"{shown(all_)} with all views)."
        )
    return (
        f"Every view helps: {name!r} is the one whose loss costs least ({shown(of_least)} without it, "
        f"{shown(whole)} with all views{also})."
    )


def _at_tied_choices(subject: Subject, names: list[str]) -> tuple[str, list[tuple[str, float, Any]]]:
    """Return what the choice is called, and the scores with all views and without each at others that score as well.

    Of every norm these are the smallest and the largest C.
    """
    ties = subject.ties
    if ties is None:
        return "", []
    several = ties.choices["norm"].nunique() > 1

    def called(norm: str, C: float) -> str:
        return f"C = {short(C)}" + (f" with norm {norm}" if several else "")

    chosen = ties.choices[ties.choices["tie"] == "chosen"].iloc[0]
    ends = ties.choices.groupby("norm", sort=False)["C"].agg(["min", "max"])
    pairs = dict.fromkeys((str(row.Index), float(C)) for row in ends.itertuples() for C in (row.min, row.max))
    pairs.pop((chosen["norm"], chosen["C"]), None)
    views = np.array([str(view) for view in kernel_views(subject.model)], dtype=object)
    subsets = [np.arange(views.size), *(np.flatnonzero(views != name) for name in names)]
    fits = SubsetFits(subject.estimator, transformed(subject.model, subject.X), subject.y)
    splits, found = subject.refits.splits[: subject.refits.folds], []
    for pair in pairs:
        means = fits.scores(subsets, splits, pair)[0].mean(axis=1)
        found.append((called(*pair), float(means[0]), means[1:]))
    return called(chosen["norm"], chosen["C"]), found
