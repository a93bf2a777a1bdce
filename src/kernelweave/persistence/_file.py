"""Model files: what is in the archive, and what is refused.

What builds or looks through models is imported where that is done: the label of a file is read in an instant.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from .._numerics.memory import default_budget
from .._output import write_whole
from ._archive import Archive, ModelFileError, open_archive, read_bytes

__all__ = ["Loaded", "ModelFileError", "about", "load", "loaded", "save"]

FORMAT = "kernelweave model"
#: layout of the file; raised when an older library could not read it
SCHEMA = 1
LABEL = "kernelweave.json"
DESCRIPTION = "schema.json"  # the name that skops gives it
#: a file may always unfold to this many bytes, ...
ROOM = 500_000_000
#: ... and beyond that to this many times its own: what a file costs is in proportion to its size
INFLATION = 200


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
    write_whole(path, dumped(model, note))


def dumped(model: Any, note: dict[str, Any] | None = None) -> bytes:
    """Return the file as bytes; see :func:`save`."""
    from ._audit import audit
    from ._skops import import_skops
    from ._tables import taken_apart

    skops = import_skops()
    name = type(model).__name__
    if not hasattr(model, "fit"):
        raise ModelFileError(f"a {name} cannot be saved on its own: a model file holds an estimator")
    try:
        content = skops.dumps(taken_apart(model), compression=zipfile.ZIP_DEFLATED)
    except Exception as error:
        raise ModelFileError(
            f"this {name} cannot be saved: {error}. Only data go into a model file; pickle is the way for anything "
            "else, between programs that trust each other"
        ) from error
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        findings = audit(json.loads(archive.read(DESCRIPTION))).findings
        if findings:
            raise ModelFileError(f"this {name} cannot be saved: {findings[0].for_the_author()}")
        archive.writestr(LABEL, json.dumps(_label(name, note), indent=1))
    return buffer.getvalue()


def _label(name: str, note: dict[str, Any] | None) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "kernelweave": __version__,
        "scikit-learn": version("scikit-learn"),
        "skops": version("skops"),
        "numpy": version("numpy"),
        "model": name,
        "note": note or {},
    }


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
    from ._arrays import check_arrays
    from ._audit import audit
    from ._moved import rewritten, update_names
    from ._skops import import_skops
    from ._state import check_state
    from ._tables import put_together

    skops = import_skops()
    archive, most = _opened(Path(path), max_bytes)
    label = _checked_label(archive)
    description = _description(archive)
    renamed = update_names(description)
    contents = audit(description, n_jobs)
    if contents.findings:
        raise ModelFileError(f"{path} is refused: {contents.findings[0]}")
    unused = set(archive.members) - {LABEL, DESCRIPTION} - {member for member, _ in contents.arrays}
    if unused:
        raise ModelFileError(f"{path} is refused: nothing in it uses its part {min(unused)!r}")
    check_arrays(archive, sorted(contents.arrays), most)
    try:
        # the types of this file, all of them on the list: skops looks through them at every node
        content = (
            rewritten(archive, DESCRIPTION, description) if renamed or contents.changed else archive.content
        )
        model = put_together(skops.loads(content, trusted=sorted(contents.types)))
        check_state(model)
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be loaded, its content does not fit together: {error or type(error).__name__}"
        ) from error
    return Loaded(model, label)


def _opened(path: Path, max_bytes: int | None) -> tuple[Archive, int]:
    """The archive, looked through for damage, and the bytes it may unfold to; what is no archive is refused."""
    most = default_budget() if max_bytes is None else int(max_bytes)
    content = read_bytes(path, most)
    if not content.startswith(b"PK\x03\x04") or not zipfile.is_zipfile(io.BytesIO(content)):
        raise ModelFileError(f"{path} is refused: {_guess(content)}")
    if max_bytes is None:
        most = min(most, max(ROOM, INFLATION * len(content)))
    return open_archive(content, str(path), most), most


def _guess(content: bytes) -> str:
    """What a file that is no archive seems to be."""
    if not content:
        return "it is empty"
    # pickles from protocol 2 on; those of joblib may be compressed
    if content[0] == 0x80 or content[:2] in (b"\x78\x9c", b"\x78\x01", b"\x1f\x8b") or content[:1] in b"(c]}":
        return (
            "it looks like a pickle, which can run any code when it is loaded. Models are loaded only from files "
            "that kernelweave.persistence.save wrote"
        )
    if content[:4] == b"PK\x03\x04":
        return "it is the beginning of a model file or another archive, cut short"
    if zipfile.is_zipfile(io.BytesIO(content)):
        return "it has bytes before its first part, so that it may be something else as well"
    return "it is not a model file (a zip archive written by kernelweave.persistence.save)"


def _parsed(archive: Archive, member: str) -> Any:
    try:
        return json.loads(archive.text(member))
    except ModelFileError:
        raise
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


def _description(archive: Archive) -> Any:
    if DESCRIPTION not in archive.members:
        raise ModelFileError(f"{archive.name} is damaged: it has no {DESCRIPTION}")
    return _parsed(archive, DESCRIPTION)
