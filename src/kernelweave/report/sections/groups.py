"""Groups of columns (gene sets, pathways): what each weighs, explains and consists of, and how sure that is."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...displays import GroupsDisplay
from ...estimators.fitted import weight_origin
from ...inspection import group_table
from ...inspection.subsets import MOST_VIEWS
from .._drawing import WIDTH, drawn
from .._html import figure, number, percent, table
from .._subject import Subject

__all__ = ["section"]

#: groups in the picture, rows of the table
TOP, MOST_ROWS = 20, 200


def section(subject: Subject) -> str:
    """Return the groups of a model that has many, or was given them by name; nothing for others."""
    if not _has_groups(subject):
        return ""
    rows = _rows(subject)
    # groups of one column each are columns: they have sections of their own
    if not np.any(rows["size"] > 1):
        return ""
    shown = rows[(rows["weight"] > 0) | (rows["selected"] > 0)]
    weighted = int(np.sum(rows["weight"] > 0))
    hidden = len(rows) - len(shown.head(MOST_ROWS))
    after = f'<p class="quiet">{hidden} further groups had no weight in any fit.</p>' if hidden else ""
    origin = weight_origin(subject.estimator)
    variance = (
        "“Variance” is a group’s share of the variance of the decision values (all shares add up to one)"
    )
    top = "the top members are the columns that go most with what the group adds"
    if origin.nothing:
        text = f"{origin.sentence} What is a finding is the variance. {variance}, and {top}."
    else:
        text = (
            f"{weighted} of {len(rows)} groups have weight. {origin.sentence} {variance}, “selected” says in how many "
            f"refits it had weight, and {top}. Where groups share columns or are correlated, a sparse fit picks one of "
            "several that would do: look at “selected” before you quote a weight."
        )
    return (
        f'<h2 id="groups">Which groups of columns matter</h2><p>{escape(text)}</p>'
        + (_picture(rows) if weighted and not origin.nothing else "")
        + _table(shown.head(MOST_ROWS), not origin.nothing)
        + after
    )


def _has_groups(subject: Subject) -> bool:
    estimator = subject.estimator
    if not isinstance(getattr(estimator, "kernels_", None), list):
        return False
    named = hasattr(estimator.kernels, "coverage")
    count = len(subject.refits.stability.view_names)
    return count > MOST_VIEWS or (named and count > 1)


def _rows(subject: Subject) -> Any:
    """Return the table of groups, with what the refits say of them."""
    rows = group_table(subject.model, subject.X)
    stability = subject.refits.stability.by_view().set_index("view")
    rows["selected"] = stability["selected"].reindex(rows["group"]).to_numpy()
    if subject.refits.views is not None:
        rows["p_value"] = subject.refits.views["p_holm"].reindex(rows["group"]).to_numpy()
    return rows


def _picture(rows: Any) -> str:
    display = GroupsDisplay(rows)
    count = len(display.shown(TOP))
    what = "Bars: weight of each group, with its share of the decisions' variance; the table below has the numbers"
    svg = drawn(lambda ax: display.plot(ax=ax, top=TOP), (WIDTH, max(2.4, 1.6 + 0.3 * count)), what, "groups")
    return figure(
        svg, "The heaviest groups; in brackets their size and in how many refits they were selected."
    )


def _table(rows: Any, learnt: bool) -> str:
    head = ["group", "columns", "weight", "variance", "selected", "top members"]
    tested = "p_value" in rows
    rows = rows if learnt else rows.sort_values("variance", ascending=False)
    cells = []
    for row in rows.itertuples():
        line: list[Any] = [
            str(row.group),
            int(row.size),
            float(row.weight),
            float(row.variance),
            (float(row.selected), percent(float(row.selected), 0)),
            str(row.top_members),
        ]
        if tested:
            line.insert(5, (float(row.p_value), number(float(row.p_value))))
        if not learnt:
            line.pop(4)
        cells.append(line)
    if tested:
        head.insert(5, "p-value")
    if not learnt:
        head.remove("selected")
    return table(head, cells, f"Groups, the {'heaviest' if learnt else 'largest variance'} first")
