"""Fits that are killed and resumed."""

from __future__ import annotations

import numpy as np
import pytest

import references as ref
from kernelweave.banks import precomputed_bank
from kernelweave.norms import Fixed, make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, make_solver, solve
from kernelweave.solvers._checkpoint import Checkpoint, fingerprint
from problems.making import make_case


class Killed(Exception):
    """What a test does instead of pulling the plug."""


def kill_at(iteration):
    def callback(row):
        if row["iteration"] == iteration:
            raise Killed

    return callback


def fresh(**options) -> MKLProblem:
    return make_case(ref.HINGE, "l1", True, n=20, m=4, **options).problem


def run(problem, tol=1e-6, solver="level", **options):
    return solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=tol), **options)


@pytest.mark.parametrize("solver", ["level", "silp", "simplemkl", "subgradient", "newton"])
def test_a_killed_fit_goes_on_where_it_was(tmp_path, solver):
    path = tmp_path / "fit.npz"
    whole = run(fresh(), solver=solver)
    at = max(2, whole.n_iter // 2)
    with pytest.raises(Killed):
        run(fresh(), solver=solver, checkpoint=path, callback=kill_at(at))
    assert path.exists()
    assert list(tmp_path.iterdir()) == [path]  # no half-written file beside it
    rows = []
    resumed = run(fresh(), solver=solver, checkpoint=path, callback=lambda row: rows.append(row["iteration"]))
    assert resumed.converged
    assert resumed.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-6)
    # one table, one numbering, bounds that never get worse
    trace = np.array(resumed.trace)
    assert [row[0] for row in resumed.trace] == list(range(1, resumed.n_iter + 1))
    assert rows[:1] in ([], [at + 1])
    assert np.all(np.diff(trace[:, 1]) >= 0)
    assert np.all(np.diff(trace[:, 2]) >= 0)
    assert np.all(np.diff(trace[:, 3]) <= 1e-12 * trace[:-1, 3])
    assert np.all(np.diff(trace[:, 4]) >= -1e-12 * np.abs(trace[:-1, 4]))


def test_being_killed_again_at_once_loses_nothing(tmp_path):
    path = tmp_path / "fit.npz"
    whole = run(fresh())
    with pytest.raises(Killed):
        run(fresh(), checkpoint=path, callback=kill_at(whole.n_iter - 2))
    before = [np.load(path)["trace"][-1]]
    for k in range(3):
        with pytest.raises(Killed):
            run(fresh(), checkpoint=path, callback=kill_at(whole.n_iter - 1 + k))
        before.append(np.load(path)["trace"][-1])
    primal, dual = np.array(before)[:, 3], np.array(before)[:, 4]
    assert np.all(np.diff(primal) <= 1e-12 * primal[0])
    assert np.all(np.diff(dual) >= -1e-12 * primal[0])


def test_resuming_a_finished_fit_is_over_at_once(tmp_path):
    path = tmp_path / "fit.npz"
    done = run(fresh(), checkpoint=path)
    again = run(fresh(), checkpoint=path)
    assert again.converged
    assert again.n_iter == done.n_iter + 1
    assert again.seconds >= done.seconds
    assert again.certificate.primal <= done.certificate.primal * (1 + 1e-12)
    assert again.certificate.relative_gap <= done.certificate.relative_gap + 1e-12


def test_an_interrupt_is_saved_too(tmp_path):
    path = tmp_path / "fit.npz"

    def interrupt(row):
        if row["iteration"] == 5:
            raise KeyboardInterrupt

    stopped = run(fresh(), checkpoint=path, callback=interrupt)
    assert stopped.status == "interrupted"
    saved = Checkpoint(path, fresh()).load()
    assert [row[0] for row in saved.trace] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(saved.point.beta, stopped.point.beta)
    np.testing.assert_array_equal(saved.point.weights, stopped.point.weights)
    problem = fresh()
    assert problem.certificate(saved.point).dual == pytest.approx(stopped.certificate.dual, rel=1e-12)


