"""``kernelweave fit``: a table in, a model and a report out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import click
from click import UsageError
from click.core import ParameterSource

from ._note import FACTS, describe, in_words
from ._tables import Format, plain_errors
from ._terminal import check_outputs, has_written, input_files, say, say_json

FILE = click.Path(dir_okay=False, path_type=Path)


class ListOptions(click.Command):
    """A command whose options in ``lists`` take all words up to the next option: ``--gram a.npy b.npy``."""

    lists = ("--gram", "--norms", "--left-gram", "--right-gram")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings; those without one are called options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                sections.setdefault(getattr(parameter, "heading", "Options"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write ``--gram a b`` as ``--gram a --gram b``, which is what click understands."""
        spread: list[str] = []
        current = None
        for place, word in enumerate(args):
            if word.startswith("-") and word != "-":
                current = word if word in self.lists else None
                alone = place + 1 == len(args) or args[place + 1].startswith("--")
                spread += [word] if current is None or alone else []  # click says that a value is missing
            else:
                spread += [current, word] if current else [word]
        return super().parse_args(ctx, spread)


def under(heading: str, *options: Any) -> Any:
    """Return a decorator that gives a command these options, shown under a heading in its help."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
            command.__click_params__[-1].heading = heading
        return command

    return decorate


# fmt: off
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
TABLE_OPTIONS = (under("Text tables",
    click.option("--separator", help="Of columns in text tables, e.g. ';', tab or space.  [default: detected]"),
    click.option("--encoding", help="Of text tables, e.g. latin-1.  [default: detected]"),
    click.option("--decimal", type=click.Choice([".", ","]),
        help="Decimal point or comma in text tables.  [default: detected, column by column]"),
    click.option("--comment", metavar="TEXT", help="Leave out lines of text tables that begin so, e.g. '#'."),
),)
# fmt: on


def with_options(options: Sequence[Any]) -> Any:
    """Return a decorator that gives a command these options and arguments."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def format_of(
    separator: str | None,
    encoding: str | None,
    decimal: str | None,
    comment: str | None,
    na: tuple[str, ...] = (),
    strip: bool = False,
) -> Format:
    """Return what is said of how text tables are written."""
    separator = {"tab": "\t", "\\t": "\t", "space": " "}.get(separator or "", separator)
    if separator is not None and (len(separator) != 1 or separator in '\n\r\0"'):
        raise UsageError(f"--separator takes one character, or 'tab' or 'space', got {separator!r}")
    if separator is not None and separator == decimal:
        raise UsageError(f"--separator and --decimal are both {separator!r}")
    if encoding is not None:
        try:
            b"    ".decode(encoding)
        except LookupError:
            raise UsageError(
                f"--encoding: there is no encoding {encoding!r}: try utf-8, latin-1, cp1252 or utf-16"
            ) from None
    if comment == "":
        raise UsageError("--comment takes what lines of comments begin with, e.g. '#'")
    return Format(separator, encoding, decimal, na, comment, strip)


# fmt: off
#: what ``predict`` takes, too
LEFT = click.option("--left", multiple=True, metavar="FILE|NAME=FILE",
        help="Table of the left objects (drugs); with names several, joined by the first; may be repeated.")
