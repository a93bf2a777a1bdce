"""Data sets: a local folder first (``KERNELWEAVE_DATA``), then OpenML; every set with its source and checksum."""

from ._loaders import (
    available,
    load_crowd,
    load_mfeat,
    load_mnist,
    load_similarity,
    load_text,
    load_uci,
)
from ._manifest import MANIFEST, Entry, OpenML

__all__ = [
    "MANIFEST",
    "Entry",
    "OpenML",
    "available",
    "load_crowd",
    "load_mfeat",
    "load_mnist",
    "load_similarity",
    "load_text",
    "load_uci",
]
