"""The loop: when it stops, what it keeps, what it reports; with scripted solvers that do exactly what a test needs."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest

import references as ref
from kernelweave.exceptions import NotFiniteError
from kernelweave.problems import Point
from kernelweave.solvers import MESSAGES, TRACE_COLUMNS, Solver, Stop, make_solver, solve, without_caches
from problems.making import make_case

N, M = 20, 4


@pytest.fixture
def problem():
    return make_case(ref.HINGE, "l1", True, n=N, m=M).problem


@pytest.fixture
def level(problem):
    """A solver that takes its time: dozens of small steps."""
    return make_solver("level", problem.loss, problem.norm)


@dataclass
class Scripted:
    step: int
    finished: bool = False


class Script(Solver):
    """Hands over given points one after the other, the last one for ever."""

    registered_as = "script"

    def __init__(self, points=(), pause=0.0, finished_at=None, last=None):
        self.points = points
        self.pause = pause
        self.finished_at = finished_at
        self.last = last

    def init(self, problem, start, tol):
        return Scripted(0, self.finished_at == 0)

    def step(self, problem, state):
        time.sleep(self.pause)
        return Scripted(state.step + 1, self.finished_at == state.step + 1)

    def point(self, state):
        found = self.points[min(state.step, len(self.points) - 1)]
        if isinstance(found, BaseException):
            raise found
        return found

    def finish(self, problem, best):
        return self.last


def points(problem, sizes):
    """Points of all qualities: multiples of a good solution's coefficients."""
    good = problem.oracle(np.full(M, 1 / M), target=1e-6)
    return [Point(size * good.inner.beta, good.weights) for size in sizes]


# ---- stopping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_max_iter(problem, level, max_iter):
    solution = solve(problem, level, Stop(tol=1e-12, max_iter=max_iter))
    assert solution.status == "max_iter"
    assert not solution.converged
    assert solution.n_iter == len(solution.trace) == max_iter
    assert [row[0] for row in solution.trace] == list(range(1, max_iter + 1))


def test_the_solvers_own_allowance_is_the_default(problem):
    class Short(Script):
        default_max_iter = 3

    solution = solve(problem, Short(points(problem, [0.5])), Stop(tol=1e-12))
    assert solution.status == "max_iter"
    assert solution.n_iter == 3


def test_max_seconds(problem):
    began = time.perf_counter()
    solution = solve(problem, Script(points(problem, [0.5]), pause=0.03), Stop(tol=1e-12, max_seconds=0.2))
    assert solution.status == "max_seconds"
    assert 0.2 <= solution.seconds <= time.perf_counter() - began < 5.0
    # as many steps as there was time for, of which the last one began before it was up
    assert 1 <= solution.n_iter <= 8
    assert all(row[1] < 0.2 for row in solution.trace[:-1])


def test_a_step_that_runs_out_of_time_is_left_and_the_best_is_kept(problem):
    class Late(Script):
        def step(self, problem, state):
            if state.step == 2:  # what it asks for now is not begun
                time.sleep(limit)
                problem.oracle(np.full(M, 1 / M), target=1e-6)
                raise AssertionError("there was time for it")
            return super().step(problem, state)

    limit, script = 1.0, points(problem, [0.2, 0.9, 0.5])
    solution = solve(problem, Late(script), Stop(tol=1e-12, max_seconds=limit))
    assert solution.status == "max_seconds"
    assert solution.n_iter == 3
    assert solution.point is script[1]


def test_a_limit_around_the_loop_ends_it_too(problem):
    found = []

    class Around(Script):
        def step(self, problem, state):
            found.append(solve(problem, Script(points(problem, [0.5]), pause=0.03), Stop(tol=1e-12)))
            return super().step(problem, state)

    around = solve(problem, Around(points(problem, [0.5])), Stop(tol=1e-12, max_seconds=0.1))
    assert around.status == found[0].status == "max_seconds"
    assert 0.05 <= found[0].seconds < 5.0


def test_stops_at_the_tolerance_and_not_later(problem, level):
    solution = solve(problem, level, Stop(tol=1e-3))
    gaps = [row[5] for row in solution.trace]
    assert solution.status == "converged"
    assert gaps[-1] <= 1e-3
    assert all(gap > 1e-3 for gap in gaps[:-1])


