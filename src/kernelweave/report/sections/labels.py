"""Labels to look at again: those that held-out predictions contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...displays import NoiseDisplay
from .._drawing import WIDTH, drawn
from .._html import figure, number, percent, table
from .._subject import Subject

__all__ = ["Suspect", "section", "suspects_of"]

SUSPECTS = 20


@dataclass(frozen=True)
class Suspect:
    """A training label that may be wrong."""

    row: str
    label: str
    other: str
    evidence: float


def section(subject: Subject) -> str:
    """Return suspects; nothing for a regression, and no suspects where the model does not beat guessing."""
    estimator, refits = subject.estimator, subject.refits
    if not refits.classify:
        return ""
    parts = ['<h2 id="labels">Labels to look at again</h2>']
    if hasattr(estimator, "noise_rate_"):
        low, high = estimator.noise_rate_interval_
        parts.append(
            f"<p>About {percent(estimator.noise_rate_)} of the labels are thought to be wrong (between {percent(low)} "
            f"and {percent(high)}).{_suspected(estimator)}</p>"
        )
    if not refits.better_than_guessing:
        parts.append(
            f"<p>None can be named: on held-out folds the model is not better beyond doubt than "
            f"“{refits.baseline.name}”, so what it contradicts says nothing about the labels.</p>"
        )
        return "".join(parts)
    if hasattr(estimator, "noise_rate_"):
        parts.append(
            figure(_picture(estimator, subject.names), "The most suspicious labels are on the left.")
        )
    suspects = suspects_of(subject)
    if not suspects:
        return "".join([*parts, "<p>No label is contradicted by the predictions for it.</p>"])
    known = hasattr(estimator, "label_quality_")
    why = (
        "These are the labels that are the most likely to be wrong, by predictions that did not see them"
        if known
        else "Each of these was predicted otherwise by a fit that did not see it"
    )
    evidence = "probability that the label is right" if known else "margin on the fold that left the row out"
    rows = [[s.row, s.label, s.other, (s.evidence, number(s.evidence, 2))] for s in suspects]
    return "".join(
        [
            *parts,
            f"<p>{why}. That is no proof of a wrong label: the sample may be unusual, or the model wrong.</p>",
            table(["row", "label", "predicted", evidence], rows, "The most suspicious first"),
        ]
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


def suspects_of(subject: Subject) -> list[Suspect]:
    """Return the labels that a method for noise suspects, or that held-out margins contradict, worst first."""
    estimator, y, names = subject.estimator, subject.y, subject.names
    predicted = subject.refits.ours.predicted[0]
    if hasattr(estimator, "label_quality_"):
        evidence, order = estimator.label_quality_, estimator.suspects_
        doubtful = evidence < 0.5
    else:
        decision = subject.refits.ours.decision
        assert decision is not None
        evidence = _margins(decision[0], np.searchsorted(estimator.classes_, y))
        order, doubtful = np.argsort(evidence, kind="stable"), evidence < 0
    return [
        Suspect(names[i], str(y[i]), str(predicted[i]), float(evidence[i]))
        for i in order[:SUSPECTS]
        if doubtful[i]
    ]


def _margins(values: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """How clearly held-out decisions agree with the labels; negative where they contradict them."""
    if values.ndim == 1:
        return np.where(codes == 1, values, -values)
    rows = np.arange(len(codes))
    others = values.copy()
    others[rows, codes] = -np.inf
    return np.asarray(values[rows, codes] - others.max(axis=1))


def _picture(estimator: Any, names: Any) -> str:
    """Label quality, the most suspicious first."""
    return drawn(
        lambda ax: NoiseDisplay.from_estimator(estimator, ax=ax, names=list(names)),
        (WIDTH, 3.8), "Curve: probability that each label is right, the most suspicious first", "noise",
    )  # fmt: skip
