"""Output of the commands: messages, plain tables, progress, checks of output files before any
work.

Names of columns, classes, kernels and files come from data that somebody else may have made.  A terminal obeys control
characters in them: it can be made to hide lines, to change its title or to fill the clipboard.  They are shown instead.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import textwrap
import threading
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
from click import UsageError

from .._output import check_target

#: where a context keeps the path of has_written
WRITTEN = "kernelweave.written"


def visible(text: str) -> str:
    r"""Write characters that cannot be seen as their escapes; line ends stay.

    >>> print(visible("name\x1b[2J\u202e"), visible("Größe"))
    name\x1b[2J\u202e Größe
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def on_one_line(what: Any) -> Any:
    r"""Make texts visible, line ends included, also inside lists and dictionaries: a name cannot pose as a line.

    >>> on_one_line({"view": ["a\nb", 1]})
    {'view': ['a\\nb', 1]}
    """
    if isinstance(what, str):
        return visible(what).replace("\n", "\\n")
    if isinstance(what, dict):
        return {on_one_line(key): on_one_line(value) for key, value in what.items()}
    return [on_one_line(part) for part in what] if isinstance(what, list | tuple) else what


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text for people."""
    click.echo(visible(text), err=err, nl=nl)


def say_json(facts: Any, indent: int | None = 1) -> None:
    """Print one JSON object for machines; it is plain ASCII without control characters."""
    click.echo(json.dumps(facts, indent=indent).replace("\x7f", "\\u007f"))


def has_written(path: Any) -> None:
    """Remember that a file is complete, for what is said where Ctrl-C comes after that."""
    context = click.get_current_context(silent=True)
    if context is not None and str(path) != "-":
        context.meta[WRITTEN] = str(path)


def write_out(text: str) -> None:
    """Write a result, for which ``-`` was given, to the standard output as it is: programs read it, not a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())


class Commands(click.Group):
    """A group whose commands' errors and warnings are made visible like everything else; Ctrl-C is exit code 130."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the whole first sentence of each, where click would cut it off."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands[name].get_short_help_str(limit=200)) for name in self.commands]
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        unraisable = sys.unraisablehook
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}", err=True)
            sys.unraisablehook = _interrupt_again
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                done = ctx.meta.get(WRITTEN)
                say(f"interrupted; {f'{done} is' if done else 'nothing was'} written", err=True)
                raise SystemExit(130) from None
            except click.ClickException as error:
                message = visible(error.format_message())
                error.format_message = lambda: message  # type: ignore[method-assign]
                raise
            finally:
                sys.unraisablehook = unraisable


def _interrupt_again(unraisable: Any) -> None:
    """Repeat an interrupt that came where Python cannot raise (a callback of its import system) and would be lost."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        main = threading.main_thread().ident
        again: Callable[[], None] = interrupt_main
        if hasattr(signal, "pthread_kill") and main is not None:  # POSIX: also where the main thread waits
            again = partial(signal.pthread_kill, main, signal.SIGINT)
        threading.Timer(0.01, again).start()
    else:
        sys.__unraisablehook__(unraisable)


def listing(entries: Sequence[tuple[str, str, str]], columns: int | None = None) -> str:
    """Write names with a text and a note each, wrapped beside the names.

    >>> print(listing([("level", "cutting planes", "needs norm='l1'"), ("l1", "the sum", "")], columns=60))
      level  cutting planes
             needs norm='l1'
      l1     the sum
    """
    size = max(len(name) for name, _, _ in entries)
    # the terminal's columns, 80 where the output is a file or a pipe, never absurdly many
    columns = columns or max(60, min(110, shutil.get_terminal_size((80, 24)).columns))
    lines = []
    for name, *texts in entries:
        wrapped = [line for text in texts for line in textwrap.wrap(text, columns - size - 4)]
        lines += [f"  {(name if k == 0 else '').ljust(size)}  {line}" for k, line in enumerate(wrapped)]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Write a table; the columns in ``right`` are aligned to the right.

    >>> print(table(["name", "n"], [["iris", "150"], ["digits", "1797"]], right=[1]))
      name       n
      ------  ----
      iris     150
      digits  1797
    """
    sizes = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = []
    for row in [head, ["-" * size for size in sizes], *rows]:
        cells = zip(row, sizes, strict=True)
        padded = [c.rjust(size) if k in right else c.ljust(size) for k, (c, size) in enumerate(cells)]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return "\n".join(lines)


def strip(share: float) -> str:
    """Return a bar of a text chart, 32 characters for a share of 1; something is seen of any share that is shown.

    >>> strip(0.25), strip(0.001), strip(0.0)
    ('########', '#', '')
    """
    return "#" * max(round(32 * share), int(share >= 0.0005))


def progress_line(what: str, quiet: bool) -> Callable[[int, int], None]:
    """Return a function of (done, to do) that renews a line on a terminal, and writes nothing elsewhere."""
    from tqdm import tqdm

    shape = "{desc}: {n_fmt} of {total_fmt} refits |{bar:24}| {elapsed}, {remaining} left"
    bar = tqdm(desc=what, disable=quiet or not sys.stderr.isatty(), leave=False, bar_format=shape)

    def step(done: int, todo: int) -> None:
        bar.total = todo
        bar.update(done - bar.n)
        if done == todo:
            bar.close()

    return step


def input_files(
    data: Path | None, views_file: Path | None, gram: Iterable[Path], model: Path | None, views: Iterable[str]
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

    ``outputs`` are the paths of options, or None; ``inputs`` is what the command reads.  All of that is checked before
    any work, so that nothing is lost at the end.
    """
    # "-" is the standard output, which cannot be destroyed
    chosen = {option: path for option, path in outputs.items() if path is not None and str(path) != "-"}
    for option, path in chosen.items():
        if not path.absolute().parent.is_dir():
            raise UsageError(f"the folder {path.parent} of {option} does not exist")
        for other in inputs:
            if _same(path, other):
                raise UsageError(f"{option} {path} is a file that is read: give another {option}")
        for also, other in chosen.items():
            if also != option and _same(path, other):
                raise UsageError(f"{option} and {also} are the same file: give another {option}")
        try:
            exists = check_target(path) is not None
        except OSError as error:
            raise UsageError(f"{option}: {error}") from None
        if exists and not force:
            raise UsageError(f"{path} exists: give another {option}, or --force to write over it")


def _same(path: Path, other: Path) -> bool:
    """Whether two names mean one file, through links and other ways of writing it too."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
