"""Views from ``views.toml`` or ``--view``, and the default treatment of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click import UsageError

from .._components import nearest
from ._tables import (
    READABLE,
    TOO_LARGE,
    Remarks,
    comparable,
    numbers_and_texts,
    require_file,
    suffix_of,
    text_of,
)

EXAMPLE = """\
id = "patient"                  # only where views come from files of their own: the column that joins them

[views.genes]
file = "genes.csv"              # beside views.toml; all of its columns
kernels = ["linear", "gaussian"]
widths = [0.5, 1, 2]            # of the Gaussians, in median distances

[views.proteins]
file = "proteins.csv"

[views.clinic]
columns = ["age", "st*"]        # of the table itself: names, or patterns with * and ?
kernels = ["polynomial"]
degrees = [2, 3]
"""
#: columns that are listed where none of them is meant
MOST_LISTED = 20
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: weight of the columns of ``--always``: next to nothing is charged for them
ADJUSTED = 100.0


@dataclass
class View:
    """A named group of columns, and the kernels on it; no kernels named are those of ``default_bank()``."""

    name: str
    columns: tuple[str, ...] = ("*",)
    kernels: tuple[str, ...] = ("gaussian", "linear")
    widths: tuple[float, ...] = WIDTHS
    degrees: tuple[int, ...] = (2, 3)
    #: kernels on a column of objects, as ``--objects`` has them
    objects: tuple[str, ...] = ()
    file: str | None = None
    picked: list[str] = field(default_factory=list)
    #: whether it counts whatever the other views do (``--always``)
    always: bool = False

    def spec(self) -> Any:
        """Return the kernels of the view, before they are placed on columns."""
        from .. import kernels as kw

        if self.always:
            return kw.always(kw.linear(), weight=ADJUSTED)
        if self.objects:
            return sum(
                (object_kernels(text) for text in self.objects[1:]), start=object_kernels(self.objects[0])
            )
        settings = {"width": self.widths, "relative": True, "degree": self.degrees}
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


def object_kernels(text: str) -> Any:
    """Return the kernels on texts that are named with their parameters, numbers first.

    >>> [kernel.name for kernel in object_kernels("spectrum:3,4,alphabet=dna")]
    ['spectrum(k=3, alphabet=dna)', 'spectrum(k=4, alphabet=dna)']
    """
    from .. import kernels as kw

    name, _, given = (part.strip() for part in text.partition(":"))
    known = {kernel: kw.registry[kernel].for_texts for kernel in kw.registry if kw.registry[kernel].for_texts}
    if name not in known:
        raise ValueError(f"{name!r} is no kernel on texts ({', '.join(known)}).{nearest(name, list(known))}")
    numbers: list[int] = []
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in given.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        plain = {"true": True, "false": False, "none": None}.get(value.lower(), value)
        if not equals and key.isdecimal():
            numbers.append(int(key))
        elif equals and key in signature(getattr(kw, name)).parameters:
            options[key] = int(value) if value.isdecimal() else plain
        else:
            parameters = ", ".join(signature(getattr(kw, name)).parameters)
            raise ValueError(f"{part!r} is no number and no parameter of {name}, which has {parameters}")
    if numbers:
        options[known[name]] = numbers if len(numbers) > 1 else numbers[0]
    return kw.as_spec(getattr(kw, name)(**options))


def read_views(path: Path) -> tuple[list[View], str | None]:
    """Read ``views.toml``; return the views and the column that joins files."""
    import tomllib

    require_file(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
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
    texts = dict.fromkeys(("columns", "kernels", "objects", "file"), str)
    known: dict[str, Any] = texts | {"widths": (int, float), "degrees": int}
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
    if view.objects and ("kernels" in table or len(view.columns) > 1):
        raise ValueError(f"{where} has objects in one column, and its kernels are those of 'objects'")
    view.spec()
    if view.file is not None:
        view.file = str(path.parent / view.file)
    return view


def views_of_options(options: Sequence[str], files: bool = False) -> list[View]:
    """Read ``--view NAME=PATTERN,PATTERN`` and ``--view NAME=FILE``; ``files`` says that only files will do.

    >>> [(view.name, view.columns, view.file) for view in views_of_options(["clinical=age,stage_*", "rna=rna.csv"])]
    [('clinical', ('age', 'stage_*'), None), ('rna', ('*',), 'rna.csv')]
    """
    views = []
    for option in options:
        name, equals, patterns = option.partition("=")
        columns = tuple(pattern.strip() for pattern in patterns.split(",") if pattern.strip())
        if not (equals and name.strip() and columns):
            raise UsageError(f"--view takes NAME=COLUMN,COLUMN,... or NAME=FILE, got {option!r}")
        from_file = len(columns) == 1 and suffix_of(Path(columns[0])) in READABLE
        views.append(View(name.strip(), file=columns[0]) if from_file else View(name.strip(), columns))
    names = [view.name for view in views]
    if len(set(names)) < len(names):
        raise UsageError(f"two views are called {max(names, key=names.count)!r}")
    for view in views:
        if files and view.file is None:
            raise UsageError(
                f"--view {view.name} takes a file here, NAME=FILE: which columns a view has, the model knows"
            )
    return views


def views_of_objects(options: Sequence[str]) -> list[View]:
    """Read ``--objects COLUMN=KERNEL:NUMBERS,NAME=VALUE``: a view for every column."""
    views: dict[str, View] = {}
    for option in options:
        column, equals, text = (part.strip() for part in option.partition("="))
        if not (equals and column and text):
            raise UsageError(f"--objects takes COLUMN=KERNEL or COLUMN=KERNEL:NUMBERS, got {option!r}")
        try:
            object_kernels(text)
        except ValueError as error:
            raise UsageError(f"--objects {column}: {error}") from None
        views.setdefault(column, View(column, (column,))).objects += (text,)
    return list(views.values())


def always_view(text: str) -> View:
    """Read ``--always COLUMN,COLUMN``: a view with a linear kernel that always counts."""
    columns = tuple(part.strip() for part in text.split(",") if part.strip())
    if not columns:
        raise UsageError(f"--always takes columns, separated by commas, got {text!r}")
    return View("always", columns, always=True)


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
    require_column(frame, identity, "the table", ", by which the views' files are joined")
    refuse_nameless("the table", frame, identity)
    for view in views:
        if view.file is None:
            continue
        other = read(Path(view.file), ids=[identity], single=[identity])
        require_column(other, identity, view.file, ", by which it is joined")
        refuse_nameless(view.file, other, identity)
        if other[identity].duplicated().any():
            twice = other[identity][other[identity].duplicated()].iloc[0]
            raise ValueError(f"{view.file} has two rows with {identity} = {twice!r}")
        other = other.set_index(identity)
        absent = frame[identity][~frame[identity].isin(other.index)]
        nearly, rows = nearly_there(absent, other.index) if len(absent) else "", len(frame)
        if len(absent) == rows and (notes is not None or missing == "error"):
            raise ValueError(
                f"{view.file} has none of the {rows} rows: their {identity} is like {absent.iloc[0]!r}, there it is "
                f"like {next(iter(other.index), None)!r}{nearly}"
            )
        if notes is not None and len(absent):
            found = f"{rows - len(absent)} of {rows} rows found in {view.file}{nearly}"
            notes.append(f"view {view.name!r}: {found}")
        if len(absent) and missing == "error":
            raise ValueError(
                f"{view.file} has no row with {identity} = {absent.iloc[0]!r} ({len(absent)} of {rows} are missing"
                f"{nearly}): --missing predict completes the view from the others"
            )
        both = [column for column in other.columns if column in frame]
        if both:
            raise ValueError(f"the column {both[0]!r} is in {view.file} and elsewhere too: rename one")
        # without patterns a view with a file is all of it
        view.columns = tuple(other.columns) if view.columns == ("*",) else view.columns
        aligned = other.reindex(frame[identity]).reset_index(drop=True)
        frame = pd.concat([frame.reset_index(drop=True), aligned], axis=1)
    return frame


def require_column(frame: Any, column: str, where: Any, why: str) -> None:
    """Raise where a table does not have a column that an option names."""
    if column not in frame:
        columns = [str(name) for name in frame.columns]
        others = f" There are {', '.join(columns)}." if len(columns) <= MOST_LISTED else ""
        raise ValueError(f"{where} has no column {column!r}{why}.{nearest(column, columns) or others}")


def refuse_nameless(what: Any, frame: Any, identity: str) -> None:
    """Raise where a row has no id to be joined by."""
    nameless = (frame[identity] == "").to_numpy()
    if nameless.any():
        raise ValueError(
            f"{what} has no {identity!r} in row {int(nameless.argmax())}, by which rows are joined "
            f"({int(nameless.sum())} such rows): name them or leave them out"
        )


def nearly_there(absent: Any, there: Any) -> str:
    """Say which id is there in another spelling only: with other spaces, letter case or zeros."""

    def spelled(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return comparable(text)

    known = {spelled(text): text for text in there}
    for text in absent:
        if (other := known.get(spelled(text))) is not None:
            return f"; {text!r} here is {other!r} there: ids are compared as texts, write them alike"
    return ""


#: more distinct texts than this in a column are names or notes, not categories
MOST_CATEGORIES = 30
MISSING = "missing"
_DAY, _MONTH, _YEAR = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])", r"(1[89]|20|21)\d\d"
_NAME = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?"
#: dates as 2024-01-31 (with a time, perhaps), 31.1.2024, 1/31/24, 31 Jan 2024 and the like
DATE = re.compile(
    rf"({_YEAR}[-/.]{_MONTH}[-/.]{_DAY}|({_DAY}[-/.]{_MONTH}|{_MONTH}[-/.]{_DAY})[-/.]{_YEAR}"
    rf"|({_DAY}/{_MONTH}|{_MONTH}/{_DAY})/\d\d|\d\d\.{_MONTH}\.\d\d"
    rf"|{_DAY}[- ]{_NAME}[- ]({_YEAR}|\d\d)|{_NAME} {_DAY}, {_YEAR}|{_YEAR}[- ]{_NAME}[- ]{_DAY})"
    rf"([T ]{_TIME} ?(Z|UTC|[+-]\d\d:?\d\d)?)?",
    re.IGNORECASE,
)
#: numbers that are written with anything but digits and a decimal point: 1'234, 1.234,56, 12 %, EUR 5
DRESSED = re.compile(r"[^\d\s]{0,3} ?[+-]?\d[\d.,' ]*( ?[^\d\s]{1,5})?")


def column_kinds(
    frame: Any, columns: Sequence[str], remarks: Remarks, objects: Sequence[str] = ()
) -> dict[str, str]:
    """Say of every column whether it is ``numbers`` or ``categories`` (or ``objects``); name what is neither.

    Numbers (and truth values): missing ones become the median.  Texts and categories: one column of zeros and ones for
    each, a missing one being a category of its own.  Texts that are numbers but for a few are remarked.
    """
    kinds = {}
    for column in columns:
        values, what, leave = frame[column], f"column {column!r}", f"leave it out with --drop {column!r}"
        if values.isna().all():
            raise ValueError(f"{what} is empty: {leave}")
        if column in objects:
            kinds[column] = "objects"
            continue
        if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
            kinds[column] = "numbers"
        elif not pd.api.types.is_datetime64_any_dtype(values) and (date := date_in(values)) is not None:
            raise ValueError(
                f"{what} holds dates, such as {date!r}: {leave}, or make numbers of it first, the days since a date "
                "for example"
            )
        elif isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(values.dropna()):
            others = numbers_and_texts(values)
            distinct = values.nunique()
            if distinct > MOST_CATEGORIES:
                raise ValueError(_too_many_texts(column, values, distinct, others))
            if others:
                remarks.numbers_as_categories[column] = others
            remarks.note_alike(column, values.dropna().unique())
            kinds[column] = "categories"
        else:
            raise ValueError(
                f"{what} is of the kind {values.dtype}, which has no default treatment: {leave}, or make numbers of it "
                "first"
            )
    return kinds


def date_in(values: Any) -> str | None:
    """Return a date of a column most of whose different values are dates, None for other columns.

    >>> import pandas as pd
    >>> date_in(pd.Series(["2024-01-31", "?", "2024-02-01"])), date_in(pd.Series(["1.5.2", "2.0.1"]))
    ('2024-01-31', None)
    """
    import datetime

    if pd.api.types.is_numeric_dtype(values):
        return None
    distinct = [value for value in values.dropna().unique() if not isinstance(value, bool)]
    dates = [
        value
        for value in distinct
        if isinstance(value, datetime.date | np.datetime64)
        or (isinstance(value, str) and DATE.fullmatch(value.strip()))
    ]
    return str(dates[0]) if 2 * len(dates) > len(distinct) else None


def _too_many_texts(column: str, values: Any, distinct: int, others: dict[str, int]) -> str:
    """Say why a column cannot be categories; where most of its texts are numbers, which ones are not."""
    what, drop, first = f"column {column!r}", f"--drop {column!r}", next(iter(others), "")
    if others and all("," in text for text in others):
        return (
            f"{what} holds numbers with commas, such as {first!r}: say with --decimal , that these are decimals, or "
            "write thousands without commas"
        )
    if others:
        return (
            f"{what} holds numbers, but {sum(others.values())} of its cells are not, such as {first!r}: --na {first!r} "
            f"makes these missing, {drop} leaves the column out"
        )
    texts = values.dropna().astype(str)
    if texts.map(DRESSED.fullmatch).astype(bool).mean() > 0.5:
        return (
            f"{what} holds numbers that are written with other characters, such as {texts.iloc[0]!r}: write plain "
            f"ones, or leave the column out with {drop}"
        )
    many = f"{distinct} different texts, more than {MOST_CATEGORIES}"
    ways = f"make numbers of it first, or learn from its texts, --objects '{column}=spectrum:3' for example"
    return f"{what} has {many}: leave it out with {drop}, {ways}"


def check_columns(
    frame: Any,
    kinds: dict[str, str],
    remarks: Remarks,
    views: dict[str, list[str]] | None = None,
    fitting: bool = True,
) -> Any:
    """Return the columns of a table that a model wants, in a form that its transformer takes; name what is wrong."""
    _refuse_missing_columns(frame, kinds, views or {})
    table = {}
    for column, kind in kinds.items():
        values, absent = frame[column], frame[column].isna().to_numpy()
        if kind == "numbers":
            try:
                numbers = pd.to_numeric(values).to_numpy(dtype=float, na_value=np.nan)
            except (ValueError, TypeError):
                wrong = values[pd.to_numeric(values, errors="coerce").isna() & values.notna()]
                row = f"; row {int(wrong.index[0])} has {str(wrong.iloc[0])!r}" if len(wrong) else ""
                raise ValueError(
                    f"column {column!r} should hold numbers, as in the training table{row}"
                ) from None
            leave = f"the column out with --drop {column!r}" if fitting else "the row out"
            refuse_beyond(f"column {column!r}", numbers, leave)
            table[column], absent, counts = numbers, np.isnan(numbers), remarks.imputed
        elif kind == "objects":
            table[column] = values.astype(object).where(values.notna(), None).to_numpy(dtype=object)
            continue
        else:
            texts = values.astype(object).map(text_of)
            table[column] = texts.where(values.notna(), MISSING).to_numpy(dtype=object)
            counts = remarks.missing_as_category
        if absent.any():
            counts[column] = int(absent.sum())
    return pd.DataFrame(table)


def refuse_beyond(what: str, numbers: Any, leave: str) -> None:
    """Name the first number that is infinite, or so large that its square is; say what else to leave."""
    wrong = np.abs(numbers) > TOO_LARGE
    if not wrong.any():
        return
    row = int(wrong.argmax())
    remedy = f"correct it, or leave {leave}"
    if np.isinf(numbers[row]):
        raise ValueError(f"{what} holds infinite numbers, first in row {row}: {remedy}")
    raise ValueError(
        f"{what} holds a number too large to compute with, {numbers[row]:g} in row {row}: {remedy}"
    )


def _refuse_missing_columns(frame: Any, kinds: dict[str, str], views: dict[str, list[str]]) -> None:
    missing = [column for column in kinds if column not in frame]
    for name, columns in views.items() if missing else ():
        absent = [column for column in columns if column not in frame]
        if absent:
            completes = "a model fitted with --missing predict or --missing mean completes"
            whole = f": {completes} a view that a table does not have" if len(absent) == len(columns) else ""
            raise ValueError(
                f"the table has no column {absent[0]!r}, which the model needs for view {name!r} ({len(absent)} of its "
                f"{len(columns)} columns are missing){whole}"
            )
    if missing:
        rest = f" ({len(missing)} columns are missing)" if len(missing) > 1 else ""
        raise ValueError(f"the table has no column {missing[0]!r}, which the model needs{rest}")


def column_transformer(table: Any, kinds: dict[str, str], views: Sequence[View]) -> tuple[Any, list[range]]:
    """Return a transformer that puts the views side by side, and the columns of each.

    The categories are those of the whole table, so that every fold of a cross-validation has the same columns.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    parts, places, start = [], [], 0
    for view in views:
        numbers = [column for column in view.picked if kinds[column] == "numbers"]
        texts = [column for column in view.picked if kinds[column] == "categories"]
        size = len(numbers)
        if numbers:
            fill = SimpleImputer(strategy="median", keep_empty_features=True)
            parts.append((f"{view.name}: numbers", make_pipeline(fill, StandardScaler()), numbers))
        if texts:
            categories = [sorted(set(table[column])) for column in texts]
            coder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
            parts.append((f"{view.name}: categories", coder, texts))
            size += sum(map(len, categories))
        places.append(range(start, start + size))
        start += size
    return ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False), places


