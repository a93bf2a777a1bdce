"""Pairs of objects on the command line: tables of the objects of both sides, and a table of pairs that names them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from click import UsageError

from .._components import nearest
from ._note import Note
from ._options import Options, estimator_for, named_kernels, score_of_guessing
from ._tables import STANDARD, Format, Remarks, read_table
from ._training import Trained, gram_matrices, sentences_of, target_of
from ._views import (
    MISSING,
    View,
    check_columns,
    column_kinds,
    join_files,
    nearly_there,
    refuse_nameless,
    require_column,
    view_steps,
    views_of_objects,
    views_of_options,
)

SIDES = ("left", "right")
#: what the norm of a classification is chosen among where none is given: of new objects, learnt weights may say little
NORMS = ("uniform", "l1", "2")
#: names that are listed of what is wrong, and rows of each
MOST_NAMES, MOST_ROWS = 8, 5


def check_pair_options(options: Options) -> None:
    """Refuse, as a wrong command, what does not go with pairs, and what is about pairs where there are none."""
    own = [f"{which}{end}" for which in SIDES for end in ("", "_id", "_gram", "_kernels")] + ["setting"]
    if options.pairs is None:
        for name in own:
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} is about pairs: give their table with --pairs")
        return
    others = {
        "--novelty": options.novelty, "--noise-rate": options.noise_rate, "--id": options.identity,
        "--fold-groups": options.fold_groups, "--view": options.views, "--views": options.views_file,
        "--gram": options.gram, "--gmt": options.gmt, "--groups": options.groups,
        "--missing": options.missing != "error", "--time": options.time, "--always": options.always,
    }  # fmt: skip
    instead = {"--id": "--left-id and --right-id", "--view": "--left NAME=FILE", "--gram": "--left-gram"}
    for option, value in others.items():
        if value:
            way = f": give {instead[option]}" if option in instead else ""
            raise UsageError(f"{option} and --pairs do not go together{way}")
    if options.pairs == STANDARD:
        raise UsageError("--pairs is read twice: give a file, not the standard input")
    for side in _sides(options):
        if side.gram and (side.views or side.kernels):
            raise UsageError(
                f"--{side.which}-gram says what the kernels are: --{side.which} is then a table of ids alone"
            )
        if side.kernels and not named_kernels(side.kernels):
            raise UsageError(f"kernels of pairs are given by name (linear,gaussian), got {side.kernels!r}")


def _sides(options: Options) -> list[_Side]:
    return [
        _Side(
            which, getattr(options, which), getattr(options, f"{which}_gram"),
            getattr(options, f"{which}_kernels") or options.kernels, getattr(options, f"{which}_id"),
        )
        for which in SIDES
    ]  # fmt: skip


class _Side:
    """Objects of one side: the files and kernels that options name, and then what is in the files."""

    id: str
    frame: Any
    names: list[str]

    def __init__(
        self, which: str, given: Sequence[str], gram: Sequence[Path] = (), kernels: str | None = None,
        asked_id: str | None = None,
    ) -> None:  # fmt: skip
        self.which, self.gram, self.kernels, self.asked_id = which, list(gram), kernels, asked_id
        self.views = views_of_options([one for one in given if "=" in one])
        files = [one for one in given if "=" not in one]
        if len(files) > 1:
            raise UsageError(f"--{which} takes one table; further ones have names, --{which} NAME={files[1]}")
        files += [view.file for view in self.views if view.file is not None]
        if not files:
            raise UsageError(f"--pairs needs --{which}, the table of the {which} objects")
        self.file = Path(files[0])
        self.noted: dict[str, Any] = {"views": {}, "columns": {}, "categories": {}}

    def find_id(self, pairs: Path, columns: Sequence[str], own: Sequence[str], grid: bool) -> str:
        """Return the column of the pairs that names the objects; in their own table it is that, or the first."""
        shared = [column for column in own if column in columns]
        name = self.asked_id or (
            own[0] if grid or own[0] in shared else shared[0] if len(shared) == 1 else None
        )
        if name is None:
            what = f"the columns {', '.join(shared)}" if shared else "no column"
            raise ValueError(
                f"{self.file} and {pairs} share {what}: say with --{self.which}-id which column of {pairs} names the "
                f"{self.which} objects"
            )
        if name not in columns and not grid:
            raise ValueError(
                f"{pairs} has no column {name!r} for --{self.which}-id.{nearest(name, list(columns))}"
            )
        self.id = name if name in own else own[0]
        return name

    def read(self, read: Callable[..., Any], texts: Sequence[str]) -> None:
        """Read the table of the objects, and join further files by their names."""
        read = partial(read, texts=texts, ids=[self.id], single=[self.id])
        frame = read(self.file)
        require_column(frame, self.id, self.file, f", which names the {self.which} objects")
        refuse_nameless(self.file, frame, self.id)
        twice = frame[self.id][frame[self.id].duplicated()]
        if len(twice):
            raise ValueError(f"{self.file} has two rows with {self.id} = {twice.iloc[0]!r}")
        for view in self.views:
            if view.file == str(self.file):  # the names are those of a view
                view.file, view.columns = None, tuple(column for column in frame if column != self.id)
        self.frame = join_files(frame, self.views, self.id, "mean", lambda path, **_: read(path))
        self.names = self.frame[self.id].tolist()

    def rows_of(self, ids: Any, pairs: Path, source: str, remedy: str) -> Any:
        """Return the rows of the objects that pairs name; unknown ones are listed, with the rows of the pairs."""
        unknown = ids[~ids.isin(self.names)]
        if len(unknown):
            groups = unknown.groupby(unknown, sort=False).groups
            listed = [f"{name!r} ({_rows(rows)})" for name, rows in list(groups.items())[:MOST_NAMES]]
            more = f" and {len(groups) - MOST_NAMES} more" if len(groups) > MOST_NAMES else ""
            raise ValueError(
                f"{pairs} names {len(groups)} {self.which} object{'s' * (len(groups) > 1)} that {source} does not "
                f"have: {', '.join(listed)}{more}{nearly_there(list(groups), self.names)}; {remedy}, or leave these "
                "pairs out"
            )
        place = {name: row for row, name in enumerate(self.names)}
        return ids.map(place).to_numpy(dtype=np.intp)

    def prepare(self, options: Options, remarks: Remarks) -> tuple[Any, Any, Any]:
        """Return the objects, the steps that make views of them, and the kernels."""
        from .. import kernels as kw

        if self.gram:
            stack, names = gram_matrices(self.gram, len(self.frame), self.file)
            return np.arange(len(self.frame)), None, kw.held(stack, names)
        columns = [column for column in self.frame if column != self.id and column not in options.drop]
        texts = [view for view in views_of_objects(options.objects) if view.columns[0] in columns]
        of_texts = [view.columns[0] for view in texts]
        others = [column for column in columns if column not in of_texts]
        views = self.views or [View(self.file.name.partition(".")[0])] * bool(others)
        if not views and not texts:
            raise ValueError(f"{self.file} has no column beside {self.id!r} to learn from")
        for view in views:
            view.kernels = named_kernels(self.kernels) if self.kernels else view.kernels
            view.columns = tuple(column for column in view.columns if column not in of_texts)
            view.pick(others)
        for view in texts:
            view.pick(columns)
        views = [*views, *texts]
        used = list(dict.fromkeys(column for view in views for column in view.picked))
        kinds = column_kinds(self.frame, used, remarks, of_texts)
        table = check_columns(self.frame, kinds, remarks)
        categories = {column: sorted(set(table[column])) for column in used if kinds[column] == "categories"}
        picked = {view.name: view.picked for view in views}
        self.noted = {"views": picked, "columns": kinds, "categories": categories}
        self._refuse_gaps()
        transformer, kernels = view_steps(table, kinds, views)
        return table, transformer.views, kernels

    def _refuse_gaps(self) -> None:
        for name, columns in self.noted["views"].items():
            gone = self.frame[self.id][self.frame[columns].isna().all(axis=1)].tolist()
            if gone:
                raise ValueError(
                    f"{len(gone)} {self.which} object{'s' * (len(gone) > 1)} of {self.file} have nothing in {name!r}, "
                    f"such as {gone[0]!r}: kernels of pairs are not completed; fill this in, or leave them out"
                )

    def read_new(self, noted: dict[str, Any], read: Callable[..., Any], remarks: Remarks) -> Any:
        """Return new objects as a model wants them."""
        self.id, self.noted = noted["id"], noted
        for view in self.views:
            if view.name not in noted["views"] or view.file is None:
                raise UsageError(
                    f"--{self.which} {view.name}: files are given for the views {', '.join(noted['views'])}."
                    f"{nearest(view.name, list(noted['views']))}"
                )
        self.read(read, [column for column, kind in noted["columns"].items() if kind != "numbers"])
        table = check_columns(self.frame, noted["columns"], remarks, fitting=False)
        self._refuse_gaps()
        for column, known in noted["categories"].items():
            unknown = int((~table[column].isin([*known, MISSING])).sum())
            if unknown:
                remarks.unknown_categories[column] = unknown
        return table


def _rows(rows: Any) -> str:
    rows = list(dict.fromkeys(rows))
    shown = ", ".join(map(str, rows[:MOST_ROWS])) + (", ..." if len(rows) > MOST_ROWS else "")
    return f"row{'s' * (len(rows) > 1)} {shown}"


def read_pairs(
    path: Path, read: Callable[..., Any], ids: Sequence[str], target: str, rights: Sequence[str]
) -> Any:
    """Return pairs as a long table; a table of left by right objects becomes one without its empty cells."""
    left_id, right_id = ids
    frame = read(path, ids=ids, single=[*ids, *([target] if target else [])], codes=[target])
    grid = bool(target) and target not in frame and set(map(str, frame.columns)) & set(rights)
    if grid:
        frame = read(path, ids=[frame.columns[0]])
        first, *others = frame.columns
        frame = frame.melt(
            first, others, right_id, target, ignore_index=False
        )  # rows stay those of the table
        frame = frame.rename(columns={first: left_id}).dropna(subset=target)
    for column in [*ids, target] if target else ids:
        require_column(frame, column, path, " for the pairs")
    for column in ids:
        refuse_nameless(path, frame, column)
    again = frame[frame.duplicated(list(ids), keep=False)]
    if len(again):
        groups = list(again.groupby(list(ids), sort=False).groups.items())
        listed = [f"{a!r} with {b!r} ({_rows(rows)})" for (a, b), rows in groups[:MOST_NAMES]]
        more = f" and {len(groups) - MOST_NAMES} more" if len(groups) > MOST_NAMES else ""
        raise ValueError(
            f"{path} has {len(groups)} pair{'s' * (len(groups) > 1)} more than once: {', '.join(listed)}{more}; keep "
            "one row of each, with the mean for example"
        )
    return frame


def train_pairs(options: Options) -> Trained:
    """Read, check, build and fit."""
    from sklearn.pipeline import Pipeline

    from .. import kernels as kw
    from ..views import PairColumns, PairKFold, Pairs

    path, setting, sides = Path(str(options.pairs)), options.setting or "pairs", _sides(options)
    options = replace(options, data=path)
    columns = [str(column) for column in read_table(path, options.form)]
    grid, ids = options.target not in columns, list[str]()
    for side in sides:
        own = [str(column) for column in read_table(side.file, options.form)]
        free = [column for column in columns if column not in (options.target, *ids)]
        ids.append(side.find_id(path, free, own, grid))
    if ids[0] == ids[1]:
        raise ValueError(
            f"both sides are named by {ids[0]!r}: say with --left-id and --right-id which column is which"
        )
    remarks, notes = Remarks(), list[str]()
    read = partial(read_table, form=options.form, remarks=remarks)
    for side, name in zip(sides, ids, strict=True):
        side.read(read, [view.columns[0] for view in views_of_objects(options.objects)])
        if name != side.id:
            notes.append(
                f"{side.which} objects are named by {name!r} of {path} and by {side.id!r} of {side.file}"
            )
    every = [column for side in sides for column in side.frame]
    wanted = [(name, "--drop") for name in options.drop]
    wanted += [(view.name, "--objects") for view in views_of_objects(options.objects)]
    for name, option in wanted:
        if name not in every:
            raise ValueError(
                f"no table of objects has the column {name!r} of {option}.{nearest(name, every)}"
            )
    frame = read_pairs(path, read, ids, options.target, sides[1].names)
    index = np.stack([
        side.rows_of(frame[name], path, str(side.file), "add them there")
        for side, name in zip(sides, ids, strict=True)
    ], axis=1)  # fmt: skip
    y, task = target_of(frame, options)
    if task == "classification":
        remarks.note_alike(options.target, frame[options.target].unique())
    (lefts, left_steps, left_kernels), (rights, right_steps, right_kernels) = (
        side.prepare(options, remarks) for side in sides
    )
    X = Pairs(lefts, rights, index, left_names=sides[0].names, right_names=sides[1].names)
    splitter, classify = PairKFold(options.folds, setting=setting, random_state=0), task == "classification"
    if options.chooses:
        if classify and any(np.unique(y[train]).size < np.unique(y).size for train, _ in splitter.split(X)):
            raise ValueError(
                f"a fold of --setting {setting} has no training pair of some class: leave the rare class out, or use "
                "fewer --folds"
            )
        if classify and options.norm is None and not options.norms:
            options = replace(options, norms=NORMS)
    if classify and options.loss is None:
        options = replace(options, loss="logistic")
    last = estimator_for(kw.pairs(left_kernels, right_kernels), task, options, y, None)
    if options.chooses:
        last.set_params(cv=splitter)
    known = {side.which: {"id": side.id, **side.noted} for side in sides}
    note = Note(
        path.name, options.target, task, None, len(frame), na=list(options.form.missing), strip=options.form.strip,
        folds=options.folds, guessing=score_of_guessing(options, task, y), reading=remarks.as_dict(),
        pairs=known
        | {"setting": setting, "left_id": ids[0], "right_id": ids[1], "coverage": repr(X)},
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Pipeline([("sides", PairColumns(left_steps, right_steps)), ("model", last)]).fit(X, y)
    return Trained(
        model,
        X,
        y,
        note,
        pair_names(frame, note),
        warnings=sentences_of(caught),
        notes=[*remarks.lines(), *notes],
    )


def pair_names(frame: Any, note: Note) -> list[str]:
    """Return what the pairs are called in reports."""
    lefts, rights = (frame[note.pairs[f"{which}_id"]] for which in SIDES)
    return [f"{a} x {b}" for a, b in zip(lefts, rights, strict=True)]


def new_pairs_for(
    model: Any, note: Note, data: Path | None, left: Sequence[str], right: Sequence[str], form: Format,
    target: str = "",
) -> tuple[Any, Any, Remarks]:  # fmt: skip
    """Return pairs for the last step of a model, their table, and remarks; objects that it does not know are read."""
    from ..views import Pairs, Views
    from ..views.pairs import Side

    if data is None:
        raise UsageError("give a table of new pairs")
    remarks, form = Remarks(), replace(form, missing=tuple(note.na), strip=note.strip)
    read, made, ids = partial(read_table, form=form, remarks=remarks), [], []
    names = [note.pairs[f"{which}_id"] for which in SIDES]
    frame = read_pairs(data, read, names, target, model[0].known_[1].places())
    for which, given, name, known, steps in zip(
        SIDES, (left, right), names, model[0].known_, model[0].columns_, strict=True
    ):
        objects = _Side(which, given or ["the model"])
        objects.names, source, remedy = list(known.places()), "the model", f"give their table with --{which}"
        if steps is None:
            remedy = "it stands on kernel matrices of all objects: fit again"
            if given:
                raise UsageError(f"--{which}: {remedy}, with matrices that have the new ones")
        elif given:
            new = objects.read_new(note.pairs[which], read, remarks)
            old = np.flatnonzero(~np.isin(known.names, objects.names))
            parts = steps.transform(new)
            views = Views({key: np.vstack([block, known.objects[key][old]]) for key, block in parts.items()})
            known = Side.of(views, [*objects.names, *known.names[old]], which)
            objects.names, source = list(known.names), f"{objects.file}, like the model,"
            remedy = "add them there"
        ids.append(objects.rows_of(frame[name], data, source, remedy))
        made.append(known)
    return Pairs(made[0], made[1], np.stack(ids, axis=1)), frame, remarks
