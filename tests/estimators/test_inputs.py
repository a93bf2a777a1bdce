"""What may be passed as X: tables, strings, sparse matrices, matrices of kernels, indices into a held stack."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kernelweave import MeanKernelClassifier, MKLClassifier, MKLRegressor
from kernelweave import kernels as kw

from . import by_hand
from .data import bank, spectrum


def table(X):
    return pd.DataFrame(X, columns=["age", "dose", "weight", "height"])


# ---- data frames ---------------------------------------------------------------------------------------------------


def test_a_data_frame_is_its_numbers_with_names():
    X, y = by_hand.moons(60)
    spec = (
        kw.gaussian([0.5, 1.0]).on(["age", "dose"])
        + kw.per_feature(kw.gaussian(1.0))
        + kw.linear().on("height")
    )
    positions = kw.gaussian([0.5, 1.0]).on([0, 1]) + kw.per_feature(kw.gaussian(1.0)) + kw.linear().on(3)
    named = MKLClassifier(spec).fit(table(X), y)
    plain = MKLClassifier(positions).fit(X, y)
    np.testing.assert_allclose(named.weights_, plain.weights_)
    np.testing.assert_allclose(named.decision_function(table(X[:9])), plain.decision_function(X[:9]))
    assert list(named.feature_names_in_) == ["age", "dose", "weight", "height"]
    assert list(named.kernel_names_) == [
        "gaussian(width=0.5) on age, dose",
        "gaussian(width=1) on age, dose",
        "gaussian(width=1) on age",
        "gaussian(width=1) on dose",
        "gaussian(width=1) on weight",
        "gaussian(width=1) on height",
        "linear on height",
    ]


def test_columns_in_another_order_are_refused():
    X, y = by_hand.moons(60)
    frame = table(X)
    clf = MKLClassifier(kw.per_feature(kw.gaussian(1.0))).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["dose", "age", "weight", "height"]])
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"age": "years"}))


def test_views():
    X, y = by_hand.moons(60)
    views = {"patient": ["age", "height", "weight"], "treatment": "dose"}
    clf = MKLClassifier(kw.per_view(views, kw.gaussian([1.0, 2.0]))).fit(table(X), y)
    assert list(clf.kernel_names_) == [
        "gaussian(width=1) on patient",
        "gaussian(width=2) on patient",
        "gaussian(width=1) on treatment",
        "gaussian(width=2) on treatment",
    ]
    by_number = MKLClassifier(
        kw.per_view({"patient": [0, 3, 2], "treatment": 1}, kw.gaussian([1.0, 2.0]))
    ).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(table(X)), by_number.decision_function(X))


def test_unknown_column():
    X, y = by_hand.moons(60)
    with pytest.raises(ValueError, match="did you mean 'weight'"):
        MKLClassifier(kw.gaussian().on("wieght")).fit(table(X), y)
    with pytest.raises(ValueError, match="data frame with named columns"):
        MKLClassifier(kw.gaussian().on(["weight", "age"])).fit(X, y)


def test_series_and_frames_as_labels():
    X, y = by_hand.moons(60)
    words = pd.Series(np.where(y > 0, "yes", "no"), index=np.arange(60)[::-1])
    clf = MKLClassifier(kw.gaussian([0.5, 1.0])).fit(table(X), words)
    assert list(clf.classes_) == ["no", "yes"]
    assert set(clf.predict(table(X))) == {"no", "yes"}
    assert clf.score(table(X), words) > 0.9
    numbers = MKLClassifier(kw.gaussian([0.5, 1.0])).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(table(X)), numbers.decision_function(X))


@pytest.mark.parametrize(
    "labels",
    [
        ["spam", "ham"],
        np.array([True, False]),
        np.array([7, -3]),
        np.array([2.0, 1.0]),
        np.array(["b", "a"], dtype=object),
    ],
    ids=["list of str", "bool", "int", "float", "object"],
)
def test_labels_of_every_kind(labels):
    X, y = by_hand.moons(60)
    mine = [labels[0] if s > 0 else labels[1] for s in y]
    clf = MKLClassifier(kw.gaussian([0.5, 1.0])).fit(X, mine)
    assert list(clf.classes_) == sorted(labels)
    assert clf.predict(X).dtype == clf.classes_.dtype
    assert np.mean(clf.predict(X) == np.array(mine)) > 0.9
    # the second class in order is the positive one
    assert np.array_equal(clf.decision_function(X) > 0, clf.predict(X) == sorted(labels)[1])


def test_three_classes_by_name():
    X, y = by_hand.blobs(60)
    names = np.array(["oak", "ash", "elm"])[y]
    clf = MKLClassifier(kw.gaussian([1.0, 2.0]), multi_class="ovr").fit(X, names)
    assert list(clf.classes_) == ["ash", "elm", "oak"]
    assert clf.score(X, names) > 0.7
    assert list(clf.trace_["problem"].unique()) == ["ash", "elm", "oak"]


# ---- sparse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"normalize": "cosine"}, {"center": True}], ids=str)
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.coo_array])
def test_sparse_is_dense(make, options):
    X, y = by_hand.moons(60, 8)
    X[np.abs(X) < 0.5] = 0.0
    spec = (
        kw.gaussian([0.5, 1.0]) + kw.linear() + kw.polynomial(2) + kw.cosine() + kw.per_feature(kw.linear())
    )
    if options.get("normalize") == "cosine":  # of a single feature it is a sign, and undefined at zero
        spec = kw.gaussian([0.5, 1.0]) + kw.linear() + kw.polynomial(2)
    dense = MKLClassifier(spec, norm=1.5, tol=1e-8, **options).fit(X, y)
    sparse = MKLClassifier(spec, norm=1.5, tol=1e-8, **options).fit(make(X), y)
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=1e-4)
    np.testing.assert_allclose(sparse.decision_function(make(X)), dense.decision_function(X), atol=1e-3)
    # the same model on the same rows, dense or sparse
    np.testing.assert_allclose(sparse.decision_function(make(X)), sparse.decision_function(X), atol=1e-9)


def test_default_bank_takes_sparse():
    X, y = by_hand.moons(60, 8)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = (MKLClassifier(tol=1e-7).fit(samples, y) for samples in (X, sp.csr_array(X)))
    assert len(sparse.kernel_names_) == 6
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-3
    )


# ---- objects -------------------------------------------------------------------------------------------------------


def words(n=40, seed=0):
    """Sequences in which 'ab' is common for one class and 'cd' for the other."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    letters = [rng.choice(list("abcd"), size=9) for _ in range(n)]
    found = ["".join(part) + ("abab" if label else "cdcd") * int(rng.random() < 0.8) for part, label in zip(letters, y, strict=True)]  # fmt: skip
    return found, y


