"""Ctrl-C where several fits are compared: it ends the whole call, and no number of a half-done fit is used."""

from __future__ import annotations

import signal
import sys
from functools import partialmethod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import forked
from kernelweave import MKLClassifier, MKLClassifierCV, mkl_path
from kernelweave import kernels as kw
from kernelweave.estimators.subsets import SubsetFits
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.inspection import (
    add_view,
    drop_view,
    view_importance,
    view_p_values,
    view_subsets,
    weight_stability,
)
from kernelweave.report import make_report
from kernelweave.solvers import registry
from kernelweave_studies.study import Part

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")

RAW, Y = load_breast_cancer(return_X_y=True)
X = scale(RAW)[:120]
Y = Y[:120]
VIEWS = {"mean": X[:, :10], "worst": X[:, 20:]}


def several(model):
    """Return everything that compares fits, by name."""
    splits = [(np.arange(0, 80), np.arange(80, 120)), (np.arange(40, 120), np.arange(0, 40))]
    fits = SubsetFits(model, VIEWS, Y)
    some = [np.arange(4), np.arange(2)]
    return {
        "stability": lambda: weight_stability(model, VIEWS, Y, n_refits=3),
        "p-values": lambda: view_p_values(model, VIEWS, Y, cv=3, n_permutations=9),
        "importance": lambda: view_importance(model, VIEWS, Y, n_folds=2, n_permutations=9),
        "subsets": lambda: view_subsets(model, VIEWS, Y, n_folds=2),
        "drop a view": lambda: drop_view(model, VIEWS, Y, "mean", n_folds=2),
        "add a view": lambda: add_view(model, VIEWS, Y, "error", X[:, 10:20], n_folds=2),
        "scores of subsets": lambda: fits.scores(some, splits),
        "weights along C": lambda: fits.weights_along(np.array([1.0, 10.0])),
        "weights of a subset": lambda: fits.weights(some[1]),
        "path": lambda: mkl_path(X, Y, kw.gaussian([1.0, 4.0]), Cs=[1.0, 10.0], tol=1e-8),
        "report": lambda: make_report(model, VIEWS, Y, n_folds=2, n_repeats=1),
    }


@pytest.fixture
def pressed(monkeypatch):
    """Press Ctrl-C once, when the fit with this number has a point; return a list with an entry for every fit."""
    runs = []

    def pressed(number):
        """Watch the solvers: one fit begins with ``init`` and has a point when it is asked for its second."""

        def init(self, *arguments, begin):
            runs.append(0)
            return begin(self, *arguments)

        def point(self, state, *, found):
            runs[-1] += 1
            if len(runs) == number and runs[-1] == 2:
                signal.raise_signal(signal.SIGINT)
            return found(self, state)

        for kind in {registry["newton"], registry["level"]}:
            monkeypatch.setattr(kind, "init", partialmethod(init, begin=kind.init))
            monkeypatch.setattr(kind, "point", partialmethod(point, found=kind.point))
        return runs

    return pressed


@pytest.fixture(autouse=True)
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("what", list(several(MKLClassifier(kw.gaussian([1.0, 4.0])).fit(VIEWS, Y))))
def test_a_series_of_fits_is_left_at_once(what, number, pressed):
    model = MKLClassifier(kw.gaussian([1.0, 4.0]), tol=1e-8, C=10.0).fit(VIEWS, Y)
    call = several(model)[what]
    number = 1 if what == "weights of a subset" else number
    runs = pressed(number)
    with pytest.raises(KeyboardInterrupt):
        call()
    assert len(runs) == number, "a fit was begun after the interrupt"


def test_one_fit_still_keeps_its_best_point(pressed):
    pressed(1)
    with pytest.warns(KernelWeaveConvergenceWarning, match="interrupted"):
        model = MKLClassifier(kw.gaussian([1.0, 4.0]), tol=1e-12, C=10.0, solver="level").fit(VIEWS, Y)
    assert model.status_ == "interrupted"


@pytest.mark.parametrize("fitted", [False, True])
def test_a_search_that_has_not_scored_anything_chooses_nothing(pressed, fitted):
    """Ctrl-C in the very first fit of a search: there is nothing to choose by, and the old model stays."""
    search = MKLClassifierCV(kw.gaussian([1.0, 4.0]), Cs=[1.0, 10.0], cv=2, tol=1e-8)
    before = search.fit(VIEWS, Y).C_ if fitted else None
    pressed(1)
    with pytest.raises(KeyboardInterrupt):
        search.set_params(Cs=[0.5]).fit(VIEWS, Y)
    assert getattr(search, "C_", None) == before
    assert len(getattr(search, "cv_results_", [])) == (4 if fitted else 0)


