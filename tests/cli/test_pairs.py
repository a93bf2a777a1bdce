"""Pairs from tables of objects: the same fit as in Python, predictions of new objects, and what is refused before any work."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLRegressor, MKLRegressorCV, PairKFold, Pairs
from kernelweave import kernels as kw
from kernelweave.persistence import load

from .commands import call

FIT = ("fit", "--left", "drugs.csv", "--right", "cells.csv", "--pairs", "pairs.csv", "--target", "response")
FIXED = ("--C", "3", "--kernels", "linear")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The example, its pairs as a table of drugs by cells, classes, and a fitted model."""
    folder = tmp_path_factory.mktemp("pairs")
    call("example", "pairs", "-o", folder, "--force")
    pairs = pd.read_csv(folder / "pairs.csv")
    drugs = pd.read_csv(folder / "drugs.csv")
    pairs.pivot(index="drug", columns="cell", values="response").rename_axis(
        columns=None
    ).reset_index().to_csv(folder / "grid.csv", index=False)
    high = np.where(pairs["response"] > pairs["response"].median(), "yes", "no")
    pairs.assign(response=high).rename(columns={"drug": "compound"}).to_csv(
        folder / "classes.csv", index=False
    )
    drugs.iloc[:, [0, *range(1, 8)]].to_csv(folder / "first.csv", index=False)
    drugs.iloc[:, [0, *range(8, 15)]][::-1].to_csv(folder / "second.csv", index=False)
    drugs[:2].assign(drug=["N1", "N2"]).to_csv(folder / "new_drugs.csv", index=False)
    return folder


@pytest.fixture(autouse=True)
def inside(study, tmp_path, monkeypatch):
    for path in study.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)


def read():
    """Return the pairs of the example as ``Pairs`` of standardised tables, and the responses."""
    drugs, cells, pairs = (pd.read_csv(f"{name}.csv") for name in ("drugs", "cells", "pairs"))
    left, right = (StandardScaler().fit_transform(table.iloc[:, 1:]) for table in (drugs, cells))
    names = {"left_names": drugs["drug"], "right_names": cells["cell"]}
    return Pairs(left, right, pairs[["drug", "cell"]], **names), pairs["response"].to_numpy()


def test_the_fit_is_that_of_python():
    done = call(*FIT, *FIXED, "--model", "m.skops", "--json")
    X, y = read()
    model = MKLRegressor(kw.pairs(kw.linear(), kw.linear()), C=3.0).fit(X, y)
    facts = json.loads(done.stdout)
    np.testing.assert_allclose(sorted(load("m.skops")[-1].weights_), sorted(model.weights_), atol=1e-8)
    assert facts["certificate"]["primal"] == pytest.approx(model.certificate_.primal)
    assert facts["pairs"]["coverage"] == repr(X)
    table = sum(facts["pairs"]["left_kernels"].values()), sum(facts["pairs"]["right_kernels"].values())
    np.testing.assert_allclose(table, 1.0)
    call("predict", "m.skops", "new_pairs.csv", "-o", "p.csv")
    found = pd.read_csv("p.csv")
    assert list(found) == ["drug", "cell", "predicted response"]
    new = Pairs(X.left, X.right, found[["drug", "cell"]])
    np.testing.assert_allclose(found["predicted response"], model.predict(new), rtol=1e-6)


def test_new_objects_come_from_a_file():
    """New names with what is known of two drugs: what the kernels with identity add is gone, the rest is the same."""
    call(*FIT, *FIXED, "--model", "m.skops")
    asked = pd.DataFrame({"cell": ["C01", "C07", "C01"], "drug": ["N1", "N2", "D05"]})
    asked.to_csv("asked.csv", index=False)
    said = call("predict", "m.skops", "asked.csv", "-o", "p.csv", code=1).stderr
    assert "asked.csv names 2 left objects that the model does not have: 'N1' (row 0), 'N2' (row 1)" in said
    assert "give their table with --left" in said
    call("predict", "m.skops", "asked.csv", "--left", "new_drugs.csv", "-o", "p.csv")
    X, y = read()
    model = MKLRegressor(kw.pairs(kw.linear(), kw.linear()), C=3.0).fit(X, y)
    rows = X.left.objects[[0, 1, 4]]
    new = Pairs(rows, X.right, np.array([["N1", "C01"], ["N2", "C07"], ["D05", "C01"]]),
                left_names=["N1", "N2", "D05"])  # fmt: skip
    np.testing.assert_allclose(pd.read_csv("p.csv")["predicted response"], model.predict(new), rtol=1e-6)
    assert "--left and --right are about pairs" in call(
        "predict", other_model(), "asked.csv", "--left", "new_drugs.csv", "-o", "q.csv", code=2
    ).stderr.replace("\n", " ")


