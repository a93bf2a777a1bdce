"""From a table and options to a fitted model and what is noted beside it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click import UsageError

from .._components import nearest
from ..exceptions import DegenerateModelWarning, GridEndWarning
from ._note import Note
from ._options import Options, estimator_for, named_kernels, score_of_guessing
from ._survival import followed
from ._tables import Format, Remarks, numbers_and_texts, read_matrices, read_table
from ._views import (
    MISSING,
    View,
    always_view,
    blank_absent,
    check_columns,
    column_kinds,
    column_transformer,
    date_in,
    join_files,
    kernels_of,
    read_views,
    refuse_absent,
    refuse_beyond,
    require_column,
    view_steps,
    views_of_objects,
    views_of_options,
)

#: whole numbers with at most so many different values are classes
MOST_CLASSES = 20


@dataclass
class Trained:
    """A fitted model, what it was fitted on, and the note that is saved beside it."""

    model: Any
    X: Any
    y: Any
    note: Note
    ids: list[str] = field(default_factory=list)
    groups: Any = None
    strata: Any = None
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def train(options: Options) -> Trained:
    """Read, check, build and fit."""
    from sklearn.pipeline import Pipeline

    remarks = Remarks()
    views, identity = _views(options)
    # a group names the rows that are held out together, a stratum those of one baseline: texts as well
    grouping = [column for column in (options.fold_groups, options.strata) if column]
    ids = [identity] if identity else []
    texts = [*grouping, *(column for view in views if view.objects for column in view.columns)]
    read = partial(read_table, form=options.form, remarks=remarks, texts=texts)
    targets = list(options.targets.values())
    codes = [column for column in targets if column != options.time]
    frame = read(options.data, ids=ids, single=[*targets, *ids, *grouping], codes=codes)
    notes: list[str] = []
    frame = join_files(frame, views, identity, options.missing, read, notes)
    y, task, strata = None, "novelty", None
    if options.survival:
        (y, strata), task = followed(frame, options, notes), "survival"
    elif targets:
        y, task = target_of(frame, options)
    for option, column in (("--id", identity), ("--fold-groups", options.fold_groups)):
        if column is not None:
            require_column(frame, column, options.data, f" for {option}")
    names = [str(value) for value in (frame[identity] if identity else range(len(frame)))]
    note = Note(
        options.data.name, options.target or options.event or "", task, identity, len(frame),
        missing=options.missing, fold_groups=options.fold_groups, time=options.time,
        event_value=options.event_value, strata=options.strata, na=list(options.form.missing),
        strip=options.form.strip, folds=options.folds,
    )  # fmt: skip
    groups = groups_of(frame, note)
    if task == "classification" and 2 * (classes := frame[options.target].nunique()) > len(frame):
        notes.append(
            f"the target {options.target!r} has {classes} classes in {len(frame)} rows: classes are to be learnt from "
            "several rows each"
        )
    of_rows = list(dict.fromkeys([*targets, *grouping]))
    for column in of_rows:
        remarks.note_alike(column, frame[column].dropna().unique())
    steps: list[Any] = []
    if options.gram:
        X, note.gram = gram_matrices(options.gram, len(frame), options.data)
        kernels = "precomputed"
        remarks.only(of_rows)
    else:
        X, steps, kernels = _columns(frame, views, options, note, notes, remarks)
    note.reading = remarks.as_dict()
    note.guessing = score_of_guessing(options, task, y) if options.target else None
    last = estimator_for(kernels, task, options, y, groups)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Pipeline([*steps, ("model", last)]) if steps else last
        # groups reach the folds of the estimator, where it has any
        beside = {"groups": groups if hasattr(last, "cv") else None, "strata": strata}
        before = "model__" if steps else ""
        model.fit(X, y, **{before + name: value for name, value in beside.items() if value is not None})
    if options.gram:
        last.kernel_names_[:] = note.gram
    notes = [*remarks.lines(), *notes]
    return Trained(model, X, y, note, names, groups, strata, sentences_of(caught), notes)


def sentences_of(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return what the library says of a fit; others may warn of anything."""
    facts = DegenerateModelWarning | GridEndWarning  # of a fit that is sound
    sentences = [
        str(warning.message)
        for warning in caught
        if "kernelweave" in warning.category.__module__ and not issubclass(warning.category, facts)
    ]
    return list(dict.fromkeys(sentences))


