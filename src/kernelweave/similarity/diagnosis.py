"""How far a similarity is from being a kernel, and which of several disagrees with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array
from .inputs import as_similarities, asymmetry, similarity_names

#: shares of the spectrum and of the matrix above which a sentence says so
NEGLIGIBLE, LARGE, SKEWED = 0.01, 0.2, 0.05


@dataclass(frozen=True)
class Indefiniteness:
    """How indefinite a similarity is; printed, it says so in words.

    Attributes
    ----------
    eigenvalues : array of shape (n,)
        Of ``(S + S') / 2``, ascending.
    signature : tuple of int
        Positive, zero and negative eigenvalues; zero is within 1e-10 of the largest in absolute value.
    negative_share : float
        Sum of the negative eigenvalues over that of all, in absolute value: 0 for a kernel.
    negative_peak : float
        The most negative eigenvalue over the largest, in absolute value.
    asymmetry : float
        ``|S - S'| / |S + S'|``.
    """

    eigenvalues: Array
    signature: tuple[int, int, int]
    negative_share: float
    negative_peak: float
    asymmetry: float

    @property
    def is_kernel(self) -> bool:
        """Whether no eigenvalue is negative."""
        return self.signature[2] == 0

    def __str__(self) -> str:
        positive, zero, negative = self.signature
        lines = [f"{positive} positive, {zero} zero and {negative} negative eigenvalues."]
        if negative:
            lines.append(
                f"The negative ones are {100 * self.negative_share:.3g} % of the spectrum, the largest of them "
                f"{100 * self.negative_peak:.3g} % of the largest eigenvalue."
            )
        if self.is_kernel:
            lines.append("It is a kernel: any kernel method takes it as it is.")
        elif self.negative_share < NEGLIGIBLE:
            lines.append(
                "Nearly a kernel: dropping the negative part (DenoiseSpectrum) changes next to nothing."
            )
        elif self.negative_peak > LARGE:
            lines.append(
                "A few large negative eigenvalues: structure rather than noise.\n"
                "Compare FlipSpectrum and similarities as features with DenoiseSpectrum."
            )
        else:
            lines.append(
                "Many small negative eigenvalues: noise, which DenoiseSpectrum or a learned kernel removes."
            )
        if self.asymmetry > SKEWED:
            size = f"{100 * self.asymmetry:.2g} %"
            lines.append(
                f"The asymmetry is large, {size}: S and S' may be two similarities in their own right."
            )
        return "\n".join(lines)


def indefiniteness(similarity: Any) -> Indefiniteness:
    """Look at the spectrum of one similarity matrix.

    Parameters
    ----------
    similarity : array of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> print(indefiniteness(np.array([[0.0, 1.0], [1.0, 0.0]])))
    1 positive, 0 zero and 1 negative eigenvalues.
    The negative ones are 50 % of the spectrum, the largest of them 100 % of the largest eigenvalue.
    A few large negative eigenvalues: structure rather than noise.
    Compare FlipSpectrum and similarities as features with DenoiseSpectrum.
    """
    stack = as_similarities(similarity, "the similarity")
    if stack.shape[0] != 1 or stack.shape[1] != stack.shape[2]:
        raise ValueError(f"indefiniteness looks at one square matrix, got shape {np.shape(similarity)}")
    S = stack[0]
    values = np.linalg.eigvalsh(0.5 * (S + S.T))
    size = float(np.max(np.abs(values)))
    zero = np.abs(values) <= 1e-10 * size
    negative = (values < 0) & ~zero
    total = float(np.sum(np.abs(values)))
    return Indefiniteness(
        eigenvalues=values,
        signature=(int(np.sum((values > 0) & ~zero)), int(zero.sum()), int(negative.sum())),
        negative_share=abs(float(values[negative].sum())) / total if total else 0.0,
        negative_peak=abs(float(values[negative].min(initial=0.0))) / max(float(values[-1]), 1e-300),
        asymmetry=asymmetry(S),
    )


@dataclass(frozen=True)
class Agreement:
    """How alike several similarities are.

    Attributes
    ----------
    names : list of str
    alignments : array of shape (m, m)
        Cosines between the centred matrices: 1 where they say the same.
    with_others : array of shape (m,)
        Cosine of each with the mean of the others.
    with_labels : array of shape (m,) or None
        Cosine of each with the matrix of shared labels.
    """

    names: list[str]
    alignments: Array
    with_others: Array
    with_labels: Array | None = None

    @property
    def odd_one_out(self) -> str:
        """Name of the similarity that agrees least with the others."""
        return self.names[int(np.argmin(self.with_others))]

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = []
        for i, name in enumerate(self.names):
            line = f"{name:<{width}}  agrees with the others: {self.with_others[i]:5.2f}"
            if self.with_labels is not None:
                line += f"   with the labels: {self.with_labels[i]:5.2f}"
            lines.append(line)
        if len(self.names) > 2:  # of two, either may be the odd one
            lines.append(f"{self.odd_one_out} agrees least with the others.")
        return "\n".join(lines)


def agreement(similarities: Any, y: Any = None, names: Sequence[str] | None = None) -> Agreement:
    """Compare several similarities of the same samples with each other, and with labels where they are given.

    Parameters
    ----------
    similarities : array of shape (m, n, n), or a list of matrices
    y : array of shape (n,), optional
    names : sequence of m str, optional

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6.0)
    >>> S = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> noise = np.random.default_rng(0).normal(size=(6, 6))
    >>> agreement([S, S**2, noise + noise.T], names=["wide", "narrow", "noise"]).odd_one_out
    'noise'
    """
    stack = as_similarities(similarities)
    m, n, columns = stack.shape
    if n != columns:
        raise ValueError(f"similarities must be square, got shape {stack.shape}")
    if m < 2:
        raise ValueError("agreement compares at least two similarities, got one")
    labels = similarity_names(names, m)
    centred = [_centred(0.5 * (S + S.T)) for S in stack]
    unit = np.stack([C / max(float(np.linalg.norm(C)), 1e-300) for C in centred])
    others = (unit.sum(axis=0) - unit) / (m - 1)
    with_labels = None
    if y is not None:
        same = np.asarray(y)[:, None] == np.asarray(y)[None, :]
        if same.shape != (n, n):
            raise ValueError(f"the similarities have {n} samples, y has {len(np.asarray(y))}")
        with_labels = np.array([_cosine(C, _centred(same.astype(float))) for C in unit])
    pairs = np.array([[_cosine(A, B) for B in unit] for A in unit])
    with_others = np.array([_cosine(A, B) for A, B in zip(unit, others, strict=True)])
    return Agreement(labels, pairs, with_others, with_labels)


def _centred(S: Array) -> Array:
    rows = S.mean(axis=0)
    return np.asarray(S - rows - rows[:, None] + rows.mean())


def _cosine(A: Array, B: Array) -> float:
    return float(np.sum(A * B) / max(float(np.linalg.norm(A) * np.linalg.norm(B)), 1e-300))
