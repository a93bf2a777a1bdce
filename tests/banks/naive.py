"""The (m, n, n) tensor itself, built entry by entry from formulas: what every bank has to agree with."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.banks import Bank
from kernelweave.kernels import Schema, expand_kernels, resolve_kernels

#: kernels as (kind, parameter, columns); columns None for all
FAMILIES = {
    "doubling": [("gaussian", w, None) for w in (4.0, 0.5, 1.0, 2.0)],
    "odd widths": [("gaussian", w, None) for w in (0.7, 1.0, 3.0)],
    "degrees": [("polynomial", d, None) for d in (3, 1, 2)],
    "mixed": [
        ("linear", None, (0,)),
        ("gaussian", 1.0, None),
        ("polynomial", 2, (1, 2)),
        ("gaussian", 2.0, (1,)),
        ("laplacian", 1.5, None),
        ("gaussian", 0.5, None),
        ("linear", None, None),
        ("gaussian", 4.0, (1,)),
    ],
    "features": [("linear", None, None), ("polynomial", 2, (0, 1)), ("linear", None, (2,))],
}


def raw(kind, parameter, columns, A, B):
    """Kernel matrix by its textbook formula, with loops over rows."""
    if columns is not None:
        A, B = A[:, list(columns)], B[:, list(columns)]
    out = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            if kind == "gaussian":
                out[i, j] = np.exp(-np.sum((a - b) ** 2) / (2 * parameter**2))
            elif kind == "laplacian":
                out[i, j] = np.exp(-np.sum(np.abs(a - b)) / parameter)
            elif kind == "polynomial":
                out[i, j] = (a @ b + 1.0) ** parameter
            else:
                out[i, j] = a @ b
    return out


def normalised(K, cross, diagonal, mode, center):
    """A training matrix and its matrix for new rows, centred and normalised by the definitions."""
    n = len(K)
    if center:
        H = np.eye(n) - 1.0 / n
        rows, grand = K.mean(axis=1), K.mean()
        means = cross.mean(axis=1)
        diagonal = diagonal - 2 * means + grand
        cross = cross - means[:, None] - rows[None, :] + grand
        K = H @ K @ H
    if mode == "trace":
        factor = n / np.trace(K)
        return K * factor, cross * factor
    if mode == "cosine":
        size = np.sqrt(np.diagonal(K))
        return K / np.outer(size, size), cross / np.outer(np.sqrt(diagonal), size)
    return K, cross


def tensors(family, X, new, mode, center):
    """``(m, n, n)`` and ``(m, n_new, n)``."""
    pairs = []
    for kind, parameter, columns in FAMILIES[family]:
        K, cross = (raw(kind, parameter, columns, A, X) for A in (X, new))
        own = np.diagonal(raw(kind, parameter, columns, new, new))
        pairs.append(normalised(K, cross, own, mode, center))
    return np.array([K for K, _ in pairs]), np.array([cross for _, cross in pairs])


def library_kernels(family, X):
    """The same kernels as the library's objects, settled on the samples."""
    made = []
    for kind, parameter, columns in FAMILIES[family]:
        one = kw.linear() if kind == "linear" else getattr(kw, kind)(parameter)
        made.append(one if columns is None else one.on(list(columns)))
    return resolve_kernels(expand_kernels(made, Schema.of(X)), X)


def data(n: int = 21, seed: int = 0):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(n, 3)) + 0.3, rng.normal(size=(6, 3)) + 0.3
    X.flags.writeable = new.flags.writeable = False
    return X, new


def check_bank(bank: Bank, tensor: np.ndarray, tol: float = 1e-11) -> None:
    """Every question a bank can be asked, answered from the tensor as well."""
    m, n, _ = tensor.shape
    assert (bank.m, bank.n) == (m, n)
    scale = np.max(np.abs(tensor))
    rng = np.random.default_rng(1)

    def close(got, wanted, size=1.0):
        assert got.shape == wanted.shape
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tol * scale * size)

    everyone, some = np.arange(m), np.array([m - 1, 0, m // 2])
    rows, cols = np.array([3, 0, n - 1]), np.array([5, 2, 2, 7])
    close(bank.block(np.arange(n), np.arange(n), everyone), tensor)
    close(bank.block(rows, cols, some), tensor[some][:, rows][:, :, cols])
    close(bank.rows(rows), tensor[:, rows])
    close(bank.rows(rows, some), tensor[some][:, rows])
    close(bank.diag(), np.array([np.diagonal(K) for K in tensor]))

    whole = rng.normal(size=n)
    sparse = np.where(rng.uniform(size=n) < 0.4, whole, 0.0)
    single = np.zeros(n)
    single[4] = -2.0
    columns = np.stack([whole, sparse, np.zeros(n)], axis=1)
    for a in (whole, sparse, single, np.zeros(n), columns, columns[:, 1:]):
        a.flags.writeable = False
        size = 1.0 + np.abs(a).sum()
        product = np.array([K @ a for K in tensor])
        form = np.array([np.sum(a * (K @ a)) for K in tensor])
        close(bank.apply(a), product, size)
        close(bank.apply(a, rows), product[:, rows], size)
        close(bank.apply(a, kernels=some), product[some], size)
        close(bank.apply(a, rows, some), product[some][:, rows], size)
        close(bank.quad(a), form, size**2)
        close(bank.quad(a, some), form[some], size**2)
        image = bank.image(a)
        close(bank.image_quad(image, a), form, size**2)
        for weights in (rng.uniform(size=m), np.eye(m)[m // 2], np.zeros(m)):
            close(bank.image_mix(image, weights), np.tensordot(weights, product, axes=1), size * m)
            close(bank.mix_product(weights, a), np.tensordot(weights, product, axes=1), size * m)
    for weights in (rng.uniform(size=m), np.eye(m)[0], np.eye(m)[m - 1] * 3, np.zeros(m)):
        mixed = bank.combine(weights)
        close(mixed, np.tensordot(weights, tensor, axes=1), m)
        np.testing.assert_allclose(mixed, mixed.T, rtol=0, atol=1e-14 * m * scale)


def check_passes(bank: Bank) -> None:
    """Passes counted by hand: logical entries of the tensor over m n^2."""
    m, n = bank.m, bank.n
    a = np.zeros(n)
    a[:5] = 1.0
    two = np.array([0, m - 1])
    rows = np.arange(7)
    for ask, entries in [
        (lambda: bank.apply(a), m * n * 5),
        (lambda: bank.apply(a, rows), m * 7 * 5),
        (lambda: bank.apply(a, rows, two), 2 * 7 * 5),
        (lambda: bank.image(a), m * n * 5),
        (lambda: bank.quad(a), m * 5 * 5),
        (lambda: bank.quad(a, two), 2 * 5 * 5),
        (lambda: bank.combine(np.ones(m)), m * n * n),
        (lambda: bank.combine(np.eye(m)[0]), n * n),
        (lambda: bank.mix_product(np.eye(m)[m - 1], a), n * 5),
        (lambda: bank.mixed(np.ones(m)), m * n * n),
        (lambda: bank.mixed(np.eye(m)[0], rows), 7 * 7),
        (lambda: bank.rows(rows), m * 7 * n),
        (lambda: bank.block(rows, rows, two), 0),
        (lambda: bank.diag(), 0),
    ]:
        before = bank.passes
        ask()
        assert bank.passes - before == pytest.approx(entries / (m * n * n), rel=1e-12, abs=1e-15)
