"""Drawing for the page: vector graphics whose colours follow the page's."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

from ..displays.colours import ACCENT, FAINT, INK

__all__ = ["TEXT", "WIDTH", "drawn"]

#: of pictures, in inches
WIDTH = 7.6
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
    return svg.replace(
        "<svg ", f'<svg role="img" data-name="{key}" aria-label="{escape(what, quote=True)}" ', 1
    )
