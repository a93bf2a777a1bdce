"""From a table and options to a fitted model and what is noted beside it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._columns import (
    blank_absent,
    check_columns,
    column_kinds,
    column_transformer,
    refuse_absent,
    view_steps,
    views_and_kernels,
)
from ._files import matrix_names, read_matrices, read_table
from ._note import Note
from ._views import View, join_files, read_views, views_of_groups, views_of_options

if TYPE_CHECKING:
    from ..kernels.groups import Groups

__all__ = [
    "Options",
    "Trained",
    "cut_into_folds",
    "gram_matrices",
    "new_samples_for",
    "progress_bar",
    "targets_of",
    "train",
]

#: whole numbers with at most so many different values are classes
MOST_CLASSES = 20


@dataclass(frozen=True)
class Options:
    """What ``kernelweave fit`` was asked for."""

    data: Path
    target: str
    views_file: Path | None = None
    views: tuple[str, ...] = ()
    kernels: str | None = None
    gram: tuple[Path, ...] = ()
    C: str = "cv"
    norm: str = "l1"
    loss: str | None = None
    noise_rate: str | None = None
    task: str = "auto"
    drop: tuple[str, ...] = ()
    identity: str | None = None
    tol: float = 1e-3
    verbose: int = 0
    missing: str = "error"
    gmt: Path | None = None
    groups: Path | None = None
    min_size: int = 1


@dataclass
class Trained:
    """A fitted model, what it was fitted on, and the note that is saved beside it."""

    model: Any
    X: Any
    y: Any
    note: Note
    ids: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def train(options: Options) -> Trained:
    """Read, check, build and fit."""
    frame = read_table(options.data)
    views, identity = _views(options)
    identity = options.identity or identity
    if options.missing != "error" and not views:
        raise ValueError("--missing is about views: name them with --view or --views")
    frame = join_files(frame, views, identity, options.missing)
    y, task = _target(frame, options)
    if identity is not None and identity not in frame:
        raise ValueError(f"{options.data} has no column {identity!r} for --id")
    ids = [str(value) for value in (frame[identity] if identity else range(len(frame)))]
    note = Note(options.data.name, options.target, task, identity, len(frame), missing=options.missing)
    steps: list[Any] = []
    notes: list[str] = []
    if options.gram:
        X, note.gram = gram_matrices(options.gram, len(frame), options.data)
        kernels = "precomputed"
    else:
        X, steps, kernels = _columns(frame, views, options, identity, note, notes)
    last = _estimator(kernels, task, options, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if task == "regression" and options.C == "cv":
            last.C = _best_C(*cut_into_folds(_joined(steps, last), X, note), y)
            note.C = last.C
        model = _joined(steps, last).fit(X, y)
    if options.gram:
        _last(model).kernel_names_[:] = note.gram
    # matplotlib and the like may warn of anything: only what the library says of the fit is passed on
    said = [str(warning.message) for warning in caught if "kernelweave" in warning.category.__module__]
    return Trained(model, X, y, note, ids, list(dict.fromkeys(said)), notes)


def _joined(steps: list[Any], last: Any) -> Any:
    from sklearn.pipeline import Pipeline

    return Pipeline([*steps, ("model", last)]) if steps else last


def _last(model: Any) -> Any:
    return getattr(model, "steps", [(None, model)])[-1][1]


def _views(options: Options) -> tuple[list[View], str | None]:
    given = [
        name
        for name, value in (
            ("--views", options.views_file), ("--view", options.views),
            ("--kernels", options.kernels), ("--gram", options.gram),
            ("--gmt", options.gmt), ("--groups", options.groups),
        ) if value
    ]  # fmt: skip
    if len(given) > 1:
        raise ValueError(f"{given[0]} and {given[1]} both say what the kernels are: give one of them")
    if options.views_file is not None:
        return read_views(options.views_file)
    return views_of_options(options.views), None


def _target(frame: Any, options: Options) -> tuple[Any, str]:
    """Return the targets and whether they are classes or numbers; name what is wrong with them."""
    import pandas as pd

    if options.target not in frame:
        from .._components import nearest

        raise ValueError(
            f"{options.data} has no column {options.target!r} for --target."
            f"{nearest(options.target, list(frame.columns))}"
        )
    y = frame[options.target]
    missing = int(y.isna().sum())
    if missing:
        first = int(y.isna().to_numpy().argmax())
        raise ValueError(
            f"the target {options.target!r} is missing in {missing} rows, first in row {first}: leave these rows out"
        )
    numbers = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    task = options.task
    if task == "auto":
        few = not numbers or ((y == y.round()).all() and y.nunique() <= MOST_CLASSES)
        task = "classification" if few else "regression"
    if task == "regression":
        if not numbers:
            raise ValueError(f"the target {options.target!r} holds texts: regression needs numbers")
        return y.to_numpy(dtype=float), task
    if y.nunique() < 2:
        raise ValueError(f"the target {options.target!r} has a single class, {y.iloc[0]!r}")
    return (y.to_numpy() if numbers else y.map(str).to_numpy(dtype=object).astype(str)), task


def _columns(
    frame: Any, views: list[View], options: Options, identity: str | None, note: Note, notes: list[str]
) -> tuple[Any, list[Any], Any]:
    """Return the samples, the steps before the model, and the kernels on the columns that these steps produce."""
    from .. import kernels as kw

    unknown = [name for name in options.drop if name not in frame]
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r} to --drop")
    left_out = {options.target, identity, *options.drop}
    columns = [column for column in frame.columns if column not in left_out]
    if not columns:
        raise ValueError(f"{options.data} has no column beside the target to learn from")
    if (spec := _groups(options)) is not None:
        views, left_out_of_groups = views_of_groups(spec, columns)
        notes += [left_out_of_groups] if left_out_of_groups else []
    named = bool(views)
    views = views or [View("all features")]
    for view in views:
        view.pick(columns)
    used = list(dict.fromkeys(column for view in views for column in view.picked))
    kinds = column_kinds(frame, used)
    table = check_columns(frame, kinds)
    note.views = {view.name: view.picked for view in views} if named else {}
    note.columns = kinds
    if options.missing != "error":
        transformer, kernels = view_steps(table, kinds, views)
        return blank_absent(frame, table, note.views), [("columns", transformer)], kernels
    refuse_absent(frame, note.views)
    transformer, starts = column_transformer(table, kinds, views)
    if named:
        kernels = views_and_kernels(views, starts)
    else:
        default = options.kernels in (None, "default")
        kernels = kw.default_bank() if default else kw.preset(str(options.kernels))
    return table, [("columns", transformer)], kernels


def _groups(options: Options) -> Groups | None:
    """Return the groups of columns that a file names, None where there is none."""
    from .. import kernels as kw

    if options.gmt is not None:
        return kw.from_gmt(options.gmt, kw.linear(), min_size=options.min_size)
    if options.groups is not None:
        return kw.from_groups(options.groups, kw.linear(), min_size=options.min_size)
    return None


def gram_matrices(paths: Sequence[Path], n: int, data: Path) -> tuple[Any, list[str]]:
    """Return kernel matrices of the training samples as one array, and their names."""
    import numpy as np

    matrices = read_matrices(paths)
    for path, matrix in zip(matrix_names(paths, len(matrices)), matrices, strict=True):
        if matrix.shape != (n, n):
            raise ValueError(
                f"{path} is a {matrix.shape[0]} x {matrix.shape[1]} matrix, but {data} has {n} rows"
            )
    return np.stack(matrices).astype(float), matrix_names(paths, len(matrices))


def cut_into_folds(model: Any, X: Any, note: Note) -> tuple[Any, Any]:
    """Return model and samples in a form that folds can be cut from: matrices go into a holder."""
    import numpy as np
    from sklearn.base import clone

    if not note.gram:
        return model, X
    from .. import kernels as kw

    return clone(model).set_params(kernels=kw.held(X, note.gram)), np.arange(len(X[0]))


def _estimator(kernels: Any, task: str, options: Options, y: Any) -> Any:
    from .. import MKLClassifier, MKLClassifierCV, MKLRegressor, NoisyLabelMKLClassifier

    settings: dict[str, Any] = {"tol": options.tol, "verbose": options.verbose}
    if options.noise_rate is not None and options.missing != "error":
        raise ValueError(
            "--noise-rate and --missing do not go together: complete or leave out one of the two"
        )
    if options.noise_rate is not None:
        if task == "regression":
            raise ValueError("--noise-rate is about wrong labels: the target here is a number")
        rate = (
            options.noise_rate
            if options.noise_rate == "estimate"
            else _number("--noise-rate", options.noise_rate)
        )
        return NoisyLabelMKLClassifier(kernels, noise_rate=rate, **settings)
    settings |= {"norm": _number_or_name(options.norm), "missing": options.missing}
    if options.loss is not None:
        settings["loss"] = options.loss
    if task == "regression":
        return MKLRegressor(kernels, C=1.0 if options.C == "cv" else _number("--C", options.C), **settings)
    if options.C == "cv":
        return MKLClassifierCV(kernels, cv=_folds(y), **settings)
    return MKLClassifier(kernels, C=_number("--C", options.C), **settings)


def _folds(y: Any) -> int:
    import numpy as np

    rarest = int(np.unique(y, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError(
            "--C cv needs at least two rows of every class: leave the rare class out, or give a number"
        )
    return min(5, rarest)


def _best_C(model: Any, X: Any, y: Any) -> float:
    """C of a regression by five-fold cross-validation of the whole pipeline; interrupted, the best so far."""
    import numpy as np
    from sklearn.model_selection import cross_val_score

    from .._numerics.deadline import interrupted

    name = "model__C" if hasattr(model, "steps") else "C"
    scores: dict[float, float] = {}
    for C in np.logspace(-2, 3, 6):
        score = cross_val_score(model.set_params(**{name: C}), X, y, cv=5, scoring="neg_mean_squared_error")
        if interrupted():
            break
        scores[float(C)] = float(np.mean(score))
    if not scores:
        raise KeyboardInterrupt
    return max(scores, key=lambda C: scores[C])


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} takes a number, got {text!r}") from None


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def new_samples_for(
    note: Note,
    data: Path | None,
    views_file: Path | None = None,
    gram: Sequence[Path] = (),
    view_files: Sequence[str] = (),
) -> tuple[Any, Any]:
    """Samples for a model from a new table or from rows of kernel matrices; and the table, if there is one."""
    frame = None if data is None else read_table(data)
    if note.gram:
        rows = read_matrices(gram)
        if len(rows) != len(note.gram):
            raise ValueError(
                f"the model stands on {len(note.gram)} kernel matrices ({', '.join(note.gram)}): give as many "
                f"with --gram, new rows against the {note.rows} training samples; got {len(rows)}"
            )
        return rows, frame
    if gram:
        raise ValueError("the model was fitted on columns, not on kernel matrices: leave --gram away")
    if frame is None:
        raise ValueError("give a table of new samples")
    if views_file is not None:
        views, identity = read_views(views_file)
        frame = join_files(frame, views, identity, note.missing)
    frame = join_files(frame, views_of_options(view_files), note.id, note.missing)
    if note.missing == "error":
        return check_columns(frame, note.columns), frame
    for columns in note.views.values():  # a view of which there is no column is missing for everybody
        if not any(column in frame for column in columns):
            frame = frame.assign(**dict.fromkeys(columns, float("nan")))
    return blank_absent(frame, check_columns(frame, note.columns), note.views), frame


def progress_bar(what: str, quiet: bool) -> Any:
    """A function of (done, to do) that draws a bar on a terminal and nothing elsewhere."""
    from tqdm import tqdm

    bar = tqdm(desc=what, disable=quiet or not sys.stderr.isatty(), leave=False)

    def step(done: int, todo: int) -> None:
        bar.total = todo
        bar.update(done - bar.n)
        if done == todo:
            bar.close()

    return step


def targets_of(data: Path, note: Note) -> tuple[Any, list[str], int]:
    """Targets and names of the rows of the table that a model was fitted on, and their number."""
    frame = read_table(data)
    options = Options(data, note.target, task=note.task)
    y, _ = _target(frame, options)
    ids = [str(value) for value in (frame[note.id] if note.id else range(len(frame)))]
    return y, ids, len(frame)
