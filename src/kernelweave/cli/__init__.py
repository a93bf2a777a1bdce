"""The command line: ``kernelweave demo``, ``kernelweave methods``, ``kernelweave reproduce``.

The modules of the commands import nothing heavy at the top, so that ``kernelweave --help`` answers at once.
"""

from __future__ import annotations

import click

from .. import __version__
from .demo import demo
from .methods import methods
from .reproduce import reproduce

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kernelweave")
def main() -> None:
    """Multiple kernel learning with a proof of optimality on every fit."""


main.add_command(demo)
main.add_command(methods)
main.add_command(reproduce)
