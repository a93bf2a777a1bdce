"""The default bank, the presets, the approximations and the checks of parameters and samples."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.kernels import Schema, as_spec, expand_kernels, resolve_kernels

from .suite import numbers

X = numbers()
WIDTHS = [2.0**k for k in range(-3, 7)]


def test_default_bank():
    kernels = resolve_kernels(expand_kernels(kw.default_bank(), Schema(4)), X)
    assert len(kernels) <= 8
    assert [kernel.family for kernel in kernels] == ["gaussian"] * 5 + ["linear"]
    assert all(kernel.accepts_sparse for kernel in kernels)
    before = np.array([kernel(X) for kernel in kernels[:-1]])
    moved = resolve_kernels(expand_kernels(kw.default_bank(), Schema(4)), 1000 * X)
    np.testing.assert_allclose([kernel(1000 * X) for kernel in moved[:-1]], before, rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "d", "m"),
    [
        ("smkl", 33, 429),
        ("smkl", 8, 104),
        ("stpmkl", 13, 140),
        ("simplemkl", 33, 442),
        ("obscure_mnist", 784, 12),
    ],
)
def test_presets_have_as_many_kernels_as_in_the_papers(name, d, m):
    assert len(expand_kernels(name, Schema(d))) == m
    assert len(expand_kernels(kw.preset(name), Schema(d))) == m


def test_smkl_is_on_single_features_only():
    kernels = expand_kernels("smkl", Schema(4))
    assert {kernel.columns for kernel in kernels} == {(0,), (1,), (2,), (3,)}
    on_first = [kernel for kernel in kernels if kernel.columns == (0,)]
    for kernel, width in zip(on_first, WIDTHS, strict=False):
        np.testing.assert_allclose(
            kernel(X), np.exp(-(np.subtract.outer(X[:, 0], X[:, 0]) ** 2) / (2 * width**2))
        )
    for kernel, degree in zip(on_first[10:], (1, 2, 3), strict=True):
        np.testing.assert_allclose(kernel(X), (np.outer(X[:, 0], X[:, 0]) + 1) ** degree)


def test_stpmkl_is_on_all_and_on_single_features():
    kernels = expand_kernels("stpmkl", Schema(4))
    assert [kernel.columns for kernel in kernels] == [None] * 10 + [(j,) for j in range(4) for _ in range(10)]
    assert {kernel.family for kernel in kernels} == {"gaussian"}
    np.testing.assert_allclose([kernel.exponent for kernel in kernels[:10]], [0.5 / w**2 for w in WIDTHS])


def test_obscure_blocks_tile_the_image():
    kernels = expand_kernels("obscure_mnist", Schema(784))
    blocks = {kernel.columns for kernel in kernels}
    assert len(blocks) == 4
    assert sorted(pixel for block in blocks for pixel in block) == list(range(784))
    image = np.arange(784).reshape(28, 28)
    assert tuple(image[:14, 14:].ravel()) in blocks
    assert [kernel.family for kernel in kernels[:3]] == ["linear", "polynomial", "gaussian"]
    assert kernels[0].name == "linear on top left"
    with pytest.raises(ValueError, match="784"):
        expand_kernels("obscure_mnist", Schema(64))


def test_presets_are_listed_and_misspellings_helped():
    assert set(kw.presets()) == {"smkl", "stpmkl", "simplemkl", "obscure_mnist"}
    assert all("\n" not in line and line.endswith(".") for line in kw.presets().values())
    with pytest.raises(ValueError, match=r"'smlk'.*Did you mean"):
        kw.preset("smlk")
    with pytest.raises(ValueError, match=r"'gaussien'.*Did you mean 'gaussian'.*kernels.gaussian\(1.0\)"):
        as_spec("gaussien")


def test_nystroem_with_all_landmarks_is_exact():
    exact = kw.gaussian(2.0)
    kernel = kw.nystroem(exact, rank=100).resolve(X)
    np.testing.assert_allclose(kernel(X), exact(X), atol=1e-6)
    np.testing.assert_allclose(kernel(X + 0.1, X), exact(X + 0.1, X), atol=1e-5)
    assert kernel.rank(4) <= 22  # one row is there twice


def test_nystroem_interpolates_its_landmarks():
    kernel = kw.nystroem(kw.laplacian(2.0), rank=6, random_state=3).resolve(X)
    rows = kernel.landmarks
    assert rows.shape == (6, 4)
    np.testing.assert_allclose(kernel(rows), kw.laplacian(2.0)(rows), atol=1e-8)
    gap = np.linalg.eigvalsh(kw.laplacian(2.0)(X) - kernel(X))
    assert gap[0] > -1e-8  # it never overshoots
    assert gap[-1] > 1e-2  # but six landmarks are not all


def test_approximations_follow_their_seed():
    for make in (
        lambda seed: kw.nystroem(kw.gaussian(1.0), 5, seed),
        lambda seed: kw.random_fourier(1.0, 20, seed),
    ):
        one, again, other = (make(seed).resolve(X)(X) for seed in (0, 0, 1))
        assert np.array_equal(one, again)
        assert not np.allclose(one, other)


def test_approximations_of_stacks_and_families():
    assert len(kw.nystroem(kw.gaussian([1, 2]))) == 2
    kernels = expand_kernels(kw.nystroem(kw.per_feature(kw.gaussian([1, 2])), rank=3), Schema(4))
    assert len(kernels) == 8
    np.testing.assert_allclose(
        kernels[3].resolve(X)(X), kw.nystroem(kw.gaussian(2).on(1), rank=3).resolve(X)(X), atol=1e-9
    )
    assert kernels[0].name == "nystroem(gaussian(width=1) on feature 0, rank=3)"
    assert [kernel.name for kernel in kw.random_fourier([1, 2], relative=True)] == [
        "random_fourier(width=1 x median, n_features=200)",
        "random_fourier(width=2 x median, n_features=200)",
    ]


def test_random_fourier_approaches_the_gaussian():
    exact = kw.gaussian(3.0)(X)
    errors = [
        np.abs(kw.random_fourier(3.0, n_features=n).resolve(X)(X) - exact).mean() for n in (20, 2000, 50000)
    ]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[2] < 0.005
    relative = kw.random_fourier(1.0, n_features=50000, relative=True).resolve(X)(X)
    np.testing.assert_allclose(relative, kw.gaussian(1.0, relative=True).resolve(X)(X), atol=0.05)


def test_approximations_must_be_settled():
    for kernel in (kw.nystroem(kw.gaussian(1.0)), kw.random_fourier(1.0)):
        with pytest.raises(ValueError, match="resolve"):
            kernel(X)
    settled = kw.random_fourier(1.0).resolve(X)
    with pytest.raises(ValueError, match="settled on 4 features, got 2"):
        settled(X[:, :2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kw.gaussian(0.0), "width of a gaussian"),
        (lambda: kw.gaussian([1.0, -2.0]), "width of a gaussian.*-2"),
        (lambda: kw.gaussian("wide"), "width of a gaussian.*'wide'"),
        (lambda: kw.gaussian(float("nan")), "width of a gaussian"),
        (lambda: kw.gaussian([]), "empty sequence"),
        (lambda: kw.laplacian(-1), "width of a laplacian"),
        (lambda: kw.polynomial(0), "degree"),
        (lambda: kw.polynomial(1.5), "whole number"),
        (lambda: kw.polynomial(2, coef0=-1.0), "coef0"),
        (lambda: kw.polynomial(2, gamma=0.0), "gamma"),
        (lambda: kw.chi2(0.0), "gamma of a chi2"),
        (lambda: kw.constant(-1.0), "constant"),
        (lambda: kw.nystroem(kw.linear(), rank=0), "rank of nystroem"),
        (lambda: kw.random_fourier(1.0, n_features=7), "even"),
        (lambda: kw.random_fourier(0.0), "width"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_parameters_set_later_are_checked_too():
    with pytest.raises(ValueError, match="width of a gaussian"):
        kw.gaussian(1.0).set_params(width=-1.0)(X)
    with pytest.raises(ValueError, match="coef0"):
        kw.polynomial(2).set_params(coef0=-1.0)(X)


def test_sequences_of_any_kind_give_stacks():
    for widths in ([1, 2], (1, 2), np.array([1, 2]), range(1, 3), {1, 2}):
        assert [kernel.name for kernel in kw.gaussian(widths)] == ["gaussian(width=1)", "gaussian(width=2)"]
    assert kw.gaussian(np.float64(2.0)).name == "gaussian(width=2)"
    assert len(kw.gaussian([3.0])) == 1


NUMERIC = [
    kw.gaussian(1.0), kw.laplacian(1.0), kw.linear(), kw.cosine(), kw.polynomial(2), kw.chi2(), kw.intersection(),
    kw.tanimoto(), kw.from_distance("euclidean"),
]  # fmt: skip


@pytest.mark.parametrize("kernel", NUMERIC, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "NaN or infinity"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), "NaN or infinity"),
        (np.arange(3.0), "two-dimensional"),
        (["a", "b"], "numbers"),
        (np.array([["a", "b"]]), "numbers"),
        (np.zeros((2, 2, 2)), "two-dimensional"),
    ],
)
def test_samples_are_checked_in_the_kernels_name(kernel, samples, message):
    with pytest.raises(ValueError, match=message) as caught:
        kernel.base(samples, samples)
    assert kernel.name in str(caught.value)


def test_large_finite_numbers_pass_the_check():
    huge = np.array([[1e308, 0.0], [1e308, 1e308]])
    assert np.isfinite(kw.cosine()(huge)).all()


@pytest.mark.parametrize("kernel", [kw.chi2(), kw.intersection(), kw.tanimoto()], ids=str)
def test_negative_features_are_refused(kernel):
    with pytest.raises(ValueError, match=rf"{kernel.family}.*non-negative.*-1"):
        kernel(np.array([[1.0, -1.0]]))


def test_different_numbers_of_features():
    with pytest.raises(ValueError, match="4 and 3 features"):
        kw.linear()(X, X[:, :3])


def test_public_names():
    for name in kw.__all__:
        assert hasattr(kw, name), name
    assert {"Kernel", "KernelSpec", "Stack", "gaussian", "held", "per_feature", "preset", "summed"} <= set(
        kw.__all__
    )


def test_import_is_light():
    code = """
import sys, sklearn.base
unavoidable = set(sys.modules)
import kernelweave.kernels
heavy = {"numba", "pandas", "matplotlib", "sklearn.metrics", "scipy.spatial"}
print(heavy & (set(sys.modules) - unavoidable))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