def test_the_file_is_plain_data(tmp_path):
    path = tmp_path / "fit.npz"
    run(fresh(), checkpoint=path, tol=1e-2)
    with np.load(path, allow_pickle=False) as file:
        assert {"beta", "weights", "dual_beta", "trace", "seconds", "fingerprint"} <= set(file.files)
        assert file["beta"].shape == (20,)
        assert file["trace"].shape[1] == 7


def test_columns_are_saved_and_resumed(tmp_path):
    path = tmp_path / "fit.npz"
    with pytest.raises(Killed):
        run(fresh(columns=2), checkpoint=path, callback=kill_at(5))
    assert run(fresh(columns=2), checkpoint=path).converged


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["truncated", "empty", "text", "array", "incomplete", "zeros"])
def test_a_damaged_file_is_refused_by_name(tmp_path, how):
    path = tmp_path / "fit.npz"
    run(fresh(), checkpoint=path, tol=1e-2)
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("not a checkpoint at all\n")
    elif how == "zeros":
        path.write_bytes(bytes(len(whole)))
    elif how == "array":
        with path.open("wb") as file:
            np.save(file, np.arange(3))
    else:
        with path.open("wb") as file:
            np.savez(file, beta=np.zeros(20))
    with pytest.raises(ValueError, match=r"fit\.npz.* is damaged .*delete it"):
        run(fresh(), checkpoint=path)


def test_a_file_of_another_problem_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    run(fresh(), checkpoint=path, tol=1e-2)
    base = make_case(ref.HINGE, "l1", True, n=20, m=4)
    bank = base.problem.bank
    loss, norm = base.problem.loss, base.problem.norm
    scaled, _ = precomputed_bank(
        np.ascontiguousarray(base.Ks * np.array([1, 1, 1.01, 1])[:, None, None]), normalize=None
    )
    fewer, _ = precomputed_bank(np.ascontiguousarray(base.Ks[:3]), normalize=None)
    others = {
        "C": MKLProblem(bank, loss, norm, base.y, 3.5),
        "targets": MKLProblem(bank, loss, norm, -base.y, 3.0),
        "weights": MKLProblem(bank, loss, norm, base.y, 3.0, np.linspace(0.5, 1.5, 20)),
        "intercept": MKLProblem(bank, loss, norm, base.y, 3.0, fit_intercept=False),
        "norm": MKLProblem(bank, loss, make_norm(2), base.y, 3.0),
        "loss": MKLProblem(bank, ref.LOGISTIC.make(), norm, base.y, 3.0),
        "kernels": MKLProblem(scaled, loss, norm, base.y, 3.0),
        "fewer kernels": MKLProblem(fewer, loss, norm, base.y, 3.0),
    }
    for problem in others.values():
        solver = "newton" if problem.norm.convex_in_weights else "fixed_weights"
        with pytest.raises(ValueError, match=r"fit\.npz.* belongs to another problem"):
            run(problem, checkpoint=path, solver=solver)


def test_kernels_that_differ_by_rounding_are_the_same_problem(tmp_path):
    path = tmp_path / "fit.npz"
    with pytest.raises(Killed):
        run(fresh(), checkpoint=path, callback=kill_at(4))
    case = make_case(ref.HINGE, "l1", True, n=20, m=4)
    bank, _ = precomputed_bank(np.ascontiguousarray(case.Ks * (1 + 1e-14)), normalize=None)
    problem = MKLProblem(bank, case.problem.loss, case.problem.norm, case.y, 3.0)
    assert run(problem, checkpoint=path).converged


def test_fingerprints_see_every_entry_of_a_long_parameter():
    case = make_case(ref.HINGE, "l1", True, n=6, m=2)
    stack = np.repeat(case.Ks[:1], 1500, axis=0)
    bank, _ = precomputed_bank(stack, normalize=None)
    weights = np.full(1500, 0.1)
    other = weights.copy()
    other[700] = 0.2
    prints = {fingerprint(MKLProblem(bank, case.problem.loss, Fixed(d), case.y)) for d in (weights, other)}
    assert len(prints) == 2


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint folder .*nowhere.* does not exist"):
        run(fresh(), checkpoint=tmp_path / "nowhere" / "fit.npz")
