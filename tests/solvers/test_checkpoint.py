"""Fits that are killed and resumed."""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import forked
import references as ref
from faults import children
from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks import Gram, build_bank
from kernelweave.exceptions import KernelWeaveWarning, NotFiniteError
from kernelweave.norms import Fixed, make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, make_solver, registry, solve, without_caches
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


def test_the_file_and_its_name_are_on_the_disk(tmp_path, monkeypatch):
    """A file that is renamed lasts only when its folder was written as well."""
    written, fsync = [], os.fsync

    def note(handle):
        written.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    run(fresh(), checkpoint=tmp_path / "fit.npz", tol=1e-2)
    assert written
    assert written == [False, True] * (len(written) // 2)


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


class Order:
    """What a hostile file holds in place of numbers: unpickling it calls a function."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_a_file_with_objects_is_refused_before_they_are_built(tmp_path):
    path, trace = tmp_path / "fit.npz", tmp_path / "obeyed"
    run(fresh(), checkpoint=path, tol=1e-2)
    with np.load(path) as file:
        contents = dict(file)
    for name in contents:
        with path.open("wb") as file:
            np.savez(file, **contents | {name: np.array([Order(trace)], dtype=object)})
        with pytest.raises(ValueError, match="is damaged"):
            run(fresh(), checkpoint=path)
        assert not trace.exists(), name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
def test_what_is_no_file_is_not_read(tmp_path):
    path = tmp_path / "fit.npz"
    checkpoint = Checkpoint(path, fresh())
    os.mkfifo(path)  # in between
    with pytest.raises(ValueError, match="not a regular file"):
        checkpoint.load()


def test_a_file_of_another_problem_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    run(fresh(), checkpoint=path, tol=1e-2)
    base = make_case(ref.HINGE, "l1", True, n=20, m=4)
    bank = base.problem.bank
    loss, norm = base.problem.loss, base.problem.norm
    scaled = build_bank(
        None, np.ascontiguousarray(base.Ks * np.array([1, 1, 1.01, 1])[:, None, None]), normalize=None
    )
    fewer = build_bank(None, np.ascontiguousarray(base.Ks[:3]), normalize=None)
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
    bank = build_bank(None, np.ascontiguousarray(case.Ks * (1 + 1e-14)), normalize=None)
    problem = MKLProblem(bank, case.problem.loss, case.problem.norm, case.y, 3.0)
    assert run(problem, checkpoint=path).converged


def test_fingerprints_see_every_entry_of_a_long_parameter():
    case = make_case(ref.HINGE, "l1", True, n=6, m=2)
    stack = np.repeat(case.Ks[:1], 1500, axis=0)
    bank = build_bank(None, stack, normalize=None)
    weights = np.full(1500, 0.1)
    other = weights.copy()
    other[700] = 0.2
    prints = {fingerprint(MKLProblem(bank, case.problem.loss, Fixed(d), case.y)) for d in (weights, other)}
    assert len(prints) == 2


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    """Said before the fit; root may write everywhere, so that the system's answer is made up."""
    monkeypatch.setattr(os, "access", lambda place, mode: not (place == tmp_path and mode == os.W_OK))
    with pytest.raises(ValueError, match="cannot be written to"):
        run(fresh(), checkpoint=tmp_path / "fit.npz")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint folder .*nowhere.* does not exist"):
        run(fresh(), checkpoint=tmp_path / "nowhere" / "fit.npz")


# ---- what may be in the place of the file --------------------------------------------------------------------------


@functools.cache
def written(solver):
    """Return what a solver writes on the way to a tolerance of 1e-2."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.npz"
        run(fresh(), checkpoint=path, tol=1e-2, solver=solver)
        return path.read_bytes()


def changed(path, **arrays):
    """Rewrite a checkpoint with some of its arrays exchanged."""
    with np.load(path) as file:
        content = dict(file)
    with path.open("wb") as file:
        np.savez(file, **content | arrays)


WRONG = {
    "beta of another shape": {"beta": np.zeros(19)},
    "beta as columns": {"beta": np.zeros((20, 1))},
    "beta of whole numbers": {"beta": np.zeros(20, dtype=int)},
    "beta of texts": {"beta": np.full(20, "a")},
    "beta not finite": {"beta": np.full(20, np.nan)},
    "bound not finite": {"dual_beta": np.full(20, np.inf)},
    "bound of another shape": {"dual_beta": np.zeros(())},
    "complex weights": {"weights": np.ones(4) + 0j},
    "weights all zero": {"weights": np.zeros(4)},
    "a negative weight": {"weights": np.array([1.0, -0.1, 0.0, 0.0])},
    "too many weights": {"weights": np.ones(5)},
    "a trace of other columns": {"trace": np.zeros((3, 6))},
    "a trace that is not finite": {"trace": np.full((3, 7), np.nan)},
    "time that ran backwards": {"seconds": np.array(-1.0)},
    "times": {"seconds": np.zeros(2)},
    "a fingerprint of numbers": {"fingerprint": np.zeros(3)},
    "coefficients whose squares overflow": {"beta": np.full(20, 1e155)},
    "coefficients beyond everything": {"beta": np.full(20, 1e300)},
    "weights whose sum overflows": {"weights": np.full(4, 1e308)},
}


@pytest.mark.parametrize("how", WRONG)
def test_contents_that_no_fit_writes_are_refused(tmp_path, how):
    path = tmp_path / "fit.npz"
    path.write_bytes(written("level"))
    changed(path, **WRONG[how])
    with pytest.raises(ValueError, match=r"fit\.npz.* is damaged .*delete it"):
        run(fresh(), checkpoint=path)


@pytest.mark.pairs
@pytest.mark.parametrize("solver", ["level", "silp", "simplemkl", "newton", "subgradient", "working_set"])
@pytest.mark.parametrize("name", ["beta", "weights", "dual_beta"])
@pytest.mark.parametrize("size", [1e10, 1e100, 1e150, 1e154, 1e200, 1e307])
def test_numbers_of_any_size_end_in_a_refusal_or_in_a_proof(tmp_path, solver, name, size):
    """Squares of such coefficients overflow somewhere; what comes back is certified by finite bounds, or nothing is."""
    path = tmp_path / "fit.npz"
    path.write_bytes(written(solver))
    with np.load(path) as file:
        shape = file[name].shape
    changed(path, **{name: np.full(shape, size)})
    problem = fresh()
    try:
        solution = run(problem, checkpoint=path, tol=1e-3, solver=solver)
    except ValueError as error:
        if re.search(r"fit\.npz.* is damaged .*delete it", str(error)):
            return
        raise
    assert solution.converged
    assert np.isfinite(solution.point.beta).all()
    bare = problem.certificate(without_caches(solution.point))
    assert bare.primal == pytest.approx(solution.certificate.primal, rel=1e-9)
    assert solution.certificate.dual == pytest.approx(problem.dual(solution.certificate.dual_point), rel=1e-9)


def test_a_fit_whose_bounds_are_not_finite_is_refused(monkeypatch):
    """A warning that says what is proved is about numbers."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    certificate, judged, over = MKLProblem.certificate, Gram.judged, []

    def undefined(self, point):
        found = certificate(self, point)
        return replace(found, primal=np.nan) if over else found

    # the last certificate alone asks the bank for all that it reads
    monkeypatch.setattr(Gram, "judged", lambda *given: over.append(True) or judged(*given))
    monkeypatch.setattr(MKLProblem, "certificate", undefined)
    monkeypatch.setattr(
        MKLProblem, "at_zero", property(MKLProblem.at_zero.func)
    )  # nor is that kept from before

    class Again(registry["newton"]):
        def init(self, *given):
            over.clear()
            return super().init(*given)

    with pytest.raises(NotFiniteError, match="nothing is proved of the fit"):
        MKLClassifier(kw.gaussian([1.0, 2.0]), solver=Again()).fit(X, X[:, 0] > 0)
    assert over


def test_flipped_bytes_never_get_further_than_a_value_error(tmp_path):
    path = tmp_path / "fit.npz"
    run(fresh(), checkpoint=path, tol=1e-2)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        flipped = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 9)):
            flipped[place] = rng.integers(0, 256)
        path.write_bytes(flipped[: rng.integers(1, len(whole))] if rng.random() < 0.3 else flipped)
        said = "is damaged, or belongs to another problem"  # or holds what was saved, where the flips do not matter
        try:
            Checkpoint(path, fresh()).load()
        except ValueError as error:
            said = str(error)
        assert "is damaged" in said or "another problem" in said


