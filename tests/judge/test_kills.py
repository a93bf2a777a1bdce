"""A few of the kills that ``python -m tests.judge.kills`` runs by the dozen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernelweave


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, to be killed after an instant")
def test_fits_that_are_killed_are_resumed_and_certified():
    done = subprocess.run(
        [sys.executable, "-m", "tests.judge.kills", "--kills", "3", "--seed", "1"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(kernelweave.__file__).parents[1])},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "tried 3, survived 3" in done.stdout
