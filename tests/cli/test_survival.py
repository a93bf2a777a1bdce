"""Times to an event at the command line: what is read, refused, written and predicted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernelweave import MKLSurvival, metrics, persistence
from kernelweave import kernels as kw

from .commands import call

RNG = np.random.default_rng(0)
N = 90
X = RNG.normal(size=(N, 6))
DIES, LEAVES = RNG.exponential(np.exp(-1.2 * X[:, 0] - X[:, 3])), RNG.exponential(3.0, N)
DATA = pd.DataFrame(X, columns=[*(f"rna_{k}" for k in range(3)), *(f"dna_{k}" for k in range(3))])
DATA.insert(0, "status", np.where(DIES <= LEAVES, "1:DECEASED", "0:LIVING"))
DATA.insert(0, "months", np.minimum(DIES, LEAVES))
DATA.insert(0, "patient", [f"P{k}" for k in range(N)])
DATA["age"] = np.round(60 + 9 * RNG.normal(size=N))
DATA["centre"] = np.where(np.arange(N) % 2, "north", "south")
EVENTS = int(np.sum(DIES <= LEAVES))
FIT = ("--time", "months", "--event", "status", "--id", "patient", "--drop", "centre")
VIEWS = ("--view", "rna=rna_*", "--view", "dna=dna_*", "--kernels", "linear", "--C", "0.1")


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    DATA.to_csv("data.csv", index=False)


def fails(*words, code=1):
    """Return what a command that fails says, on one line."""
    return " ".join(call("fit", "data.csv", *words, code=code).stderr.split())


def test_the_model_is_that_of_the_library():
    said = call("fit", "data.csv", *FIT, *VIEWS, "--always", "age", "--model", "m.skops")
    assert f"note: {EVENTS} of {N} rows have the event (status = '1:DECEASED')" in said.stderr
    assert f"for 'status' (a time to an event, which {EVENTS} rows have)" in said.stdout
    assert "nats per event" in said.stdout
    call("predict", "m.skops", "data.csv", "--at", "0.5,2", "-o", "p.csv")
    table = (DATA.iloc[:, 3:10] - DATA.iloc[:, 3:10].mean()) / DATA.iloc[:, 3:10].std(ddof=0)
    bank = kw.per_view({"rna": [0, 1, 2], "dna": [3, 4, 5]}, kw.linear()) + kw.always(
        kw.linear().on([6]), 100.0
    )
    y = metrics.survival(DATA["months"], DATA["status"])
    own = MKLSurvival(bank, C=0.1).fit(table.to_numpy(), y)
    found = pd.read_csv("p.csv")
    assert found.columns.tolist() == ["patient", "risk", "S(0.5)", "S(2)"]
    np.testing.assert_allclose(found["risk"], own.predict(table.to_numpy()), atol=1e-3)
    curves = np.array([curve([0.5, 2.0]) for curve in own.predict_survival_function(table.to_numpy())])
    np.testing.assert_allclose(found[["S(0.5)", "S(2)"]], curves, atol=1e-3)
    # weights are shares of what was learnt, the given one is none
    facts = json.loads(call("inspect", "m.skops", "--json").stdout)
    assert (facts["task"], facts["events"], facts["kernels_used"]) == ("survival", EVENTS, 3)
    assert list(facts["views"]) == ["rna", "dna"]
    assert sum(facts["views"].values()) == pytest.approx(1.0)
    assert facts["views"]["rna"] == pytest.approx(own.weights_[0] / own.weights_[:2].sum(), abs=1e-3)
    assert list(persistence.about(Path("m.skops"))["note"]["views"]) == ["rna", "dna", "always"]
    note = call("predict", "m.skops", "data.csv", "--at", "1,99", "-o", "q.csv").stderr
    assert "nobody was followed beyond" in note
    assert "S(99) is the value there" in note
    assert "--at is for models" not in note


def test_a_search_with_strata_and_a_report():
    words = (
        "--time",
        "months",
        "--event",
        "status",
        "--strata",
        "centre",
        "--view",
        "rna=rna_*",
        "--view",
        "dna=dna_*",
    )
    more = (
        "--kernels",
        "linear",
        "--C",
        "0.1",
        "--norms",
        "l1",
        "2",
        "--scoring",
        "concordance",
        "--folds",
        "2",
    )
    said = call(
        "fit", "data.csv", *words, *more, "--drop", "patient", "--model", "m.skops", "--report", "r.html"
    ).stdout
    assert re.search(r"concordance 0\.\d{3} on held-out folds", said)
    page = Path("r.html").read_text()
    for part in ('id="survival"', "Kaplan-Meier", "one curve for each stratum", "ridge Cox", 'id="horizons"'):
        assert part in page
    assert 'id="subsets"' not in page  # refits on some views know no strata
    call("predict", "m.skops", "data.csv", "--at", "1", "-o", "p.csv")
    found = pd.read_csv("p.csv").sort_values("risk")
    centre = DATA["centre"].to_numpy()[found.index]
    for name in ("north", "south"):  # within a stratum the curves are in the order of the risks
        assert (np.diff(found["S(1)"].to_numpy()[centre == name]) <= 1e-12).all()
    DATA.drop(columns="centre").to_csv("new.csv", index=False)
    assert (
        "no column 'centre'"
        in call("predict", "m.skops", "new.csv", "--at", "1", "-o", "q.csv", code=1).stderr
    )
    call("predict", "m.skops", "new.csv", "-o", "q.csv")  # the risk needs none
    call(
        "fit",
        "data.csv",
        *words,
        "--kernels",
        "linear",
        "--C",
        "1",
        "--drop",
        "patient",
        "--model",
        "n.skops",
    )
    said = call("compare", "m.skops", "n.skops", "data.csv", "--folds", "2").stdout
    assert "Uno" in said
    assert re.search("On held-out folds .* (cannot be told apart|is better than)", said)


def test_what_counts_as_the_event():
    coded = DATA.assign(status=np.where(DIES <= LEAVES, 2, 1))
    coded.to_csv("data.csv", index=False)
    assert "the values 1, 2: say which is the event, --event-value VALUE; all others" in fails(*FIT, *VIEWS)
    said = call("fit", "data.csv", *FIT, *VIEWS, "--event-value", "2").stderr
    assert f"{EVENTS} of {N} rows have the event (status = 2)" in said
    assert "'3' is not among the values" in fails(*FIT, *VIEWS, "--event-value", "3")
    DATA.assign(status=DIES <= LEAVES).to_csv("data.csv", index=False)
    assert f"{EVENTS} of {N} rows" in call("fit", "data.csv", *FIT, *VIEWS, "--event-value", "true").stderr
    assert f"{EVENTS} of {N} rows" in call("fit", "data.csv", *FIT, *VIEWS).stderr
    DATA.assign(status="0:LIVING").to_csv("data.csv", index=False)
    assert "say which is the event" in fails(*FIT, *VIEWS)
    DATA.assign(status=0).to_csv("data.csv", index=False)
    assert "no row of 'status' has the event" in fails(*FIT, *VIEWS)
    gaps = DATA.copy()
    gaps.loc[3, "months"] = np.nan
    gaps.to_csv("data.csv", index=False)
    assert "1 times are missing, infinite or negative, the first in row 3" in fails(*FIT, *VIEWS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "months"), "--time and --event go together"),
        (("--strata", "centre", "--target", "status"), "--time and --event go together"),
        (("--time", "months", "--event", "months"), "are both 'months'"),
        (("--time", "months", "--event", "status", "--id", "status"), "--id and --event are both 'status'"),
        (("--time", "months", "--event", "status", "--drop", "months"), "column of --time"),
        (("--time", "months", "--event", "status", "--target", "age"), "--time and --target do not go together"),
        (("--time", "months", "--event", "status", "--loss", "hinge"), "--loss takes one of"),
        (("--time", "months", "--event", "status", "--scoring", "accuracy"), "--scoring takes one of likelihood"),
        (("--time", "months", "--event", "status", "--always", "months"), "--always names 'months'"),
        (("--time", "months", "--event", "status", "--always", ","), "--always takes columns"),
        (("--time", "months", "--event", "status", "--always", "age", "--kernels", "smkl"), "--always and --kernels smkl"),
    ],
)  # fmt: skip
def test_wrong_commands(words, said):
    assert said in fails(*words, code=2)


def test_wrong_columns_and_too_few_events():
    few = ("--time", "months", "--event", "status", "--kernels", "linear")
    assert "no column 'stauts' for --event. Did you mean 'status'?" in fails(
        "--time", "months", "--event", "stauts", "--kernels", "linear"
    )
    DATA.assign(status=["dead"] + ["alive"] * (N - 1)).to_csv("data.csv", index=False)
    assert "--C cv needs two rows with the event" in fails(*few, "--drop", "patient")
    gaps = DATA.copy()
    gaps.loc[[2, 5], "centre"] = None
    gaps.to_csv("data.csv", index=False)
    assert "'centre' of --strata is missing in 2 rows" in fails(
        *few, "--drop", "patient", "--strata", "centre"
    )
    call("fit", "data.csv", "--target", "age", "--task", "regression", "--drop", "patient", "--kernels", "linear",
         "--drop", "status", "--C", "1", "--norm", "l1", "--always", "months", "--model", "other.skops")  # fmt: skip
    said = call("predict", "other.skops", "data.csv", "--at", "1", "-o", "p.csv", code=2).stderr
    assert "--at is for models of times to an event" in said
    assert (
        "--at takes times"
        in call("predict", "other.skops", "data.csv", "--at", "soon", "-o", "p.csv", code=2).stderr
    )


def test_whole_groups_and_gene_sets():
    Path("sets.gmt").write_text("RNA\tx\trna_0\trna_1\trna_2\nDNA\tx\tdna_0\tdna_1\tdna_2\n")
    said = call(
        "fit", "data.csv", "--time", "months", "--event", "status", "--fold-groups", "patient", "--drop", "centre",
        "--gmt", "sets.gmt", "--always", "age", "--loss", "censored_squared", "--norm", "2", "--folds", "3",
    ).stdout  # fmt: skip
    assert "minus the loss" in said
    assert re.search(r"RNA +0\.\d", said)
    assert re.search(r"DNA +0\.\d", said)
    assert "The weight of 1 kernel was given" in said