def triples(a, b):
    return spectrum(a, b, 3)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, lambda s: np.array(s, dtype=object)])
def test_strings_with_callables(form):
    found, y = words()
    train, test = form(found[:30]), form(found[30:])
    clf = MKLClassifier([spectrum, triples], norm=2).fit(train, y[:30])
    assert list(clf.kernel_names_) == ["spectrum", "triples"]
    assert clf.predict(test).shape == (10,)
    assert clf.score(test, y[30:]) >= 0.6
    stack = np.array([[[k(a, b) for b in found[:30]] for a in found] for k in (spectrum, triples)])
    stack = by_hand.trace_normalised(stack, stack[:, :30])
    by = (
        sum(d * (K @ clf.dual_coef_) for d, K in zip(clf.weights_, stack[:, 30:], strict=True))
        + clf.intercept_
    )
    np.testing.assert_allclose(clf.decision_function(test), by, atol=1e-9)


class Graph:
    """A graph that, like those of other libraries, has a length and can be iterated over."""

    def __init__(self, edges):
        self.edges = edges

    def __len__(self):
        return len(self.edges)

    def __iter__(self):
        return iter(self.edges)


def degrees(a, b):
    one, two = np.bincount(np.ravel(a.edges), minlength=9), np.bincount(np.ravel(b.edges), minlength=9)
    return float(np.minimum(np.bincount(one, minlength=12), np.bincount(two, minlength=12)).sum())