RIGHT = click.option("--right", multiple=True, metavar="FILE|NAME=FILE", help="The same of the right objects (cells).")
FIT_OPTIONS = (
    click.argument("data", type=FILE, required=False),
    under("Data",
        click.option("--target", default="",
            help="Column with the labels, or the numbers to predict; all but --novelty and --time need it."),
        click.option("--time", metavar="COLUMN", help="Learn times to an event: until when every row was followed."),
        click.option("--event", metavar="COLUMN", help="With --time: whether the event happened then."),
        click.option("--event-value", metavar="TEXT",
            help="The value of --event that is the event.  [default: 1, true, dead, deceased, died, event, yes]"),
        click.option("--strata", metavar="COLUMN",
            help="With --time: rows with a baseline hazard of their own, such as centres; not learnt from."),
        click.option("--novelty", type=float, metavar="NU",
            help="Learn what is usual, without a target: at most this share of the rows is called outliers."),
        click.option("--id", "identity", metavar="COLUMN", help="Column that names the rows; not learnt from."),
        click.option("--fold-groups", metavar="COLUMN",
            help="Rows with the same value here (those of one patient) are held out together; not learnt from."),
        click.option("--task", type=click.Choice(["auto", "classification", "regression"]), default="auto",
            show_default=True),
        click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated."),
        click.option("--na", multiple=True, metavar="TEXT",
            help="A text for a missing cell, e.g. '?'; may be repeated."),
        click.option("--strip", is_flag=True, help="Remove spaces around texts: 'yes ' is then 'yes'."),
    ),
    *TABLE_OPTIONS,
    under("Views and kernels",
        click.option("--view", "views", multiple=True, metavar="NAME=COLUMNS|FILE",
            help="A view: names and patterns of columns, separated by commas, or a file of its own, joined by --id."),
        click.option("--views", "views_file", type=FILE, help="TOML file that names views and their kernels."),
        click.option("--objects", multiple=True, metavar="COLUMN=KERNEL",
            help="A column of texts and the kernel on it: sequence=spectrum:3,4,alphabet=protein, "
            "smiles=fingerprint:1,2."),
        click.option("--always", metavar="COLUMNS",
            help="Columns that always count, such as age,stage: what the other kernels learn is beyond these."),
        click.option("--missing", type=click.Choice(["error", "mean", "predict"]), default="error", show_default=True,
            help="Rows that lack a whole view: refused, or completed by its mean or by what the other views predict."),
        click.option("--kernels",
            help="Kernels by name, separated by commas (linear, gaussian or rbf, laplacian, polynomial or poly, "
            "cosine), for all columns or every --view; or 'default', or a paper's preset: smkl, stpmkl, simplemkl, "
            "obscure_mnist."),
        click.option("--gmt", type=FILE, help="Gene sets in GMT: a linear kernel for every set of columns."),
        click.option("--groups", type=FILE,
            help="CSV with the columns 'column' and 'group': a linear kernel for every group."),
        click.option("--min-size", type=click.IntRange(min=1), default=1, show_default=True,
            help="Columns that a group of --gmt or --groups must have in the table."),
        click.option("--gram", multiple=True, type=FILE, help="Kernel matrices of the rows: NumPy, NPZ or CSV files."),
    ),
    under("Pairs of objects, instead of DATA",
        click.option("--pairs", type=FILE,
            help="Pairs with their labels: a row each, with two ids and --target, or a table of left by right objects "
            "with empty cells."),
        LEFT, RIGHT,
        click.option("--setting", type=click.Choice(["pairs", "left", "right", "both"]),
            help="What will be new in new pairs, and is held out to choose C: nothing but the pair, the left or the "
            "right object, both.  [default: pairs]"),
        click.option("--left-id", metavar="COLUMN", help="Column of the pairs that names left objects.  [default: the "
            "one that both tables have]"),
        click.option("--right-id", metavar="COLUMN", help="The same of right objects."),
        click.option("--left-kernels", help="Kernels by name for the left objects.  [default: as --kernels]"),
        click.option("--right-kernels", help="The same for the right objects."),
        click.option("--left-gram", multiple=True, type=FILE,
            help="Kernel matrices of the left objects, in the order of --left, of which only the ids are read."),
        click.option("--right-gram", multiple=True, type=FILE, help="The same of the right objects."),
    ),
    under("Fit",
        click.option("--C", "C", help="Weight of the loss; 'cv' picks it by cross-validation.  [default: cv]"),
        click.option("--norm",
            help="l1 (sparse), a number p, or a name of `kernelweave methods`, with parameters as in "
            "elastic_net:0.3, at_most:5 or grouped:l1,2 (groups are the views).  [default: l1; for numbers the "
            "best of l1, 4/3, 2 and uniform; uniform for --novelty]"),
        click.option("--norms", multiple=True, metavar="NORM ...",
            help="Norms to choose among, e.g. --norms l1 1.5 uniform."),
        click.option("--scoring",
            help="What C and norm are chosen by, a name of scikit-learn (with --time likelihood, concordance, "
            "concordance_ipcw or brier).  [default: accuracy, or the squared error; likelihood]"),
        click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
            help="Folds of the cross-validation and of the report."),
        click.option("--loss",
            help="As 'kernelweave methods' lists them.  [default: hinge; squared for numbers, cox for times]"),
        click.option("--class-weight", metavar="balanced|CLASS=WEIGHT,...", help="Weights of the classes in the loss."),
        click.option("--noise-rate",
            help="Share of wrong labels, or 'estimate'; uses NoisyLabelMKLClassifier, which picks its own C."),
        click.option("--tol", type=float, default=1e-3, show_default=True,
            help="Relative duality gap at which to stop."),
    ),
    under("Output",
        click.option("--model", type=FILE, help="Where the model goes, e.g. model.skops."),
        click.option("--report", "report_to", type=FILE, help="Where a report goes, e.g. report.html."),
        click.option("--force", is_flag=True, help="Write over existing files."),
        JSON,
        click.option("--quiet", is_flag=True, help="No progress bars."),
    ),
)
# fmt: on


