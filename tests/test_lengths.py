"""No function is longer than a screen: at most 60 lines, its docstring not counted."""

from __future__ import annotations

import ast
from pathlib import Path

import kernelweave

MOST = 60


def test_every_function_fits_on_a_screen():
    long = []
    for path in sorted(Path(kernelweave.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node, clean=False) or ""
                lines = node.end_lineno - node.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)
                if lines > MOST:
                    long.append(f"{path.name}: {node.name} has {lines} lines")
    assert not long, long
