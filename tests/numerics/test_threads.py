"""The number of BLAS threads belongs to the process: fits that overlap leave it as it was."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from faults import children
from kernelweave._numerics.resources import LARGE, one_blas_thread


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture
def two():
    """Two threads, as on a machine where they would be noticed."""
    with threadpool_limits(limits=2, user_api="blas"):
        if set(blas_threads()) != {2}:
            pytest.skip("this BLAS has one thread")
        yield


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_whoever_leaves_last_the_number_is_what_it_was(two, order):
    fits = [one_blas_thread(10) for _ in range(3)]
    for fit in fits:
        fit.__enter__()
        assert set(blas_threads()) == {1}
    for k in order:
        fits[k].__exit__(None, None, None)
    assert set(blas_threads()) == {2}
    with one_blas_thread(10):
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_large_matrices_are_not_limited(two):
    with one_blas_thread(LARGE):
        assert set(blas_threads()) == {2}


def test_an_error_restores(two):
    with pytest.raises(ZeroDivisionError), one_blas_thread(10):
        raise ZeroDivisionError
    assert set(blas_threads()) == {2}


def test_fits_in_threads_leave_the_number_alone():
    """In a process of its own, where nobody else has set a limit."""
    children.run(
        """
        import threading
        import numpy as np
        from threadpoolctl import threadpool_info
        from kernelweave import MKLClassifier, kernels as kw

        def blas_threads():
            return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

        X = np.random.default_rng(0).normal(size=(80, 3))
        y = X[:, 0] * X[:, 1] > 0

        def fits(C):
            for _ in range(6):
                MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0])), C=C).fit(X, y)

        before = blas_threads()
        for _ in range(3):
            threads = [threading.Thread(target=fits, args=(C,)) for C in (0.1, 1.0, 10.0)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert blas_threads() == before, (before, blas_threads())
        """,
        env={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
    )
