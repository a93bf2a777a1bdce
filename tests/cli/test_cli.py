"""The command line."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import kernelweave
from kernelweave import MKLClassifier, kernels
from kernelweave.cli import _demo, main
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
        [sys.executable, "-m", "kernelweave", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith(kernelweave.__version__)


def test_compile_makes_the_common_fits(runner):
    done = runner.invoke(main, ["compile", "--jobs", "1"])
    assert done.exit_code == 0
    assert "regression" in done.output


def test_compile_names_fits_that_cannot_be_made(runner, monkeypatch):
    made = []
    monkeypatch.setattr("kernelweave.cli.compiling.COMMON", [lambda: made.append("common")])
    monkeypatch.setattr("kernelweave.cli.compiling.OTHERS", [lambda: made.append("other"), lambda: 1 / 0])
    done = runner.invoke(main, ["compile", "--jobs", "1"])
    assert done.exit_code == 0
    assert made == ["common"]
    done = runner.invoke(main, ["compile", "--all", "--jobs", "1"])
    assert made == ["common", "common", "other"]
    assert "everything" in done.output
    assert done.exit_code != 0
    assert "division by zero" in done.output


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


def test_demo(runner, tmp_path):
    result = runner.invoke(main, ["demo", "--quick"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "kernelweave_demo.png").stat().st_size > 10_000
    for said in (
        "seed 0",
        "MKL, l1 norm",
        "SVM on the best view",
        "random forest",
        "told which views are real, the mean kernel reaches",
        "range over 5 refits",
        "4 decoys: one of these",
        "no non-negative weights that sum to one and no 10 functions with the same weights on these kernels can",
        "passes over the",
        "'newton'",
        "kernelweave_demo.png",
    ):
        assert said in " ".join(result.output.split())
    # a log, not a terminal: no bar that rewrites its line, nothing too wide to read
    assert "\r" not in result.output
    assert max(map(len, result.output.splitlines())) <= 110


@pytest.fixture
def quick_work(monkeypatch):
    """The demo without its work: it only writes a file."""
    monkeypatch.setattr(_demo, "run", lambda output, **options: output.write_text("picture"))


@pytest.mark.usefixtures("quick_work")
def test_demo_renews_its_own_picture_and_no_other(runner, tmp_path):
    (tmp_path / "kernelweave_demo.png").write_text("of the last run")
    assert runner.invoke(main, ["demo"]).exit_code == 0
    assert (tmp_path / "kernelweave_demo.png").read_text() == "picture"
    mine = tmp_path / "mine.png"
    mine.write_text("precious")
    result = runner.invoke(main, ["demo", "--output", "mine.png"])
    assert result.exit_code == 2
    assert "--force" in result.output
    assert mine.read_text() == "precious"
    assert runner.invoke(main, ["demo", "--output", "mine.png", "--force"]).exit_code == 0
    assert mine.read_text() == "picture"


@pytest.mark.usefixtures("quick_work")
@pytest.mark.parametrize(
    ("output", "complaint"),
    [("nowhere/a.png", "does not exist"), ("a.txt", "cannot draw"), ("a", "without suffix")],
)
def test_demo_refuses_before_any_work(runner, tmp_path, output, complaint):
    result = runner.invoke(main, ["demo", "--output", output])
    assert result.exit_code == 2
    assert complaint in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", _demo.SUFFIXES)
def test_demo_draws_every_format(tmp_path, suffix):
    X, y = np.arange(12.0)[:, None], np.repeat([0, 1], 6)
    fitted = MKLClassifier(kernels.gaussian([1.0, 2.0])).fit(X, y)
    weights = pd.DataFrame(
        {"weight": [0.9, 0.1], "low": [0.8, 0.0], "high": [1.0, 0.2]}, index=["real", "decoy"]
    )
    _demo.draw(weights, ("real",), [_demo.Outcome("MKL (here)", fitted, 0.9, 0.1)], tmp_path / f"a{suffix}")
    start = (tmp_path / f"a{suffix}").read_bytes()[:600]
    assert {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<svg"}[suffix] in start


def test_the_demo_shows_what_it_is_for():
    """The real views have the weight, and MKL is ahead of what sees all views: docs/results/demo.md has ten seeds."""
    split = _demo.split_digits(3)
    every, told = _demo.methods(split)
    learnt, _, _, mean, svc = (_demo.fit(name, classifier, split) for name, classifier in every)
    assert learnt.accuracy > max(mean.accuracy, svc.accuracy) + 0.03
    assert sum(learnt.classifier.view_weights_[name] for name in split.real) > 0.98
    knowing = _demo.fit(*told[1], split)
    assert abs(knowing.accuracy - learnt.accuracy) < 0.02
    for name, columns in split.views.items():
        real = name.rpartition(" of ")[2]
        same = np.corrcoef(split.X[:, columns][:, 5], split.X[:, split.views[real]][:, 5])[0, 1]
        assert (abs(same) < 0.3) == (name not in split.real)


def test_options_come_in_groups_and_no_summary_is_cut_off(runner):
    groups = re.findall(r"^(\w[\w ]*):$", runner.invoke(main, ["fit", "--help"]).output, flags=re.MULTILINE)
    assert groups == ["Data", "Text tables", "Views and kernels", "Fit", "Output", "Options"]
    said = runner.invoke(main, ["--help"]).output
    assert "..." not in said.partition("Commands:")[2]
    whole = " ".join(said.split())
    for command in main.commands.values():
        assert inspect.getdoc(command.callback).split("\n\n")[0].replace("\n", " ").rstrip(".") in whole
