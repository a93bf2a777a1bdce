"""Ctrl-C in ``kernelweave fit``: the best model found is written, with what is true of it, and the exit code is 130."""

from __future__ import annotations

import signal
import sys
import time

import numpy as np
import pandas as pd
import pytest

import forked
from kernelweave.persistence import load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")

#: the command, which writes to ``started`` when a fit is under way
COMMAND = """
import sys
from pathlib import Path
from kernelweave.solvers._loop import Best
from kernelweave.cli import main
take, started, after = Best.take, Path(sys.argv.pop(1)), int(sys.argv.pop(1))
taken = []
def watched(self, *arguments):
    take(self, *arguments)
    taken.append(1)
    if len(taken) == after:
        started.touch()
Best.take = watched
main(prog_name="kernelweave")
"""


def interrupt(folder, after, presses, *options):
    """Start a fit, press Ctrl-C a few times once ``after`` iterations were made; return the exit code and its complaints."""
    started = folder / "started"
    process = forked.start(COMMAND, started, after, "fit", "data.csv", "--quiet", *options, folder=folder)
    waited = time.monotonic()
    while not started.exists() and process.poll() is None and time.monotonic() - waited < 200:
        time.sleep(0.01)
    for _ in range(presses):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, err = process.communicate(timeout=200)
    return process.returncode, err


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 8))
    values = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=700)
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(
        sign=np.where(values > 0, "plus", "minus"), value=values
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


CASES = {
    "a fit": (3, ("--target", "sign", "--drop", "value", "--C", "100", "--tol", "1e-13")),
    "a search": (40, ("--target", "sign", "--drop", "value", "--tol", "1e-9")),
}


@pytest.mark.parametrize("what", CASES)
def test_the_best_model_is_written(folder, what):
    after, options = CASES[what]
    code, err = interrupt(folder, after, 2, *options, "--model", "model.skops", "--report", "page.html")
    assert code == 130, err
    assert "interrupted; the best model found is written to model.skops, there is no report" in err
    assert "Traceback" not in err
    assert not (folder / "page.html").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    model = load(folder / "model.skops")[-1]
    assert model.status_ == "interrupted" or model.certificate_.relative_gap <= model.tol
    assert model.certificate_.dual <= model.certificate_.primal
    assert set(model.predict(np.zeros((2, 8)))) <= {"plus", "minus"}