def test_finished_means_stalled_unless_converged(problem):
    solution = solve(problem, Script(points(problem, [0.5, 0.6, 0.7]), finished_at=1), Stop(tol=1e-12))
    assert solution.status == "stalled"
    assert solution.n_iter == 2
    solution = solve(problem, Script(points(problem, [0.5, 1.0]), finished_at=1), Stop(tol=10.0))
    assert solution.status == "converged"


def test_callback_sees_every_row_and_can_stop(problem, level):
    rows = []
    solution = solve(
        problem, level, Stop(tol=1e-9), callback=lambda row: rows.append(row) or row["iteration"] == 4
    )
    assert solution.status == "stopped"
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    assert all(tuple(row) == TRACE_COLUMNS for row in rows)
    assert [tuple(row.values()) for row in rows] == solution.trace
    falsy = solve(problem, level, Stop(tol=1e-3), callback=lambda row: 0)
    assert falsy.converged


def test_every_status_has_a_sentence(problem, level):
    solution = solve(problem, level, Stop(tol=1e-2))
    assert solution.message == "the relative gap reached the tolerance"
    assert "converged after" in repr(solution)
    assert "passes" in repr(solution)
    assert set(MESSAGES) == {
        "converged", "max_iter", "max_seconds", "interrupted", "stopped", "stalled", "failed", "non_finite",
        "imprecise", "stationary", "max_steps",
    }  # fmt: skip


# ---- what is kept --------------------------------------------------------------------------------------------------


def test_the_best_primal_and_the_best_dual_are_kept_from_wherever(problem):
    """Neither comes from the last point, and they come from different ones."""
    good = problem.oracle(np.full(M, 1 / M), target=1e-8)
    low = Point(np.zeros(N), good.weights)  # a poor primal and a poor bound
    bounded = Point(np.zeros(N), good.weights, dual_beta=0.9 * good.inner.beta)  # a poor primal, a good bound
    fitting = Point(good.inner.beta, good.weights, dual_beta=None)
    script = [low, bounded, fitting, low, Point(100.0 * good.inner.beta, good.weights)]
    solution = solve(problem, Script(script), Stop(tol=1e-12, max_iter=5))
    judged = [problem.certificate(point) for point in script]
    assert solution.certificate.primal == min(one.primal for one in judged)
    assert solution.certificate.dual == max(one.dual for one in judged)
    assert solution.point is fitting
    assert problem.dual(solution.certificate.dual_point) == pytest.approx(solution.certificate.dual, rel=1e-9)
    trace = np.array(solution.trace)
    assert np.all(np.diff(trace[:, 3]) <= 0)
    assert np.all(np.diff(trace[:, 4]) >= 0)
    assert trace[-1, 3] == solution.certificate.primal


def test_interrupt_from_a_callback_keeps_the_best(problem):
    script = points(problem, [0.2, 1.0, 0.5, 0.1])

    def interrupt(row):
        if row["iteration"] == 4:
            raise KeyboardInterrupt

    solution = solve(problem, Script(script), Stop(tol=1e-12), callback=interrupt)
    assert solution.status == "interrupted"
    assert solution.n_iter == 4
    best = min(script, key=lambda point: problem.certificate(point).primal)
    assert solution.point is best


def test_interrupt_inside_a_step_keeps_the_best(problem):
    script = [*points(problem, [0.2, 0.4]), KeyboardInterrupt()]
    solution = solve(problem, Script(script), Stop(tol=1e-12))
    assert solution.status == "interrupted"
    assert solution.n_iter == 2


