"""Running a piece of Python in a process of its own, where it may be interrupted, killed or starved."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import kernelweave

#: folder that holds the package under test
SOURCE = Path(kernelweave.__file__).parents[1]


def run(code: str, *arguments: object, source: Path = SOURCE, timeout: float = 240.0, **options) -> str:
    """Run code with the package from ``source``; return what it printed, raise with its errors where it failed."""
    env = {**os.environ, **options.pop("env", {}), "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={name: value for name, value in env.items() if value is not None},
        capture_output=True, text=True, timeout=timeout, check=False, **options,
    )  # fmt: skip
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
