"""The bank on a device (torch's CPU here) against the NumPy bank, in every precision and normalisation."""

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.banks import Gram, build_bank
from kernelweave.banks.decide import Asked, keep
from kernelweave.banks.facts import facts_of_kernels
from kernelweave.exceptions import MemoryBudgetError

torch = pytest.importorskip("torch")

from kernelweave.banks import torch_bank  # noqa: E402
from kernelweave.banks.torch_bank import (  # noqa: E402
    DeviceKernels,
    DeviceMatrices,
    device_facts,
)

N = 60
CPU = torch.device("cpu")
#: what storing a kernel of entries up to one in a type may change in a product, relative to its largest value
PRECISION = {"computed": 1e-12, "float64": 1e-12, "float32": 3e-6, "float16": 3e-3, "bfloat16": 2e-2}


def _kernels(X):
    views = {"left": [0, 1, 2, 3, 4], "right": [5, 6, 7]}
    spec = (
        kw.per_view(views, kw.linear(), kw.polynomial(3), kw.gaussian([0.5, 1.0], relative=True))
        + kw.laplacian(2.0)
        + kw.cosine()  # computed on the host
    )
    return kw.resolve_kernels(kw.expand_kernels(kw.as_spec(spec), kw.Schema.of(X)), X)


def _pair(precision="float64", **options):
    X = np.random.default_rng(0).standard_normal((N, 8))
    kernels = _kernels(X)
    reference = build_bank(kernels, X, storage="dense", **options)
    normaliser = reference.source.normaliser
    source = DeviceKernels(kernels, X, N, normaliser, CPU, torch.float64)
    storage = None if precision == "computed" else getattr(torch, precision)
    return reference, Gram(DeviceMatrices(source, storage))


@pytest.mark.parametrize("options", [{}, {"normalize": "cosine"}, {"center": True}, {"normalize": None}])
@pytest.mark.parametrize("precision", PRECISION)
def test_products_quadratic_forms_and_mixtures_are_those_of_numpy(precision, options):
    reference, bank = _pair(precision, **options)
    rng = np.random.default_rng(1)
    weights = np.where(np.arange(bank.m) == 2, 0.0, rng.random(bank.m))
    rows, kernels = np.array([3, 50, 7]), np.array([4, 1])
    top = reference.diag().max()
    for a in (rng.standard_normal(N), rng.standard_normal((N, 3)), np.where(np.arange(N) % 7 == 0, 1.0, 0.0)):
        allowed = PRECISION[precision] * top * np.abs(a).sum()
        np.testing.assert_allclose(bank.apply(a), reference.apply(a), atol=allowed)
        np.testing.assert_allclose(
            bank.apply(a, rows, kernels), reference.apply(a, rows, kernels), atol=allowed
        )
        np.testing.assert_allclose(bank.quad(a), reference.quad(a), atol=allowed * np.abs(a).max())
        np.testing.assert_allclose(
            bank.mix_product(weights, a), reference.mix_product(weights, a), atol=allowed * weights.sum()
        )
    # the mixture is in single precision where the bank is not in double
    allowed = max(PRECISION[precision], 1e-12) * top * weights.sum()
    np.testing.assert_allclose(bank.combine(weights), reference.combine(weights), atol=allowed)
    for top, side in ([[3], [5]], [[3], [5, 7, 3]], [[8, 2], [2]], [[], [4]], [[4], []]):
        at = np.array(top, dtype=np.intp), np.array(side, dtype=np.intp)
        wanted = reference.mix_block(weights, *at)
        np.testing.assert_allclose(bank.mix_block(weights, *at), wanted, atol=allowed)


@pytest.mark.parametrize("precision", ["computed", "float64"])
def test_entries_are_those_of_numpy(precision):
    reference, bank = _pair(precision, normalize=None)
    rows, cols, kernels = np.array([3, 50, 7]), np.array([0, 7]), np.array([4, 1, 2])
    np.testing.assert_allclose(
        bank.block(rows, cols, kernels), reference.block(rows, cols, kernels), rtol=1e-11, atol=1e-11
    )


