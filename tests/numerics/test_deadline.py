"""Time limits: they nest, belong to one thread, and end a step only where something can be returned."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave._numerics import smo
from kernelweave._numerics import stopping as pieces
from kernelweave._numerics.stopping import (
    OutOfTime,
    check_time,
    interrupted,
    out_of_time,
    time_left,
    time_limit,
    time_spent,
)
from kernelweave.banks import build_bank


def test_without_a_limit_there_is_always_time():
    assert time_left() == math.inf
    assert not out_of_time()
    check_time()
    with time_limit(None) as deadline:
        deadline.has_point = True
        assert time_left() == math.inf
        check_time()


def test_the_earliest_of_nested_limits_counts():
    with time_limit(100.0):
        assert 99.0 < time_left() <= 100.0
        with time_limit(1000.0):
            assert time_left() <= 100.0
        with time_limit(10.0):
            assert time_left() <= 10.0
        assert time_left() > 99.0
    assert time_left() == math.inf


def test_an_interrupt_ends_the_whole_fit():
    with time_limit(None):
        with time_limit(1000.0) as problem:
            assert not out_of_time()
            assert not interrupted()
            problem.interrupt()
            assert out_of_time()
            assert interrupted()
        assert out_of_time()
        with time_limit(1000.0):  # the next problem of the same fit
            assert interrupted()
    assert not out_of_time()
    assert not interrupted()


def test_time_is_counted_from_where_the_fit_began():
    assert time_spent() == 0.0
    with time_limit(None):
        assert time_spent() == 0.0  # a command, not a fit
        with time_limit(None, whole_fit=True):
            time.sleep(0.02)
            with time_limit(5.0):
                assert 0.02 <= time_spent() < 2.0


def test_a_step_is_left_only_where_there_is_a_point_to_return():
    with time_limit(0.0) as deadline:
        assert out_of_time()
        check_time()
        deadline.has_point = True
        with pytest.raises(OutOfTime):
            check_time()


def test_a_limit_is_closed_when_its_body_raises():
    with pytest.raises(ZeroDivisionError), time_limit(0.0):
        raise ZeroDivisionError
    assert not out_of_time()


def test_other_threads_have_limits_of_their_own():
    seen = []
    with time_limit(0.0):
        thread = threading.Thread(target=lambda: seen.append(out_of_time()))
        thread.start()
        thread.join()
    assert seen == [False]


def slow_problem(n=1500):
    """A box QP that takes the engine many seconds: noise, an ill-conditioned matrix, a large box."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    K = np.exp(-((x[:, None] - x[None]) ** 2).sum(2) / 8.0)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return K, y, 1e6 * np.minimum(y, 0.0), 1e6 * np.maximum(y, 0.0)


@pytest.mark.parametrize("equality", [True, False])
def test_the_smo_engine_stops_in_time_with_a_feasible_point(equality):
    K, y, lower, upper = slow_problem()
    smo.solve_box_qp(K[:50, :50], y[:50], lower[:50], upper[:50], equality=equality)  # compiles
    began, busy = time.perf_counter(), time.process_time()
    with time_limit(0.5):
        solution = smo.solve_box_qp(K, y, lower, upper, equality=equality, tol=1e-12)
    assert time.perf_counter() - began > 0.4
    assert time.process_time() - busy < 0.6
    assert not solution.converged
    assert np.all((solution.beta >= lower) & (solution.beta <= upper))
    assert abs(solution.beta.sum()) <= 1e-6 * np.abs(solution.beta).sum() or not equality
    np.testing.assert_allclose(solution.product, K @ solution.beta, atol=1e-6 * np.abs(solution.beta).sum())
    assert y @ solution.beta > 0.5 * solution.beta @ K @ solution.beta


def test_pieces_get_shorter_towards_the_end_and_follow_the_measured_speed():
    assert pieces.Pieces().next() == math.inf
    with time_limit(1.0):
        cut = pieces.Pieces()
        first = cut.next()
        time.sleep(0.05)
        cut.done(1e9)  # 2e10 in a second
        assert 5.0 * first < cut.next() < 1.05e10
    with time_limit(0.0):
        assert 0.0 < pieces.Pieces().next() < first


def test_no_eigenvectors_are_begun_that_there_is_no_time_for(monkeypatch):
    kernels = [kw.gaussian(1.0).resolve(np.zeros((2, 1)))]
    bank = build_bank(kernels, np.random.default_rng(0).normal(size=(1500, 2)))
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: pytest.fail("there was no time for these"))
    with time_limit(0.1), pytest.raises(OutOfTime):
        bank.factors()
