"""Every warning and error of the library is explained where people look it up."""

from __future__ import annotations

import email
import inspect
import pickle
import traceback
import warnings

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


@pytest.fixture(autouse=True)
def no_address(monkeypatch):
    monkeypatch.setattr(exceptions, "metadata", lambda name: email.message_from_string(""))


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_a_section(name):
    assert len(CLASSES) >= 8
    assert f"\n### {name}\n" in PAGE


def test_the_first_warning_of_a_kind_says_where_it_is_explained(monkeypatch):
    monkeypatch.setattr(exceptions, "_issued", set())
    where = "See ScaleWarning in 'Troubleshooting' of the documentation."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            exceptions.warn_at_caller("columns differ in scale.", exceptions.ScaleWarning)
    assert [str(one.message) for one in caught] == [
        f"columns differ in scale. {where}", "columns differ in scale."
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CLASSES if not name.endswith("Warning")])
def test_an_error_says_where_it_is_explained_at_the_end_of_its_traceback(name):
    cls = getattr(exceptions, name, None) or getattr(persistence, name)
    error = pickle.loads(pickle.dumps(cls("too large")))
    assert str(error) == "too large"
    printed = "".join(traceback.format_exception(error))
    assert printed.endswith(f"too large\nSee {name} in 'Troubleshooting' of the documentation.\n")


def test_the_address_is_that_of_the_metadata(monkeypatch):
    made = email.message_from_string(
        "Project-URL: Source, a\nProject-URL: Documentation, https://docs.example\n"
    )
    monkeypatch.setattr(exceptions, "metadata", lambda name: made)
    assert exceptions.whereabouts(ValueError).endswith("of the documentation (https://docs.example).")