def test_polynomials_keep_their_slope_and_constant():
    X = np.random.default_rng(0).standard_normal((N, 3))
    kernels = kw.resolve_kernels(
        list(kw.polynomial([1, 3], gamma=0.25, coef0=2.0).expand(kw.Schema.of(X))), X
    )
    reference = build_bank(kernels, X, storage="dense", normalize=None)
    normaliser = reference.source.normaliser
    bank = Gram(DeviceMatrices(DeviceKernels(kernels, X, N, normaliser, CPU, torch.float64), torch.float64))
    np.testing.assert_allclose(bank.combine(np.ones(2)), reference.combine(np.ones(2)), rtol=1e-11)


def test_a_kernel_that_is_zero_stays_zero():
    X = np.random.default_rng(0).standard_normal((N, 3))
    X[:, 2] = 0.0
    kernels = [kw.linear().on([0]), kw.linear().on([2])]
    kernels = kw.resolve_kernels(kw.expand_kernels(kw.as_spec(kernels), kw.Schema.of(X)), X)
    normaliser = build_bank(kernels, X, storage="dense", normalize=None).source.normaliser
    bank = Gram(DeviceMatrices(DeviceKernels(kernels, X, N, normaliser, CPU, torch.float64), torch.float64))
    a = np.linspace(-1.0, 2.0, N)
    np.testing.assert_array_equal(bank.apply(a)[1], np.zeros(N))
    np.testing.assert_allclose(bank.combine(np.ones(2)), np.outer(X[:, 0], X[:, 0]), atol=1e-12)


def test_images_are_tensors_and_give_forms_and_mixtures():
    reference, bank = _pair()
    a = np.random.default_rng(2).standard_normal((N, 2))
    image = bank.image(a)
    assert isinstance(image, torch.Tensor)
    weights = np.linspace(0.1, 1.0, bank.m)
    np.testing.assert_allclose(
        bank.image_quad(image, torch.asarray(a)).numpy(), reference.quad(a), rtol=1e-10
    )
    np.testing.assert_allclose(
        bank.image_mix(image, weights).numpy(), reference.mix_product(weights, a), rtol=1e-10
    )


def test_both_parts_of_a_certificate_come_from_one_pass():
    reference, bank = _pair()
    weights, a = np.linspace(0.1, 1.0, bank.m), np.random.default_rng(2).standard_normal((N, 2))
    forms, mixed = bank.judged(weights, a)
    assert bank.passes == pytest.approx(1.0)
    np.testing.assert_allclose(forms, reference.quad(a), rtol=1e-10)
    np.testing.assert_allclose(mixed, reference.mix_product(weights, a), rtol=1e-10)


