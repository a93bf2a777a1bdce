"""How good it is: all methods on the same folds, in one picture and one table."""

from __future__ import annotations

from html import escape
from typing import Any

from ...displays.colours import ACCENT, INK, tidy
from .._drawing import WIDTH, drawn
from .._html import figure, number, table
from .._refits import Refits
from .._subject import Subject
from .summary import interval

__all__ = ["section"]


def section(subject: Subject) -> str:
    """Return the scores of all methods."""
    refits = subject.refits
    kind = refits.main
    return (
        f'<h2 id="accuracy">How good it is</h2><p>{_how(subject)}</p>'
        + figure(_picture(refits), f"Dots are the numbers of the table, ticks single folds ({kind.name}).")
        + _table(refits)
    )


def _how(subject: Subject) -> str:
    refits = subject.refits
    names = "; ".join(f"{kind.name}: {kind.about}" for kind in refits.measures)
    together = " that keep groups together" if subject.groups is not None else ""
    again = f", repeated {refits.rounds} times with other folds" if refits.rounds > 1 else ""
    alone = f" There is no method from outside beside it: {refits.alone}." if refits.alone else ""
    return (
        f"{refits.folds} folds{together}{again}; all methods on the same folds, those with kernels on the same "
        f"kernels.{alone} {names}. Intervals and p-values allow for the overlap of the training sets (Nadeau and "
        "Bengio 2003)."
    )


def _table(refits: Refits) -> str:
    first, *others = refits.measures
    head = ["method", first.name, "95 % interval", "p against this model"]
    head += [kind.name for kind in others]
    rows = []
    for method in refits.methods:
        of_first = method.measures[first.name]
        row: list[Any] = [
            method.name,
            (of_first.mean, first.shown(of_first.mean)),
            (of_first.low, interval(of_first, refits)),
            (of_first.p_value, number(of_first.p_value)),
        ]
        for kind in others:
            value = method.measures[kind.name].mean
            row.append((value, kind.shown(value)))
        rows.append(row)
    known = "; ".join(f"{method.name}: {method.about}" for method in refits.methods if method.about)
    return table(head, rows, "Methods on the same folds") + f'<p class="quiet">{escape(known)}.</p>'


def _picture(refits: Refits) -> str:
    kind = refits.main

    def draw(ax: Any) -> None:
        for row, method in enumerate(refits.methods):
            measured = method.measures[kind.name]
            ax.hlines(row, measured.low, measured.high, color=ACCENT, linewidth=2.2)
            ax.plot(measured.scores, [row] * len(measured.scores), "|", color=INK, markersize=9, alpha=0.55)
            ax.plot([measured.mean], [row], "o", color=INK, markersize=7)
        ax.set_yticks(range(len(refits.methods)), [method.name for method in refits.methods])
        ax.set_ylim(len(refits.methods) - 0.5, -0.5)
        ax.set_xlabel(f"{kind.name} on held-out folds")
        tidy(ax, "x")

    what = "Dots: held-out score of each method, with intervals; the table below has the numbers"
    return drawn(draw, (WIDTH, 0.9 + 0.42 * len(refits.methods)), what, "accuracy")