def jaccard(a, b):
    return len(set(a) & set(b)) / max(1, len(set(a) | set(b)))


def test_a_list_of_rows_is_a_table():
    X, y = by_hand.moons(40)
    values = MKLClassifier(kw.gaussian(1.0)).fit(X, y).decision_function(X)
    for rows in (list(X), X.tolist(), [tuple(row) for row in X.tolist()], [*X[:20], *X[20:].tolist()]):
        clf = MKLClassifier(kw.gaussian(1.0)).fit(rows, y)
        assert clf.n_features_in_ == X.shape[1]
        np.testing.assert_allclose(clf.decision_function(rows), values, atol=1e-12)
    # rows of texts, or tables, are things of which only a function of two can make a kernel
    for things in ([np.array(["a", "b"])] * 40, [np.eye(2)] * 40):
        with pytest.raises(ValueError, match="rows of numbers"):
            MKLClassifier(kw.gaussian(1.0)).fit(things, y)


@pytest.mark.parametrize("kind", ["graphs", "sets", "ragged", "token lists", "dicts"])
def test_objects_with_a_length_are_objects(kind):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    edges = [[(0, int(j)) for j in rng.integers(1, 9, 6)] if k else [(int(j), int(j) + 1) for j in rng.integers(0, 8, 6)] for k in y]  # fmt: skip
    kernel, X = degrees, [Graph(e) for e in edges]
    if kind != "graphs":
        kernel = jaccard
        numbers = [rng.integers(0, 6, rng.integers(3, 7)) + 3 * k for k in y]
        make = {
            "sets": lambda v: {int(x) for x in v},
            "ragged": lambda v: [int(x) for x in v],
            "token lists": lambda v: [f"w{x}" for x in v],
            "dicts": lambda v: {int(x): True for x in v},
        }[kind]
        X = [make(v) for v in numbers]
    clf = MKLClassifier(kw.function(kernel)).fit(X, y)
    assert clf.score(X, y) > 0.8
    assert np.array_equal(clf.predict(X[:5]), clf.predict(X)[:5])
    assert not hasattr(clf, "n_features_in_")


def test_callable_on_rows_of_numbers():
    X, y = by_hand.moons(40)

    def bell(a, b):
        return np.exp(-np.sum((a - b) ** 2) / 2)

    by_function = MKLClassifier([bell, kw.linear()], norm=2, tol=1e-8).fit(X, y)
    built_in = MKLClassifier([kw.gaussian(1.0), kw.linear()], norm=2, tol=1e-8).fit(X, y)
    assert by_function.n_features_in_ == 4
    np.testing.assert_allclose(by_function.weights_, built_in.weights_, atol=1e-6)
    np.testing.assert_allclose(by_function.decision_function(X), built_in.decision_function(X), atol=1e-5)


@pytest.fixture
def patients():
    found, y = words(40)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 40) + 8 * y,
            "sequence": found,
            "dose": rng.normal(size=40),
        }
    )
    return frame, y


def test_strings_beside_numbers(patients):
    frame, y = patients
    spec = (
        kw.gaussian([5.0, 20.0]).on("age")
        + kw.function(spectrum).on("sequence")
        + kw.linear().on(["age", "dose"])
    )
    clf = MKLClassifier(spec, norm=2).fit(frame[:30], y[:30])
    assert list(clf.kernel_names_) == [
        "gaussian(width=5) on age",
        "gaussian(width=20) on age",
        "spectrum on sequence",
        "linear on age, dose",
    ]
    age, both = frame[["age"]].to_numpy(), frame[["age", "dose"]].to_numpy()
    letters = list(frame["sequence"])
    stack = np.stack(
        [
            by_hand.gaussian(age, age, 5.0),
            by_hand.gaussian(age, age, 20.0),
            np.array([[spectrum(a, b) for b in letters] for a in letters]),
            both @ both.T,
        ]
    )
    stack = by_hand.trace_normalised(stack[:, :, :30], stack[:, :30, :30])
    by = sum(d * (K @ clf.dual_coef_) for d, K in zip(clf.weights_, stack, strict=True)) + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(frame), by, atol=1e-8)
    assert list(clf.feature_names_in_) == ["age", "sequence", "dose"]
    assert clf.n_features_in_ == 3


