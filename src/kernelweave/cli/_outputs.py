"""Where results may go: checked before any work, so that nothing is lost at the end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import click

from .._output import check_target

__all__ = ["check_outputs", "input_files", "write_page"]


def input_files(
    data: Path | None = None,
    views_file: Path | None = None,
    gram: Iterable[Path] = (),
    model: Path | None = None,
    views: Iterable[str] = (),
) -> list[Path]:
    """Return every file that a command reads, those included that ``views.toml`` and ``--view`` name."""
    files = [path for path in (model, data, views_file, *gram) if path is not None]
    files += [Path(option.partition("=")[2]) for option in views]  # columns are no file that is there
    if views_file is not None:
        from ._views import read_views

        with suppress(ValueError, OSError):  # said where the views are used
            files += [Path(view.file) for view in read_views(views_file)[0] if view.file is not None]
    return files


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path] = (), force: bool = False
) -> None:
    """Refuse outputs that are inputs, each other or no regular files; existing ones unless ``force``.

    Parameters
    ----------
    outputs : mapping
        Path of every option that names an output, or None.
    inputs : paths
        What the command reads.
    force : bool
        Whether other existing files may be replaced.
    """
    # "-" is the standard output, which cannot be destroyed
    chosen = {option: path for option, path in outputs.items() if path is not None and str(path) != "-"}
    for option, path in chosen.items():
        if not path.absolute().parent.is_dir():
            raise click.UsageError(f"the folder {path.parent} of {option} does not exist")
        for other in inputs:
            if _same(path, other):
                raise click.UsageError(f"{option} {path} is a file that is read: give another {option}")
        for also, other in chosen.items():
            if also != option and _same(path, other):
                raise click.UsageError(f"{option} and {also} are the same file: give another {option}")
        try:
            exists = check_target(path) is not None
        except OSError as error:
            raise click.UsageError(f"{option}: {error}") from None
        if exists and not force:
            raise click.UsageError(f"{path} exists: give another {option}, or --force to write over it")


def write_page(path: Path, page: str) -> None:
    """Write a page whole, or to the standard output for ``-``."""
    from .._output import write_whole
    from ._terminal import has_written, write_out

    if str(path) == "-":
        write_out(page)
    else:
        write_whole(path, page)
        has_written(path)


def _same(path: Path, other: Path) -> bool:
    """Whether two names mean one file, through links and other ways of writing it too."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
