"""Columns: what may be written, what it means, what is refused; per_feature and per_view."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kernelweave import kernels as kw
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.kernels.columns import OnColumns

from .suite import numbers

X = numbers(d=5)
FRAME = pd.DataFrame(X, columns=["age", "dose", "weight", "height", "Glucose"])
NAMED = Schema.of(FRAME)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (1, (1,)),
        (-1, (4,)),
        (np.int64(2), (2,)),
        ("dose", (1,)),
        (["dose", "age"], (1, 0)),
        ([3, 0], (3, 0)),
        (np.array([3, 0]), (3, 0)),
        (range(2), (0, 1)),
        (slice(1, 3), (1, 2)),
        (slice(None, None, 2), (0, 2, 4)),
        ([True, False, False, True, False], (0, 3)),
        (np.array([True, False, False, True, False]), (0, 3)),
        (FRAME.columns[:2], (0, 1)),
        (FRAME.columns == "weight", (2,)),
    ],
)
def test_columns_become_positions(columns, wanted):
    (kernel,) = expand_kernels(kw.linear().on(columns), NAMED)
    assert kernel.columns == wanted
    np.testing.assert_allclose(kernel(X), X[:, wanted] @ X[:, wanted].T)
    np.testing.assert_allclose(kernel(FRAME), kernel(X))
    np.testing.assert_allclose(kw.linear().on(columns)(FRAME), kernel(X))
    assert kernel.rank(5) == kw.linear().on(columns).rank(5) == len(wanted)
    assert expand_kernels(kernel, NAMED)[0].name == kernel.name


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("dosis", "no column 'dosis'.*did you mean 'dose'"),
        (["glucos", "ages"], "'glucos' .did you mean 'Glucose'.*'ages' .did you mean 'age'"),
        ("zzzz", "no column 'zzzz' among the 5"),
        (5, "no column 5.*0 to 4"),
        (-6, "no column -6"),
        ([True, False], "mask of 2 columns.* 5 features"),
        ([False] * 5, "choose no column"),
        ([], "choose no column"),
        (slice(4, 2), "choose no column"),
        ([1, 1], "twice"),
        (["age", 0], "twice"),
        (slice("age", "dose"), "positions, not names"),
        ([1.5], "position or a name"),
    ],
)
def test_columns_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        expand_kernels(kw.linear().on(columns), NAMED)


@pytest.mark.parametrize("columns", [None, 1.5, True, {"a": 1}, np.zeros((2, 2))])
def test_what_is_no_columns_is_refused_at_once(columns):
    with pytest.raises(ValueError, match="columns must be"):
        kw.linear().on(columns)


def test_names_need_a_frame():
    for spec in (kw.linear().on("age"), kw.linear().on(["age", "dose"])):
        with pytest.raises(ValueError, match="data frame"):
            expand_kernels(spec, Schema(5))
    with pytest.raises(ValueError, match="list of objects"):
        expand_kernels(kw.linear().on(0), Schema())


def test_columns_once():
    with pytest.raises(ValueError, match="already on columns"):
        kw.linear().on([0, 1]).on(0)
    with pytest.raises(ValueError, match="already on columns"):
        kw.linear().on(0).named("n").on(0)
    with pytest.raises(ValueError, match="already on columns"):
        expand_kernels(kw.per_feature(kw.linear().on(0)), NAMED)
    with pytest.raises(ValueError, match="places its kernels itself"):
        kw.per_feature(kw.linear()).on(0)
    with pytest.raises(ValueError, match="places its kernels itself"):
        kw.per_view({"a": 0}, kw.linear()).on(0)


def test_stack_on_columns():
    kernels = expand_kernels((kw.gaussian([1, 2]) + kw.linear()).on(["age", "dose"]), NAMED)
    assert [kernel.columns for kernel in kernels] == [(0, 1)] * 3


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ("age", "linear on age"),
        (2, "linear on weight"),
        (["age", "dose"], "linear on age, dose"),
        (slice(0, 5), "linear on age ... Glucose (5 features)"),
    ],
)
def test_names_with_a_frame(columns, name):
    assert expand_kernels(kw.linear().on(columns), NAMED)[0].name == name


def test_names_without_a_frame():
    def name(columns):
        return expand_kernels(kw.linear().on(columns), Schema(20))[0].name

    assert name(3) == "linear on feature 3"
    assert name([1, 4]) == "linear on features 1, 4"
    assert name(slice(2, 9)) == "linear on features 2-8"
    assert name(slice(0, 20, 2)) == "linear on 10 features (0, 2, 4 ... 18)"
    assert kw.linear().on(slice(2, 9)).name == "linear on features 2:9"
    assert kw.linear().on("age").name == "linear on age"


def test_named_survives_everything():
    (kernel,) = expand_kernels(kw.gaussian(1.0, relative=True).on("age").named("years"), NAMED)
    kernel = kernel.resolve(X)
    assert kernel.name == "years"
    assert kernel.family == "gaussian"
    assert kernel.columns == (0,)
    assert kernel.decay


def starts_alike(a, b):
    assert isinstance(a, str), type(a)
    return float(a[0] == b[0])


def first_entries(a, b):
    assert a.shape == (2,)
    return float(a[0][0] == b[0][0])


def test_a_single_column_hands_entries_to_kernels_on_objects():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "word": ["one", "two", "three"], "other": ["x", "y", "x"]})
    wanted = np.array([[1.0, 0, 0], [0, 1, 1], [0, 1, 1]])
    (kernel,) = expand_kernels(kw.function(starts_alike).on("word"), Schema.of(frame))
    assert kernel.takes_objects
    for samples in (frame, frame.to_numpy(dtype=object)):
        assert np.array_equal(kernel(samples), wanted)
        assert np.array_equal(kernel.diag(samples), np.ones(3))
    rows = kw.function(first_entries).on(["word", "other"])
    assert np.array_equal(rows(frame), wanted)
    age = kw.gaussian(1.0).on("age")
    np.testing.assert_allclose(age(frame), kw.gaussian(1.0)([[1.0], [2.0], [3.0]]))
    with pytest.raises(ValueError, match="gaussian"):
        kw.gaussian(1.0).on("word")(frame)


def test_per_feature():
    spec = kw.per_feature(kw.gaussian([0.5, 1.0]), kw.linear())
    kernels = expand_kernels(spec, NAMED)
    assert len(kernels) == 15
    assert [kernel.name for kernel in kernels[:4]] == [
        "gaussian(width=0.5) on age",
        "gaussian(width=1) on age",
        "linear on age",
        "gaussian(width=0.5) on dose",
    ]
    for j in range(5):
        np.testing.assert_allclose(kernels[3 * j](X), kw.gaussian(0.5)(X[:, [j]]))
        assert kernels[3 * j].columns == (j,)
        assert kernels[3 * j].base_key == kernels[3 * j + 1].base_key == ("sqeuclidean", (j,))


def test_per_feature_of_some_columns():
    kernels = expand_kernels(kw.per_feature(kw.linear(), columns=["dose", "Glucose"]), NAMED)
    assert [kernel.columns for kernel in kernels] == [(1,), (4,)]
    kernels = expand_kernels(kw.per_feature(kw.linear(), columns=slice(1, 3)), Schema(5))
    assert [kernel.name for kernel in kernels] == ["linear on feature 1", "linear on feature 2"]
    with pytest.raises(ValueError, match="Glucose"):
        expand_kernels(kw.per_feature(kw.linear(), columns="glucos"), NAMED)


def test_per_feature_needs_features_and_families():
    with pytest.raises(ValueError, match="needs samples with features"):
        expand_kernels(kw.per_feature(kw.linear()), Schema())
    with pytest.raises(ValueError, match="at least one family"):
        kw.per_feature()


def test_per_view():
    spec = kw.per_view(
        {"mrna": slice(0, 3), "clinical": ["height", "Glucose"]}, kw.gaussian([1, 2]), kw.linear()
    )
    kernels = expand_kernels(spec, NAMED)
    assert [kernel.name for kernel in kernels] == [
        "gaussian(width=1) on mrna",
        "gaussian(width=2) on mrna",
        "linear on mrna",
        "gaussian(width=1) on clinical",
        "gaussian(width=2) on clinical",
        "linear on clinical",
    ]
    assert {kernel.columns for kernel in kernels[:3]} == {(0, 1, 2)}
    assert kernels[0].base_key == kernels[1].base_key
    np.testing.assert_allclose(kernels[5](X), X[:, 3:] @ X[:, 3:].T)


def test_per_view_refuses():
    with pytest.raises(ValueError, match=r"view 'genes'.*'heigth'.*height"):
        expand_kernels(kw.per_view({"genes": ["heigth"]}, kw.linear()), NAMED)
    with pytest.raises(ValueError, match="mapping"):
        kw.per_view([[0, 1]], kw.linear())
    with pytest.raises(ValueError, match="mapping"):
        kw.per_view({}, kw.linear())
    with pytest.raises(ValueError, match="at least one family"):
        kw.per_view({"a": [0]})


def test_schema_of():
    assert Schema.of(FRAME) == Schema(5, tuple(FRAME.columns), dtypes=tuple(FRAME.dtypes))
    assert Schema.of(pd.DataFrame(X)) == Schema(5, None)
    assert Schema.of(["a", "b"]) == Schema(None, None)
    assert Schema.of(np.arange(3)) == Schema(None, None)


def test_widths_are_settled_on_columns_of_some_samples(monkeypatch):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    settled = kw.gaussian(0.5, relative=True).resolve(X[:, [2, 0]])
    picked = OnColumns._picked
    rows = []
    monkeypatch.setattr(OnColumns, "_picked", lambda self, A: rows.append(len(A)) or picked(self, A))
    kernel = kw.gaussian(0.5, relative=True).on([2, 0]).resolve(X)
    assert rows == [1000]
    assert kernel.kernel.scale == settled.scale
