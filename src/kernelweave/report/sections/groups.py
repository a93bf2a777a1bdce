"""Groups of columns (gene sets, pathways): what each weighs, explains and consists of, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...displays import GroupsDisplay
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
    return (
        '<h2 id="groups">Which groups of columns matter</h2>'
        f"<p>{weighted} of {len(rows)} groups have weight. “Variance” is a group’s share of the variance of the "
        "decision values (the shares of all groups add up to one), “selected” says in how many refits it had weight, "
        "and the top members are the columns that go most with what the group adds. Where groups share columns or are "
        "correlated, a sparse fit picks one of several that would do: look at “selected” before you quote a weight.</p>"
        + (_picture(rows) if weighted else "")
        + _table(shown.head(MOST_ROWS))
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


def _table(rows: Any) -> str:
    head = ["group", "columns", "weight", "variance", "selected", "top members"]
    tested = "p_value" in rows
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
        cells.append(line)
    if tested:
        head.insert(5, "p-value")
    return table(head, cells, "Groups, the heaviest first")
