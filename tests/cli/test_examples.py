"""Example tables: every command that an example prints runs on its files, and finds what was put into them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernelweave import SimilarityClassifier

from .commands import call

#: as they are listed
EXAMPLES = re.findall(r"^  (\w+)  +\S", call("example").output, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def printed(name, *words):
    """Write an example; return the files and the commands that are printed."""
    lines = call("example", name, *words).output.splitlines()
    files = [line.removesuffix(" written") for line in lines if line.endswith(" written")]
    return files, [shlex.split(line.strip())[1:] for line in lines if line.startswith("  kernelweave ")]


def test_the_list():
    assert EXAMPLES == ["omics", "gene_sets", "noisy", "similarities", "texts", "tables", "survival", "pairs"]
    assert not list(Path().iterdir())
    assert "Did you mean 'noisy'?" in call("example", "nosy", code=2).stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_that_is_printed_runs(name):
    files, commands = printed(name)
    assert sorted(map(Path, files)) == sorted(Path(name).iterdir())
    assert commands
    for words in commands:
        quick = ["--folds", "2"] if words[0] == "fit" else []
        done = call(*words, *quick)
        assert done.stdout
        if words[0] == "predict":
            new = [word for word in words if "new" in word and word.endswith(".csv")]
            assert len(pd.read_csv(words[words.index("-o") + 1])) == len(pd.read_csv(new[0]))


def test_files_are_not_written_over():
    files, _ = printed("noisy", "-o", "a study")
    before = {name: Path(name).read_bytes() for name in files}
    assert "exists" in call("example", "noisy", "-o", "a study", code=2).stderr
    Path(files[-1]).write_text("mine")
    assert "exists" in call("example", "noisy", "-o", "a study", code=2).stderr
    assert Path(files[-1]).read_text() == "mine"
    again, commands = printed("noisy", "-o", "a study", "--force")
    assert {name: Path(name).read_bytes() for name in again} == before  # the same tables every time
    assert "a study/data.csv" in commands[0]


def test_omics_tells_what_was_planted():
    _, (fit, *_) = printed("omics")
    done = call(*fit[: fit.index("--model")], "--json")
    facts = json.loads(done.stdout)
    views = facts["views"]
    assert views["genes"] > 0.3
    assert views["proteins"] > 0.2
    assert views["clinic"] < 0.2
    assert facts["cross_validated_score"] > facts["score_of_guessing"] + 0.15
    assert "views that rows lack altogether" in done.stderr


def test_omics_in_three_files_is_the_same_study():
    """The table of views.toml and its files, and the options that name these files, hold the same patients."""
    printed("omics")
    words = ("fit", "omics/patients.csv", "--target", "diagnosis", "--C", "1", "--missing", "mean", "--json")
    toml = json.loads(call(*words, "--views", "omics/views.toml").stdout)
    views = ("--view", "genes=omics/genes.csv", "--view", "proteins=omics/proteins.csv")
    options = json.loads(call(*words, "--id", "patient", *views, "--view", "clinic=age,stage").stdout)
    assert list(toml["views"]) == list(options["views"]) == ["genes", "proteins", "clinic"]
    assert toml["training_rows"] == options["training_rows"] == 160
    for before in ("", "new_"):
        whole = pd.read_csv(f"omics/{'data' if not before else 'new'}.csv").set_index("patient")
        for name in ("patients", "genes", "proteins"):
            part = pd.read_csv(f"omics/{before}{name}.csv").set_index("patient")
            pd.testing.assert_frame_equal(part, whole.loc[part.index, part.columns])


def test_gene_sets_tell_which_two_matter():
    _, (fit, _) = printed("gene_sets")
    facts = json.loads(call(*fit[: fit.index("--model")], "--json").stdout)
    assert facts["views"]["DIVISION"] + facts["views"]["STRESS"] > 0.8


def test_wrong_labels_are_as_many_as_estimated():
    printed("noisy")
    truth = pd.read_csv("noisy/truth.csv")
    assert truth["was_wrong"][:150].mean() == pytest.approx(0.15, abs=0.04)
    given = pd.read_csv("noisy/data.csv")["label"]
    np.testing.assert_array_equal(
        given.to_numpy() != truth["label"][:150].to_numpy(), truth["was_wrong"][:150]
    )


def test_alignment_scores_are_no_kernel_and_can_be_learnt():
    printed("similarities")
    scores, labels = np.load("similarities/scores.npy"), pd.read_csv("similarities/labels.csv")["family"]
    np.testing.assert_array_equal(scores, scores.T)
    assert np.linalg.eigvalsh(scores)[0] < -100
    assert "not positive semi-definite" in call(
        "fit", "similarities/labels.csv", "--target", "family", "--gram", "similarities/scores.npy", code=1
    ).stderr.replace("\n", " ")
    fitted = SimilarityClassifier().fit(scores, labels)
    assert np.mean(fitted.predict(np.load("similarities/new_scores.npy"))
                   == np.array(["kinase", "globin", "zinc"])[np.arange(90, 120) % 3]) > 0.9  # fmt: skip


def test_survival_and_pairs_have_what_their_columns_say():
    printed("survival")
    data = pd.read_csv("survival/data.csv")
    assert (data["os_months"] > 0).all()
    seen = data["os_status"] == "deceased"
    assert 0.4 < seen.mean() < 0.8
    assert set(data["os_status"]) == {"deceased", "living"}
    printed("pairs")
    pairs = pd.concat([pd.read_csv("pairs/pairs.csv"), pd.read_csv("pairs/new_pairs.csv")])
    assert not pairs.duplicated(["drug", "cell"]).any()
    assert set(pairs["drug"]) == set(pd.read_csv("pairs/drugs.csv")["drug"])
    assert set(pairs["cell"]) == set(pd.read_csv("pairs/cells.csv")["cell"])


def test_two_models_are_compared():
    printed("omics")
    words = (
        "--id",
        "patient",
        "--missing",
        "mean",
        "--C",
        "1",
        "--kernels",
        "linear",
        "--view",
        "genes=gene_*",
    )
    fit = ("fit", "omics/data.csv", "--target")
    call(*fit, "diagnosis", *words, "--view", "clinic=age,stage", "--model", "genes.skops")
    proteins = ("--view", "proteins=protein_*")
    call(*fit, "diagnosis", *words, *proteins, "--model", "both.skops")
    call(*fit, "stage", *words, *proteins, "--model", "stage.skops")
    said = call(
        "compare", "genes.skops", "both.skops", "omics/data.csv", "-o", "c.html", "--folds", "3"
    ).stdout
    assert re.search(r"clinic +0\.\d{3} +-\n", said)
    sentence = re.search(r"On held-out folds genes and both .*|On held-out folds both is better .*", said)[0]
    assert sentence in Path("c.html").read_text()
    assert (
        "nothing is to be compared"
        in call("compare", "genes.skops", "stage.skops", "omics/data.csv", code=1).stderr
    )
    assert "different names" in call("compare", "both.skops", "both.skops", "omics/data.csv", code=2).stderr
    assert (
        "has no column 'diagnosis'"
        in call("compare", "genes.skops", "both.skops", "omics/new.csv", code=1).stderr
    )
