"""The holder of pairs, its folds, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, train_test_split

from kernelweave import PairKFold, Pairs, Views

DRUGS = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]}, index=["asp", "ibu", "par"])
CELLS = np.arange(8.0).reshape(4, 2)


def test_pairs_are_positions_or_names_of_any_table():
    by_name = Pairs(DRUGS, CELLS, [("ibu", 3), ("asp", 0)])
    assert by_name.index.tolist() == [[1, 3], [0, 0]]
    assert Pairs(DRUGS, CELLS, np.array([[1, 3], [0, 0]])).index.tolist() == by_name.index.tolist()
    table = pd.DataFrame({"drug": ["ibu", "asp"], "cell": [3, 0]})
    assert Pairs(DRUGS, CELLS, table).index.tolist() == by_name.index.tolist()
    both = Pairs(DRUGS, CELLS, [["par", "w"]], right_names=list("wxyz"))
    assert both.index.tolist() == [[2, 0]]
    numbers = Pairs(
        3, 2, [[30, 7]], left_names=[10, 20, 30], right_names=[7, 8]
    )  # names that are numbers are names
    assert numbers.index.tolist() == [[2, 0]]
    polars = pytest.importorskip("polars")
    cut = Pairs(DRUGS, polars.DataFrame({"x": [1.0, 2.0]}), polars.DataFrame({"drug": ["par"], "cell": [1]}))
    assert cut.index.tolist() == [[2, 1]]


def test_pairs_are_cut_like_an_array():
    X = Pairs.from_grid(DRUGS, CELLS, [[1, np.nan, 2, 3], [np.nan, 4, 5, 6], [7, 8, 9, np.nan]])
    assert X.shape == (9, 2)
    assert X.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert X[[0, 8]].index.tolist() == [[0, 0], [2, 2]]
    assert X[[0, 8]].labels.tolist() == [1, 9]
    assert X[X.labels > 7].left_of.tolist() == [2, 2]
    assert len(X[2:4, ...]) == 2
    assert len(X[5]) == 1
    with pytest.raises(IndexError, match="rows"):
        X[:, 0]
    train, test = train_test_split(X, test_size=3, random_state=0)
    assert len(train) == 6
    assert len(test) == 3
    assert test.left is X.left
    grid = X.to_grid(X.labels)
    assert np.isnan(grid[0, 1])
    assert grid[2, 2] == 9
    assert np.array(X).tolist() == X.index.tolist()
    assert repr(X[:2]) == (
        "Pairs: 2 pairs of 3 left and 4 right objects, 17 % of all; 2 left objects are in no pair; 2 right objects are "
        "in no pair"
    )
    small = X[[8, 0]].compact()
    assert small.index.tolist() == [[1, 1], [0, 0]]
    assert small.left.names.tolist() == ["asp", "par"]
    assert small.right.objects.tolist() == [[0, 1], [4, 5]]


def test_a_grid_is_aligned_by_the_names_of_a_table():
    table = pd.DataFrame(
        [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]], index=["par", "ibu", "asp"], columns=["y", "x"]
    )
    X = Pairs.from_grid(DRUGS, CELLS[:2], table, right_names=["x", "y"])
    assert X.to_grid(X.labels)[0].tolist() == [6, 5]
    assert X.to_grid(X.labels)[2].tolist() == [2, 1]
    with pytest.raises(ValueError, match="no row 'ibu'"):
        Pairs.from_grid(DRUGS, CELLS[:2], table.drop(index="ibu"), right_names=["x", "y"])


def test_objects_of_one_kind_are_one_side():
    X = Pairs(CELLS, index=[[0, 1], [3, 1]])
    assert X.one_kind
    assert X.compact().one_kind
    assert len(X.compact().left) == 3
    assert repr(X) == "Pairs: 2 pairs of 4 objects of one kind, 12 % of all; 1 object is in no pair"


def test_objects_are_the_same_by_name_or_else_by_all_that_is_known():
    names = Pairs(DRUGS, CELLS, [[0, 0]]).left.keys()
    assert names == ["asp", "ibu", "par"]
    rows = Pairs(CELLS[[0, 1, 0]], sparse.csr_matrix(CELLS[[2, 3, 2]]), [[0, 0]])
    for keys in (rows.left.keys(), rows.right.keys()):
        assert keys[0] == keys[2] != keys[1]
    assert Pairs(["CC", "CO", "CC"], 2, [[0, 0]]).left.keys() == ["CC", "CO", "CC"]
    views = Pairs({"a": CELLS, "b": CELLS}, np.array([["x"], ["y"]], dtype=object), [[0, 1]])
    assert len(set(views.left.keys())) == 4
    assert views.right.keys() == [("x",), ("y",)]
    with pytest.raises(ValueError, match="left_names"):
        Pairs([{1}, {2}], 2, [[0, 0]]).left.keys()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pairs(DRUGS, CELLS), "index is missing"),
        (lambda: Pairs(DRUGS, CELLS, [[0, 4]]), "right object 4, but there are 4"),
        (lambda: Pairs(DRUGS, CELLS, [["asp", "x"]]), "right_names="),
        (lambda: Pairs(DRUGS, CELLS, [["asb", 1]]), "1 left objects that there are not, such as 'asb'"),
        (lambda: Pairs(DRUGS, CELLS, [[0, 1, 2]]), "two columns"),
        (lambda: Pairs(DRUGS, CELLS, [0, 1]), "two columns"),
        (lambda: Pairs(np.zeros((2, 3, 3)), CELLS, [[0, 1]]), "3 dimensions"),
        (lambda: Pairs(DRUGS, CELLS, [[0, 1]], left_names=["a"]), "1 names were given for 3 left"),
        (lambda: Pairs(2, 2, [[0, 1]], right_names=["a", "a"]), "two right objects are named 'a'"),
        (lambda: Pairs(2, index=[[0, 1]], right_names=["a", "b"]), "pairs of one kind have left_names"),
        (
            lambda: Pairs(Views({"a": [[1.0], [np.nan]], "b": CELLS[:2]}), 2, [[0, 1]]),
            "lack a view: 'a' \\(1\\)",
        ),
        (lambda: Pairs.from_grid(2, 2, [[1.0, 2.0]]), "has shape \\(1, 2\\)"),
        (lambda: Pairs.from_grid(1, 2, [[1.0, np.inf]]), "infinity"),
        (lambda: Pairs.from_grid(1, 2, [[np.nan, np.nan]]), "NaN alone"),
        (lambda: Pairs(2, 2, [[0, 1]]).labels, "from_grid"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises((ValueError, AttributeError), match=words):
        make()


def test_collections_elsewhere_are_refused():
    dask = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="in memory"):
        Pairs(dask.ones((3, 2)), CELLS, [[0, 1]])


# ---- folds -------------------------------------------------------------------------------------------------------------


def grid(a=11, b=9, share=0.7, one_kind=False):
    rng = np.random.default_rng(0)
    values = np.where(rng.random((a, b)) < share, 1.0, np.nan)
    return (
        Pairs(a, index=np.argwhere(~np.isnan(values[:, :a]))) if one_kind else Pairs.from_grid(a, b, values)
    )


@pytest.mark.parametrize("one_kind", [False, True])
@pytest.mark.parametrize("setting", ["pairs", "left", "right", "both"])
def test_test_pairs_are_new_in_what_the_setting_says(setting, one_kind):
    X = grid(one_kind=one_kind)
    tested = np.zeros(len(X), dtype=int)
    splitter = PairKFold(3, setting=setting, random_state=1)
    for train, test in splitter.split(X):
        tested[test] += 1
        assert not np.intersect1d(train, test).size
        left, right = set(X.left_of[train]), set(X.right_of[train])
        if one_kind:
            left = right = left | right
        new = {"left": (True, False), "right": (False, True), "both": (True, True)}.get(
            setting, (False, False)
        )
        if new[0]:
            assert not left & set(X.left_of[test])
        if new[1]:
            assert not right & set(X.right_of[test])
        if setting in ("left", "right") and not one_kind:
            assert len(train) + len(test) == len(X)
    assert tested.max() == 1
    assert splitter.get_n_splits(X) == 3
    left_out = splitter.left_out(X)
    assert (left_out > 0).all() if setting == "both" else one_kind or not left_out.any()
    again = list(PairKFold(3, setting=setting, random_state=1).split(X))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(splitter.split(X), again, strict=True))


def test_the_same_pair_stays_together_and_groups_do_as_well():
    X = grid()
    X = X[np.r_[np.arange(len(X)), np.arange(10)]]
    for train, test in PairKFold(4).split(X):
        assert not set(map(tuple, X.index[train])) & set(map(tuple, X.index[test]))
    train, test = next(GroupKFold(3).split(X, groups=X.left_of))
    assert not set(X.left_of[train]) & set(X.left_of[test])


@pytest.mark.parametrize(
    ("splitter", "X", "words"),
    [
        (PairKFold(3), np.zeros((5, 2)), "splits Pairs, got ndarray"),
        (PairKFold(3, setting="drug"), grid(), "setting must be one of"),
        (PairKFold(1), grid(), "n_splits"),
        (PairKFold(12, setting="left"), grid(), "12 folds of 11 left objects"),
        (PairKFold(5, setting="both"), Pairs(5, 5, [[i, i] for i in range(5)]), "take fewer folds"),
    ],
)
def test_folds_that_cannot_be_are_refused(splitter, X, words):
    with pytest.raises(ValueError, match=words):
        list(splitter.split(X))
