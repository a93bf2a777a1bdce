"""Tables in and out: CSV, Parquet, NPZ and NumPy files, and what is said where one does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

__all__ = ["free", "plain_errors", "read_matrices", "read_table", "write_table"]

READABLE = (".csv", ".tsv", ".parquet", ".npz", ".npy")
WRITABLE = (".csv", ".tsv", ".parquet", ".npz")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what a user can mend into one line and exit code 1; anything else stays a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("interrupted; nothing was written", err=True)
        raise SystemExit(130) from None
    except (ValueError, OSError, TypeError, MemoryError) as error:
        raise click.ClickException(str(error)) from error


def free(path: Path | None, force: bool, option: str) -> None:
    """Refuse, before any work, to write over a file or into a folder that is not there."""
    if path is None:
        return
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists: give another {option}, or --force to write over it")
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"the folder {path.parent} of {option} does not exist")


def read_table(path: Path) -> Any:
    """Return a data frame from a file; the suffix says the format.

    An NPZ file gives a column for each one-dimensional array, and columns ``name_0``, ``name_1``, ... for each
    two-dimensional one; a NumPy file the columns ``x0``, ``x1``, ...
    """
    import pandas as pd

    suffix = path.suffix.lower()
    if suffix not in READABLE:
        raise ValueError(
            f"cannot read {path}: the suffix {suffix or 'is missing, it'} is none of {', '.join(READABLE)}"
        )
    try:
        if suffix in (".csv", ".tsv"):
            frame = pd.read_csv(path, sep="," if suffix == ".csv" else "\t")
        elif suffix == ".parquet":
            frame = _parquet(path)
        else:
            frame = _arrays(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    frame.columns = [str(label) for label in frame.columns]
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{path} has two columns called {twice[0]!r}")
    if not len(frame):
        raise ValueError(f"{path} has no rows")
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

    try:
        loaded = np.load(path, allow_pickle=False)
    except ValueError as error:  # objects, which would be a pickle
        raise ValueError(f"cannot read {path}: {error}") from None
    if isinstance(loaded, np.ndarray):
        named = {"x": loaded} if loaded.dtype.names is None else {n: loaded[n] for n in loaded.dtype.names}
        if loaded.dtype.names is None and loaded.ndim != 2:
            raise ValueError(f"{path} holds an array of shape {loaded.shape}: a table has rows and columns")
    else:
        with loaded:
            named = {name: loaded[name] for name in loaded.files}
    columns: dict[str, Any] = {}
    for name, array in named.items():
        if array.ndim > 2 or array.ndim == 0:
            raise ValueError(
                f"{path}: the array {name!r} has shape {array.shape}, neither a column nor a table"
            )
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


def read_matrices(paths: Sequence[Path]) -> list[Any]:
    """Return kernel matrices from NumPy files (an (m, n, n) array counts as m), CSV without header, or NPZ."""
    import numpy as np

    matrices: list[Any] = []
    for path in paths:
        try:
            if path.suffix.lower() == ".npy":
                loaded = [np.load(path, allow_pickle=False)]
            elif path.suffix.lower() == ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    loaded = [archive[name] for name in archive.files]
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
            matrices += list(array) if array.ndim == 3 else [array]
    return matrices


def matrix_names(paths: Sequence[Path], matrices: int) -> list[str]:
    """Name matrices after their files, as far as there is a file for each."""
    names = [path.stem for path in paths]
    if len(set(names)) == matrices == len(names):
        return names
    return [f"kernel {j}" for j in range(matrices)]


def check_writable(path: Path) -> None:
    """Refuse a format that is not written."""
    if path.suffix.lower() not in WRITABLE:
        raise click.UsageError(f"cannot write {path}: the suffix is none of {', '.join(WRITABLE)}")


def write_table(frame: Any, path: Path) -> None:
    """Write a data frame whole, in the format that the suffix says."""
    import numpy as np

    from .._output import whole_file

    suffix = path.suffix.lower()
    with whole_file(path) as part:
        if suffix in (".csv", ".tsv"):
            frame.to_csv(part, index=False, sep="," if suffix == ".csv" else "\t")
        elif suffix == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            arrays = {name: frame[name].to_numpy() for name in frame}
            texts = {n: a.astype(str) if a.dtype.kind not in "fiub" else a for n, a in arrays.items()}
            with part.open("wb") as file:
                np.savez_compressed(file, **texts)
