"""Views: named groups of columns with kernels of their own, from ``views.toml`` or ``--view``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._components import nearest
from ._remarks import looks

if TYPE_CHECKING:
    from ..kernels.groups import Groups

__all__ = ["EXAMPLE", "View", "join_files", "read_views", "views_of_groups", "views_of_options"]

EXAMPLE = """\
id = "patient"                  # only where views come from files of their own: the column that joins them

[views.expression]
columns = ["gene_*"]            # names, or patterns with * and ?
kernels = ["linear", "gaussian"]
widths = [0.5, 1, 2]            # of the Gaussians, in median distances

[views.clinical]
file = "clinical.csv"           # beside views.toml; all of its columns
kernels = ["polynomial"]
degrees = [2, 3]
"""
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass
class View:
    """A named group of columns, and the kernels on it; no kernels named are those of ``default_bank()``."""

    name: str
    columns: tuple[str, ...] = ("*",)
    kernels: tuple[str, ...] = ("gaussian", "linear")
    widths: tuple[float, ...] = WIDTHS
    degrees: tuple[int, ...] = (2, 3)
    file: str | None = None
    picked: list[str] = field(default_factory=list)

    def spec(self) -> Any:
        """Return the kernels of the view, before they are placed on columns."""
        from .. import kernels as kw

        settings = {"widths": self.widths, "relative": True, "degrees": self.degrees}
        specs = []
        for name in self.kernels:
            make = getattr(kw, name)
            wanted = signature(make).parameters
            specs.append(make(**{key: value for key, value in settings.items() if key in wanted}))
        return sum(specs[1:], start=specs[0])

    def pick(self, columns: Sequence[str]) -> None:
        """Settle which columns the patterns mean; a pattern that matches none is an error."""
        self.picked = []
        for pattern in self.columns:
            matching = [column for column in columns if column == pattern] or [
                column for column in columns if fnmatchcase(column, pattern)
            ]
            if not matching:
                raise ValueError(
                    f"view {self.name!r}: no column is called {pattern!r}.{nearest(pattern, list(columns))}"
                )
            self.picked += [column for column in matching if column not in self.picked]


def kernel_names() -> list[str]:
    """Return the names of the kernels that any table of numbers will do for."""
    from ..kernels import registry

    return [name for name in registry if registry[name].for_tables]


def read_views(path: Path) -> tuple[list[View], str | None]:
    """Read ``views.toml``; return the views and the column that joins files."""
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from error
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None
    unknown = set(content) - {"views", "id"}
    if unknown:
        raise ValueError(f"{path}: unknown entry {sorted(unknown)[0]!r}; there are 'id' and [views.NAME]")
    tables = content.get("views")
    if not isinstance(tables, dict) or not tables:
        raise ValueError(f"{path} names no view; it should look like this:\n\n{EXAMPLE}")
    views = [_view(name, table, path) for name, table in tables.items()]
    identity = content.get("id")
    if any(view.file for view in views) and not isinstance(identity, str):
        raise ValueError(f'{path}: views with a file need the column that joins them, id = "..."')
    return views, identity


def _view(name: str, table: Any, path: Path) -> View:
    where = f"{path}: view {name!r}"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table, [views.{name}]")
    known = {"columns": str, "kernels": str, "widths": (int, float), "degrees": int, "file": str}
    view = View(name)
    for key, value in table.items():
        if key not in known:
            raise ValueError(f"{where}: unknown entry {key!r}; there are {', '.join(known)}")
        entries = [value] if key == "file" or not isinstance(value, list) else value
        if not entries or not all(isinstance(entry, known[key]) for entry in entries):  # type: ignore[arg-type]
            raise ValueError(f"{where}: {key} is {value!r}, which it cannot be")
        setattr(view, key, value if key == "file" else tuple(entries))
    known_kernels = kernel_names()
    unknown = [kernel for kernel in view.kernels if kernel not in known_kernels]
    if unknown:
        raise ValueError(f"{where}: unknown kernel {unknown[0]!r}; there are {', '.join(known_kernels)}")
    if view.file is not None:
        view.file = str(path.parent / view.file)
    return view


def views_of_options(options: Sequence[str]) -> list[View]:
    """Read ``--view NAME=PATTERN,PATTERN`` and ``--view NAME=FILE``.

    >>> [(view.name, view.columns, view.file) for view in views_of_options(["clinical=age,stage_*", "rna=rna.csv"])]
    [('clinical', ('age', 'stage_*'), None), ('rna', ('*',), 'rna.csv')]
    """
    from ._files import is_table

    views = []
    for option in options:
        name, equals, patterns = option.partition("=")
        columns = tuple(pattern.strip() for pattern in patterns.split(",") if pattern.strip())
        if not (equals and name.strip() and columns):
            raise ValueError(f"--view takes NAME=COLUMN,COLUMN,... or NAME=FILE, got {option!r}")
        from_file = len(columns) == 1 and is_table(columns[0])
        views.append(View(name.strip(), file=columns[0]) if from_file else View(name.strip(), columns))
    names = [view.name for view in views]
    if len(set(names)) < len(names):
        raise ValueError(f"two views are called {max(names, key=names.count)!r}")
    return views


def views_of_groups(spec: Groups, columns: Sequence[str]) -> tuple[list[View], str]:
    """Return a view with a linear kernel for every group that the table has columns of, and what was left out."""
    from ..kernels import Schema

    found = spec.checked(Schema(len(columns), tuple(columns)))
    views = [
        View(group, tuple(columns[j] for j in positions), ("linear",))
        for group, positions in found.positions.items()
    ]
    return views, str(found)


def join_files(
    frame: Any,
    views: Sequence[View],
    identity: str | None,
    missing: str,
    read: Callable[..., Any],
    notes: list[str] | None = None,
) -> Any:
    """Put the columns of views with files of their own beside those of the table, row by row of the same id.

    The ids are texts, and the same where they are written alike.  Rows that a file does not have are refused, or empty
    where ``missing`` says that they will be completed; ``read`` is how files are read.  ``notes``, given where a model
    is fitted, gets how many rows were found; a model that is fitted needs some of every file.
    """
    if not any(view.file for view in views):
        return frame
    if identity is None:
        raise ValueError("views with a file need the column that joins them: --id COLUMN")
    if identity not in frame:
        raise ValueError(
            f"the table has no column {identity!r}, by which the views' files are joined."
            f"{nearest(identity, list(frame.columns))}"
        )
    _refuse_nameless("the table", frame, identity)
    for view in views:
        if view.file is None:
            continue
        other = read(Path(view.file), ids=[identity], single=[identity])
        if identity not in other:
            raise ValueError(
                f"{view.file} has no column {identity!r}, by which it is joined."
                f"{nearest(identity, list(other.columns))}"
            )
        _refuse_nameless(view.file, other, identity)
        if other[identity].duplicated().any():
            twice = other[identity][other[identity].duplicated()].iloc[0]
            raise ValueError(f"{view.file} has two rows with {identity} = {twice!r}")
        other = other.set_index(identity)
        absent = frame[identity][~frame[identity].isin(other.index)]
        if len(absent) == len(frame) and (notes is not None or missing == "error"):
            raise ValueError(
                f"{view.file} has none of the {len(frame)} rows: their {identity} is like {absent.iloc[0]!r}, there it "
                f"is like {next(iter(other.index), None)!r}{_nearly(absent, other.index)}"
            )
        if notes is not None and len(absent):
            notes.append(
                f"view {view.name!r}: {len(frame) - len(absent)} of {len(frame)} rows found in {view.file}"
                f"{_nearly(absent, other.index)}"
            )
        if len(absent) and missing == "error":
            raise ValueError(
                f"{view.file} has no row with {identity} = {absent.iloc[0]!r} ({len(absent)} of {len(frame)} are "
                f"missing{_nearly(absent, other.index)}): --missing predict completes the view from the others"
            )
        both = [column for column in other.columns if column in frame]
        if both:
            raise ValueError(f"the column {both[0]!r} is in {view.file} and elsewhere too: rename one")
        # without patterns a view with a file is all of it
        view.columns = tuple(other.columns) if view.columns == ("*",) else view.columns
        aligned = other.reindex(frame[identity]).reset_index(drop=True)
        import pandas as pd

        frame = pd.concat([frame.reset_index(drop=True), aligned], axis=1)
    return frame


def _refuse_nameless(what: str, frame: Any, identity: str) -> None:
    """Raise where a row has no id to be joined by."""
    nameless = (frame[identity] == "").to_numpy()
    if nameless.any():
        raise ValueError(
            f"{what} has no {identity!r} in row {int(nameless.argmax())}, by which rows are joined "
            f"({int(nameless.sum())} such rows): name them or leave them out"
        )


def _nearly(absent: Any, there: Any) -> str:
    """Say which id is there in another spelling only: with other spaces, letter case or zeros."""

    def spelled(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return looks(text)

    known = {spelled(text): text for text in there}
    for text in absent:
        if (other := known.get(spelled(text))) is not None:
            return f"; {text!r} here is {other!r} there: ids are compared as texts, write them alike"
    return ""
