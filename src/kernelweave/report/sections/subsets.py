"""Which views are worth measuring: the model on every subset of them."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from ...inspection import kernel_views, view_subsets
from ...inspection.subsets import MOST_VIEWS
from .._html import number, table
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
        + f"<p>{escape(_worth(subsets, names, shown))}</p>"
        + table(head, rows, "Subsets of views, the best first")
    )


def _worth(subsets: Any, names: list[str], shown: Callable[[float], str]) -> str:
    """Say whether there is a view that the model does as well without."""
    scores = dict(zip(subsets["views"], subsets["score"], strict=True))
    whole = scores[", ".join(names)]
    without = {name: scores[", ".join(other for other in names if other != name)] for name in names}
    name = max(without, key=lambda view: without[view])
    if without[name] >= whole:
        return (
            f"Without {name!r} the model does as well on held-out samples ({shown(without[name])}; with all views "
            f"{shown(whole)}): the view need not be measured for this purpose, and a refit without it "
            f"(inspection.drop_view) no longer asks for it."
        )
    return (
        f"Every view helps: {name!r} is the one whose loss costs least ({shown(without[name])} without it, "
        f"{shown(whole)} with all views)."
    )
