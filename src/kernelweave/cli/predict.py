"""``kernelweave predict``: a saved model on new rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from ._note import Note, checked_note, open_model
from .fit import FILE, ListOptions, format_of, table_options

__all__ = ["predict"]


@click.command(cls=ListOptions)
@click.argument("model", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option(
    "--output",
    "-o",
    type=FILE,
    required=True,
    help="Where predictions go: CSV, TSV, Parquet, NPZ; - is CSV on the standard output.",
)
@click.option("--views", "views_file", type=FILE, help="TOML file, where views come from files of their own.")
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="NAME=FILE",
    help="File of a view, joined by the column that the model was fitted with as --id.",
)
@click.option(
    "--gram",
    multiple=True,
    type=FILE,
    help="For a model on kernel matrices: new rows against the training samples, in the order of the fit.",
)
@table_options
@click.option("--force", is_flag=True, help="Write over an existing --output.")
@click.option(
    "--spreadsheet", is_flag=True, help="In CSV and TSV, an apostrophe before texts that look like formulas."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def predict(
    model: Path, data: Path | None, output: Path, views_file: Path | None, views: tuple[str, ...],
    gram: tuple[Path, ...], separator: str | None, encoding: str | None, decimal: str | None,
    comment: str | None, force: bool, spreadsheet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Predict the rows of DATA with a saved MODEL.

    \b
    kernelweave predict model.skops new.csv -o predictions.csv
    kernelweave predict model.skops new.parquet -o predictions.parquet
    kernelweave predict model.skops new.csv --view rna=new_rna.csv -o predictions.csv
    kernelweave predict model.skops --gram new1.npy new2.npy -o predictions.csv
    zcat new.csv.gz | kernelweave predict model.skops - -o - > predictions.csv

    The output has a row for each row of DATA, in its order: the column that names the rows (where the model was fitted
    with --id), the prediction, the decision values, and probabilities where the loss has them (logistic).  Names and
    classes are written as they are: give --spreadsheet where the file will be opened in one.
    """
    from ._files import check_writable, plain_errors, write_table
    from ._outputs import check_outputs, input_files
    from ._terminal import has_written, say, say_json

    check_outputs({"--output": output}, input_files(data, views_file, gram, model, views), force)
    check_writable(output)
    if str(output) == "-" and as_json:
        raise click.UsageError("-o - and --json both write to the standard output: give -o a file")
    from ._options import views_given
    from ._training import new_samples_for

    form = format_of(separator, encoding, decimal, comment)
    views_given(views, files=True)
    with plain_errors():
        fitted, label = open_model(model)
        note = checked_note(label, model)
        X, frame, remarks = new_samples_for(note, data, views_file, gram, views, form)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = _predictions(fitted, X, frame, note)
        if note.id and frame is not None and note.id not in frame:
            say(
                f"note: the table has no column {note.id!r}, so that only their order names the rows",
                err=True,
            )
        for line in remarks.lines():
            say(f"note: {line}", err=True)
        said = [str(warning.message) for warning in caught if "kernelweave" in warning.category.__module__]
        for sentence in dict.fromkeys(said):
            say(f"warning: {sentence}", err=True)
        write_table(table, output, spreadsheet)
        has_written(output)
    if as_json:
        facts = {"rows": len(table), "columns": list(table.columns), "written": str(output)}
        say_json(facts | {"reading": remarks.as_dict()}, indent=None)
    elif str(output) != "-":
        say(f"{len(table)} predictions written to {output}")


def _predictions(model: Any, X: Any, frame: Any, note: Note) -> Any:
    import pandas as pd

    columns: dict[str, Any] = {}
    if note.id and frame is not None and note.id in frame:
        columns[note.id] = frame[note.id].to_numpy()
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