def test_an_archive_that_unpacks_to_more_than_it_is_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    run(fresh(), checkpoint=path, tol=1e-2)
    with np.load(path) as file:
        content = dict(file)
    np.savez_compressed(path, **content | {"trace": np.zeros((10**6, 7))})
    with pytest.raises(ValueError, match=r"damaged .*more than it does"):
        run(fresh(), checkpoint=path)


def make_in_place(path, kind):
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.with_name("elsewhere.npz"))


@pytest.mark.skipif(os.name == "nt", reason="pipes and links are POSIX")
@pytest.mark.parametrize("kind", ["folder", "pipe", "symbolic link"])
@pytest.mark.parametrize("by", ["loop", "estimator"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind, by):
    path = tmp_path / "fit.npz"
    make_in_place(path, kind)
    # before kernels that would fail are computed
    model = MKLClassifier(kw.function(lambda a, b: 1 / 0), checkpoint=path)
    fits = {
        "loop": lambda: run(fresh(), checkpoint=path),
        "estimator": lambda: model.fit(np.zeros((4, 1)), [0, 1, 0, 1]),
    }
    with pytest.raises(ValueError, match=f"is a {kind}: give the name of a file"):
        fits[by]()
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="devices are POSIX")
def test_devices_and_names_that_are_none():
    for place, why in (
        ("/dev/null", "device"),
        ("a\0b", "no name"),
        ("x" * 5000, "no name"),
        (7, "must be the name"),
    ):
        with pytest.raises(ValueError, match=why):
            MKLClassifier(checkpoint=place).fit(np.zeros((4, 1)), [0, 1, 0, 1])


