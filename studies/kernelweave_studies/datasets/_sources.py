"""Reading a data set from the local folder or from OpenML, and checking that it is the one in the manifest."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._manifest import Entry

ENVIRONMENT = "KERNELWEAVE_DATA"


@dataclass(frozen=True)
class Table:
    """What a source delivers: an array and its column names for every view, the labels, and where they came from.

    Bags of words come as CSR matrices.
    """

    views: dict[str, Any]
    columns: dict[str, list[str]]
    target: np.ndarray
    origin: str
    extra: dict[str, Any] = field(default_factory=dict)


def read(entry: Entry, download: bool = True) -> Table:
    """Return the data from the local folder, else from OpenML; say what is missing where neither has them."""
    path, missing = local_path(entry)
    if path is not None:
        table = _local(entry, path)
    elif not (download and entry.openml):
        raise FileNotFoundError(f"data set {entry.name!r} is not at hand: {missing}. {_way_out(entry)}")
    else:
        try:
            table = _openml(entry)
        except (OSError, ImportError) as error:  # no network, server down, damaged download
            raise OSError(
                f"data set {entry.name!r} is not at hand: {missing}, and OpenML could not deliver it "
                f"({type(error).__name__}: {error}). {_way_out(entry)}"
            ) from error
    _check(entry, table)
    return table


def local_path(entry: Entry) -> tuple[Path | None, str]:
    """Where the file is, or why there is none."""
    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return None, f"{ENVIRONMENT} is not set"
    path = Path(os.path.expanduser(folder)) / entry.file  # "~" stays where nobody knows a home
    return (path, "") if path.is_file() else (None, f"{path} does not exist")


def _way_out(entry: Entry) -> str:
    or_online = ", or connect to openml.org" if entry.openml else f" (from {entry.source})"
    return f"Set {ENVIRONMENT} to a folder that holds {entry.file}{or_online}."


# ---- the local folder ----------------------------------------------------------------------------------------------


def _local(entry: Entry, path: Path) -> Table:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != entry.sha256:
        raise ValueError(
            f"{path} is not the file of the manifest (sha256 {digest}, expected {entry.sha256}): results on it "
            "could not be compared with others"
        )
    return _READERS[path.suffix](path)


def _read_csv(path: Path) -> Table:
    """A header, features, and the label in the last column."""
    import pandas as pd

    frame = pd.read_csv(path)
    features = frame.columns[:-1]
    return Table(
        {"": frame[features].to_numpy(dtype=float)},
        {"": [str(name) for name in features]},
        _plain(frame[frame.columns[-1]]),
        str(path),
    )


def _read_npz(path: Path) -> Table:
    """Return one array per view, and the labels under ``y``; or the parts of a CSR matrix, ``y`` and ``terms``."""
    with np.load(path, allow_pickle=False) as file:
        if "indptr" in file.files:
            import scipy.sparse as sp

            words = sp.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
            columns = {"": [str(term) for term in file["terms"]]}
            return Table({"": words.astype(float)}, columns, np.asarray(file["y"]), str(path))
        if "ann_item" in file.files:
            return _annotated(file, str(path))
        if "superfamily" in file.files:
            return _proteins(file, str(path))
        views = {name: np.asarray(file[name], dtype=float) for name in file.files if name != "y"}
        target = np.asarray(file["y"])
    columns = {name: [f"{name}_{k}" for k in range(view.shape[1])] for name, view in views.items()}
    return Table(views, columns, target, str(path))


def _annotated(file: Any, origin: str) -> Table:
    """Samples with true labels, workers' labels as (item, worker, label), and test samples with true labels."""
    import pandas as pd

    votes = {"task": file["ann_item"], "worker": file["ann_worker"], "label": file["ann_label"]}
    extra = {
        "annotations": pd.DataFrame(votes),
        "test_data": np.asarray(file["X_test"], dtype=float),
        "test_target": np.asarray(file["y_test"]),
    }
    X = np.asarray(file["X"], dtype=float)
    columns = {"": [f"x{k}" for k in range(X.shape[1])]}
    return Table({"": X}, columns, np.asarray(file["y"]), origin, extra)


