"""Sections on what would change: the weights with C, the accuracy with fewer views."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...displays.colours import ACCENT, FAINT, INK, LINES, shorten, tidy
from ...estimators.fitted import weight_origin
from ...estimators.subsets import SubsetFits
from ...inspection import kernel_views, view_subsets
from ...inspection.subsets import MOST_VIEWS
from ...inspection.views import as_shares, transformed
from .._html import TEXT, WIDTH, drawn, figure, number, short, table
from .._refits import Subject

#: of the chosen C
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: samples up to which the fits are made
MOST_SAMPLES = 3000
#: views listed, the heaviest first
VIEWS_OF_SENSITIVITY = 8
#: choices that the scores do not tell apart of which each has a row; more are put together by norm
MOST_TIES = 12


def sensitivity_section(subject: Subject) -> str:
    """Return weights of views at choices that the scores do not tell apart, and along C around the chosen one."""
    parts = _among_ties(subject) + _along_C(subject)
    return f'<h2 id="sensitivity">How the weights depend on C</h2>{parts}' if parts else ""


def _among_ties(subject: Subject) -> str:
    """Return the weights at every choice that scores as well as the one made; by norm where these are many."""
    ties = subject.ties
    if ties is None:
        return ""
    chosen = int(np.argmax(ties.choices["tie"] == "chosen"))
    order = np.argsort(-ties.shares[chosen], kind="stable")[:VIEWS_OF_SENSITIVITY]
    changes = "Nothing is concluded on this page from what changes among them."
    if ties.settled:
        changes = "The weights hardly change among them."
    sentence = f"The cross-validated scores do not tell {ties.of_what} apart; the fit is one of them."
    heads = [ties.names[v] for v in order]
    rows: list[list[Any]] = []
    if len(ties.choices) <= MOST_TIES:
        head = ["norm", "C", "score", "choice", *heads]
        for i, row in enumerate(ties.choices.itertuples()):
            C = (row.C, short(row.C) + (" (this fit)" if i == chosen else ""))
            shares = [float(ties.shares[i, v]) for v in order]
            rows.append([str(row.norm), C, (row.score, number(row.score)), str(row.tie), *shares])
    else:
        head = ["norm", "C", "values of C", "score", *heads]
        for norm, those in ties.choices.groupby("norm", sort=False):
            Cs, scores, part = those["C"], those["score"], ties.shares[those.index][:, order]
            C = (Cs.min(), f"{short(Cs.min())} – {short(Cs.max())}")
            ends = [(scores.min(), scores.max()), *zip(part.min(axis=0), part.max(axis=0), strict=True)]
            spread = [(high, f"{number(low)} – {number(high)}") for low, high in ends]
            rows.append([str(norm), C, len(those), *spread])
    caption = "Weights of the views at choices that the scores do not tell apart"
    return f"<p>{escape(sentence)} {changes}</p>" + table(head, rows, caption)


def _along_C(subject: Subject) -> str:
    """Return refits along C; nothing where there is a single view, or C is none of one mixture."""
    learnt = weight_origin(subject.estimator).learnt
    views = np.array([str(view) for view in kernel_views(subject.model)], dtype=object)[learnt]
    names = list(dict.fromkeys(views.tolist()))
    one_C = np.unique(np.atleast_1d(subject.estimator.C_)).size == 1
    learns_one = subject.fits_subsets and one_C
    if len(names) < 2 or len(subject.y) > MOST_SAMPLES or not learns_one:
        return ""
    C = float(np.mean(subject.estimator.C_))
    Cs, weights = weights_along_C(subject, C)
    weights = as_shares(weights[:, learnt])
    by_view = np.stack([weights[:, views == name].sum(axis=1) for name in names], axis=1)
    order = np.argsort(-by_view[FACTORS.index(1.0)], kind="stable")[:VIEWS_OF_SENSITIVITY]
    heads = [names[v] for v in order]
    rows = []
    for factor, value, shares in zip(FACTORS, Cs, by_view[:, order], strict=True):
        shown = short(value) + (" (this fit)" if factor == 1.0 else "")
        rows.append([(value, shown), *map(float, shares)])
    most = int(np.argmax(np.ptp(by_view, axis=0)))
    sentence = (
        f"Refits on all samples with C from a tenth to ten times that of this fit. The weight that changes the most is "
        f"that of “{names[most]}”, from {by_view[:, most].min():.2f} to {by_view[:, most].max():.2f}: a ranking of "
        "views that holds along the whole line does not hang on the choice of C."
    )
    colours, markers = (INK, ACCENT, TEXT), "osD^vP*X"

    def draw(ax: Any) -> None:
        ax.axvline(C, color=FAINT, linewidth=3.0)
        for v, name in enumerate(heads):
            ax.plot(
                Cs, by_view[:, order[v]], label=shorten(name, 34), color=colours[v % len(colours)],
                linestyle=LINES[v % len(LINES)], linewidth=1.6, marker=markers[v % len(markers)], markersize=5,
            )  # fmt: skip
        ax.set(xscale="log", xlabel="C", ylabel="weight")
        ax.set_ylim(bottom=0.0)
        ax.set_xticks(Cs, [short(value) for value in Cs])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        tidy(ax, "y")

    what = "Curves: weight of each view against C; the table below has the numbers"
    picture = drawn(draw, (WIDTH, 3.4), what, "sensitivity")
    return (
        f"<p>{escape(sentence)}</p>"
        + figure(picture, "Weights of the views; the line marks C of this fit.")
        + table(["C", *heads], rows, "Weights of the views along C")
    )


def weights_along_C(subject: Subject, C: float) -> tuple[Any, Any]:
    """Return values of C around the given one, and the kernel weights of refits on all samples, as shares."""
    Cs = C * np.array(FACTORS)
    fits = SubsetFits(subject.estimator, transformed(subject.model, subject.X), subject.y)
    return Cs, fits.weights_along(Cs)


def subsets_of_views(subject: Subject) -> tuple[Any, str]:
    """Return the scores of every subset of two to five views, and which of the views is worth its cost."""
    if "subsets" not in subject.found:
        refits, subsets, worth = subject.refits, None, ""
        names = list(dict.fromkeys(str(view) for view in kernel_views(subject.model)))
        few = 2 <= len(names) <= MOST_VIEWS and len(subject.y) <= MOST_SAMPLES
        if subject.fits_subsets and few:
            splits = refits.splits[: refits.folds]
            subsets = view_subsets(subject.model, subject.X, subject.y, splits=splits)
            worth = _worth(subject, subsets, names)
        subject.found["subsets"] = subsets, worth
    found: tuple[Any, str] = subject.found["subsets"]
    return found


def subsets_section(subject: Subject) -> str:
    """Return the accuracy of every subset of two to five views."""
    refits, (subsets, worth) = subject.refits, subsets_of_views(subject)
    if subsets is None:
        return ""
    shown = refits.main.shown
    rows = [
        [row.views, int(row.kernels), (row.score, shown(row.score)), (row.sd, number(row.sd)),
         (row.seconds, number(row.seconds))]
        for row in subsets.itertuples()
    ]  # fmt: skip
    head = ["views", "kernels", refits.main.name, "sd over folds", "seconds of a fit"]
    differ = (
        " C is that of the whole fit here, and there is one round of folds: the numbers differ a little from those of "
        "“How good it is”."
    )
    return (
        '<h2 id="subsets">Which views are worth measuring</h2><p>The same model on every subset of its views, on the '
        f"{refits.folds} folds of the first round. A subset that does as well as all views together saves the cost of "
        f"the others; differences well below the spread over folds mean nothing.{differ}</p>"
        + f"<p>{escape(worth)}</p>"
        + table(head, rows, "Subsets of views, the best first")
    )


def _worth(subject: Subject, subsets: Any, names: list[str]) -> str:
    """Say whether there is a view that the model does as well without, at every choice that the scores leave open."""
    shown = subject.refits.main.shown
    scores = dict(zip(subsets["views"], subsets["score"], strict=True))
    whole = scores[", ".join(names)]
    without = np.array([scores[", ".join(other for other in names if other != name)] for name in names])
    # what always counts is there to adjust for, however well the model does without it
    learnt = weight_origin(subject.estimator)
    views = np.array([str(view) for view in kernel_views(subject.model)], dtype=object)
    given = np.array([not (learnt.nothing or learnt.learnt[views == name].any()) for name in names])
    without[given] = -np.inf
    least = int(np.argmax(without))
    name, of_least = names[least], float(without[least])
    here, elsewhere = _at_tied_choices(subject, names)
    for found in elsewhere:
        found[2][given] = -np.inf
    also, with_all = "", f"{shown(whole)} with all views"
    if elsewhere:
        others = " and ".join(which for which, *_ in elsewhere)
        others = others if len(elsewhere) <= 2 else f"{len(elsewhere)} others"
        also = f"; the same holds at {others} of the choices that the scores do not tell from this one"
    if of_least >= whole:
        contrary = next((found for found in elsewhere if found[2][least] < found[1]), None)
        if contrary is None:
            return (
                f"Without {name!r} the model does as well on held-out samples ({shown(of_least)}, and {with_all}{also}"
                "): the view need not be measured for this purpose, and a refit without it (inspection.drop_view) no "
                "longer asks for it."
            )
        which, all_, left = contrary
        return (
            f"Whether {name!r} is needed is not decided: without it the model does as well at {here} "
            f"({shown(of_least)}, and {with_all}), but not at {which} ({shown(float(left[least]))}, and {shown(all_)} "
            "with all views), and the cross-validated scores do not tell these choices apart."
        )
    contrary = next((found for found in elsewhere if np.any(found[2] >= found[1])), None)
    if contrary is not None:
        which, all_, left = contrary
        return (
            f"Whether every view is needed is not decided: at {here} each helps ({shown(of_least)} without {name!r}, "
            f"{with_all}), but at {which}, which the cross-validated scores do not tell from it, the model does as "
            f"well without {names[int(np.argmax(left))]!r} ({shown(float(left.max()))}, and {shown(all_)} with all "
            "views)."
        )
    costs = f"{name!r} is the one whose loss costs least ({shown(of_least)} without it, {with_all}{also})"
    return f"Every view helps: {costs}."


def _at_tied_choices(subject: Subject, names: list[str]) -> tuple[str, list[tuple[str, float, Any]]]:
    """Return what the choice is called, and the scores with all views and without each at others that score as well.

    Of every norm these are the smallest and the largest C.
    """
    ties = subject.ties
    if ties is None:
        return "", []
    several = ties.choices["norm"].nunique() > 1

    def called(norm: str, C: float) -> str:
        return f"C = {short(C)}" + (f" with norm {norm}" if several else "")

    chosen = ties.choices[ties.choices["tie"] == "chosen"].iloc[0]
    ends = ties.choices.groupby("norm", sort=False)["C"].agg(["min", "max"])
    pairs = dict.fromkeys((str(row.Index), float(C)) for row in ends.itertuples() for C in (row.min, row.max))
    pairs.pop((chosen["norm"], chosen["C"]), None)
    views = np.array([str(view) for view in kernel_views(subject.model)], dtype=object)
    subsets = [np.arange(views.size), *(np.flatnonzero(views != name) for name in names)]
    fits = SubsetFits(subject.estimator, transformed(subject.model, subject.X), subject.y)
    splits, found = subject.refits.splits[: subject.refits.folds], []
    for pair in pairs:
        means = fits.scores(subsets, splits, pair)[0].mean(axis=1)
        found.append((called(*pair), float(means[0]), means[1:]))
    return called(chosen["norm"], chosen["C"]), found
