"""Which views and kernels matter: weights of the fit, with what refits on folds say of them."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...displays import WeightsDisplay
from ...estimators.fitted import weight_origin
from ...inspection import WeightStability
from .._drawing import WIDTH, drawn
from .._html import figure, number, percent, table
from .._refits import Refits
from .._subject import Subject

__all__ = ["section"]

#: rows of the table of kernels; the others have the smallest weights
MOST_ROWS = 300
#: kernels in the picture
TOP = 15
WEIGHT_COLUMNS = ("weight", "range of the refits", "selected")


def section(subject: Subject) -> str:
    """Return a picture of the weights, and tables of views and kernels."""
    refits, origin = subject.refits, weight_origin(subject.estimator)
    count = len(refits.stability.weights)
    if origin.nothing:
        tested = (
            " Whether the decisions need a view is what its p-value below says."
            if refits.views is not None
            else ""
        )
        return (
            f'<h2 id="views">Views and kernels</h2><p>{escape(origin.sentence)} They say nothing about which views or '
            f"kernels matter.{tested}</p>"
            + _view_table(subject, origin.learnt)
            + _kernel_table(refits, origin.learnt)
        )
    return "".join(
        [
            '<h2 id="views">Which views and kernels matter</h2>',
            f"<p>Weights of this fit as shares of their sum. The range is that of {count} refits on folds, from the "
            "smallest weight to the largest: refits share most of their samples, so it is no confidence interval. "
            "“Selected” says in how many of them a view or a kernel had any weight. Where kernels resemble each "
            "other a sparse fit picks one of them almost by chance: trust views more than single kernels, and quote a "
            "weight with its range.</p>",
            f"<p>{escape(origin.sentence)}</p>" if origin.sentence else "",
            figure(
                _picture(refits.stability),
                f"Weights of this fit; the lines are the range of {count} refits. Kernels that only refits selected "
                "are in the table.",
            ),
            _view_table(subject, origin.learnt),
            _kernel_table(refits, origin.learnt),
        ]
    )


def _picture(stability: WeightStability) -> str:
    """Weights of the fit with the ranges of the refits, under their views."""
    grouped = len(stability.view_names) < len(stability.kernel_names)
    kernels = stability.kernels()
    display = WeightsDisplay(
        stability.reference,
        [str(name) for name in stability.kernel_names],
        intervals=kernels[["low", "high"]].to_numpy().T,
        groups=[str(view) for view in stability.views] if grouped else None,
    )
    shown, rest = display.rows(TOP)
    heads = len({stability.views[j] for j in shown}) if grouped else 0
    size = (WIDTH, max(2.2, 1.0 + 0.29 * (len(shown) + bool(rest) + heads)))
    what = "Bars: weight of each kernel, with the range of the refits; the table below has the numbers"
    return drawn(lambda ax: display.plot(ax=ax, top=TOP), size, what, "weights")


def _view_table(subject: Subject, learnt: NDArray[np.bool_]) -> str:
    refits, ties = subject.refits, subject.ties
    views = refits.stability.by_view().sort_values("weight", ascending=False)
    if len(views) <= 1:
        return ""
    stability = refits.stability
    given = {name for name in stability.view_names if not learnt[stability.views == name].any()}
    # weights that nobody learns do not vary and are not selected
    columns = len(WEIGHT_COLUMNS) if learnt.any() else 1
    head, rows = ["view", "kernels", *WEIGHT_COLUMNS[:columns]], []
    for row in views.itertuples():
        rows.append([str(row.view), int(row.kernels), *_weight_cells(row, row.view in given)[:columns]])
    caption = "Views, the heaviest first" if learnt.any() else "Views"
    note = ""
    if ties is not None and learnt.any():
        head.append("range of tied choices")
        for cells in rows:
            low, high = ties.ranges[cells[0]]
            cells.append((high, f"{number(low)} – {number(high)}"))
        note = (
            f'<p class="quiet">The range of tied choices is over the {ties.of_what} that the cross-validated scores do '
            'not tell apart (<a href="#sensitivity">weights at each</a>).</p>'
        )
    if refits.views is None:
        return "<h3>Views</h3>" + table(head, rows, caption) + note
    for cells in rows:
        p = float(refits.views.loc[cells[0], "p_holm"])
        cells.append((p, number(p)))
    return (
        "<h3>Views</h3>"
        + table([*head, "p-value"], rows, caption)
        + note
        + '<p class="quiet">The p-value asks whether held-out decisions get worse when a view’s rows are '
        "shuffled (999 times, adjusted by Holm for the number of views). It is about this model’s use of the "
        "view: another view may hold the same information.</p>"
    )


def _kernel_table(refits: Refits, learnt: NDArray[np.bool_]) -> str:
    kernels = refits.stability.kernels().sort_values(["weight", "mean"], ascending=False)
    shown = kernels[(kernels["weight"] > 0) | (kernels["selected"] > 0)].head(MOST_ROWS)
    columns = len(WEIGHT_COLUMNS) if learnt.any() else 1
    rows = [
        [str(r.kernel), str(r.view), str(r.family), *_weight_cells(r, not learnt[r.Index])[:columns]]
        for r in shown.itertuples()
    ]
    head = ["kernel", "view", "family", *WEIGHT_COLUMNS[:columns]]
    order = "Kernels, the heaviest first" if learnt.any() else "Kernels"
    page = "<h3>Kernels</h3>" + table(head, rows, f"{order}; a click on a heading sorts")
    hidden = len(kernels) - len(shown)
    if hidden:
        why = "they had no weight in any fit" if len(shown) < MOST_ROWS else "their weights are the smallest"
        page += f'<p class="quiet">{hidden} further kernels are not listed: {why}.</p>'
    return page


def _weight_cells(row: Any, given: bool) -> list[Any]:
    """Cells of ``WEIGHT_COLUMNS``."""
    if given:
        return [float(row.weight), (float(row.mean), "given"), (1.0, "given")]
    selected = float(row.selected)
    return [
        float(row.weight),
        (float(row.mean), f"{number(row.low)} – {number(row.high)}"),
        (selected, percent(selected, 0) if np.isfinite(selected) else "–"),
    ]
