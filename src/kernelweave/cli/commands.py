"""The commands beside ``fit``: ``inspect``, ``predict``, ``report``, ``methods``, ``reproduce``, ``demo``."""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any

import click
from click import UsageError

from ._note import Note, checked_note, describe, in_words, noted, open_model
from ._tables import STANDARD, WRITABLE, Remarks, plain_errors, write_table
from ._terminal import check_outputs, has_written, input_files, listing, say, say_json
from .fit import FILE, JSON, TABLE_OPTIONS, ListOptions, format_of, with_options

# fmt: off
VIEWS = click.option("--views", "views_file", type=FILE,
        help="TOML file, where views come from files of their own.")
OVERWRITE = click.option("--force", is_flag=True, help="Write over an existing --output.")
# fmt: on


@click.command()
@click.argument("model", type=FILE)
@JSON
def inspect(model: Path, as_json: bool) -> None:
    """Say what a saved MODEL is, which views and kernels it uses, and how close to optimal it is.

    What "kernelweave fit" noted in the file is printed as it stands there; a file without such notes is loaded.

    \b
    kernelweave inspect model.skops
    kernelweave inspect model.skops --json
    """
    with plain_errors():
        from ..persistence import about

        label = about(model)
        facts = noted(label)
        if facts is None:
            fitted, label = open_model(model)
            facts = describe(fitted, label)
        text = in_words(facts)
        notes = Remarks.of(facts.get("reading", {})).lines()
    if as_json:
        say_json(facts)
        return
    for sentence in facts.get("findings", ()):  # before any figure
        say(f"finding: {sentence}")
    say(text)
    for note in notes:
        say(f"note: {note}")
    say(f"saved by kernelweave {label['kernelweave']}, scikit-learn {label['scikit-learn']}")


# fmt: off
PREDICT_OPTIONS = (
    click.argument("model", type=FILE),
    click.argument("data", type=FILE, required=False),
    click.option("--output", "-o", type=FILE, required=True,
        help="Where predictions go: CSV, TSV, Parquet, NPZ; - is CSV on the standard output."),
    VIEWS,
    click.option("--view", "views", multiple=True, metavar="NAME=FILE",
        help="File of a view, joined by the column that the model was fitted with as --id."),
    click.option("--gram", multiple=True, type=FILE,
        help="For a model on kernel matrices: new rows against the training samples, in the order of the fit."),
    *TABLE_OPTIONS,
    OVERWRITE,
    click.option("--spreadsheet", is_flag=True,
        help="In CSV and TSV, an apostrophe before texts that look like formulas."),
    JSON,
)
# fmt: on


@click.command(cls=ListOptions)
@with_options(PREDICT_OPTIONS)
def predict(
    model: Path, data: Path | None, output: Path, views_file: Path | None, views: tuple[str, ...],
    gram: tuple[Path, ...], force: bool, spreadsheet: bool, as_json: bool, **written: Any,
) -> None:  # fmt: skip
    """Predict the rows of DATA with a saved MODEL.

    \b
    kernelweave predict model.skops new.csv -o predictions.csv
    kernelweave predict model.skops new.parquet -o predictions.parquet
    kernelweave predict model.skops new.csv --view rna=new_rna.csv -o predictions.csv
    kernelweave predict model.skops --gram new1.npy new2.npy -o predictions.csv
    zcat new.csv.gz | kernelweave predict model.skops - -o - > predictions.csv

    The output has a row for each row of DATA, in its order: the column that names the rows (where the model was fitted
    with --id), the prediction, the decision values, and probabilities where the model has them (C chosen on folds, or
    the logistic loss).  Names and classes are written as they are: give --spreadsheet where the file will be opened in
    one.
    """
    check_outputs({"--output": output}, input_files(data, views_file, gram, model, views), force)
    if output != STANDARD and output.suffix.lower() not in WRITABLE:
        raise UsageError(f"cannot write {output}: the suffix is none of {', '.join(WRITABLE)}")
    if output == STANDARD and as_json:
        raise UsageError("-o - and --json both write to the standard output: give -o a file")
    from ._training import new_samples_for
    from ._views import views_of_options

    form = format_of(**written)
    views_of_options(views, files=True)
    with plain_errors():
        fitted, label = open_model(model)
        note = checked_note(label, model)
        X, frame, remarks = new_samples_for(note, data, views_file, gram, views, form)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = _predictions(fitted, X, frame, note)
        if note.id and frame is not None and note.id not in frame:
            sentence = f"the table has no column {note.id!r}, so that only their order names the rows"
            say(f"note: {sentence}", err=True)
        for line in remarks.lines():
            say(f"note: {line}", err=True)
        sentences = [
            str(warning.message) for warning in caught if "kernelweave" in warning.category.__module__
        ]
        for sentence in dict.fromkeys(sentences):
            say(f"warning: {sentence}", err=True)
        write_table(table, output, spreadsheet)
        has_written(output)
    if as_json:
        facts = {"rows": len(table), "columns": list(table.columns), "written": str(output)}
        say_json(facts | {"reading": remarks.as_dict()}, indent=None)
    elif output != STANDARD:
        say(f"{len(table)} predictions written to {output}")


