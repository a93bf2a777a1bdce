"""Real processes: a worker that is killed in the middle of a fit changes nothing but the time; folds run on workers."""

import os
import signal

import dask.array as da
import joblib
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier, distributed
from kernelweave import kernels as kw


@pytest.fixture(scope="module")
def processes():
    options = {"processes": True, "dashboard_address": ":0", "memory_limit": "2GB"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster) as made:
        yield made


def wait_for_both(client):
    """Wait for two workers; one that was killed sometimes stays away in the oldest Dask, and is replaced here."""
    try:
        client.wait_for_workers(2, timeout=30)
    except TimeoutError:
        client.cluster.scale(0)
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=60)


def cancer(n=150):
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:n, :6]), y[:n]


class Killer:
    """Kill a worker that holds a part, once, after an iteration."""

    def __init__(self, client, iteration):
        self.client, self.iteration, self.killed = client, iteration, False

    def __call__(self, row):
        if row["iteration"] >= self.iteration and not self.killed:
            self.killed = True
            os.kill(max(self.client.run(os.getpid).values()), signal.SIGKILL)


EXACT = {"kernels": kw.gaussian([1.0, 2.0]) + kw.per_feature(kw.gaussian(1.0)), "tol": 1e-9}
FEATURES = {
    "kernels": kw.random_fourier([1.0, 3.0], n_features=20) + kw.linear(),
    "norm": 2, "loss": "logistic", "solver": "lbfgs", "tol": 1e-9,
}  # fmt: skip


@pytest.mark.parametrize("options", [EXACT, FEATURES], ids=["kernels", "features"])
def test_a_killed_worker_changes_nothing_but_the_time(processes, options):
    X, y = cancer()
    undisturbed = MKLClassifier(**options).fit(X, y)
    wait_for_both(processes)
    killer = Killer(processes, 1)
    fitted = distributed.fit(
        processes, MKLClassifier(**options, callback=killer), da.from_array(X, chunks=(50, -1)), y
    )
    assert killer.killed
    assert fitted.cluster_.rebuilt >= 1
    assert fitted.status_ == "converged"
    assert fitted.certificate_.relative_gap <= 1e-9
    assert fitted.certificate_.primal == pytest.approx(undisturbed.certificate_.primal, rel=1e-8)


def test_workers_that_are_lost_again_and_again_are_no_accident(processes, monkeypatch):
    X, y = cancer(60)
    wait_for_both(processes)
    monkeypatch.setattr("kernelweave.cluster.workers.LOSSES", 0)
    clf = MKLClassifier(**EXACT, callback=Killer(processes, 1))
    with pytest.raises(
        ConnectionError, match=r"lost 0 times, .* too little memory: use more workers, .*storage='lazy'"
    ):
        distributed.fit(processes, clf, X, y)


def test_folds_run_on_the_workers(processes):
    X, y = cancer()
    wait_for_both(processes)
    search = GridSearchCV(MKLClassifier(kw.gaussian([1.0, 2.0])), {"C": [0.1, 10.0]}, cv=3)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with processes.as_current(), joblib.parallel_config("dask", n_jobs=2):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(there, here)