def _views(options: Options) -> tuple[list[View], str | None]:
    """Return the views, and the column that names the rows; no view names a column that is not learnt from."""
    joined_by: str | None = None
    if options.views_file is not None:
        views, joined_by = read_views(options.views_file)
    else:
        views = views_of_options(options.views)
        for view in views if options.kernels is not None else ():
            view.kernels = named_kernels(options.kernels or "")
        views += views_of_objects(options.objects)
    views += [always_view(options.always)] if options.always else []
    identity = options.identity or joined_by
    if joined_by not in (None, identity):
        file = options.views_file
        raise ValueError(f"--id is {identity!r} and {file} says id = {joined_by!r}: give one of them")
    # ``check_options`` has checked those of ``--view``
    roles: dict[str | None, str] = {options.target: "target"} if options.target else {}
    roles |= {identity: "id", options.fold_groups: "column of --fold-groups"}
    roles |= {
        column: f"column of {option}" for option, column in options.targets.items() if option != "--target"
    }
    roles |= {options.strata: "column of --strata"}
    roles |= dict.fromkeys(options.drop, "column of --drop")
    for view in views:
        for column in view.columns:
            if column in roles:
                raise ValueError(
                    f"view {view.name!r} names {column!r}, the {roles[column]}, which is not learnt from: leave it "
                    "out of the view"
                )
    return views, identity


def groups_of(frame: Any, note: Note) -> Any:
    """Return what rows are held out together, None where nothing says so."""
    if note.fold_groups is None:
        return None
    values = frame[note.fold_groups]
    missing = values.isna() | (values == "")
    if missing.any():
        raise ValueError(
            f"column {note.fold_groups!r} of --fold-groups is missing in {int(missing.sum())} rows: give every row a "
            "group"
        )
    return values.map(str).to_numpy(dtype=object)


def target_of(frame: Any, options: Options) -> tuple[Any, str]:
    """Return the targets and whether they are classes or numbers; name what is wrong with them."""
    require_column(frame, options.target, options.data, " for --target")
    y, task, what = frame[options.target], options.task, f"the target {options.target!r}"
    if missing := int(y.isna().sum()):
        first = int(y.isna().to_numpy().argmax())
        raise ValueError(f"{what} is missing in {missing} rows, first in row {first}: leave these rows out")
    if (date := date_in(y)) is not None:
        raise ValueError(f"{what} holds dates, such as {date!r}: make numbers of them, or classes")
    numbers = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    many = y.nunique() > MOST_CLASSES
    if not numbers and (task == "regression" or (task == "auto" and many)):
        # 007, 008, ...: codes where they are few, padded numbers where they are many
        values = pd.to_numeric(y.map(str), errors="coerce")
        if values.notna().all():
            y, numbers, many = values, True, values.nunique() > MOST_CLASSES
    others: dict[str, int] = {} if numbers else numbers_and_texts(y)
    if others and many and task != "classification":
        raise ValueError(
            f"{what} holds numbers, but {sum(others.values())} of its cells are not, such as {next(iter(others))!r}: "
            "leave these rows out, or say --task classification if all of these are classes"
        )
    if task == "auto":
        few = not numbers or ((y == y.round()).all() and not many)
        task = "classification" if few else "regression"
    if task == "regression":
        if not numbers:
            raise ValueError(f"{what} holds texts: regression needs numbers")
        targets = y.to_numpy(dtype=float)
        refuse_beyond(what, targets, "the row out")
        return targets, task
    if numbers and not (y == y.round()).all():
        raise ValueError(
            f"{what} holds fractions, such as {y[y != y.round()].iloc[0]:g}: classes are texts or whole numbers; "
            "--task regression predicts numbers"
        )
    if y.nunique() < 2:
        raise ValueError(f"{what} has a single class, {y.iloc[0]!r}")
    return (y.to_numpy() if numbers else y.map(str).to_numpy(dtype=object).astype(str)), task