def _predictions(model: Any, X: Any, frame: Any, note: Note) -> Any:
    import numpy as np
    import pandas as pd

    columns: dict[str, Any] = {}
    if note.id and frame is not None and note.id in frame:
        columns[note.id] = frame[note.id].to_numpy()
    if note.task == "novelty":
        values = model.decision_function(X)
        columns["predicted"] = np.where(values >= 0, "usual", "outlier")
        columns["decision"] = values
        return pd.DataFrame(columns)
    columns[f"predicted {note.target}"] = model.predict(X)
    if note.task == "classification":
        values = model.decision_function(X)
        if values.ndim == 1:
            columns[f"decision for {model.classes_[1]}"] = values
        else:
            columns |= {f"decision for {c}": values[:, k] for k, c in enumerate(model.classes_)}
        if hasattr(model, "predict_proba"):
            shares = model.predict_proba(X)
            columns |= {f"probability of {c}": shares[:, k] for k, c in enumerate(model.classes_)}
    return pd.DataFrame(columns)


# fmt: off
REPORT_OPTIONS = (
    click.argument("model", type=FILE),
    click.argument("data", type=FILE),
    click.option("--output", "-o", type=FILE, required=True, help="Where the report goes, e.g. report.html, or -."),
    VIEWS,
    click.option("--gram", multiple=True, type=FILE, help="For a model on kernel matrices: those of the fit."),
    click.option("--view", "views", multiple=True, metavar="NAME=FILE", help="File of a view, joined by --id."),
    click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Folds to refit on."),
    *TABLE_OPTIONS,
    OVERWRITE,
    click.option("--quiet", is_flag=True, help="No progress bar."),
)
# fmt: on


