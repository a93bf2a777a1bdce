"""A few of the kills that ``python -m tests.judge.kills`` runs by the dozen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import forked


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, to be killed after an instant")
def test_fits_that_are_killed_are_resumed_and_certified():
    code = "import runpy; runpy.run_module('tests.judge.kills', run_name='__main__', alter_sys=True)"
    done = forked.run(code, "--kills", 3, "--seed", 1, folder=Path(__file__).parents[2])
    assert "tried 3, survived 3" in done.stdout
