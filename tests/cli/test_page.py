"""docs/command_line.md keeps its promises: every command on it runs, and so does the one that a report prints."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from kernelweave.cli import main
from kernelweave.persistence import about, load

from .commands import call

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
LINES = re.findall(r"^    ((?:cat|kernelweave) (?:.*\\\n)*.*)$", PAGE, flags=re.MULTILINE)
COMMANDS = [line.replace("\\\n", " ") for line in LINES]
N = 36


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A small table with two views."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    genes = pd.DataFrame(rng.normal(size=(N, 6)), columns=[f"gene_{j}" for j in range(6)])
    clinic = pd.DataFrame({"age": rng.integers(30, 80, N), "stage": np.array(["I", "II"])[np.arange(N) % 2]})
    label = np.where(genes["gene_0"] + 0.5 * rng.normal(size=N) > 0, "sick", "well")
    pd.concat([genes, clinic], axis=1).assign(label=label).to_csv(folder / "data.csv", index=False)
    return folder


def test_the_page_has_commands():
    assert len(COMMANDS) >= 25
    assert sum("| kernelweave" in command for command in COMMANDS) == 1


def test_every_command_runs(tmp_path, monkeypatch):
    """In the order of the page, from an empty folder: the tables are those that its first commands write."""
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        words = shlex.split(command)
        if words[0] == "kernelweave":
            # the report refits on every fold: as many as it takes to have all of its parts
            quick = ["--folds", "2"] if {"--report", "report", "compare"} & set(words) else []
            call(*words[1:], *quick)
            continue
        program = f'kernelweave() {{ {shlex.quote(sys.executable)} -m kernelweave.cli "$@"; }}; '
        done = subprocess.run(["bash", "-c", program + command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(pd.read_csv("predictions.csv")) == len(pd.read_csv("noisy/new.csv"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert f"_KERNELWEAVE_COMPLETE={shell}_source kernelweave" in PAGE
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    runner = CliRunner(env={"_KERNELWEAVE_COMPLETE": f"{shell}_source"})
    done = runner.invoke(main, [], prog_name="kernelweave")
    assert done.exit_code == 0
    assert "_kernelweave_completion" in done.output
    words = {
        "COMP_WORDS": "kernelweave fit --scor",
        "COMP_CWORD": "2",
        "_KERNELWEAVE_COMPLETE": "zsh_complete",
    }
    assert "--scoring" in CliRunner(env=words).invoke(main, [], prog_name="kernelweave").output


@pytest.mark.parametrize(
    "options",
    [
        "--kernels linear --C 1",
        "--view 'genes=gene_*' --view clinic=age,stage --kernels linear --norms l1 2 --scoring roc_auc --folds 2 "
        "--class-weight balanced --drop gene_3",
    ],
)
def test_the_command_of_a_report_runs_again(study, tmp_path, monkeypatch, options):
    shutil.copy(study / "data.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["fit", "data.csv", "--target", "label", *shlex.split(options), "--folds", "2"]
    call(*words, "--model", "m.skops", "--report", "r.html", "--quiet")
    page = Path("r.html").read_text()
    command = unescape(re.search(r"<pre>(.*?)</pre>", page, flags=re.DOTALL)[1])
    assert "None" not in command
    Path("m.skops").rename("first.skops")
    Path("r.html").rename("first.html")
    again = shlex.split(command)
    assert again[0] == "kernelweave"
    call(*again[1:])
    assert about("m.skops")["note"] == about("first.skops")["note"]
    models = [load(name)[-1] for name in ("m.skops", "first.skops")]
    np.testing.assert_allclose(models[0].weights_, models[1].weights_)
    cards = [
        re.search(r'class="cards">(.*?)</ul>', Path(name).read_text())[1] for name in ("r.html", "first.html")
    ]
    assert cards[0] == cards[1]
