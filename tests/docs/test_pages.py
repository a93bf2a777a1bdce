"""The pages keep their promises: examples run, links lead somewhere, tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forked
from kernelweave.solvers import registry as solvers

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def blocks(page: str) -> list[str]:
    """Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)


def run(code: str, folder: Path) -> str:
    """Run code in a process of its own: what it registers must not reach the other tests."""
    return forked.run(code, folder=folder).stdout


def test_readme_example(tmp_path):
    (example,) = blocks("README.md")
    assert len(example.strip().splitlines()) <= 12
    output = run(example, tmp_path)
    accuracy, weights, *_ = output.splitlines()
    assert float(re.fullmatch(r"accuracy (0\.\d+)", accuracy)[1]) > 0.9
    assert re.fullmatch(r"\{'mean': '\d\.\d\d', 'error': '\d\.\d\d', 'worst': '\d\.\d\d'\}", weights)
    assert "is proved to be within" in output


def test_a_solver_in_one_file(tmp_path):
    solver, trial = blocks("CONTRIBUTING.md")
    (tmp_path / "multiplicative.py").write_text(solver)
    # the folder joins the subpackage: the registry must find the file by itself
    join = f"import kernelweave.solvers\nkernelweave.solvers.__path__.append({str(tmp_path)!r})\n"
    look = "from click.testing import CliRunner\nfrom kernelweave.cli import main\n"
    listed = "print(CliRunner().invoke(main, ['methods']).output)\n"
    output = run(join + trial + look + listed, tmp_path)
    assert output.startswith("converged")
    assert re.search(r"multiplicative\s+weights times what their kernels contribute", output)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in target or "results/" in target:  # results are written by benchmarks, when they are run
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path) if path else page
        if path.startswith("gallery/"):  # made of an example when the site is built
            found = ROOT / "examples" / (Path(path).stem + ".py")
        assert found.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", found.read_text(), flags=re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]


@pytest.mark.parametrize("name", solvers)
def test_every_solver_is_documented(name):
    page = (ROOT / "docs" / "solvers.md").read_text()
    assert f"\n## `{name}`\n" in page, f"docs/solvers.md needs a section '## `{name}`'"
    assert re.search(rf"^\| `{name}`", page, flags=re.MULTILINE), (
        f"the table of docs/solvers.md needs `{name}`"
    )


def test_papers_cited_in_the_code_are_listed():
    listed = set(
        re.findall(r"^\| \[(\w+)\]", (ROOT / "docs" / "notation.md").read_text(), flags=re.MULTILINE)
    )
    cited = {
        key
        for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "studies").rglob("*.py"), *PAGES]
        for key in re.findall(r"\[([A-Z]{2,6}\d\d)\]", path.read_text())
    }
    assert cited <= listed, f"docs/notation.md does not explain {sorted(cited - listed)}"


def test_the_guide_has_a_line_for_every_page():
    guide = (ROOT / "docs" / "guide.md").read_text()
    for page in re.findall(r"^[^\n<]+ <(\w+)>$", guide, flags=re.MULTILINE):
        assert re.search(rf"^- \[[^\]]+\]\({page}\.md\).{{10,}}$", guide, flags=re.MULTILINE), page


def test_no_page_is_orphaned():
    for page in (ROOT / "docs").glob("*.md"):
        others = [other for other in PAGES if other != page]
        # by a link, or by an entry of a table of contents
        leads = re.compile(rf"{page.name}|^(?:.*<)?{page.stem}>?$", flags=re.MULTILINE)
        assert any(leads.search(other.read_text()) for other in others), f"no page leads to docs/{page.name}"
