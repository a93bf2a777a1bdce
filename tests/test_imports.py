"""No module imports a private name, or a name of a private module, from another subpackage.

A subpackage is a package (or module) directly below ``kernelweave``.  Others may import what its ``__init__`` shows and
its modules without an underscore.  The same holds for subpackages whose own name begins with an underscore: all of the
package may use them, by their public modules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernelweave

PACKAGE = Path(kernelweave.__file__).parent


def imported(path: Path, inside: Path = PACKAGE) -> Iterator[tuple[str, ...]]:
    """Yield what a module imports from the package, as names from the subpackage on."""
    package = path.relative_to(inside).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level == 0:
                if module[:1] != ("kernelweave",):
                    continue
                module = module[1:]
            yield from ((*above, *module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("kernelweave."):
                    yield tuple(alias.name.split(".")[1:])


def private_imports(path: Path, inside: Path = PACKAGE) -> Iterator[tuple[str, str]]:
    """Yield (subpackage, private module or name of another subpackage) for every such import."""
    subpackage = path.relative_to(inside).with_suffix("").parts[0]
    for names in imported(path, inside):
        if names[0] == subpackage:
            continue
        for depth, name in enumerate(names[1:], start=2):
            if name.startswith("_"):
                yield subpackage, ".".join(names[:depth])
                break


TAKEN = {
    pair: path.relative_to(PACKAGE)
    for path in sorted(PACKAGE.rglob("*.py"))
    for pair in private_imports(path)
}


def test_no_room_is_entered_private_imports():
    new = [f"{path} imports {what}" for (_, what), path in TAKEN.items()]
    assert not new, (
        "import what the __init__ or a module without underscore shows, or show it there: " + "; ".join(new)
    )


#: imports of private modules and names that tests make: of algorithms that are worth a test of their own, no more
PRIVATE_IMPORTS_OF_TESTS = 50


def private_names(path: Path) -> Iterator[str]:
    """Yield the private names of the package that a test imports, a line for every statement, or patches by their path."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] * bool(re.fullmatch(r"kernelweave([.:]\w+)+", node.value))
        hidden = [name for name in names if re.match(r"kernelweave\b.*[.:]_[^_]", name)]
        if hidden:
            yield f"{path.name}:{node.lineno} {', '.join(hidden)}"


def test_tests_speak_to_public_names():
    found = [line for path in sorted(Path(__file__).parent.rglob("*.py")) for line in private_names(path)]
    assert len(found) <= PRIVATE_IMPORTS_OF_TESTS, (
        "test what is private through the public function that uses it: " + "; ".join(found)
    )


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("from kernelweave.banks import _base, Bank", 1),
        ("from kernelweave._numerics.smo import solve_box_qp, solve_few", 1),
        ("import kernelweave.banks._base", 1),
        ('patch("kernelweave.cli._demo.run")', 1),
        ("from kernelweave.banks import Bank", 0),
        ("from kernelweave import __version__", 0),
        ('"kernelweave-_x"', 0),
    ],
)
def test_the_count_itself(tmp_path, line, count):
    (tmp_path / "test_one.py").write_text(f"def test_one():\n    {line}\n")
    assert len(list(private_names(tmp_path / "test_one.py"))) == count


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("from ..banks._base import Bank", ["banks._base"]),
        ("from ..banks import Bank, _secret", ["banks._secret"]),
        ("from ..banks.build import _check_unsure", ["banks.build._check_unsure"]),
        ("from .. import banks", []),
        ("from .._numerics.smo import solve_box_qp", []),
        ("from .._numerics._smo_pairs import pair", ["_numerics._smo_pairs"]),
        ("from ._loop import Stop", []),
        ("import kernelweave.banks._base", ["banks._base"]),
        ("from kernelweave.kernels._kernel import take", ["kernels._kernel"]),
        ("from sklearn.utils._tags import get_tags", []),
    ],
)
def test_the_rule_itself(tmp_path, line, taken):
    folder = tmp_path / "solvers"
    folder.mkdir()
    (folder / "level.py").write_text(f"def late():\n    {line}\n")
    assert [what for _, what in private_imports(folder / "level.py", tmp_path)] == taken
