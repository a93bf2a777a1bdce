"""fit, predict, inspect and report: tables in, models and pages out, and a sentence where something does not fit."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from kernelweave.persistence import about, load

from .commands import call

VIEWS = """
[views.nuclei]
columns = ["worst_*"]
kernels = ["linear", "gaussian"]
widths = [1, 2]

[views.rest]
columns = ["mean_radius", "site"]
kernels = ["linear"]
"""


def table(n=120):
    data = load_breast_cancer(as_frame=True)
    frame = data.data.iloc[:n].rename(columns=lambda name: name.replace(" ", "_"))
    frame = frame[[c for c in frame if c.startswith("worst_")] + ["mean_radius"]].copy()
    frame["site"] = np.array(["north", "south", None], dtype=object)[np.arange(n) % 3]
    frame.iloc[3, 2] = np.nan
    frame["patient"] = [f"P{i}" for i in range(n)]
    frame["diagnosis"] = np.array(["malignant", "benign"])[data.target[:n]]
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    frame = table()
    frame.iloc[:90].to_csv(tmp_path / "data.csv", index=False)
    frame.iloc[90:].drop(columns="diagnosis").to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "views.toml").write_text(VIEWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "data.csv", "--target", "diagnosis", "--id", "patient")


def test_three_commands(folder):
    call(
        *FIT,
        "--views",
        "views.toml",
        "--C",
        "1",
        "--model",
        "model.skops",
        "--report",
        "report.html",
        "--folds",
        "2",
    )
    assert "nuclei" in call("inspect", "model.skops").output
    call("predict", "model.skops", "new.csv", "-o", "out.csv")
    assert sorted(p.name for p in folder.iterdir()) == [
        "data.csv", "model.skops", "new.csv", "out.csv", "report.html", "views.toml",
    ]  # fmt: skip
    found = pd.read_csv("out.csv")
    assert list(found.columns) == ["patient", "predicted diagnosis", "decision for malignant"]
    assert found["patient"].tolist() == [f"P{i}" for i in range(90, 120)]
    assert np.mean(found["predicted diagnosis"] == table()["diagnosis"].iloc[90:].to_numpy()) > 0.8
    page = (folder / "report.html").read_text()
    assert "linear on nuclei" in page
    command = (
        "kernelweave fit data.csv --target diagnosis --id patient --views views.toml --C 1 --folds 2 "
        "--model model.skops --report report.html"
    )
    assert f"<pre>{command}</pre>" in page


def test_predictions_are_the_models_in_another_process(folder):
    call(*FIT, "--views", "views.toml", "--C", "1", "--model", "model.skops")
    model = load("model.skops")
    columns = list(about("model.skops")["note"]["columns"])
    new = pd.read_csv("new.csv")[columns]
    new["site"] = new["site"].fillna("missing").astype(object)
    subprocess.run(
        [sys.executable, "-m", "kernelweave.cli", "predict", "model.skops", "new.csv", "-o", "out.parquet"],
        check=True,
    )
    found = pd.read_parquet("out.parquet")
    np.testing.assert_array_equal(found["decision for malignant"], model.decision_function(new))


def test_the_default_treatment(folder):
    call(*FIT, "--C", "1", "--model", "model.skops")
    model = load("model.skops")
    made = model[:-1].transform(
        pd.read_csv("data.csv").assign(site=lambda f: f["site"].fillna("missing").astype(object))
    )
    raw = pd.read_csv("data.csv")["worst_perimeter"]
    filled = raw.fillna(raw.median()).to_numpy()
    names = list(model[:-1].get_feature_names_out())
    np.testing.assert_allclose(
        made[:, names.index("worst_perimeter")], (filled - filled.mean()) / filled.std()
    )
    assert names[-3:] == ["site_missing", "site_north", "site_south"]
    np.testing.assert_array_equal(made[:3, -3:], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "npz"])
def test_formats(folder, suffix):
    frame = pd.read_csv("data.csv").drop(columns=["patient", "site"]).fillna(0.0)
    name = f"other.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(name)
    elif suffix == "npz":
        np.savez(
            name,
            worst=frame.filter(like="worst").to_numpy(),
            diagnosis=frame["diagnosis"].to_numpy(dtype=str),
        )
    else:
        frame.to_csv(name, sep="," if suffix == "csv" else "\t", index=False)
    facts = json.loads(
        call("fit", name, "--target", "diagnosis", "--C", "1", "--model", "m.skops", "--json").output
    )
    assert facts["kernels"] == 6
    output = "out.npz" if suffix == "npz" else f"out.{suffix}"
    call("predict", "m.skops", name, "-o", output)
    if suffix == "npz":
        assert np.load(output)["predicted diagnosis"].shape == (90,)


def test_numpy_table(folder):
    X, y = load_breast_cancer(return_X_y=True)
    np.save("x.npy", np.column_stack([X[:80, :5], y[:80]]))
    facts = json.loads(call("fit", "x.npy", "--target", "x5", "--C", "1", "--json").output)
    assert facts["classes"] == ["0.0", "1.0"]


def test_kernel_matrices(folder):
    frame = pd.read_csv("data.csv")
    X = frame.filter(like="worst").fillna(0.0).to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for name, K in (("near", np.exp(-np.square(X[:, None] - X).sum(-1) / 8)), ("flat", X @ X.T)):
        np.save(f"{name}.npy", K[:70, :70])
        np.save(f"{name}_new.npy", K[70:, :70])
    frame[["diagnosis"]].iloc[:70].to_csv("labels.csv", index=False)
    command = ["fit", "labels.csv", "--target", "diagnosis", "--C", "1", "--gram", "near.npy", "flat.npy"]
    facts = json.loads(
        call(*command, "--model", "g.skops", "--report", "g.html", "--folds", "2", "--json").output
    )
    assert {w["kernel"] for w in facts["weights"]} <= {"near", "flat"}
    call("predict", "g.skops", "--gram", "near_new.npy", "flat_new.npy", "-o", "out.csv")
    model = load("g.skops")
    rows = [np.load("near_new.npy"), np.load("flat_new.npy")]
    np.testing.assert_allclose(
        pd.read_csv("out.csv")["decision for malignant"], model.decision_function(rows)
    )
    call(
        "report",
        "g.skops",
        "labels.csv",
        "--gram",
        "near.npy",
        "flat.npy",
        "-o",
        "again.html",
        "--folds",
        "2",
        "--quiet",
    )
    assert "give as many with --gram" in call("predict", "g.skops", "-o", "o.csv", code=1).output
    short = call("fit", "data.csv", "--target", "diagnosis", "--gram", "near.npy", "--json", code=1).output
    assert "near is a 70 x 70 matrix, but data.csv has 90 rows" in short


def test_views_from_files(folder):
    frame = pd.read_csv("data.csv")
    frame[["patient", "diagnosis"]].to_csv("labels.csv", index=False)
    shuffled = frame.sample(frac=1.0, random_state=0)
    shuffled[["patient", "worst_radius", "worst_texture"]].to_csv("nuclei.csv", index=False)
    shuffled[["patient", "mean_radius", "site"]].to_csv("rest.csv", index=False)
    (folder / "files.toml").write_text(
        'id = "patient"\n[views.nuclei]\nfile = "nuclei.csv"\n[views.rest]\nfile = "rest.csv"\n'
    )
    split = json.loads(
        call(
            "fit",
            "labels.csv",
            "--target",
            "diagnosis",
            "--views",
            "files.toml",
            "--C",
            "1",
            "--model",
            "m.skops",
            "--json",
        ).stdout
    )
    views = ["--view", "nuclei=worst_radius,worst_texture", "--view", "rest=mean_radius,site"]
    joined = json.loads(call(*FIT, *views, "--C", "1", "--json").stdout)
    assert split["certificate"] == joined["certificate"]
    assert split["weights"] == joined["weights"]
    call("predict", "m.skops", "labels.csv", "--views", "files.toml", "-o", "out.csv")
    frame.iloc[:5].to_csv("nuclei.csv", index=False)
    said = call(
        "fit", "labels.csv", "--target", "diagnosis", "--views", "files.toml", "--json", code=1
    ).output
    assert "nuclei.csv has no row with patient = 'P5' (85 of 90 are missing)" in said


def test_regression_noise_and_chosen_C(folder):
    facts = json.loads(
        call(
            *FIT[:3],
            "mean_radius",
            "--drop",
            "patient",
            "--kernels",
            "default",
            "--json",
            "--task",
            "regression",
            "--tol",
            "0.05",
        ).stdout
    )
    assert facts["classes"] is None
    assert np.isclose(facts["C"], np.logspace(-2, 3, 10)).any()
    assert facts["model"] == "MKLRegressorCV"
    facts = json.loads(call(*FIT, "--noise-rate", "estimate", "--json").stdout)
    assert facts["model"] == "NoisyLabelMKLClassifier"
    assert 0 <= facts["noise_rate"] < 0.5
    facts = json.loads(
        call(*FIT, "--json", "--norm", "1.5", "--loss", "logistic", "--model", "p.skops", "--C", "1").stdout
    )
    assert facts["norm"] == 1.5
    call("predict", "p.skops", "new.csv", "-o", "p.csv")
    shares = pd.read_csv("p.csv").filter(like="probability of")
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_report_of_a_saved_model(folder):
    call(*FIT, "--C", "1", "--model", "model.skops")
    call("report", "model.skops", "data.csv", "-o", "report.html", "--folds", "2", "--quiet")
    assert "diagnosis from data.csv" in (folder / "report.html").read_text()
    pd.read_csv("data.csv").iloc[:20].to_csv("few.csv", index=False)
    assert "few.csv has 20 rows" in call("report", "model.skops", "few.csv", "-o", "r2.html", code=1).output


def test_a_norm_with_parameters(folder):
    grouped = (
        "--views",
        "views.toml",
        "--C",
        "1",
        "--norm",
        "grouped:l1,1.5",
        "--model",
        "g.skops",
        "--json",
    )
    facts = json.loads(call(*FIT, *grouped).stdout)
    assert "inner=1.5" in str(facts["norm"])
    said = call(*FIT, "--C", "1", "--norm", "at_most:1,2,3", "--model", "x.skops", code=2).output
    assert "at_most does not take 3 parameters" in said


def test_json_of_inspect(folder):
    call(*FIT, "--C", "1", "--views", "views.toml", "--model", "model.skops")
    facts = json.loads(call("inspect", "model.skops", "--json").stdout)
    assert sum(facts["views"].values()) == pytest.approx(1.0)
    assert facts["certificate"]["dual"] <= facts["certificate"]["primal"]
    assert facts["status"] == "converged"


def test_json_of_methods():
    rooms = json.loads(call("methods", "--json").output)
    assert "newton" in rooms["solvers"]
    assert rooms["losses"]["hinge"]["tasks"] == ["classification"]


# ---- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "new.csv"], "exists: give another --model, or --force"),
        (["--model", "data.csv"], "--model data.csv is a file that is read: give another --model"),
        (["--model", "nowhere/m.skops"], "the folder nowhere of --model does not exist"),
        (["--json", "--folds", "1"], "1 is not in the range"),
        (["--json", "--kernels", "smlk"], "got 'smlk'. Did you mean 'smkl'?"),
        (["--json", "--kernels", "sigmoid"], "rbf is gaussian, poly is polynomial"),
        (["--json", "--kernels", "smkl", "--view", "a=site"], "--view and --kernels smkl both say"),
        (["--json", "--views", "views.toml", "--kernels", "linear"], "--views and --kernels both say"),
        (["--json", "--C", "many"], "--C takes a number, got 'many'"),
        (["--json", "--norm", "l7x"], "l7x"),
        (["--json", "--norms", "l1", "l7x"], "--norms l7x"),
        (["--json", "--norm", "l1", "--norms", "l1", "2"], "--norm fixes the norm and --norms chooses it"),
        (["--json", "--loss", "hinje"], "--loss: unknown loss 'hinje'"),
        (["--json", "--scoring", "balanced"], "Did you mean 'balanced_accuracy'?"),
        (["--json", "--scoring", "roc_auc", "--C", "1"], "--scoring says how C is chosen, but --C fixes it"),
        (["--json", "--class-weight", "heavy"], "--class-weight takes 'balanced' or CLASS=WEIGHT"),
        (["--json", "--noise-rate", "much"], "--noise-rate takes a number"),
        (["--json", "--noise-rate", "0.6"], "--noise-rate is a share in [0, 0.5)"),
        (["--json", "--missing", "mean"], "--missing is about views"),
        (["--json", "--min-size", "3"], "--min-size is about the groups"),
        (["--json", "--separator", "; "], "--separator takes one character"),
        (["--json", "--view", "a"], "--view takes NAME=COLUMN"),
        (["--json", "--view", "a=site", "--view", "a=site"], "two views are called 'a'"),
        (["--model", "-"], "a model cannot be written to the standard output"),
        (["--json", "--report", "-"], "both write to the standard output"),
    ],
)
def test_wrong_commands(folder, arguments, said):
    assert said in call(*FIT, *arguments, code=2).output
    assert (folder / "data.csv").read_text().startswith("worst_radius")


@pytest.mark.parametrize(
    "option", ["--C 1", "--norm 2", "--norms l1 2", "--loss logistic", "--scoring roc_auc", "--missing mean"]
)
def test_noise_rates_refuse_what_they_would_ignore(folder, option):
    views = ("--view", "a=worst_*", "--view", "b=site") if "missing" in option else ()
    said = call(*FIT, *views, "--noise-rate", "0.1", *option.split(), "--json", code=2).output
    assert f"--noise-rate and {option.split()[0]} do not go together" in said


def test_force(folder):
    call(*FIT, "--C", "1", "--model", "m.skops")
    call(*FIT, "--C", "2", "--model", "m.skops", "--force")
    assert load("m.skops")[-1].C == 2.0
    call("predict", "m.skops", "new.csv", "-o", "out.csv")
    assert "exists" in call("predict", "m.skops", "new.csv", "-o", "out.csv", code=2).output
    assert "suffix is none of" in call("predict", "m.skops", "new.csv", "-o", "out.xls", code=2).output


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        ({}, ["--target", "diagnose"], "no column 'diagnose' for --target. Did you mean 'diagnosis'?"),
        ({}, ["--id", "name"], "has no column 'name' for --id"),
        ({"note": [f"text {i}" for i in range(90)]}, [], "column 'note' has 90 different texts, more than 30: leave it out with --drop 'note'"),
        ({"empty": np.nan}, [], "column 'empty' is empty"),
        ({"wide": np.inf}, [], "column 'wide' holds infinite numbers"),
        ({"diagnosis": "a"}, [], "has a single class, 'a'"),
        ({"diagnosis": [None] + ["a", "b"] * 44 + ["a"]}, [], "is missing in 1 rows, first in row 0"),
        ({}, ["--drop", "age"], "there is no column 'age' to --drop"),
        ({}, ["--view", "a=gene_*"], "view 'a': no column is called 'gene_*'"),
        ({}, ["--task", "regression"], "holds texts: regression needs numbers"),
        ({"diagnosis": ["rare"] + ["a", "b"] * 44 + ["a"]}, [], "--C cv needs at least two rows of every class"),
    ],
)  # fmt: skip
def test_data_that_do_not_fit(folder, change, arguments, said):
    pd.read_csv("data.csv").assign(**change).to_csv("data.csv", index=False)
    assert said in call(*FIT, "--model", "m.skops", *arguments, code=1).output
    assert not (folder / "m.skops").exists()


def test_dates_are_refused_by_name(folder):
    frame = pd.read_csv("data.csv").assign(seen=pd.Timestamp("2020-01-01"))
    frame.to_parquet("dates.parquet")
    said = call("fit", "dates.parquet", "--target", "diagnosis", "--drop", "patient", "--json", code=1).output
    assert "column 'seen' is of the kind datetime64" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("views = 3", "names no view"),
        ("[views.a", "is no TOML file"),
        ('other = 1\n[views.a]\ncolumns = ["site"]', "unknown entry 'other'"),
        ('[views.a]\ncolumn = ["site"]', "unknown entry 'column'"),
        (
            '[views.a]\nkernels = ["gauss"]',
            "unknown kernel 'gauss'; there are cosine, gaussian, laplacian, linear, polynomial",
        ),
        ('[views.a]\nwidths = ["wide"]', "widths is ['wide'], which it cannot be"),
        ('[views.a]\nfile = "a.csv"', "need the column that joins them"),
    ],
)
def test_views_that_do_not_fit(folder, content, said):
    (folder / "views.toml").write_text(content)
    assert said in call(*FIT, "--views", "views.toml", "--json", code=1).output


def test_files_that_do_not_fit(folder):
    assert "there is no file x.csv" in call("fit", "x.csv", "--target", "y", "--json", code=1).output
    assert "there is no file x.skops" in call("inspect", "x.skops", code=1).output
    (folder / "x.xls").write_text("")
    assert "is none of .csv" in call("fit", "x.xls", "--target", "y", "--json", code=1).output
    (folder / "x.csv").write_text("")
    assert "x.csv is empty" in call("fit", "x.csv", "--target", "y", "--json", code=1).output
    (folder / "x.csv").write_text("a,y\n")
    assert "x.csv has no rows" in call("fit", "x.csv", "--target", "y", "--json", code=1).output
    np.save("object.npy", np.array([{1}], dtype=object), allow_pickle=True)
    assert "cannot read object.npy" in call("fit", "object.npy", "--target", "y", "--json", code=1).output
    (folder / "x.parquet").write_text("no parquet")
    assert "cannot read x.parquet" in call("fit", "x.parquet", "--target", "y", "--json", code=1).output
    (folder / "m.skops").write_bytes(b"\x80\x04junk")
    assert "looks like a pickle" in call("predict", "m.skops", "new.csv", "-o", "o.csv", code=1).output


def test_new_tables_that_do_not_fit(folder):
    call(*FIT, "--C", "1", "--model", "m.skops")
    new = pd.read_csv("new.csv")
    new.drop(columns=["worst_radius", "site"]).to_csv("less.csv", index=False)
    said = call("predict", "m.skops", "less.csv", "-o", "o.csv", code=1).output
    assert "no column 'worst_radius', which the model needs (2 columns are missing)" in said
    new.assign(worst_radius="wide").to_csv("text.csv", index=False)
    assert (
        "'worst_radius' should hold numbers"
        in call("predict", "m.skops", "text.csv", "-o", "o.csv", code=1).output
    )
    assert "give a table" in call("predict", "m.skops", "-o", "o.csv", code=2).output
    assert not (folder / "o.csv").exists()
    new.assign(site="elsewhere").to_csv("unseen.csv", index=False)  # an unknown category is all zeros
    call("predict", "m.skops", "unseen.csv", "-o", "o.csv")


def test_a_fit_that_stops_early_says_so(folder, monkeypatch):
    from kernelweave.solvers.newton import Newton

    monkeypatch.setattr(Newton, "default_max_iter", 1)
    done = call(*FIT, "--tol", "1e-12", "--model", "m.skops", code=3)
    assert "warning: the iterations allowed were used up" in done.output
    assert (folder / "m.skops").exists()


def test_a_fit_that_is_interrupted_before_it_has_anything_writes_nothing(folder, monkeypatch):
    from kernelweave.solvers.newton import Newton

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Newton, "init", interrupted)
    said = call(*FIT, "--C", "1", "--model", "m.skops", code=130).output
    assert "interrupted; nothing was written" in said
    assert not (folder / "m.skops").exists()


def test_an_interrupted_fit_writes_the_best_it_found(folder, monkeypatch):
    from kernelweave.solvers.newton import Newton

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Newton, "step", interrupted)
    options = ("--C", "1", "--tol", "1e-9", "--model", "m.skops", "--report", "r.html")
    said = call(*FIT, *options, code=130).output
    assert "interrupted; the best model found is written to m.skops, there is no report" in said
    assert not (folder / "r.html").exists()
    assert load(folder / "m.skops")[-1].status_ == "interrupted"
    facts = json.loads(call("inspect", "m.skops", "--json").stdout)
    assert facts["status"] == "interrupted"


def test_help_has_examples():
    for command in ("fit", "predict", "inspect", "report"):
        assert f"kernelweave {command} " in call(command, "--help").output
    assert "Exit codes" in call("fit", "--help").output


def test_a_table_of_raw_columns_is_standardised_and_nothing_is_said_of_scales(folder):
    facts = json.loads(call(*FIT, "--C", "1", "--model", "model.skops", "--json").stdout)
    assert facts["status"] == "converged"
    assert "findings" not in facts
