"""Weights by REML on pairs: exact for few, by probes for many, and the ridge regression with them certified."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLRegressor, MKLRegressorCV, Pairs, persistence
from kernelweave import kernels as kw
from kernelweave.norms import Fixed
from kernelweave.problems import reml

from . import making
from .making import bank_and_tensor, drugs_and_cells

X, Y = drugs_and_cells(0, 14, 12, 0.2)
BANK = kw.pairs(left=kw.gaussian([1.0, 2.0]), right=kw.gaussian([1.0, 3.0]) + kw.linear())


def by_definition(tensor, d, y, noise, intercept):
    """``[log|G| + log(1'G^-1 1) + f log(y'My / f)] / f`` from matrices, samples times the roots of weights."""
    G = np.tensordot(d, tensor, axes=1) + np.diag(noise)
    M, n = np.linalg.inv(G), len(y)
    log_det = np.linalg.slogdet(G)[1] - np.sum(np.log(noise))
    if intercept:
        log_det += np.log(M.sum() / np.sum(1.0 / noise))
        M = M - np.outer(M.sum(axis=0), M.sum(axis=0)) / M.sum()
    f = n - intercept
    return log_det / f + np.log(y @ M @ y / f)


@pytest.mark.parametrize(
    "options", [{"n": 22}, {"symmetry": 1, "n": 25}, {"n": 22, "centred": True}], ids=str
)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_exact_criterion_and_its_slopes_are_those_of_the_definition(options, intercept):
    options = dict(options)
    centred = options.pop("centred", False)
    bank, tensor = bank_and_tensor(0, **options)
    if centred:
        bank = bank.recentred(np.arange(bank.n))
        H = np.eye(bank.n) - 1.0 / bank.n
        tensor = H @ tensor @ H
    rng = np.random.default_rng(1)
    y, noise, d = rng.normal(size=bank.n), rng.uniform(0.5, 2.0, bank.n), rng.uniform(0.1, 1.0, bank.m)
    noise[3] = np.inf  # a sample of weight zero
    used = np.flatnonzero(np.isfinite(noise))
    here = reml.ProductReml(bank, y, noise, intercept).look(d)
    among = tensor[:, used][:, :, used]

    def value(weights):
        return by_definition(among, weights, y[used], noise[used], intercept)

    assert here.value == pytest.approx(value(d), rel=1e-10)
    slopes = [(value(d + 1e-5 * e) - value(d - 1e-5 * e)) / 2e-5 for e in np.eye(bank.m)]
    np.testing.assert_allclose(here.gradient, slopes, atol=1e-6)


def many(monkeypatch, bank, y):
    monkeypatch.setattr(reml, "EXACT", 0)
    return reml.ProductReml(bank, y, np.ones(bank.n), True)


@pytest.mark.parametrize("n", [None, 300])
def test_slopes_by_probes_are_near_the_exact_ones(monkeypatch, n):
    """Within four standard errors over the probes; on a whole grid the nearest product leaves them next to nothing."""
    bank, _ = bank_and_tensor(2, a=20, b=20, p=2, q=2, n=n)
    y, d = np.random.default_rng(0).normal(size=bank.n), np.array([0.6, 0.1, 0.05, 0.3])
    exact = reml.ProductReml(bank, y, np.ones(bank.n), True).look(d).gradient
    monkeypatch.setattr(reml, "PROBE_RESIDUAL", 1e-6)
    monkeypatch.setattr(reml, "RESIDUAL", 1e-8)
    monkeypatch.setattr(reml, "CHANGE", 1e-4)
    monkeypatch.setattr(reml, "PROBES", 1)
    own = many(monkeypatch, bank, y)
    seen = []
    for seed in range(40):
        own.probes, own.last = np.random.default_rng(seed).choice([-1.0, 1.0], (1, bank.n)), None
        seen.append(own.look(d).gradient)
    mean, error = np.mean(seen, axis=0), np.std(seen, axis=0, ddof=1) / np.sqrt(len(seen))
    assert np.all(np.abs(mean - exact) <= 4.0 * error + 1e-6)
    if n is None:  # what the nearest product explains is known, and taken off
        monkeypatch.setattr(type(bank.mixed(d)), "nearest", lambda self, noise, has_intercept: None)
        plain = []
        for seed in range(40):
            own.probes, own.last = np.random.default_rng(seed).choice([-1.0, 1.0], (1, bank.n)), None
            plain.append(own.look(d).gradient)
        assert np.all(np.std(seen, axis=0) <= np.std(plain, axis=0))


@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("intercept", [True, False])
def test_lanczos_has_logarithms_and_solutions(intercept, single):
    """On few samples, until nothing is left, and also where that is long before the last block."""
    rng = np.random.default_rng(0)
    K = making.psd(rng, 1, 30, rank=8)[0]
    A, Z = np.eye(30) + 5.0 * K, rng.choice([-1.0, 1.0], (3, 30))
    unit = np.full(30, 30**-0.5)
    H = np.eye(30) - np.outer(unit, unit) if intercept else np.eye(30)
    A, Z = H @ (A - np.eye(30)) @ H + np.eye(30), Z @ H
    values, axes = np.linalg.eigh(A)
    kind = np.float32 if single else float
    X, logs = reml.block_lanczos(lambda B: (B @ A).astype(kind), Z.astype(kind), 60, 1e-7, 1e-6)
    np.testing.assert_allclose(X, np.linalg.solve(A, Z.T).T, atol=1e-4 if single else 1e-9)
    np.testing.assert_allclose(logs, (Z @ axes) ** 2 @ np.log(values), rtol=1e-4 if single else 1e-9)


@pytest.mark.parametrize("n", [None, 300])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_objective_by_probes_is_nearly_the_exact_one_and_its_changes_are_precise(n, intercept):
    bank, _ = bank_and_tensor(2, a=20, b=20, p=2, q=2, n=n)
    rng = np.random.default_rng(0)
    y, d = rng.normal(size=bank.n), np.array([0.6, 0.1, 0.05, 0.3])
    noise = np.ones(bank.n) if n is None else rng.uniform(0.5, 2.0, bank.n)
    other, exact = d * [1.2, 0.8, 1.5, 1.0], reml.ProductReml(bank, y, noise, intercept)
    by = reml.ProductReml(bank, y, noise, intercept)
    by.exact = False
    seen = []
    for seed in range(12):
        by.probes = np.random.default_rng(seed).choice([-1.0, 1.0], (2, bank.n))
        seen.append([by.look(d).value, by.look(other).value])
    seen, true = np.array(seen), np.array([exact.look(one).value for one in (d, other)])
    error = np.std(seen, axis=0, ddof=1) / np.sqrt(len(seen))
    assert np.all(np.abs(seen.mean(axis=0) - true) <= 4.0 * error + 1e-3)
    changes = seen[:, 1] - seen[:, 0]
    assert np.std(changes) < 0.4 * np.std(seen[:, 0]) + 1e-3
    assert abs(np.mean(changes) - (true[1] - true[0])) <= 4.0 * np.std(changes) / np.sqrt(len(seen)) + 1e-3


def test_the_objective_where_pairs_go_one_by_one_and_probes_in_parts(monkeypatch):
    made = []
    for sparse in (False, True):
        bank, _ = bank_and_tensor(2, a=20, b=20, p=2, q=2, n=300, sparse=sparse)
        y = np.random.default_rng(0).normal(size=bank.n)
        made.append(many(monkeypatch, bank, y).look(np.array([0.6, 0.1, 0.05, 0.3])))
        monkeypatch.setattr(reml, "BASIS_ENTRIES", 2 * 60 * 300)
    assert made[1].value == pytest.approx(made[0].value, abs=1e-3)
    np.testing.assert_allclose(made[1].gradient, made[0].gradient, atol=5e-3)


@pytest.mark.parametrize("seed", range(4))
def test_small_noisy_data_do_not_lead_probes_astray(monkeypatch, seed):
    """0/1 labels, few of them one: probes once led to no noise at all."""
    bank, _ = bank_and_tensor(seed, a=26, b=14, p=4, q=4)
    y = (np.random.default_rng(seed).random(bank.n) < 0.06).astype(float)
    exact = reml.choose_by_products(reml.ProductReml(bank, y, np.ones(bank.n), True))
    by = many(monkeypatch, bank, y)
    chosen = reml.choose_by_products(by)
    assert (exact.status, chosen.status) == ("stationary", "stationary")
    by.exact = True
    half = 0.5 * by.freedom
    assert half * (by.look(chosen.point.d).value - exact.point.value) < 3.0


def test_probes_choose_nearly_what_exact_traces_do(monkeypatch):
    """No start, and no probes, lead far from the optimum of the criterion, also where samples are few."""
    model = MKLRegressorCV(BANK, criterion="reml").fit(X, Y)
    dense = MKLRegressorCV(BANK, criterion="reml", storage="dense").fit(X, Y)
    exact, best = model.targets_["reml"][0], dense.targets_["reml"][0]
    assert best * (1 - 1e-9) <= exact <= best * 1.002
    np.testing.assert_allclose(model.predict(X), dense.predict(X), atol=0.1)
    assert (model.status_, model.solver_) == ("stationary", "reml")
    assert model.certificate_.relative_gap <= 1e-3
    assert model.variance_components_["share"].sum() == pytest.approx(1.0)
    monkeypatch.setattr(reml, "EXACT", 0)
    other = MKLRegressorCV(BANK, criterion="reml").fit(X, Y)
    assert other.targets_["reml"][0] == pytest.approx(exact, rel=0.3)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=0.3)
    assert np.corrcoef(other.predict(X), model.predict(X))[0, 1] > 0.98


def test_the_chosen_weights_are_a_certified_ridge_regression(tmp_path):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    model = MKLRegressorCV(BANK, criterion="reml").fit(X, Y, weight)
    ridge = MKLRegressor(BANK, norm=Fixed(model.weights_), C=model.C_, center=True, tol=1e-9).fit(
        X, Y, weight
    )
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), atol=1e-2)
    assert model.alpha_ == pytest.approx(0.5 / model.C_)
    persistence.save(model, tmp_path / "model.kw")
    loaded = persistence.load(tmp_path / "model.kw")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-10)
    several = MKLRegressorCV(BANK, criterion="reml").fit(X, np.column_stack([Y, np.roll(Y, 1)]))
    assert several.weights_.shape == (2, len(model.weights_))
    np.testing.assert_allclose(several.predict(X).shape, (len(Y), 2))
    seen = []
    stopped = MKLRegressorCV(BANK, criterion="reml", callback=lambda row: seen.append(row) or len(seen) > 2)
    with pytest.warns(match="callback"):
        assert stopped.fit(X, Y).status_ == "stopped"
    with pytest.raises(ValueError, match="nuisance"):
        MKLRegressorCV(BANK, criterion="reml", nuisance=[0]).fit(X, Y)


def test_targets_without_anything_to_learn():
    noise = np.random.default_rng(5).normal(size=len(Y))
    model = MKLRegressorCV(BANK, criterion="reml").fit(X, noise)
    assert np.std(model.predict(X)) < np.std(noise)
    constant = MKLRegressorCV(BANK, criterion="reml").fit(X, np.full(len(Y), 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0)
    new = Pairs(np.full((1, 3), 9.0), X.right.objects, [[0, 0]])
    assert np.isfinite(model.predict(new)).all()
