"""Several annotators: every form of the table, votes, and Dawid and Skene through crowd-kit."""

import warnings

import numpy as np
import pandas as pd
import pytest

from kernelweave.crowd import aggregate, as_long, disagreement, single_error
from kernelweave.exceptions import KernelWeaveWarning


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


# ---- how many labels are wrong --------------------------------------------------------------------------------------


def crowd_of(n, k, per, errors, seed, hard=0.0):
    """Votes of 30 annotators with errors of their own; on ``hard`` samples most take the same wrong class."""
    rng = np.random.default_rng(seed)
    y, error = rng.integers(0, k, n), rng.uniform(*errors, 30)
    trap, is_hard = (y + rng.integers(1, k, n)) % k, rng.random(n) < hard
    rows = []
    for i in range(n):
        for w in rng.choice(30, max(1, rng.poisson(per)), replace=False):
            wrong = rng.random() < (0.6 if is_hard[i] else error[w])
            other = trap[i] if is_hard[i] else (y[i] + rng.integers(1, k)) % k
            rows.append((i, int(w), int(other if wrong else y[i])))
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), y


@pytest.mark.parametrize(
    ("k", "per", "errors"), [(2, 2.5, (0.05, 0.15)), (4, 1.5, (0.1, 0.5)), (8, 5, (0.1, 0.5))]
)
def test_disagreement_finds_the_rate_of_a_crowd_whose_errors_are_independent(k, per, errors):
    covered, misses = 0, []
    for seed in range(6):
        table, y = crowd_of(300, k, per, errors, seed)
        labels = aggregate(table, 300).labels
        found, truth = disagreement(table, labels), np.mean(labels != y)
        misses.append(found.rate - truth)
        covered += found.interval[0] <= truth <= found.interval[1]
        assert found.interval[0] <= found.rate <= found.interval[1]
        votes_wrong = np.mean(table["label"].to_numpy() != y[table["task"]])
        assert found.single == pytest.approx(votes_wrong, abs=0.06)
    assert abs(np.mean(misses)) < 0.03
    assert covered >= 5


def test_errors_that_annotators_share_are_within_the_interval():
    """The estimate is too low then, as it must be; its interval allows for it."""
    covered = 0
    for seed in range(6):
        table, y = crowd_of(300, 4, 2.5, (0.1, 0.3), seed, hard=0.15)
        labels = aggregate(table, 300).labels
        low, high = disagreement(table, labels).interval
        covered += low <= np.mean(labels != y) <= high
    assert covered >= 5


def test_disagreement_bounds_the_error_of_one_annotator():
    """Of two who contradict each other at least one is wrong."""
    for k in (2, 3, 10):
        for d in np.linspace(0.0, (k - 1) / k, 7):
            e = single_error(d, k)
            assert e >= d / 2 - 1e-12
            assert 2 * e - e**2 * k / (k - 1) == pytest.approx(d, abs=1e-12)


def test_disagreement_needs_two_labels_of_a_sample_and_labels_that_were_given():
    assert disagreement([["a"], ["b"]], ["a", "b"]) is None
    with pytest.raises(ValueError, match="no annotator ever gave the label 'c'"):
        disagreement([["a", "b"], ["b", "b"]], ["c", "b"])


def test_minus_one_beside_classes_gets_a_hint():
    with pytest.warns(KernelWeaveWarning, match="use NaN"):
        as_long([[0, 1, -1], [2, -1, -1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_long([[-1, 1, 1], [1, -1, -1]])  # two classes called -1 and 1
        as_long([[0, 1, np.nan], [2, np.nan, np.nan]])