@click.command(cls=ListOptions)
@with_options(REPORT_OPTIONS)
def report(
    model: Path, data: Path, output: Path, views_file: Path | None, views: tuple[str, ...], gram: tuple[Path, ...],
    folds: int, force: bool, quiet: bool, **written: Any,
) -> None:  # fmt: skip
    """Write a self-contained HTML report of a saved MODEL and the table DATA that it was fitted on.

    \b
    kernelweave report model.skops data.csv -o report.html

    The model is refitted on folds of DATA, for its accuracy beside simpler methods and the stability of its weights.
    """
    check_outputs({"--output": output}, input_files(data, views_file, gram, model, views), force)
    if str(data) == "-":
        raise UsageError("the table is read twice here: give a file, not the standard input")
    from ._training import Trained, gram_matrices, new_samples_for, targets_of, write_report
    from ._views import views_of_options

    form = format_of(**written)
    views_of_options(views, files=True)
    with plain_errors():
        fitted, label = open_model(model)
        note = checked_note(label, model)
        if note.task == "novelty":
            raise ValueError(
                f"{model} was fitted without a target, and a report compares predictions with one"
            )
        y, ids, groups = targets_of(data, note, form)
        if len(y) != note.rows:
            raise ValueError(f"{data} has {len(y)} rows, but the model was fitted on {note.rows}")
        classes = getattr(fitted, "classes_", y).tolist()
        known = set(classes)
        new = [label for label in y.tolist() if label not in known]
        if new:
            raise ValueError(
                f"{data} has a label {new[0]!r}, but the model was fitted on {', '.join(map(str, classes))}: "
                "give the table that it was fitted on"
            )
        if note.gram:
            X, _ = gram_matrices(gram, len(y), data)
        else:
            X, _, _ = new_samples_for(note, data, views_file, view_files=views, form=form)
        trained = Trained(fitted, X, y, note, ids, groups)
        title = f"{note.target} from {data.name}"
        write_report(output, trained, title, folds, quiet, untrusted=True)
    if str(output) != "-":
        say(f"report written to {output}")


@click.command()
@JSON
def methods(as_json: bool) -> None:
    """List the solvers, losses and norms, and what they need.

    \b
    kernelweave methods
    kernelweave methods --json
    """
    # imported here: they take a second to load, which `kernelweave --help` should not pay
    from ..losses import registry as losses
    from ..norms import registry as norms
    from ..solvers import REQUIREMENTS
    from ..solvers import registry as solvers

    needs = {name: [str(REQUIREMENTS[need]) for need in solvers[name].needs] for name in solvers}
    tasks = {name: sorted(losses[name].tasks) for name in losses}
    if as_json:
        components: dict[str, Any] = {
            kind: {name: {"about": summary(registry[name])} for name in registry}
            for kind, registry in (("solvers", solvers), ("losses", losses), ("norms", norms))
        }
        for name, about in components["solvers"].items():
            about["needs"] = needs[name]
        for name, about in components["losses"].items():
            about["tasks"] = tasks[name]
        say_json(components)
        return
    say('Solvers (solver="..."; "auto" picks one by loss and norm)\n')
    notes = {name: f"needs {' and '.join(what)}" if what else "" for name, what in needs.items()}
    say(listing([(name, summary(solvers[name]), notes[name]) for name in solvers]))
    say('\nLosses (loss="...")\n')
    say(listing([(name, summary(losses[name]), f"for {' and '.join(tasks[name])}") for name in losses]))
    say('\nNorms (norm="...", or a number p >= 1, the exponent on the weights)\n')
    say(listing([(name, summary(norms[name]), "") for name in norms]))


def summary(component: Any) -> str:
    """Return one line about a class: its ``summary``, else the first sentence of its docstring, without markup."""
    text = getattr(component, "summary", "") or (getdoc(component) or "").split("\n\n")[0]
    return " ".join(text.replace("``", "").split())


RESULTS_FOLDER = Path("kernelweave_results")
#: after so many seconds ``--quick`` begins no run but the first of every part
QUICK_SECONDS = 60.0


# fmt: off
REPRODUCE_OPTIONS = (
    click.argument("study", required=False),
    click.option("--only", help="Some parts only, separated by commas; --list names them."),
    click.option("--quick", is_flag=True,
        help="The first runs of every part, in one to two minutes; a whole run goes on from there."),
    click.option("--repeats", type=click.IntRange(min=1), help="So many repeats of every part."),
    click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 is one per core."),
    click.option("--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=RESULTS_FOLDER,
        show_default=True, help="Folder for tables (CSV, Markdown), pictures and the rows of every run."),
    click.option("--restart", is_flag=True, help="Forget the runs that are in the folder already."),
    click.option("--list", "listed", is_flag=True, help="List the studies and their parts, and run nothing."),
)
# fmt: on


