"""The call graph of docs/architecture.md, compared with what a fit and a prediction enter."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from sklearn.datasets import make_classification

import kernelweave
from kernelweave import MKLClassifier

PACKAGE = Path(kernelweave.__file__).parent
PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
LINE = re.compile(r"^( *)([\w.]+) +([\w/]+\.py)(?:  .*)?$")


def drawn(heading: str) -> list[tuple[str | None, str]]:
    """Return (caller, called) of every line of a graph, as ``file:name``."""
    section = PAGE.read_text(encoding="utf-8").partition(heading)[2]
    lines = section.partition("```text\n")[2].partition("```")[0].splitlines()
    edges: list[tuple[str | None, str]] = []
    above: list[tuple[int, str]] = []
    for line in lines:
        found = LINE.match(line)
        assert found, f"a line of the graph that is no 'name file': {line!r}"
        indent, name = len(found[1]), f"{found[3]}:{found[2]}"
        above = [one for one in above if one[0] < indent]
        edges.append((above[-1][1] if above else None, name))
        above.append((indent, name))
    return edges


def walked(call, listed: set[str]) -> tuple[set[tuple[str | None, str]], set[str]]:
    """Return pairs of listed functions that call each other, others between them left out, and files entered."""
    stack: list[str | None] = []
    edges, files = set(), set()

    def watch(frame, event, _):
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(str(PACKAGE)):
            return
        if event == "return":
            if stack:
                stack.pop()
            return
        file = Path(path).relative_to(PACKAGE).as_posix()
        name = f"{file}:{frame.f_code.co_qualname}"
        files.add(file)
        if name in listed:
            edges.add((next((one for one in reversed(stack) if one), None), name))
        stack.append(name if name in listed else None)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return edges, files


@pytest.mark.parametrize("what", ["fit", "predict"])
def test_the_graph_is_what_is_called(what):
    X, y = make_classification(60, 6, random_state=0)
    model = MKLClassifier().fit(X, y)
    edges = drawn(f"### {what.capitalize()}")
    assert len(edges) > 10
    called, files = walked(
        lambda: model.fit(X, y) if what == "fit" else model.predict(X), {name for _, name in edges}
    )
    missing = [f"{caller} -> {name}" for caller, name in edges if (caller, name) not in called]
    assert not missing, f"not called like that: {missing}; {sorted(map(str, called))}"
    # a subpackage that a fit enters is in the graph; shared tools are not, nor the loss that scikit-learn's tags ask
    rooms = {name.partition("/")[0] for _, name in edges if "/" in name}
    entered = {file.partition("/")[0] for file in files if "/" in file}
    assert entered - rooms <= {"_numerics", "views", "cluster", "losses"}
