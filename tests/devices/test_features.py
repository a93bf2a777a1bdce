"""Explicit features on a device: the same numbers as on the host, from features made on either."""

import numpy as np
import pytest

from kernelweave import MKLClassifier, losses
from kernelweave import kernels as kw
from kernelweave.banks import Features, FeatureStream
from kernelweave.banks.decide import Decision
from kernelweave.banks.normalise import Normaliser
from kernelweave.banks.torch_bank import device_storage

torch = pytest.importorskip("torch")

PORTABLE = [name for name, loss in losses.registry.items() if loss.portable]


def samples(n=200, columns=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, columns))


def settled(X, *kernels):
    return [kernel.resolve(X) for kernel in kernels]


@pytest.mark.parametrize("name", PORTABLE)
def test_losses_give_the_same_numbers_in_torch(name):
    loss = losses.make_loss(name)
    f = np.concatenate([np.linspace(-40.0, 40.0, 81), [-1e4, 1e4, 1.0, -1.0]])
    for label in (-1.0, 1.0):
        y = np.full(f.shape, label)
        if loss.joint:  # rows of three classes
            f = np.random.default_rng(0).permutation(f)[: 3 * (f.size // 3)].reshape(-1, 3)
            y = np.where(np.arange(3) == (label > 0), 1.0, -1.0) + 0.0 * f
        for of in (loss.value, loss.gradient):
            there = of(torch.as_tensor(y), torch.as_tensor(f)).numpy()
            np.testing.assert_allclose(there, of(y, f), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize(
    "kernel",
    [
        kw.random_fourier(1.5, n_features=20),
        kw.principal(2),
        kw.random_fourier(0.7, n_features=20).on([3, 1]).named("two"),
        kw.linear(),
        kw.linear().on([0, 4]),
        kw.linear().recentred(samples() + 3.0),
    ],
)
def test_portable_features_are_the_features(kernel):
    X = samples()
    (kernel,) = settled(X, kernel)
    there = kernel.portable_features(torch.as_tensor(X)).numpy()
    np.testing.assert_allclose(there, kernel.features(X), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("made", ["there", "on the host"])
def test_sweeps_agree_with_the_host(dtype, made):
    X, rng = samples(), np.random.default_rng(1)
    kernels = settled(X, kw.random_fourier(1.5, n_features=20), kw.linear())
    if made == "on the host":
        kernels += settled(X, kw.nystroem(kw.gaussian(2.0), rank=7))
    host = Features(FeatureStream(kernels, X))
    normaliser = Normaliser.empty("trace", False, len(kernels), len(X), [k.name for k in kernels])
    decision = Decision(representation="features", storage="lowrank", place="device", dtype=dtype)
    bank = Features(device_storage(kernels, X, len(X), normaliser, decision, torch.device("cpu"), threads=1))
    assert (bank.storage.made_here is not None) == (made == "there")
    near = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    w, b, y = (
        rng.normal(size=(bank.starts[-1], 1)),
        np.array([0.3]),
        np.where(rng.random(200) > 0.5, 1.0, -1.0),
    )
    c = rng.random(200)
    size = np.abs(host.forward(w)).max()
    np.testing.assert_allclose(bank.forward(w), host.forward(w), atol=near * size)
    np.testing.assert_allclose(bank.adjoint(y), host.adjoint(y), atol=50 * near)
    for told, expected in zip(
        bank.loss_sweep(w, b, losses.Logistic(), y, c),
        host.loss_sweep(w, b, losses.Logistic(), y, c),
        strict=True,
    ):
        np.testing.assert_allclose(told, expected, rtol=near, atol=50 * near)
    # what certifies is in double precision, whatever is kept
    np.testing.assert_allclose(bank.exact().forward(w), host.forward(w), atol=1e-12 * size)
    np.testing.assert_allclose(bank.storage.mean_squares(), host.storage.mean_squares(), rtol=near)
    scaled = bank.storage.scale[:, None] * host.diag()
    np.testing.assert_allclose(bank.exact().diag(), scaled, rtol=1e-10)
    np.testing.assert_allclose(bank.diag(), scaled, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_fit_with_features_on_a_device_is_certified_in_double(dtype):
    X = samples(400)
    y = np.where(np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] > 0, 1, -1)
    kernels = [kw.random_fourier(width, n_features=40).on([0, 1]) for width in (0.5, 1.0, 2.0)]
    settings = {"loss": "logistic", "norm": 1.5, "tol": 1e-3, "storage": "lowrank", "solver": "lbfgs"}
    there = MKLClassifier(kernels, device="cpu", dtype=dtype, **settings).fit(X, y)
    host = MKLClassifier(kernels, **settings).fit(X, y)
    assert there.certificate_.relative_gap <= 1e-3
    assert there.certificate_.primal == pytest.approx(host.certificate_.primal, rel=2e-3)


def test_features_that_the_device_makes_are_never_made_for_all_rows_on_the_host(monkeypatch):
    def blocks(*arguments):
        raise AssertionError("the host makes the features of all rows")

    monkeypatch.setattr(FeatureStream, "blocks", blocks)
    X = samples(400)
    y = np.where(np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] > 0, 1, -1)
    kernels = [kw.random_fourier(width, n_features=40) for width in (0.5, 1.0)]
    model = MKLClassifier(kernels, loss="logistic", device="cpu", storage="lowrank", solver="lbfgs", norm=1.5)
    assert model.fit(X, y).status_ == "converged"


def test_features_that_half_precision_cannot_hold_are_refused():
    X = samples() * 1e6
    y = np.where(X[:, 0] > 0, 1, -1)
    model = MKLClassifier(
        [kw.linear()],
        loss="logistic",
        norm=2.0,
        device="cpu",
        dtype="float16",
        storage="lowrank",
        solver="lbfgs",
    )
    with pytest.raises(ValueError, match=r"too large for dtype='float16'.*bfloat16"):
        model.fit(X, y)
