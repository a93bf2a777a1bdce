"""What a type checker makes of a program that uses the library: the checker runs on two small ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernelweave

RIGHT = """
import numpy as np

import kernelweave
from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw

X = np.random.default_rng(0).normal(size=(20, 3))
y = np.repeat([0, 1], 10)
single: kw.Kernel = kw.gaussian(np.float32(0.5))
several: kw.Stack = kw.gaussian([0.5, 1, 2], relative=True)
degrees: kw.Stack = kw.polynomial()
matrix = kw.summed(single, kw.linear())(X)
bank = several[1:] + kw.laplacian(range(1, 3)) + kw.nystroem(several[0], rank=5) + kw.linear().on(0)
model = MKLClassifier(bank, norm="l1", C=10.0).fit(X, y)
print(model.predict(X), matrix.shape, kernelweave.__version__, kernelweave.norms.Lp(2.0))
print(MKLRegressor(degrees, C=1.0).fit(X, X[:, 0]).predict(X))
"""
#: line -> what must be said of it
WRONG = {
    "MKLClassifier(kw.linear(), c=10.0)": 'Unexpected keyword argument "c" for "MKLClassifier"',
    "MKLClassifier(normalise=None)": 'Unexpected keyword argument "normalise" for "MKLClassifier"',
    "kw.gaussian(sigma=1.0)": 'Unexpected keyword argument "sigma" for overloaded function "gaussian"',
    'kw.gaussian("wide")': 'Argument 1 to "gaussian" has incompatible type "str"',
    "kernelweave.MKLClasifier()": 'Module has no attribute "MKLClasifier"',
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the checker says, line by line, of the right program and of the wrong one."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "right.py").write_text(RIGHT)
    head = [
        "import kernelweave",
        "from kernelweave import MKLClassifier",
        "from kernelweave import kernels as kw",
    ]
    (folder / "wrong.py").write_text("\n".join([*head, *WRONG]) + "\n")
    source = Path(kernelweave.__file__).parents[1]
    found = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--follow-imports=silent",
            "--cache-dir", "cache", "--hide-error-context", "--no-error-summary", "right.py", "wrong.py",
        ],
        cwd=folder, capture_output=True, text=True,
        env={**os.environ, "MYPYPATH": "" if source.name == "site-packages" else str(source)},
    )  # fmt: skip
    assert not found.stderr, found.stderr
    return [line for line in found.stdout.splitlines() if ": error:" in line]


def test_a_right_program_passes(said):
    assert [line for line in said if line.startswith("right.py")] == []


@pytest.mark.parametrize("line", list(WRONG))
def test_a_wrong_line_is_found(line, said):
    number = 4 + list(WRONG).index(line)
    assert [WRONG[line] in error for error in said if error.startswith(f"wrong.py:{number}:")] == [True]


def test_the_right_program_runs():
    exec(RIGHT, {})
