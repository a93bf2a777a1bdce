"""Tables in and out: CSV, Parquet, NPZ and NumPy files, and what is said where one does not fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ._delimited import Format, read_delimited
from ._remarks import Remarks
from ._terminal import write_out

__all__ = ["STANDARD", "is_table", "plain_errors", "read_matrices", "read_table", "write_table"]

#: standard input or output
STANDARD = Path("-")
#: text tables and what separates their columns
DELIMITED = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
READABLE = (*DELIMITED, ".parquet", ".npz", ".npy")
WRITABLE = (".csv", ".tsv", ".parquet", ".npz")
#: a spreadsheet takes a cell that begins so for a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
#: beyond this size the squares of numbers, of which variances and kernels are made, are infinite
TOO_LARGE = 1e150
#: set to anything: what went wrong unexpectedly is shown as a traceback
TRACEBACK = "KERNELWEAVE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors into one line and exit code 1; what an interruption ends with is decided in ``Commands``."""
    try:
        yield
    except click.ClickException:
        raise
    except (ValueError, OSError, TypeError, FloatingPointError) as error:
        raise click.ClickException(str(error)) from error
    except MemoryError as error:
        raise click.ClickException(str(error) or "there is not enough memory") from error
    except Exception as error:
        if TRACEBACK in os.environ:
            raise
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        raise click.ClickException(
            f"this went wrong unexpectedly ({what}); {TRACEBACK}=1 shows where"
        ) from error


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, in small letters: of a compressed text table both."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def is_table(name: str) -> bool:
    """Whether a name is that of a file that can be read as a table."""
    return suffix_of(Path(name)) in READABLE


def read_table(
    path: Path,
    form: Format | None = None,
    remarks: Remarks | None = None,
    texts: Sequence[str] = (),
    ids: Sequence[str] = (),
    single: Sequence[str] = (),
    codes: Sequence[str] = (),
) -> Any:
    """Return a data frame from a file; the suffix says the format, ``-`` is a text table on the standard input.

    An NPZ file gives a column for each one-dimensional array, and columns ``name_0``, ``name_1``, ... for each
    two-dimensional one; a NumPy file the columns ``x0``, ``x1``, ...

    Parameters
    ----------
    path : Path
    form : Format, optional
        How text tables are written, as far as it is said.
    remarks : Remarks, optional
        Grows by what was found out.
    texts : sequence of str
        Columns of text tables that are not to be made numbers of.
    ids : sequence of str
        Columns that name rows, in tables of every kind: texts, an empty one where there is none.
    single : sequence of str
        Columns that the table is read for, of which there must not be two.
    codes : sequence of str
        Columns of text tables that are texts where a number in them begins with zeros.
    """
    import pandas as pd

    form, remarks = form or Format(), Remarks() if remarks is None else remarks
    suffix = suffix_of(path)
    name = "the standard input" if path == STANDARD else str(path)
    if path != STANDARD and suffix not in READABLE:
        raise ValueError(
            f"cannot read {path}: the suffix {suffix or 'is missing, it'} is none of {', '.join(READABLE)}"
        )
    try:
        if path == STANDARD:
            content = sys.stdin.buffer.read()
            frame = read_delimited(
                content, name, separator_in(content), form, remarks, texts, ids, single, codes
            )
        elif suffix in DELIMITED:
            content = path.read_bytes()
            frame = read_delimited(content, name, DELIMITED[suffix], form, remarks, texts, ids, single, codes)
        elif suffix == ".parquet":
            frame = _parquet(path)
        else:
            frame = _arrays(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    frame.columns = [str(label).strip() if form.strip else str(label) for label in frame.columns]
    frame = _checked(frame, name, remarks)
    for column in [column for column in frame.columns if frame[column].dtype.kind == "O"]:
        # whole numbers beyond 64 bits, and decimals of Parquet
        if pd.api.types.infer_dtype(frame[column], skipna=True) in (
            "integer",
            "decimal",
            "mixed-integer-float",
        ):
            frame[column] = (
                frame[column].map(lambda value: float(str(value)), na_action="ignore").astype(float)
            )
    for column in (column for column in ids if column in frame):
        values = frame[column].astype(object)
        frame[column] = values.map(text_of).where(values.notna(), "")
    return _stripped(frame, ids) if form.strip else frame


def _stripped(frame: Any, ids: Sequence[str]) -> Any:
    """Return a table without white space around its texts; what is nothing else is a missing cell."""
    import pandas as pd

    frame = frame.copy()
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
            continue
        texts = values.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)
        frame[column] = texts if column in ids else texts.where(texts != "", None)
    return frame


