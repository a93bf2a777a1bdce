"""Kernels from what the user brings: functions, distances, matrices."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

from kernelweave import kernels as kw
from kernelweave.kernels import Schema, expand_kernels

from .suite import numbers

X = numbers()
WORDS = ["weave", "wave", "loom", "bloom", "warp"]


def common(a, b):
    return len(set(a) & set(b))


# functions


def test_each_pair_once():
    calls = []

    def counted(a, b):
        calls.append((a, b))
        return common(a, b)

    K = kw.function(counted)(WORDS)
    assert len(calls) == 15 + 1  # and a trial that tells that it takes pairs
    assert np.array_equal(K, [[common(a, b) for b in WORDS] for a in WORDS])
    calls.clear()
    kw.function(counted).diag(WORDS)
    assert len(calls) == 5 + 1


def test_rows_of_arrays_are_samples():
    kernel = kw.function(lambda a, b: float(a @ b), name="dot")
    np.testing.assert_allclose(kernel(X), X @ X.T)
    np.testing.assert_allclose(kernel(X, X[:3]), X @ X[:3].T)
    assert kernel.name == "dot"


def test_a_function_of_sets_is_called_once():
    calls = []

    def gram(A, B):
        calls.append(1)
        return A @ B.T

    np.testing.assert_allclose(kw.function(gram, pairwise=False)(X), X @ X.T)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (kw.function(lambda A, B: A @ B.T, name="gram"), "one pair"),
        (kw.function(lambda a, b: np.outer(a, b), name="gram"), "'gram'.*pairwise=False"),
        (kw.function(lambda a, b: float("nan"), name="void"), "'void'.*nan"),
        (kw.function(lambda a, b: "one", name="text"), "'text'.*not a number"),
        (
            kw.function(lambda A, B: np.ones((2, 2)), name="small", pairwise=False),
            r"'small'.*\(2, 2\).*\(23, 23\)",
        ),
        (kw.function(lambda A, B: None, name="none", pairwise=False), "'none'"),
        (
            kw.function(lambda A, B: np.full((23, 23), np.inf), name="big", pairwise=False),
            "'big'.*inf.*samples 0 and 0",
        ),
        (
            kw.function(lambda A, B: np.arange(529.0).reshape(23, 23), name="skew", pairwise=False),
            "'skew'.*symmetric",
        ),
    ],
)
def test_the_culprit_is_named(kernel, message):
    if message == "one pair":  # the product of two rows is a number: nothing to complain about
        np.testing.assert_allclose(kernel(X), X @ X.T)
        return
    with pytest.raises(ValueError, match=message):
        kernel(X)


def test_an_error_inside_says_where_it_came_from():
    from sklearn.metrics.pairwise import rbf_kernel

    with pytest.raises(ValueError, match="2D array") as caught:
        kw.function(rbf_kernel, pairwise=True)(X)
    assert "pairwise=False" in caught.value.__notes__[0]
    for said in (False, None):  # which a trial finds out
        kernel = kw.function(rbf_kernel, pairwise=said)
        np.testing.assert_allclose(kernel(X), kw.gaussian(gamma=1 / X.shape[1])(X))
        np.testing.assert_allclose(kernel.diag(X), 1.0)


def test_function_needs_a_function():
    with pytest.raises(ValueError, match="plain callable"):
        kw.function("linear")
    with pytest.raises(ValueError, match="plain callable"):
        kw.function(kw.linear())


# distances


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "chebyshev", "canberra"])
def test_metric(metric):
    kernel = kw.from_distance(metric).resolve(X[:15])
    # scipy leaves the cosine distance of the zero row undefined, scikit-learn says 1
    mean = np.nan_to_num(pdist(X[:15], metric), nan=1.0).mean()
    D = np.nan_to_num(cdist(X, X[:4], metric), nan=1.0)
    np.testing.assert_allclose(kernel(X, X[:4]), np.exp(-D / mean), rtol=1e-6)
    assert (kernel(X).diagonal() == 1).all()


@pytest.mark.parametrize(
    "distance", [lambda a, b: np.abs(a - b).sum(), lambda A, B: cdist(A, B, "cityblock")]
)
@pytest.mark.parametrize("columns", [slice(None), [0]])
def test_functions_of_pairs_and_of_sets_are_told_apart(distance, columns):
    samples = X[:, columns]
    kernel = kw.from_distance(distance, name="mine").resolve(samples)
    wanted = kw.from_distance("cityblock").resolve(samples)
    np.testing.assert_allclose(kernel(samples), wanted(samples))
    np.testing.assert_allclose(kernel(samples[:1], samples[:2]), wanted(samples[:1], samples[:2]))
    assert kernel.name == "mine"
    assert kernel.takes_objects


def test_matrix_of_distances():
    D = squareform(pdist(X))
    kernel = kw.from_distance(D)
    assert kernel.takes_indices
    train, test = np.arange(15), np.arange(15, 23)
    settled = kernel.resolve(train)
    mean = pdist(X[:15]).mean()
    np.testing.assert_allclose(settled(test, train), np.exp(-D[15:, :15] / mean))
    np.testing.assert_allclose(kernel.resolve(train.reshape(-1, 1))(train), settled(train))
    assert clone(kernel).distance is kernel.distance, "clones share the matrix"
    with pytest.raises(ValueError, match="asks for sample 23"):
        settled(np.array([23]))


def test_distances_must_be_settled_and_may_all_be_zero():
    with pytest.raises(ValueError, match="resolve"):
        kw.from_distance("euclidean")(X)
    assert np.array_equal(
        kw.from_distance("euclidean").resolve(np.ones((4, 2)))(np.ones((4, 2))), np.ones((4, 4))
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kw.from_distance("euclidian"), "unknown metric 'euclidian'.*euclidean"),
        (lambda: kw.from_distance("precomputed"), "matrix itself"),
        (lambda: kw.from_distance("seuclidean"), "depends on the samples"),
        (lambda: kw.from_distance(np.zeros((3, 2))), r"square matrix.*\(3, 2\)"),
        (lambda: kw.from_distance(np.ones((3, 3))), "to itself is 1"),
        (lambda: kw.from_distance(-np.abs(np.subtract.outer(range(3), range(3)))), "negative"),
        (lambda: kw.from_distance(np.triu(np.ones((3, 3)), 1)), "not symmetric"),
        (lambda: kw.from_distance(3), "metric's name, a function or a square matrix"),
    ],
)
def test_bad_distances(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_negative_distances_from_a_function():
    with pytest.raises(ValueError, match="negative"):
        kw.from_distance(lambda a, b: -abs(len(a) - len(b)), name="wrong").resolve(WORDS)


# held matrices


def stack():
    return np.stack([kw.gaussian(1.0)(X), kw.linear()(X), kw.cosine()(X)])


def test_held_blocks():
    K = stack()
    holder = kw.held(K, names=["a", "b", "c"])
    kernels = expand_kernels(holder, Schema(1))
    assert [kernel.name for kernel in kernels] == ["a", "b", "c"]
    rows, columns = np.array([4, 2, 2]), np.array([[1], [0]])
    for j, kernel in enumerate(kernels):
        assert np.array_equal(kernel(rows, columns), K[j][np.ix_(rows, columns[:, 0])])
        assert np.array_equal(kernel.diag(rows), K[j].diagonal()[rows])
        assert np.array_equal(kernel(rows.astype(float)), K[j][np.ix_(rows, rows)])
    assert [kernel.name for kernel in kw.held(K)[:2]] == ["held 0", "held 1"]


def test_held_is_shared_not_copied():
    K = stack()
    holder = kw.held(K)
    assert np.shares_memory(holder.stack, K)
    assert clone(holder) is holder
    assert clone(holder[1]).holder is holder
    bank = clone(holder + kw.linear())
    assert bank.parts[0] is holder
    with pytest.raises(ValueError, match="read-only"):
        holder.stack[0, 0, 0] = 3.0
    K[0, 0, 0] = 1.0  # the owner's own array stays writable
    assert "3 kernels of 23 samples" in repr(holder)
    assert len(repr(holder)) < 100


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda holder: pickle.loads(pickle.dumps(holder))])
@pytest.mark.parametrize("given", [stack, lambda: list(stack())])
def test_held_copies_stay_read_only(copied, given):
    holder = copied(kw.held(given()))
    assert np.array_equal(np.asarray(holder.stack), stack())
    assert not holder.stack[0].flags.writeable


def test_held_of_a_list_does_not_stack_it():
    matrices = list(stack())
    holder = kw.held(matrices)
    assert all(np.shares_memory(one, other) for one, other in zip(holder.stack, matrices, strict=True))
    assert kw.held(holder) is holder
    assert len(kw.held(matrices[0])) == 1


def test_held_float32_gives_float64():
    kernel = kw.held(stack().astype(np.float32))[0]
    assert kernel(np.arange(3)).dtype == np.float64


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (np.array([0, 23]), "holds 23 samples, 0 to 22, but X asks for sample 23"),
        (np.array([-1]), "asks for sample -1"),
        (np.array([0.5]), "not whole numbers"),
        (np.array([np.nan]), "not whole numbers"),
        (np.array(["a"]), "not whole numbers"),
        (np.zeros((2, 2)), r"shape \(2, 2\).*np.arange"),
        (np.array([True, False]), "not whole numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_held_indices_are_checked(indices, message):
    with pytest.raises(ValueError, match=message):
        kw.held(stack())[0](indices)


def test_held_matrices_are_checked():
    with pytest.raises(ValueError, match=r"matrix 1 has shape \(2, 2\)"):
        kw.held([np.eye(3), np.eye(2)])
    with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
        kw.held(np.zeros((1, 3, 2)))
    with pytest.raises(ValueError, match="matrix 1 is not"):
        kw.held([np.eye(3), np.triu(np.ones((3, 3)))])
    with pytest.raises(ValueError, match="2 names"):
        kw.held([np.eye(3)], names=["a", "b"])
    with pytest.raises(ValueError, match="empty"):
        kw.held([])
    with pytest.raises(ValueError, match=r"matrix 0 is not positive semi-definite: 1 of 2 .*clip_spectrum"):
        kw.held([np.array([[0.0, 1.0], [1.0, 0.0]])])
    broken = np.eye(3)
    broken[0, 2] = broken[2, 0] = np.nan
    with pytest.raises(ValueError, match="matrix 0 contains NaN"):
        kw.held([broken])[0](np.arange(3))


def test_held_indices_from_a_column():
    holder = kw.held(stack())
    samples = np.column_stack([np.arange(10)[::-1], np.linspace(0, 1, 10)])
    kernels = expand_kernels(holder.on(0) + kw.gaussian(1.0).on(1), Schema(2))
    assert np.array_equal(kernels[1](samples), stack()[1][9::-1, 9::-1][:10, :10])
    assert len(kernels) == 4


class KernelRidge(BaseEstimator, ClassifierMixin):
    """The least that a grid search needs: ridge on one of the held kernels."""

    def __init__(self, kernels=None, which=0):
        self.kernels = kernels
        self.which = which

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.kernel_ = expand_kernels(self.kernels, Schema(1))[self.which]
        self.X_ = X
        self.coef_ = np.linalg.solve(self.kernel_(X) + 0.1 * np.eye(len(X)), y)
        return self

    def predict(self, X):
        return np.where(self.kernel_(X, self.X_) @ self.coef_ > 0, 1, -1)


def test_held_in_a_grid_search():
    y = np.where(X[:, 0] > X[:, 0].mean(), 1, -1)
    holder = kw.held(stack())
    search = GridSearchCV(KernelRidge(holder), {"which": [0, 1, 2]}, cv=3)
    search.fit(np.arange(23).reshape(-1, 1), y)
    assert search.best_estimator_.kernels is holder
    grid = GridSearchCV(
        KernelRidge(), {"kernels": [holder, kw.held(stack()[:2]), holder + kw.held(stack()[:1], ["x"])]}, cv=3
    )
    grid.fit(np.arange(23).reshape(-1, 1), y)
    assert len(grid.cv_results_["param_kernels"]) == 3
