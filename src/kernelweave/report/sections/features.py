"""Which features matter, where kernels say it: linear ones, and those on a single feature."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...inspection import contributions, feature_weights, kernel_views
from ...inspection.explain import feature_names
from ...inspection.views import learnt_weights
from .._html import percent, table
from .._subject import Subject

__all__ = ["linear_features", "section", "single_features"]

#: features listed of a view
TOP = 10
#: views listed, the heaviest first
MOST_VIEWS = 12
#: entries of the table of contributions up to which it is computed
MOST_ENTRIES = 5_000_000


def section(subject: Subject) -> str:
    """Return the heaviest features of every view; nothing where no kernel tells them apart."""
    tables = [*linear_features(subject), *single_features(subject)]
    if not tables:
        return ""
    classes = subject.refits.classes
    if classes is None:
        sign = "A positive weight raises the prediction."
    elif len(classes) == 2:
        sign = f"A positive weight speaks for “{classes[1]}”, a negative one for “{classes[0]}”."
    else:
        sign = "A positive weight speaks for the class of its column."
    text = (
        f"Features as the model gets them: standardised where a pipeline standardises. {sign} Features that say the "
        "same share their weight, so a small weight is no proof that a feature does not matter."
    )
    return f'<h2 id="features">Which features matter</h2><p>{escape(text)}</p>' + "".join(tables)


def linear_features(subject: Subject) -> list[str]:
    """Return a table of the heaviest features for the linear kernels of every view."""
    try:
        weights = feature_weights(subject.model)
    except ValueError:  # no linear kernel has weight, or rows are not numbers in memory
        return []
    columns = [name for name in weights.columns if name == "weight" or name.startswith("weight of ")]
    summed = weights.groupby(["view", "feature"], sort=False)[columns].sum().reset_index()
    sizes = summed.groupby("view", sort=False).size()
    singles = summed[summed["view"].map(sizes) == 1]
    tables: list[str] = []
    for view, share in _linear_shares(subject, set(weights["kernel"])).items():
        if sizes.get(view, 0) > 1 and len(tables) < MOST_VIEWS:
            caption = f"{view}: linear kernels have {percent(share, 0)} of its weight"
            tables.append(_table(summed[summed["view"] == view], columns, caption))
    if len(singles):
        tables.append(_table(singles, columns, "Linear kernels on single features"))
    return tables


def _linear_shares(subject: Subject, linear: set[str]) -> dict[str, float]:
    """Share of each view's weight that is on linear kernels, the heaviest view first."""
    shares, views = learnt_weights(subject.model), kernel_views(subject.model)
    is_linear = np.array([str(name) in linear for name in subject.estimator.kernel_names_])
    totals = {str(view): float(shares[views == view].sum()) for view in dict.fromkeys(views.tolist())}
    return {
        view: float(shares[(views == view) & is_linear].sum()) / totals[view]
        for view in sorted(totals, key=lambda view: -totals[view])
        if totals[view] > 0
    }


def _table(rows: Any, columns: list[str], caption: str) -> str:
    values = rows[columns].to_numpy(dtype=float)
    order = np.argsort(-np.abs(values).max(axis=1), kind="stable")[:TOP]
    left = len(values) - len(order)
    cells = [[str(rows["feature"].iloc[i]), *(float(v) for v in values[i])] for i in order]
    return table(["feature", *columns], cells, caption + (f"; {left} further features" if left else ""))


def single_features(subject: Subject) -> list[str]:
    """Return how much every feature with a kernel of its own moves the decisions, where such kernels are not linear."""
    estimator = subject.estimator
    kernels = getattr(estimator, "kernels_", None)
    m = len(estimator.kernel_names_)
    if (
        not isinstance(kernels, list)
        or not hasattr(estimator, "n_features_in_")
        or m * len(subject.y) > MOST_ENTRIES
    ):
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
    order = sorted(spread, key=lambda c: -float(np.max(spread[c])))[:TOP]
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
