"""What is said in several places is the same everywhere: versions, dependencies, addresses, linters."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import kernelweave

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_one_version():
    assert PROJECT["version"] == kernelweave.__version__
    assert f"\nversion: {kernelweave.__version__}\n" in text("CITATION.cff")
    assert f'set version = "{kernelweave.__version__}"' in text("conda/meta.yaml")


def test_the_conda_recipe_needs_what_the_package_needs():
    (run,) = re.findall(r"^  run:\n((?:    - .*\n)+)", text("conda/meta.yaml"), flags=re.MULTILINE)
    needed = {line[6:].replace("matplotlib-base", "matplotlib").replace(" ", "") for line in run.splitlines()}
    assert needed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_no_exact_versions_are_asked_for():
    for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        assert not [line for line in lines if "==" in line]


def test_no_file_but_one_has_the_address_of_the_project():
    """An address is claimed where a maintainer gave one, in ``[project.urls]``, and is guessed nowhere."""
    given = set(PROJECT.get("urls", {}).values())
    kinds = {".md", ".py", ".toml", ".cff", ".yaml", ".yml", ".rst", ".html", ".js"}
    folders = ("src", "studies", "docs", "examples", "benchmarks", "conda", ".github")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    ours = re.compile(r"https?://[^\s\"')>]*kernel-?weave[^\s\"')>]*", flags=re.IGNORECASE)
    for path in [*files, *(path for path in ROOT.glob("*") if path.suffix in kinds)]:
        if "_build" in path.parts:
            continue
        found = set(ours.findall(path.read_text(encoding="utf-8")))
        assert not (found - given if path.name == "pyproject.toml" else found), path


def test_the_page_of_a_package_index_has_no_link_that_leads_nowhere():
    hooks = tomllib.loads(text("pyproject.toml"))["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    page = text("README.md")
    for change in hooks["substitutions"]:
        page = re.sub(change["pattern"], change["replacement"], page)
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"`[^`\n]*`", "", page))
    assert links
    assert all(link.startswith(("http://", "https://", "#")) for link in links)
    assert "Start in five minutes" in page


def test_the_linters_of_a_commit_are_those_of_the_gate():
    gate = set(
        re.findall(r'^step "(ruff check|ruff format|mypy|lint-imports)"', text(".ci/run"), flags=re.MULTILINE)
    )
    hooks = set(re.findall(r"^        name: (.*)$", text(".pre-commit-config.yaml"), flags=re.MULTILINE))
    assert gate == hooks


def test_the_workflows_run_every_declared_python():
    declared = {
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)
    }
    (row,) = re.findall(
        r"^        python: \[(.*)\]$", text(".github/workflows/tests.yml"), flags=re.MULTILINE
    )
    assert set(re.findall(r'"([\d.]+)"', row)) == declared
