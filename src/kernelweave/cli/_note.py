"""A model file with what ``kernelweave fit`` noted beside the model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._terminal import say

__all__ = ["Note", "checked_note", "open_model"]

COLUMNS = ("numbers", "categories")
TASKS = ("classification", "regression")


@dataclass
class Note:
    """What ``fit`` notes beside a model, so that ``predict`` and ``report`` know what to do with a table.

    Attributes
    ----------
    data : str
        Name of the file that the model was fitted on.
    target, task : str
        Column of the labels, and whether they are classes or numbers.
    id : str or None
        Column that names the rows.
    rows : int
        Number of training samples.
    views : dict
        Columns of every view; empty where none was named.
    columns : dict
        What every column holds, numbers or categories; empty for matrices.
    gram : list of str
        Names of the kernel matrices; empty for columns.
    missing : str
        What became of rows that lack a view.
    fold_groups : str or None
        Column whose rows of the same value were held out together.
    folds : int
        Of the cross-validation that chose C.
    na : list of str
        Texts that were read as missing cells.
    strip : bool
        Whether white space around texts was removed.
    categories : dict
        Of every column of categories, those of the training table.
    reading : dict
        What was done to the table: ``Remarks.as_dict()``.
    command : str or None
        The command that was typed.
    C : float or None
        What cross-validation chose, for a regression.
    """

    data: str
    target: str
    task: str
    id: str | None
    rows: int
    views: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    gram: list[str] = field(default_factory=list)
    missing: str = "error"
    fold_groups: str | None = None
    folds: int = 5
    na: list[str] = field(default_factory=list)
    strip: bool = False
    categories: dict[str, list[str]] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    command: str | None = None
    C: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the note as model files hold it."""
        written = dict(vars(self))
        C = written.pop("C")
        return written if C is None else written | {"C by cross-validation": C}


def open_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return a model and the label of its file; one sentence says where another scikit-learn wrote it."""
    from importlib.metadata import version

    from sklearn.exceptions import InconsistentVersionWarning

    from ..persistence import loaded

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, label = loaded(path)
    others = [warning for warning in caught if not issubclass(warning.category, InconsistentVersionWarning)]
    if len(others) < len(caught):
        say(
            f"warning: {path} was written with scikit-learn {label['scikit-learn']}, "
            f"this is {version('scikit-learn')}: "
            "what its steps compute may have changed",
            err=True,
        )
    for warning in others:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return model, label


def checked_note(label: dict[str, Any], path: Path) -> Note:
    """Return the note of a model file, or say that ``fit`` of this version did not write it.

    Parameters
    ----------
    label : dict
        What ``persistence.about`` returns.
    path : Path
        Of the file, for the message.
    """
    note = label["note"]
    if "columns" not in note:
        raise ValueError(
            f"{path} was not written by 'kernelweave fit', which notes the columns: load it in Python with "
            "kernelweave.persistence.load"
        )
    checks = {
        "command": lambda value: value is None or isinstance(value, str),
        "columns": lambda value: isinstance(value, dict) and all(kind in COLUMNS for kind in value.values()),
        "gram": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
        "id": lambda value: value is None or isinstance(value, str),
        "fold_groups": lambda value: value is None or isinstance(value, str),
        "na": lambda value: (
            value is None or (isinstance(value, list) and all(isinstance(t, str) for t in value))
        ),
        "reading": lambda value: value is None or _is_reading(value),
        "rows": lambda value: type(value) is int and value > 0,
        "strip": lambda value: value is None or isinstance(value, bool),
        "target": lambda value: isinstance(value, str),
        "task": lambda value: value in TASKS,
    }
    wrong = [key for key, fits in checks.items() if not fits(note.get(key))]
    if wrong:
        raise ValueError(
            f"{path} does not say {wrong[0]!r} as this version needs it (it was written by kernelweave "
            f"{label['kernelweave']}): fit again, or load it in Python with kernelweave.persistence.load"
        )
    known = {
        key: value for key, value in note.items() if key in Note.__dataclass_fields__ and value is not None
    }
    known["id"] = note.get("id")
    return Note(**{"data": "", **known, "C": note.get("C by cross-validation")})


def _is_reading(value: Any) -> bool:
    """Whether these can be remarks; of them only the new names of columns are used again."""
    renamed = value.get("renamed", {}) if isinstance(value, dict) else None
    return isinstance(renamed, dict) and all(isinstance(old, str) for old in renamed.values())
