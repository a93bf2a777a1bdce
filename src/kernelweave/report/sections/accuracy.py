"""Sections on how good the model is: all methods on the same folds, classes, probabilities, residuals, labels, missing
views."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ..._estimating import leads_of
from ...displays import NoiseDisplay
from ...displays.colours import ACCENT, INK, tidy
from ...estimators.fitted import known_views
from ...inspection.views import transformed
from .._html import WIDTH, drawn, figure, folded, number, percent, table
from .._refits import Subject
from .fit import interval


def accuracy_section(subject: Subject) -> str:
    """Return the scores of all methods."""
    refits = subject.refits
    first, *others = refits.measures
    names = "; ".join(f"{kind.name}: {kind.about}" for kind in refits.measures)
    together = " that keep groups together" if subject.groups is not None else ""
    if subject.setting is not None:
        together = f" (setting “{subject.setting}”)"
    again = f", repeated {refits.rounds} times with other folds" if refits.rounds > 1 else ""
    alone = f" There is no method from outside beside it: {refits.alone}." if refits.alone else ""

    dots: list[tuple[Any, str]] = []

    def draw(ax: Any) -> None:
        for row, method in enumerate(refits.methods):
            measured = method.measures[first.name]
            ax.hlines(row, measured.low, measured.high, color=ACCENT, linewidth=2.2)
            ax.plot(measured.scores, [row] * len(measured.scores), "|", color=INK, markersize=9, alpha=0.55)
            (dot,) = ax.plot([measured.mean], [row], "o", color=INK, markersize=7)
            dots.append((dot, f"{method.name}: {first.shown(measured.mean)}, {interval(measured, refits)}"))
        ax.set_yticks(range(len(refits.methods)), [method.name for method in refits.methods])
        ax.set_ylim(len(refits.methods) - 0.5, -0.5)
        ax.set_xlabel(f"{first.name} on held-out folds")
        tidy(ax, "x")

    what = "Dots: held-out score of each method, with intervals; the table below has the numbers"
    picture = drawn(draw, (WIDTH, 0.9 + 0.42 * len(refits.methods)), what, "accuracy", lambda: dots)
    rows: list[list[Any]] = []
    for method in refits.methods:
        score, *means = (method.measures[kind.name] for kind in refits.measures)
        cells = [(score.mean, first.shown(score.mean)), (score.low, interval(score, refits))]
        cells.append((score.p_value, number(score.p_value)))
        cells += [(other.mean, kind.shown(other.mean)) for other, kind in zip(means, others, strict=True)]
        rows.append([method.name, *cells])
    head = ["method", first.name, "95 % interval", "p against this model", *(kind.name for kind in others)]
    known = "; ".join(f"{method.name}: {method.about}" for method in refits.methods if method.about)
    return (
        f'<h2 id="accuracy">How good it is</h2><p>{refits.folds} folds{together}{again}; all methods on the same '
        f"folds, those with kernels on the same kernels.{alone} {names}. Intervals and p-values allow for the overlap "
        "of the training sets (Nadeau and Bengio 2003).</p>"
        + figure(picture, f"Dots are the numbers of the table, ticks single folds ({first.name}).")
        + table(head, rows, "Methods on the same folds")
        + f'<p class="quiet">{escape(known)}.</p>'
    )


#: classes up to which the whole matrix is shown
MOST_CLASSES = 20


def confusion_section(subject: Subject) -> str:
    """Return the confusion matrix of held-out predictions; nothing for a regression."""
    refits = subject.refits
    if refits.classes is None:
        return ""
    counts = refits.confusion
    names = [str(label) for label in refits.classes]
    totals = counts.sum(axis=1)
    recall = np.divide(np.diag(counts), totals, out=np.zeros_like(totals), where=totals > 0)
    predicted = counts.sum(axis=0)
    unknown = np.full_like(predicted, np.nan)
    precision = np.divide(np.diag(counts), predicted, out=unknown, where=predicted > 0)
    # beyond this many columns nobody reads a matrix: the two shares of each class remain
    shown = range(len(names)) if len(names) <= MOST_CLASSES else range(0)
    head = ["label", *(f"predicted {names[k]}" for k in shown), "samples", "found", "right when predicted"]
    rows = []
    for i, name in enumerate(names):
        cells = [(counts[i, k], _count(counts[i, k])) for k in shown]
        shares = [(share[i], percent(share[i])) for share in (recall, precision)]
        rows.append([name, *cells, round(totals[i]), *shares])
    rounds = "" if refits.rounds == 1 else f", the mean of {refits.rounds} rounds"
    text = (
        f"Samples by label and held-out prediction{rounds}: the share on the diagonal is the accuracy above, the mean "
        "of the column “found” the balanced accuracy."
    )
    return f'<h3 id="confusion">What is taken for what</h3><p>{escape(text)}</p>' + table(
        head, rows, "Confusion matrix of held-out predictions"
    )


def _count(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


BINS = 10


def calibration_section(subject: Subject) -> str:
    """Return predicted against observed shares; nothing where the model has no probabilities."""
    refits = subject.refits
    shares = refits.ours.probability
    if refits.classes is None or shares is None:
        return ""
    predicted, true, count = reliability(refits.y, shares, refits.classes)
    brier = float(np.mean(np.sum((shares - (refits.y[:, None] == refits.classes)) ** 2, axis=2)))
    error = float(np.average(np.abs(predicted - true), weights=count))
    what = f"“{refits.classes[1]}”" if len(refits.classes) == 2 else "each class"
    text = (
        f"Held-out samples by predicted probability of {what}: where probabilities are what they say, the points lie "
        f"on the line. They are {number(error)} away from it on average (expected calibration error); the Brier score "
        f"is {number(brier)} (0 is perfect)."
    )
    if hasattr(subject.estimator, "calibration_"):
        text += (
            " The folds that gave the probabilities their scale lie inside the training part of each of these folds: "
            "no sample is in both."
        )

    def draw(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], color=ACCENT, linewidth=1.6)
        ax.scatter(predicted, true, s=20 + 180 * count / count.max(), color=INK)
        ends = (-0.03, 1.03)
        ax.set(xlim=ends, ylim=ends, xlabel="predicted probability", ylabel="observed share")
        tidy(ax, "both")

    dots = "Dots: observed share against predicted probability; the table below has the numbers"
    picture = drawn(draw, (WIDTH, 4.4), dots, "calibration")
    rows = [[float(s), float(t), int(c)] for s, t, c in zip(predicted, true, count, strict=True)]
    return (
        f'<h3 id="calibration">Calibration</h3><p>{escape(text)}</p>'
        + figure(picture, "Larger dots stand for more samples.")
        + folded(
            "The numbers",
            table(["predicted probability", "observed share", "predictions"], rows, "Ten equal bins"),
        )
    )


def reliability(y: Any, shares: Any, classes: Any) -> tuple[Any, Any, Any]:
    """Return mean prediction, observed share and count of every bin that has any; several classes are pooled."""
    columns = [1] if len(classes) == 2 else range(len(classes))
    predicted = np.concatenate([shares[:, :, k].ravel() for k in columns])
    happened = np.concatenate([np.tile(y == classes[k], len(shares)) for k in columns]).astype(float)
    bins = np.minimum((predicted * BINS).astype(int), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    some = count > 0
    mean_predicted = np.bincount(bins, predicted, BINS)[some] / count[some]
    return mean_predicted, np.bincount(bins, happened, BINS)[some] / count[some], count[some]


#: samples listed with the largest errors
WORST = 10
#: points drawn; a page with more is slow, and nobody sees them
MOST_POINTS = 2000


def residuals_section(subject: Subject) -> str:
    """Return held-out predictions and residuals of the first round; nothing where targets are no numbers."""
    refits = subject.refits
    if refits.classify or refits.y.dtype.names:
        return ""
    y = np.asarray(subject.y, dtype=float)
    predicted = refits.ours.predicted[0].astype(float)
    error = y - predicted
    order = np.argsort(-np.abs(error), kind="stable")[:WORST]
    rows = [[subject.names[i], float(y[i]), float(predicted[i]), float(error[i])] for i in order]
    step = max(1, -(-len(error) // MOST_POINTS))

    def draw(ax: Any) -> None:
        ax.axhline(0.0, color=ACCENT, linewidth=1.6)
        ax.plot(predicted[::step], error[::step], "o", color=INK, markersize=4, alpha=0.6)
        ax.set(xlabel="predicted", ylabel="residual")
        tidy(ax, "both")

    what = "Dots: residual of every held-out sample against its prediction"
    picture = drawn(draw, (WIDTH, 3.8), what, "residuals")
    return (
        '<h3 id="residuals">Residuals</h3><p>Held-out predictions of the first round. A band that bends, or widens to '
        "one side, is a sign of what the model has not learnt, or of targets that want a logarithm.</p>"
        + figure(picture, "Residual (target minus prediction) against prediction.")
        + table(["row", "target", "predicted", "residual"], rows, "The largest residuals")
    )


SUSPECTS = 20


def labels_section(subject: Subject) -> str:
    """Return suspects; nothing for a regression, and no suspects where the model does not beat guessing."""
    estimator, refits, y, names = subject.estimator, subject.refits, subject.y, subject.names
    if not refits.classify:
        return ""
    page = '<h2 id="labels">Labels to look at again</h2>'
    noisy = hasattr(estimator, "noise_rate_")
    if noisy:
        low, high = estimator.noise_rate_interval_
        page += (
            f"<p>About {percent(estimator.noise_rate_)} of the labels are thought to be wrong (between {percent(low)} "
            f"and {percent(high)}).{_suspected(estimator)}</p>"
        )
    if not refits.better_than_guessing:
        return page + (
            f"<p>None can be named: on held-out folds the model is not better beyond doubt than "
            f"“{refits.baseline.name}”, so what it contradicts says nothing about the labels.</p>"
        )
    if noisy:
        picture = drawn(
            lambda ax: NoiseDisplay.from_estimator(estimator, ax=ax, names=list(names)),
            (WIDTH, 3.8), "Curve: probability that each label is right, the most suspicious first", "noise",
        )  # fmt: skip
        page += figure(picture, "The most suspicious labels are on the left.")
    predicted = refits.ours.predicted[0]
    if hasattr(estimator, "label_quality_"):
        why = (
            "These are the labels that are the most likely to be wrong, by predictions that did not see them"
        )
        measure = "probability that the label is right"
        values, order = estimator.label_quality_, estimator.suspects_
        doubtful = values < 0.5
    else:
        why = "Each of these was predicted otherwise by a fit that did not see it"
        measure = "margin on the fold that left the row out"
        assert refits.ours.decision is not None
        values = leads_of(refits.ours.decision[0], np.searchsorted(estimator.classes_, y))
        order, doubtful = np.argsort(values, kind="stable"), values < 0
    rows = [
        [names[i], str(y[i]), str(predicted[i]), (float(values[i]), number(float(values[i]), 2))]
        for i in order[:SUSPECTS]
        if doubtful[i]
    ]
    if not rows:
        return page + "<p>No label is contradicted by the predictions for it.</p>"
    return (
        f"{page}<p>{why}. That is no proof of a wrong label: the sample may be unusual, or the model wrong.</p>"
        + table(["row", "label", "predicted", measure], rows, "The most suspicious first")
    )


def _suspected(estimator: Any) -> str:
    """Say how many labels the fit itself trusted less, where the method does that before it fits."""
    if estimator.method not in ("auto", "confident") or not hasattr(estimator, "sample_share_"):
        return ""
    number = int(np.count_nonzero(estimator.sample_share_ < 1))
    if not number:
        return " All labels count alike in the fit."
    weight = float(estimator.sample_share_.min())
    counted = "was left out of the fit" if weight == 0 else f"counts {weight:g} in the fit"
    return (
        f" Predictions that did not see them contradict {number} labels with confidence; each of these {counted}, all "
        "others count 1."
    )


#: patterns listed, the most frequent first
MOST_PATTERNS = 30


def missing_section(subject: Subject) -> str:
    """Return accuracy by pattern of views; nothing where no sample lacks one."""
    estimator, refits = subject.estimator, subject.refits
    fitted = known_views(estimator)
    views = None if fitted is None else fitted.bring(transformed(subject.model, subject.X))
    if views is None or views.complete:
        return ""
    known = getattr(estimator, "view_predictability_", {})
    counts = views.lacking()
    rows: list[list[Any]] = []
    for name in views.names:
        if counts.get(name) or name in known:
            r2 = float(known.get(name, np.nan))
            rows.append([name, int(counts.get(name, 0)), (r2, number(r2) if np.isfinite(r2) else "–")])
    sentence = (
        f"Samples that lack a view were completed in feature space (missing = {estimator.missing!r}). The R² says how "
        "much of a view’s features the other views predict when samples are left out in turn: near 0, completion is no "
        "better than the mean of the view."
    )
    patterns, inverse, sizes = np.unique(views.present, axis=0, return_inverse=True, return_counts=True)
    by_pattern: list[list[Any]] = []
    for q in np.argsort(-sizes, kind="stable")[:MOST_PATTERNS]:
        lacks = [name for name, here in zip(views.names, patterns[q], strict=True) if not here]
        name, *value = refits.among(inverse.ravel() == q)
        by_pattern.append([", ".join(lacks) or "nothing", int(sizes[q]), tuple(value)])
    return (
        f'<h2 id="missing">Missing views</h2><p>{escape(sentence)}</p>'
        + table(["view", "samples without it", "R² from the others"], rows, "Views and who lacks them")
        + table(["lacks", "samples", f"{name} on held-out folds"], by_pattern, "Patterns of missing views")
        + '<p class="quiet">Each sample was predicted by a fit that did not see it; a share of few samples is a rough '
        "one. Where all new samples lack a view, a model refitted without it is the better way "
        "(inspection.drop_view).</p>"
    )
