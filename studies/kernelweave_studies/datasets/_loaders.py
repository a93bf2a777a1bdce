"""What users call: one function a kind of data set, each returning a scikit-learn ``Bunch``."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from kernelweave._components import nearest

from ._manifest import MANIFEST, Entry
from ._sources import ENVIRONMENT, Table, local_path, read

#: file below ``mnist/`` -> its checksum
MNIST_FILES = {
    "train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST_SOURCE = "LeCun, Bottou, Bengio, Haffner 1998: http://yann.lecun.com/exdb/mnist"


def available(group: str | None = None) -> dict[str, bool]:
    """Return the names of the data sets, and whether each lies in the local folder.

    Parameters
    ----------
    group : {"uci", "mfeat", "text", "crowd", "similarity"}, optional
        Only the sets of one loader.

    Examples
    --------
    >>> "sonar" in available("uci")
    True
    """
    return {
        name: local_path(entry)[0] is not None
        for name, entry in MANIFEST.items()
        if group in (None, entry.group)
    }


def load_uci(
    name: str, *, return_X_y: bool = False, as_frame: bool = False, download: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load a small classification set of the UCI repository.

    The folder named by the environment variable ``KERNELWEAVE_DATA`` is looked at first and its file checked against
    the manifest; OpenML is asked where the folder does not have it.

    Parameters
    ----------
    name : str
        ``breast``, ``heart``, ``ionosphere``, ``liver``, ``pima``, ``sonar`` or ``wdbc``.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give data as a DataFrame and the target as a Series.
    download : bool, default=True
        Whether OpenML may be asked.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``feature_names``, ``target_names``, ``frame`` (None unless ``as_frame``), ``DESCR``,
        ``origin`` (the file, or the OpenML id).
    """
    entry = _entry(name, "uci")
    return _deliver(entry, read(entry, download), return_X_y, as_frame)