def test_interrupt_before_there_is_anything_to_keep_goes_through(problem):
    with pytest.raises(KeyboardInterrupt):
        solve(problem, Script([KeyboardInterrupt()]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_end_it_and_the_best_is_kept(problem, bad):
    script = points(problem, [0.2, 0.9, 0.3])
    broken = Point(np.full(N, bad), script[0].weights)
    with np.errstate(all="ignore"):
        solution = solve(problem, Script([*script, broken]), Stop(tol=1e-12))
    assert solution.status == "non_finite"
    assert "not finite" in solution.message
    assert solution.n_iter == 3
    assert solution.point is script[1]
    assert np.isfinite(solution.certificate.relative_gap)


def test_weights_that_are_not_finite_end_it_too(problem):
    script = points(problem, [0.2])
    broken = Point(script[0].beta, np.full(M, np.nan))
    solution = solve(problem, Script([*script, broken]), Stop(tol=1e-12))
    assert solution.status == "non_finite"
    assert solution.point is script[0]


def test_nothing_finite_at_all_is_an_error(problem):
    broken = Point(np.full(N, np.nan), np.full(M, 1 / M))
    with pytest.raises(
        FloatingPointError, match="'script' produced values that are not finite at its first point"
    ):
        solve(problem, Script([broken]))


def test_other_errors_are_not_swallowed(problem):
    with pytest.raises(ZeroDivisionError):
        solve(problem, Script([*points(problem, [0.5]), ZeroDivisionError()]))


def test_a_last_word_counts_towards_the_status(problem):
    exact = make_solver("newton", problem.loss, problem.norm)
    optimum = solve(problem, exact, Stop(tol=1e-8)).point
    solution = solve(problem, Script(points(problem, [0.3]), last=optimum), Stop(tol=1e-6, max_iter=3))
    assert solution.point is optimum
    assert solution.certificate.relative_gap <= 1e-6
    assert solution.converged
    # a worse last word changes nothing
    worse = points(problem, [0.01])[0]
    solution = solve(problem, Script(points(problem, [0.3]), last=worse), Stop(tol=1e-6, max_iter=3))
    assert solution.status == "max_iter"
    assert solution.point is not worse


# ---- counting ------------------------------------------------------------------------------------------------------


def test_passes_are_those_of_this_run(problem, level):
    before = problem.bank.passes
    solution = solve(problem, level, Stop(tol=1e-2))
    assert solution.passes == pytest.approx(problem.bank.passes - before)
    assert solution.trace[-1][2] == pytest.approx(solution.passes)
    again = solve(problem, level, Stop(tol=1e-2))
    assert again.passes == pytest.approx(solution.passes)


def test_active_kernels_are_counted(problem):
    beta = points(problem, [1.0])[0].beta
    script = [Point(beta, np.full(M, 0.25)), Point(beta, np.array([0.5, 0.5, 0.0, 0.0]))]
    solution = solve(problem, Script(script), Stop(tol=1e-12, max_iter=2))
    assert [row[6] for row in solution.trace] == [4, 2]


def test_progress_in_lines_and_as_a_bar(problem, level, capsys):
    solve(problem, level, Stop(tol=1e-3, max_iter=3), verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("level") and "gap" in line for line in lines)
    solve(problem, level, Stop(tol=1e-3, max_iter=3), verbose=1)
    captured = capsys.readouterr()
    # the bar stays, and its last state is that of the last iteration
    found = solve(problem, level, Stop(tol=1e-3, max_iter=3))
    last = captured.err.split("\r")[-1]
    assert last.startswith("level")
    assert f"gap {found.trace[-1][5]:.1e}, {found.passes:.1f} passes, {found.trace[-1][6]} kernels" in last
    assert captured.out == ""
    solve(problem, level, Stop(tol=1e-3, max_iter=3))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, FloatingPointError])
def test_a_numerical_breakdown_keeps_the_best_point(error):
    problem = make_case(ref.HINGE, "l1", True, n=N, m=M).problem
    solver = make_solver("level", problem.loss, problem.norm)
    steps = iter([solver.step, solver.step])

    class Breaking(type(solver)):
        def step(self, problem, state):
            step = next(steps, None)
            if step is None:
                raise error("broken")
            return step(problem, state)

    found = solve(problem, Breaking(), Stop(1e-12))
    assert found.status == "failed"
    assert found.n_iter == 3
    assert "best point" in found.message
    again = problem.certificate(without_caches(found.point))
    assert again.primal == pytest.approx(found.certificate.primal)

    class Broken(type(solver)):
        def init(self, problem, start, tol):
            raise error("broken")

    with pytest.raises(NotFiniteError, match=r"scale the features.*broken"):
        solve(problem, Broken(), Stop(1e-3))
