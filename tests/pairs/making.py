"""Pairs of random objects, and their kernels as matrices by ``np.kron``: what products have to agree with."""

from __future__ import annotations

import numpy as np

from kernelweave import Pairs
from kernelweave.banks.pairs import PairBank, PairProducts


def psd(rng, count, size, rank=None):
    """Random kernel matrices, ``(count, size, size)``."""
    Z = rng.normal(size=(count, size, rank or size))
    return Z @ Z.transpose(0, 2, 1) / Z.shape[2]


def explicit(left, right, terms, rows, cols, symmetry=0):
    """The kernels on the pairs, cut out of the Kronecker products of all pairs."""
    a, b = left.shape[1], right.shape[1]
    at = rows * b + cols
    out = []
    for i, j in terms:
        whole = np.kron(left[i], right[j])
        if symmetry:
            swap = np.zeros((a * b, a * b))
            for r in range(a):
                for c in range(b):
                    swap[r * b + c, c * b + r] = 1.0
            P = (np.eye(a * b) + symmetry * swap) / 2
            whole = P @ whole @ P
        out.append(whole[np.ix_(at, at)])
    return np.array(out)


def bank_and_tensor(seed, a=6, b=5, p=3, q=2, n=None, symmetry=0, twice=False, sparse=None, terms=None):
    """A bank of products on some pairs of a grid in any order, and the same kernels as ``(m, n, n)``."""
    rng = np.random.default_rng(seed)
    left = psd(rng, p, a)
    right = left if symmetry else psd(rng, q, b)
    b, q = right.shape[1], len(right)
    at = rng.permutation(a * b)[: a * b if n is None else n]
    if twice:
        at = np.concatenate([at, at[:3]])
    rows, cols = np.divmod(at, b)
    every = [(i, j) for i in range(p) for j in range(q) if not symmetry or i <= j]
    terms = np.array(every if terms is None else [every[k] for k in terms])
    store = PairProducts(
        left, right, terms, rows, cols, symmetry=symmetry, scale=rng.uniform(0.5, 2.0, len(terms))
    )
    if sparse is not None:
        store.at.sparse = sparse
    tensor = explicit(left, right, terms, rows, cols, symmetry) * store.scale[:, None, None]
    return PairBank(store), tensor


def drugs_and_cells(seed=0, a=8, b=9, missing=0.3):
    """Pairs of objects with columns, and a response that both descriptors and single objects have a part in."""
    rng = np.random.default_rng(seed)
    drugs, cells = rng.normal(size=(a, 3)), rng.normal(size=(b, 4))
    Y = (
        np.tanh(drugs @ rng.normal(size=(3, 4)) @ cells.T)
        + rng.normal(size=(a, 1))
        + 0.3 * rng.normal(size=(a, b))
    )
    Y[rng.random((a, b)) < missing] = np.nan
    X = Pairs.from_grid(drugs, cells, Y)
    return X, X.labels
