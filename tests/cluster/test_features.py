"""Explicit features on two workers, from arrays, tables and files."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier, MKLRegressor, MKLSurvival, distributed, survival
from kernelweave import kernels as kw
from kernelweave.banks import FeatureMatrix, Features, FeatureStream, Normaliser, ParquetRows, as_rows
from kernelweave.cluster import cluster_bank
from kernelweave.cluster._dask import MappedRows, read_rows, send_rows
from kernelweave.losses import Logistic, Squared

BANK = kw.random_fourier([1.0, 3.0], n_features=20) + kw.linear()
OPTIONS = {"kernels": BANK, "norm": 2, "loss": "logistic", "solver": "lbfgs", "tol": 1e-6}


def cancer(n=200):
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:n, :6]), y[:n]


@pytest.fixture
def alone():
    return MKLClassifier(**OPTIONS, storage="lowrank").fit(*cancer())


def same(fitted, alone, X):
    assert fitted.cluster_.parts == 2
    assert fitted.solver_ == "lbfgs"
    assert fitted.certificate_.relative_gap <= 1e-6
    assert fitted.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(fitted.decision_function(X), alone.decision_function(np.asarray(X)), atol=1e-8)


@pytest.mark.parametrize("storage", ["auto", "lowrank", "stream"])
def test_arrays_of_dask(client, alone, storage):
    X, y = cancer()
    with client.as_current():
        fitted = MKLClassifier(**{**OPTIONS, "solver": "auto"}, storage=storage)
        fitted.fit(da.from_array(X, chunks=(70, -1)), da.from_array(y, chunks=70))
    same(fitted, alone, X)
    assert (fitted.bank_bytes_ > 0) == (storage != "stream")


def test_tables_of_dask_and_pandas(client, alone):
    X, y = cancer()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    table = dd.from_pandas(frame, npartitions=5)
    for given in (table, frame):
        fitted = distributed.fit(client, MKLClassifier(**OPTIONS), given, y)
        same(fitted, alone, frame)
        assert list(fitted.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.rename(columns={"a": "z"}))
    some = kw.linear().on(["a", "c"])
    one = MKLClassifier(**{**OPTIONS, "kernels": some}).fit(frame, y)
    two = distributed.fit(client, MKLClassifier(**{**OPTIONS, "kernels": some}), table, y)
    assert two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-8)


def test_workers_read_files_themselves(client, alone, tmp_path):
    X, y = cancer()
    pd.DataFrame(X, columns=list("abcdef")).to_parquet(tmp_path / "rows.parquet", row_group_size=64)
    np.save(tmp_path / "rows.npy", X)
    for rows in (ParquetRows(tmp_path / "rows.parquet"), np.load(tmp_path / "rows.npy", mmap_mode="r")):
        fitted = distributed.fit(client, MKLClassifier(**OPTIONS), rows, y)
        same(fitted, alone, X)
        assert fitted.cluster_.sent < 20 * X.nbytes  # vectors alone: rows are not sent


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_mapped_file_travels_by_its_name(tmp_path, order):
    X, _ = cancer()
    np.save(tmp_path / "rows.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    sent = pickle.dumps(send_rows(as_rows(mapped), 50, 120, None, ""))
    assert len(sent) < 2000 < X.nbytes
    rows = read_rows(pickle.loads(sent))
    assert rows.shape == (70, 6)
    np.testing.assert_array_equal(rows[3:9], X[53:59])
    np.testing.assert_array_equal(rows[np.array([69, 0])], X[[119, 50]])
    assert not MappedRows.can(mapped[10:])  # numpy does not say where that begins
    assert not MappedRows.can(X)


def test_sparse_rows(client):
    X, y = cancer()
    X = np.where(X > 0.5, X, 0.0)
    options = {**OPTIONS, "kernels": kw.per_feature(kw.linear())}
    one = MKLClassifier(**options).fit(sp.csr_matrix(X), y)
    two = distributed.fit(client, MKLClassifier(**options), sp.csr_matrix(X), y)
    assert two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-8)


def test_single_precision_is_certified_in_double(client, alone):
    X, y = cancer()
    fitted = distributed.fit(client, MKLClassifier(**{**OPTIONS, "tol": 1e-4}, dtype="float32"), X, y)
    assert fitted.certificate_.relative_gap <= 1e-4
    assert fitted.certificate_.dual <= alone.certificate_.primal * (1 + 1e-9)
    assert fitted.bank_bytes_ == 4 * 200 * (2 * 20 + 6)


def test_regression_and_sample_weights(client):
    X, y = (part[:150] for part in load_diabetes(return_X_y=True))
    X, y, weight = scale(X), scale(y), np.random.default_rng(0).random(150)
    options = {"kernels": BANK, "norm": 1.5, "solver": "lbfgs", "tol": 1e-7}
    one = MKLRegressor(**options, storage="lowrank").fit(X, y, weight)
    chunks = [da.from_array(part, chunks=(50, -1)[: part.ndim]) for part in (X, y, weight)]
    two = distributed.fit(client, MKLRegressor(**options), *chunks)
    assert two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("columns", [None, 3])
def test_every_method_of_the_bank(client, columns):
    X, _ = cancer(61)
    kernels = [k.resolve(X) for k in kw.expand_kernels(BANK, kw.Schema.of(X))]
    normaliser = Normaliser.empty("trace", False, len(kernels), 61, [k.name for k in kernels])
    rows = distributed.DaskRows(da.from_array(X, chunks=(25, -1)), client)
    bank = cluster_bank(client, kernels, rows, normaliser)
    np.testing.assert_array_equal(bank.storage.bounds, [0, 25, 61])  # between chunks
    features = np.hstack([k.features(X) for k in kernels])
    here = Features(FeatureMatrix(features, bank.starts, 61 / np.array([np.trace(k(X)) for k in kernels])))
    streamed = Features(FeatureStream(kernels, X, here.scale, block_rows=13))
    rng = np.random.default_rng(0)
    shape = () if columns is None else (columns,)
    a, w = rng.standard_normal((61, *shape)), rng.standard_normal((features.shape[1], *shape))
    weights = rng.random(bank.m)
    where, which = np.array([59, 0, 40]), np.array([2, 0])
    targets = np.where(rng.random((61, *shape)) < 0.5, -1.0, 1.0)
    c, loss = rng.random(targets.shape), Logistic()
    wide, b = w.reshape(-1, columns or 1), rng.standard_normal(columns or 1)
    f = (features @ wide + b).reshape(targets.shape)
    value = np.sum(c * np.log1p(np.exp(-targets * f)))
    g = (-c * targets / (1 + np.exp(targets * f))).reshape(61, -1)
    for tried in (bank, streamed, here):
        np.testing.assert_allclose(tried.forward(w), features @ w)
        np.testing.assert_allclose(tried.adjoint(a), features.T @ a)
        np.testing.assert_allclose(tried.diag(), here.diag())
        np.testing.assert_allclose(tried.block(where, where, which), here.block(where, where, which))
        np.testing.assert_allclose(tried.quad(a), here.quad(a))
        np.testing.assert_allclose(tried.combine(weights), here.combine(weights))
        for got, known in zip(
            tried.judged(weights, a), (here.quad(a), here.mix_product(weights, a)), strict=True
        ):
            np.testing.assert_allclose(got, known)
        charged, along, sums = tried.loss_sweep(wide, b, loss, targets, c)
        assert charged == pytest.approx(value)
        np.testing.assert_allclose(along, features.T @ g, atol=1e-12)
        np.testing.assert_allclose(sums, g.sum(axis=0), atol=1e-12)


def test_a_step_is_one_round_of_features(client):
    """Value and gradient: R numbers to every part and back, whatever n is; targets are sent once."""
    X, y = cancer()
    kernels = [k.resolve(X) for k in kw.expand_kernels(BANK, kw.Schema.of(X))]
    normaliser = Normaliser.empty(None, False, len(kernels), 200, [k.name for k in kernels])
    bank = cluster_bank(client, kernels, distributed.DaskRows(da.from_array(X), client), normaliser)
    width, targets, c = int(bank.starts[-1]), np.where(y == 1, 1.0, -1.0), np.ones(200)
    w, b = np.zeros((width, 1)), np.zeros(1)
    bank.loss_sweep(w, b, Squared(), targets, c)
    cost = bank.cluster_cost
    before = (cost.rounds, cost.sent, cost.received)
    bank.loss_sweep(w, b, Squared(), targets, c)
    assert cost.rounds == before[0] + 1
    parts = cost.parts
    assert cost.sent - before[1] == parts * 8 * (width + 1 + 1)
    assert cost.received - before[2] == parts * 8 * (width + 1 + 1)


def test_prediction_is_lazy(client, alone):
    X, y = cancer()
    read = []

    def note(block):
        read.append(len(block))
        return block

    array = da.from_array(X, chunks=(90, -1)).map_blocks(note, meta=np.empty((0, 6)))
    with dask.config.set(scheduler="synchronous"):
        for method in ("predict", "decision_function", "predict_proba"):
            made = getattr(alone, method)(array)
            assert isinstance(made, da.Array)
            assert made.shape == getattr(alone, method)(X).shape
            assert read == []
        np.testing.assert_allclose(made.compute(), alone.predict_proba(X))
        assert sorted(read) == [20, 90, 90]
        few = alone.predict(array[array[:, 0] > 0])  # so many rows as there are
        np.testing.assert_array_equal(few.compute(), alone.predict(X[X[:, 0] > 0]))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = MKLClassifier(kw.linear().on(["a", "b"])).fit(frame, y)
    with dask.config.set(scheduler="synchronous"):
        made = named.predict(dd.from_pandas(frame, npartitions=3))
        np.testing.assert_array_equal(made.compute(), named.predict(frame))
    with pytest.raises(ValueError, match="7 features, but MKLClassifier is expecting 6"):
        alone.predict(da.zeros((10, 7)))
    with pytest.raises(ValueError, match=r"2 chunks along its features.*rechunk"):
        alone.predict(da.zeros((10, 6), chunks=(5, 3)))


def test_a_model_from_a_cluster_is_saved_like_any_other(client, alone, tmp_path):
    from kernelweave import persistence

    X, y = cancer()
    fitted = distributed.fit(client, MKLClassifier(**OPTIONS), da.from_array(X, chunks=(70, -1)), y)
    persistence.save(fitted, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    assert again.cluster_ == fitted.cluster_
    assert not hasattr(fitted.fit(X, y), "cluster_")  # of a fit that used none


def test_risk_sets_across_workers(client):
    """Samples of one worker are in the risk sets of another's: decision values come together first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = survival(np.ceil(5 * rng.exponential(np.exp(-X[:, 0]))), rng.random(120) < 0.8)
    options = {"kernels": BANK, "norm": 2, "C": 0.1, "tol": 1e-6, "solver": "lbfgs"}
    alone = MKLSurvival(**options, storage="lowrank").fit(X, y)
    fitted = distributed.fit(client, MKLSurvival(**options), da.from_array(X, chunks=(50, -1)), y)
    assert fitted.cluster_.parts == 2
    assert fitted.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(fitted.predict(X), alone.predict(X), atol=1e-6)
    assert fitted.cum_baseline_hazard_(1.0) == pytest.approx(alone.cum_baseline_hazard_(1.0), rel=1e-6)
