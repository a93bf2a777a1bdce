"""What a reader must know before any number: findings about the fit that put it in doubt."""

from __future__ import annotations

from html import escape

import numpy as np

from .._html import percent
from .._subject import Subject

__all__ = ["section", "warnings_of"]

#: share of predictions of one class from which on a model says next to nothing
NEARLY_ALWAYS = 0.95


def section(subject: Subject) -> str:
    """Return the findings; nothing where there are none."""
    sentences = warnings_of(subject)
    if not sentences:
        return ""
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<div class="warning" role="note"><h2 id="first">Read this first</h2><ul>{listed}</ul></div>'


def warnings_of(subject: Subject) -> list[str]:
    """Return the findings of the fit itself, then those of the held-out predictions."""
    estimator, refits = subject.estimator, subject.refits
    sentences = [str(sentence) for sentence in getattr(estimator, "findings_", ())]
    if estimator.status_ not in ("converged", "stationary"):
        sentences.append(
            f"The fit stopped early ({estimator.status_.replace('_', ' ')}): the certificate below is valid, but wider "
            "than asked for."
        )
    if not refits.better_than_guessing:
        sentences.append(_no_better(subject))
    if refits.classify:
        sentences += _one_class(subject)
    return sentences


def _no_better(subject: Subject) -> str:
    refits = subject.refits
    kind = refits.measures[1] if refits.classify else refits.main
    ours, theirs = (method.measures[kind.name] for method in (refits.ours, refits.baseline))
    return (
        f"On held-out folds the model is not better beyond doubt than “{refits.baseline.name}” ({kind.name} "
        f"{kind.shown(ours.mean)} against {kind.shown(theirs.mean)}): weights, views and features below describe a "
        "model that has not been shown to predict anything."
    )


def _one_class(subject: Subject) -> list[str]:
    """Name the class that is predicted nearly always, though it is not nearly always the label."""
    table = subject.refits.confusion
    predicted = table.sum(axis=0) / table.sum()
    k = int(np.argmax(predicted))
    label = float(np.mean(subject.y == subject.refits.classes[k]))  # type: ignore[index]
    if predicted[k] < NEARLY_ALWAYS or label >= NEARLY_ALWAYS:
        return []
    name = str(subject.refits.classes[k])  # type: ignore[index]
    return [
        f"Held-out samples are predicted as “{name}” in {percent(float(predicted[k]))} of the cases, and "
        f"{percent(label)} of the labels are “{name}”: look at the balanced accuracy, and try class_weight='balanced' "
        "(--class-weight balanced), a scoring that counts classes alike (--scoring balanced_accuracy), or a larger C."
    ]
