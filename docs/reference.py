"""Write the API reference from what the public modules show and from the registries, so that nothing can be missing.

``conf.py`` calls :func:`write` before every build; the pages are ``docs/api/*.rst`` and are not kept in the repository.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import kernelweave
from kernelweave.banks.decide import RULES

__all__ = ["PAGES", "Page", "listing", "names", "registered", "rules", "with_rules", "write"]

#: comments around the table of the rules in ``choosing.md``
FIRST = "<!-- rules: python docs/reference.py writes this table from banks/decide.py -->\n"
LAST = "<!-- end of the rules -->"


@dataclass(frozen=True)
class Page:
    """One page of the reference: the public names of some modules.

    Attributes
    ----------
    file, title, intro : str
    modules : tuple of str
        Modules of the package whose ``__all__`` is listed; an object is listed with the first that has it.
    registry : bool
        Whether the first module has a registry, of which a table with the strings is printed.
    behind : tuple of str
        Names for people who extend the module, listed by themselves.
    """

    file: str
    title: str
    intro: str
    modules: tuple[str, ...]
    registry: bool = False
    behind: tuple[str, ...] = ()


PAGES = [
    Page(
        "estimators",
        "Estimators",
        "Everything with ``fit``, and what goes around it. Import them from ``kernelweave``.",
        ("estimators",),
    ),
    Page("views", "Views", "Several tables of the same samples: :doc:`../incomplete_views`.", ("views",)),
    Page(
        "kernels",
        "Kernels",
        "Functions that make kernels and banks of kernels: :doc:`../kernels`.",
        ("kernels",),
        behind=(
            "Chosen",
            "Kernel",
            "KernelSpec",
            "NumericKernel",
            "Schema",
            "Stack",
            "as_spec",
            "column_groups",
            "describe_columns",
            "expand_kernels",
            "n_samples",
            "resolve_kernels",
            "stack_features",
            "take",
            "view_of",
        ),
    ),
    Page("losses", "Losses", "What is charged for a wrong prediction.", ("losses",), registry=True),
    Page("norms", "Norms", "What is charged for the weights: :doc:`../choosing`.", ("norms",), registry=True),
    Page(
        "solvers",
        "Solvers",
        "Algorithms, and the loop that runs them: :doc:`../solvers`.",
        ("solvers",),
        registry=True,
    ),
    Page(
        "inspection",
        "Reading a fit",
        "Tables about fitted models: :doc:`../inspection`.",
        ("inspection", "report"),
    ),
    Page(
        "displays",
        "Pictures",
        "Displays as in scikit-learn: ``from_estimator(...)`` draws and returns one.",
        ("displays",),
    ),
    Page("persistence", "Saved models", "Files that hold no code: :doc:`../saved_models`.", ("persistence",)),
    Page(
        "similarity",
        "Similarities",
        "Matrices that are not kernels: :doc:`../similarities`.",
        ("similarity",),
    ),
    Page("metrics", "Survival", "Times to an event, curves and scores: :doc:`../survival`.", ("metrics",)),
    Page("omics", "Omics", "Tables of cells and gene sets: :doc:`../groups`.", ("omics",)),
    Page("crowd", "Labels of a crowd", "Several annotators: :doc:`../noisy_labels`.", ("crowd",)),
    Page(
        "evidence",
        "Many targets",
        "Kernel weights by marginal likelihood: :doc:`../many_targets`.",
        ("evidence",),
    ),
    Page("distributed", "Clusters", "Fits on a Dask cluster: :doc:`../scale`.", ("distributed",)),
    Page(
        "problems",
        "Problems and certificates",
        "How a point is evaluated: :doc:`../notation`.",
        ("problems",),
    ),
    Page("banks", "Banks", "Kernels bound to samples, stored or not: :doc:`../architecture`.", ("banks",)),
    Page(
        "exceptions",
        "Warnings and errors",
        "What the library raises and warns with, and what to do: :doc:`../troubleshooting`.",
        ("exceptions",),
    ),
]


def names(page: Page) -> list[str]:
    """Return what a page lists: classes and functions, as paths below ``kernelweave``."""
    return listing()[page.file]


@cache
def listing() -> dict[str, list[str]]:
    """Return what every page lists; an object that several modules show is on the first of their pages."""
    seen: set[int] = set()
    pages = {}
    for page in PAGES:
        found = {id(thing): path for path, thing in _public(page)}
        pages[page.file] = [path for key, path in found.items() if key not in seen]
        seen |= set(found)
    return pages


def _public(page: Page) -> Iterator[tuple[str, Any]]:
    """Yield the registered classes by the path of their module, then what modules show by a shorter one."""
    for _, thing in registered(page):
        yield f"{thing.__module__}.{thing.__qualname__}".removeprefix("kernelweave."), thing
    for public in page.modules:
        module = import_module(f"kernelweave.{public}")
        for name in sorted(module.__all__, key=str.lower):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isroutine(thing):
                yield (name if name in kernelweave.__all__ else f"{public}.{name}"), thing


def registered(page: Page) -> list[tuple[str, Any]]:
    """Return the registered strings of a page with their classes."""
    if not page.registry:
        return []
    registry = import_module(f"kernelweave.{page.modules[0]}").registry
    return [(name, registry[name]) for name in registry]


def rules() -> str:
    """Return the table of the rules that decide how kernels are kept and which solver runs."""
    lines = ["| rule | holds where | decides |", "| --- | --- | --- |"]
    for rule in RULES:
        what = f"`{rule.solver}`" if rule.solver else rule.words
        if rule.storage:
            what = f"{rule.words} (`{rule.storage}`)"
        lines.append(f"| {rule.name} | {rule.when} | {what or 'the solver asked for'} |")
    return "\n".join(lines)


def with_rules(text: str) -> str:
    """Return a page with the table of the rules as it is now, between two comments."""
    before, first, rest = text.partition(FIRST)
    _, last, after = rest.partition(LAST)
    return f"{before}{first}\n{rules()}\n\n{last}{after}"


def write(docs: Path) -> None:
    """Write all pages into ``docs/api``, those alone whose content is new; remove those of names that are gone."""
    folder = docs / "api"
    folder.mkdir(exist_ok=True)
    files = "\n".join(f"   {page.title} <{page.file}>" for page in PAGES)
    lines = "\n".join(f"- :doc:`{page.title} <{page.file}>`. {page.intro}" for page in PAGES)
    intro = (
        "Look up any public class or function, with its parameters and attributes. Everything can be imported from\n"
        "where it is listed, and the estimators from ``kernelweave`` itself."
    )
    _write(
        folder / "index.rst",
        f"{_title('API reference')}{intro}\n\n{lines}\n\n"
        f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{files}\n",
    )
    for page in PAGES:
        _write(folder / f"{page.file}.rst", _page(page))
    kept = {"index", *[page.file for page in PAGES]}
    documented = {f"kernelweave.{name}" for page in PAGES for name in names(page)}
    for path in [*folder.glob("*.rst"), *folder.glob("generated/*.rst")]:
        if path.stem not in (kept if path.parent == folder else documented):
            path.unlink()


def _page(page: Page) -> str:
    behind = {f"{page.modules[0]}.{name}" for name in page.behind}
    listed = names(page)
    unknown = behind - set(listed)
    if unknown:
        raise ValueError(f"docs/reference.py names what is not there: {sorted(unknown)}")
    text = f"{_title(page.title)}{page.intro}\n\n.. currentmodule:: kernelweave\n\n"
    if page.registry:
        text += _strings(page)
    text += _summary([name for name in listed if name not in behind])
    if behind:
        text += f"For additions\n-------------\n\n{_summary([name for name in listed if name in behind])}"
    return text


def _strings(page: Page) -> str:
    rows = ""
    for name, thing in registered(page):
        said = getattr(thing, "summary", "") or inspect.getdoc(thing).splitlines()[0].rstrip(".")
        path = next(listed for listed in names(page) if listed.endswith(f".{thing.__name__}"))
        rows += f'   * - ``"{name}"``\n     - :class:`~kernelweave.{path}`\n     - {said.strip()}\n'
    return f".. list-table:: What may stand in place of an object\n   :widths: 20 20 60\n\n{rows}\n"


def _summary(listed: list[str]) -> str:
    entries = "".join(f"   {name}\n" for name in listed)
    return f".. autosummary::\n   :toctree: generated\n\n{entries}\n"


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    page = Path(__file__).parent / "choosing.md"
    _write(page, with_rules(page.read_text(encoding="utf-8")))
