"""Sparse matrices whose parts contradict each other are refused before anything reads their indices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.banks import ArrayRows

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def matrix(kind, rows=6, columns=4, seed=0):
    dense = np.random.default_rng(seed).normal(size=(rows, columns)).round(1)
    dense[dense < 0.3] = 0.0
    return sp.coo_array(dense).asformat(kind)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("shape", [(6, 4), (0, 4), (6, 0), (1, 1)])
def test_matrices_that_scipy_made_pass(kind, shape):
    made = matrix(kind, *shape)
    np.testing.assert_array_equal(ArrayRows(made).array.toarray(), made.toarray())


def spoil(kind, part, change):
    made = matrix(kind)
    values = getattr(made, part).copy()
    setattr(made, part, change(values))
    return made


def at(position, value):
    def change(values):
        values[position] = value
        return values

    return change


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("indices", at(0, 10**6)),
        ("indices", at(-1, -1)),
        ("indices", lambda values: values[:-1]),
        ("indices", lambda values: values.astype(float)),
        ("indptr", at(-1, 10**6)),
        ("indptr", at(0, 1)),
        ("indptr", at(2, -5)),
        ("indptr", at(1, 10**6)),
        ("indptr", lambda values: values[:-1]),
        ("indptr", lambda values: values[None]),
        ("data", lambda values: values[:-2]),
        ("data", lambda values: values[None]),
        ("data", lambda values: values.astype(object)),
    ],
)
def test_compressed_parts_that_do_not_fit(kind, part, change):
    with pytest.raises(ValueError, match=r"X is a (damaged )?sparse matrix"):
        ArrayRows(spoil(kind, part, change))


@pytest.mark.parametrize(
    ("part", "change"),
    [("row", at(0, 6)), ("row", at(0, -1)), ("col", at(0, 99)), ("col", lambda v: v[1:]), ("data", lambda v: v[1:])],
)  # fmt: skip
def test_coordinates_that_do_not_fit(part, change):
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        ArrayRows(spoil("coo", part, change))


def test_other_formats_that_do_not_fit():
    lists = matrix("lil")
    lists.rows[0] = [77]
    lists.data[0] = [1.0]
    with pytest.raises(ValueError, match=r"77|exceeds matrix dimensions"):  # ours, or that of an older SciPy
        ArrayRows(lists)
    with pytest.raises(ValueError, match="diagonals"):
        ArrayRows(spoil("dia", "offsets", lambda values: np.arange(50)))


@given(
    st.lists(st.integers(-2, 6), max_size=8), st.lists(st.integers(-2, 9), max_size=6), st.integers(0, 4),
    st.integers(0, 4),
)  # fmt: skip
def test_what_passes_can_be_read(indices, indptr, rows, columns):
    """Whatever is let through is read within bounds, entry by entry."""
    made, data = sp.csr_array((rows, columns)), np.ones(len(indices))
    made.data, made.indices, made.indptr = data, np.array(indices, dtype=int), np.array(indptr, dtype=int)
    try:
        ArrayRows(made)
    except ValueError:
        return
    for i in range(rows):
        for p in range(indptr[i], indptr[i + 1]):
            assert 0 <= indices[p] < columns
            assert data[p] == 1.0


def test_repeated_entries_are_summed_in_a_copy():
    made = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    other = ArrayRows(made).array
    assert made.nnz == 3
    np.testing.assert_array_equal(other.toarray(), [[0, 3], [4, 0]])
    assert other.nnz == 2
    assert ArrayRows(other).array is other