@click.command(cls=ListOptions)
@with_options(FIT_OPTIONS)
def fit(
    model: Path | None, report_to: Path | None, separator: str | None, encoding: str | None, decimal: str | None,
    comment: str | None, na: tuple[str, ...], strip: bool, force: bool, as_json: bool, quiet: bool, **given: Any,
) -> None:  # fmt: skip
    """Learn kernel weights and a classifier (or a regression function) from the table DATA.

    \b
    kernelweave fit data.csv --target label
    kernelweave fit data.csv --target label --views views.toml --model model.skops --report report.html
    kernelweave fit data.csv --target label --view genes='gene_*' --view clinic=age,stage --model model.skops
    kernelweave fit labels.csv --target label --id patient --view rna=rna.csv --view protein=proteins.csv \
        --missing predict --model model.skops
    kernelweave fit labels.csv --target label --gram k1.npy k2.npy --C 10 --model model.skops
    kernelweave fit data.parquet --target label --noise-rate estimate --report report.html
    kernelweave fit normal.csv --novelty 0.05 --model usual.skops
    kernelweave fit data.csv --time os_months --event os_status --always age,stage --model risk.skops
    kernelweave fit visits.csv.gz --target sick --fold-groups patient --scoring balanced_accuracy \\
        --class-weight balanced --norms l1 2 uniform --report report.html
    kernelweave fit --left drugs.csv --right cells.csv --pairs labels.csv --target ic50 --setting left \\
        --model pairs.skops

    DATA is a CSV, TSV (also compressed, .csv.gz), Parquet, NPZ or NumPy file, or - for a text table on the standard
    input.  Separator, encoding and decimal commas of text tables are detected, and reported if they are unusual.
    Numbers are standardised and missing ones replaced by the median; texts become columns of zeros and ones, a missing
    one being a category of its own.  What cannot be treated so (dates, texts that hardly repeat, empty columns) is
    refused with the column's name: --drop it.  Ids are texts: 00001 is not 1.

    \b
    Exit codes: 0 done; 1 the data or the model file do not fit; 2 the command is wrong;
    3 done, but the fit stopped before its tolerance (a line says so);
    130 interrupted: the best model found so far, if there is one, is written and says how good it is; no report is.
    """
    if model is not None and str(model) == "-":
        raise UsageError("--model is a file: a model cannot be written to the standard output")
    if str(report_to) == "-" and as_json:
        raise UsageError("--report - and --json both write to the standard output: give one a file")
    if report_to is not None and given["novelty"] is not None:
        raise UsageError(
            "--report compares predictions with a target, and --novelty has none: remove --report"
        )
    read = [*given["gram"], *(path for path in (given["gmt"], given["groups"]) if path is not None)]
    read += [path for path in (given["pairs"], *given["left_gram"], *given["right_gram"]) if path is not None]
    tables = [Path(one.partition("=")[2] or one) for one in (*given["left"], *given["right"])]
    inputs = input_files(given["data"], given["views_file"], [*read, *tables], None, given["views"])
    check_outputs({"--model": model, "--report": report_to}, inputs, force)
    from .. import __version__
    from .._numerics.stopping import one_interrupt
    from ..persistence import save
    from ._options import Options, check_options
    from ._pairs import check_pair_options, train_pairs
    from ._training import train, write_report

    quiet = quiet or as_json
    form = format_of(separator, encoding, decimal, comment, na, strip)
    if (given["data"] is None) == (given["pairs"] is None):
        raise UsageError(
            "Missing argument 'DATA'." if given["data"] is None else "give DATA or --pairs, not both"
        )
    options = Options(**given, verbose=int(not quiet and sys.stderr.isatty()), form=form)
    check_options(options)
    check_pair_options(options)
    with plain_errors(), one_interrupt() as work:
        trained = train(options) if options.pairs is None else train_pairs(options)
        work.winding_up = True  # the model is written even where Ctrl-C is pressed again
        trained.note.command = _command()
        note = trained.note.as_dict()
        facts: dict[str, Any] = describe(trained.model, {"kernelweave": __version__, "note": note})
        # before the report: one that fails, or is interrupted, does not lose the fit
        if model is not None:
            save(trained.model, model, note=note | {FACTS: facts})
            has_written(model)
    facts["written"] = {"model": model and str(model), "report": None}
    kept = f"the model is written to {model}" if model else "nothing was written"
    interrupted, failed = work.interrupted, None
    if interrupted:
        kept = f"the best model found is written to {model}" if model else kept
    elif report_to is not None:
        try:
            with plain_errors():
                title = f"{trained.note.target} from {trained.note.data}"
                write_report(report_to, trained, title, options.folds, quiet)
                facts["written"]["report"] = str(report_to)
        except KeyboardInterrupt:
            interrupted = True
        except click.ClickException as error:
            failed = facts["report_error"] = error.message
    if interrupted:
        trained.warnings.append(f"interrupted; {kept}" + (", there is no report" if report_to else ""))
    _say(facts | {"notes": trained.notes}, trained.warnings, as_json, to_stderr=str(report_to) == "-")
    if failed is not None:
        raise click.ClickException(f"there is no report ({kept}): {failed}")
    if trained.warnings:
        raise SystemExit(130 if interrupted else 3)


def _say(facts: dict[str, Any], warnings: list[str], as_json: bool, to_stderr: bool) -> None:
    for finding in facts.get("findings", ()):  # before any figure
        say(f"finding: {finding}", err=True)
    if as_json:
        say_json(facts | {"warnings": warnings})
    else:
        say(in_words(facts), err=to_stderr)
        for what, path in facts["written"].items():
            if path and path != "-":
                say(f"{what} written to {path}", err=to_stderr)
        if not any(facts["written"].values()) and not warnings:
            say("nothing was kept: --model FILE keeps the model, --report FILE makes a page of it")
    for note in facts["notes"]:
        say(f"note: {note}", err=True)
    for warning in warnings:
        say(f"warning: {warning}", err=True)


def _command() -> str:
    """Return the command that was typed, so that it can be typed again."""
    context = click.get_current_context()
    words = ["kernelweave", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif value is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = max(parameter.opts, key=len)
            if option in ("--json", "--quiet", "--force"):
                continue
            for given in value if isinstance(value, tuple) else (value,):
                words += [option] if getattr(parameter, "is_flag", False) else [option, str(given)]
    typed = shlex.join(words)
    return f"{typed}  # the table came from the standard input" if "-" in words else typed
