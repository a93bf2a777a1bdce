"""Nothing assumes Linux: the package imports and fits where POSIX modules and functions are missing, as on Windows."""

from __future__ import annotations

import subprocess
import sys

#: what Windows does not have; imported or called without a way around, each of these would raise
WITHOUT_POSIX = """
import os, sys
MISSING = ("resource", "fcntl", "pwd", "grp", "termios")
class Blocked:
    def find_spec(self, name, path=None, target=None):
        # what other packages need on this system they have loaded by now
        if name in MISSING:
            raise ModuleNotFoundError(name, name=name)

import importlib, pkgutil, subprocess, multiprocessing, tempfile, uuid, webbrowser
import numpy, scipy.sparse, sklearn.svm, sklearn.model_selection, joblib, pandas, matplotlib.figure, skops.io, click, tqdm.auto
for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for name in ("sysconf", "getuid", "geteuid", "fchmod", "sched_getaffinity", "fork"):
    if hasattr(os, name):
        delattr(os, name)

import kernelweave, kernelweave_studies
optional = ("torch", "dask", "pyarrow", "crowdkit", "distributed")
count = 0
for module in (
    *pkgutil.walk_packages(kernelweave.__path__, "kernelweave."),
    *pkgutil.walk_packages(kernelweave_studies.__path__, "kernelweave_studies."),
):
    if module.name.rpartition(".")[2] == "__main__":
        continue
    try:
        importlib.import_module(module.name)
        count += 1
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in optional:
            raise
from kernelweave._numerics.resources import default_budget
from kernelweave import MKLClassifier
from kernelweave.persistence import load, save
default_budget()
X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
model = MKLClassifier(checkpoint="fit.npz").fit(X, y)
save(model, "model.skops")
print(count, load("model.skops").predict([[0.1], [2.9]]))
"""


def test_without_posix(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    count, answer = done.stdout.split(maxsplit=1)
    assert int(count) > 150  # else this has imported nothing
    assert answer.strip() == "[0 1]"
