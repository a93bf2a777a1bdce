"""Processes that fit, forked from one that has imported the library already: importing takes longer than most of them.

A process that is to be judged from its first line on (what is imported when, what the environment does) is started by
``faults/children.py`` or ``subprocess`` instead.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path

import kernelweave

#: Forks itself for every line that it reads.  The child goes on below the loop, so that an exception, ``sys.exit`` or a
#: signal ends it as it would end ``python -c``.
SERVER = """
import gc, json, os, signal, sys, types
import numpy, pandas, scipy.optimize, sklearn.datasets, sklearn.model_selection, sklearn.pipeline, sklearn.svm
import kernelweave.cli, kernelweave.persistence
from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
gc.collect()
gc.freeze()
for line in sys.stdin:
    request = json.loads(line)
    pid = os.fork()
    if not pid:
        break
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    os._exit(0)
signal.signal(signal.SIGINT, signal.default_int_handler)
for number, path in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
    os.dup2(os.open(path, os.O_RDWR), number)
os.chdir(request["folder"])
sys.argv[:] = ["-c", *request["arguments"]]
main = sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile(request["code"], "<string>", "exec"), vars(main))
"""


@cache
def server() -> subprocess.Popen[bytes]:
    """Start the process that forks, once in a process of pytest.  Nothing is buffered: ``select`` sees every line."""
    source = str(Path(kernelweave.__file__).parents[1])
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    started = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip

    def stop() -> None:
        started.stdin.close()
        started.wait()

    atexit.register(stop)
    return started


class Forked:
    """A process that runs a piece of code, with the methods of ``subprocess.Popen`` that the tests call.

    One at a time: where a test failed and did not wait for its process, that is ended before the next one starts.
    """

    running: Forked | None = None

    def __init__(self, code: str, *arguments: object, folder: object = ".") -> None:
        if Forked.running is not None:
            Forked.running.communicate(timeout=0.0)
        Forked.running = self
        self.files = [tempfile.NamedTemporaryFile("r+") for _ in range(2)]  # noqa: SIM115 (closed when it has ended)
        out, err = (file.name for file in self.files)
        request = {"code": textwrap.dedent(code), "arguments": [str(one) for one in arguments]}
        request |= {"folder": str(Path(folder).resolve()), "out": out, "err": err}
        server().stdin.write(json.dumps(request).encode() + b"\n")
        self.pid = int(server().stdout.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        if self.returncode is None and select.select([server().stdout], [], [], 0.0)[0]:
            self.returncode = int(server().stdout.readline())
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for the end, and return what was written to stdout and stderr."""
        if self.returncode is None and not select.select([server().stdout], [], [], timeout)[0]:
            self.send_signal(signal.SIGKILL)
        while self.poll() is None:
            select.select([server().stdout], [], [])
        Forked.running = None
        written = [file.read() for file in self.files]
        for file in self.files:
            file.close()
        return written[0], written[1]


def start(code: str, *arguments: object, folder: object = ".") -> Forked | subprocess.Popen[str]:
    """Start a process that runs the code; where forking is not safe after so many imports, a new interpreter."""
    if sys.platform == "linux":
        return Forked(code, *arguments, folder=folder)
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(
    code: str, *arguments: object, folder: object = ".", timeout: float = 240.0, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run the code in a process of its own; return its exit code and what it wrote, raise where it failed."""
    process = start(code, *arguments, folder=folder)
    out, err = process.communicate(timeout=timeout)
    assert not check or process.returncode == 0, f"exit code {process.returncode}\n{out}\n{err}"
    return subprocess.CompletedProcess([], process.returncode, out, err)
