"""Every block of code on every page is run: Python, examples at the prompt, and commands."""

from __future__ import annotations

import doctest
import re
import shlex

import click
import pytest
from click.testing import CliRunner

from kernelweave.cli import main

from .test_pages import PAGES, ROOT, blocks, run

#: pages with tests of their own: README's example has to be short, CONTRIBUTING's is a solver
ELSEWHERE = {"README.md", "CONTRIBUTING.md"}
NEEDS = {"scale.md": ("torch", "dask")}


def relative(page):
    return page.relative_to(ROOT).as_posix()


PYTHON = [page for page in PAGES if page.name not in ELSEWHERE and "\n```python\n" in page.read_text()]
AT_THE_PROMPT = [page for page in PYTHON if "\n>>> " in page.read_text()]
COMMANDS = [
    page for page in PAGES if re.search(r"^(    |\$ )kernelweave ", page.read_text(), flags=re.MULTILINE)
]


#: pages that one process runs, because loading compiled functions takes longer than most of them
TOGETHER = 5
RUN = [page for page in PYTHON if page not in AT_THE_PROMPT]
PLAIN = [page for page in RUN if page.name not in NEEDS]
BATCHES = [PLAIN[first : first + TOGETHER] for first in range(0, len(PLAIN), TOGETHER)]
BATCHES += [[page] for page in RUN if page.name in NEEDS]


@pytest.mark.parametrize("pages", BATCHES, ids=lambda pages: "+".join(page.stem for page in pages))
def test_python(pages, tmp_path):
    for package in NEEDS.get(pages[0].name, ()):
        pytest.importorskip(package)
    code = ["import contextlib, io"]  # and a namespace per block
    for page in pages:
        for number, example in enumerate(blocks(relative(page))):
            code.append(f"at = '{page.name}, block {number}'")
            code.append(
                f"with contextlib.redirect_stdout(io.StringIO()) as said: "
                f"exec(compile({example!r}, at, 'exec'), {{'__name__': '__main__'}})"
            )
            code.append("assert said.getvalue().strip(), f'{at} shows nothing'")
    run("\n".join(code), tmp_path)


@pytest.mark.parametrize("page", AT_THE_PROMPT, ids=lambda page: page.name)
def test_examples_at_the_prompt(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    assert not [block for block in blocks(relative(page)) if not block.startswith(">>> ")]
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 10
    assert results.failed == 0


def test_no_block_hides():
    """Code that is marked as anything else would not be run."""
    for page in PAGES:
        kinds = set(re.findall(r"^```([^\s{`]+)", page.read_text(), flags=re.MULTILINE))
        # toml is compared with what the program prints (test_surface), text with a walk (test_call_graph), console is a
        # session with benchmarks
        assert kinds <= {
            "python",
            "toml",
            "console",
            *(["text"] if page.name == "architecture.md" else []),
        }, page.name


def commands(page):
    """Lines for a shell, continued ones in one piece."""
    text = page.read_text().replace("\\\n", " ")
    lines = re.findall(r"^    (?:pip install \. && )?(kernelweave .*)$", text, flags=re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.name)
def test_commands_have_the_options_that_are_shown(page):
    for name, *arguments in commands(page):
        command = main.commands[name]
        parser = command.make_parser(click.Context(command, info_name=name))
        parser.parse_args(arguments)


def test_commands_for_newcomers_run(tmp_path, monkeypatch):
    """As they are pasted, in a folder with nothing in it; the demo, which takes longest, has tests of its own."""
    monkeypatch.chdir(tmp_path)
    pages = [commands(ROOT / page) for page in ("docs/start.md", "README.md", "docs/index.md")]
    assert all(len(of_page) > 2 for of_page in pages)
    done = dict.fromkeys(
        tuple(arguments) for of_page in pages for arguments in of_page if arguments[0] != "demo"
    )
    for arguments in done:  # the same on all pages
        quick = ["--folds", "2"] if "--report" in arguments else []  # the report refits on every fold
        result = CliRunner().invoke(main, [*arguments, *quick])
        assert result.exit_code == 0, (arguments, result.output)
    assert {path.name for path in tmp_path.iterdir()} >= {"omics", "report.html", "predictions.csv"}
