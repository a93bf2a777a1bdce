"""Similarities and splits of the study: as many positives as negatives, in the training part and in the test part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..datasets import load_similarity, load_uci

UCI = ("sonar", "liver", "ionosphere", "pima", "heart")
REAL = ("aural_sonar", "voting")
FAMILIES = ("a.4.1", "b.1.18", "b.29.1", "b.40.4", "c.1.8", "c.3.1", "c.47.1", "c.67.1")

#: samples of a class: at most so many in all, and this share of them to train on
MOST, SHARE = 80, 0.6
#: Table 3: training samples of a class
PROTEINS = 40
#: size of the noise on Gaussian similarities
NOISE = 0.1

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SimilaritySplit:
    """Similarities ``(m, n, n)`` of all samples, labels -1 and 1, and which samples train and test."""

    stack: Array
    y: Array
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def _balanced(
    y: Array, train: int | None, most: int, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """As many of either class: ``train`` of each (a share where None), the others up to ``most`` to test."""
    groups = [rng.permutation(np.flatnonzero(y == label)) for label in (-1, 1)]
    most = min(most, *(len(group) for group in groups))
    first = round(SHARE * most) if train is None else train
    return (
        [int(i) for group in groups for i in group[:first]],
        [int(i) for group in groups for i in group[first:most]],
    )


def single_split(name: str, seed: int) -> SimilaritySplit:
    """One similarity: a noisy Gaussian of UCI features, or a given one.

    Gaussian similarities follow Ying et al. (2009) as far as that is known: ``S = G + 0.1 (E + E') / 2``, E standard
    normal; the width is the median distance of the training samples, features scaled by them.
    """
    rng = np.random.default_rng([seed, len(name), *name.encode()])
    if name in REAL:
        loaded = load_similarity(name)
        S, labels = loaded.similarities, loaded.target
    else:
        X, labels = load_uci(name, return_X_y=True)
    y = np.where(labels == np.unique(labels)[1], 1.0, -1.0)
    train, test = _balanced(y, None, MOST, rng)
    if name not in REAL:
        X = X[train + test]
        mean, deviation = X[: len(train)].mean(axis=0), X[: len(train)].std(axis=0)
        X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
        distances = cdist(X, X)
        width = np.median(distances[: len(train), : len(train)])
        E = rng.standard_normal(distances.shape)
        S = (np.exp(-(distances**2) / (2 * width**2)) + NOISE * (E + E.T) / 2)[None]
    else:
        S = S[:, train + test][:, :, train + test]
    n = len(train)
    return SimilaritySplit(S, y[train + test], np.arange(n), np.arange(n, n + len(test)))


def protein_split(family: str, seed: int) -> SimilaritySplit:
    """One superfamily against as many of the rest, three similarities."""
    rng = np.random.default_rng([seed, *family.encode()])
    loaded = load_similarity("scop40")
    y = np.where(loaded.target == family, 1.0, -1.0)
    train, test = _balanced(y, PROTEINS, 2 * PROTEINS, rng)
    rows = train + test
    n = len(train)
    return SimilaritySplit(
        loaded.similarities[:, rows][:, :, rows], y[rows], np.arange(n), np.arange(n, n + len(test))
    )


def gaussian_similarities(n: int, m: int, seed: int) -> tuple[Array, Array]:
    """Gaussians of m widths with noise, scaled by ``n / tr(S_+)``, and labels that a line nearly separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    squares = cdist(X, X, "sqeuclidean")
    stack = []
    for i in range(m):
        E = rng.standard_normal((n, n))
        S = np.exp(-squares / (8 * (1 + i) ** 2)) + NOISE * (E + E.T) / 2
        stack.append(S * (n / np.sum(np.maximum(np.linalg.eigvalsh(S), 0.0))))
    return np.stack(stack), y


def garbage(split: SimilaritySplit, seed: int) -> SimilaritySplit:
    """The first similarity replaced by symmetric noise."""
    n = split.y.size
    E = np.random.default_rng([seed, 7]).standard_normal((n, n))
    stack = split.stack.copy()
    stack[0] = 0.5 * (E + E.T) + np.eye(n)
    return SimilaritySplit(stack, split.y, split.train, split.test)
