"""Ids are texts: as they are written, in tables of every kind, from the fit to the predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernelweave import MKLClassifierCV
from kernelweave.persistence import about, load

from .commands import call

N = 40
#: what a number would lose or confuse: zeros before and after, signs, exponents, spaces, words for missing
IDS = [
    "00001",
    "1",
    "01",
    "1.010",
    "1.01",
    "1e2",
    "100",
    "100.0",
    "NA",
    "null",
    "nan",
    "+7",
    "7",
    "P 1",
    "Ä-1",
]
IDS += [f"{k:05d}" for k in range(100, 100 + N - len(IDS))]
FIT = (
    "fit",
    "labels.csv",
    "--target",
    "label",
    "--id",
    "patient",
    "--C",
    "1",
    "--kernels",
    "linear",
    "--quiet",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Labels with one half of the columns, and a file with the other half in another order."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"patient": IDS, "a": rng.normal(size=N)})
    frame["label"] = np.where(frame["a"] > 0, "yes", "no")
    frame.to_csv("labels.csv", index=False)
    values = pd.DataFrame({"patient": IDS, "b": np.arange(N, dtype=float)})
    values.sample(frac=1, random_state=0).to_csv("values.csv", index=False)
    return tmp_path


def columns_of_the_fit(path="m.skops"):
    """Return the column b as the model saw it, from its means and its scale."""
    steps = load(path)[0].named_transformers_
    return steps["v: numbers"][-1].mean_


def words_for(name):
    return (*FIT[:1], name, *FIT[2:])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".npz"])
def test_predictions_have_the_ids_as_they_are_written(folder, suffix):
    call(*FIT, "--model", "m.skops")
    frame = pd.read_csv("labels.csv", dtype=str, keep_default_na=False)
    if suffix == ".parquet":
        frame.assign(a=frame["a"].astype(float)).to_parquet("new.parquet")
    elif suffix == ".npz":
        np.savez("new.npz", patient=frame["patient"].to_numpy(dtype=str), a=frame["a"].to_numpy(dtype=float))
    else:
        frame.to_csv(f"new{suffix}", index=False, sep="\t" if suffix == ".tsv" else ",")
    call("predict", "m.skops", f"new{suffix}", "-o", "out.csv")
    call("predict", "m.skops", f"new{suffix}", "-o", "out.parquet")
    call("predict", "m.skops", f"new{suffix}", "-o", "out.npz")
    written = pd.read_csv("out.csv", dtype=str, keep_default_na=False)
    assert written["patient"].tolist() == IDS
    assert pd.read_parquet("out.parquet")["patient"].tolist() == IDS
    with np.load("out.npz") as made:
        assert made["patient"].tolist() == IDS


def test_the_report_names_rows_by_them(folder):
    frame = pd.read_csv("labels.csv", dtype=str, keep_default_na=False)
    # a label that every fold contradicts is listed by its id
    flipped = frame["a"].astype(float).abs().argmax()
    frame.loc[flipped, "label"] = "no" if frame["label"][flipped] == "yes" else "yes"
    frame.to_csv("labels.csv", index=False)
    call(*FIT, "--model", "m.skops")
    call("report", "m.skops", "labels.csv", "-o", "r.html", "--quiet", "--folds", "4")
    assert f">{IDS[flipped]}<" in Path("r.html").read_text()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_files_are_joined_by_what_is_written(folder, suffix):
    values = pd.read_csv("values.csv", dtype={"patient": str}, keep_default_na=False)
    if suffix == ".parquet":
        values.to_parquet("values.parquet")
    elif suffix == ".npz":
        np.savez("values.npz", patient=values["patient"].to_numpy(dtype=str), b=values["b"].to_numpy())
    call(*FIT, "--view", f"v=values{suffix}", "--model", "m.skops")
    note = about("m.skops")["note"]
    assert note["views"] == {"v": ["b"]}
    assert columns_of_the_fit() == pytest.approx([np.arange(N).mean()])
    # each row has its own value: predictions differ from those of shuffled ids
    call("predict", "m.skops", "labels.csv", "--view", f"v=values{suffix}", "-o", "out.csv")
    expected = load("m.skops").decision_function(pd.DataFrame({"b": np.arange(N, dtype=float)}))
    assert pd.read_csv("out.csv")["decision for yes"].to_numpy() == pytest.approx(expected)


def test_numbers_in_other_files_are_written_as_whole_ones(folder):
    """A Parquet column of numbers has no zeros to keep; a missing cell makes it one of fractions."""
    rng = np.random.default_rng(1)
    ids = np.arange(1, N + 1)
    frame = pd.DataFrame({"patient": ids, "a": rng.normal(size=N)}).assign(label=["yes", "no"] * (N // 2))
    frame.to_csv("labels.csv", index=False)
    pd.DataFrame({"patient": ids.astype(float), "b": ids.astype(float)}).to_parquet("values.parquet")
    call(*FIT, "--view", "v=values.parquet", "--model", "m.skops")
    assert columns_of_the_fit() == pytest.approx([ids.mean()])
    call("predict", "m.skops", "labels.csv", "--view", "v=values.parquet", "-o", "out.csv")
    assert pd.read_csv("out.csv", dtype=str)["patient"].tolist() == [str(k) for k in ids]


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        ("00001", "1", "'00001' here is '1' there: ids are compared as texts"),
        ("P1", "P1 ", "'P1' here is 'P1 ' there"),
        ("P1", "p1", "'P1' here is 'p1' there"),
    ],
)
def test_ids_that_are_nearly_the_same_are_pointed_to(folder, here, there, said):
    for name, other in (("labels.csv", here), ("values.csv", there)):
        frame = pd.read_csv(name, dtype=str, keep_default_na=False)
        frame = frame[frame["patient"] != "1"]
        frame.loc[frame["patient"] == "00001", "patient"] = other
        frame.to_csv(name, index=False)
    done = call(*FIT, "--view", "v=values.csv", "--json", code=1)
    assert f"values.csv has no row with patient = {here!r}" in done.output
    assert said in done.output
    if there.strip() == here:
        call(*FIT, "--view", "v=values.csv", "--json", "--strip")


def test_an_id_twice_is_seen_as_text(folder):
    values = pd.read_csv("values.csv", dtype=str, keep_default_na=False)
    pd.concat([values, values[values["patient"] == "1.010"]]).to_csv("values.csv", index=False)
    said = call(*FIT, "--view", "v=values.csv", "--json", code=1).output
    assert "values.csv has two rows with patient = '1.010'" in said


@pytest.mark.parametrize("name", ["labels.csv", "values.csv"])
def test_a_row_without_an_id_cannot_be_joined(folder, name):
    frame = pd.read_csv(name, dtype=str, keep_default_na=False)
    frame.loc[3, "patient"] = ""
    frame.to_csv(name, index=False)
    said = call(*FIT, "--view", "v=values.csv", "--json", code=1).output
    assert f"{'the table' if name == 'labels.csv' else name} has no 'patient' in row 3" in said


def test_two_columns_called_like_the_id(folder):
    text = Path("labels.csv").read_text().replace("patient,a,", "patient,patient,", 1)
    Path("twice.csv").write_text(text)
    said = call(*words_for("twice.csv"), "--json", code=1).output
    assert "twice.csv has two columns called 'patient': rename one of them" in said


def test_the_column_of_views_toml_is_text_too(folder):
    Path("views.toml").write_text('id = "patient"\n[views.v]\nfile = "values.csv"\nkernels = ["linear"]\n')
    call("fit", "labels.csv", "--target", "label", "--C", "1", "--views", "views.toml", "--model", "m.skops")
    assert columns_of_the_fit() == pytest.approx([np.arange(N).mean()])
    call("predict", "m.skops", "labels.csv", "--views", "views.toml", "-o", "out.csv")
    assert pd.read_csv("out.csv", dtype=str, keep_default_na=False)["patient"].tolist() == IDS
    words = ("fit", "labels.csv", "--target", "label", "--views", "views.toml", "--id", "a", "--json")
    assert "--id is 'a' and views.toml says id = 'patient'" in call(*words, code=1).output


def test_groups_of_rows_are_texts(folder, monkeypatch):
    """01 and 1 are two patients: as numbers they would be held out together, as one."""
    frame = pd.read_csv("labels.csv", dtype=str, keep_default_na=False)
    frame["who"] = ["01", "1", "1.0", "2"] * (N // 4)
    frame.to_csv("labels.csv", index=False)
    fit, given = MKLClassifierCV.fit, {}

    def watched(self, X, y, **others):
        given["fit"] = others["groups"]
        return fit(self, X, y, **others)

    def page(*_, groups, row_names, **__):
        given["report"], given["names"] = groups, row_names
        return "page"

    monkeypatch.setattr(MKLClassifierCV, "fit", watched)
    monkeypatch.setattr("kernelweave.report.make_report", page)
    tuned = tuple(word for word in FIT if word not in ("--C", "1"))
    call(*tuned, "--fold-groups", "who", "--model", "m.skops")
    call("report", "m.skops", "labels.csv", "-o", "r.html")
    assert given["fit"].tolist() == given["report"].tolist() == frame["who"].tolist()
    assert list(given["names"]) == IDS


def test_classes_with_zeros_before_them_are_codes(folder):
    frame = pd.read_csv("labels.csv", dtype=str, keep_default_na=False)
    frame["label"] = np.where(frame["label"] == "yes", "01", "1")
    frame.to_csv("labels.csv", index=False)
    call(*FIT, "--model", "m.skops")
    assert load("m.skops")[-1].classes_.tolist() == ["01", "1"]
    call("report", "m.skops", "labels.csv", "-o", "r.html", "--quiet", "--folds", "2")
    frame["label"] = np.where(frame["label"] == "01", "10", "1")
    frame.to_csv("labels.csv", index=False)
    call(*FIT, "--model", "m.skops", "--force")
    assert load("m.skops")[-1].classes_.tolist() == [1, 10]


def test_padded_numbers_to_predict_are_numbers(folder):
    frame = pd.read_csv("labels.csv", dtype=str, keep_default_na=False)
    frame.assign(label=[f"{k:03d}" for k in range(N)]).to_csv("labels.csv", index=False)
    call(*FIT, "--model", "m.skops")
    assert about("m.skops")["note"]["task"] == "regression"
    call("report", "m.skops", "labels.csv", "-o", "r.html", "--quiet", "--folds", "2")
    few = frame.assign(label=[f"{k % 4:03d}" for k in range(N)])
    few.to_csv("labels.csv", index=False)
    call(*FIT, "--task", "regression", "--model", "m.skops", "--force")
    assert about("m.skops")["note"]["task"] == "regression"
