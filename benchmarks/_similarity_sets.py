"""Similarity sets to try defaults on: name, kind, and a split of each by number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernelweave_studies.datasets import load_similarity, load_uci
from kernelweave_studies.similarity.data import FAMILIES, REAL, UCI, protein_split, single_split

__all__ = ["SETS", "Split"]

#: similarities of all samples (m, n, n), labels, training and test samples
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NAMES = ("smith_waterman", "needleman_wunsch", "psi_blast")
#: samples of the sets with several superfamilies, and the share to train on
MOST, SHARE = 320, 0.6


def _single(name: str, seed: int) -> Split:
    split = single_split(name, seed)
    return split.stack, split.y, split.train, split.test


def _family(family: str, which: slice, seed: int) -> Split:
    split = protein_split(family, seed)
    return split.stack[which], split.y, split.train, split.test


def _several(families: tuple[str, ...], which: slice, seed: int) -> Split:
    """Superfamilies as they come, not balanced."""
    loaded = load_similarity("scop40")
    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(np.flatnonzero(np.isin(loaded.target, families)))[:MOST]
    stack = loaded.similarities[which][:, rows][:, :, rows]
    first = round(SHARE * rows.size)
    return stack, loaded.target[rows], np.arange(first), np.arange(first, rows.size)


def _linear(name: str, seed: int) -> Split:
    """The linear kernel of standardised columns: positive semidefinite and of low rank."""
    X, y = load_uci(name, return_X_y=True)
    rows = np.random.default_rng([seed, 9]).permutation(len(y))[:200]
    X, y = X[rows], y[rows]
    X = (X - X[:120].mean(axis=0)) / np.maximum(X[:120].std(axis=0), 1e-12)
    return (X @ X.T)[None], y, np.arange(120), np.arange(120, 200)


def _all() -> dict[str, Callable[[int], Split]]:
    sets: dict[str, Callable[[int], Split]] = {name: partial(_single, name) for name in (*UCI, *REAL)}
    every = slice(None)
    for family in FAMILIES:
        sets[f"{family}, three similarities"] = partial(_family, family, every)
        for j, name in enumerate(NAMES):
            sets[f"{family}, {name}"] = partial(_family, family, slice(j, j + 1))
    for count in (4, 8):
        families = FAMILIES[:count]
        sets[f"{count} superfamilies, three similarities"] = partial(_several, families, every)
        for j, name in enumerate(NAMES):
            sets[f"{count} superfamilies, {name}"] = partial(_several, families, slice(j, j + 1))
    for name in ("sonar", "wdbc"):
        sets[f"{name}, linear kernel"] = partial(_linear, name)
    return sets


SETS = _all()
