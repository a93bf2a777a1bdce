"""The pages for newcomers: what they show runs, and what they list is there."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

from click.testing import CliRunner
from sklearn.base import BaseEstimator

import kernelweave
from kernelweave.banks.decide import RULES
from kernelweave.cli import main

ROOT = Path(__file__).parents[2]
NAMES = ROOT / "tests" / "docs" / "public_names.txt"


def test_every_command_is_on_its_page():
    page = (ROOT / "docs" / "command_line.md").read_text()
    for name in main.commands:
        assert f"    kernelweave {name}" in page


def test_the_example_of_views_is_the_one_of_the_program(tmp_path):
    page = (ROOT / "docs" / "command_line.md").read_text()
    (shown,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "data.csv").write_text("a,y\n1,0\n2,1\n")
    (tmp_path / "views.toml").write_text("")
    words = ["fit", "data.csv", "--target", "y", "--views", "views.toml", "--json"]
    done = CliRunner().invoke(main, [str(tmp_path / word) if "." in word else word for word in words])
    assert done.stderr.partition("it should look like this:\n\n")[2].strip() == shown.strip()
    assert set(tomllib.loads(shown)["views"]) == {"genes", "proteins", "clinic"}


def test_the_reference_is_complete(tmp_path, monkeypatch):
    """Every public name of every module, and every registered string, is on a page."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import reference

    stale = [tmp_path / "api" / "gone.rst", tmp_path / "api" / "generated" / "kernelweave.gone.Gone.rst"]
    fresh = tmp_path / "api" / "generated" / "kernelweave.MKLClassifier.rst"
    fresh.parent.mkdir(parents=True)
    for path in (*stale, fresh):
        path.write_text("from an earlier build\n")
    reference.write(tmp_path)
    assert fresh.exists()
    assert not any(path.exists() for path in stale)
    text = {page.file: (tmp_path / "api" / f"{page.file}.rst").read_text() for page in reference.PAGES}
    everything = "\n".join(text.values())
    listed = set(re.findall(r"^   ([\w.]+)$", everything, flags=re.MULTILINE))
    modules = {module for page in reference.PAGES for module in page.modules}
    assert {name for name in kernelweave.__all__ if inspect.ismodule(getattr(kernelweave, name))} == modules
    shown = {name.rpartition(".")[2] for name in listed}
    for where in modules:
        module = getattr(kernelweave, where)
        public = [name for name in module.__all__ if callable(getattr(module, name))]
        things = {
            name
            for name in public
            if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
        }
        assert things <= shown, where
    assert {
        "kernels.chi2",
        "kernels.matern",
        "losses.Hinge",
        "norms.AtMost",
        "solvers.cutting_planes.Level",
    } <= listed
    assert {"banks.Gram", "displays.WeightsDisplay", "MKLClassifier"} <= listed
    for where in ("losses", "norms", "solvers"):
        for name in getattr(kernelweave, where).registry:
            assert f'``"{name}"``' in text[where]
    factories = {
        name for name in kernelweave.kernels.registry if name != "product"
    }  # a product is written with *
    assert {f"kernels.{name}" for name in factories} <= listed


def test_completion_shows_public_names_alone():
    """What an editor offers behind ``kernelweave.kernels.`` are kernels: no modules, no imports."""
    for name in kernelweave.__all__:
        module = getattr(kernelweave, name)
        if inspect.ismodule(module):
            assert dir(module) == sorted(module.__all__), name
            assert not any(inspect.ismodule(getattr(module, one)) for one in dir(module)), name
            assert not {"np", "Any", "annotations"} & set(dir(module)), name


def kind(thing: object) -> str:
    """Return what a public name is."""
    if inspect.ismodule(thing):
        return "module"
    if inspect.isclass(thing):
        if issubclass(thing, BaseEstimator) and hasattr(thing, "fit"):
            return "estimator"
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if inspect.isroutine(thing) else "value"


def public_names() -> list[str]:
    """Return every public name with its kind, sorted: ``kernelweave.kernels.gaussian function``."""
    lines = {f"kernelweave.{name} {kind(getattr(kernelweave, name))}" for name in kernelweave.__all__}
    for where in kernelweave.__all__:
        module = getattr(kernelweave, where)
        if inspect.ismodule(module):
            lines |= {f"kernelweave.{where}.{name} {kind(getattr(module, name))}" for name in module.__all__}
    return sorted(lines)


def test_public_names_are_those_of_the_list():
    """A name that appears, disappears or changes its kind is seen: ``python -m tests.docs.test_surface`` writes the list."""
    assert public_names() == NAMES.read_text().splitlines()


def documented():
    """Yield every public class or function with the defaults that its docstring gives."""
    modules = [kernelweave, *(getattr(kernelweave, name) for name in kernelweave.__all__)]
    found = [
        getattr(module, name) for module in modules if inspect.ismodule(module) for name in module.__all__
    ]
    for module in (kernelweave.losses, kernelweave.norms, kernelweave.solvers):
        found += module.registry.values()
    for thing in {id(thing): thing for thing in found}.values():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            given_defaults = re.findall(
                r"^(\w[\w, ]*) : .*\bdefault=([^,\n]+|\(.*\))$",
                inspect.getdoc(thing) or "",
                flags=re.MULTILINE,
            )
            if given_defaults:
                yield (
                    thing,
                    {name: value.strip() for names, value in given_defaults for name in names.split(", ")},
                )


def test_defaults_are_those_of_the_docstring():
    """Of the signature, and of what is made without arguments."""
    compared = 0
    for thing, given_defaults in documented():
        given = {name: one.default for name, one in inspect.signature(thing).parameters.items()}
        made = None
        if inspect.isclass(thing) and inspect.Parameter.empty not in given.values():
            made = thing()
        for name, text in given_defaults.items():
            try:
                wanted = ast.literal_eval(text)
            except ValueError:
                wanted = text
            default = getattr(given[name], "__name__", given[name])  # of types their names
            assert default == wanted, (thing, name)
            assert type(default) is type(wanted), (thing, name)
            if hasattr(made, name):
                assert getattr(made, name) == wanted, (thing, name)
            compared += 1
    assert compared > 100


def test_every_example_is_in_the_order_of_the_gallery():
    conf = (ROOT / "docs" / "conf.py").read_text()
    for path in (ROOT / "examples").glob("plot_*.py"):
        assert f'"{path.name}"' in conf


if __name__ == "__main__":
    NAMES.write_text("\n".join(public_names()) + "\n")


def test_the_table_of_the_rules_is_that_of_the_code(monkeypatch):
    """``python docs/reference.py`` writes it."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import reference

    page = (ROOT / "docs" / "choosing.md").read_text()
    assert reference.with_rules(page) == page
    for rule in RULES:
        assert f"| {rule.name} | {rule.when} |" in page