def _proteins(file: Any, origin: str) -> Table:
    """Return square similarities, one per view, with superfamilies as labels and identifiers."""
    names = [name for name in file.files if name not in ("superfamily", "ids")]
    views = {name: np.asarray(file[name], dtype=float) for name in names}
    ids = [str(id_) for id_ in file["ids"]]
    columns = {name: [f"{name}_{id_}" for id_ in ids] for name in names}
    return Table(views, columns, file["superfamily"].astype(str), origin, {"ids": np.array(ids)})


_READERS = {".csv": _read_csv, ".npz": _read_npz}


def _plain(labels: Any) -> np.ndarray:
    """Labels as an array of numbers or of plain texts."""
    values = np.asarray(labels)
    return values if values.dtype.kind in "iuf" else values.astype(str)


# ---- OpenML --------------------------------------------------------------------------------------------------------


def _openml(entry: Entry) -> Table:
    """Fetch every view; rows with missing values and constant columns are left out, labels written as in the file."""
    from sklearn.datasets import fetch_openml

    views, columns, labels, complete = {}, {}, None, None
    for view, where in entry.openml.items():
        fetched = fetch_openml(
            data_id=where.data_id, target_column=where.target, as_frame=True, parser="auto"
        )
        features = fetched.data.astype(float)
        features = features.loc[:, features.nunique(dropna=True) > 1]
        views[view] = features.to_numpy()
        columns[view] = [f"{view}_{name}" if view else str(name) for name in features.columns]
        whole = ~np.isnan(views[view]).any(axis=1)
        complete = whole if complete is None else complete & whole
        labels = [entry.openml_labels.get(str(label).strip()) for label in fetched.target]
        if None in labels:
            raise ValueError(
                f"OpenML data set {where.data_id} has labels other than {list(entry.openml_labels)}: "
                "it has changed since the manifest was written"
            )
    target = np.array(labels)[complete]
    views = {view: values[complete] for view, values in views.items()}
    for view, where in entry.openml.items():
        digest = canonical_digest(views[view], target)
        if where.sha256 and digest != where.sha256:
            raise ValueError(
                f"OpenML data set {where.data_id} is not the table of the manifest (sha256 of its sorted rows "
                f"{digest}, expected {where.sha256}): results on it could not be compared with others. "
                f"{_way_out(entry)}"
            )
    ids = ", ".join(str(where.data_id) for where in entry.openml.values())
    return Table(views, columns, target, f"OpenML {ids}")


def canonical_digest(values: np.ndarray, target: np.ndarray) -> str:
    """Return the SHA-256 of a table with its labels, whatever the order of its rows.

    Values are rounded to eight decimals, so that the last bit of a parser does not matter, and labels are counted
    through in their own order.

    >>> canonical_digest(np.array([[1.0, -0.0], [0.1 + 0.2, 2.0]]), np.array(["b", "a"]))[:16]
    'ece6dd9df357d260'
    >>> canonical_digest(np.array([[0.3, 2.0], [1.0, 0.0]]), np.array(["a", "b"]))[:16]
    'ece6dd9df357d260'
    """
    codes = np.unique(target, return_inverse=True)[1]
    table = np.column_stack([np.round(np.asarray(values, dtype=float), 8) + 0.0, codes])
    table = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(f"{table.shape}".encode() + table.astype("<f8").tobytes()).hexdigest()


def _check(entry: Entry, table: Table) -> None:
    """Both sources must have the shape and the classes that the manifest says."""
    shapes = {view: values.shape for view, values in table.views.items()}
    expected = {view: (entry.n, width) for view, width in entry.views.items()}
    counts = Counter(table.target.tolist())
    if shapes != expected or counts != Counter(entry.counts):
        raise ValueError(
            f"{table.origin} is not {entry.name!r} as the manifest describes it: shapes {shapes} and classes "
            f"{dict(counts)}, expected {expected} and {dict(entry.counts)}"
        )
