"""Nobody but the certificate says what is proved: no page, docstring or message has the sentence in its own words."""

from __future__ import annotations

import inspect
import re

import pytest

from kernelweave import MKLRegressorCV, norms
from kernelweave.problems import scope_of

from .test_pages import PAGES, ROOT

#: the same claim in other words, all of them false for some norm, loss or default
CLAIMS = (
    r"no (other )?weights and no (other )?(function|classifier)",
    r"nothing on these kernels can",
    r"(nobody|nothing|no one) can (beat|bring)",
    r"best possible (one|fit)",
    r"answer is optimal",
    r"proof of optimality",
    r"optimum, proved",
    r"proves? (that )?(the|an) (answer|optimum)",
)
SOURCES = [
    path
    for folder, suffix in (
        ("src", "py"),
        ("studies", "py"),
        ("examples", "py"),
        ("benchmarks", "py"),
        ("src", "js"),
    )
    for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))
]
OTHERS = [ROOT / name for name in ("CITATION.cff", "pyproject.toml", "conda/meta.yaml")]
FILES = [page for page in PAGES if page.name != "CHANGELOG.md"] + SOURCES + OTHERS


def words(text):
    """Text as it is read: line breaks, quotes of a string that goes on, and emphasis do not matter."""
    return re.sub(r"[\s*]+", " ", re.sub(r"\"\s*\n\s*f?\"", "", text))


def test_the_sentence_is_written_once():
    ours = ROOT / "src" / "kernelweave" / "problems" / "certificate.py"
    with_it = [
        path for path in SOURCES if "bring" in (text := words(path.read_text())) and " below {" in text
    ]
    assert with_it == [ours]


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_claim_in_other_words(claim):
    found = [path.name for path in FILES if re.search(claim, words(path.read_text()), flags=re.IGNORECASE)]
    assert not found


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_what_pages_quote_is_what_is_printed(page):
    """Pages show the sentence of the default norm, as the function makes it."""
    assert f"{scope_of(norms.L1(), 3)} can bring it below" in words((ROOT / page).read_text())


def test_the_default_criterion_is_called_so():
    default = inspect.signature(MKLRegressorCV).parameters["criterion"].default
    page = words((ROOT / "docs" / "many_targets.md").read_text())
    assert f"The default is `{default}`" in page
    assert not re.search(r"`reml` ?: the default", page)
