"""Everything that the commands print goes through here.

Names of columns, classes, kernels and files come from data that somebody else may have made.  A terminal obeys control
characters in them: it can be made to hide lines, to change its title or to fill the clipboard.  They are shown instead.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import warnings
from _thread import interrupt_main
from collections.abc import Callable
from functools import partial
from typing import Any

import click

__all__ = ["Commands", "has_written", "on_one_line", "say", "say_json", "visible", "write_out"]


#: where a context keeps what has_written was told
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

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        unraisable = sys.unraisablehook
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            sys.unraisablehook = _interrupt_again
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                done = ctx.meta.get(WRITTEN)
                say(
                    f"interrupted; {done} is written" if done else "interrupted; nothing was written",
                    err=True,
                )
                raise SystemExit(130) from None
            except click.ClickException as error:
                told = error.format_message
                error.format_message = lambda: visible(told())  # type: ignore[method-assign]
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


def _show_warning(message: Any, category: Any, *_: Any, **__: Any) -> None:
    say(f"warning: {message}", err=True)
