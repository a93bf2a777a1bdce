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
