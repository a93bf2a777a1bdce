"""Sections on the fit itself: findings, summary, certificate, how C and norm were chosen, how to repeat it."""

from __future__ import annotations

import platform
from collections import Counter
from html import escape
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np

from ..._estimating import ONE_CLASS, constant_prediction, in_words
from ...displays import ConvergenceDisplay
from ...estimators.fitted import WeightOrigin, weight_origin
from .._html import WIDTH, drawn, figure, folded, number, percent, short, table
from .._refits import Measured, Refits, Subject


def findings_section(subject: Subject) -> str:
    """Return the findings of the fit itself, then those of the held-out predictions; nothing where there are none."""
    estimator, refits = subject.estimator, subject.refits
    sentences = [str(sentence) for sentence in getattr(estimator, "findings_", ())]
    says_one_class = any(sentence.startswith(ONE_CLASS) for sentence in sentences)
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
        kind = refits.measures[1] if refits.classify else refits.main
        ours, theirs = (method.measures[kind.name] for method in (refits.ours, refits.baseline))
        sentences.append(
            f"On held-out folds the model is not better beyond doubt than “{refits.baseline.name}” ({kind.name} "
            f"{kind.shown(ours.mean)} against {kind.shown(theirs.mean)}): weights, views and features below describe a "
            "model that has not been shown to predict anything."
        )
    if refits.classes is not None and not says_one_class:
        codes, predicted = (
            np.searchsorted(refits.classes, labels.astype(refits.classes.dtype))
            for labels in (subject.y, refits.ours.predicted[0])
        )
        everything = np.ones(len(codes), dtype=bool)
        sentence = constant_prediction(predicted, codes, refits.classes, everything, "held-out")
        sentences += [] if sentence is None else [sentence]
    if not sentences:
        return ""
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<div class="warning" role="note"><h2 id="first">Read this first</h2><ul>{listed}</ul></div>'


#: views named where none has the most weight throughout
MOST_VIEWS = 4


def summary_section(subject: Subject) -> str:
    """Return the tiles, and what they say in words."""
    refits, certificate = subject.refits, subject.estimator.certificate_
    kind, ours = refits.main, refits.ours
    used, m = int(np.count_nonzero(refits.stability.reference)), len(refits.stability.kernel_names)
    origin = weight_origin(subject.estimator)
    reach = interval(ours.measures[kind.name], refits)
    cards = [(kind.shown(ours.measures[kind.name].mean), f"{kind.name} on held-out folds, {reach}")]
    if refits.classify:
        balanced = refits.measures[1]
        guessing = balanced.shown(refits.baseline.measures[balanced.name].mean)
        words = f"{balanced.name}; the {refits.baseline.name} has {guessing}"
        cards.append((balanced.shown(ours.measures[balanced.name].mean), words))
    for method in (refits.baseline, refits.methods[1]):
        cards.append((kind.shown(method.measures[kind.name].mean), f"{method.name}, on the same folds"))
    cards += [
        (f"{used} of {m}", "kernels have weight" + (", none of it learnt" if origin.nothing else "")),
        (f"{certificate.percent} %", "at most from the optimum of this problem, proved"),
    ]
    listed = "".join(f"<li><b>{escape(b)}</b>{escape(text)}</li>" for b, text in cards)
    text = "".join(
        f"<p>{escape(p)}</p>" for p in (_views(subject, m, origin), _compared(subject, origin)) if p
    )
    return f'<h2 id="learnt">What was learnt</h2><ul class="cards">{listed}</ul>{text}'


def interval(measured: Measured, refits: Refits) -> str:
    """Write the interval of the main measure."""
    return f"{refits.main.shown(measured.low)} to {refits.main.shown(measured.high)}"