def refuse_absent(frame: Any, views: dict[str, list[str]], fitting: bool = True) -> None:
    """Raise where a row has no value in any column of a view: filling all of them would be inventing a sample."""
    for name, columns in views.items():
        gone = int(frame[columns].isna().all(axis=1).sum())
        if gone and fitting:
            raise ValueError(
                f"view {name!r} is missing for {gone} of {len(frame)} rows: --missing predict completes it from the "
                "other views, --missing mean puts its mean there; or leave the view or these rows out"
            )
        if gone:
            whole = f" (its {len(columns)} columns are empty)" if gone == len(frame) else ""
            raise ValueError(
                f"view {name!r} is missing in the new table for {gone} of {len(frame)} rows{whole}: a model fitted "
                "with --missing predict or --missing mean completes it; or leave these rows out"
            )


def blank_absent(frame: Any, table: Any, views: dict[str, list[str]], how: str, remarks: Remarks) -> Any:
    """Return the checked table with nothing at all where a row has no value in any column of a view.

    Such rows get no median and no category: the remarks say instead that the view is completed, and how.
    """
    table = table.copy()
    absent = {column: np.zeros(len(frame), dtype=bool) for column in table}
    for name, columns in views.items():
        gone = frame[columns].isna().all(axis=1).to_numpy()
        if gone.any():
            remarks.completed[name], remarks.completed_by = int(gone.sum()), how
        for column in columns:
            absent[column] |= gone
            nothing = float("nan") if table[column].dtype.kind == "f" else None
            table[column] = table[column].astype(object).where(~gone, nothing).astype(table[column].dtype)
    for counts in (remarks.imputed, remarks.missing_as_category):
        for column in list(counts):
            counts[column] = int((frame[column].isna().to_numpy() & ~absent[column]).sum())
            if not counts[column]:
                counts.pop(column)
    return table


def view_steps(table: Any, kinds: dict[str, str], views: Sequence[View]) -> tuple[Any, Any]:
    """Return a transformer that makes views of the table, some of which rows may lack, and the kernels on them."""
    from ..views import ViewColumns

    parts = [
        (
            view.name,
            "passthrough" if view.objects else column_transformer(table, kinds, [view])[0],
            list(view.picked),
        )
        for view in views
    ]
    return ViewColumns(parts), kernels_of(views, [view.name for view in views])


def kernels_of(views: Sequence[View], columns: Sequence[Any]) -> Any:
    """Return the kernels of all views, each on its columns of what the transformer makes."""
    from .. import kernels as kw

    specs = [kw.per_view({view.name: where}, view.spec()) for view, where in zip(views, columns, strict=True)]
    return sum(specs[1:], start=specs[0])
