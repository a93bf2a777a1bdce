"""How large the package is, and how much of it a reader meets who follows ``MKLClassifier.fit`` and ``predict``.

The size is read off the syntax trees of ``src/kernelweave``: files, lines, functions (methods and nested ones counted),
their cyclomatic complexity (one, and one more for every branch, loop, handler, comprehension, ``and``, ``or``),
modules under 120 lines that exactly one other module imports, and private functions that are referenced once.

Each call is made twice on the same 60 samples, and the second one is watched by ``sys.setprofile``: imports,
compilation and registries belong to the first.  What is counted:

*functions*
    distinct pairs of file and name among the functions entered whose code lies in the package's folder.  Lambdas,
    comprehensions and generator expressions (names such as ``<lambda>``) are not counted.
*files*
    the files of those functions.
*depth*
    the most functions of the package, counted as above, that are open at once.
*to the SMO*
    the most that are open when ``run_pairs``, the compiled loop of the SMO, is called, itself counted.
*calls*
    how often such functions are entered in all.

Run ``python benchmarks/walk.py``; ``--quick`` writes nothing, ``--names`` also lists every function entered, file by
file, with its number of calls.
"""

from __future__ import annotations

import argparse
import ast
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.datasets import make_classification

import kernelweave
from _measure import machine, pin, show, write_table
from kernelweave import MKLClassifier, kernels
from kernelweave.exceptions import KernelWeaveWarning

PACKAGE = Path(kernelweave.__file__).parent
NOTE = """`MKLClassifier(...).fit(X, y)` and `.predict(X)` on 60 generated samples with 6 features
(`make_classification`, seed 0), every parameter at its default; each is called twice and the second call is watched.

*Functions*: distinct pairs of file and name entered in the package, without lambdas, comprehensions and compiled code.
*Files*: those they are in. *Depth*: the most of them that are open at once. *To the SMO*: the most that are open when
compiled SMO steps are called. *Calls*: how often they are entered."""
SIZE_NOTE = """Read off the syntax trees of `src/kernelweave`. *Functions*: with methods and nested ones. *Complexity*:
one and one more for every branch, loop, handler, comprehension and `and` or `or`. *One importer*: modules under
120 lines that exactly one other module imports. *Used once*: private functions that are referenced once."""
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


@dataclass
class Walk:
    """What one call entered."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    depth: int = 0
    depth_of_smo: int = 0

    @property
    def files(self) -> list[str]:
        """Files entered, sorted, relative to the package's folder."""
        return sorted({file for file, _ in self.calls})


def walk(function: Callable[[], Any]) -> Walk:
    """Call ``function`` and count the functions of the package that it enters."""
    taken, prefix, open_now = Walk(), str(PACKAGE) + "/", 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal open_now
        code = frame.f_code
        if not code.co_filename.startswith(prefix) or code.co_name.startswith("<"):
            return
        if event == "call":
            open_now += 1
            taken.depth = max(taken.depth, open_now)
            file = code.co_filename.removeprefix(prefix)
            taken.calls[file, code.co_name] += 1
            if code.co_name == "run_pairs":
                taken.depth_of_smo = max(taken.depth_of_smo, open_now)
        elif event == "return":
            open_now -= 1

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return taken


def walks() -> dict[tuple[str, str], Walk]:
    """Walk through the second fit and the second prediction, for both sets of kernels."""
    X, y = make_classification(60, 6, n_informative=3, n_redundant=0, random_state=0)
    taken = {}
    models = {"default": MKLClassifier(), 'preset("stpmkl")': MKLClassifier(kernels.preset("stpmkl"))}
    for name, model in models.items():
        calls: dict[str, Callable[[], Any]] = {
            "fit": lambda m=model: m.fit(X, y),
            "predict": lambda m=model: m.predict(X),
        }
        for call, function in calls.items():
            function()
            taken[name, call] = walk(function)
    return taken


def complexity(function: ast.FunctionDef) -> int:
    """Return the cyclomatic complexity of a function, without the functions in it."""
    total, waiting = 1, list(function.body)
    while waiting:
        node: ast.AST = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            continue
        total += isinstance(node, BRANCHES)
        total += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        waiting += ast.iter_child_nodes(node)
    return total


def size(package: Path) -> dict[str, Any]:
    """Return what the source of a package comes to."""
    root = package.parent
    trees = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): (
            path,
            path.read_text(),
        )
        for path in sorted(package.rglob("*.py"))
    }
    functions: list[tuple[int, str]] = []
    importers: dict[str, set[str]] = {name: set() for name in trees}
    private: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for name, (path, text) in trees.items():
        inside = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                functions.append((complexity(node), f"{name}.{node.name}"))
                if node.name.startswith("_") and not node.name.startswith("__"):
                    private[node.name] += 1
            elif isinstance(node, ast.ImportFrom):
                above = inside[: len(inside) - node.level + 1] if node.level else []
                module = ".".join([*above, *([node.module] if node.module else [])])
                for one in (module, *(f"{module}.{alias.name}" for alias in node.names)):
                    if one in trees and one != name:
                        importers[one].add(name)
            elif isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
    lines = {name: text.count("\n") for name, (_, text) in trees.items()}
    worst = max(functions)
    return {
        "files": len(trees),
        "lines": sum(lines.values()),
        "functions": len(functions),
        "mean complexity": round(sum(one for one, _ in functions) / len(functions), 2),
        "worst": f"{worst[0]} ({worst[1].removeprefix('kernelweave.')})",
        "one importer": sum(
            lines[name] < 120 and len(importers[name]) == 1 and path.name != "__init__.py"
            for name, (path, _) in trees.items()
        ),
        "used once": sum(count == 1 and used[name] == 1 for name, count in private.items()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the same walks; nothing is written")
    parser.add_argument("--names", action="store_true", help="list every function entered")
    options = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    taken = walks()
    rows = [
        {
            "kernels": name,
            "call": call,
            "functions": len(way.calls),
            "files": len(way.files),
            "depth": way.depth,
            "to the SMO": way.depth_of_smo,
            "calls": way.calls.total(),
        }
        for (name, call), way in taken.items()
    ]
    show(rows)
    sizes = [size(PACKAGE)]
    show(sizes)
    if options.names:
        for (name, call), way in taken.items():
            print(f"{call}, kernels {name}")
            for file in way.files:
                entered = sorted(f"{f} {count}" for (where, f), count in way.calls.items() if where == file)
                print(f"  {file}: {', '.join(entered)}")
    if not options.quick:
        write_table("walk", rows, "python benchmarks/walk.py", NOTE)
        write_table("size", sizes, "python benchmarks/walk.py", SIZE_NOTE)


if __name__ == "__main__":
    main()