def _views(subject: Subject, m: int, origin: WeightOrigin) -> str:
    """Say which view has the most learnt weight, as far as the choices that the scores leave open agree on it."""
    refits, ties = subject.refits, subject.ties
    if origin.nothing:
        return f"{origin.sentence} They say nothing about which views or kernels matter."
    if subject.setting is not None:
        return ""  # there are two sides
    views = refits.stability.among(origin.learnt).by_view().sort_values("weight", ascending=False)
    if len(refits.stability.view_names) <= 1:
        return f"All {m} kernels look at the same features."
    top = views.iloc[0]
    before, weight = (f"{origin.sentence} ", "learnt weight") if origin.sentence else ("", "weight")
    tied, among, ranges = "", "", {}
    if ties is not None:
        tied = f"the {ties.of_what} that the cross-validated scores do not tell apart"
        ranges = {name: f"{percent(a, 0)} to {percent(b, 0)}" for name, (a, b) in ties.ranges.items()}
    if ties is None or ties.leader == top["view"]:
        if ties is not None:
            among = f"; {ranges[str(ties.leader)]} among {tied}"
        return (
            f"{before}The view with the most {weight} is “{top['view']}”, with {percent(top['weight'], 0)} of it "
            f"(range of the {len(refits.stability.weights)} refits: {percent(top['low'], 0)} to "
            f"{percent(top['high'], 0)}{among})."
        )
    order = sorted(ties.names, key=lambda name: -ties.ranges[name][1])[:MOST_VIEWS]
    listed = ", ".join(f"“{name}” has {ranges[name]} of the {weight}" for name in order)
    return f"{before}Which view has the most {weight} is not decided: among {tied}, {listed}."


def _compared(subject: Subject, origin: WeightOrigin) -> str:
    """Say in one sentence how the model does beside simpler ones; only one that left kernels out adds to that."""
    refits = subject.refits
    measured = {method.name: method.measures[refits.main.name] for method in refits.methods[1:-1]}
    name = max(measured, key=lambda name: measured[name].mean)
    best, p = measured[name], number(measured[name].p_value)
    if best.p_value < 0.05:
        better = refits.ours.measures[refits.main.name].mean > best.mean
        return f"On held-out folds the model is {'better' if better else 'worse'} than the {name} (p = {p})."
    left_out = np.any(refits.stability.reference[origin.learnt] == 0.0)
    settled = subject.ties is None or subject.ties.settled
    adds = ""
    if refits.better_than_guessing and left_out and settled:
        adds = ": what it adds is the knowledge of which kernels were needed"
    return f"On held-out folds the model cannot be told from the {name} (p = {p}){adds}."


def convergence_section(subject: Subject) -> str:
    """Return the certificate; a picture where the fit has a trace."""
    estimator = subject.estimator
    certificate = estimator.certificate_
    proved = str(certificate)
    sentence = (
        f"{proved[:1].upper()}{proved[1:]}. That is a proof about the optimisation, which anyone can recompute from "
        "the coefficients; other norms and other values of C are other problems, and how good the model is on new "
        "data is the question of “How good it is”."
    )
    if hasattr(estimator, "objectives_"):
        sentence += (
            " The method chooses samples as it goes: the proof is for the last choice, not for all of them."
        )
    if estimator.status_ == "stationary":
        sentence += (
            f" The weights themselves were chosen by {estimator.criterion}, which is not a convex problem: they are "
            "known to be stationary, not to be the best."
        )
    rounds = f"{estimator.n_iter_} iteration{'s' if estimator.n_iter_ != 1 else ''}"
    facts = (
        f"The solver {estimator.solver_} took {rounds} and {estimator.n_passes_:.1f} passes over the kernels "
        f"({estimator.status_.replace('_', ' ')})."
    )
    if hasattr(estimator, "decision_"):  # models of earlier versions do not say why
        facts += f" Decided: {estimator.decision_}."
    page = f'<h2 id="convergence">How close to optimal</h2><p class="note">{escape(sentence)}</p><p>{escape(facts)}</p>'
    if getattr(estimator, "trace_", None) is None:
        return page
    several = "problem" in estimator.trace_  # the gaps of all instead of bounds
    picture = drawn(
        lambda ax: ConvergenceDisplay.from_estimator(estimator, ax=ax, kind="gap" if several else "bounds"),
        (WIDTH, 3.4), "Curves: the objective falls and its proved lower bound rises until they meet", "convergence",
    )  # fmt: skip
    return page + figure(picture, "Upper and lower bound of the optimal value as the fit went on.")


def choice_section(subject: Subject) -> str:
    """Say where C and norm come from; a table of the scores where they were chosen by cross-validation."""
    scores = _scores(subject.estimator)
    return f'<h3 id="choice">How C and norm were chosen</h3><p>{escape(_how(subject))}</p>{scores}'


