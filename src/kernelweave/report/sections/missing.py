"""Missing views: who lacks which, and how good the model is for them."""

from __future__ import annotations

from html import escape

import numpy as np

from ...estimators.fitted import views_for
from ...inspection.views import transformed
from ...views import Views
from .._html import number, percent, table
from .._refits import Refits
from .._subject import Subject

__all__ = ["section"]

#: patterns listed, the most frequent first
MOST_PATTERNS = 30


def section(subject: Subject) -> str:
    """Return accuracy by pattern of views; nothing where no sample lacks one."""
    estimator = subject.estimator
    views = views_for(estimator, transformed(subject.model, subject.X))
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
        + _pattern_table(views, subject.refits)
    )


def _pattern_table(views: Views, refits: Refits) -> str:
    patterns, inverse, counts = np.unique(views.present, axis=0, return_inverse=True, return_counts=True)
    error = "accuracy" if refits.classify else "mean squared error"
    rows = []
    for q in np.argsort(-counts, kind="stable")[:MOST_PATTERNS]:
        lacks = [name for name, here in zip(views.names, patterns[q], strict=True) if not here]
        value = float(np.mean(refits.per_sample[inverse.ravel() == q]))
        shown = percent(value) if error == "accuracy" else number(value)
        rows.append([", ".join(lacks) or "nothing", int(counts[q]), (value, shown)])
    return table(["lacks", "samples", f"{error} on held-out folds"], rows, "Patterns of missing views") + (
        '<p class="quiet">Each sample was predicted by a fit that did not see it; a share of few samples is a rough '
        "one. Where all new samples lack a view, a model refitted without it is the better way "
        "(inspection.drop_view).</p>"
    )


def _r2(value: float) -> tuple[float, str]:
    return float(value), number(float(value)) if np.isfinite(value) else "–"
