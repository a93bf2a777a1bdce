"""Sections on what the model uses: views and kernels, features, groups of columns."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...displays import GroupsDisplay, WeightsDisplay
from ...estimators.fitted import weight_origin
from ...inspection import WeightStability, contributions, feature_weights, group_table, kernel_views
from ...inspection.explain import feature_names
from ...inspection.subsets import MOST_VIEWS
from ...inspection.views import learnt_weights
from .._html import WIDTH, drawn, figure, folded, number, percent, table
from .._refits import Subject

#: rows of the table of kernels; the others have the smallest weights
ROWS_OF_VIEWS = 300
#: kernels in the picture
TOP_VIEWS = 15
#: kernels up to which their table is open
MOST_UNFOLDED = 30
WEIGHT_COLUMNS = ("weight", "range of the refits", "selected")


def views_section(subject: Subject) -> str:
    """Return a picture of the weights, and tables of views and kernels."""
    origin = weight_origin(subject.estimator)
    # shares of the learnt weight: what is given may be any number of times larger
    stability = subject.refits.stability.among(origin.learnt)
    tables = _view_table(subject, stability, origin.learnt) + _kernel_table(subject, stability, origin.learnt)
    if origin.nothing:
        tested = " Whether the decisions need a view is what its p-value below says."
        return (
            f'<h2 id="views">Views and kernels</h2><p>{escape(origin.sentence)} They say nothing about which views or '
            f"kernels matter.{tested if subject.refits.views is not None else ''}</p>{tables}"
        )
    # weights of the fit with the ranges of the refits, under their views
    count = len(stability.weights)
    grouped = len(stability.view_names) < len(stability.kernel_names)
    of_kernel = stability.kernels()
    display = WeightsDisplay(
        stability.reference,
        [str(name) for name in stability.kernel_names],
        intervals=of_kernel[["low", "high"]].to_numpy().T,
        groups=[str(view) for view in stability.views] if grouped else None,
    )
    shown, rest = display.rows(TOP_VIEWS)
    heads = len({stability.views[j] for j in shown}) if grouped else 0
    size = (WIDTH, max(2.2, 1.0 + 0.29 * (len(shown) + bool(rest) + heads)))
    what = "Bars: weight of each kernel, with the range of the refits; the table below has the numbers"
    only = "Kernels that only refits selected are in the table."

    def tips() -> list[tuple[Any, str]]:
        found = ((display.bars_[row], of_kernel.loc[j]) for j, row in display.places_.items())
        return [
            (bar, f"{r.kernel}: weight {number(r.weight)}, {number(r.low)} to {number(r.high)} in the refits, selected "
             f"in {percent(r.selected, 0)} of them")
            for bar, r in found
        ]  # fmt: skip

    picture = drawn(lambda ax: display.plot(ax=ax, top=TOP_VIEWS), size, what, "weights", tips)
    return (
        '<h2 id="views">Which views and kernels matter</h2>'
        f"<p>Weights of this fit as shares of their sum. The range is that of {count} refits on folds, from the "
        "smallest weight to the largest: refits share most of their samples, so it is no confidence interval. "
        "“Selected” says in how many of them a view or a kernel had any weight. Where kernels resemble each "
        "other a sparse fit picks one of them almost by chance: trust views more than single kernels, and quote a "
        "weight with its range.</p>"
        + (f"<p>{escape(origin.sentence)}</p>" if origin.sentence else "")
        + figure(picture, f"Weights of this fit; the lines are the range of {count} refits. {only}")
        + tables
    )


def _view_table(subject: Subject, stability: WeightStability, learnt: NDArray[np.bool_]) -> str:
    refits, ties = subject.refits, subject.ties
    everything = refits.stability
    views = stability.by_view().sort_values("weight", ascending=False)
    if len(everything.view_names) <= 1:
        return ""
    given = {name for name in everything.view_names if not learnt[everything.views == name].any()}
    if learnt.any():
        whole = everything.by_view()
        views = pd.concat([views, whole[whole["view"].isin(given)]])
    # weights that nobody learns do not vary and are not selected
    columns = len(WEIGHT_COLUMNS) if learnt.any() else 1
    head, rows = ["view", "kernels", *WEIGHT_COLUMNS[:columns]], []
    for row in views.itertuples():
        rows.append(
            [
                str(row.view),
                int(row.kernels),
                *_weight_cells(row, row.view in given, bool(learnt.any()))[:columns],
            ]
        )
    caption = "Views, the heaviest first" if learnt.any() else "Views"
    note = ""
    if ties is not None and learnt.any():
        head.append("range of tied choices")
        for cells in rows:
            low, high = ties.ranges.get(cells[0], (np.nan, np.nan))
            cells.append((high, f"{number(low)} – {number(high)}" if cells[0] in ties.ranges else "given"))
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


def _kernel_table(subject: Subject, stability: WeightStability, learnt: NDArray[np.bool_]) -> str:
    kernels = stability.kernels().sort_values(["weight", "mean"], ascending=False)
    shown = kernels[(kernels["weight"] > 0) | (kernels["selected"] > 0)].head(ROWS_OF_VIEWS)
    columns, given = len(WEIGHT_COLUMNS) if learnt.any() else 1, not learnt.any()
    rows = [
        [str(r.kernel), str(r.view), str(r.family), *_weight_cells(r, given, False)[:columns]]
        for r in shown.itertuples()
    ]
    if learnt.any():
        rows += [
            [str(r.kernel), str(r.view), str(r.family), *_weight_cells(r, True)]
            for r in subject.refits.stability.kernels()[~learnt].itertuples()
        ]
    head = ["kernel", "view", "family", *WEIGHT_COLUMNS[:columns]]
    order = "Kernels, the heaviest first" if learnt.any() else "Kernels"
    page = table(head, rows, f"{order}; a click on a heading sorts")
    hidden = len(kernels) - len(shown)
    if hidden:
        all_shown = len(shown) < ROWS_OF_VIEWS
        why = "they had no weight in any fit" if all_shown else "their weights are the smallest"
        page += f'<p class="quiet">{hidden} further kernels are not listed: {why}.</p>'
    return "<h3>Kernels</h3>" + (
        folded(f"All {len(rows)} of them", page) if len(rows) > MOST_UNFOLDED else page
    )


def _weight_cells(row: Any, given: bool, beside: bool = True) -> list[Any]:
    """Cells of ``WEIGHT_COLUMNS``; ``beside`` says that others were learnt."""
    if given:
        weight: Any = (float(row.weight), "given") if beside else float(row.weight)
        return [weight, (float(row.mean), "given"), (1.0, "given")]
    selected = float(row.selected)
    return [
        float(row.weight),
        (float(row.mean), f"{number(row.low)} – {number(row.high)}"),
        (selected, percent(selected, 0) if np.isfinite(selected) else "–"),
    ]


#: features listed of a view
TOP_FEATURES = 10
#: views listed, the heaviest first
TABLES_OF_FEATURES = 12
#: entries of the table of contributions up to which it is computed
MOST_ENTRIES = 5_000_000


def features_section(subject: Subject) -> str:
    """Return the heaviest features of every view; nothing where no kernel tells them apart."""
    tables = [*_linear_features(subject), *_single_features(subject)]
    if not tables:
        return ""
    classes = subject.refits.classes
    if classes is None:
        longer = subject.y.dtype.names and not subject.estimator.loss_.proportional
        raises = "lengthens the predicted time" if longer else "raises the prediction"
        sign = f"A positive weight {raises}."
    elif len(classes) == 2:
        sign = f"A positive weight speaks for “{classes[1]}”, a negative one for “{classes[0]}”."
    else:
        sign = "A positive weight speaks for the class of its column."
    text = (
        f"Features as the model gets them: standardised where a pipeline standardises. {sign} Features that say the "
        "same share their weight, so a small weight is no proof that a feature does not matter."
    )
    return f'<h2 id="features">Which features matter</h2><p>{escape(text)}</p>' + "".join(tables)


def _linear_features(subject: Subject) -> list[str]:
    """Return a table of the heaviest features for the linear kernels of every view."""
    try:
        weights = feature_weights(subject.model)
    except ValueError:  # no linear kernel has weight, or rows are not numbers in memory
        return []
    columns = [name for name in weights.columns if name == "weight" or name.startswith("weight of ")]
    summed = weights.groupby(["view", "feature"], sort=False)[columns].sum().reset_index()
    sizes = summed.groupby("view", sort=False).size()
    singles = summed[summed["view"].map(sizes) == 1]
    shares, views = learnt_weights(subject.model), kernel_views(subject.model)
    is_linear = np.isin([str(name) for name in subject.estimator.kernel_names_], weights["kernel"].unique())
    totals = {str(view): float(shares[views == view].sum()) for view in dict.fromkeys(views.tolist())}
    tables: list[str] = []
    for view in sorted(totals, key=lambda view: -totals[view]):  # the heaviest first
        if totals[view] > 0 and sizes.get(view, 0) > 1 and len(tables) < TABLES_OF_FEATURES:
            share = float(shares[(views == view) & is_linear].sum()) / totals[view]
            caption = f"{view}: linear kernels have {percent(share, 0)} of its weight"
            tables.append(_features_table(summed[summed["view"] == view], columns, caption))
    if len(singles):
        tables.append(_features_table(singles, columns, "Linear kernels on single features"))
    return tables


def _features_table(rows: Any, columns: list[str], caption: str) -> str:
    values = rows[columns].to_numpy(dtype=float)
    order = np.argsort(-np.abs(values).max(axis=1), kind="stable")[:TOP_FEATURES]
    left = len(values) - len(order)
    cells = [[str(rows["feature"].iloc[i]), *(float(v) for v in values[i])] for i in order]
    return table(["feature", *columns], cells, caption + (f"; {left} further features" if left else ""))


def _single_features(subject: Subject) -> list[str]:
    """Return how much every feature with a kernel of its own moves the decisions, where such kernels are not linear."""
    estimator = subject.estimator
    kernels = getattr(estimator, "kernels_", None)
    if not (isinstance(kernels, list) and hasattr(estimator, "n_features_in_")):
        return []
    if len(estimator.kernel_names_) * len(subject.y) > MOST_ENTRIES:
        return []
    names = feature_names(subject.model, estimator)
    alone: dict[int, list[int]] = {}
    for j in np.flatnonzero(learnt_weights(subject.model)):
        columns = kernels[j].looks_at(len(names))
        if len(columns) == 1 and kernels[j].linear_columns(len(names)) is None:
            alone.setdefault(next(iter(columns)), []).append(int(j))
    if not alone:
        return []
    values = contributions(subject.model, subject.X).values
    spread = {c: values[:, rows].sum(axis=1).std(axis=0) for c, rows in alone.items()}
    order = sorted(spread, key=lambda c: -float(np.max(spread[c])))[:TOP_FEATURES]
    several = values.ndim == 3
    heads = [f"effect for {label}" for label in estimator.classes_] if several else ["effect"]
    cells = [[names[c], *(float(v) for v in np.atleast_1d(spread[c]))] for c in order]
    left = len(spread) - len(order)
    caption = "Kernels on single features" + (f"; {left} further features" if left else "")
    return [
        "<p>The effect is the standard deviation, over the training samples, of what a feature adds to the decision "
        "value; it has no sign, because these kernels are not linear.</p>"
        + table(["feature", *heads], cells, caption)
    ]


#: groups in the picture, rows of the table
TOP_GROUPS, ROWS_OF_GROUPS = 20, 200


def groups_section(subject: Subject) -> str:
    """Return the groups of a model that has many, or was given them by name; nothing for others."""
    estimator, refits = subject.estimator, subject.refits
    count = len(refits.stability.view_names)
    named = hasattr(estimator.kernels, "coverage")
    if not isinstance(getattr(estimator, "kernels_", None), list):
        return ""
    if count <= MOST_VIEWS and not (named and count > 1):
        return ""
    rows = group_table(subject.model, subject.X)
    by_view = refits.stability.by_view().set_index("view")
    rows["selected"] = by_view["selected"].reindex(rows["group"]).to_numpy()
    if refits.views is not None:
        rows["p_value"] = refits.views["p_holm"].reindex(rows["group"]).to_numpy()
    # groups of one column each are columns: they have sections of their own
    if not np.any(rows["size"] > 1):
        return ""
    shown = rows[(rows["weight"] > 0) | (rows["selected"] > 0)].head(ROWS_OF_GROUPS)
    weighted, hidden = int(np.sum(rows["weight"] > 0)), len(rows) - len(shown)
    origin = weight_origin(estimator)
    share = "a group’s share of the variance of the decision values"
    variance = f"“Variance” is {share} (all shares add up to one)"
    top = "the top members are the columns that go most with what the group adds"
    picture = ""
    if origin.nothing:
        text = f"{origin.sentence} What is a finding is the variance. {variance}, and {top}."
    else:
        text = (
            f"{weighted} of {len(rows)} groups have weight. {origin.sentence} {variance}, “selected” says in how many "
            f"refits it had weight, and {top}. Where groups share columns or are correlated, a sparse fit picks one of "
            "several that would do: look at “selected” before you quote a weight."
        )
    if weighted and not origin.nothing:
        display = GroupsDisplay(rows)
        size = (WIDTH, max(2.4, 1.6 + 0.3 * len(display.shown(TOP_GROUPS))))
        what = "Bars: weight of each group, with its share of the decisions' variance; the table below has the numbers"
        svg = drawn(lambda ax: display.plot(ax=ax, top=TOP_GROUPS), size, what, "groups")
        caption = "The heaviest groups; in brackets their size and in how many refits they were selected."
        picture = figure(svg, caption)
    after = f'<p class="quiet">{hidden} further groups had no weight in any fit.</p>' if hidden else ""
    table_of_groups = _groups_table(shown, not origin.nothing)
    return f'<h2 id="groups">Which groups of columns matter</h2><p>{escape(text)}</p>{picture}{table_of_groups}{after}'


def _groups_table(rows: Any, learnt: bool) -> str:
    tested = "p_value" in rows
    rows = rows if learnt else rows.sort_values("variance", ascending=False)
    head = ["group", "columns", "weight", "variance"]
    head += ["selected"] * learnt + ["p-value"] * tested + ["top members"]
    cells = []
    for row in rows.itertuples():
        line: list[Any] = [str(row.group), int(row.size), float(row.weight), float(row.variance)]
        if learnt:
            line.append((float(row.selected), percent(float(row.selected), 0)))
        if tested:
            line.append((float(row.p_value), number(float(row.p_value))))
        cells.append([*line, str(row.top_members)])
    return table(head, cells, f"Groups, the {'heaviest' if learnt else 'largest variance'} first")
