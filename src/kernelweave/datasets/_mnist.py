"""MNIST from its four idx files."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from ._sources import ENVIRONMENT

__all__ = ["load_mnist"]

#: file below ``mnist/`` -> its checksum
FILES = {
    "train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
SOURCE = "LeCun, Bottou, Bengio, Haffner 1998: http://yann.lecun.com/exdb/mnist"


def load_mnist() -> Bunch:
    """Load the handwritten digits of MNIST from the folder named by ``KERNELWEAVE_DATA``.

    Returns
    -------
    Bunch
        ``data`` (60,000 x 784 grey values from 0 to 1, rows of pixels one after the other), ``target``, ``test_data``
        (10,000 x 784), ``test_target``, ``target_names``, ``DESCR``.
    """
    train, train_labels, test, test_labels = (_read(name) for name in FILES)
    return Bunch(
        data=train.reshape(len(train), -1) / 255.0,
        target=train_labels.astype(int),
        test_data=test.reshape(len(test), -1) / 255.0,
        test_target=test_labels.astype(int),
        target_names=np.arange(10),
        DESCR=f"MNIST handwritten digits, 60,000 and 10,000 images of 28 x 28.\nSource: {SOURCE}",
    )


def _read(name: str) -> np.ndarray:
    folder = os.environ.get(ENVIRONMENT)
    path = Path(os.path.expanduser(folder or "")) / "mnist" / name
    if not folder or not path.is_file():
        missing = f"{path} does not exist" if folder else f"{ENVIRONMENT} is not set"
        raise FileNotFoundError(
            f"data set 'mnist' is not at hand: {missing}. Set {ENVIRONMENT} to a folder that holds mnist/{name} "
            f"(from {SOURCE})."
        )
    raw = path.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != FILES[name]:
        raise ValueError(f"{path} is not the file that was meant (sha256 {digest}, expected {FILES[name]})")
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
