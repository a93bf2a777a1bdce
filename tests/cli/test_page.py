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
LINES = re.findall(r"^    ((?:zcat|kernelweave) (?:.*\\\n)*.*)$", PAGE, flags=re.MULTILINE)
COMMANDS = [line.replace("\\\n", " ") for line in LINES]
TOML = re.search(r"^```toml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)[1]
N = 36


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """All files that the page speaks of."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    genes = pd.DataFrame(rng.normal(size=(N, 6)), columns=[f"gene_{j}" for j in range(6)])
    clinic = pd.DataFrame({"age": rng.integers(30, 80, N), "stage": np.array(["I", "II"])[np.arange(N) % 2]})
    label = np.where(genes["gene_0"] + 0.5 * rng.normal(size=N) > 0, "sick", "well")
    patient = pd.DataFrame({"patient": [f"P{i}" for i in range(N)]})
    data = pd.concat([genes, clinic], axis=1).assign(label=label)
    written = {
        "data.csv": data,
        "new.csv": data.drop(columns="label"),
        "new.csv.gz": data.drop(columns="label"),
        "cells.csv": genes.assign(state=label),
        "labels.csv": patient.assign(label=label),
        "rna.csv": pd.concat([patient, genes.iloc[:, :2].add_prefix("r_")], axis=1).iloc[2:],
        "proteins.csv": pd.concat([patient, genes.iloc[:, 2:].add_prefix("p_")], axis=1),
        "new_rna.csv": pd.concat([patient, genes.iloc[:, :2].add_prefix("r_")], axis=1),
        "visits.csv": data.assign(sick=label, patient=np.arange(N) // 2).drop(columns="label"),
    }
    for name, table in written.items():
        table.to_csv(folder / name, index=False)
    registry = data.assign(age=[str(a) if a % 9 else "?" for a in data["age"]])
    registry.to_csv(folder / "registry.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    spaced = data.to_csv(index=False, sep=" ")
    (folder / "instrument.csv").write_text(f"# exported\n{spaced}# the end\n")
    (folder / "hallmark.gmt").write_text("one\tx\t" + "\t".join(f"gene_{j}" for j in range(6)) + "\tgene_9\n")
    pd.concat([patient, clinic[["age"]]], axis=1).to_csv(folder / "clinical.csv", index=False)
    values = genes.to_numpy()
    for number, columns in enumerate(([0, 1], [2, 3]), start=1):
        matrix = values[:, columns] @ values[:, columns].T
        np.save(folder / f"k{number}.npy", matrix)
        np.save(folder / f"new{number}.npy", matrix[:5])
    return folder


def prepared(command, folder):
    """Make room for the outputs of a command, and put the tables in place that it reads."""
    words = shlex.split(command)
    for option in ("--model", "--report", "-o"):
        if option in words and words[words.index(option) + 1] != "-":
            (folder / words[words.index(option) + 1]).unlink(missing_ok=True)
    (folder / "views.toml").write_text(TOML)
    if "--views" in words:  # there the identifiers are in the table, and one view has a file of its own
        data = pd.read_csv(folder / "data.csv")
        table = data.drop(columns=["age", "stage"], errors="ignore")
        table.assign(patient=[f"P{i}" for i in range(N)]).to_csv(folder / "views_data.csv", index=False)
        words[words.index("data.csv")] = "views_data.csv"
    # there new rows are identifiers, and what they have is in files
    if "predict" in words and "--view" in words and "new.csv" in words:
        pd.read_csv(folder / "labels.csv")[["patient"]].to_csv(folder / "new_patients.csv", index=False)
        words[words.index("new.csv")] = "new_patients.csv"
    if "--report" in words or "report" in words:
        words += [
            "--folds",
            "2",
        ]  # the report refits on every fold: as many as it takes to have all of its parts
    if "demo" in words:
        (folder / "kernelweave_demo.png").unlink(missing_ok=True)
    return words


def test_the_page_has_commands():
    assert len(COMMANDS) >= 18
    assert sum("| kernelweave" in command for command in COMMANDS) == 1


def test_every_command_runs(study, monkeypatch):
    """In the order of the page: predictions are made with the model of the command before them."""
    monkeypatch.chdir(study)
    for command in COMMANDS:
        words = prepared(command, study)
        if words[0] == "kernelweave":
            call(*words[1:])
            continue
        call("fit", "data.csv", "--target", "label", "--C", "1", "--model", "model.skops", "--force")
        program = f'kernelweave() {{ {shlex.quote(sys.executable)} -m kernelweave.cli "$@"; }}; '
        done = subprocess.run(["bash", "-c", program + command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(pd.read_csv("predictions.csv")) == N


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
