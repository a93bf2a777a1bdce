"""Everything that can be wrong with a cluster, said in a sentence."""

import time
from importlib.util import find_spec

import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import forked
from kernelweave import MKLClassifier, distributed
from kernelweave import kernels as kw
from kernelweave.banks import Rows
from kernelweave.exceptions import MemoryBudgetError

LOW = {"kernels": kw.linear(), "norm": 2, "loss": "logistic"}


def cancer(n=100):
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:n, :6]), y[:n]


def test_chunks(client):
    X, y = cancer()
    with client.as_current():
        with pytest.raises(ValueError, match=r"3 chunks along its features: .*X.rechunk\(\{1: -1\}\)"):
            MKLClassifier().fit(da.from_array(X, chunks=(50, 2)), y)
        array = da.from_array(X, chunks=(50, -1))
        with pytest.raises(ValueError, match=r"chunk sizes of X are unknown.*compute_chunk_sizes\(\)"):
            MKLClassifier().fit(array[array[:, 0] > 0], y)
        with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
            MKLClassifier(**LOW).fit(array[:, 0], y)
        with pytest.raises(ValueError, match="X has 100 samples, y has 99"):
            MKLClassifier(**LOW).fit(array, y[:99])
        with pytest.raises(
            ValueError, match=r"missing='predict' completes kernels in memory, not on a cluster"
        ):
            MKLClassifier(**LOW, missing="predict").fit(array, y)
        with pytest.raises(ValueError, match=r"view 'a' is a Array of dask: views are tables in memory"):
            MKLClassifier(**LOW, missing="predict").fit({"a": array[:, :3], "b": array[:, 3:]}, y)
        X[60, 1] = np.nan
        with pytest.raises(ValueError, match="contains NaN"):
            MKLClassifier(**LOW).fit(da.from_array(X, chunks=(50, -1)), y)


def test_without_dask():
    code = """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
from kernelweave import MKLClassifier, distributed
MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])  # needs none
distributed.fit(None, MKLClassifier(), [[0.0]], [0])
"""
    done = forked.run(code, check=False)
    assert "ImportError: fitting on a cluster needs Dask" in done.stderr
    assert "pip install 'kernelweave[dask]'" in done.stderr


def test_clients_that_are_none(client):
    X, y = cancer()
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client, got str"):
        distributed.fit("tcp://127.0.0.1:8786", MKLClassifier(), X, y)


def test_a_scheduler_that_is_gone_or_was_never_there():
    X, y = cancer()
    code = """
import dask.array as da
from kernelweave import MKLClassifier
MKLClassifier().fit(da.zeros((10, 2)), range(10))
"""
    done = forked.run(code, check=False)
    assert "there is no client to compute it: make one with dask.distributed.Client()" in done.stderr
    cluster = LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    gone = Client(cluster)
    with pytest.raises(ConnectionError, match="has no workers: start some"):
        distributed.fit(gone, MKLClassifier(), X, y)
    gone.close()
    cluster.close()
    with pytest.raises(ConnectionError, match=r"scheduler at .* is gone .*make a new Client, and fit again"):
        distributed.fit(gone, MKLClassifier(), X, y)


def test_a_scheduler_that_goes_during_a_fit(tmp_path):
    """The error says so, and the checkpoint has the best point so far."""
    X, y = cancer()
    path = tmp_path / "fit.npz"
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    client = Client(cluster)

    def close(row):
        if row["iteration"] == 2:
            client.close()
            cluster.close()

    clf = MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0])), tol=1e-9, callback=close, checkpoint=path)
    with pytest.raises(ConnectionError, match="is gone"):
        distributed.fit(client, clf, X, y)
    assert path.exists()
    resumed = MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0])), tol=1e-9, checkpoint=path).fit(X, y)
    assert resumed.trace_["iteration"].iloc[2] == 3
    assert resumed.certificate_.relative_gap <= 1e-9


def test_options_that_do_not_go_together(client):
    X, y = cancer()

    def fit(**options):
        return distributed.fit(client, MKLClassifier(**options), X, y)

    if find_spec("torch"):
        with pytest.raises(ValueError, match="a device and a cluster do not go together"):
            fit(device="cpu")
    with pytest.raises(ValueError, match="'precomputed' takes matrices in memory"):
        fit(kernels="precomputed")
    with pytest.raises(ValueError, match=r"storage must be one of auto, dense, lazy .* got 'family'"):
        fit(storage="family")
    with pytest.raises(ValueError, match=r"does not have .*kernels.nystroem.*storage='dense'"):
        fit(storage="stream", kernels=kw.gaussian(1.0))
    with pytest.raises(ValueError, match=r"single rows, which are on the workers: use solver='lbfgs'"):
        fit(**LOW, solver="svrg")
    with pytest.raises(ValueError, match="normalize='trace' or None, without centring"):
        fit(**LOW, center=True, storage="lowrank")
    with pytest.raises(MemoryBudgetError, match="more workers"):
        fit(storage="dense", memory_budget=1000)
    with pytest.raises(MemoryBudgetError, match="storage='stream'"):
        fit(**LOW, storage="lowrank", memory_budget=1000)
    assert fit(**LOW, center=True).solver_ == "newton"  # kernels instead, where nobody insists
    assert fit(**LOW, memory_budget=1000).bank_bytes_ == 0  # computed, where nothing else fits
    assert fit(memory_budget=1000).bank_bytes_ == 0


class Vanishing(Rows):
    """Rows of a file that is there for the client, and not for the workers."""

    def __init__(self, X):
        super().__init__(*X.shape)
        self.X, self.read = X, False

    def __getitem__(self, rows):
        if self.read:
            raise FileNotFoundError("no such file: rows")
        self.read = True
        return self.X[rows]


def test_an_error_on_a_worker_is_not_taken_for_its_loss(client):
    X, y = cancer()
    began = time.perf_counter()
    with pytest.raises(FileNotFoundError, match="no such file: rows"):
        distributed.fit(client, MKLClassifier(**LOW), Vanishing(X), y)
    assert time.perf_counter() - began < 30
    assert len(client.nthreads()) == 2
