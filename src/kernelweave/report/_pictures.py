"""Pictures for the page: vector graphics whose colours follow the page's."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

from ..displays import ConvergenceDisplay, NoiseDisplay, WeightsDisplay
from ..displays.colours import ACCENT, FAINT, INK

__all__ = ["accuracy", "convergence", "noise", "weights"]

#: a colour that nothing else uses: text and axes, which take the colour of the page's text
TEXT = "#010203"
COLOURS = {
    TEXT: "currentColor",
    INK: "var(--ink)",
    ACCENT: "var(--accent)",
    FAINT: "var(--faint)",
    "#ffffff": "var(--paper)",
}


def drawn(draw: Any, size: tuple[float, float], what: str, key: str) -> str:
    """Return what ``draw(ax)`` draws as SVG to stand inside HTML, with ``what`` for those who do not see it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": key, "font.size": 10.5, "axes.titlesize": "medium",
        "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT,
    }  # fmt: skip
    with rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.subplots()
        draw(ax)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # the one rule in there would hold for the whole page: page.css has it for pictures
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, variable)
    # ids are unique within a picture only, and a page has several
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(what, quote=True)}" ', 1)


def weights(stability: Any, top: int = 15) -> str:
    """Mean weights over the refits with their intervals, under their views."""
    grouped = len(stability.view_names) < len(stability.kernel_names)
    shown = min(top, int((stability.weights.mean(axis=0) > 0).sum()))
    heads = min(len(stability.view_names), shown) if grouped else 0
    size = (7.6, max(2.2, 1.0 + 0.29 * (shown + heads + 1)))
    return drawn(
        lambda ax: WeightsDisplay.from_stability(stability, ax=ax, top=top, group_by="view" if grouped else None),
        size, "Bars: mean weight of each kernel over the refits, with intervals; the table below has the numbers",
        "weights",
    )  # fmt: skip


def convergence(estimator: Any) -> str:
    """The bounds of the optimum over the fit, or the gaps of several problems."""
    several = "problem" in estimator.trace_
    return drawn(
        lambda ax: ConvergenceDisplay.from_estimator(estimator, ax=ax, kind="gap" if several else "bounds"),
        (7.6, 3.4), "Curves: the objective falls and its proved lower bound rises until they meet", "convergence",
    )  # fmt: skip


def noise(estimator: Any, names: list[str]) -> str:
    """Label quality, the most suspicious first."""
    return drawn(
        lambda ax: NoiseDisplay.from_estimator(estimator, ax=ax, names=names),
        (7.6, 3.8), "Curve: probability that each label is right, the most suspicious first", "noise",
    )  # fmt: skip


def accuracy(compared: list[Any], measure: str) -> str:
    """Held-out scores of the methods with their intervals."""

    def draw(ax: Any) -> None:
        for row, method in enumerate(compared):
            ax.hlines(row, method.low, method.high, color=ACCENT, linewidth=2.2)
            ax.plot(method.scores, [row] * len(method.scores), "|", color=INK, markersize=9, alpha=0.55)
            ax.plot([method.mean], [row], "o", color=INK, markersize=7)
        ax.set_yticks(range(len(compared)), [method.name for method in compared])
        ax.set_ylim(len(compared) - 0.5, -0.5)
        ax.set_xlabel(f"{measure} on held-out folds")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="x", color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)

    what = "Dots: mean held-out score of each method, with intervals; the table beside has the numbers"
    return drawn(draw, (7.6, 0.9 + 0.42 * len(compared)), what, "accuracy")
