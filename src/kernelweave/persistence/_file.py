"""Model files: what is in the archive, and what is refused."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from .. import __version__
from .._output import write_whole
from ._allowed import allowed_parts
from ._audit import strangers
from ._tables import with_frames, without_frames

__all__ = ["ModelFileError", "about", "load", "save"]

FORMAT = "kernelweave model"
#: layout of the file; raised when an older library could not read it
SCHEMA = 1
LABEL = "kernelweave.json"
DESCRIPTION = "schema.json"  # the name that skops gives it


class ModelFileError(ValueError):
    """A model that cannot be saved without code in the file, or a file that is not loaded."""


def save(model: Any, path: str | Path, *, note: dict[str, Any] | None = None) -> None:
    """Save a fitted model to a file that holds data and no code.

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
    import skops.io

    name = type(model).__name__
    try:
        content = skops.io.dumps(without_frames(model), compression=zipfile.ZIP_DEFLATED)
    except Exception as error:
        raise ModelFileError(
            f"this {name} cannot be saved: {error}. Only data go into a model file; pickle is the way for anything "
            "else, between programs that trust each other"
        ) from error
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        found = strangers(_description(archive))
        if found:
            where, what, code = found[0]
            why = "the function " + what if code else f"a {what}, which is not on the list of types"
            raise ModelFileError(
                f"this {name} cannot be saved: {where} is {why}, and a model file holds data, no code. Replace it by "
                "a component of the library, or use pickle between programs that trust each other"
            )
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


def about(path: str | Path) -> dict[str, Any]:
    """Return what a model file says of itself, without building the model.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        ``format``, ``schema``, ``kernelweave``, ``scikit-learn``, ``skops``, ``numpy``, ``model`` and ``note``.
    """
    with _opened(path) as archive:
        return _checked_label(archive, Path(path))


def load(path: str | Path) -> Any:
    """Load a model that :func:`save` wrote.

    No code in the file is run, because there can be none: the file is refused if it holds anything but numbers, text
    and objects of an exact list of types.

    Parameters
    ----------
    path : path

    Returns
    -------
    model

    Raises
    ------
    ModelFileError
        Where the file is damaged, is no model file, is a pickle, holds a type that is not on the list, or was written
        by a later library.
    """
    import skops.io

    path = Path(path)
    with _opened(path) as archive:
        _checked_label(archive, path)
        found = strangers(_description(archive, path))
        if found:
            raise ModelFileError(
                f"{path} is refused: {found[0].where} is {found[0].what}, which is not on the list of types that a "
                "model file may hold"
            )
    try:
        return with_frames(skops.io.load(path, trusted=sorted(frozenset().union(*allowed_parts().values()))))
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be loaded, its content does not fit together: {error}"
        ) from error


class _opened:
    """The archive, looked through for damage; a file that is none is refused with what it seems to be."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __enter__(self) -> zipfile.ZipFile:
        if not self.path.is_file():
            raise FileNotFoundError(f"there is no file {self.path}")
        if not zipfile.is_zipfile(self.path):
            raise ModelFileError(f"{self.path} is refused: {_guess(self.path)}")
        try:
            self.archive = zipfile.ZipFile(self.path)
            broken = self.archive.testzip()
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
            raise ModelFileError(f"{self.path} is damaged: {error}") from error
        except Exception as error:  # zlib and struct errors of torn members
            raise ModelFileError(f"{self.path} is damaged: {error}") from error
        if broken is not None:
            self.archive.close()
            raise ModelFileError(f"{self.path} is damaged: its part {broken!r} does not match its checksum")
        return self.archive

    def __exit__(self, *_: object) -> None:
        self.archive.close()


def _guess(path: Path) -> str:
    """What a file that is no archive seems to be."""
    with path.open("rb") as file:
        start = file.read(16)
    if not start:
        return "it is empty"
    # pickles from protocol 2 on; those of joblib may be compressed
    if start[0] == 0x80 or start[:2] in (b"\x78\x9c", b"\x78\x01", b"\x1f\x8b") or start[:1] in b"(c]}":
        return (
            "it looks like a pickle, which can run any code when it is loaded. Models are loaded only from files "
            "that kernelweave.persistence.save wrote"
        )
    if start[:4] == b"PK\x03\x04":
        return "it is the beginning of a model file or another archive, cut short"
    return "it is not a model file (a zip archive written by kernelweave.persistence.save)"


def _checked_label(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        label = json.loads(archive.read(LABEL))
    except KeyError:
        raise ModelFileError(
            f"{path} is refused: it is an archive, but not one that kernelweave.persistence.save wrote "
            f"(it has no {LABEL})"
        ) from None
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {LABEL} is no JSON ({error})") from error
    if not isinstance(label, dict) or label.get("format") != FORMAT:
        raise ModelFileError(f"{path} is refused: its {LABEL} does not say that it is a {FORMAT}")
    schema = label.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise ModelFileError(
            f"{path} is refused: its layout is number {schema}, of kernelweave {label.get('kernelweave')}; "
            f"this is kernelweave {__version__}, which reads layouts up to {SCHEMA}"
        )
    return label


def _description(archive: zipfile.ZipFile, path: Path | str = "the file") -> Any:
    try:
        return json.loads(archive.read(DESCRIPTION))
    except KeyError:
        raise ModelFileError(f"{path} is damaged: it has no {DESCRIPTION}") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {DESCRIPTION} is no JSON ({error})") from error
