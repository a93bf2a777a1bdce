"""The first look at a registry imports modules: from several threads, and interrupted."""

from __future__ import annotations

import importlib
import threading

import pytest

from kernelweave import losses


@pytest.fixture
def slow(monkeypatch):
    """A registry of its own whose modules take their time; ``steps`` counts them."""
    registry = type(losses.registry)("loss", "kernelweave.kernels")
    steps = []

    def load(name):
        steps.append(name)
        if name.endswith("papers") and steps.count(name) == 1 and registry.interrupt:
            raise KeyboardInterrupt
        gate.wait(0.01)
        registry.add(name, losses.Loss)

    gate = threading.Event()
    registry.interrupt = False
    real = importlib.import_module
    monkeypatch.setattr(
        importlib,
        "import_module",
        lambda name: real(name) if name == "kernelweave.kernels" else load(name),
    )
    return registry, steps


def test_threads_wait_for_the_whole_registry(slow):
    registry, steps = slow
    sizes = []
    threads = [threading.Thread(target=lambda: sizes.append(len(registry))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(sizes)) == 1
    assert sizes[0] == len(steps) == len(set(steps)) > 5


def test_an_interrupted_look_begins_again(slow):
    registry, _ = slow
    registry.interrupt = True
    for _ in range(20):
        try:
            found = len(registry)
            break
        except KeyboardInterrupt:
            continue
    assert found == len(list(registry)) > 5


def test_classes_in_packages_inside_the_room_are_found(tmp_path, monkeypatch):
    inner = tmp_path / "some_room" / "group" / "deeper"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent, inner.parent.parent):
        (folder / "__init__.py").touch()
    (inner.parent.parent / "__init__.py").write_text(
        "from kernelweave._components import Component, Registry\nregistry = Registry('thing', 'some_room')\n"
    )
    for folder, name in ((inner.parent, "near"), (inner, "far"), (inner, "_private")):
        (folder / f"{name}.py").write_text(
            f"from some_room import Component, registry\nregistry.add({name!r}, type({name!r}, (Component,), {{}}))\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    assert list(importlib.import_module("some_room").registry) == ["far", "near"]
