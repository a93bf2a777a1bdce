"""``max_seconds`` holds for a whole fit, within a fifth, whatever the fit is doing when the time is up.

A fit is late only where both clocks say so: on a busy machine the wall's clock runs on while others work,
and the processor's counts the threads of a matrix product twice.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, mkl_path
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveConvergenceWarning

SECONDS = 0.5
#: tracing takes longer than the work: what is measured is not traced
pytestmark = pytest.mark.no_cover
N = 500


@pytest.fixture(scope="module")
def sample():
    return drawn(N)


def drawn(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    return X, X[:, 0] * X[:, 1] + 0.8 * rng.normal(size=n)


def bank():
    return kw.per_feature(kw.gaussian([0.25, 0.5, 1.0])) + kw.gaussian([1.0, 2.0, 4.0])


def in_time(fit, limit):
    """Return what a fit returns that took at most ``limit`` seconds by the clock that ran slower, of three tries.

    The first try may compile, and any one may meet a pause of the machine; a fit that is late by itself is late
    three times.
    """
    taken = []
    for _ in range(3):
        began = time.process_time(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
            made = fit()
        taken.append(min(time.process_time() - began[0], time.perf_counter() - began[1]))
        if taken[-1] <= limit:
            return made
    raise AssertionError(f"took {taken} seconds, {limit} allowed")


HARD = {"tol": 1e-14, "max_iter": 10**7, "C": 100.0}
FITS = {
    "many short steps": {"solver": "newton", "C": 1e4},
    "one long inner solve": {"norm": "uniform", "C": 1e4},
    "factorisations": {"loss": "logistic", "solver": "level"},
    "a search for a price": {"loss": "budgeted_hinge", "solver": "silp"},
    "line searches": {"loss": "squared_hinge", "solver": "simplemkl"},
    "a last SVM": {"solver": "mirror_prox"},
    "long preparations": {"loss": "logistic", "norm": 1.5, "solver": "svrg"},
    "runs of L-BFGS": {"loss": "squared_hinge", "norm": 1.5, "solver": "lbfgs"},
    "epochs": {"norm": 1.5, "fit_intercept": False, "solver": "pegasos"},
    "growing sets": {"norm": 1.5, "solver": "working_set"},
    "second-order steps on growing sets": {"solver": "working_set", "storage": "lazy"},
    "one problem after the other": {"multi_class": "ovr"},
}


@pytest.mark.parametrize("what", FITS)
def test_fits_end_in_time(sample, what):
    X, values = sample
    options = {**HARD, "max_seconds": SECONDS, **FITS[what]}
    y = (
        np.digitize(values, np.quantile(values, [0.25, 0.5, 0.75]))
        if "multi_class" in options
        else values > 0
    )
    model = in_time(lambda: MKLClassifier(bank(), **options).fit(X, y), 1.2 * SECONDS)
    assert model.status_ == "max_seconds"
    certificate = model.certificate_
    assert certificate.dual <= certificate.primal
    assert np.isfinite(certificate.relative_gap)
    assert np.all(np.isfinite(model.decision_function(X[:5])))


def test_regressions_end_in_time():
    X, values = drawn(2 * N)  # else it is over before the time is
    options = {**HARD, "loss": "epsilon_insensitive", "solver": "subgradient", "max_seconds": SECONDS}
    model = in_time(lambda: MKLRegressor(bank(), **options).fit(X, values), 1.2 * SECONDS)
    assert model.status_ == "max_seconds"


def test_every_class_gets_its_part_of_the_time(sample):
    X, values = sample
    y = np.digitize(values, np.quantile(values, [0.25, 0.5, 0.75]))
    model = in_time(
        lambda: MKLClassifier(bank(), multi_class="ovr", max_seconds=2 * SECONDS, **HARD).fit(X, y),
        2.4 * SECONDS,
    )
    spent = model.trace_.groupby("problem")["seconds"].max()
    assert len(spent) == 4
    assert spent.max() <= 2.5 * spent.min()


def test_a_search_and_its_last_fit_share_the_time(sample):
    X, values = sample
    search = MKLClassifierCV(bank(), Cs=np.logspace(1, 5, 8), cv=3, tol=1e-12, max_seconds=2 * SECONDS)
    model = in_time(lambda: search.fit(X, values > 0), 2.4 * SECONDS)
    assert 0 < len(model.cv_results_) <= 24
    assert model.C_ in set(model.cv_results_["C"])


def test_a_path_shares_the_time(sample):
    X, values = sample
    path = in_time(
        lambda: mkl_path(X, values > 0, bank(), Cs=np.logspace(1, 5, 8), tol=1e-12, max_seconds=2 * SECONDS),
        2.4 * SECONDS,
    )
    assert len(path.certificates) == 8


def test_a_limit_changes_nothing_where_it_is_not_reached(sample):
    X, values = sample
    free = MKLClassifier(bank()).fit(X[:200], values[:200] > 0)
    limited = MKLClassifier(bank(), max_seconds=1000.0).fit(X[:200], values[:200] > 0)
    assert limited.status_ == "converged"
    np.testing.assert_allclose(limited.weights_, free.weights_, atol=1e-12)
    assert limited.n_iter_ == free.n_iter_


def test_second_order_steps_on_a_working_set_stop_at_once_without_time(sample):
    X, values = sample
    options = {"solver": "working_set", "storage": "lazy", "max_seconds": 1e-6, **HARD}
    with pytest.warns(KernelWeaveConvergenceWarning):
        model = MKLClassifier(bank(), **options).fit(X, values > 0)
    assert model.status_ == "max_seconds"
    assert model.trace_["passes"].iloc[-1] <= 3