@pytest.mark.parametrize("options", [{}, {"normalize": "cosine"}, {"center": True}])
def test_the_normalisation_is_learnt_as_numpy_learns_it(options, monkeypatch):
    monkeypatch.setattr(torch_bank, "HOST_BLOCK", 7 * N)
    X = np.random.default_rng(0).standard_normal((N, 8))
    kernels = _kernels(X)
    host = build_bank(kernels, X, storage="dense", **options)
    facts = facts_of_kernels(
        kernels,
        X,
        options.get("normalize", "trace"),
        "center" in options,
        **device_facts(N, CPU, "auto", "float64", None),
    )
    device = build_bank(kernels, X, **options, decision=keep(facts, Asked(dtype="float64")), device=CPU)
    known, learnt = host.source.normaliser, device.source.normaliser
    for name in ("scale", "row_means", "grand_means", "diagonal"):
        if getattr(known, name) is not None:
            np.testing.assert_allclose(getattr(learnt, name), getattr(known, name), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(device.diag(), host.diag(), rtol=1e-10, atol=1e-12)


def test_kernels_times_factors_stay_on_the_device():
    reference, bank = _pair()
    factors = np.linspace(0.5, 2.0, bank.m)
    reference, bank = reference.rescaled(factors), bank.rescaled(factors)
    weights, a = np.linspace(0.1, 1.0, bank.m), np.random.default_rng(2).standard_normal(N)
    assert bank.on_device
    mixed, image = bank.mixed(weights), bank.image(a)
    assert isinstance(mixed, torch.Tensor)
    np.testing.assert_allclose(mixed.numpy(), reference.mixed(weights), rtol=1e-10)
    np.testing.assert_allclose(
        bank.image_quad(image, torch.asarray(a)).numpy(), reference.quad(a), rtol=1e-10
    )
    np.testing.assert_allclose(
        bank.image_mix(image, weights).numpy(), reference.mix_product(weights, a), rtol=1e-10
    )


def test_blocks_smaller_than_the_matrix_give_the_same():
    reference, bank = _pair("computed")
    bank.storage.block_entries = 7 * N
    a = np.random.default_rng(3).standard_normal(N)
    np.testing.assert_allclose(bank.apply(a), reference.apply(a), rtol=1e-10, atol=1e-10)
    weights = np.ones(bank.m)
    np.testing.assert_allclose(bank.combine(weights), reference.combine(weights), rtol=1e-10, atol=1e-10)


def test_a_pass_counts_the_entries_that_were_asked_for():
    _, bank = _pair()
    bank.apply(np.ones(N))
    assert bank.passes == pytest.approx(1.0)
    bank.quad(np.where(np.arange(N) < N // 2, 1.0, 0.0))
    assert bank.passes == pytest.approx(1.25)


def test_the_exact_bank_stores_nothing_and_computes_in_double_precision():
    reference, bank = _pair("bfloat16")
    exact = bank.exact()
    assert exact.nbytes == 0
    a = np.random.default_rng(4).standard_normal(N)
    np.testing.assert_allclose(exact.apply(a), reference.apply(a), rtol=1e-10, atol=1e-10)


def test_the_next_cheaper_storage_is_taken_and_a_refusal_names_it():
    X = np.random.default_rng(0).standard_normal((N, 8))
    kernels = _kernels(X)
    need = len(kernels) * N * N
    working = 5 * N * N * 4

    def made(memory, **asked):
        there = device_facts(N, CPU, asked.get("storage", "auto"), asked.get("dtype", "float64"), memory)
        facts = facts_of_kernels(kernels, X, "trace", False, **there)
        return build_bank(kernels, X, decision=keep(facts, Asked(**asked)), device=CPU).storage

    assert made(working + 4 * need, mixes=False).precision == "float32"
    assert made(working + 2 * need + 4 * N * N).precision == "float16"
    assert made(working + 2 * need, mixes=False).precision == "computed"
    with pytest.raises(MemoryBudgetError, match="dtype='float16'"):
        made(working + 2 * need, storage="dense", dtype="float32", mixes=False)
    with pytest.raises(MemoryBudgetError, match="working_set"):
        made(working)


@pytest.mark.parametrize("storage", [None, torch.float64])
def test_a_sample_is_at_no_distance_of_itself_however_far_it_is_from_the_origin(storage):
    X = 1e7 + np.random.default_rng(0).standard_normal((N, 3))
    kernels = kw.resolve_kernels(kw.expand_kernels(kw.as_spec(kw.gaussian(0.5)), kw.Schema.of(X)), X)
    normaliser = build_bank(kernels, X, storage="dense", normalize=None).source.normaliser
    bank = Gram(DeviceMatrices(DeviceKernels(kernels, X, N, normaliser, CPU, torch.float64), storage))
    everyone, some = np.arange(N), np.array([7, 3, 50])
    np.testing.assert_array_equal(np.diagonal(bank.mix_block(np.ones(1), everyone, everyone)), 1.0)
    np.testing.assert_array_equal(np.diagonal(bank.mix_block(np.ones(1), some, some)), 1.0)
