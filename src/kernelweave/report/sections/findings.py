"""What a reader must know before any number: findings about the fit that put it in doubt."""

from __future__ import annotations

from collections import Counter
from html import escape

import numpy as np

from ..._estimating.findings import constant_prediction
from .._subject import Subject

__all__ = ["section", "warnings_of"]


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
    early = Counter(status for status in refits.statuses if status not in ("converged", "stationary"))
    if early:
        why = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in early.most_common())
        sentences.append(
            f"{early.total()} of {len(refits.statuses)} refits on folds stopped early ({why}): the held-out numbers, "
            "the range of the weights and the p-values below are partly those of fits that are not done."
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
    """Say where one class is predicted for nearly every held-out sample, if the fit itself has not said so."""
    refits = subject.refits
    assert refits.classes is not None
    if any(
        sentence.startswith("The model predicts class")
        for sentence in getattr(subject.estimator, "findings_", ())
    ):
        return []
    codes, predicted = (
        np.searchsorted(refits.classes, labels.astype(refits.classes.dtype))
        for labels in (subject.y, refits.ours.predicted[0])
    )
    everything = np.ones(len(codes), dtype=bool)
    sentence = constant_prediction(predicted, codes, refits.classes, everything, "held-out")
    return [] if sentence is None else [sentence]
