"""The commands beside ``fit``: all that are in the table of docs/architecture.md."""

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
from ._terminal import check_outputs, has_written, input_files, listing, progress_line, say, say_json, table
from .fit import FILE, JSON, LEFT, RIGHT, TABLE_OPTIONS, ListOptions, format_of, with_options

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
    LEFT, RIGHT,
    click.option("--at", metavar="TIME,TIME,...",
        help="For a model of times to an event: also the probabilities to be without event then."),
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
    gram: tuple[Path, ...], left: tuple[str, ...], right: tuple[str, ...], at: str | None, force: bool,
    spreadsheet: bool, as_json: bool, **written: Any,
) -> None:  # fmt: skip
    """Predict the rows of DATA with a saved MODEL.

    \b
    kernelweave predict model.skops new.csv -o predictions.csv
    kernelweave predict model.skops new.parquet -o predictions.parquet
    kernelweave predict model.skops new.csv --view rna=new_rna.csv -o predictions.csv
    kernelweave predict risk.skops new.csv --at 12,36,60 -o risks.csv
    kernelweave predict model.skops --gram new1.npy new2.npy -o predictions.csv
    kernelweave predict model.skops new_pairs.csv --left new_drugs.csv -o predictions.csv
    zcat new.csv.gz | kernelweave predict model.skops - -o - > predictions.csv

    The output has a row for each row of DATA, in its order: the column that names the rows (where the model was
    fitted with --id; of pairs both), the prediction, the decision values, and probabilities where the model has them
    (C chosen on folds, or the logistic loss); of times to an event the risk, larger for those who have it sooner. Names
    and classes are written as they are: give --spreadsheet where the file will be opened in one.
    """
    sides = [Path(one.partition("=")[2] or one) for one in (*left, *right)]
    check_outputs({"--output": output}, input_files(data, views_file, [*gram, *sides], model, views), force)
    if output != STANDARD and output.suffix.lower() not in WRITABLE:
        raise UsageError(f"cannot write {output}: the suffix is none of {', '.join(WRITABLE)}")
    if output == STANDARD and as_json:
        raise UsageError("-o - and --json both write to the standard output: give -o a file")
    from ._pairs import new_pairs_for
    from ._survival import times_of
    from ._training import new_samples_for
    from ._views import views_of_options

    form, times = format_of(**written), [] if at is None else times_of(at)
    views_of_options(views, files=True)
    with plain_errors():
        fitted, label = open_model(model)
        note = checked_note(label, model)
        if times and note.task != "survival":
            raise UsageError("--at is for models of times to an event (kernelweave fit --time): remove it")
        if bool(note.pairs) < bool(left or right):
            raise UsageError("--left and --right are about pairs, and the model is of single samples")
        if note.pairs:
            X, frame, remarks = new_pairs_for(fitted, note, data, left, right, form)
            fitted = fitted[-1]
        else:
            X, frame, remarks = new_samples_for(note, data, views_file, gram, views, form)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = _predictions(fitted, X, frame, note, times)
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


def _predictions(model: Any, X: Any, frame: Any, note: Note, at: list[float]) -> Any:
    import numpy as np
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in (note.id, note.pairs.get("left_id"), note.pairs.get("right_id")):
        if name and frame is not None and name in frame:
            columns[name] = frame[name].to_numpy()
    if note.task == "novelty":
        values = model.decision_function(X)
        columns["predicted"] = np.where(values >= 0, "usual", "outlier")
        columns["decision"] = values
        return pd.DataFrame(columns)
    if note.task == "survival":
        from ._survival import predicted_risks

        return pd.DataFrame(columns | predicted_risks(model, X, frame, note, at))
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
    from ._options import Options
    from ._pairs import new_pairs_for, pair_names
    from ._training import Trained, gram_matrices, new_samples_for, target_of, targets_of, write_report
    from ._views import views_of_options

    form = format_of(**written)
    views_of_options(views, files=True)
    with plain_errors():
        fitted, label = open_model(model)
        note = checked_note(label, model)
        if note.pairs:
            X, frame, _ = new_pairs_for(fitted, note, data, (), (), form, note.target)
            y, _ = target_of(frame, Options(data, note.target, task=note.task))
            fitted, ids, groups, strata = fitted[-1], pair_names(frame, note), None, None
        else:
            y, ids, groups, strata = targets_of(data, note, form)
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
        elif not note.pairs:
            X, _, _ = new_samples_for(note, data, views_file, view_files=views, form=form)
        trained = Trained(fitted, X, y, note, ids, groups, strata)
        title = f"{note.target} from {data.name}"
        write_report(output, trained, title, folds, quiet, untrusted=True)
    if str(output) != "-":
        say(f"report written to {output}")


# fmt: off
COMPARE_OPTIONS = (
    click.argument("first", type=FILE),
    click.argument("second", type=FILE),
    click.argument("data", type=FILE),
    click.option("--output", "-o", type=FILE, help="Where a page goes, e.g. comparison.html."),
    VIEWS,
    click.option("--view", "views", multiple=True, metavar="NAME=FILE", help="File of a view, joined by --id."),
    click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Folds to refit on."),
    *TABLE_OPTIONS,
    OVERWRITE,
    click.option("--quiet", is_flag=True, help="No progress bar."),
)
# fmt: on