def _columns(
    frame: Any, views: list[View], options: Options, note: Note, notes: list[str], remarks: Remarks
) -> tuple[Any, list[Any], Any]:
    """Return the samples, the steps before the model, and the kernels on the columns that these steps produce."""
    from .. import kernels as kw

    views, named = _placed_views(frame, views, options, note, notes)
    used = list(dict.fromkeys(column for view in views for column in view.picked))
    objects = [column for view in views if view.objects for column in view.picked]
    kinds = column_kinds(frame, used, remarks, objects)
    table = check_columns(frame, kinds, remarks)
    remarks.only([*used, *options.targets.values(), *options.beside.values()])
    note.views = {view.name: view.picked for view in views} if named else {}
    note.columns = kinds
    note.categories = {c: sorted(set(table[c])) for c, kind in kinds.items() if kind == "categories"}
    if options.missing == "error":
        refuse_absent(frame, note.views)
    if options.missing != "error" or objects:
        transformer, kernels = view_steps(table, kinds, views)
        table = blank_absent(frame, table, note.views, options.missing, remarks)
        return table, [("columns", transformer)], kernels
    transformer, places = column_transformer(table, kinds, views)
    if named:
        kernels = kernels_of(views, places)
    elif options.kernels in (None, "default"):
        kernels = kw.default_bank()
    else:
        names = named_kernels(str(options.kernels))
        kernels = View("all features", kernels=names).spec() if names else kw.preset(str(options.kernels))
    return table, [("columns", transformer)], kernels


def _placed_views(
    frame: Any, views: list[View], options: Options, note: Note, notes: list[str]
) -> tuple[list[View], bool]:
    """Return views that know their columns, and whether somebody named them; else there is one, of all columns."""
    from .. import kernels as kw

    for name in options.drop:
        if name not in frame:
            raise ValueError(f"there is no column {name!r} to --drop.{nearest(name, list(frame.columns))}")
    left_out = {*options.targets.values(), note.id, options.fold_groups, options.strata, *options.drop}
    columns = [column for column in frame.columns if column not in left_out]
    if not columns:
        raise ValueError(f"{options.data} has no column beside the target to learn from")
    # kernels of texts, and those that always count, have columns of their own
    own = [view for view in views if view.objects or view.always]
    for view in own:
        view.pick(columns)
    taken = {column for view in own for column in view.picked}
    others = [column for column in columns if column not in taken]
    if options.gmt is not None or options.groups is not None:
        by_file: Any = kw.from_groups if options.gmt is None else kw.from_gmt
        spec = by_file(options.gmt or options.groups, kw.linear(), min_size=options.min_size)
        found = spec.checked(kw.Schema(len(others), tuple(others)))
        groups = found.positions.items()
        views = [
            *own,
            *(View(name, tuple(others[j] for j in places), ("linear",)) for name, places in groups),
        ]
        notes += [str(found)] if str(found) else []
    named = bool(views)
    if others and len(views) == len(own):
        names = named_kernels(str(options.kernels)) if named and options.kernels else View.kernels
        views = [*views, View("all features", kernels=names)]
    for view in views:
        if view not in own:
            view.pick(others)
    return views, named


def gram_matrices(paths: Sequence[Path], n: int, data: Path) -> tuple[Any, list[str]]:
    """Return kernel matrices of the training samples as one array, and their names."""
    from ..banks import check_training_stack

    matrices = read_matrices(paths)
    names = [path.stem for path in paths]
    if not len(set(names)) == len(matrices) == len(names):  # not a file for each
        names = [f"kernel {j}" for j in range(len(matrices))]
    for name, matrix in zip(names, matrices, strict=True):
        rows, columns = matrix.shape
        if (rows, columns) != (n, n):
            raise ValueError(f"{name} is a {rows} x {columns} matrix, but {data} has {n} rows")
    stack = np.stack(matrices).astype(float)
    # errors name the file
    check_training_stack(stack, n, names=[f"kernel matrix {name!r}" for name in names])
    return stack, names


def write_report(
    path: Path, trained: Trained, title: str, folds: int, quiet: bool, untrusted: bool = False
) -> None:
    """Refit on folds and write the page.

    The matrices of a model on kernel matrices go into a holder, from which folds can be cut.  Of an ``untrusted``
    model, what its file says about files, processes and memory is left out.
    """
    from sklearn.base import clone

    from .. import kernels as kw
    from .._output import write_whole
    from ..inspection import final_estimator
    from ..inspection.views import transformed
    from ..persistence import cleared
    from ..report import make_report
    from ._terminal import has_written, progress_line, write_out

    model, samples, note = trained.model, trained.X, trained.note
    if note.pairs:  # the objects of a saved model are known as its last step takes them
        trained = replace(trained, model=final_estimator(model), X=transformed(model, samples))
        model, samples = trained.model, trained.X
    if note.gram:
        model = clone(model).set_params(kernels=kw.held(samples, note.gram))
        samples = np.arange(len(samples[0]))
    if untrusted:
        model = cleared(model, machine=True)
    page = make_report(
        trained.model, trained.X, trained.y, refit=(model, samples), n_folds=folds, groups=trained.groups,
        strata=trained.strata, note=note.as_dict(), row_names=trained.ids, title=title,
        setting=note.pairs.get("setting"),
        progress=progress_line("report", quiet),
    )  # fmt: skip
    if str(path) == "-":
        write_out(page)
    else:
        write_whole(path, page)
        has_written(path)


