"""Processes that are forked end as new interpreters do: by themselves, by an exception, an exit code or a signal."""

from __future__ import annotations

import signal
import sys

import pytest

import forked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere these are new interpreters")


def test_ends(tmp_path):
    done = forked.run("import os, sys; print(os.getcwd(), sys.argv[1:], __name__)", 1, "a b", folder=tmp_path)
    assert done.stdout == f"{tmp_path} ['1', 'a b'] __main__\n"
    for code, expected in (("raise ValueError('no')", 1), ("import sys; sys.exit(130)", 130)):
        assert forked.run(code, check=False).returncode == expected
    assert "ValueError: no" in forked.run("raise ValueError('no')", check=False).stderr
    with pytest.raises(AssertionError, match="exit code 3"):
        forked.run("import os; os._exit(3)")


def test_signals():
    process = forked.start("import time; print('waits', flush=True); time.sleep(60)")
    while not process.files[0].read():
        assert process.poll() is None
        process.files[0].seek(0)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30.0)[1]
    assert process.returncode == -signal.SIGINT
    assert forked.run("import time; time.sleep(60)", timeout=0.1, check=False).returncode == -signal.SIGKILL
    left = forked.start("import time; time.sleep(60)")  # by a test that failed before it waited
    assert forked.run("print(1)").stdout == "1\n"
    assert left.returncode == -signal.SIGKILL
