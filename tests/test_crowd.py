"""Several annotators: every form of the table, votes, and Dawid and Skene through crowd-kit."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.crowd import aggregate, as_long


@pytest.mark.parametrize(
    "given",
    [
        np.array([["x", "y", ""], ["y", "y", "x"]], dtype=object),
        [["x", "y", None], ["y", "y", "x"]],
        pd.DataFrame({"ann": ["x", "y"], "bob": ["y", "y"], "cat": [np.nan, "x"]}),
        pd.DataFrame(
            {
                "task": [0, 0, 1, 1, 1],
                "worker": list("ababc"),
                "label": ["x", "y", "y", "y", "x"],
                "time": range(5),
            }
        ),
    ],
    ids=["array", "list", "frame", "long"],
)
def test_every_form_says_the_same(given):
    table = as_long(given)
    assert table["task"].tolist() == [0, 0, 1, 1, 1]
    assert table["label"].tolist() == ["x", "y", "y", "y", "x"]
    found = aggregate(given)
    assert found.classes.tolist() == ["x", "y"]
    np.testing.assert_allclose(found.probabilities, [[0.5, 0.5], [1 / 3, 2 / 3]])
    assert found.labels.tolist() == ["x", "y"]  # a tie goes to the first class
    np.testing.assert_allclose(found.confidence, [0.5, 2 / 3])


def test_numbers_beside_gaps_stay_numbers():
    found = aggregate(np.array([[1.0, np.nan], [2.0, 2.0]]))
    assert found.labels.dtype.kind == "i"
    assert found.labels.tolist() == [1, 2]


def test_samples_without_a_label_are_named():
    with pytest.raises(ValueError, match=r"no label for 2 of 4 samples \(1, 3\)"):
        aggregate([["a"], [None], ["b"], [""]])
    long = pd.DataFrame({"task": [0, 1], "worker": [0, 0], "label": ["a", "b"]})
    with pytest.raises(ValueError, match="no label for 1 of 3"):
        aggregate(long, n_samples=3)
    with pytest.raises(ValueError, match="sample 1, but there are 1"):
        aggregate(long, n_samples=1)


def test_tasks_are_positions():
    with pytest.raises(ValueError, match="positions of samples"):
        as_long(pd.DataFrame({"task": ["a"], "worker": [0], "label": [1]}))


def test_unknown_method():
    with pytest.raises(ValueError, match="majority, dawid_skene"):
        aggregate([["a"]], method="mean")


def test_without_crowd_kit_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "crowdkit.aggregation", None)
    with pytest.raises(ImportError, match=r"kernelweave\[crowd\]"):
        aggregate([["a", "b"]], method="dawid_skene")


def test_dawid_and_skene_trust_those_who_are_right():
    pytest.importorskip("crowdkit", reason="crowd-kit is not installed")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    good = np.where(rng.random((200, 2)) < 0.1, rng.integers(0, 3, (200, 2)), truth[:, None])
    bad = rng.integers(0, 3, (200, 4))
    votes = np.hstack([good, bad])
    found = aggregate(votes, method="dawid_skene")
    assert (found.labels == truth).mean() > (aggregate(votes).labels == truth).mean() + 0.05
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-9)