def new_samples_for(
    note: Note,
    data: Path | None,
    views_file: Path | None = None,
    gram: Sequence[Path] = (),
    view_files: Sequence[str] = (),
    form: Format | None = None,
) -> tuple[Any, Any, Remarks]:
    """Samples for a model from a new table or from rows of kernel matrices; the table, if there is one; remarks."""
    remarks = Remarks()
    texts = [column for column, kind in note.columns.items() if kind != "numbers"]
    form = replace(form or Format(), missing=tuple(note.na), strip=note.strip)
    read = partial(read_table, form=form, remarks=remarks, texts=texts)
    views, identity = views_of_options(view_files, files=True), note.id
    for view in views:
        if note.views and view.name not in note.views:
            raise UsageError(
                f"--view {view.name}: the model has the views {', '.join(note.views)}."
                f"{nearest(view.name, list(note.views))}"
            )
    if views_file is not None:
        more, joined_by = read_views(views_file)
        views, identity = [*more, *views], joined_by or note.id
    if any(view.file for view in views) and identity is None:
        raise ValueError("the model was fitted without --id, the column that joins files: give one table")
    ids = [column for column in dict.fromkeys((note.id, identity)) if column is not None]
    # a name that was there twice in the training table may be so here
    twice = set(Remarks.of(note.reading).renamed.values())
    single = [*ids, *(column for column in note.columns if column not in twice)]
    frame = None if data is None else read(data, ids=ids, single=single)
    if note.gram:
        rows = read_matrices(gram)
        if len(rows) != len(note.gram):
            raise ValueError(
                f"the model stands on {len(note.gram)} kernel matrices ({', '.join(note.gram)}): give as many "
                f"with --gram, new rows against the {note.rows} training samples; got {len(rows)}"
            )
        remarks.only([])
        return rows, frame, remarks
    if gram:
        raise UsageError("the model was fitted on columns, not on kernel matrices: remove --gram")
    if frame is None:
        raise UsageError("give a table of new samples")
    frame = join_files(frame, views, identity, note.missing, read)
    return _new_columns(note, frame, remarks), frame, remarks


def _new_columns(note: Note, frame: Any, remarks: Remarks) -> Any:
    """Return the columns of a new table that the model wants, as far as its note says that they may be missing."""
    completes = note.missing != "error"
    if completes:
        for columns in note.views.values():  # a view of which there is no column is missing for everybody
            if not any(column in frame for column in columns):
                frame = frame.reindex(columns=[*frame.columns, *columns])
    table = check_columns(frame, note.columns, remarks, note.views, fitting=False)
    if completes:
        table = blank_absent(frame, table, note.views, note.missing, remarks)
    else:
        refuse_absent(frame, note.views, fitting=False)
    remarks.only(note.columns)
    for column, known in note.categories.items():
        unknown = int((~table[column].isin([*known, MISSING]) & table[column].notna()).sum())
        if unknown:
            remarks.unknown_categories[column] = unknown
    return table


def targets_of(data: Path, note: Note, form: Format | None = None) -> tuple[Any, list[str], Any, Any]:
    """Targets, names, groups and strata of the rows of the table that a model was fitted on."""
    if not note.target:
        raise ValueError(
            "the model was fitted without a target: there is nothing to compare its predictions with"
        )
    form = replace(form or Format(), missing=tuple(note.na), strip=note.strip)
    grouping = [column for column in (note.fold_groups, note.strata) if column]
    ids = [note.id] if note.id else []
    wanted = [note.target, *([note.time] if note.time else []), *ids, *grouping]
    frame = read_table(data, form, texts=grouping, ids=ids, single=wanted, codes=[note.target])
    for column in wanted:
        if column not in frame:
            raise ValueError(f"{data} has no column {column!r}, which the model was fitted with")
    strata = None
    if note.task == "survival":
        asked = Options(
            data, "", time=note.time, event=note.target, event_value=note.event_value, strata=note.strata
        )
        y, strata = followed(frame, asked)
    else:
        y, _ = target_of(frame, Options(data, note.target, task=note.task))
    names = [str(value) for value in (frame[note.id] if note.id else range(len(frame)))]
    return y, names, groups_of(frame, note), strata
