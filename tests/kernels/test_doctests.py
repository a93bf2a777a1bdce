"""The examples in the docstrings and in the page about kernels."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import kernelweave.kernels

MODULES = [
    f"kernelweave.kernels.{module.name}" for module in pkgutil.iter_modules(kernelweave.kernels.__path__)
]
PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"


@pytest.mark.parametrize("name", ["kernelweave.kernels", *MODULES])
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_page():
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted > 10
    assert results.failed == 0
