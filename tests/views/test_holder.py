"""Views: tables of all kinds in, cut like an array, missing samples known."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.views import ViewColumns, ViewLayout, Views, ViewScaler, is_views, samples_and_targets

A = np.arange(12.0).reshape(4, 3)
B = np.arange(8.0).reshape(4, 2) - 3.0


@pytest.fixture
def pl():
    """polars is in the extra ``test``; an older environment may be without it."""
    return pytest.importorskip("polars")


def test_every_kind_of_table_becomes_the_same_views(pl):
    named = pd.DataFrame(B, columns=["x", "y"])
    kinds = [B, named, pa.Table.from_pandas(named), pl.from_pandas(named), B.tolist()]
    for table in kinds:
        views = Views({"a": A, "b": table})
        np.testing.assert_array_equal(views["b"], B)
        assert views.shape == (4, 5)
        assert views.present.all()
    assert sp.issparse(Views({"b": sp.csr_array(B)})["b"])
    assert Views([A, B]).names == ("view 0", "view 1")


def test_tables_with_names_are_joined_by_them():
    first = pd.DataFrame(A, index=list("pqrs"))
    second = pd.DataFrame(B[:3], index=["s", "q", "z"], columns=["x", "y"])
    views = Views({"a": first, "b": second})
    assert list(views.index) == ["p", "q", "r", "s", "z"]
    assert views.matched == {"a": 4, "b": 3}
    np.testing.assert_array_equal(views.present, [[1, 0], [1, 1], [1, 0], [1, 1], [0, 1]])
    np.testing.assert_array_equal(views["b"][[3, 1, 4]], B[:3])
    wanted = Views({"a": first, "b": second}, index=["r", "s"])
    assert wanted.matched == {"a": 2, "b": 1}
    np.testing.assert_array_equal(wanted["a"], A[2:])
    by_column = Views(
        {"a": first.rename_axis("who"), "b": pa.table({"who": ["s", "q"], "x": [1.0, 2.0]})}, id="who"
    )
    assert by_column.matched == {"a": 4, "b": 2}


def test_polars_and_arrow_tables_are_joined_by_a_column(pl):
    """Names, gaps, whole numbers, truth values and texts come through; rows in any order."""
    arrow = pa.table({"who": ["q", "p", "s"], "x": [1.5, None, 3.0], "n": [1, None, 3]})
    polars = pl.DataFrame({"b": [True, False, True], "who": ["s", "p", "q"], "t": ["low", "high", None]})
    views = Views({"arrow": arrow, "polars": polars}, id="who", index=["p", "q", "r", "s"])
    assert views.columns == (("x", "n"), ("b", "t"))
    assert views.matched == {"arrow": 3, "polars": 3}
    np.testing.assert_array_equal(views.present, [[0, 1], [1, 1], [0, 0], [1, 1]])  # p has nothing but gaps
    np.testing.assert_array_equal(views["arrow"][[1, 3]], [[1.5, 1.0], [3.0, 3.0]])
    assert views["polars"][0].tolist() == [False, "high"]
    assert views["polars"][1].tolist()[0] is True
    assert pd.isna(views["polars"][1, 1])
    chunks = pa.chunked_array([["p", "q"], ["r", "s"]])
    split = pa.table({"who": chunks, "x": pa.chunked_array([[0.0, 1.0], [2.0, 3.0]])})
    np.testing.assert_array_equal(Views({"a": split}, id="who", index=["s", "p"])["a"].ravel(), [3.0, 0.0])


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(ValueError, match=r"'a' 4, 'b' 3.*index"):
        Views({"a": A, "b": B[:3]})
    with pytest.raises(ValueError, match=r"two rows named 'p'"):
        Views({"a": pd.DataFrame(A, index=list("ppqr"))})
    with pytest.raises(ValueError, match="named like a sample"):
        Views(
            {"a": pd.DataFrame(A, index=list("pqrs")), "b": pd.DataFrame(B, index=list("wxyz"))},
            index=list("pq"),
        )
    with pytest.raises(ValueError, match="rows without names"):
        Views({"a": pd.DataFrame(A, index=list("pqrs")), "b": B[:2]})
    for table in (pa.table({"x": [1.0]}), pd.DataFrame({"x": [1.0]}), pd.Series([1.0], name="x")):
        with pytest.raises(ValueError, match="'a' has no column 'who' with the names of its samples"):
            Views({"a": table}, id="who")
    named = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(["p", "q"], name="who"))
    np.testing.assert_array_equal(Views({"a": named}, id="who", index=["q", "p"])["a"].ravel(), [2.0, 1.0])


def test_targets_find_their_samples_by_name():
    """In the order of y; names of another kind, of as many samples, are no names: both are in one order."""
    views = Views({"a": pd.DataFrame(A, index=list("pqrs")), "b": pd.DataFrame(B, index=list("srqp"))})
    y = pd.Series([1.0, 2.0, 3.0], index=list("sqp"))
    brought, same = samples_and_targets(views, y)
    assert same is y
    assert list(brought.index) == ["s", "q", "p"]
    np.testing.assert_array_equal(brought["a"], A[[3, 1, 0]])
    np.testing.assert_array_equal(brought["b"], B[[0, 2, 3]])
    for unnamed in (np.arange(4.0), pd.Series(np.arange(4.0), index=[7, 5, 3, 1]), pd.Series(np.arange(4.0))):
        assert samples_and_targets(views, unnamed)[0] is views
    other = pd.Series(np.arange(3.0), index=[7, 5, 3])
    with pytest.raises(ValueError, match=r"y names its samples .*7.*but those of X are .*'p'"):
        samples_and_targets(views, other)
    with pytest.raises(ValueError, match=r"y has 2 samples that X does not have, such as .*'z'"):
        samples_and_targets(views, pd.Series(np.arange(4.0), index=list("pzqy")))


def test_absent_is_a_row_of_nan_a_row_that_is_not_there_or_no_view_at_all():
    lacking = B.copy()
    lacking[1] = np.nan
    views = Views({"a": A, "b": lacking})
    np.testing.assert_array_equal(views.present[:, 1], [1, 0, 1, 1])
    assert views.lacking() == {"b": 1}
    views.check_values()
    new = ViewLayout.of(views).bring({"a": A[:2]})
    np.testing.assert_array_equal(new.present, [[1, 0], [1, 0]])
    assert new.shape == (2, 5)
    sparse = Views({"a": pd.DataFrame(A, index=list("pqrs")), "b": sp.csr_matrix(B)})
    assert sparse.complete
    full = sp.csr_matrix(np.where(np.arange(4)[:, None] == 2, np.nan, B))
    np.testing.assert_array_equal(Views({"b": full}).present[:, 0], [1, 1, 0, 1])


def test_gaps_inside_a_view_and_samples_without_any_are_refused():
    gap = B.copy()
    gap[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"view 'b' contains NaN.*1 sample that has other.*row 2.*impute"):
        Views({"a": A, "b": gap}).check_values()
    nothing = np.where(np.arange(4)[:, None] == 3, np.nan, 1.0)
    with pytest.raises(ValueError, match="row 3 has none of the views"):
        Views({"a": A * nothing, "b": B * nothing}).check_values()


def test_columns_of_new_samples_are_found_by_name():
    layout = ViewLayout.of(Views({"a": A, "b": pd.DataFrame(B, columns=["x", "y"])}))
    turned = pd.DataFrame(B[:, ::-1], columns=["y", "x"])
    np.testing.assert_array_equal(layout.bring({"b": turned, "a": A})["b"], B)
    with pytest.raises(ValueError, match="no column 'y'"):
        layout.bring({"b": turned[["x"]]})
    with pytest.raises(ValueError, match=r"view 'a' has 2 columns.*3"):
        layout.bring({"a": B})
    with pytest.raises(ValueError, match=r"no view 'bb'.*'b'"):
        layout.bring({"bb": B})
    with pytest.raises(ValueError, match="a dict"):
        layout.bring([A])


def test_views_are_cut_like_an_array():
    views = Views({"a": A, "b": sp.csr_matrix(B)})
    for rows in ([2, 0], np.array([True, False, True, False]), slice(1, 3), np.array([3])):
        cut = _safe_indexing(views, rows) if not isinstance(rows, slice) else views[rows]
        np.testing.assert_array_equal(cut["a"], A[rows])
        np.testing.assert_array_equal(cut["b"].toarray(), B[rows])
    assert _num_samples(views) == len(views) == 4
    train, test = train_test_split(views, test_size=1, random_state=0)
    assert (len(train), len(test)) == (3, 1)
    assert list(views) == ["a", "b"]
    with pytest.raises(IndexError, match="by samples"):
        views[:, [0]]


def test_one_more_view_of_the_same_samples():
    named = Views({"a": pd.DataFrame(A, index=list("pqrs"))})
    more = named.with_view("b", pd.DataFrame(B, index=list("srqp")))
    np.testing.assert_array_equal(more["b"], B[::-1])
    assert more.names == ("a", "b")
    plain = Views({"a": A})
    np.testing.assert_array_equal(plain.with_view("b", B)["b"], B)
    with pytest.raises(ValueError, match="there is a view 'a' already"):
        plain.with_view("a", B)
    with pytest.raises(ValueError, match="view 'b' names its rows and the other views do not"):
        plain.with_view("b", pd.DataFrame(B, index=list("srqp")))
    with pytest.raises(ValueError, match="3"):
        plain.with_view("b", B[:3])
    with pytest.raises(ValueError, match="columns of one table: add the new columns to it"):
        Views.of_table(A, {"left": [0], "right": [2]}).with_view("b", B)


def test_what_counts_as_views():
    assert is_views({"a": A})
    assert is_views([A, B], 4)
    assert not is_views([A, A], 2)  # two samples that are matrices
    assert not is_views([A, B])
    assert not is_views([[1.0, 2.0], [3.0, 4.0]])
    assert not is_views(A)


def test_columns_are_read_from_their_own_view():
    poisoned = Views({"a": A, "b": np.full((4, 2), np.nan)})
    np.testing.assert_array_equal(poisoned.select_columns((2, 0)), A[:, [2, 0]])
    np.testing.assert_array_equal(
        Views({"a": A, "b": B}).select_columns((0, 4)), np.column_stack([A[:, 0], B[:, 1]])
    )


def test_kernels_find_views_by_name_and_go_on_every_view_by_default():
    views = Views({"a": A, "b": pd.DataFrame(B, columns=["x", "y"])})
    schema = Schema.of(views)
    names = [kernel.name for kernel in expand_kernels(kw.linear() + kw.gaussian(2.0).on("b"), schema)]
    assert names == ["linear on a", "linear on b", "gaussian(width=2) on b"]
    both = expand_kernels(kw.linear().on(["a", "b"]), schema)[0]
    assert both.name == "linear on a, b"
    np.testing.assert_allclose(both(views), A @ A.T + B @ B.T)
    product = expand_kernels(kw.linear().on("a") * kw.linear().on("b"), schema)[0]
    assert product.looks_at(5) == frozenset(range(5))
    assert expand_kernels(kw.linear().on("b"), schema)[0].looks_at(5) == {3, 4}
    with pytest.raises(ValueError, match="no view 'c'"):
        expand_kernels(kw.linear().on("c"), schema)


def test_views_of_objects_reach_kernels_of_objects():
    views = Views({"a": A, "word": np.array(["aa", "ab", "b", "aa"], dtype=object)})
    kernel = expand_kernels(kw.function(lambda s, t: float(s == t)).on("word"), Schema.of(views))[0]
    np.testing.assert_array_equal(kernel(views)[0], [1, 0, 0, 1])


def test_a_scaler_that_was_not_fitted_says_so():
    with pytest.raises(NotFittedError, match="ViewScaler"):
        ViewScaler().transform({"a": A, "b": B})


def test_the_scaler_standardises_what_is_there():
    lacking = np.where(np.arange(4)[:, None] == 1, np.nan, A)
    scaled = ViewScaler().fit_transform({"a": lacking, "b": B, "s": sp.csr_matrix(A)})
    here = [0, 2, 3]
    np.testing.assert_allclose(scaled["a"][here].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled["a"][here].std(axis=0), 1.0)
    assert np.isnan(scaled["a"][1]).all()
    np.testing.assert_array_equal(scaled.present[:, 0], [1, 0, 1, 1])
    np.testing.assert_allclose(scaled["s"].toarray(), A / A.std(axis=0))
    equal = ViewScaler(equal_views=True).fit_transform({"a": A, "b": B})
    np.testing.assert_allclose([equal["a"].var(axis=0).sum(), equal["b"].var(axis=0).sum()], 1.0)


def test_the_scaler_keeps_names_of_columns_and_objects_as_they_are():
    named = pd.DataFrame(A, columns=["x", "y", "z"])
    words = np.array([["x"], ["y"], ["z"], [None]], dtype=object)
    scaled = ViewScaler().fit_transform(Views({"named": named, "plain": B, "words": words}))
    assert [None if one is None else list(one) for one in scaled.columns] == [["x", "y", "z"], None, None]
    np.testing.assert_array_equal(scaled["words"][:3], words[:3])


@pytest.mark.parametrize(
    ("index", "named"),
    [(range(4), False), (range(1, 5), True), (range(0, 8, 2), True), ([0, 1, 2, 3], True)],
)
def test_only_a_count_from_zero_is_no_name(index, named):
    """Rows 1 to 4 of a larger table are names: another view may have them in another order."""
    index = (
        pd.RangeIndex(index.start, index.stop, index.step) if isinstance(index, range) else pd.Index(index)
    )
    views = Views({"a": pd.DataFrame(A, index=index)})
    assert (views.index is not None) == named


def test_a_view_that_no_row_has_is_refused():
    table = pd.DataFrame({"x": [1.0, 2.0], "y": [np.nan, np.nan]})
    columns = ViewColumns([("first", StandardScaler(), ["x"]), ("second", StandardScaler(), ["y"])])
    with pytest.raises(ValueError, match="no sample has view 'second': leave it out"):
        columns.fit(table)


def test_one_table_is_made_of_views_of_one_kind():
    np.testing.assert_array_equal(Views({"a": A, "b": B}).table(), np.hstack([A, B]))
    thin = Views({"a": sp.csr_array(A), "b": sp.csr_array(B)}).table()
    assert sp.issparse(thin)
    np.testing.assert_array_equal(thin.toarray(), np.hstack([A, B]))
    for other in (
        {"a": A, "b": sp.csr_array(B)},
        {"a": np.array([["x"], ["y"], ["z"], [None]], dtype=object)},
    ):
        views = Views(other)
        assert views.table() is views


def test_an_index_that_names_a_sample_twice_is_refused():
    with pytest.raises(ValueError, match="index"):
        Views({"a": pd.DataFrame(A, index=list("pqrs"))}, index=["p", "q", "p"])


def test_a_view_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(ValueError, match=r"no view 'mrma'.*mrna.*Views: mrna, protein"):
        Views({"mrna": A, "protein": B}).only(["mrma"])


def test_the_view_that_most_samples_lack_is_named():
    few = np.where(np.arange(4)[:, None] == 1, np.nan, A)
    many = np.where(np.arange(4)[:, None] > 1, np.nan, B)
    with pytest.raises(ValueError, match=r"'many' is missing for 2 of 4 samples \(2 views"):
        MKLClassifier(kw.linear()).fit({"few": few, "many": many}, [0, 1, 0, 1])
