"""Sections about views: who lacks which and how good the model is for them, and which views are worth having."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from ..estimators.fitted import views_for
from ..inspection import final_estimator, kernel_views, view_subsets
from ..inspection.subsets import MOST_VIEWS
from ..inspection.views import transformed
from ..views import Views
from ._gather import Findings
from ._html import number, percent, table

__all__ = ["missing_section", "subsets_section"]

#: samples up to which every subset of views is tried
MOST_SAMPLES = 3000
#: patterns listed, the most frequent first
MOST_PATTERNS = 30


def missing_section(model: Any, X: Any, findings: Findings) -> str:
    """Return accuracy by pattern of views; nothing where no sample lacks one."""
    estimator = final_estimator(model)
    views = views_for(estimator, transformed(model, X))
    if views is None or views.complete:
        return ""
    known = getattr(estimator, "view_predictability_", {})
    counts = views.lacking()
    rows = [
        [name, int(counts.get(name, 0)), _r2(known.get(name, np.nan))]
        for name in views.names
        if counts.get(name) or name in known
    ]
    sentences = [
        f"Samples that lack a view were completed in feature space (missing = {estimator.missing!r}). The R² says how "
        "much of a view’s features the other views predict when samples are left out in turn: near 0, completion is no "
        "better than the mean of the view."
    ]
    return (
        '<h2 id="missing">Missing views</h2>'
        + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        + table(["view", "samples without it", "R² from the others"], rows, "Views and who lacks them")
        + _pattern_table(views, findings)
    )


def _pattern_table(views: Views, findings: Findings) -> str:
    patterns, inverse, counts = np.unique(views.present, axis=0, return_inverse=True, return_counts=True)
    error = "accuracy" if findings.measure == "accuracy" else "mean squared error"
    rows = []
    for q in np.argsort(-counts, kind="stable")[:MOST_PATTERNS]:
        lacks = [name for name, here in zip(views.names, patterns[q], strict=True) if not here]
        value = float(np.mean(findings.held_out[inverse.ravel() == q]))
        shown = percent(value) if error == "accuracy" else number(value)
        rows.append([", ".join(lacks) or "nothing", int(counts[q]), (value, shown)])
    return table(["lacks", "samples", f"{error} on held-out folds"], rows, "Patterns of missing views") + (
        '<p class="quiet">Each sample was predicted by a fit that did not see it; a share of few samples is a rough '
        "one. Where all new samples lack a view, a model refitted without it is the better way "
        "(inspection.drop_view).</p>"
    )


def _r2(value: float) -> tuple[float, str]:
    return float(value), number(float(value)) if np.isfinite(value) else "–"


def subsets_section(model: Any, X: Any, y: Any, findings: Findings, seed: int) -> str:
    """Return the accuracy of every subset of two to five views."""
    names = list(dict.fromkeys(str(view) for view in kernel_views(model)))
    few = 2 <= len(names) <= MOST_VIEWS and len(y) <= MOST_SAMPLES
    if not (final_estimator(model).fits_subsets and few):
        return ""
    subsets = view_subsets(model, X, y, n_folds=findings.folds, random_state=seed)
    shown = percent if findings.measure == "accuracy" else number
    rows = [
        [row.views, int(row.kernels), (row.score, shown(row.score)), (row.sd, number(row.sd)),
         (row.seconds, number(row.seconds))]
        for row in subsets.itertuples()
    ]  # fmt: skip
    head = ["views", "kernels", findings.measure, "sd over folds", "seconds of a fit"]
    return (
        '<h2 id="subsets">Which views are worth measuring</h2><p>The same model on every subset of its views, on '
        f"{findings.folds} folds, at the same C. A subset that does as well as all views together saves the cost of "
        "the others; differences well below the spread over folds mean nothing.</p>"
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
