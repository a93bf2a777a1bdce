"""Groups of columns from files: gene sets and tables of columns and groups."""

import json

import numpy as np
import pandas as pd
import pytest

from kernelweave.persistence import load

from .commands import call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 6)), columns=[f"G{j}" for j in range(6)])
    frame["state"] = np.where(frame["G0"] + frame["G1"] > 0, "sick", "well")
    frame.to_csv(tmp_path / "cells.csv", index=False)
    (tmp_path / "sets.gmt").write_text("GROWTH\tna\tG0\tG1\tG9\n\nREPAIR\tna\tG1\tG2\nTINY\tna\tG5\tG8\n")
    (tmp_path / "groups.csv").write_text("column,group\nG0,a\nG1,a\nG1,b\nG3,b\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "cells.csv", "--target", "state", "--C", "1", "--loss", "logistic")


def test_gene_sets_are_views_and_what_is_left_out_is_said(folder):
    done = call(*FIT, "--gmt", "sets.gmt", "--min-size", "2", "--json", "--model", "model.skops")
    said = json.loads(done.stdout)
    assert "2 names in 2 groups are no column" in said["notes"][0]
    assert "'TINY'" in said["notes"][0]
    assert said["warnings"] == []
    model = load("model.skops")
    assert model[-1].kernel_names_.tolist() == ["linear on GROWTH", "linear on REPAIR"]
    assert model[-1].weights_[0] > 0.8
    call("predict", "model.skops", "cells.csv", "-o", "out.csv")
    assert len(pd.read_csv("out.csv")) == 80


def test_groups_from_a_table(folder):
    call(*FIT, "--groups", "groups.csv", "--model", "model.skops")
    assert load("model.skops")[-1].kernel_names_.tolist() == ["linear on a", "linear on b"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gmt", "nowhere.gmt"), "nowhere.gmt"),
        (("--gmt", "sets.gmt", "--min-size", "4"), "none of the 3 groups has 4 columns"),
        (("--groups", "cells.csv"), "columns 'column' and 'group'"),
    ],
)
def test_what_is_refused(folder, options, said):
    done = call(*FIT, *options, "--model", "model.skops", code=1)
    assert said in done.stderr


def test_two_kinds_of_groups_are_a_wrong_command(folder):
    done = call(*FIT, "--gmt", "sets.gmt", "--groups", "groups.csv", "--model", "model.skops", code=2)
    assert "--gmt and --groups both say what the kernels are" in done.stderr
