"""The pages for newcomers: what they show runs, and what they list is there."""

from __future__ import annotations

import re
import tomllib

from kernelweave import displays, inspection, kernels, persistence
from kernelweave.cli import main
from kernelweave.cli._views import EXAMPLE

from .test_pages import ROOT, blocks, run


def test_examples(tmp_path):
    # in one process, which is quicker; each example is run in a namespace of its own
    code = ["import contextlib, io"]
    for page in ("index.md", "start.md", "inspection.md", "saved_models.md", "incomplete_views.md"):
        (example,) = blocks(f"docs/{page}")
        code.append(f"with contextlib.redirect_stdout(io.StringIO()) as said: exec({example!r}, {{}})")
        code.append(f"assert said.getvalue().strip(), {page!r}")
    run("\n".join(code), tmp_path)


def test_every_command_is_on_its_page():
    page = (ROOT / "docs" / "command_line.md").read_text()
    for name in main.commands:
        assert f"    kernelweave {name}" in page


def test_the_example_of_views_is_the_one_of_the_program():
    page = (ROOT / "docs" / "command_line.md").read_text()
    (shown,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert shown == EXAMPLE
    assert set(tomllib.loads(shown)["views"]) == {"expression", "clinical"}


def test_the_reference_is_complete():
    page = (ROOT / "docs" / "api.rst").read_text()
    for name in displays.__all__:
        assert f"displays.{name}" in page
    for name in persistence.__all__:
        assert f"persistence.{name}" in page
    listed = set(re.findall(r"inspection\.(\w+)", page))
    assert (
        {"weight_stability", "contributions", "feature_weights", "view_p_values"}
        <= listed
        <= set(inspection.__all__)
    )
    assert set(re.findall(r"^   kernels\.(\w+)", page, flags=re.MULTILINE)) <= set(kernels.__all__)


def test_every_example_is_in_the_order_of_the_gallery():
    conf = (ROOT / "docs" / "conf.py").read_text()
    for path in (ROOT / "examples").glob("plot_*.py"):
        assert f'"{path.name}"' in conf
