"""Every warning and error of the library is explained where people look it up."""

from __future__ import annotations

import inspect

import pytest

from kernelweave import exceptions, persistence

from .test_pages import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
CLASSES = sorted(
    name
    for module in (exceptions, persistence)
    for name, cls in inspect.getmembers(module, inspect.isclass)
    if issubclass(cls, Exception) and cls.__module__.startswith("kernelweave")
)


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_a_section(name):
    assert len(CLASSES) >= 8
    assert f"\n### {name}\n" in PAGE
