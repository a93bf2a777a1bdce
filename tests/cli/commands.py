"""Run a command in this process."""

from __future__ import annotations

from click.testing import CliRunner

from kernelweave.cli import main


def call(*arguments, code=0):
    """Call ``kernelweave`` with these words; the exit code must be ``code``."""
    done = CliRunner().invoke(main, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done
