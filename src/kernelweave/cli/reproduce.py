"""``kernelweave reproduce``: a paper's tables and figures, run again."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ._terminal import say

__all__ = ["reproduce"]

DEFAULT = Path("kernelweave_results")
#: after so many seconds ``--quick`` begins no run but the first of every part
QUICK_SECONDS = 60.0


@click.command()
@click.argument("study", required=False)
@click.option("--only", default=None, help="Some parts only, separated by commas; --list names them.")
@click.option(
    "--quick",
    is_flag=True,
    help="The first runs of every part, in one to two minutes; a whole run goes on from there.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=None, help="So many repeats of every part.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 is one per core.")
@click.option(
    "--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=DEFAULT, show_default=True,
    help="Folder for tables (CSV, Markdown), pictures and the rows of every run.",
)  # fmt: skip
@click.option("--restart", is_flag=True, help="Forget the runs that are in the folder already.")
@click.option("--list", "listed", is_flag=True, help="List the studies and their parts, and run nothing.")
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
    if listed or study is None:
        _list_studies()
        return
    parts = _parts(study, only)
    if jobs == 0:
        raise click.UsageError("--jobs takes a number of processes, or -1 for one per core, got 0")

    from ._files import plain_errors

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
            say(
                f"\ninterrupted; what is done is in {output}, and the same command goes on from there",
                err=True,
            )
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


def _list_studies() -> None:
    """Print the studies and their parts."""
    studies = _studies()
    for name, about in studies.STUDIES.items():
        say(f"{name}  {about}")
        for part in studies.load_study(name).parts:
            repeats = f"{part.repeats} repeats, {part.quick_repeats} with --quick"
            say(f"    {part.name:<12} {part.title} ({repeats})")


def _parts(study: str, only: str | None) -> list[Any]:
    """Return the parts of a study that were asked for."""
    studies = _studies()
    try:
        parts = {part.name: part for part in studies.load_study(study).parts}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    wanted = list(parts) if only is None else [name.strip() for name in only.split(",")]
    unknown = [name for name in wanted if name not in parts]
    if unknown:
        raise click.UsageError(f"{study} has no part {unknown[0]!r}: it has {', '.join(parts)}")
    return [parts[name] for name in wanted]
