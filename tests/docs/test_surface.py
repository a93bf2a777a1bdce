"""The pages for newcomers: what they show runs, and what they list is there."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib

from click.testing import CliRunner

import kernelweave
from kernelweave.cli import main

from .test_pages import ROOT


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
    assert set(tomllib.loads(shown)["views"]) == {"expression", "clinical"}


def test_the_reference_is_complete(tmp_path, monkeypatch):
    """Every public name of every room, and every registered string, is on a page."""
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
    rooms = {room for page in reference.PAGES for room in page.rooms}
    assert {name for name in kernelweave.__all__ if inspect.ismodule(getattr(kernelweave, name))} == rooms
    shown = {name.rpartition(".")[2] for name in listed}
    for room in rooms:
        module = getattr(kernelweave, room)
        public = [name for name in module.__all__ if callable(getattr(module, name))]
        things = {
            name
            for name in public
            if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
        }
        assert things <= shown, room
    assert {
        "kernels.chi2",
        "kernels.matern",
        "losses.Hinge",
        "norms.AtMost",
        "solvers.cutting_planes.Level",
    } <= listed
    assert {"banks.PowerBank", "displays.WeightsDisplay", "MKLClassifier"} <= listed
    for room in ("losses", "norms", "solvers"):
        for name in getattr(kernelweave, room).registry:
            assert f'``"{name}"``' in text[room]
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


def documented():
    """Yield every public class or function with the defaults that its docstring gives."""
    rooms = [kernelweave, *(getattr(kernelweave, name) for name in kernelweave.__all__)]
    found = [getattr(room, name) for room in rooms if inspect.ismodule(room) for name in room.__all__]
    for room in (kernelweave.losses, kernelweave.norms, kernelweave.solvers):
        found += room.registry.values()
    for thing in {id(thing): thing for thing in found}.values():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            told = re.findall(
                r"^(\w[\w, ]*) : .*\bdefault=([^,\n]+|\(.*\))$",
                inspect.getdoc(thing) or "",
                flags=re.MULTILINE,
            )
            if told:
                yield thing, {name: value.strip() for names, value in told for name in names.split(", ")}


def test_defaults_are_those_of_the_docstring():
    """Of the signature, and of what is made without arguments."""
    compared = 0
    for thing, told in documented():
        given = {name: one.default for name, one in inspect.signature(thing).parameters.items()}
        made = None
        if inspect.isclass(thing) and inspect.Parameter.empty not in given.values():
            made = thing()
        for name, text in told.items():
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
