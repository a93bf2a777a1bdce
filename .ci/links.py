"""Check that every internal link of the built site leads somewhere: ``python .ci/links.py docs/_build``.

Pages, images, styles and scripts have to be files of the site, and what follows a # has to be an ``id`` on that page.
Links to other sites are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Collects what a page links to and what on it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes that link and that can be linked to."""
        for name, value in attrs:
            if value is None:
                continue
            if name in ("href", "src"):
                self.links.append(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


def broken(site: Path) -> list[str]:
    """Return a sentence for each link of the site that leads nowhere."""
    # what the theme keeps in _static are templates, not pages
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]
    pages = {path.resolve(): Page(path) for path in files}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            name = path.relative_to(site.resolve())
            if not target.exists():
                found.append(f"{name}: {link} is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
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
