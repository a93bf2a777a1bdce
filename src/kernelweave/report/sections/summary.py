"""What was learnt, in four numbers and a few sentences."""

from __future__ import annotations

from html import escape

import numpy as np

from ...estimators.fitted import WeightOrigin, weight_origin
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
    origin = weight_origin(subject.estimator)
    cards = [_scored(refits, 0), _scored(refits, len(refits.methods) - 1), _scored(refits, 1)]
    if refits.classify:
        balanced = refits.measures[1]
        ours = refits.ours.measures[balanced.name]
        guessing = refits.baseline.measures[balanced.name]
        words = f"{balanced.name}; the {refits.baseline.name} has {balanced.shown(guessing.mean)}"
        cards.insert(1, (balanced.shown(ours.mean), words))
    cards += [
        (f"{used} of {m}", "kernels have weight" + (", none of it learnt" if origin.nothing else "")),
        (f"{certificate.percent} %", "at most from the optimum of this problem, proved"),
    ]
    cards[0] = (
        cards[0][0],
        f"{kind.name} on held-out folds, {interval(refits.ours.measures[kind.name], refits)}",
    )
    listed = "".join(f"<li><b>{escape(b)}</b>{escape(text)}</li>" for b, text in cards)
    text = "".join(f"<p>{escape(p)}</p>" for p in (_views(subject, m, origin), _verdict(subject, origin)))
    return f'<h2 id="learnt">What was learnt</h2><ul class="cards">{listed}</ul>{text}'


def interval(measured: Measured, refits: Refits) -> str:
    """Write the interval of the main measure."""
    return f"{refits.main.shown(measured.low)} to {refits.main.shown(measured.high)}"


def _scored(refits: Refits, k: int) -> tuple[str, str]:
    method = refits.methods[k]
    return refits.main.shown(method.mean), f"{method.name}, on the same folds"


def _views(subject: Subject, m: int, origin: WeightOrigin) -> str:
    """Say which view has the most learnt weight, as far as the choices that the scores leave open agree on it."""
    refits, ties = subject.refits, subject.ties
    if origin.nothing:
        return f"{origin.sentence} They say nothing about which views or kernels matter."
    views = refits.stability.among(origin.learnt).by_view().sort_values("weight", ascending=False)
    if len(refits.stability.view_names) <= 1:
        return f"All {m} kernels look at the same features."
    top = views.iloc[0]
    before, weight = (f"{origin.sentence} ", "learnt weight") if origin.sentence else ("", "weight")
    if ties is None or ties.leader == top["view"]:
        # shares of tied choices are of all weights, given ones included
        among = "" if ties is None or before else f"; {_range(ties, ties.leader)} among {_tied(ties)}"
        return (
            f"{before}The view with the most {weight} is “{top['view']}”, with {percent(top['weight'], 0)} of it "
            f"(range of the {len(refits.stability.weights)} refits: {percent(top['low'], 0)} to "
            f"{percent(top['high'], 0)}{among})."
        )
    order = sorted(ties.names, key=lambda name: -ties.ranges[name][1])[:MOST_VIEWS]
    listed = ", ".join(f"“{name}” has {_range(ties, name)} of all weight" for name in order)
    return f"{before}Which view has the most {weight} is not decided: among {_tied(ties)}, {listed}."


def _range(ties: TiedViews, name: str | None) -> str:
    low, high = ties.ranges[str(name)]
    return f"{percent(low, 0)} to {percent(high, 0)}"


def _tied(ties: TiedViews) -> str:
    return f"the {ties.of_what} that the cross-validated scores do not tell apart"


def _verdict(subject: Subject, origin: WeightOrigin) -> str:
    """Say in one sentence how the model does beside simpler ones; only one that left kernels out adds to that."""
    refits = subject.refits
    ours, rest = refits.ours, refits.methods[1:-1]
    best = max(rest, key=lambda method: method.mean)
    if best.p_value < 0.05:
        which = "better than" if ours.mean > best.mean else "worse than"
        return f"On held-out folds the model is {which} the {best.name} (p = {number(best.p_value)})."
    adds = (
        ": what it adds is the knowledge of which kernels were needed."
        if refits.better_than_guessing
        and np.any(refits.stability.reference[origin.learnt] == 0.0)
        and (subject.ties is None or subject.ties.settled)
        else "."
    )
    return (
        f"On held-out folds the model cannot be told from the {best.name} (p = {number(best.p_value)}){adds}"
    )
