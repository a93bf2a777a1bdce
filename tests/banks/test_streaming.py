"""Streamed features are the features: same numbers, every row once, from memory, a mapped file, Arrow and Parquet."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.banks import (
    ArrayRows,
    ArrowRows,
    FeatureMatrix,
    Features,
    FeatureStream,
    ParquetRows,
    build_bank,
)
from kernelweave.banks.streaming import spread_rows
from kernelweave.kernels import Schema, expand_kernels, resolve_kernels, stack_features
from kernelweave.losses import make_loss
from kernelweave.norms import Lp
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, choose_solver, registry, solve

pa = pytest.importorskip("pyarrow")
rng = np.random.default_rng(0)
X = rng.normal(size=(230, 6))
X.flags.writeable = False
y = np.where(X[:, 0] - X[:, 3] + 0.5 * rng.normal(size=230) > 0, 1.0, -1.0)
SPEC = kw.per_view({"a": [0, 1, 2], "b": [3, 4, 5]}, kw.random_fourier(1.5, n_features=16)) + kw.linear().on(
    [0, 3]
)


def kernels(samples=X):
    return resolve_kernels(expand_kernels(SPEC, Schema(6)), samples)


def as_memmap(folder):
    path = folder / "rows.bin"
    X.tofile(path)
    return np.memmap(path, dtype=np.float64, shape=X.shape, mode="r")


def as_parquet(folder):
    import pyarrow.parquet as pq

    table = pa.table({f"x{k}": X[:, k] for k in range(6)})
    pq.write_table(table.slice(0, 100), folder / "first.parquet", row_group_size=40)
    pq.write_table(table.slice(100), folder / "second.parquet", row_group_size=40)
    return ParquetRows([folder / "first.parquet", folder / "second.parquet"])


def as_arrow(folder):
    table = pa.table({f"x{k}": X[:, k] for k in range(6)})
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=70):
            writer.write_batch(batch)
    return ArrowRows(folder / "rows.arrow")


SOURCES = {"array": lambda folder: X, "memmap": as_memmap, "parquet": as_parquet, "arrow": as_arrow}
source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


@source
@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_linear_map(make, threads, tmp_path):
    Z, starts = stack_features(kernels(), X)
    scale = np.array([1.0, 0.5, 2.0])
    streamed = Features(FeatureStream(kernels(), make(tmp_path), scale, block_rows=32, threads=threads))
    held = Features(FeatureMatrix(Z, starts, scale))
    w, a, e = rng.normal(size=(34, 2)), rng.normal(size=(230, 2)), rng.uniform(size=34)
    np.testing.assert_array_equal(streamed.starts, starts)
    np.testing.assert_allclose(streamed.forward(w), Z @ w, atol=1e-12)
    np.testing.assert_allclose(streamed.adjoint(a), Z.T @ a, atol=1e-11)
    np.testing.assert_allclose(streamed.lengths(e), Z**2 @ e, atol=1e-12)
    for mine, theirs in zip(
        streamed.sweep(w, lambda rows, f: 2 * f, e, a),
        held.sweep(w, lambda rows, f: 2 * f, e, a),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, atol=1e-10)
    np.testing.assert_allclose(streamed.quad(a), held.quad(a), rtol=1e-10)
    d = np.array([0.3, 0.0, 1.0])
    np.testing.assert_allclose(streamed.mix_product(d, a), held.mix_product(d, a), atol=1e-9)
    np.testing.assert_allclose(streamed.combine(d), held.combine(d), atol=1e-10)
    np.testing.assert_allclose(streamed.diag(), held.diag(), atol=1e-12)
    np.testing.assert_allclose(streamed.storage.mean_squares(), held.diag().mean(axis=1) / scale, rtol=1e-12)
    assert streamed.passes == pytest.approx(held.passes)
    rows = np.array([3, 200, 41])
    np.testing.assert_allclose(
        streamed.block(rows, rows[:2], np.array([2, 0])),
        held.block(rows, rows[:2], np.array([2, 0])),
        atol=1e-12,
    )


@source
def test_shuffled_blocks_hold_every_row_once(make, tmp_path):
    bank = Features(FeatureStream(kernels(), make(tmp_path), block_rows=25, threads=2))
    Z, _ = stack_features(kernels(), X)
    order = []
    for rows, part in bank.shuffled(np.random.default_rng(3)):
        assert rows.size <= 25
        np.testing.assert_allclose(part, Z[rows], atol=1e-14)
        order.append(rows)
    np.testing.assert_array_equal(np.sort(np.concatenate(order)), np.arange(230))
    again = np.concatenate([rows for rows, _ in bank.shuffled(np.random.default_rng(3))])
    np.testing.assert_array_equal(again, np.concatenate(order))
    # neighbours in the file are torn apart
    assert np.mean(np.abs(np.diff(again)) == 1) < 0.1


def test_rows_in_the_order_of_their_labels(tmp_path):
    """The worst order a file can have: runs of one class after the other, longer than a block."""
    labels, samples = np.sort(y), X[np.argsort(y, kind="stable")]
    passes = {}
    for name, order in {"sorted": np.arange(230), "mixed": rng.permutation(230)}.items():
        table = pa.table({f"x{k}": samples[order, k] for k in range(6)})
        rows = ArrowRows(table.to_batches(max_chunksize=20))
        bank = Features(FeatureStream(kernels(samples), rows, block_rows=20))
        problem = MKLProblem(bank, make_loss("logistic"), Lp(1.5), labels[order], 1.0, None, False)
        solution = solve(problem, registry["svrg"](), Stop(tol=1e-5))
        assert solution.converged
        passes[name] = solution.passes
    assert passes["sorted"] <= 1.5 * passes["mixed"]


def test_sparse_rows_stay_sparse():
    S = sp.random(50, 6, density=0.3, format="csr", random_state=0)
    views = [kw.linear().on([0, 1]), kw.linear().on([2, 3, 4, 5])]
    bank = Features(FeatureStream(expand_kernels(views, Schema(6)), S, block_rows=20))
    assert all(sp.issparse(part) for _, part in bank.storage.blocks())
    np.testing.assert_allclose(bank.forward(np.arange(6.0)), S @ np.arange(6.0))
    np.testing.assert_allclose(bank.lengths(np.ones(6)), np.sum(S.toarray() ** 2, axis=1))
    problem = MKLProblem(bank, make_loss("logistic"), Lp(1.5), y[:50], 1.0, None, False)
    held = MKLProblem(
        Features(FeatureMatrix(S, [0, 2, 6])), make_loss("logistic"), Lp(1.5), y[:50], 1.0, None, False
    )
    found = [solve(p, registry["svrg"](), Stop(tol=1e-7)).certificate.primal for p in (problem, held)]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["svrg", "lbfgs"])
def test_a_fit_on_streamed_rows(solver, fit_intercept, tmp_path):
    options = {"loss": "logistic", "norm": 1.5, "solver": solver, "fit_intercept": fit_intercept, "tol": 1e-7}
    held = MKLClassifier(SPEC, **options).fit(X, y)
    for rows in (as_parquet(tmp_path), ArrayRows(as_memmap(tmp_path))):
        clf = MKLClassifier(SPEC, **options).fit(rows, y)
        assert clf.status_ == "converged"
        assert clf.certificate_.primal == pytest.approx(held.certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(clf.decision_function(X), held.decision_function(X), atol=0.01)
        # rows that are read as needed predict the same, and the model takes no training row along
        np.testing.assert_allclose(clf.decision_function(rows), clf.decision_function(X), atol=1e-10)
        assert clf._function.terms[0].kernels.samples is None
        copy = pickle.loads(pickle.dumps(clf))
        np.testing.assert_allclose(copy.decision_function(X), clf.decision_function(X))


def test_columns_by_name_and_several_classes(tmp_path):
    rows = as_parquet(tmp_path)
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    spec = kw.per_view({"first": ["x0", "x1"], "second": ["x4"]}, kw.linear())
    clf = MKLClassifier(spec, loss="squared", norm=2, tol=1e-4).fit(rows, labels)
    assert clf.solver_ == "svrg"  # what auto takes for rows that are streamed
    assert clf.weights_.shape[-1] == 2
    assert clf.decision_function(X).shape == (230, 3)
    held = MKLClassifier(
        kw.per_view({"first": [0, 1], "second": [4]}, kw.linear()), loss="squared", norm=2, tol=1e-4
    )
    assert np.mean(clf.predict(X) == held.fit(X, labels).predict(X)) > 0.98


def test_storage_stream_and_single_precision():
    options = {"norm": 1.5, "solver": "svrg", "tol": 1e-4}
    target = X[:, 0] + 2 * X[:, 4]
    held = MKLRegressor(SPEC, **options).fit(X, target)
    for dtype in ("float64", "float32"):
        reg = MKLRegressor(SPEC, storage="stream", dtype=dtype, **options).fit(X, target)
        assert reg.bank_bytes_ == 0
        # the final certificate is in double precision, whatever the features were handed out in
        assert reg.certificate_.relative_gap <= 2e-4
        assert reg.certificate_.primal == pytest.approx(held.certificate_.primal, rel=3e-4)


def test_features_that_do_not_fit_are_streamed():
    bank = build_bank(kernels(), X, mixing=False, memory_budget=10_000)
    assert isinstance(bank.storage, FeatureStream)
    held = build_bank(kernels(), X, mixing=False, memory_budget="1GB")
    assert isinstance(held.storage, FeatureMatrix)
    np.testing.assert_allclose(bank.scale, held.scale, rtol=1e-12)
    problem = MKLProblem(bank, make_loss("logistic"), Lp(2.0), y)
    assert choose_solver(problem.loss, problem.norm, bank).registered_as == "svrg"


def test_memory_does_not_grow_with_the_features():
    """Four times the rows: a few vectors more, and nothing of the size of the features."""
    spec = expand_kernels(kw.random_fourier(1.0, n_features=400), Schema(2))
    peaks = []
    for n in (4000, 16000):
        samples = np.random.default_rng(1).normal(size=(n, 2))
        labels = np.sign(samples[:, 0] + 0.1)
        bank = Features(FeatureStream(resolve_kernels(spec, samples), samples, block_rows=200))
        problem = MKLProblem(bank, make_loss("logistic"), Lp(1.5), labels, 1.0, None, False)
        tracemalloc.start()
        solve(problem, registry["svrg"](), Stop(tol=1e-9, max_iter=2))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 12_000 * 8 * 60  # vectors; the features of 12,000 rows are 400 numbers each
    assert peaks[1] < 0.35 * 16_000 * 400 * 8


# ---- bad input -----------------------------------------------------------------------------------------------------


def test_kernels_without_features_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"storage='stream' needs explicit features.*gaussian.*nystroem"):
        MKLClassifier(kw.gaussian(1.0), loss="logistic", norm=2).fit(as_parquet(tmp_path), y)


def test_what_needs_all_rows_at_once_is_refused(tmp_path):
    rows = as_parquet(tmp_path)
    options = {"loss": "logistic", "norm": 2}
    with pytest.raises(ValueError, match=r"normalize='trace' or None, without centring"):
        MKLClassifier(kw.linear(), center=True, **options).fit(rows, y)
    with pytest.raises(ValueError, match=r"go with storage='stream', not 'dense'"):
        MKLClassifier(kw.linear(), storage="dense", **options).fit(rows, y)
    bank = Features(FeatureStream([kw.linear()], np.zeros((30_000, 1))))
    with pytest.raises(ValueError, match=r"needs the mixed kernel, 30000 x 30000.*solver='svrg'"):
        bank.combine(np.ones(1))


def test_files_and_columns_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"no Parquet file '.*nothing.parquet'"):
        ParquetRows(tmp_path / "nothing.parquet")
    with pytest.raises(ValueError, match="no Parquet file given"):
        ParquetRows([])
    with pytest.raises(ValueError, match=r"no Arrow file"):
        ArrowRows(tmp_path / "nothing.arrow")
    as_parquet(tmp_path)
    with pytest.raises(ValueError, match=r"no column 'z'; there are 'x0'"):
        ParquetRows(tmp_path / "first.parquet", columns=["x0", "z"])
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x0": [1.0], "y": [2.0]}), tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match=r"no column 'x1'; there are 'x0', 'y'"):
        ParquetRows([tmp_path / "first.parquet", tmp_path / "odd.parquet"])
    with pytest.raises(ValueError, match=r"column 'name' does not hold numbers"):
        ArrowRows(pa.table({"name": ["a", "b"]}))[:1]
    with pytest.raises(ValueError, match=r"two-dimensional array, got 1"):
        ArrayRows(np.zeros(3))


def test_other_columns_at_prediction(tmp_path):
    rows = as_parquet(tmp_path)
    clf = MKLClassifier(kw.linear(), loss="logistic", norm=2).fit(rows, y)
    with pytest.raises(ValueError, match=r"X has 2 features, but MKLClassifier is expecting 6"):
        clf.predict(ParquetRows(tmp_path / "first.parquet", columns=["x0", "x1"]))
    with pytest.raises(ValueError, match=r"X has 2 features"):
        clf.predict(X[:, :2])


def test_arrow_is_an_extra(monkeypatch):
    import builtins

    real = builtins.__import__
    monkeypatch.setattr("importlib.import_module", lambda name: real("no_such_module"))
    with pytest.raises(ImportError, match=r"pip install 'kernelweave\[parquet\]'"):
        ParquetRows("x.parquet")


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("kept", [False, True])
def test_weighted_products_of_some_columns_are_those_of_the_features(kept, dtype, atol):
    bank = Features(FeatureStream(kernels(), ArrayRows(X), dtype=dtype, block_rows=50))
    if kept:
        bank.storage.keep()
        assert len(bank.storage.kept) == 5
    draws = np.random.default_rng(1)
    rows, columns = draws.permutation(230)[:70], np.array([0, 3, 17, 33])
    charge = draws.random(70)
    A = np.hstack([stack_features(kernels(), X[rows])[0][:, columns], np.ones((70, 1))])
    expected = A.T @ (charge[:, None] * A)
    np.testing.assert_allclose(bank.gram(rows, charge, columns), expected, atol=atol)
    whole = bank.gram(rows, charge, np.arange(bank.starts[-1]))
    np.testing.assert_allclose(whole[np.ix_(columns, columns)], expected[:-1, :-1], atol=atol)


def test_rows_to_learn_from_come_in_runs_from_all_over():
    np.testing.assert_array_equal(spread_rows(7, 7), np.arange(7))
    rows = spread_rows(1000, 100)
    assert rows.size == 100
    assert (rows[0], rows[-1]) == (0, 999)
    runs = rows.reshape(20, 5)
    np.testing.assert_array_equal(np.diff(runs, axis=1), 1)
    assert np.ptp(np.diff(runs[:, 0])) <= 1
