"""Check that every internal link of the built site leads somewhere: ``python .ci/links.py docs/_build``.

Pages, images, styles and scripts have to be files of the site, and what follows a # has to be an ``id`` on that page.
Links to other sites are not followed.
"""

from __future__ import annotations

import posixpath
import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: what a browser does not show: programs may write about links
HIDDEN = re.compile(r"<!--.*?-->|<(script|style)\b([^>]*)>.*?</\1>", flags=re.DOTALL | re.IGNORECASE)
#: an attribute of a tag: text on a page has no such quotes, they are written as entities there
ATTRIBUTE = re.compile(r"""\s(href|src|id)=(?:"([^"]*)"|'([^']*)')""", flags=re.IGNORECASE)
OLD_ANCHOR = re.compile(r"""<a\s[^>]*?\bname=["']([^"']*)""", flags=re.IGNORECASE)


def links_and_anchors(text: str) -> tuple[list[str], set[str]]:
    """Return what a page links to and what on it can be linked to."""
    text = HIDDEN.sub(r"<\1 \2>", text)
    links, anchors = [], {"", "top", *map(unescape, OLD_ANCHOR.findall(text))}
    for name, double, single in ATTRIBUTE.findall(text):
        value = unescape(double or single)
        if name.lower() == "id":
            anchors.add(value)
        else:
            links.append(value)
    return links, anchors


def broken(site: Path) -> list[str]:
    """Return a sentence for each link of the site that leads nowhere."""
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    # what the theme keeps in _static are templates, not pages
    pages = {
        name: links_and_anchors((site / name).read_text(encoding="utf-8"))
        for name in sorted(files)
        if name.endswith(".html") and "_static" not in name.split("/")
    }
    found = []
    for name, (links, _) in pages.items():
        for link in dict.fromkeys(links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = name
            if parts.path:
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
            if target not in files:
                target = posixpath.normpath(posixpath.join(target, "index.html"))
            if target not in files:
                found.append(f"{name}: {link} is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target][1]:
                found.append(f"{name}: {link} has no such place on its page")
    return found


def main() -> int:
    """Print what is broken and return the exit status."""
    site = Path(sys.argv[1])
    pages = sum(1 for _ in site.rglob("*.html"))
    found = broken(site)
    print("\n".join(found) if found else f"{pages} pages, every internal link leads somewhere")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    raise SystemExit(main())
