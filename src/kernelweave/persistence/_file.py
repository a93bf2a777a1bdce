"""Model files: the archive, what is in it, and what is refused.

What builds or checks models is imported where that is done: the label of a file is read in an instant.
"""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .. import __version__
from .._numerics.resources import default_budget
from .._output import write_whole

#: skops imports these while it lists the estimators of scikit-learn: longer than everything else in a prediction
UNNEEDED = {name: f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy")}


def import_skops() -> ModuleType:
    """Return ``skops.io``; importing it imports neither torch nor dask."""
    # where the package is there already, this costs nothing and may be in use
    closed = [module for package, module in UNNEEDED.items() if not {package, module} & set(sys.modules)]
    for module in closed:
        sys.modules[module] = None  # type: ignore[assignment]  # an ImportError, which the walk passes over
    try:
        import skops.io
    finally:
        for module in closed:
            del sys.modules[module]
    return skops.io


FORMAT = "kernelweave model"
#: layout of the file; raised when an older library could not read it
SCHEMA = 1
LABEL = "kernelweave.json"
DESCRIPTION = "schema.json"  # the name that skops gives it
#: a file may always unfold to this many bytes, ...
ALWAYS_ALLOWED = 500_000_000
#: ... and beyond that to this many times its own: what a file costs is in proportion to its size
INFLATION = 200
#: a description or a label may always have this many bytes, ...
SMALL = 8_000_000
#: ... and beyond that this many times what it takes in the file: reading it costs in proportion to the file
TEXT_INFLATION = 100
#: length of a local header without name and extra field, and of the record at the end of an archive
LOCAL_HEADER, END_RECORD = 30, 22
#: names in UTF-8; any other flag (encryption, sizes written afterwards) is not ours
UTF8 = 0x800


class ModelFileError(ValueError):
    """A model that cannot be saved without code in the file, or a file that is not loaded."""

    def __init__(self, *args: object) -> None:
        from ..exceptions import explained  # with scikit-learn, which reading a label does not need

        explained(self, *args)


@dataclass(frozen=True)
class Archive:
    """The checked members of an archive in memory: whatever reads later reads these bytes, never the file again."""

    content: bytes
    name: str
    members: dict[str, zipfile.ZipInfo]
    read: Callable[[str], bytes]  # returns a member, whose checksum is compared on the way


def open_archive(content: bytes, name: str, most: int) -> Archive:
    """Check an archive from its first byte to its last, and every member's checksum.

    Its members lie one after the other, each once, plain or deflated, of at most ``most`` bytes together, as ``save``
    writes them: that leaves no place for anything beside them.
    """
    try:
        file = zipfile.ZipFile(io.BytesIO(content))
        members: dict[str, zipfile.ZipInfo] = {}
        end = 0
        for member in sorted(file.infolist(), key=lambda entry: entry.header_offset):
            called = repr(member.filename)
            if member.filename in members:
                raise ModelFileError(f"{name} is refused: it has two parts called {called}")
            members[member.filename] = member
            packed = member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if packed or member.flag_bits & ~UTF8:
                raise ModelFileError(f"{name} is refused: its part {called} is encrypted or packed otherwise")
            if member.header_offset != end:
                where = "before its first part" if end == 0 else "between its parts"
                raise ModelFileError(f"{name} is refused: it has bytes {where}")
            lengths = struct.unpack("<HH", content[end + LOCAL_HEADER - 4 : end + LOCAL_HEADER])
            end += LOCAL_HEADER + sum(lengths) + member.compress_size
        start: Any = file.start_dir
        if end != start or file.comment or not content[-END_RECORD:].startswith(b"PK\x05\x06"):
            raise ModelFileError(f"{name} is refused: it has bytes beside its parts")
        total = sum(member.file_size for member in file.infolist())
        if total > most:
            large = f"its parts have {total:,} bytes, more than {most:,}; raise max_bytes if you trust it"
            raise ModelFileError(f"{name} is refused: {large}")
        broken = file.testzip()
    except ModelFileError:
        raise
    except Exception as error:  # of zipfile, zlib and struct, for torn members
        raise ModelFileError(f"{name} is damaged: {error}") from error
    if broken is not None:
        raise ModelFileError(f"{name} is damaged: its part {broken!r} does not match its checksum")
    return Archive(content, name, members, file.read)


def save(model: Any, path: str | Path, *, note: dict[str, Any] | None = None) -> None:
    """Save a fitted model to a file that holds data and no code.

    Where a pipeline keeps its cache (``memory``) and a fit its ``checkpoint``, numbers of jobs, memory budgets and
    verbosity are left out: a file does not say what is read, written, started or printed on the machine that loads it.
    A search that sets one of these in its grid is refused.

    Parameters
    ----------
    model : estimator
        Of this library, alone or inside scikit-learn's pipelines and column transformers.
    path : path
        Usually ends in ``.skops``.  Written whole: a file of that name is replaced at the end, or not at all.
    note : dict, optional
        Anything that JSON can hold, kept beside the model; :func:`about` returns it.

    Raises
    ------
    ModelFileError
        Where the model holds something that is not data, such as a kernel that is a function of yours; it is named.
    """
    from importlib.metadata import version

    from ._audit import audit
    from ._state import exchange_parts

    skops = import_skops()
    name = type(model).__name__
    if not hasattr(model, "fit"):
        raise ModelFileError(f"a {name} cannot be saved on its own: a model file holds an estimator")
    try:
        content = skops.dumps(exchange_parts(model, saving=True), compression=zipfile.ZIP_DEFLATED)
    except Exception as error:
        raise ModelFileError(
            f"this {name} cannot be saved: {error}. Only data go into a model file; pickle is the way for anything "
            "else, between programs that trust each other"
        ) from error
    label = {"format": FORMAT, "schema": SCHEMA, "kernelweave": __version__}
    label |= {library: version(library) for library in ("scikit-learn", "skops", "numpy")}
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        findings = audit(json.loads(archive.read(DESCRIPTION))).findings
        if findings:
            raise ModelFileError(f"this {name} cannot be saved: {findings[0].for_the_author()}")
        archive.writestr(LABEL, json.dumps(label | {"model": name, "note": note or {}}, indent=1))
    write_whole(path, buffer.getvalue())


def about(path: str | Path, *, max_bytes: int | None = None) -> dict[str, Any]:
    """Return what a model file says of itself, without building the model.

    Parameters
    ----------
    path : path
    max_bytes : int, optional
        As for :func:`load`.

    Returns
    -------
    dict
        ``format``, ``schema``, ``kernelweave``, ``scikit-learn``, ``skops``, ``numpy``, ``model`` and ``note``.
    """
    return _checked_label(_opened(Path(path), max_bytes)[0])


def load(path: str | Path, *, max_bytes: int | None = None, n_jobs: int | None = None) -> Any:
    """Load a model that :func:`save` wrote.

    No code in the file is run, because there can be none: the file is refused if it holds anything but numbers, text
    and objects of an exact list of types.  It is read once, and every array in it is checked before it is used.

    Parameters
    ----------
    path : path
    max_bytes : int, optional
        What the file may unfold to in memory.  By default 500 MB, or 200 times its size where that is more, but not
        more than half of the memory there is.
    n_jobs : int, optional
        Number of jobs of the model and of everything in it that has one, as scikit-learn reads it; by default one job.
        The file does not decide about that.

    Returns
    -------
    model

    Raises
    ------
    ModelFileError
        Where the file is damaged, is no model file, is a pickle, holds a type that is not on the list, names files or
        functions to be used by a fit, does not fit together, or was written by a later library.
    """
    return loaded(path, max_bytes=max_bytes, n_jobs=n_jobs).model


class Loaded(NamedTuple):
    """A model with the label of its file, both from one reading of it."""

    model: Any
    label: dict[str, Any]


def loaded(path: str | Path, *, max_bytes: int | None = None, n_jobs: int | None = None) -> Loaded:
    """Return the model and what :func:`about` says of it."""
    from ._audit import audit, update_names
    from ._state import check_arrays, check_state, exchange_parts

    skops = import_skops()
    archive, most = _opened(Path(path), max_bytes)
    label = _checked_label(archive)
    if DESCRIPTION not in archive.members:
        raise ModelFileError(f"{path} is damaged: it has no {DESCRIPTION}")
    description = _parsed(archive, DESCRIPTION)
    renamed = update_names(description)
    contents = audit(description, n_jobs)
    if contents.findings:
        raise ModelFileError(f"{path} is refused: {contents.findings[0]}")
    unused = set(archive.members) - {LABEL, DESCRIPTION} - {member for member, _ in contents.arrays}
    if unused:
        raise ModelFileError(f"{path} is refused: nothing in it uses its part {min(unused)!r}")
    check_arrays(archive, sorted(contents.arrays), most)
    try:
        content = archive.content
        if renamed or contents.changed:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as file:  # read once, at once: not worth packing
                for name in archive.members:
                    new = name == DESCRIPTION
                    file.writestr(name, json.dumps(description) if new else archive.read(name))
            content = buffer.getvalue()
        # the types of this file, all of them on the list: skops goes through them at every node
        model = exchange_parts(skops.loads(content, trusted=sorted(contents.types)), saving=False)
        check_state(model)
    except Exception as error:
        why = error or type(error).__name__
        raise ModelFileError(f"{path} cannot be loaded, its content does not fit together: {why}") from error
    return Loaded(model, label)


def _opened(path: Path, max_bytes: int | None) -> tuple[Archive, int]:
    """Return the archive, checked for damage, and the bytes it may unfold to; never wait for a pipe or a device."""
    most = default_budget() if max_bytes is None else int(max_bytes)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise ModelFileError(f"{path} is refused: it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if about.st_size > most:
            large = f"it has {about.st_size:,} bytes, more than {most:,}; raise max_bytes if you trust it"
            raise ModelFileError(f"{path} is refused: {large}")
        content = file.read(about.st_size + 1)
    if len(content) > about.st_size:
        raise ModelFileError(f"{path} is refused: it grew while it was read")
    is_archive = zipfile.is_zipfile(io.BytesIO(content))
    if content.startswith(b"PK\x03\x04") and is_archive:
        if max_bytes is None:
            most = min(most, max(ALWAYS_ALLOWED, INFLATION * len(content)))
        return open_archive(content, str(path), most), most
    # pickles from protocol 2 on; those of joblib may be compressed
    pickles = (b"\x80", b"\x78\x9c", b"\x78\x01", b"\x1f\x8b", b"(", b"c", b"]", b"}")
    if not content:
        guess = "it is empty"
    elif content.startswith(pickles):
        guess = (
            "it looks like a pickle, which can run any code when it is loaded. Models are loaded only from files that "
            "kernelweave.persistence.save wrote"
        )
    elif content.startswith(b"PK\x03\x04"):
        guess = "it is the beginning of a model file or another archive, cut short"
    elif is_archive:
        guess = "it has bytes before its first part, so that it may be something else as well"
    else:
        guess = "it is not a model file (a zip archive written by kernelweave.persistence.save)"
    raise ModelFileError(f"{path} is refused: {guess}")


def _parsed(archive: Archive, member: str) -> Any:
    """Return what a member says in JSON; it may not be out of proportion to the file."""
    about = archive.members[member]
    if about.file_size > max(SMALL, TEXT_INFLATION * about.compress_size):
        raise ModelFileError(
            f"{archive.name} is refused: its {member} has {about.file_size:,} bytes, more than a model file needs"
        )
    try:
        return json.loads(archive.read(member))
    except RecursionError:
        raise ModelFileError(f"{archive.name} is damaged: {member} is nested too deeply") from None
    except ValueError as error:
        raise ModelFileError(f"{archive.name} is damaged: {member} is no JSON ({error})") from error


def _checked_label(archive: Archive) -> dict[str, Any]:
    name = archive.name
    if LABEL not in archive.members:
        raise ModelFileError(
            f"{name} is refused: it is an archive, but not one that kernelweave.persistence.save wrote "
            f"(it has no {LABEL})"
        )
    label = _parsed(archive, LABEL)
    if not isinstance(label, dict) or label.get("format") != FORMAT:
        raise ModelFileError(f"{name} is refused: its {LABEL} does not say that it is a {FORMAT}")
    schema = label.get("schema")
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise ModelFileError(
            f"{name} is refused: its layout is number {schema!r}, of kernelweave {label.get('kernelweave')}; "
            f"this is kernelweave {__version__}, which reads layouts from 1 to {SCHEMA}"
        )
    kinds = {**dict.fromkeys(("kernelweave", "scikit-learn", "skops", "numpy", "model"), str), "note": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(label.get(key), kind)]
    if wrong:
        raise ModelFileError(f"{name} is damaged: its {LABEL} does not say {wrong[0]!r}")
    return label