@pytest.mark.skipif(os.name == "nt", reason="links are POSIX")
def test_a_link_that_comes_later_is_replaced_and_not_followed(tmp_path):
    path, victim = tmp_path / "fit.npz", tmp_path / "victim"
    victim.write_text("precious")

    def plant(row):
        if row["iteration"] == 3:
            path.unlink()
            path.symlink_to(victim)

    run(fresh(), checkpoint=path, callback=plant)
    assert victim.read_text() == "precious"
    assert not path.is_symlink()
    checkpoint = Checkpoint(path, fresh())
    path.unlink()
    path.symlink_to(victim)  # after the first look
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.load()


# ---- disks and other processes -------------------------------------------------------------------------------------


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    with pytest.raises(Killed):
        run(fresh(), checkpoint=path, callback=kill_at(4))
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(
        KernelWeaveWarning, match=r"cannot be written \(No space left.*the fit goes on"
    ) as caught:
        assert run(fresh(), checkpoint=path).converged
    assert len(caught) == 1
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_the_system_does_not_let_grow(tmp_path):
    """The same with a limit of the system's, in a process of its own."""
    pytest.importorskip("resource")
    forked.run(
        """
        import resource, sys, warnings
        import numpy as np
        from kernelweave import MKLClassifier
        X = np.random.default_rng(0).normal(size=(60, 3)); y = X[:, 0] > 0
        MKLClassifier().fit(X, y)  # compiled, if need be
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = MKLClassifier(checkpoint=sys.argv[1]).fit(X, y)
        assert model.status_ == "converged"
        assert "the fit goes on" in str(caught[0].message), [str(one.message) for one in caught]
        """,
        tmp_path / "fit.npz",
    )
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_share_a_file_do_not_disturb_each_other(tmp_path):
    code = """
        import sys
        import numpy as np
        from kernelweave import MKLClassifier
        from kernelweave.solvers import _checkpoint
        _checkpoint.Checkpoint.__init__.__defaults__ = (0.0,)  # at every iteration
        X = np.random.default_rng(0).normal(size=(40, 3)); y = X[:, 0] > 0
        for _ in range(25):
            model = MKLClassifier(solver="level", tol=1e-6, checkpoint=sys.argv[1]).fit(X, y)
            assert model.certificate_.relative_gap <= 1e-6
    """
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: children.run(code, tmp_path / "fit.npz"), range(2)))
    assert [path.name for path in tmp_path.iterdir()] == ["fit.npz"]


@pytest.mark.skipif(os.name == "nt", reason="processes cannot be asked for there")
def test_what_killed_processes_left_is_taken_away(tmp_path):
    path = tmp_path / "fit.npz"
    prefix = Checkpoint(path, fresh())._prefix
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    old, young, living, foreign = (
        tmp_path / f"{prefix}{int(gone.stdout)}-a.part",
        tmp_path / f"{prefix}{int(gone.stdout)}-b.part",
        tmp_path / f"{prefix}{os.getpid()}-c.part",
        tmp_path / ".fit.npz.elsewhere-1-d.part",
    )
    for part in (old, young, living, foreign):
        part.write_bytes(b"half of a file")
        if part is not young:
            os.utime(part, (0, 0))
    Checkpoint(path, fresh())
    assert sorted(tmp_path.iterdir()) == sorted([young, living, foreign])