def load_mfeat(
    *, return_X_y: bool = False, as_frame: bool = False, download: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load the handwritten digits of the multiple-features set: 2,000 samples in six views.

    Parameters
    ----------
    return_X_y, as_frame, download : bool
        As for ``load_uci``.

    Returns
    -------
    Bunch
        As for ``load_uci``, the views side by side in ``data``; ``views`` maps the name of a view to its columns and
        is what ``kernels.per_view`` takes.
    """
    entry = _entry("mfeat", "mfeat")
    return _deliver(entry, read(entry, download), return_X_y, as_frame)


def load_text(name: str, *, return_X_y: bool = False, as_frame: bool = False) -> Bunch | tuple[Any, Any]:
    """Load a two-class text set as counts of words, from the folder named by ``KERNELWEAVE_DATA``.

    Parameters
    ----------
    name : str
        ``text1``, ``text2``, ``text3`` (Ohsumed), ``text4`` or ``text5`` (20 Newsgroups).
    return_X_y, as_frame : bool
        As for ``load_uci``.

    Returns
    -------
    Bunch
        As for ``load_uci``; ``data`` is a CSR array, ``feature_names`` are the terms.
    """
    entry = _entry(name, "text")
    return _deliver(entry, read(entry, download=False), return_X_y, as_frame)


def load_crowd(name: str = "music_genre") -> Bunch:
    """Load a set whose training labels were given by workers of a crowd market, from ``KERNELWEAVE_DATA``.

    Parameters
    ----------
    name : str, default="music_genre"

    Returns
    -------
    Bunch
        As for ``load_uci``, ``target`` being the true labels; ``annotations`` is a table with the columns ``task``
        (row of ``data``), ``worker`` and ``label``, which is what ``NoisyLabelMKLClassifier.fit`` takes; ``test_data``
        and ``test_target`` are a test set with true labels.
    """
    entry = _entry(name, "crowd")
    bunch = _deliver(entry, read(entry, download=False), False, False)
    assert isinstance(bunch, Bunch)
    return bunch


def load_similarity(name: str) -> Bunch:
    """Load similarity matrices that are no kernels, from the folder named by ``KERNELWEAVE_DATA``.

    Parameters
    ----------
    name : str
        ``aural_sonar``, ``voting``, or ``scop40`` with three similarities of 727 proteins.

    Returns
    -------
    Bunch
        ``similarities`` of shape (m, n, n), ``names`` of them, ``target``, ``target_names``, ``DESCR``, ``origin``;
        for ``scop40`` also ``ids``.
    """
    entry = _entry(name, "similarity")
    table = read(entry, download=False)
    return Bunch(
        similarities=np.stack([table.views[view] for view in entry.views]),
        names=list(entry.views),
        target=table.target,
        target_names=np.unique(table.target),
        DESCR=_describe(entry),
        origin=table.origin,
        **table.extra,
    )


def load_mnist() -> Bunch:
    """Load the handwritten digits of MNIST from the folder named by ``KERNELWEAVE_DATA``.

    Returns
    -------
    Bunch
        ``data`` (60,000 x 784 grey values from 0 to 1, rows of pixels one after the other), ``target``, ``test_data``
        (10,000 x 784), ``test_target``, ``target_names``, ``DESCR``.
    """
    train, train_labels, test, test_labels = (_read_mnist(name) for name in MNIST_FILES)
    return Bunch(
        data=train.reshape(len(train), -1) / 255.0,
        target=train_labels.astype(int),
        test_data=test.reshape(len(test), -1) / 255.0,
        test_target=test_labels.astype(int),
        target_names=np.arange(10),
        DESCR=f"MNIST handwritten digits, 60,000 and 10,000 images of 28 x 28.\nSource: {MNIST_SOURCE}",
    )


def _entry(name: str, group: str) -> Entry:
    known = [key for key, entry in MANIFEST.items() if entry.group == group]
    if name not in known:
        raise ValueError(f"unknown data set {name!r}.{nearest(name, known)} Known: {', '.join(known)}.")
    return MANIFEST[name]


def _deliver(entry: Entry, table: Table, return_X_y: bool, as_frame: bool) -> Bunch | tuple[Any, Any]:
    parts = [table.views[view] for view in entry.views]
    data: Any = parts[0] if len(parts) == 1 else np.hstack(parts)
    target: Any = table.target
    names = [name for view in entry.views for name in table.columns[view]]
    frame = None
    if as_frame:
        import pandas as pd

        make = pd.DataFrame.sparse.from_spmatrix if sp.issparse(data) else pd.DataFrame
        data = make(data, columns=names)
        target = pd.Series(target, name="label")
        frame = data.assign(label=target)
    if return_X_y:
        return data, target
    bunch = Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=names,
        target_names=np.unique(table.target),
        DESCR=_describe(entry),
        origin=table.origin,
        **table.extra,
    )
    if len(entry.views) > 1:
        stops = np.cumsum([entry.views[view] for view in entry.views])
        bunch.views = {
            view: list(range(int(stop) - entry.views[view], int(stop)))
            for view, stop in zip(entry.views, stops, strict=True)
        }
    return bunch


def _describe(entry: Entry) -> str:
    width = sum(entry.views.values())
    online = ", ".join(str(where.data_id) for where in entry.openml.values())
    lines = [
        entry.title,
        f"{entry.n} samples, {width} features, classes "
        + ", ".join(f"{label!r} ({count})" for label, count in entry.counts.items()),
        f"Source: {entry.source}" + (f"; OpenML {online}" if online else ""),
    ]
    return "\n".join([*lines, f"Note: {entry.note}"] if entry.note else lines)


def _read_mnist(name: str) -> np.ndarray:
    folder = os.environ.get(ENVIRONMENT)
    path = Path(os.path.expanduser(folder or "")) / "mnist" / name
    if not folder or not path.is_file():
        missing = f"{path} does not exist" if folder else f"{ENVIRONMENT} is not set"
        raise FileNotFoundError(
            f"data set 'mnist' is not at hand: {missing}. Set {ENVIRONMENT} to a folder that holds mnist/{name} "
            f"(from {MNIST_SOURCE})."
        )
    raw = path.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != MNIST_FILES[name]:
        raise ValueError(
            f"{path} is not the file that was meant (sha256 {digest}, expected {MNIST_FILES[name]})"
        )
    return read_idx(gzip.decompress(raw))


def read_idx(raw: bytes) -> np.ndarray:
    """Return the array of bytes that an idx file holds.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
    [7, 8, 9]
    """
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise ValueError("not an idx file of bytes")
    axes = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=axes, offset=4).astype(int)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
