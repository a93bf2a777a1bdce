"""The command line, whose commands are those of the last line here.

The modules of the commands import nothing heavy at the top, so that ``kernelweave --help`` answers at once.
"""

from __future__ import annotations

import click

from .. import __version__
from ._terminal import Commands
from .commands import compare, compile_code, demo, example, inspect, methods, predict, report, reproduce
from .fit import fit

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kernelweave")
def main() -> None:
    """Multiple kernel learning with a proof of how close to optimal a fit is.

    \b
    kernelweave example omics
    kernelweave fit data.csv --target label --model model.skops --report report.html
    kernelweave inspect model.skops
    kernelweave predict model.skops new.csv -o predictions.csv
    """


for command in (fit, predict, inspect, report, compare, example, demo, methods, reproduce, compile_code):
    main.add_command(command)
