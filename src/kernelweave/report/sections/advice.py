"""The box that says what to do next, from what the other sections found."""

from __future__ import annotations

from html import escape

import numpy as np

from ..._numerics.significance import corrected_t_test
from ...estimators.fitted import weight_origin
from .._html import number
from .._refits import Subject
from .sensitivity import subsets_of_views

#: range of a view's weight over the refits from which its weight is said to hang on the samples
WIDE = 0.3


def next_section(subject: Subject) -> str:
    """Return one sentence each on samples, views, labels and norms; only the first where the model predicts nothing."""
    advice = {"Samples": _samples(subject)}
    if subject.refits.better_than_guessing:
        advice |= {"Views": _views(subject), "Labels": _labels(subject), "Norm": _norm(subject)}
    listed = "".join(f"<dt>{what}</dt><dd>{text}</dd>" for what, text in advice.items() if text)
    return f'<div class="next"><h2 id="next">What next</h2><dl>{listed}</dl></div>' if listed else ""


def _samples(subject: Subject) -> str:
    """Say whether more samples are likely to help: fits on all training samples of a fold against half of them."""
    refits = subject.refits
    kind, half = refits.main, np.array(refits.halves, dtype=float)
    whole = np.array(refits.ours.scores[kind.name][: len(half)])
    known = np.isfinite(half) & np.isfinite(whole)
    if known.sum() < 2:
        return ""
    train, test = refits.splits[0]
    p = corrected_t_test(whole[known], half[known], len(test) / len(train))
    small, large = float(half[known].mean()), float(whole[known].mean())
    more = (
        "more samples are likely to help"
        if p < 0.05 and large > small
        else "that more would help is not shown"
    )
    return escape(
        f"The {kind.name} is {kind.shown(small)} with half of the training samples, {kind.shown(large)} with all of "
        f"them (p = {number(p)}): {more}."
    )


def _views(subject: Subject) -> str:
    """Say which view can be left out, or how many have no weight."""
    if subject.setting is not None:  # the views of one side only
        return ""
    subsets, worth = subsets_of_views(subject)
    if subsets is not None:
        return f'{escape(worth)} <a href="#subsets">Subsets</a>.'
    views, ties = subject.refits.stability.by_view(), subject.ties
    idle = int(np.sum((views["selected"] == 0) & (views["weight"] == 0)))
    if not idle or weight_origin(subject.estimator).nothing or not (ties is None or ties.settled):
        return ""
    return f"{idle} of {len(views)} views have no weight in this fit and in no refit: this model does not need them."


def _labels(subject: Subject) -> str:
    """Say how many labels held-out predictions contradict in every round."""
    refits = subject.refits
    if not refits.classify:
        return ""
    wrong = int(np.sum(refits.right(refits.ours) == 0))
    rounds = {1: "", 2: " in both rounds of folds"}.get(
        refits.rounds, f" in all {refits.rounds} rounds of folds"
    )
    if not wrong:
        return ""
    many = "1 sample is" if wrong == 1 else f"{wrong} samples are"
    return f'{many} predicted otherwise than labelled{rounds}: <a href="#labels">look at these labels</a>.'


def _norm(subject: Subject) -> str:
    """Say where another norm suggests itself: equal weights are better, or a sparse fit picks by chance."""
    refits, origin = subject.refits, weight_origin(subject.estimator)
    mean = next((method for method in refits.methods if method.name == "mean kernel"), None)
    if mean is None or origin.nothing:
        return ""
    ours, theirs = (method.measures[refits.main.name] for method in (refits.ours, mean))
    if theirs.p_value < 0.05 and theirs.mean > ours.mean:
        return "Equal weights are better here: try norm 2, or uniform."
    if subject.setting is not None:
        return ""
    views = refits.stability.among(origin.learnt).by_view()
    sparse = bool(np.any(refits.stability.reference[origin.learnt] == 0))
    if sparse and len(views) > 1 and float((views["high"] - views["low"]).max()) > WIDE:
        return "The weights of views change much from refit to refit: norm 2 shares weight among those that are alike."
    return ""
