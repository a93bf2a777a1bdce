"""One line that says how far refits are, and how long the rest will take."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["progress_line"]


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