def test_mixed_tables_are_checked_like_others(patients):
    frame, y = patients
    spec = kw.gaussian(10.0).on("age") + kw.function(spectrum).on("sequence") + kw.gaussian(1.0).on("dose")
    clf = MKLClassifier(spec).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):  # age and dose would silently swap places
        clf.predict(frame[["dose", "sequence", "age"]])
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["age", "sequence"]])
    broken = frame.copy()
    broken.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier(spec).fit(broken, y)


def test_mixed_arrays(patients):
    frame, y = patients
    spec = kw.gaussian(10.0).on(0) + kw.function(spectrum).on(1)
    by_frame = MKLClassifier(spec).fit(frame, y)
    by_array = MKLClassifier(spec).fit(frame.to_numpy(dtype=object), y)
    np.testing.assert_allclose(
        by_frame.decision_function(frame), by_array.decision_function(frame.to_numpy(dtype=object))
    )


def test_an_estimator_can_be_fitted_on_something_else():
    """What a fit on numbers left behind must not be asked of strings, nor the other way round."""
    X, y = by_hand.moons(40)
    found, labels = words(40)
    clf = MKLClassifier(kw.gaussian([0.5, 1.0])).fit(table(X), y)
    first = clf.decision_function(table(X))
    clf.set_params(kernels=kw.function(spectrum)).fit(found, labels)
    assert not hasattr(clf, "n_features_in_")
    assert not hasattr(clf, "feature_names_in_")
    assert clf.score(found, labels) > 0.8
    stack = np.stack([by_hand.gaussian(X, X, 1.0)])
    clf.set_params(kernels="precomputed").fit(stack, y)
    assert clf.predict(stack[:, :3]).shape == (3,)
    clf.set_params(kernels=kw.gaussian([0.5, 1.0])).fit(table(X), y)
    np.testing.assert_allclose(clf.decision_function(table(X)), first)
    assert clf.n_features_in_ == 4


# ---- kernel matrices -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matrices():
    X, y = by_hand.moons(60)
    X_new = by_hand.moons(17, seed=3)[0]
    return X, y, X_new, by_hand.raw_stack(X, X), by_hand.raw_stack(X_new, X)


