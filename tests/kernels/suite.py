"""The suite that every kernel inherits: supply `make` (and `samples` where the default data do not fit)."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave.kernels import Kernel, Schema


def numbers(n: int = 23, d: int = 4, seed: int = 0) -> np.ndarray:
    """Rows of numbers with an offset, a duplicate and a zero row: what trips careless distances."""
    X = np.random.default_rng(seed).normal(1.0, 2.0, size=(n, d))
    X[3] = X[1]
    X[5] = 0.0
    return X


def take(A: Any, rows: list[int]) -> Any:
    return A[rows] if hasattr(A, "shape") else [A[i] for i in rows]


class KernelSuite:
    """A dozen properties that hold for every kernel."""

    tol = 1e-10
    unit_diagonal = False

    def make(self) -> Kernel:
        raise NotImplementedError

    def samples(self) -> Any:
        return numbers()

    @pytest.fixture
    def X(self) -> Any:
        return self.samples()

    @pytest.fixture
    def kernel(self, X: Any) -> Kernel:
        (kernel,) = self.make().expand(Schema.of(X))
        return kernel.resolve(X)

    def close(self, got: np.ndarray, wanted: np.ndarray) -> None:
        np.testing.assert_allclose(got, wanted, rtol=self.tol, atol=self.tol * max(1.0, np.abs(wanted).max()))

    def test_shape_and_type(self, kernel, X):
        K = kernel(X)
        assert K.shape == (len(X), len(X))
        assert K.dtype == np.float64
        assert np.isfinite(K).all()

    def test_symmetric_to_the_bit(self, kernel, X):
        K = kernel(X)
        assert np.array_equal(K, K.T)

    def test_not_constant(self, kernel, X):
        # a kernel that ignores its samples would pass most of this suite
        assert np.ptp(kernel(X)) > 1e-3

    def test_positive_semidefinite(self, kernel, X):
        values = np.linalg.eigvalsh(kernel(X))
        assert values[0] > -1e-9 * values[-1]

    def test_diagonal(self, kernel, X):
        diagonal = kernel.diag(X)
        assert diagonal.shape == (len(X),)
        self.close(diagonal, kernel(X).diagonal())
        if self.unit_diagonal:
            assert (kernel(X).diagonal() == 1.0).all()
            assert (diagonal == 1.0).all()

    def test_rectangular_is_a_part_of_square(self, kernel, X):
        rows, columns = [0, 5, 7], [1, 2, 3, 8, 5]
        self.close(kernel(take(X, rows), take(X, columns)), kernel(X)[np.ix_(rows, columns)])

    def test_second_argument_defaults_to_the_first(self, kernel, X):
        assert np.array_equal(kernel(X), kernel(X, X))

    def test_of_base(self, kernel, X):
        base = kernel.base(X, X)
        before = base.copy()
        wanted = np.exp(-kernel.exponent * base) if kernel.decay else base**kernel.exponent
        got = kernel.of_base(base)
        self.close(got, wanted)
        self.close(got, kernel(X))
        assert np.array_equal(base, before), "of_base must not touch a base it may share"
        assert not np.shares_memory(got, base)
        assert kernel.of_base(base, out=base) is base
        assert np.array_equal(base, got)

    def test_base_is_fresh(self, kernel, X):
        first = kernel.base(X, X)
        first[:] = -7.0
        assert not (kernel.base(X, X) == -7.0).all()

    def test_base_diag(self, kernel, X):
        self.close(kernel.base_diag(X), kernel.base(X, X).diagonal())

    def test_clone_and_parameters(self, kernel, X):
        copy = clone(kernel)
        assert copy is not kernel
        # what was settled on samples is no parameter: a clone settles it again
        assert np.array_equal(copy.resolve(X)(X), kernel(X))
        parameters = kernel.get_params(deep=False)
        assert copy.set_params(**parameters) is copy
        assert np.array_equal(copy.resolve(X)(X), kernel(X))
        assert clone(self.make()).name == self.make().name

    def test_pickle(self, kernel, X):
        copy = pickle.loads(pickle.dumps(kernel))
        assert np.array_equal(copy(X), kernel(X))
        assert copy.name == kernel.name

    def test_features_reproduce_the_kernel(self, kernel, X):
        Z = kernel.features(X)
        rank = kernel.rank(X.shape[1] if getattr(X, "ndim", 1) == 2 else 1)
        assert (Z is None) == (rank is None)
        if Z is not None:
            assert Z.shape == (len(X), rank)
            Z = Z.toarray() if sparse.issparse(Z) else Z
            self.close(Z @ Z.T, kernel(X))
            rows = [0, 5, 7]
            some = kernel.features(take(X, rows))
            self.close(Z[rows], some.toarray() if sparse.issparse(some) else some)

    def test_name(self, kernel):
        assert isinstance(kernel.name, str)
        assert 0 < len(kernel.name) < 80
        assert "<" not in kernel.name
        assert isinstance(kernel.family, str)
        assert kernel.name == self.make().expand(Schema(4))[0].name, "resolving must not change the name"

    def test_key(self, kernel):
        assert hash(kernel.base_key) == hash(kernel.base_key)
        assert kernel.base_key == kernel.base_key
        assert kernel.named("another").base_key == kernel.base_key

    def test_read_only_samples(self, kernel, X):
        wanted = kernel(X)
        if hasattr(X, "flags"):
            X = X.copy()
            X.flags.writeable = False
        assert np.array_equal(kernel(X), wanted)
        kernel.diag(X)
        kernel.features(X)
        self.make().resolve(X)

    def test_samples_are_not_changed(self, kernel, X):
        before = pickle.dumps(X)
        kernel(X)
        kernel.diag(X)
        kernel.features(X)
        assert pickle.dumps(X) == before

    def test_one_sample(self, kernel, X):
        self.close(kernel(take(X, [2])), kernel(X)[2:3, 2:3])
