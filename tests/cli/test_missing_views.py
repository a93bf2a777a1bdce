"""Views in files of their own, with rows that one of them does not have."""

import numpy as np
import pandas as pd
import pytest

from .commands import call


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    n = 60
    patients = [f"p{i}" for i in range(n)]
    ill = rng.integers(0, 2, n)
    rna = pd.DataFrame(rng.normal(size=(n, 4)) + ill[:, None], columns=[f"g{j}" for j in range(4)])
    protein = pd.DataFrame(rng.normal(size=(n, 3)) + ill[:, None], columns=list("xyz"))
    protein["site"] = rng.choice(["left", "right"], n)
    rna.insert(0, "patient", patients)
    protein.insert(0, "patient", patients)
    pd.DataFrame({"patient": patients, "ill": np.where(ill, "yes", "no")}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    rna.sample(frac=1.0, random_state=0).to_csv(tmp_path / "rna.csv", index=False)
    protein[::3].to_csv(tmp_path / "few.csv", index=False)
    protein[rng.random(n) > 0.3].to_csv(tmp_path / "protein.csv", index=False)
    return tmp_path


def options(study, protein="protein.csv"):
    return [
        "fit", str(study / "labels.csv"), "--target", "ill", "--id", "patient", "--view", f"rna={study / 'rna.csv'}",
        "--view", f"protein={study / protein}", "--C", "1", "--norm", "2", "--model", str(study / "model.skops"),
        "--force",
    ]  # fmt: skip


def test_two_files_with_incomplete_ids(study):
    refused = call(*options(study), code=1)
    assert "are missing): --missing predict" in refused.output
    fitted = call(*options(study), "--missing", "predict")
    found = len(pd.read_csv(study / "protein.csv"))
    assert f"view 'protein': {found} of 60 rows found in" in fitted.output
    new = [str(study / "model.skops"), str(study / "labels.csv"), "-o", str(study / "out.csv"), "--force"]
    call("predict", *new, "--view", f"rna={study / 'rna.csv'}", "--view", f"protein={study / 'protein.csv'}")
    out = pd.read_csv(study / "out.csv")
    truth = pd.read_csv(study / "labels.csv")
    assert list(out["patient"]) == list(truth["patient"])
    assert np.mean(out["predicted ill"] == truth["ill"]) > 0.8
    protein = pd.read_csv(study / "protein.csv").assign(patient=lambda table: "q" + table["patient"])
    protein.to_csv(study / "others.csv", index=False)
    assert "none of the 60 rows: their patient is like 'p0'" in call(
        *options(study, "others.csv"), "--missing", "predict", code=1
    ).output.replace("\n", " ")
    none = call(
        "predict", *new, "--view", f"rna={study / 'rna.csv'}", "--view", f"protein={study / 'others.csv'}"
    )
    assert "none of the 60 new samples has view 'protein'" in none.output
    alone = call("predict", *new, "--view", f"rna={study / 'rna.csv'}")
    assert "none of the 60 new samples has view 'protein'" in alone.output


def test_rows_without_any_value_of_a_view_are_not_filled_in(study):
    labels, rna = pd.read_csv(study / "labels.csv"), pd.read_csv(study / "rna.csv")
    wide = labels.merge(rna, on="patient").merge(pd.read_csv(study / "protein.csv"), on="patient", how="left")
    wide.to_csv(study / "wide.csv", index=False)
    command = [
        "fit", str(study / "wide.csv"), "--target", "ill", "--id", "patient", "--view", "rna=g*", "--view",
        "protein=x,y,z,site", "--C", "1", "--norm", "2", "--model", str(study / "model.skops"), "--force",
    ]  # fmt: skip
    refused = call(*command, code=1)
    assert "view 'protein' is missing for" in refused.output
    call(*command, "--missing", "mean")


@pytest.fixture
def wide(study):
    """One table: a view of 140 columns that ten rows lack, of which one more row lacks a single cell."""
    rng = np.random.default_rng(1)
    table = pd.read_csv(study / "labels.csv")
    signal = np.where(table["ill"] == "yes", 1.0, -1.0)
    genes = pd.DataFrame(rng.normal(size=(60, 3)) + signal[:, None], columns=["g0", "g1", "g2"])
    sites = pd.DataFrame(rng.normal(size=(60, 140)), columns=[f"m{j}" for j in range(140)])
    sites["tissue"] = np.where(signal > 0, "skin", "lung")
    sites.iloc[:10] = np.nan
    sites.iloc[20, 3] = np.nan
    table = pd.concat([table, genes, sites], axis=1)
    table.loc[5, "g1"] = np.nan
    table.to_csv(study / "wide.csv", index=False)
    return study


@pytest.mark.filterwarnings("error:DataFrame is highly fragmented")
@pytest.mark.parametrize(
    ("how", "words"),
    [("predict", "predicted from the other views"), ("mean", "the mean of the training samples")],
)
def test_what_is_said_of_missing_cells_is_what_was_done(wide, how, words):
    command = [
        "fit", wide / "wide.csv", "--target", "ill", "--id", "patient", "--view", "genes=g*", "--view",
        "sites=m*,tissue", "--C", "1", "--norm", "2", "--model", wide / "model.skops", "--force", "--missing", how,
    ]  # fmt: skip
    fitted = call(*command).output
    assert f"views that rows lack altogether are {words} there: 'sites' 10 of 60 rows" in fitted
    # single cells do become the median: one of the genes, one of the sites, and no more
    assert "missing numbers became the median of the training table: 'g1' 1, 'm3' 1 of 60 rows" in fitted
    assert "category of their own" not in fitted
    again = call("inspect", wide / "model.skops").output
    assert words in again
    assert "'m3' 1" in again
    table = pd.read_csv(wide / "wide.csv")
    table.drop(columns=[c for c in table if c.startswith("m") or c == "tissue"]).to_csv(
        wide / "genes.csv", index=False
    )
    told = call("predict", wide / "model.skops", wide / "genes.csv", "-o", wide / "out.csv", "--force").output
    assert f"{words} there: 'sites' 60 of 60 rows" in told
    assert "median of the training table: 'g1' 1 of 60 rows" in told
    assert "fragmented" not in told


def test_a_table_without_a_view_is_told_of_completion(wide):
    table = pd.read_csv(wide / "wide.csv").iloc[10:]
    table.to_csv(wide / "whole.csv", index=False)
    call(
        "fit", wide / "whole.csv", "--target", "ill", "--id", "patient", "--view", "genes=g*", "--view", "sites=m*",
        "--C", "1", "--model", wide / "model.skops",
    )  # fmt: skip
    sites = [c for c in table if c.startswith("m")]
    table.drop(columns=sites).to_csv(wide / "none.csv", index=False)
    refused = call("predict", wide / "model.skops", wide / "none.csv", "-o", wide / "out.csv", code=1).output
    assert "(140 of its 140 columns are missing)" in refused
    assert "--missing predict" in refused
    table.drop(columns=sites[:2]).to_csv(wide / "some.csv", index=False)
    refused = call("predict", wide / "model.skops", wide / "some.csv", "-o", wide / "out.csv", code=1).output
    assert "(2 of its 140 columns are missing)" in refused
    assert "--missing" not in refused
