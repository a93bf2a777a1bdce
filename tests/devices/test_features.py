"""Explicit features that a device computes, multiplies and charges, against those of the host."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kernelweave import MKLClassifier  # noqa: E402
from kernelweave import kernels as kw  # noqa: E402
from kernelweave.banks import StreamingBank, torch_features  # noqa: E402
from kernelweave.banks.device_maps import DeviceMap  # noqa: E402
from kernelweave.kernels import stack_features  # noqa: E402
from kernelweave.losses import make_loss, registry  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(50, 6))


def settled(X):
    spec = kw.per_view({"a": [0, 2], "b": [5, 3, 1]}, kw.random_fourier(1.5, n_features=8)) + kw.linear().on(
        [4, 0]
    )
    spec = spec + kw.random_fourier(2.0, n_features=6).named("all") + kw.linear()
    return [kernel.resolve(X) for kernel in spec.expand(kw.Schema.of(X))]


@pytest.fixture(params=["float64", "float32", "float16"])
def bank(request, rows, monkeypatch):
    monkeypatch.setattr(torch_features, "BLOCK_ROWS", 16)
    kernels = settled(rows)
    source = StreamingBank(kernels, rows, np.linspace(0.5, 2.0, len(kernels)))
    made = DeviceMap.of(kernels, rows, CPU)
    assert made is not None
    bank = torch_features.TorchFeatureBank(source, CPU, getattr(torch, request.param), made)
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-2}[request.param]
    return bank, stack_features(kernels, rows)[0], tolerance


def test_the_device_computes_the_same_features(rows):
    kernels = settled(rows)
    made = DeviceMap.of(kernels, rows, CPU).block(slice(10, 30), torch.float64)
    np.testing.assert_allclose(made.numpy(), stack_features(kernels, rows)[0][10:30], atol=1e-12)


def test_what_the_device_cannot_compute(rows):
    assert DeviceMap.of([kw.nystroem(kw.gaussian(1.0), 5).resolve(rows)], rows, CPU) is None
    assert DeviceMap.of(settled(rows), rows.tolist(), CPU) is None
    rows[3, 3] = np.nan
    assert DeviceMap.of([kw.linear()], rows, CPU) is None


@pytest.mark.parametrize("columns", [None, 2])
def test_products(bank, columns):
    bank, Z, tolerance = bank
    random = np.random.default_rng(1)
    shape = () if columns is None else (columns,)
    w, a = random.normal(size=(Z.shape[1], *shape)), random.normal(size=(50, *shape))
    np.testing.assert_allclose(bank.forward(w), Z @ w, atol=10 * tolerance)
    np.testing.assert_allclose(bank.adjoint(a), Z.T @ a, atol=50 * tolerance)
    mixing = random.random(Z.shape[1])
    np.testing.assert_allclose(bank.lengths(mixing), Z**2 @ mixing, atol=50 * tolerance)
    exact = bank.exact()
    assert exact.nbytes == 0
    np.testing.assert_allclose(exact.forward(w), Z @ w, atol=1e-12)
    np.testing.assert_allclose(exact.adjoint(a), Z.T @ a, atol=1e-11)


@pytest.mark.parametrize("name", sorted(registry))
def test_losses_of_tensors(name):
    loss, random = make_loss(name), np.random.default_rng(2)
    if not loss.computes_tensors:
        return
    y, f = np.where(random.random(40) > 0.5, 1.0, -1.0), 5.0 * random.normal(size=40)
    f[:2] = 800.0, -800.0
    value, gradient = loss.on_tensors(torch.as_tensor(y), torch.as_tensor(f))
    np.testing.assert_allclose(value.numpy(), loss.value(y, f), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(gradient.numpy(), loss.gradient(y, f), rtol=1e-12, atol=1e-300)


def test_a_derived_loss_is_asked_itself():
    class Louder(type(make_loss("logistic"))):
        def value(self, y, f):
            return 2.0 * super().value(y, f)

    assert make_loss("logistic").computes_tensors
    assert not Louder().computes_tensors
    assert not make_loss("hinge").computes_tensors


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "squared", "huber_hinge"])
@pytest.mark.parametrize("columns", [1, 3])
def test_losses_and_gradients(bank, name, columns):
    bank, Z, tolerance = bank
    loss, random = make_loss(name), np.random.default_rng(3)
    w, b = random.normal(size=(Z.shape[1], columns)), random.normal(size=columns)
    y = np.where(random.random((50, columns)) > 0.5, 1.0, -1.0)
    c = random.random((50, columns))
    if columns == 1:
        y, c = y[:, 0], c[:, 0]
    value, along, sums = bank.loss_sweep(w, b, loss, y, c)
    f = Z @ w + b
    f = f[:, 0] if columns == 1 else f
    g = (c * loss.gradient(y, f)).reshape(50, columns)
    assert value == pytest.approx(loss.total(y, f, c), rel=10 * tolerance)
    np.testing.assert_allclose(along, Z.T @ g, atol=200 * tolerance)
    np.testing.assert_allclose(sums, g.sum(axis=0), atol=200 * tolerance)


def test_tall_products_in_pieces(monkeypatch):
    """As on a GPU, where the product is cut into a batch."""
    monkeypatch.setattr(torch_features, "PIECE_ROWS", 8)

    class Pretending:
        type = "cuda"

    random = np.random.default_rng(4)
    Z = torch.as_tensor(random.normal(size=(30, 5)))

    class OnGPU:
        device = Pretending()

        def __getattr__(self, name):
            return getattr(Z, name)

        def __getitem__(self, at):
            return Z[at]

    for a in (torch.as_tensor(random.normal(size=30)), torch.as_tensor(random.normal(size=(30, 2)))):
        np.testing.assert_allclose(
            torch_features.columns_times(OnGPU(), a).numpy(), (Z.T @ a).numpy(), atol=1e-12
        )


def test_half_precision_is_certified_in_double():
    random = np.random.default_rng(5)
    X = random.normal(size=(200, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    bank = kw.random_fourier([1.0, 3.0], n_features=20)
    options = {"loss": "logistic", "norm": 1.5, "tol": 1e-2, "device": "cpu", "storage": "lowrank"}
    half, double = (MKLClassifier(bank, dtype=kind, **options).fit(X, y) for kind in ("float16", "float64"))
    assert half.bank_bytes_ == 2 * 200 * 40
    assert half.certificate_.relative_gap <= 1e-2
    assert half.certificate_.primal == pytest.approx(double.certificate_.primal, rel=2e-2)