def _how(subject: Subject) -> str:
    estimator, refits = subject.estimator, subject.refits
    C = ", ".join(short(value) for value in np.unique(np.atleast_1d(estimator.C_)))
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
        scoring = getattr(estimator, "scoring", None)
        by = scoring if isinstance(scoring, str) else "a scoring of its own"
        by = "" if scoring is None else f" ({by})"
        with_norm = f" and the norm {_norm_of(estimator)}" if several else ""
        return (
            f"{what} were chosen again inside each fold, by cross-validation on its training samples"
            f"{by}: the scores above are those of the whole procedure. On all samples C = {C}"
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


def _norm_of(estimator: Any) -> str:
    norm = getattr(estimator, "norm_", estimator.norm)
    return str(getattr(norm, "label", norm))


def _scores(estimator: Any) -> str:
    results = getattr(estimator, "cv_results_", None)
    if results is None or not {"norm", "C", "score"} <= set(getattr(results, "columns", ())):
        return ""
    error = getattr(getattr(estimator, "loss_", None), "error", "squared_error")
    errors = error in results
    by = results.groupby(["norm", "C"], sort=False)["score"].agg(["mean", "std"]).reset_index()
    if errors:
        by["error"] = results.groupby(["norm", "C"], sort=False)[error].mean().to_numpy()
    ties = getattr(estimator, "ties_", None)
    known = {} if ties is None else ties.set_index(["norm", "C"])["tie"].to_dict()
    chosen = (by["C"] == float(np.mean(estimator.C_))) & (by["norm"] == _norm_of(estimator))
    rows: list[list[Any]] = []
    for row, is_it in zip(by.itertuples(), chosen, strict=True):
        cells: list[Any] = [str(row.norm), (row.C, short(row.C))]
        cells += [(row.error, short(row.error))] if errors else []
        choice = "chosen" if is_it else known.get((row.norm, row.C), "")
        rows.append([*cells, float(row.mean), (row.std, number(row.std)), choice])
    rule = ""  # how a tie was broken, where there was one
    if errors:
        rule = f"The least {in_words(error)} decided."
    elif ties is not None and (ties["tie"] == "equal").any():
        loss = "log loss" if hasattr(estimator, "classes_") else in_words(error)
        rule = f"Of equal scores the one with the smallest {loss} of the held-out samples was taken."
    note = (
        '<p class="quiet">Scores of the search on all samples; the best of them is optimistic, because it was '
        "maximised. “Equal” and “within a standard error” (of the difference over the folds) are choices that the "
        f"scores do not tell from the one made. {rule}</p>"
    )
    head = ["norm", "C", *([in_words(error)] if errors else []), "score", "sd over folds", "choice"]
    return folded(
        f"The scores of all {len(rows)} settings", table(head, rows, "Cross-validation on all samples") + note
    )


LIBRARIES = ("kernelweave", "scikit-learn", "numpy", "numba")


def settings_section(subject: Subject) -> str:
    """Return the command and the settings."""
    estimator, refits, note = subject.estimator, subject.refits, subject.note
    # the parameters that are not its defaults; the kernels have a table of their own
    defaults = {name: one.default for name, one in signature(type(estimator)).parameters.items()}
    changed = [
        f"{name}={value!r}"
        for name, value in estimator.get_params(deep=False).items()
        if name not in ("kernels", "verbose") and repr(value) != repr(defaults.get(name))
    ]
    facts = {
        "model": f"{type(estimator).__name__}({', '.join(['kernels', *changed])})",
        "C": np.array2string(np.asarray(estimator.C_), precision=6) if hasattr(estimator, "C_") else "",
        "samples": str(len(subject.y)),
        "kernels": f"{len(estimator.kernel_names_)}, normalisation {estimator.normalize or 'none'}"
        f"{', centred' if estimator.center else ''}",
        "stopping": f"relative gap of {estimator.tol:g}",
        "folds of this page": f"{refits.folds} x {refits.rounds}, random state {subject.seed}"
        + (", whole groups" if subject.groups is not None else ""),
        "versions": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        "machine": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    }
    for key in ("data", "target", "time", "strata", "id"):
        if note.get(key):
            facts[key] = str(note[key])
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
    command = f"<pre>{escape(note['command'])}</pre>" if note.get("command") else ""
    return f'<h2 id="repeat">To repeat this</h2>{command}<dl>{listed}</dl>'