def test_a_search_inside_a_series_is_left_too(pressed):
    """A search alone chooses by what it knows; as one of several fits it must not."""
    searches = []

    class Search(MKLClassifierCV):
        def fit(self, X, y):
            searches.append(self)
            return super().fit(X, y)

    search = Search(kw.gaussian([1.0, 4.0]), Cs=[1.0, 10.0], cv=2, tol=1e-8).fit(VIEWS, Y)
    runs = pressed(3)
    with pytest.raises(KeyboardInterrupt):
        weight_stability(search, VIEWS, Y, n_refits=3)
    assert len(runs) <= 4
    assert len(searches) == 2  # the one before the series, and the first of it
    assert not hasattr(searches[-1], "weights_")


def test_a_run_of_a_study_that_is_interrupted_is_not_kept(tmp_path, pressed):
    def work(key):
        model = MKLClassifier(kw.gaussian([1.0, 4.0]), tol=1e-8, C=10.0).fit(VIEWS, Y)
        return [{"status": model.status_}]

    keys, report = lambda repeats: [{"seed": k} for k in range(repeats)], lambda rows, report: []
    part = Part("one", "A part", {}, keys, work, report, repeats=3, quick_repeats=2)
    pressed(2)
    with pytest.raises(KeyboardInterrupt):
        part.run("study", tmp_path, "command")
    kept = pd.read_csv(tmp_path / "study_one_runs.csv")
    assert kept["seed"].tolist() == [0]
    assert kept["status"].tolist() == ["converged"]


def test_refits_that_ran_out_of_time_are_said_first():
    model = MKLClassifier(kw.gaussian([1.0, 4.0]), tol=1e-12, solver="level", max_iter=2)
    with pytest.warns(KernelWeaveConvergenceWarning):
        page = make_report(model.fit(X, Y), X, Y, n_folds=2, n_repeats=1)
    assert "refits on folds stopped early (" in page
    assert "max iter" in page
    whole = MKLClassifier(kw.gaussian([1.0, 4.0])).fit(X, Y)
    assert "stopped early" not in make_report(whole, X, Y, n_folds=2, n_repeats=1)


def test_a_path_says_which_fits_are_not_done():
    with pytest.warns(KernelWeaveConvergenceWarning, match="2 of 2 fits of the path"):
        path = mkl_path(X, Y, kw.gaussian([1.0, 4.0]), Cs=[1.0, 10.0], tol=1e-12, max_iter=1, solver="level")
    assert path.status == ["max_iter", "max_iter"]
    assert mkl_path(X, Y, kw.gaussian([1.0, 4.0]), Cs=[1.0]).status == ["converged"]


#: a command that is interrupted when its k-th fit has a point
COMMAND = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from kernelweave.solvers._loop import Best
from kernelweave.cli import main
take, number, seen = Best.take, int(sys.argv.pop(1)), []
def watched(self, *arguments):
    take(self, *arguments)
    if self not in seen:
        seen.append(self)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGINT)
Best.take = watched
main(prog_name="kernelweave")
"""


def command(folder, number, *words):
    return forked.run(COMMAND, number, *words, folder=folder, check=False)


def left(folder):
    """Return the files of a folder, hidden ones too."""
    return sorted(path.name for path in Path(folder).iterdir())


def test_commands_end_with_130_and_write_nothing(tmp_path):
    frame = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(y=np.where(Y == 1, "good", "bad"))
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ("fit", "data.csv", "--target", "y", "--C", "1", "--model", "m.skops", "--folds", "2", "--quiet")
    done = command(tmp_path, 3, *words, "--report", "page.html")
    assert done.returncode == 130, done.stderr
    assert "interrupted; the model is written to m.skops, there is no report" in done.stderr
    assert left(tmp_path) == ["data.csv", "m.skops"]
    for number in (1, 4, 7):
        done = command(tmp_path, number, "report", "m.skops", "data.csv", "-o", "page.html", "--folds", "2")
        assert done.returncode == 130, (number, done.stderr)
        assert done.stderr == "interrupted; nothing was written\n"
        assert left(tmp_path) == ["data.csv", "m.skops"]
    done = command(tmp_path, 2, "demo", "--quick", "--output", "demo.png")
    assert done.returncode == 130, done.stderr
    assert left(tmp_path) == ["data.csv", "m.skops"]