@click.command(cls=ListOptions)
@with_options(COMPARE_OPTIONS)
def compare(
    first: Path, second: Path, data: Path, output: Path | None, views_file: Path | None, views: tuple[str, ...],
    folds: int, force: bool, quiet: bool, **written: Any,
) -> None:  # fmt: skip
    """Refit two saved models, FIRST and SECOND, on the same folds of the table DATA that both were fitted on.

    \b
    kernelweave compare sparse.skops dense.skops data.csv
    kernelweave compare sparse.skops dense.skops data.csv -o comparison.html

    Says which predicts better, as far as the folds tell, and prints the weights of the views side by side.
    """
    check_outputs({"--output": output}, input_files(data, views_file, (first, second), None, views), force)
    if str(data) == "-" or first.stem == second.stem:
        raise UsageError(
            "give two models with different names, and the table as a file: it is read more than once"
        )
    from .._output import write_whole
    from ..report import compare_models
    from ._training import new_samples_for, targets_of
    from ._views import views_of_options

    form = format_of(**written)
    views_of_options(views, files=True)
    with plain_errors():
        models: dict[str, Any] = {}
        y, groups, strata, target = None, None, None, ""
        for path in (first, second):
            fitted, label = open_model(path)
            note = checked_note(label, path)
            if note.gram or note.pairs:
                what = "is of pairs" if note.pairs else "stands on kernel matrices"
                raise ValueError(f"{path} {what}: only models of single samples in tables are compared")
            if target and note.target != target:
                raise ValueError(
                    f"{first} predicts {target!r} and {path} {note.target!r}: nothing is to be compared"
                )
            target = note.target
            y, _, of_rows, strata = targets_of(data, note, form)
            if len(y) != note.rows:
                raise ValueError(f"{data} has {len(y)} rows, but {path} was fitted on {note.rows}")
            groups = of_rows if groups is None else groups
            own = tuple(view for view in views if view.partition("=")[0] in note.views)
            X, _, _ = new_samples_for(note, data, views_file, view_files=own, form=form)
            models[path.stem] = (fitted, X)
        progress = progress_line("comparison", quiet)
        found = compare_models(models, y, n_folds=folds, groups=groups, strata=strata, progress=progress)
        if output is not None:
            write_whole(output, found.page(f"{target}: {first.stem} and {second.stem}"))
            has_written(output)
    for frame, heading in ((found.measures, "on held-out folds"), (found.views, "weight of a view")):
        columns = [name for name in frame.columns if not name.endswith((", least", ", most"))]
        rows = [
            [str(name), *(f"{v:.3f}" if v == v else "-" for v in frame.loc[name, columns])]
            for name in frame.index
        ]
        say(table([heading, *columns], rows, right=range(1, len(columns) + 1)) + "\n")
    say(found.sentence())
    if output is not None:
        say(f"comparison written to {output}")


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
EXAMPLE_OPTIONS = (
    click.argument("name", required=False),
    click.option("--output", "-o", type=click.Path(file_okay=False, path_type=Path),
        help="Folder for the files; made where there is none.  [default: the name of the example]"),
    click.option("--force", is_flag=True, help="Write over existing files."),
)
# fmt: on


@click.command()
@with_options(EXAMPLE_OPTIONS)
def example(name: str | None, output: Path | None, force: bool) -> None:
    """Write small tables to try the commands on, and say what to type next.

    \b
    kernelweave example
    kernelweave example omics -o study

    Without a NAME the examples are listed.  All of them are generated: nothing is downloaded.
    """
    from ._examples import EXAMPLES, write

    if name is None:
        say(listing([(name, example.about, "") for name, example in EXAMPLES.items()]))
        return
    if name not in EXAMPLES:
        from .._components import nearest

        raise UsageError(
            f"there is no example {name!r}: there are {', '.join(EXAMPLES)}.{nearest(name, list(EXAMPLES))}"
        )
    folder = output or Path(name)
    with plain_errors():
        if not folder.is_dir():
            folder.mkdir()
        for path in write(EXAMPLES[name], folder, force):
            say(f"{path} written")
    commands = EXAMPLES[name].commands_in(folder)
    if commands:
        say("\nNow try\n")
        for command in commands:
            say(f"  {command}")


# fmt: off
DEMO_OPTIONS = (
    click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
        help=f"Where the picture goes; the suffix says the format.  [default: {PICTURE}]"),
    OVERWRITE,
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the train/test split."),
    click.option("--quick", is_flag=True, help="A fourth of the noise and of the refits, for trying the command out."),
)
# fmt: on


@click.command()
@with_options(DEMO_OPTIONS)
def demo(output: Path | None, force: bool, seed: int, quick: bool) -> None:
    """Find the four good views of handwritten digits among sixteen that are noise, in half a minute.

    Prints the test accuracy beside that of other methods, the weights of the views with their range over refits, and
    the certificate; draws weights, accuracy and convergence.
    """
    # everything that can be refused is refused before any work; the picture under its own name is ours to renew
    target = output or Path(PICTURE)
    check_outputs({"--output": target}, force=force or output is None)

    from ._demo import SUFFIXES, run

    if target.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot draw a {target.suffix or 'file without suffix'}: use {', '.join(SUFFIXES)}")
    with plain_errors():
        run(target, seed=seed, quick=quick)


@click.command("compile")
@click.option(
    "--all", "everything", is_flag=True, help="Also for rarer losses, solvers, precisions and kinds of data."
)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
def compile_code(everything: bool, jobs: int) -> None:
    """Compile what fits need, ahead of the first one on a machine.

    Without it the first fit of every kind takes some seconds longer. What is compiled is kept beside the package, in
    the user's cache folder where that cannot be written to, or where NUMBA_CACHE_DIR says.
    """
    from .compiling import compile_ahead

    began = time.perf_counter()
    failed = compile_ahead(everything, jobs)
    kinds = "everything" if everything else "classification of two or more classes, regression"
    say(f"compiled in {time.perf_counter() - began:.0f} seconds: {kinds}")
    if failed:
        raise click.ClickException("some fits could not be made: " + "; ".join(failed))