FORMS = {
    "array": lambda s: s,
    "list": list,
    "tuple": tuple,
    "fortran": np.asfortranarray,
    "lists of lists": lambda s: [K.tolist() for K in s],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("center", [False, True])
def test_precomputed(matrices, form, center):
    X, y, X_new, train, new = matrices
    options = {"norm": 1.5, "center": center, "tol": 1e-6}
    known = MKLClassifier(bank(), **options).fit(X, y)
    given = MKLClassifier("precomputed", **options).fit(FORMS[form](train), y)
    assert list(given.kernel_names_) == [f"kernel {j}" for j in range(10)]
    np.testing.assert_allclose(given.weights_, known.weights_, atol=1e-5)
    np.testing.assert_allclose(
        given.decision_function(FORMS[form](new)), known.decision_function(X_new), atol=1e-4
    )
    assert given.score(FORMS[form](train), y) == known.score(X, y)


def test_precomputed_single_precision_and_integers(matrices):
    _, y, _, train, new = matrices
    double = MKLClassifier("precomputed", norm=2, tol=1e-6).fit(train, y).decision_function(new)
    single = MKLClassifier("precomputed", norm=2, tol=1e-6).fit(train.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(new.astype(np.float32)), double, atol=1e-3)
    counts = np.round(10 * train[4:5])  # a linear kernel, whole numbers: of integer dtype it is the same
    counts = np.einsum("mij,mkj->mik", counts, counts)
    whole = MKLClassifier("precomputed").fit(counts.astype(int), y)
    real = MKLClassifier("precomputed").fit(counts, y)
    np.testing.assert_allclose(whole.dual_coef_, real.dual_coef_)


def test_precomputed_matrices_are_not_changed(matrices):
    _, y, _, train, new = matrices
    for center in (False, True):
        mine, other = train.copy(), new.copy()
        MKLClassifier("precomputed", center=center).fit(mine, y).predict(other)
        assert np.array_equal(mine, train)
        assert np.array_equal(other, new)
        mine.flags.writeable = other.flags.writeable = False
        MKLClassifier("precomputed", center=center).fit(mine, y).predict(other)


def test_one_matrix_is_a_stack_of_one(matrices):
    _, y, _, train, new = matrices
    alone = MKLClassifier("precomputed").fit(train[2], y)
    stack = MKLClassifier("precomputed").fit(train[2:3], y)
    assert alone.weights_.shape == (1,)
    np.testing.assert_allclose(alone.decision_function(new[2]), stack.decision_function(new[2:3]))


def test_precomputed_several_classes_and_regression():
    X, y = by_hand.blobs(60, features=4)
    train = by_hand.raw_stack(X, X)
    clf = MKLClassifier("precomputed").fit(train, y)
    np.testing.assert_allclose(
        clf.decision_function(train[:, :9]),
        MKLClassifier(bank()).fit(X, y).decision_function(X[:9]),
        atol=1e-2,
    )
    X, y = by_hand.curve(60, 4)
    train = by_hand.raw_stack(X, X)
    assert MKLRegressor("precomputed", C=10.0).fit(train, y).score(train, y) > 0.9
    assert MeanKernelClassifier("precomputed").fit(train, y > 0).score(train, y > 0) > 0.9


@pytest.mark.parametrize("as_column", [True, False])
def test_held_is_precomputed(matrices, as_column):
    X, y, X_new, _, _ = matrices
    everyone = np.vstack([X, X_new])
    stack = by_hand.raw_stack(everyone, everyone)
    holder = kw.held(stack, names=[f"my {j}" for j in range(10)])
    index = np.arange(77)
    index = index[:, None] if as_column else index
    clf = MKLClassifier(holder, norm=1.5, tol=1e-6).fit(index[:60], y)
    known = MKLClassifier(bank(), norm=1.5, tol=1e-6).fit(X, y)
    assert list(clf.kernel_names_) == [f"my {j}" for j in range(10)]
    np.testing.assert_allclose(clf.decision_function(index[60:]), known.decision_function(X_new), atol=1e-4)
    assert clone(clf).kernels is holder
    if not as_column:  # a list of indices will do
        assert np.array_equal(clf.predict(list(range(60, 77))), clf.predict(index[60:]))
        again = MKLClassifier(holder, norm=1.5, tol=1e-6).fit(list(range(60)), y)
        np.testing.assert_allclose(again.weights_, clf.weights_)


def test_held_with_cosine_and_centre(matrices):
    X, y, X_new, _, _ = matrices
    everyone = np.vstack([X, X_new])
    holder = kw.held(by_hand.raw_stack(everyone, everyone))
    index = np.arange(77)[:, None]
    for options in ({"normalize": "cosine"}, {"center": True}, {"normalize": "cosine", "center": True}):
        clf = MKLClassifier(holder, norm=2, tol=1e-7, **options).fit(index[:60], y)
        known = MKLClassifier(bank(), norm=2, tol=1e-7, **options).fit(X, y)
        np.testing.assert_allclose(
            clf.decision_function(index[60:]), known.decision_function(X_new), atol=1e-4
        )