def other_model():
    """Fit a model of single samples."""
    pd.DataFrame({"y": np.arange(30.0) % 7, "x": np.arange(30.0)}).to_csv("single.csv", index=False)
    call("fit", "single.csv", "--target", "y", "--task", "regression", "--C", "1", "--model", "single.skops")
    return "single.skops"


def test_scores_are_those_of_the_setting():
    facts = json.loads(
        call(*FIT, "--setting", "left", "--kernels", "linear", "--folds", "3", "--json").stdout
    )
    X, y = read()
    folds = PairKFold(3, setting="left", random_state=0)
    model = MKLRegressorCV(kw.pairs(kw.linear(), kw.linear()), cv=folds, center=False).fit(X, y)
    assert facts["cross_validated_score"] == pytest.approx(model.best_score_, rel=1e-6)
    assert facts["cross_validated_score"] > facts["score_of_guessing"] + 0.3
    words = call(*FIT, "--setting", "left", "--kernels", "linear", "--folds", "3").stdout
    assert "what you may expect for a new drug: R2 0." in words
    assert "left kernel" in words


def test_a_table_of_left_by_right_objects_is_the_same():
    first = json.loads(call(*FIT, *FIXED, "--json").stdout)
    grid = [word if word != "pairs.csv" else "grid.csv" for word in FIT]
    second = json.loads(call(*grid, *FIXED, "--json", "--model", "m.skops").stdout)
    assert second["certificate"]["primal"] == pytest.approx(first["certificate"]["primal"])
    assert second["training_rows"] == 300
    assert "report written" in call("report", "m.skops", "grid.csv", "-o", "r.html", "--folds", "2").stdout


def test_several_tables_texts_and_matrices():
    (X, y), drugs = read(), pd.read_csv("drugs.csv")
    smiles = ["CCO" * (1 + k % 4) + "N" * (k % 3) for k in range(len(drugs))]
    pd.read_csv("cells.csv").assign(kind=["a", "b"] * 10).to_csv("cells.csv", index=False)
    pd.read_csv("first.csv").assign(smiles=smiles).to_csv("first.csv", index=False)
    words = ("--left", "drugs=first.csv", "--left", "more=second.csv", "--objects", "smiles=spectrum:2", "--right",
             "cells.csv", "--pairs", "pairs.csv", "--target", "response", *FIXED)  # fmt: skip
    facts = json.loads(call("fit", *words, "--model", "m.skops", "--json").stdout)
    assert {"linear on drugs", "linear on more", "spectrum(k=2) on smiles"} <= set(
        facts["pairs"]["left_kernels"]
    )
    call("predict", "m.skops", "new_pairs.csv", "--right", "cells.csv", "-o", "p.csv")
    assert call("predict", "m.skops", "new_pairs.csv", "-o", "q.csv").exit_code == 0
    np.testing.assert_allclose(
        *(pd.read_csv(f"{name}.csv")["predicted response"] for name in "pq"), rtol=1e-8
    )
    said = call("predict", "m.skops", "new_pairs.csv", "--left", "mor=second.csv", "-o", "r.csv", code=2)
    assert "Did you mean 'more'?" in said.stderr
    Z = StandardScaler().fit_transform(drugs.iloc[:, 1:])
    np.save("gram.npy", Z @ Z.T)
    call(*FIT, "--left-gram", "gram.npy", *FIXED[:2], "--right-kernels", "linear", "--model", "g.skops")
    cells = np.column_stack([X.right.objects, np.tile(np.eye(2), (10, 1))])
    right = Pairs(X.left.objects, cells, X.index, left_names=X.left.names, right_names=X.right.names)
    model = MKLRegressor(kw.pairs(kw.linear(), kw.linear()), C=3.0).fit(right, y)
    np.testing.assert_allclose(sorted(load("g.skops")[-1].weights_), sorted(model.weights_), atol=1e-6)
    call("predict", "g.skops", "new_pairs.csv", "-o", "g.csv")
    assert "kernel matrices of all objects" in call(
        "predict", "g.skops", "new_pairs.csv", "--left", "new_drugs.csv", "-o", "h.csv", code=2
    ).stderr.replace("\n", " ")


def test_classes_whose_column_is_called_otherwise():
    words = [word if word != "pairs.csv" else "classes.csv" for word in FIT]
    assert "say with --left-id which column" in call(*words, code=1).stderr.replace("\n", " ")
    done = call(
        *words, "--left-id", "compound", "--kernels", "linear", "--folds", "2", "--model", "m.skops", "--json"
    )
    facts = json.loads(done.stdout)
    assert (facts["loss"], facts["classes"]) == ("logistic", ["no", "yes"])
    assert facts["cross_validated_score"] > facts["score_of_guessing"] + 0.2
    assert "named by 'compound' of classes.csv and by 'drug' of drugs.csv" in done.stderr
    pd.read_csv("new_pairs.csv").rename(columns={"drug": "compound"}).to_csv("new.csv", index=False)
    call("predict", "m.skops", "new.csv", "-o", "p.csv")
    assert "probability of yes" in pd.read_csv("p.csv")
    assert (
        "only models of single samples" in call("compare", "m.skops", "x.skops", "classes.csv", code=1).stderr
    )
    assert (
        "what you may expect for a new pair of a known compound and a known cell"
        in call("inspect", "m.skops").stdout
    )


