"""``kernelweave report``: the page about a fit, from a saved model and its training table."""

from __future__ import annotations

from pathlib import Path

import click

from .fit import FILE, ListOptions, format_of, table_options

__all__ = ["report"]


@click.command(cls=ListOptions)
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--output", "-o", type=FILE, required=True, help="Where the report goes, e.g. report.html, or -."
)
@click.option("--views", "views_file", type=FILE, help="TOML file, where views come from files of their own.")
@click.option("--gram", multiple=True, type=FILE, help="For a model on kernel matrices: those of the fit.")
@click.option("--view", "views", multiple=True, metavar="NAME=FILE", help="File of a view, joined by --id.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Folds to refit on.")
@table_options
@click.option("--force", is_flag=True, help="Write over an existing --output.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def report(
    model: Path, data: Path, output: Path, views_file: Path | None, views: tuple[str, ...], gram: tuple[Path, ...],
    folds: int, separator: str | None, encoding: str | None, decimal: str | None, comment: str | None,
    force: bool, quiet: bool,
) -> None:  # fmt: skip
    """Write a self-contained HTML report of a saved MODEL and the table DATA that it was fitted on.

    \b
    kernelweave report model.skops data.csv -o report.html

    The model is refitted on folds of DATA, for its accuracy beside simpler methods and the stability of its weights.
    """
    from ._files import plain_errors
    from ._note import checked_note, open_model
    from ._outputs import check_outputs, input_files, write_page
    from ._terminal import say

    check_outputs({"--output": output}, input_files(data, views_file, gram, model, views), force)
    if str(data) == "-":
        raise click.UsageError("the table is read twice here: give a file, not the standard input")
    from ..persistence import cleared
    from ..report import make_report
    from ._options import views_given
    from ._progress import progress_line
    from ._training import cut_into_folds, gram_matrices, new_samples_for, targets_of

    form = format_of(separator, encoding, decimal, comment)
    views_given(views, files=True)
    with plain_errors():
        fitted, label = open_model(model)
        note = checked_note(label, model)
        y, ids, groups = targets_of(data, note, form)
        rows = len(y)
        if rows != note.rows:
            raise ValueError(f"{data} has {rows} rows, but the model was fitted on {note.rows}")
        classes = getattr(fitted, "classes_", None)
        if classes is not None and not set(y.tolist()) <= set(classes.tolist()):
            new = next(label for label in y.tolist() if label not in set(classes.tolist()))
            raise ValueError(
                f"{data} has a label {new!r}, but the model was fitted on {', '.join(map(str, classes.tolist()))}: "
                "give the table that it was fitted on"
            )
        if note.gram:
            X, _ = gram_matrices(gram, rows, data)
        else:
            X, _, _ = new_samples_for(note, data, views_file, view_files=views, form=form)
        # what the file says about files, processes and memory is not for this machine
        again, samples = cut_into_folds(fitted, X, note)
        page = make_report(
            fitted, X, y, refit=(cleared(again, machine=True), samples), n_folds=folds, note=note.as_dict(),
            row_names=ids, groups=groups,
            title=f"{note.target} from {data.name}", progress=progress_line("report", quiet),
        )  # fmt: skip
        write_page(output, page)
    if str(output) != "-":
        say(f"report written to {output}")
