"""``kernelweave fit --novelty``: no target in, usual and outlier out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from kernelweave import MKLOneClass
from kernelweave.cli import main
from kernelweave.inspection import final_estimator
from kernelweave.persistence import load


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["name"] = [f"row {i}" for i in range(80)]
    frame["colour"] = np.where(rng.random(80) < 0.5, "red", "blue")
    frame.to_csv(tmp_path / "normal.csv", index=False)
    frame.loc[:4, ["a", "b", "c"]] += 8.0
    frame.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def test_fit_inspect_and_predict(table):
    done = run(
        "fit", table / "normal.csv", "--novelty", 0.1, "--id", "name", "--model", table / "m.skops", "--json"
    )
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["model"], facts["task"], facts["norm"]) == ("MKLOneClass", "novelty", "uniform")
    assert facts["loss"] == "OneClass(nu=0.1)"
    model = load(table / "m.skops")
    assert isinstance(final_estimator(model), MKLOneClass)
    shown = run("inspect", table / "m.skops")
    assert "MKLOneClass (what is usual), fitted on 80 rows" in shown.output
    assert "the objective at this nu is -" in shown.output
    done = run("predict", table / "m.skops", table / "new.csv", "-o", table / "out.csv")
    assert done.exit_code == 0, done.output
    found = pd.read_csv(table / "out.csv")
    assert list(found.columns) == ["name", "predicted", "decision"]
    assert set(found["predicted"][:5]) == {"outlier"}
    assert (found["predicted"][5:] == "usual").mean() > 0.8
    assert ((found["decision"] >= 0) == (found["predicted"] == "usual")).all()
    refused = run("report", table / "m.skops", table / "normal.csv", "-o", table / "r.html")
    assert refused.exit_code == 1
    assert "fitted without a target" in refused.output


def test_views_and_a_norm(table):
    words = [
        "fit",
        table / "normal.csv",
        "--novelty",
        0.2,
        "--drop",
        "name",
        "--view",
        "x=a,b",
        "--view",
        "y=c",
    ]
    done = run(*words, "--norm", 2, "--kernels", "gaussian", "--json")
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["views"]) == {"x", "y"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "a"], "--drop its column"), (["--C", "1"], "--novelty and --C"), (["--loss", "hinge"], "--loss"),
        (["--noise-rate", "0.1"], "--noise-rate"), (["--report", "r.html"], "--novelty has none"),
        (["--task", "regression"], "--task"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(table, options, said):
    done = run("fit", table / "normal.csv", "--novelty", 0.1, *options, "--model", table / "m.skops")
    assert done.exit_code == 2
    assert said in done.output


def test_a_share_and_a_target_are_asked_for(table):
    assert "share in (0, 1]" in run("fit", table / "normal.csv", "--novelty", 2, "--json").output
    done = run("fit", table / "normal.csv", "--json")
    assert done.exit_code == 2
    assert "Missing option '--target'" in done.output