def edited(name, change):
    """Change a table of the study."""
    frame = pd.read_csv(name, dtype=str)
    change(frame).to_csv(name, index=False)


def test_unknown_ids_are_listed_with_their_rows():
    edited(
        "pairs.csv",
        lambda f: f.assign(drug=f["drug"].where(~f.index.isin([3, 17]), "D99").where(f.index != 5, "d01")),
    )
    said = call(*FIT, code=1).stderr.replace("\n", " ")
    assert "names 2 left objects that drugs.csv does not have: 'D99' (rows 3, 17), 'd01' (row 5)" in said
    assert "'d01' here is 'D01' there" in said


def test_a_table_of_pairs_has_rows_too():
    edited(
        "grid.csv",
        lambda f: f.rename(columns={"C03": "C99"}).assign(drug=f["drug"].where(f.index != 2, "D98")),
    )
    said = call(*(word if word != "pairs.csv" else "grid.csv" for word in FIT), code=1).stderr
    assert "1 left object that drugs.csv does not have: 'D98' (row 2)" in said.replace("\n", " ")


def test_pairs_that_are_there_twice():
    edited("pairs.csv", lambda f: pd.concat([f, f.iloc[[4]]]))
    drug, cell, _ = pd.read_csv("pairs.csv").iloc[4]
    assert f"has 1 pair more than once: {drug!r} with {cell!r} (rows 4, 300)" in call(
        *FIT, code=1
    ).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("drugs.csv", lambda f: pd.concat([f, f[:1]]), "drugs.csv has two rows with drug = 'D01'"),
        ("drugs.csv", lambda f: f.assign(drug=f["drug"].where(f.index != 2)), "drugs.csv has no 'drug' in row 2"),
        ("pairs.csv", lambda f: f.assign(cell=f["cell"].where(f.index != 2)), "pairs.csv has no 'cell' in row 2"),
        ("cells.csv", lambda f: f[["cell"]], "cells.csv has no column beside 'cell' to learn from"),
        ("cells.csv", lambda f: pd.concat([f[:3], f[["cell"]][3:4], f[4:]]), "have nothing in 'cells', such as 'C04'"),
        ("pairs.csv", lambda f: f.rename(columns={"response": "ic50"}), "pairs.csv has no column 'response'"),
        ("pairs.csv", lambda f: f.assign(response=f["response"].where(f.index != 1)), "is missing in 1 rows"),
        ("pairs.csv", lambda f: f.assign(response=np.where(f.index < 1, "a", "b")), "no training pair of some class"),
        ("pairs.csv", lambda f: f[f["drug"] == "D01"], "folds of 1 left objects"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(name, change, said):
    edited(name, change)
    assert said in call(*FIT, "--setting", "left", "--model", "m.skops", code=1).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "--target", "y"), "Missing argument 'DATA'"),
        (("fit", "drugs.csv", "--target", "y", "--left", "drugs.csv"), "--left is about pairs"),
        (("fit", "drugs.csv", *FIT[1:]), "give DATA or --pairs, not both"),
        (FIT[:3] + FIT[5:], "--pairs needs --right"),
        ((*FIT, "--always", "gene_01"), "--always and --pairs do not go together"),
        ((*FIT, "--gram", "a.npy"), "do not go together: give --left-gram"),
        ((*FIT, "--view", "a=b"), "do not go together: give --left NAME=FILE"),
        ((*FIT, "--left", "second.csv"), "further ones have names, --left NAME=second.csv"),
        ((*FIT, "--kernels", "smkl"), "kernels of pairs are given by name"),
        ((*FIT, "--left-gram", "a.npy", "--left-kernels", "linear"), "a table of ids alone"),
        ((*FIT[:6], "-", *FIT[7:]), "--pairs is read twice"),
        ((*FIT, "--setting", "drug"), "'drug' is not one of"),
    ],
)  # fmt: skip
def test_commands_that_cannot_be_meant(words, said):
    assert said in " ".join(call(*words, code=2).stderr.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--left-id", "medicine"), "no column 'medicine' for --left-id"),
        (("--drop", "gene_99"), "no table of objects has the column 'gene_99' of --drop"),
        (("--objects", "smiles=spectrum:3"), "no table of objects has the column 'smiles' of --objects"),
        (("--scoring", "roc_auc"), "--scoring roc_auc does not go with this target"),
        (("--right-id", "drug", "--left-id", "drug"), "has no column 'drug' for --right-id"),
    ],
)  # fmt: skip
def test_names_that_are_not_there(words, said):
    assert said in call(*FIT, *words, code=1).stderr.replace("\n", " ")
