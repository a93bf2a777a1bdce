"""Ctrl-C, with real signals in processes of their own: at the worst moments, twice, and in a command."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest

import forked
from kernelweave._numerics.stopping import one_interrupt, uninterrupted

from .children import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")

PRELUDE = """
    import os, signal, sys, threading, time, warnings
    warnings.simplefilter("ignore")

    enough, pressing = threading.Event(), threading.Lock()

    def press(*moments):
        "Ctrl-C after so many seconds each, until it is enough."
        enough.clear()
        def wait():
            began = time.monotonic()
            for moment in moments:
                enough.wait(max(0.0, began + moment - time.monotonic()))
                with pressing:
                    if not enough.is_set():
                        os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=wait, daemon=True).start()
"""

#: a fit of seconds, in small steps; and one of a moment
FITS = """
    import numpy as np
    from kernelweave import MKLClassifier, MKLClassifierCV, kernels as kw
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)); y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=400) > 1).astype(int)
    bank = kw.per_feature(kw.gaussian([0.5, 1.0, 2.0]))
    slow = dict(solver="subgradient", tol=1e-12, max_iter=10**6, C=10.0)
    def quick_fit():
        model = MKLClassifier(bank).fit(X[:60], y[:60])
        assert model.status_ == "converged", model.status_
    def interrupted(model, y, iterations, moments):
        "Fit, press Ctrl-C at these moments after so many iterations; return the model and the seconds since."
        rows, pressed = [], []
        def press_later(row):
            rows.append(row)
            if len(rows) == iterations:
                pressed.append(time.monotonic())
                press(*moments)
        model.set_params(callback=press_later).fit(X, y)
        while not enough.is_set():
            try:
                with pressing:
                    enough.set()
            except KeyboardInterrupt:  # what is pressed after the fit is the program's business
                pass
        assert pressed, "not long enough"
        return model, time.monotonic() - pressed[0]
    def check(model):
        c = model.certificate_
        assert model.status_ == "interrupted", model.status_
        assert c.dual <= c.primal and np.isfinite(c.relative_gap), c
        assert np.all(np.isfinite(model.decision_function(X)))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        quick_fit()
"""


@pytest.mark.parametrize("moment", [0.05, 0.4])
def test_an_interrupted_import_of_numba_poisons_nothing(moment):
    run(
        PRELUDE
        + """
    import numpy, scipy.optimize
    press(float(sys.argv[1]))
    try:
        while True:  # once it is imported, the interrupt comes here
            import kernelweave._numerics.smo
            time.sleep(0.01)
    except KeyboardInterrupt:
        pass
    from kernelweave._numerics.smo import solve_box_qp
    from kernelweave._numerics.compiled import njit
    assert njit()(lambda x: x + 1)(1) == 2
    """,
        moment,
    )


def test_an_interrupted_compilation_poisons_nothing():
    run(
        PRELUDE
        + """
    import numpy as np
    from kernelweave._numerics.compiled import njit
    inner = njit()(lambda x: np.sort(x)[::-1].cumsum())
    outer = njit()(lambda x: inner(x).sum() + np.linalg.norm(x))
    press(0.1)
    try:
        outer(np.arange(4.0))
        time.sleep(30.0)
    except KeyboardInterrupt:
        assert outer.signatures  # it waited until the function was complete
    else:
        raise AssertionError("the interrupt was lost")
    assert outer(np.arange(4.0)) == 20.0 + 14.0**0.5
    """
    )


def test_work_in_one_piece():
    seen = []

    def work():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            seen.append("went on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_users_own_is_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with one_interrupt() as fit:
            signal.raise_signal(signal.SIGINT)
            assert not fit.interrupted
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert len(seen) == 1
        assert len(seen) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_the_result_is_put_in_order_loses_nothing():
    with one_interrupt() as fit:
        fit.winding_up = True
        signal.raise_signal(signal.SIGINT)
        assert fit.interrupted
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), one_interrupt():
        signal.raise_signal(signal.SIGINT)


def test_the_best_point_survives_impatience():
    """One, two and five interrupts, all within a tenth of a second, in a fit, in several, and in a search."""
    forked.run(
        PRELUDE
        + FITS
        + """
    quick_fit()
    for moments in ((0.0,), (0.0, 0.05), (0.0, 0.001, 0.01, 0.05, 0.1)):
        model, seconds = interrupted(MKLClassifier(bank, **slow), y, 20, moments)
        assert seconds < 5.0, seconds
        check(model)

    labels = rng.integers(0, 5, 400)
    model, seconds = interrupted(MKLClassifier(bank, multi_class="ovr", **slow), labels, 20, (0.0, 0.05))
    assert seconds < 5.0, seconds
    assert model.weights_.shape == (5, 15)
    check(model)

    model, seconds = interrupted(MKLClassifierCV(bank, Cs=30, cv=3), y, 80, (0.0, 0.05))
    assert seconds < 5.0, seconds
    assert 5 < len(model.cv_results_) < 90, len(model.cv_results_)
    assert model.C_ in set(model.cv_results_["C"])
    assert model.score(X, y) > 0.6, model.score(X, y)
    assert model.status_ == "interrupted" or model.certificate_.relative_gap <= model.tol, model.certificate_
    quick_fit()
    """
    )


def test_an_interrupt_before_there_is_anything_to_keep_goes_through():
    forked.run(
        PRELUDE
        + FITS
        + """
    quick_fit()
    def slow_kernel(a, b):
        time.sleep(0.01)
        return float(a[0] * b[0])
    press(0.3)
    try:
        MKLClassifier(kw.function(slow_kernel)).fit(X, y)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("the interrupt was lost")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    quick_fit()
    """
    )


def test_fits_in_threads_install_no_handler():
    import threading

    from kernelweave import MKLClassifier

    X = np.random.default_rng(0).normal(size=(30, 2))
    found = []

    def fit():
        model = MKLClassifier().fit(X, X[:, 0] > 0)
        found.append(model.status_)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert found == ["converged"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_while_a_fit_is_wound_up_ends_the_series():
    def work():
        with one_interrupt(keeps_best=False) as series:
            with one_interrupt(whole_fit=True):
                series.winding_up = True
                signal.raise_signal(signal.SIGINT)  # held back: the result is put in order first
            raise AssertionError("the fit returned as if nothing had happened")

    with pytest.raises(KeyboardInterrupt):
        work()
