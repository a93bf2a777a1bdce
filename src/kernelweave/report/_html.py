"""HTML and vector graphics of the page: everything that comes from outside is escaped here."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import re
from collections.abc import Sequence
from html import escape, unescape
from importlib.resources import files
from typing import Any

from ..displays.colours import ACCENT, FAINT, INK

Cell = str | float | int | None | tuple[float, str]


def number(value: float, digits: int = 3) -> str:
    """A number as people read it.

    >>> number(0.12345), number(1e-7), number(-1e-7), number(float("nan"))
    ('0.123', '< 0.001', '> -0.001', '–')
    """
    if math.isnan(value):
        return "–"
    if value == 0.0 or abs(value) >= 10.0**-digits:
        return f"{value:.{digits}f}"
    least = f"{10.0**-digits:.{digits}f}"
    return f"< {least}" if value > 0 else f"> -{least}"


def percent(value: float, digits: int = 1) -> str:
    """A share in per cent; the sign stays on the line of the number.

    >>> percent(0.9271)
    '92.7\\xa0%'
    """
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f}\xa0%"


def short(value: float) -> str:
    """A number of any size in three digits, whole ones without an exponent.

    >>> short(0.035938), short(1000.0), short(1e-7)
    ('0.0359', '1000', '1e-07')
    """
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> str:
    """Return a table of cells; numbers are to the right, and a pair is a number to sort by with the text to show."""
    if not rows:
        return ""
    heads = ""
    for name, first in zip(head, rows[0], strict=True):
        right = ' class="n"' if isinstance(first, (int, float, tuple)) else ""
        heads += f'<th scope="col"{right}>{escape(name)}</th>'
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="sortable"><caption><span>{escape(caption)} </span></caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, tuple):
        key, text = cell
        return f'<td class="n" data-v="{-1e300 if math.isnan(key) else key!r}">{escape(text)}</td>'
    if isinstance(cell, (int, float)):
        shown = number(cell) if isinstance(cell, float) else str(cell)
        return f'<td class="n" data-v="{cell!r}">{escape(shown)}</td>'
    return f"<td>{escape(str(cell if cell is not None else ''))}</td>"


def figure(svg: str, caption: str) -> str:
    """Return a picture with a caption; the picture is ours, the caption is escaped."""
    return f"<figure>{svg}<figcaption><span>{escape(caption)}</span></figcaption></figure>"


def classes_for_styles(body: str) -> tuple[str, str]:
    """Return the page with a class in the place of every ``style`` attribute, and the rules of the classes.

    Pictures come with attributes, which a policy can only allow all together, those of an intruder included.  Texts
    cannot be mistaken for tags: angle brackets in them are escaped.

    >>> classes_for_styles('<g style="fill: none"><path style="fill: none"/> style="a" </g>')
    ('<g class="s0"><path class="s0"/> style="a" </g>', '.s0 { fill: none }\\n')
    """
    numbers: dict[str, int] = {}

    def exchange(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[2], len(numbers))
        return f'{match[1]} class="s{number}"'

    body = re.sub(r'(<[a-zA-Z][^<>]*?) style="([^"<>]*)"', exchange, body)
    return body, "".join(f".s{number} {{ {unescape(style)} }}\n" for style, number in numbers.items())


def document(title: str, body: str, header: str) -> str:
    """Return the whole page, whose policy allows no network and but the script and styles with these hashes."""
    folder: Any = files(__package__)
    css, js = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    body, rules = classes_for_styles(body)
    css, js = f"\n{css}{rules}", f"\n{js}"
    style, script = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (css, js))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>{css}</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header><div>{header}</div><button id="theme" type="button" hidden>Dark</button></header>
<main id="main">
{body}
</main>
<footer>Written by kernelweave. This page is complete in itself: it can be mailed, archived and read without a
network.</footer>
<script>{js}</script>
</body>
</html>
"""


#: of pictures, in inches
WIDTH = 7.6
#: a colour that nothing else uses: text and axes, which take the colour of the page's text
TEXT = "#010203"
COLOURS = {
    TEXT: "currentColor", INK: "var(--ink)", ACCENT: "var(--accent)", FAINT: "var(--faint)", "#ffffff": "var(--paper)",
}  # fmt: skip


def folded(title: str, content: str) -> str:
    """Return something that is opened by a click; on paper it is open."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def contents(body: str) -> str:
    """Return links to all sections of a page, and none for a page of two or less."""
    heads = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', body)
    listed = "".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in heads)
    return f'<nav class="contents" aria-label="Contents"><ul>{listed}</ul></nav>' if len(heads) > 2 else ""


def drawn(draw: Any, size: tuple[float, float], what: str, key: str, tips: Any = None) -> str:
    """Return what ``draw(ax)`` draws as SVG to stand inside HTML, with ``what`` for those who do not see it.

    ``tips()``, called after that, gives pairs of something drawn and the text to show where the pointer is over it.
    """
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
        texts: list[str] = []
        for artist, text in tips() if tips is not None else ():
            artist.set_gid(f"tip{len(texts)}")
            texts.append(text)
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
    for k, text in enumerate(texts):
        svg = svg.replace(f'<g id="{key}-tip{k}">', f'<g id="{key}-tip{k}"><title>{escape(text)}</title>', 1)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    label = escape(what, quote=True)
    return svg.replace("<svg ", f'<svg role="img" data-name="{key}" aria-label="{label}" ', 1)
