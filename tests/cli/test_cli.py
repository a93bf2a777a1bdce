"""The command line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import kernelweave
from kernelweave.cli import main
from kernelweave.losses import registry as losses
from kernelweave.norms import registry as norms
from kernelweave.solvers import registry as solvers


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """A runner in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def test_version(runner):
    result = runner.invoke(main, ["--version"])
    assert result.exit_code == 0
    assert kernelweave.__version__ in result.output


def test_help_names_the_commands_and_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from kernelweave.cli import main\n"
        "print(CliRunner().invoke(main, ['--help']).output)\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout
    assert "methods" in done.stdout


def test_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "kernelweave.cli", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith(kernelweave.__version__)


def test_methods_lists_every_registry(runner):
    result = runner.invoke(main, ["methods"])
    assert result.exit_code == 0
    first_words = {line.split()[0] for line in result.output.splitlines() if line.strip()}
    assert {*solvers, *losses, *norms} <= first_words
    assert "needs norm='l1'" in result.output


@pytest.mark.parametrize("columns", ["80", "200"])
def test_methods_fits_the_terminal(runner, columns):
    result = runner.invoke(main, ["methods"], env={"COLUMNS": columns})
    assert max(map(len, result.output.splitlines())) <= min(int(columns), 110)


def test_demo(runner):
    result = runner.invoke(main, ["demo", "--quick"])
    assert result.exit_code == 0, result.output
    assert os.path.getsize("kernelweave_demo.png") > 10_000
    # the picture under the default name belongs to the demo: a second run renews it
    assert runner.invoke(main, ["demo", "--quick", "--seed", "1"]).exit_code == 0
    for said in (
        "seed 0",
        "MKL, l1 norm",
        "SVM on the mean kernel",
        "ridge on the mean kernel, C by leave-one-out",
        "SVM on the best kernel",
        "on worst area",
        "of the optimum, proved",
        "passes over the",
        "'newton'",
        "kernelweave_demo.png",
    ):
        assert said in result.output
    # a log, not a terminal: no bar that rewrites its line, nothing too wide to read
    assert "\r" not in result.output
    assert max(map(len, result.output.splitlines())) <= 110


def test_demo_does_not_write_over_files(runner):
    with open("mine.png", "w") as file:
        file.write("precious")
    result = runner.invoke(main, ["demo", "--quick", "--output", "mine.png"])
    assert result.exit_code == 2
    assert "--force" in result.output
    with open("mine.png") as file:
        assert file.read() == "precious"
    assert runner.invoke(main, ["demo", "--quick", "--output", "mine.png", "--force"]).exit_code == 0
    with open("mine.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize(
    ("output", "complaint"),
    [("nowhere/a.png", "does not exist"), ("a.txt", "cannot draw"), ("a", "without suffix")],
)
def test_demo_refuses_before_any_work(runner, output, complaint):
    result = runner.invoke(main, ["demo", "--output", output])
    assert result.exit_code == 2
    assert complaint in result.output
    assert "Compiling" not in result.output


def test_demo_writes_other_formats(runner):
    assert runner.invoke(main, ["demo", "--quick", "--output", "a.svg"]).exit_code == 0
    with open("a.svg") as file:
        assert "<svg" in file.read(2000)
