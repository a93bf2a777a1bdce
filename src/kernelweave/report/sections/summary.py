"""What was learnt, in four numbers and a few sentences."""

from __future__ import annotations

from html import escape

import numpy as np

from ...inspection import TiedViews
from .._html import number, percent
from .._measures import Measured
from .._refits import Refits
from .._subject import Subject

__all__ = ["interval", "section"]

#: views named where none has the most weight throughout
MOST_VIEWS = 4


def section(subject: Subject) -> str:
    """Return the tiles, and what they say in words."""
    refits, certificate = subject.refits, subject.estimator.certificate_
    kind = refits.main
    used, m = int(np.count_nonzero(refits.stability.reference)), len(refits.stability.kernel_names)
    gap = 100 * max(certificate.relative_gap, 0.0)
    cards = [_scored(refits, 0), _scored(refits, len(refits.methods) - 1), _scored(refits, 1)]
    if refits.classify:
        balanced = refits.measures[1]
        ours = refits.ours.measures[balanced.name]
        guessing = refits.baseline.measures[balanced.name]
        words = f"{balanced.name}; the {refits.baseline.name} has {balanced.shown(guessing.mean)}"
        cards.insert(1, (balanced.shown(ours.mean), words))
    cards += [
        (f"{used} of {m}", "kernels have weight"),
        (f"{gap:.2g} %", "at most from the optimum, proved"),
    ]
    cards[0] = (
        cards[0][0],
        f"{kind.name} on held-out folds, {interval(refits.ours.measures[kind.name], refits)}",
    )
    listed = "".join(f"<li><b>{escape(b)}</b>{escape(text)}</li>" for b, text in cards)
    text = "".join(f"<p>{escape(p)}</p>" for p in (_views(subject, m), _verdict(subject)))
    return f'<h2 id="learnt">What was learnt</h2><ul class="cards">{listed}</ul>{text}'


def interval(measured: Measured, refits: Refits) -> str:
    """Write the interval of the main measure."""
    return f"{refits.main.shown(measured.low)} to {refits.main.shown(measured.high)}"


def _scored(refits: Refits, k: int) -> tuple[str, str]:
    method = refits.methods[k]
    return refits.main.shown(method.mean), f"{method.name}, on the same folds"


def _views(subject: Subject, m: int) -> str:
    """Say which view has the most weight, as far as that does not hang on a choice that the scores leave open."""
    refits, ties = subject.refits, subject.ties
    views = refits.stability.by_view().sort_values("weight", ascending=False)
    if len(views) <= 1:
        return f"All {m} kernels look at the same features."
    top = views.iloc[0]
    if ties is None or ties.leader == top["view"]:
        among = "" if ties is None else f"; {_range(ties, ties.leader)} among {_tied(ties)}"
        return (
            f"The view with the most weight is “{top['view']}”, with {percent(top['weight'], 0)} of it (range of the "
            f"{len(refits.stability.weights)} refits: {percent(top['low'], 0)} to {percent(top['high'], 0)}{among})."
        )
    order = sorted(ties.names, key=lambda name: -ties.ranges[name][1])[:MOST_VIEWS]
    listed = ", ".join(f"“{name}” has {_range(ties, name)} of the weight" for name in order)
    return f"Which view has the most weight is not decided: among {_tied(ties)}, {listed}."


def _range(ties: TiedViews, name: str | None) -> str:
    low, high = ties.ranges[str(name)]
    return f"{percent(low, 0)} to {percent(high, 0)}"


def _tied(ties: TiedViews) -> str:
    return f"the {ties.of_what} that the cross-validated scores do not tell apart"


def _verdict(subject: Subject) -> str:
    """Say in one sentence whether learning the weights paid."""
    refits = subject.refits
    ours, rest = refits.ours, refits.methods[1:-1]
    best = max(rest, key=lambda method: method.mean)
    if best.p_value < 0.05:
        which = "better than" if ours.mean > best.mean else "worse than"
        return f"On held-out folds the model is {which} the {best.name} (p = {number(best.p_value)})."
    adds = (
        ": what it adds is the knowledge of which kernels were needed."
        if refits.better_than_guessing and (subject.ties is None or subject.ties.settled)
        else "."
    )
    return (
        f"On held-out folds the model cannot be told from the {best.name} (p = {number(best.p_value)}){adds}"
    )