def text_of(value: Any) -> str:
    """Write a value as text: a whole number without decimals, since missing ones make fractions of whole columns."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def separator_in(content: bytes) -> str:
    """Return the separator to expect where no suffix says one: tabs, where the first line has any."""
    return "\t" if b"\t" in content.split(b"\n", 1)[0] else ","


def _checked(frame: Any, path: str, remarks: Remarks) -> Any:
    broken = [label for label in frame.columns if "\0" in label]
    if broken:
        raise ValueError(f"{path} has a column {broken[0]!r}, with a NUL in its name: rename it")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{path} has two columns called {twice[0]!r}")
    if not len(frame):
        raise ValueError(f"{path} has no rows")
    remarks.rows = remarks.rows or len(frame)
    return frame


def _parquet(path: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise ValueError("reading Parquet files needs pip install 'kernelweave[parquet]'") from None
    except Exception as error:
        if isinstance(error, OSError) and not path.exists():
            raise
        raise ValueError(f"cannot read {path}: {error}") from error


def _arrays(path: Path) -> Any:
    import numpy as np
    import pandas as pd

    loaded = _load_arrays(path)
    if isinstance(loaded, np.ndarray):
        named = {"x": loaded} if loaded.dtype.names is None else {n: loaded[n] for n in loaded.dtype.names}
        if loaded.dtype.names is None and loaded.ndim != 2:
            raise ValueError(f"{path} holds an array of shape {loaded.shape}: a table has rows and columns")
    else:
        named = loaded
    columns: dict[str, Any] = {}
    for name, array in named.items():
        if array.ndim > 2 or array.ndim == 0:
            raise ValueError(
                f"{path}: the array {name!r} has shape {array.shape}, neither a column nor a table"
            )
        if array.dtype.kind == "S":  # texts of other programs, in bytes
            array = np.char.decode(array, "utf-8")
        joint = "" if isinstance(loaded, np.ndarray) else "_"
        columns |= (
            {name: array}
            if array.ndim == 1
            else {f"{name}{joint}{j}": array[:, j] for j in range(array.shape[1])}
        )
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path}: its arrays differ in length: {lengths}")
    return pd.DataFrame(columns)


def _load_arrays(path: Path) -> Any:
    """Return the array of a NumPy file or a dictionary of those of an NPZ file; a torn one is a ValueError."""
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (FileNotFoundError, MemoryError):
        raise
    except (
        Exception
    ) as error:  # of NumPy, zipfile and zlib; objects, which would be a pickle, are one of them
        raise ValueError(f"cannot read {path}: {error or type(error).__name__}") from None


def read_matrices(paths: Sequence[Path]) -> list[Any]:
    """Return kernel matrices from NumPy files (an (m, n, n) array counts as m), CSV without header, or NPZ."""
    import numpy as np

    matrices: list[Any] = []
    for path in paths:
        try:
            if path.suffix.lower() in (".npy", ".npz"):
                arrays = _load_arrays(path)
                loaded = list(arrays.values()) if isinstance(arrays, dict) else [arrays]
            elif path.suffix.lower() in (".csv", ".tsv"):
                loaded = [np.loadtxt(path, delimiter="," if path.suffix.lower() == ".csv" else "\t", ndmin=2)]
            else:
                raise ValueError(f"the suffix of {path} is none of .npy, .npz, .csv, .tsv")
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {path}") from None
        except ValueError as error:
            raise ValueError(f"cannot read the matrix {path}: {error}") from None
        for array in loaded:
            if array.ndim not in (2, 3) or array.dtype.kind not in "fiub":
                raise ValueError(
                    f"{path} holds an array of shape {array.shape} ({array.dtype}), no kernel matrix"
                )
            if not (array.min(initial=0) >= -TOO_LARGE and array.max(initial=0) <= TOO_LARGE):
                place = tuple(int(index) for index in np.argwhere(~(np.abs(array) <= TOO_LARGE))[0])
                raise ValueError(
                    f"{path} holds {array[place]:g} in row {place[-2]}, column {place[-1]}: the entries of a kernel "
                    f"matrix are numbers up to {TOO_LARGE:g}"
                )
            matrices += list(array) if array.ndim == 3 else [array]
    return matrices


def matrix_names(paths: Sequence[Path], matrices: int) -> list[str]:
    """Name matrices after their files, as far as there is a file for each."""
    names = [path.stem for path in paths]
    if len(set(names)) == matrices == len(names):
        return names
    return [f"kernel {j}" for j in range(matrices)]


def check_writable(path: Path) -> None:
    """Refuse a format that is not written; the standard output gets CSV."""
    if path != STANDARD and path.suffix.lower() not in WRITABLE:
        raise click.UsageError(f"cannot write {path}: the suffix is none of {', '.join(WRITABLE)}")


def write_table(frame: Any, path: Path, spreadsheet: bool = False) -> None:
    """Write a data frame whole, in the format that the suffix says; CSV and TSV without formulas where asked for."""
    from .._output import whole_file

    suffix = path.suffix.lower()
    if path == STANDARD:
        frame = without_formulas(frame) if spreadsheet else frame
        write_out(frame.to_csv(index=False))
        return
    with whole_file(path) as part:
        if suffix in (".csv", ".tsv"):
            frame = without_formulas(frame) if spreadsheet else frame
            frame.to_csv(part, index=False, sep="," if suffix == ".csv" else "\t")
        elif suffix == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            arrays = {name: frame[name].to_numpy() for name in frame}
            texts = {n: a.astype(str) if a.dtype.kind not in "fiub" else a for n, a in arrays.items()}
            _write_npz(part, texts)


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write an NPZ file; unlike NumPy's own function this one takes any name, ``file`` for example."""
    import zipfile

    import numpy as np

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            if "\0" in name:
                raise ValueError(
                    f"an NPZ file cannot have a column {name!r}, with a NUL in its name: write CSV"
                )
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def without_formulas(frame: Any) -> Any:
    """Put an apostrophe before texts and names of columns that a spreadsheet would take for formulas.

    >>> import pandas as pd
    >>> without_formulas(pd.DataFrame({"=A1": ["@a", "b"], "n": [-1.0, 2.0]})).to_dict("list")
    {"'=A1": ["'@a", 'b'], 'n': [-1.0, 2.0]}
    """

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    made = frame.copy()
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if column.dtype.kind not in "fiub":
            made[name] = column.astype(object).map(safe)
    made.columns = [safe(str(name)) for name in frame.columns]
    return made
