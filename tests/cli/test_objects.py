"""Columns of texts in tables of the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from .commands import call

N = 60


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    texts = ["".join(rng.choice(list("ACGT"), size=20)) for _ in y]
    texts = [s[:6] + "GATTACA" + s[13:] if label else s for s, label in zip(texts, y, strict=True)]
    table = pd.DataFrame({"a": rng.normal(size=N), "kind": rng.choice(["x", "z"], N), "dna": texts, "y": y})
    table.to_csv(tmp_path / "data.csv", index=False)
    table[["dna", "y"]].to_csv(tmp_path / "alone.csv", index=False)
    table.loc[[3, 7], "dna"] = None
    table.to_csv(tmp_path / "gaps.csv", index=False)
    table.loc[5, "dna"] = "AC7"
    table.to_csv(tmp_path / "bad.csv", index=False)
    return tmp_path


def fit(study, *more, data="data.csv", code=0):
    words = f"fit {study / data} --target y --C 1 --model {study / 'm.skops'} --force".split()
    return call(*words, *more, code=code)


def test_fit_predict_and_inspect(study):
    both = ["--objects", "dna=spectrum:2,3,alphabet=dna", "--objects", "dna=weighted_degree:2"]
    done = fit(study, *both, "--norm", "2", "--json")
    assert json.loads(done.stdout)["kernels"] > 3
    shown = call("inspect", str(study / "m.skops")).output
    assert "spectrum(k=3, alphabet=dna) on dna" in shown
    assert "weighted_degree(degree=2) on dna" in shown
    call("predict", str(study / "m.skops"), str(study / "data.csv"), "-o", str(study / "p.csv"))
    predicted = pd.read_csv(study / "p.csv")["predicted y"]
    assert np.mean(predicted == np.arange(N) % 2) > 0.9
    fit(study, "--objects", "dna=spectrum:3", data="alone.csv")
    fit(study, "--objects", "dna=spectrum:3", "--view", "numbers=a", "--kernels", "linear", "--norm", "2")
    assert "linear on numbers" in call("inspect", str(study / "m.skops")).output
    fit(study, "--objects", "dna=spectrum:3", "--kernels", "linear", "--norm", "2")
    assert "linear on all features" in call("inspect", str(study / "m.skops")).output


def test_views_file(study):
    (study / "views.toml").write_text(
        '[views.motifs]\ncolumns = ["dna"]\nobjects = ["spectrum:3", "spectrum:4,compare=tanimoto"]\n'
        '[views.numbers]\ncolumns = ["a"]\nkernels = ["linear"]\n'
    )
    fit(study, "--views", str(study / "views.toml"))
    assert "spectrum(k=4, tanimoto) on motifs" in call("inspect", str(study / "m.skops")).output
    (study / "views.toml").write_text(
        '[views.motifs]\ncolumns = ["dna"]\nobjects = "spectrum:3"\nkernels = ["linear"]\n'
    )
    refused = fit(study, "--views", str(study / "views.toml"), code=1)
    assert "has objects in one column, and its kernels are those of 'objects'" in refused.output


def test_missing_objects(study):
    refused = fit(study, "--objects", "dna=spectrum:3", data="gaps.csv", code=1)
    assert "view 'dna' is missing for 2 of 60 rows" in refused.output
    done = fit(study, "--objects", "dna=spectrum:3", "--missing", "mean", data="gaps.csv")
    assert "'dna' 2 of 60 rows" in done.output
    call("predict", str(study / "m.skops"), str(study / "gaps.csv"), "-o", str(study / "p.csv"))
    assert len(pd.read_csv(study / "p.csv")) == N


@pytest.mark.parametrize(
    ("option", "more", "said", "code"),
    [
        ("dna", [], "--objects takes COLUMN=KERNEL", 2),
        ("dna=spectrun:3", [], "Did you mean 'spectrum'?", 2),
        ("dna=spectrum:3,alpha=dna", [], "no parameter of spectrum, which has k, gaps", 2),
        ("dna=spectrum:0", [], "k of a spectrum kernel must be", 2),
        ("y=spectrum:3", [], "the column of --target", 2),
        ("dna=spectrum:3", ["--kernels", "smkl"], "both say what the kernels are", 2),
        ("dna=spectrum:3", ["--gram", "k.npy"], "both say what the kernels are", 2),
        ("dns=spectrum:3", [], "no column is called 'dns'. Did you mean 'dna'?", 1),
        ("kind=spectrum:1", [], "column 'dna' has 60 different texts, more than 30", 1),
    ],
)
def test_what_cannot_be_is_refused(study, option, more, said, code):
    (study / "k.npy").write_bytes(b"")
    more = [str(study / word) if word.endswith(".npy") else word for word in more]
    assert said in " ".join(fit(study, "--objects", option, *more, code=code).output.split())


def test_bad_texts_are_named(study):
    refused = fit(
        study, "--objects", "dna=spectrum:3,alphabet=dna", "--missing", "mean", data="bad.csv", code=1
    )
    assert "row 5: 'AC7' has '7'" in refused.output
    fit(study, "--objects", "dna=spectrum:3,alphabet=dna")
    refused = call(
        "predict", str(study / "m.skops"), str(study / "bad.csv"), "-o", str(study / "p.csv"), code=1
    )
    assert "view 'dna' is missing in the new table for 2 of 60 rows" in refused.output
