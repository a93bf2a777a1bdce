"""What ``decide`` has to know, read from kernels, samples and banks before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.resources import default_budget
from .._typing import Index
from ..kernels import Kernel, n_samples
from ..kernels.pairwise import factors_of
from ..views import Pairs
from ._base import Bank
from .decide import MIXING_SHARE, Abilities, Facts, Split
from .memory import Place, parse_bytes
from .power import Chain, base_groups, find_chains


def facts_of_kernels(
    kernels: list[Kernel] | None,
    samples: Any,
    normalize: str | None,
    center: bool,
    *,
    place: Place = "host",
    kind: str = "",
    can: Abilities | None = None,
    memory_budget: int | float | str | None = None,
    **others: Any,
) -> Facts:
    """Read the facts of kernels on samples, or of matrices; ``kind`` is that of samples that are no rows of numbers.

    ``others`` are facts that the caller knows.
    """
    factors = not center and normalize != "cosine"
    if kernels is None and normalize == "cosine":
        raise ValueError(
            "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold: "
            "normalise the matrices yourself, or use kernelweave.kernels.held(stack)"
        )
    if kernels is None:
        n, m, whole = samples[0].shape[0], len(samples), parse_bytes(memory_budget)
        needed = 16 * n * n + (0 if used_in_place(samples, center) else m * (n * (n + 1) // 2) * 8)
        facts = Facts(
            n, m, can or Abilities(), place, "matrices", factors=factors, needed=needed, memory=whole
        )
        return replace(facts, process_memory=default_budget(), **others)
    n, m = n_samples(samples), len(kernels)
    if isinstance(samples, Pairs):
        kind, sides = "pairs", samples.compact()
        lefts, rights, _ = factors_of(kernels)
        # the matrices, and as much again for their mixtures
        needed = sum(
            8 * (len(of) + 4) * len(side) ** 2 for of, side in ((lefts, sides.left), (rights, sides.right))
        )
        others = {"needed": needed, **others}
    ranks = ranks_of(kernels, samples)
    known = [rank for rank in ranks if rank is not None]
    without = [kernel.name for kernel, rank in zip(kernels, ranks, strict=True) if rank is None]
    splits: dict[tuple[int, ...], Split] = {}

    def split(most: float) -> Split:
        if kind == "pairs":  # matrices, no two of which are powers of one
            return Split(matrices=m, chains=m)
        explicit = explicit_kernels(ranks, most)
        if tuple(explicit) not in splits:
            stored = np.setdiff1d(np.arange(m), explicit)
            chains = len(chains_of(kernels, stored, True))
            size = feature_bytes(kernels, samples, ranks, explicit)
            splits[tuple(explicit)] = Split(explicit.size, size, stored.size, chains)
        return splits[tuple(explicit)]

    facts = Facts(
        n, m, can or Abilities(), place,
        samples=kind or ("numbers" if len(getattr(samples, "shape", ())) == 2 else "other"),
        unranked=len(without), without=without[0] if without else "",
        rank=max(known, default=0), columns=sum(known), factors=factors,
        memory=parse_bytes(memory_budget), process_memory=default_budget(),
    )  # fmt: skip
    if place == "host":  # elsewhere all kernels are kept alike
        facts = replace(facts, every=split(np.inf), own=split(n), low=split(n / MIXING_SHARE), none=split(-1))
    return replace(facts, **others)


def used_in_place(matrices: Any, center: bool) -> bool:
    """Whether matrices are used where they lie, because they are in one piece and need a factor at most."""
    plain = isinstance(matrices, np.ndarray) and matrices.dtype in (np.float64, np.float32)
    return plain and matrices.flags.c_contiguous and not center


def facts_of_bank(bank: Bank, can: Abilities) -> Facts:
    """Read the facts that the choice of a solver needs of a bank that is there."""
    return Facts(bank.n, bank.m, can, rank=bank.decision.rank or 0, process_memory=default_budget())


def ranks_of(kernels: Sequence[Kernel], samples: Any) -> list[int | None]:
    """Return how many explicit features every kernel has on samples, None where it has none."""
    shape: tuple[int, ...] = getattr(samples, "shape", ())
    width = shape[1] if len(shape) == 2 else 1
    return [kernel.rank(width if kernel.columns is None else np.size(kernel.columns)) for kernel in kernels]


def explicit_kernels(ranks: Sequence[int | None], most: float) -> Index:
    """Positions of the kernels that have features, at most so many."""
    return np.flatnonzero([rank is not None and rank <= most for rank in ranks])


def chains_of(kernels: list[Kernel], stored: Index, powers: bool) -> list[Chain]:
    """Chains of the stored kernels, with positions in the whole bank; single links where powers are not wanted."""
    chains = []
    for group in base_groups(kernels, stored):
        links = [Chain((k,), (0,), (0,)) for k in range(len(group))]
        if powers:
            links = find_chains([kernels[j].exponent for j in group])
        chains += [Chain(tuple(group[k] for k in c.kernels), c.squarings, c.times_base) for c in links]
    return chains


def feature_bytes(
    kernels: Sequence[Kernel], samples: Any, ranks: Sequence[int | None], explicit: Index
) -> int:
    """Return the bytes of the explicit features; sparse ones, and those of sparse samples, without their zeros."""
    few = [kernels[j].nonzeros for j in explicit]
    if few and None not in few:
        return int(12 * n_samples(samples) * sum(number or 0.0 for number in few))
    dense = 8 * n_samples(samples) * sum(ranks[j] or 0 for j in explicit)
    if not sp.issparse(samples):
        return dense
    columns = [kernels[j].feature_columns(samples.shape[1]) for j in explicit]
    if any(column is None for column in columns):
        return dense
    filled = np.bincount(samples.indices, minlength=samples.shape[1])
    return int(12 * sum(int(filled[column].sum()) for column in columns))
