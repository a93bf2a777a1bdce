"""Arrays and sparse matrices of a model file, checked before NumPy and SciPy build them."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._numerics.sparse_format import check_compressed, check_coordinates
from ._archive import Archive, ModelFileError, open_archive

__all__ = ["check_arrays"]

#: kinds of numbers and texts that a model is made of
KINDS = "fiubUS"
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def check_arrays(archive: Archive, used: Iterable[tuple[str, str]], most: int) -> None:
    """Check every array that the description names.

    Parameters
    ----------
    archive : Archive
    used : pairs of texts
        Name of a member, and what it has to be: ``array``, or the format of a sparse matrix.
    most : int
        Bytes that a sparse matrix may unfold to.
    """
    for member, kind in used:
        if member not in archive.members:
            raise ModelFileError(f"{archive.name} is damaged: it has no part {member!r}")
        try:
            content = archive.read(member)
            if kind == "array":
                _array(content)
            else:
                _sparse(content, kind, f"{archive.name}: {member}", most)
        except Exception as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(
                f"{archive.name} cannot be loaded, its part {member!r} is no array that a model may hold: {error}"
            ) from error


def _array(content: bytes) -> np.ndarray:
    """Return an array in NumPy's format; its header has to account for every byte."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"its format is of version {version}")
    shape, _, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds objects, which would need allow_pickle=True")
    if dtype.kind not in KINDS or dtype.names or dtype.subdtype:
        raise ValueError(f"it holds {dtype}, neither numbers nor texts")
    size = math.prod(shape)  # a whole number of Python, which no shape is too large for
    if min(shape, default=0) < 0 or size * max(dtype.itemsize, 1) != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} does not have {len(content) - file.tell()} bytes")
    return np.load(io.BytesIO(content), allow_pickle=False)


def _sparse(content: bytes, kind: str, name: str, most: int) -> None:
    """Check a matrix in SciPy's format, an archive of its own, entry by entry."""
    inner = open_archive(content, name, most)
    parts: dict[str, Any] = {
        member.removesuffix(".npy"): _array(inner.read(member)) for member in inner.members
    }
    said = parts["format"].item()
    said = said.decode() if isinstance(said, bytes) else said
    if said != kind:
        raise ValueError(f"it is a {said!r} matrix where the description says {kind}")
    if parts["data"].dtype.kind not in "fiub":
        raise ValueError(f"it holds {parts['data'].dtype}, not numbers")
    if kind == "coo":
        check_coordinates(parts["data"], parts["row"], parts["col"], parts["shape"], "it")
    else:
        check_compressed(kind, parts["data"], parts["indices"], parts["indptr"], parts["shape"], "it")