@click.command()
@with_options(REPRODUCE_OPTIONS)
def reproduce(
    study: str | None,
    only: str | None,
    quick: bool,
    repeats: int | None,
    jobs: int,
    output: Path,
    restart: bool,
    listed: bool,
) -> None:
    """Run a paper's tables and figures again, the printed numbers beside ours.

    \b
    kernelweave reproduce --list
    kernelweave reproduce smkl --quick
    kernelweave reproduce smkl --only table2 --jobs 2 -o studies/results

    Every run is kept when it is done: an interrupted study goes on where it stopped.  Data come from the folder named
    by the environment variable KERNELWEAVE_DATA; UCI sets also from OpenML.
    """
    studies = _studies()
    if listed or study is None:
        for name, about in studies.STUDIES.items():
            say(f"{name}  {about}")
            for part in studies.load_study(name).parts:
                counts = f"{part.repeats} repeats, {part.quick_repeats} with --quick"
                say(f"    {part.name:<12} {part.title} ({counts})")
        return
    try:
        known = {part.name: part for part in studies.load_study(study).parts}
    except ValueError as error:
        raise UsageError(str(error)) from None
    wanted = list(known) if only is None else [name.strip() for name in only.split(",")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"{study} has no part {unknown[0]!r}: it has {', '.join(known)}")
    if jobs == 0:
        raise UsageError("--jobs takes a number of processes, or -1 for one per core, got 0")
    parts = [known[name] for name in wanted]

    flags = (f" --only {only}" if only else "") + (" --quick" if quick else "")
    command = f"kernelweave reproduce {study}{flags}" + (f" --repeats {repeats}" if repeats else "")
    began = time.perf_counter()
    for number, part in enumerate(parts):
        say(f"\n{part.title}")
        # what a part leaves of its share is for those after it
        left = max(QUICK_SECONDS - (time.perf_counter() - began), 0.0) / (len(parts) - number)
        table = output / f"{study}_{part.name}.md"
        try:
            with plain_errors():
                part.run(
                    study, output, command,
                    repeats=repeats, quick=quick, n_jobs=jobs, restart=restart, say=say,
                    seconds=left if quick else None,
                )  # fmt: skip
                if table.exists():
                    say("\n" + table.read_text(encoding="utf-8"))
        except KeyboardInterrupt:
            done = f"what is done is in {output}, and the same command goes on from there"
            say(f"\ninterrupted; {done}", err=True)
            raise SystemExit(130) from None


def _studies() -> Any:
    """Import the studies: a package of their own, which the library finds by its name and only here."""
    try:
        return import_module("kernelweave_studies")
    except ModuleNotFoundError as error:
        if error.name != "kernelweave_studies":
            raise
        raise click.ClickException(
            "the package kernelweave_studies, which holds the studies, is not installed. It is part of the kernelweave "
            "distribution: install that again (pip install --force-reinstall --no-deps kernelweave, or "
            "pip install -e . in a clone of the repository)"
        ) from None


PICTURE = "kernelweave_demo.png"


# fmt: off
DEMO_OPTIONS = (
    click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
        help=f"Where the picture goes; the suffix says the format.  [default: {PICTURE}]"),
    OVERWRITE,
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the train/test split."),
    click.option("--quick", is_flag=True, help="A fraction of the kernels, for trying the command out."),
)
# fmt: on


@click.command()
@with_options(DEMO_OPTIONS)
def demo(output: Path | None, force: bool, seed: int, quick: bool) -> None:
    """Learn a mixture of 400 kernels on scikit-learn's breast cancer data, in well under a minute.

    Prints the test accuracy beside that of simpler methods on the same kernels, the kernels with the most weight, and
    the certificate; draws weights and convergence.
    """
    # everything that can be refused is refused before any work; the picture under its own name is ours to renew
    target = output or Path(PICTURE)
    check_outputs({"--output": target}, force=force or output is None)

    from ._demo import SUFFIXES, run

    if target.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot draw a {target.suffix or 'file without suffix'}: use {', '.join(SUFFIXES)}")
    with plain_errors():
        run(target, seed=seed, quick=quick)
