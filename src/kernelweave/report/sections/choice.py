"""How C and norm were chosen, and whether that was inside each fold."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

import numpy as np

from .._html import number, short, table
from .._subject import Subject

__all__ = ["section"]


def section(subject: Subject) -> str:
    """Say where C and norm come from; a table of the scores where they were chosen by cross-validation."""
    scores = _scores(subject.estimator)
    return f'<h3 id="choice">How C and norm were chosen</h3><p>{escape(_how(subject))}</p>{scores}'


def _how(subject: Subject) -> str:
    estimator, refits = subject.estimator, subject.refits
    C = _numbers(np.unique(np.atleast_1d(estimator.C_)))
    if getattr(estimator, "criterion", "convex") != "convex":
        return f"C = {C} and the weights were chosen by {estimator.criterion}, again inside each fold."
    if refits.chosen_inside:
        several = estimator.cv_results_["norm"].nunique() > 1
        what = "C and norm" if several else "C"
        chosen = Counter((choice.C, choice.norm) for choice in refits.choices)
        listed = ", ".join(
            f"C = {short(c)}" + (f" with {norm}" if several else "") + f" ({times} of {len(refits.choices)})"
            for (c, norm), times in chosen.most_common(4)
        )
        more = f", and {len(chosen) - 4} other choices" if len(chosen) > 4 else ""
        with_norm = f" and the norm {refits_norm(estimator)}" if several else ""
        return (
            f"{what} were chosen again inside each fold, by cross-validation on its training samples"
            f"{_scoring(estimator)}: the scores above are those of the whole procedure. On all samples C = {C}"
            f"{with_norm} {'were' if several else 'was'} chosen; the refits chose {listed}{more}."
        ).replace("C were", "C was", 1)
    if getattr(estimator, "method", None) in ("auto", "stochastic") or hasattr(estimator, "loo_errors_"):
        return f"C = {C} was chosen by the method itself, inside each fit."
    if subject.note.get("C by cross-validation"):
        return (
            f"C = {C} was chosen once, by cross-validation on all samples, and not again inside each fold: the scores "
            "above are a little too good."
        )
    return f"C = {C} and the norm were given, not chosen."


def refits_norm(estimator: Any) -> str:
    """Write the norm that was chosen."""
    norm = getattr(estimator, "norm_", estimator.norm)
    return str(getattr(norm, "label", norm))


def _scoring(estimator: Any) -> str:
    scoring = getattr(estimator, "scoring", None)
    return (
        f" ({scoring if isinstance(scoring, str) else 'a scoring of its own'})" if scoring is not None else ""
    )


def _scores(estimator: Any) -> str:
    results = getattr(estimator, "cv_results_", None)
    if results is None or not {"norm", "C", "score"} <= set(getattr(results, "columns", ())):
        return ""
    errors = "squared_error" in results
    by = results.groupby(["norm", "C"], sort=False)["score"].agg(["mean", "std"]).reset_index()
    if errors:
        by["error"] = results.groupby(["norm", "C"], sort=False)["squared_error"].mean().to_numpy()
    ties = getattr(estimator, "ties_", None)
    known = (
        {} if ties is None else dict(zip(zip(ties["norm"], ties["C"], strict=True), ties["tie"], strict=True))
    )
    chosen = (by["C"] == float(np.mean(estimator.C_))) & (by["norm"] == refits_norm(estimator))
    rows = [
        [
            str(row.norm),
            (row.C, short(row.C)),
            *([(row.error, short(row.error))] if errors else []),
            float(row.mean),
            (row.std, number(row.std)),
            "chosen" if is_it else known.get((row.norm, row.C), ""),
        ]
        for row, is_it in zip(by.itertuples(), chosen, strict=True)
    ]
    note = (
        '<p class="quiet">Scores of the search on all samples; the best of them is optimistic, because it was '
        "maximised. “Equal” and “within a standard error” (of the difference over the folds) are choices that the "
        f"scores do not tell from the one made. {_rule(estimator, errors)}</p>"
    )
    head = ["norm", "C", *(["squared error"] if errors else []), "score", "sd over folds", "choice"]
    return table(head, rows, "Cross-validation on all samples") + note


def _rule(estimator: Any, errors: bool) -> str:
    """Say how a tie was broken, where there was one."""
    if errors:
        return "The least squared error decided."
    ties = getattr(estimator, "ties_", None)
    if ties is None or not (ties["tie"] == "equal").any():
        return ""
    loss = "log loss" if hasattr(estimator, "classes_") else "squared error"
    return f"Of equal scores the one with the smallest {loss} of the held-out samples was taken."


def _numbers(values: Any) -> str:
    return ", ".join(short(value) for value in values)
