"""Commands that cannot be meant and files that are no tables: one sentence each, before any work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .commands import call


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    frame.assign(y=np.where(frame["a"] > 0, "up", "down"), number=frame["b"]).to_csv(
        folder / "data.csv", index=False
    )
    (folder / "empty.csv").write_text("a,y\n")
    (folder / "torn.parquet").write_bytes(b"PAR1 and no more")
    np.save(folder / "line.npy", np.arange(4.0))
    np.savez(folder / "cube.npz", x=np.zeros((2, 2, 2)))
    np.savez(folder / "unequal.npz", x=np.zeros(2), y=np.zeros(3))
    (folder / "gram.txt").write_text("1 0\n0 1\n")
    np.save(folder / "texts.npy", np.array([["a"]]))
    return folder


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--missing mean", "--missing is about views"),
        ("--min-size 3", "--min-size is about the groups"),
        ("--norm l1 --norms 2", "give one of them"),
        ("--norm l9x", "--norm l9x"),
        ("--scoring accurracy", "--scoring takes a name of scikit-learn"),
        ("--class-weight heavy", "--class-weight takes 'balanced'"),
        ("--class-weight up=much", "--class-weight"),
        ("--noise-rate 0.7", r"a share in [0, 0.5)"),
        ("--noise-rate 0.1 --C 3", "--noise-rate and --C do not go together"),
        ("--noise-rate 0.1 --view v=a --missing mean", "--noise-rate and --missing do not go together"),
        ("--view v=a --kernels smkl", "both say what the kernels are"),
        ("--loss hinges", "--loss"),
        ("--C much", "--C"),
    ],
)
def test_commands(folder, monkeypatch, options, said):
    monkeypatch.chdir(folder)
    done = call("fit", "data.csv", "--target", "y", "--model", "m.skops", *options.split(), code=2)
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("data.csv --target number --noise-rate 0.1", "about wrong labels: the target here is a number"),
        ("data.csv --target number --class-weight balanced", "about classes: the target here is a number"),
        (
            "data.csv --target y --class-weight left=2 --C 1",
            "names a class 'left', but the target has down, up",
        ),
        ("empty.csv --target y", "empty.csv has no rows"),
        ("torn.parquet --target y", "cannot read torn.parquet"),
        ("line.npy --target y", "an array of shape (4,): a table has rows and columns"),
        ("cube.npz --target y", "neither a column nor a table"),
        ("unequal.npz --target y", "its arrays differ in length"),
        ("data.csv --target y --gram gram.txt", "none of .npy, .npz, .csv, .tsv"),
        ("data.csv --target y --gram line.npy", "no kernel matrix"),
        ("data.csv --target y --gram texts.npy", "no kernel matrix"),
        ("data.csv --target y --gram nowhere.npy", "there is no file nowhere.npy"),
    ],
)
def test_files(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    done = call("fit", *words.split(), "--model", "m.skops", code=1)
    assert said in " ".join(done.output.split())
    assert not Path("m.skops").exists()


@pytest.fixture(scope="module")
def fitted(folder):
    options = "--target y --id number --C 1 --kernels linear --view one=a --view two=b"
    call("fit", folder / "data.csv", *options.split(), "--model", folder / "views.skops")
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": ["left", "right"] * 10}, "has a label 'left', but the model was fitted on down, up"),
        ({"y": None}, "has no column 'y', which the model was fitted with"),
    ],
)
def test_reports_of_another_table(fitted, monkeypatch, change, said):
    monkeypatch.chdir(fitted)
    frame = pd.read_csv("data.csv")
    for column, values in change.items():
        frame = frame.drop(columns=column) if values is None else frame.assign(**{column: values})
    frame.to_csv("other.csv", index=False)
    assert said in call("report", "views.skops", "other.csv", "-o", "r.html", code=1).stderr
    assert not Path("r.html").exists()


def test_views_that_the_model_does_not_have(fitted, monkeypatch):
    monkeypatch.chdir(fitted)
    words = ("views.skops", "data.csv", "--view", "twoo=data.csv", "-o")
    for done in (call("predict", *words, "o.csv", code=2), call("report", *words, "r.html", code=2)):
        assert "--view twoo: the model has the views one, two. Did you mean 'two'?" in done.stderr


def test_predictions_without_names_say_so(fitted, monkeypatch, tmp_path):
    monkeypatch.chdir(fitted)
    pd.read_csv("data.csv").drop(columns="number").to_csv(tmp_path / "nameless.csv", index=False)
    done = call("predict", "views.skops", tmp_path / "nameless.csv", "-o", tmp_path / "o.csv")
    assert "note: the table has no column 'number'" in done.stderr


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e300])
def test_matrices_with_entries_that_are_none(folder, monkeypatch, tmp_path, entry):
    monkeypatch.chdir(folder)
    matrix = np.eye(20)
    matrix[3, 5] = entry
    np.save(tmp_path / "k.npy", matrix)
    np.save(tmp_path / "stack.npy", np.stack([np.eye(20), matrix]))
    for name in ("k.npy", "stack.npy"):
        said = call("fit", "data.csv", "--target", "y", "--gram", tmp_path / name, "--json", code=1).stderr
        assert f"{name} holds {entry:g} in row 3, column 5" in said


@pytest.mark.parametrize(("entry", "said"), [(0.5, "not symmetric"), (3.0, "not positive semi-definite")])
def test_matrices_that_are_no_kernels_are_named_after_their_files(folder, monkeypatch, tmp_path, entry, said):
    monkeypatch.chdir(folder)
    matrix = np.eye(20)
    matrix[3, 5] = entry
    if entry > 1:
        matrix[5, 3] = entry
    np.save(tmp_path / "good.npy", np.eye(20))
    np.save(tmp_path / "near.npy", matrix)
    words = ("--gram", tmp_path / "good.npy", tmp_path / "near.npy")
    done = call("fit", "data.csv", "--target", "y", *words, "--json", code=1)
    assert "kernel matrix 'near'" in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--target number --task classification --C 1", "holds fractions, such as"),
        (
            "--target y --drop number --scoring r2",
            "--scoring r2 does not go with this target (classification)",
        ),
        ("--target number --drop y --scoring f1", "--scoring f1 does not go with this target (regression)"),
    ],
)
def test_targets_of_the_other_kind(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    assert said in call("fit", "data.csv", *words.split(), "--json", code=1).stderr
