"""From kernels and samples to a bank: learn the normalisation, choose the storage, fill it.

Storage, for ``storage=``:

- ``"family"``: one packed matrix for each chain of powers (Gaussians of doubling widths, polynomial degrees);
- ``"dense"``: one packed matrix per kernel;
- ``"lowrank"``: explicit features, for kernels that have them;
- ``"lazy"``: nothing, every pass computes its entries;
- ``"stream"``: explicit features that are computed block by block in every pass, see ``streaming``;
- ``"auto"``: features for kernels whose rank is below a quarter of n, families for the rest, and lazy for those when
  the matrices would not fit into the memory budget.  A solver that needs no mixed kernel (``mixing=False``) gets
  features wherever their rank is at most n, streamed where they would not fit.  Where a mixed kernel of all samples
  would not fit either, a solver on working sets of them can still go on with what is computed (``subsets=True``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.spectrum import check_semidefinite
from ..kernels import Kernel, n_samples, stack_features, take
from ._base import Array, Bank, Index
from .composite import CompositeBank
from .lazy import LazyBank, base_groups
from .lowrank import LowRankBank, suits_blocks
from .memory import parse_bytes, refuse
from .normalise import Normaliser
from .power import Chain, find_chains
from .storages import check_storage
from .stored import stored_bank
from .streaming import StreamingBank, streaming_bank

__all__ = ["build_bank", "check_kernels", "learn_blockwise", "row_means"]

BLOCK_ENTRIES = 4_000_000
#: samples whose mixed kernel must fit where that of all samples need not: the working sets of a solver grow from half
LEAST_WORKING_SET = 4000


def build_bank(
    kernels: list[Kernel],
    samples: Any,
    *,
    normalize: str | None = "trace",
    center: bool = False,
    storage: str = "auto",
    dtype: Any = np.float64,
    memory_budget: int | float | str | None = None,
    threads: int = 1,
    mixing: bool = True,
    blocks: bool = False,
    subsets: bool = False,
) -> tuple[Bank, Normaliser]:
    """Bind resolved kernels to training samples; ``mixing`` says whether the mixed kernel will be wanted.

    ``blocks``: it will not be where there are many samples, and explicit features of all kernels that fit.
    ``subsets``: where it does not fit, that of some of the samples will do.

    Returns
    -------
    bank : Bank
    normaliser : Normaliser
        What has to be done to the raw kernels on new rows.
    """
    check_storage(storage)
    dtype = np.dtype(dtype)
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype}")
    n = n_samples(samples)
    normaliser = Normaliser.empty(normalize, center, len(kernels), n, [k.name for k in kernels])
    if storage == "stream":
        return streaming_bank(kernels, samples, normaliser, dtype, threads), normaliser
    check_kernels(kernels, samples)
    ranks = [_rank(kernel, samples) for kernel in kernels]
    if blocks and storage in ("auto", "lowrank") and suits_blocks(n, ranks):
        everyone = np.arange(len(kernels))
        mixing = _feature_bytes(kernels, samples, ranks, everyone) > parse_bytes(memory_budget)
    explicit = _explicit(kernels, ranks, n, storage, mixing)
    stored = np.setdiff1d(np.arange(len(kernels)), explicit)
    chains = _chains(kernels, stored, storage != "dense" and normaliser.keeps_powers())
    single = dtype == np.float32 and not mixing and normaliser.keeps_powers() and _is_table(samples)
    features = _feature_bytes(kernels, samples, ranks, explicit) // (2 if single else 1)
    budget = parse_bytes(memory_budget)
    whole = not (mixing and subsets and storage in ("auto", "lazy")) or features + mixed_bytes(n) <= budget
    storage = _fit_budget(n, features, len(chains), dtype, storage, budget, mixing, whole)
    if storage == "stream":
        return streaming_bank(kernels, samples, normaliser, dtype, threads), normaliser

    parts, members = _parts(
        kernels, explicit, stored, single, chains, storage, samples, normaliser, dtype, threads
    )
    alone = len(parts) == 1 and np.array_equal(members[0], np.arange(len(kernels)))
    bank = parts[0] if alone else CompositeBank(parts, members)
    bank.mixes_whole = whole
    return bank, normaliser


def mixed_bytes(samples: int) -> int:
    """Bytes of the mixed kernel of so many samples, and of the part of it that the SVM engine copies."""
    return 2 * 8 * samples * samples


def _parts(
    kernels: list[Kernel],
    explicit: Index,
    stored: Index,
    single: bool,
    chains: list[Chain],
    storage: str,
    samples: Any,
    normaliser: Normaliser,
    dtype: np.dtype,
    threads: int,
) -> tuple[list[Bank], list[Index]]:
    """Banks side by side, and the kernels that each holds: features of some kernels, matrices or nothing of others."""
    n = n_samples(samples)
    parts: list[Bank] = []
    members: list[Index] = []
    if explicit.size:
        build = _single_bank if single else _explicit_bank
        parts.append(build([kernels[j] for j in explicit], explicit, samples, normaliser))
        members.append(explicit)
    if stored.size and storage == "lazy":
        learn_blockwise(kernels, stored, samples, n, normaliser)
        chosen = [kernels[j] for j in stored]
        parts.append(LazyBank(chosen, samples, n, normaliser.restrict(stored), dtype, threads))
        members.append(stored)
    elif stored.size:
        parts.append(stored_bank(kernels, chains, samples, n, normaliser, dtype, threads))
        members.append(stored)
    return parts, members


def check_kernels(kernels: list[Kernel], samples: Any) -> None:
    """Raise where a user's own function is not a kernel on the training samples: no certificate would be valid."""
    for kernel in kernels:
        if not kernel.sure:
            check_semidefinite(kernel(samples), f"kernel {kernel.name!r}")


def _rank(kernel: Kernel, samples: Any) -> int | None:
    columns = kernel.columns
    shape: tuple[int, ...] = getattr(samples, "shape", ())
    if isinstance(columns, tuple):
        width = len(columns)
    else:
        width = np.size(columns) if columns is not None else (shape[1] if len(shape) == 2 else 1)
    return kernel.rank(int(width))


def _explicit(kernels: list[Kernel], ranks: list[int | None], n: int, storage: str, mixing: bool) -> Index:
    """Positions of the kernels to be kept as features."""
    if storage == "lowrank":
        without = [k.name for k, rank in zip(kernels, ranks, strict=True) if rank is None]
        if without:
            raise ValueError(
                f"storage='lowrank' needs explicit features, which {without[0]!r} does not have "
                f"({len(without)} such kernels): wrap them in kernels.nystroem(...), or use storage='auto'"
            )
        return np.arange(len(kernels))
    if storage != "auto":
        return np.zeros(0, dtype=np.intp)
    share = 4 if mixing else 1  # a matrix is quicker to mix than features of a similar size
    return np.array(
        [j for j, rank in enumerate(ranks) if rank is not None and share * rank <= n], dtype=np.intp
    )


def _feature_bytes(kernels: list[Kernel], samples: Any, ranks: list[int | None], explicit: Index) -> int:
    """Return the bytes of the explicit features; those of sparse samples are stored without their zeros."""
    dense = 8 * n_samples(samples) * sum(ranks[j] or 0 for j in explicit)
    if not sp.issparse(samples):
        return dense
    columns = [kernels[j].feature_columns(samples.shape[1]) for j in explicit]
    if any(column is None for column in columns):
        return dense
    filled = np.bincount(samples.indices, minlength=samples.shape[1])
    return int(12 * sum(int(filled[column].sum()) for column in columns))


def _chains(kernels: list[Kernel], stored: Index, powers: bool) -> list[Chain]:
    """Chains of the stored kernels, with positions in the whole bank; single links where powers are not wanted."""
    chains = []
    for group in base_groups(kernels, stored):
        in_group = find_chains([kernels[j].exponent for j in group]) if powers else [
            Chain((k,), (0,), (0,)) for k in range(len(group))
        ]  # fmt: skip
        chains += [Chain(tuple(group[k] for k in c.kernels), c.squarings, c.times_base) for c in in_group]
    return chains


def _fit_budget(
    n: int,
    features: int,
    n_chains: int,
    dtype: np.dtype,
    storage: str,
    budget: int,
    mixing: bool,
    whole: bool = True,
) -> str:
    """Return the storage that fits, or raise with the bytes and the ways out; ``whole``: all samples are mixed."""
    matrices = n_chains * (n * (n + 1) // 2) * dtype.itemsize
    if not whole:
        working = mixed_bytes(min(n, LEAST_WORKING_SET))
    else:
        working = mixed_bytes(n) if mixing else 0
    if whole and features + matrices + working <= budget:  # else what memory there is belongs to working sets
        return storage
    if storage == "auto" and not mixing and n_chains == 0:
        return "stream"
    ways = [
        "raise memory_budget",
        "fewer samples",
        "low-rank kernels (kernels.nystroem, kernels.random_fourier)",
    ]
    if mixing:
        ways.append(
            "a solver on explicit features (solver='svrg', 'lbfgs' or 'proximal_newton', with a smooth loss)"
        )
    if storage in ("auto", "lazy") and features + working <= budget:
        return "lazy"
    if dtype == np.float64 and features + matrices // 2 + working <= budget:
        ways.insert(0, "dtype='float32'")
    if storage in ("family", "dense"):
        ways.insert(0, "storage='auto', which computes what does not fit")
    total = features + (0 if storage in ("auto", "lazy") else matrices) + working
    raise refuse(f"a bank on {n} samples with storage={storage!r}", total, budget, ways)


def _explicit_bank(kernels: list[Kernel], index: Index, samples: Any, normaliser: Normaliser) -> Bank:
    """Learn and store explicit features; normalising them normalises the kernel."""
    features, starts = stack_features(kernels, samples)
    if normaliser.keeps_powers():
        if sp.issparse(features):
            squares = features.multiply(features).sum(axis=0)
        else:  # without a second copy of all of them
            squares = np.einsum("ij,ij->j", features, features)
        lengths = np.append(np.asarray(squares, dtype=float).ravel(), 0.0)
        means = np.add.reduceat(lengths, starts[:-1]) * (np.diff(starts) > 0) / features.shape[0]
        normaliser.learn_traces(index, means)
        return LowRankBank(features, starts, normaliser.scale[index])
    if sp.issparse(features) and normaliser.center:
        features = features.toarray()  # centred columns have no zeros
    features = features.tocsc() if sp.issparse(features) else features
    blocks = []
    for j, first, last in zip(index, starts[:-1], starts[1:], strict=True):
        z = features[:, first:last]
        means = np.asarray(z.mean(axis=0)).ravel()
        squares = np.asarray((z.multiply(z) if sp.issparse(z) else z**2).sum(axis=1), dtype=float).ravel()
        if normaliser.center:
            z = z - means
            own = np.sum(
                z**2, axis=1
            )  # from the centred features: the raw ones may be of any size beside them
            normaliser.learn(int(j), squares, (z + means) @ means, own)
        else:
            normaliser.learn(int(j), squares)
        if normaliser.diagonal is not None:
            lengths = np.sqrt(normaliser.diagonal[j])
            z = z.multiply(1.0 / lengths[:, None]) if sp.issparse(z) else z / lengths[:, None]
        blocks.append(z)
    features = sp.hstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.hstack(blocks)
    return LowRankBank(features, starts, normaliser.scale[index])


def _is_table(samples: Any) -> bool:
    return len(getattr(samples, "shape", ())) == 2


def _single_bank(kernels: list[Kernel], index: Index, samples: Any, normaliser: Normaliser) -> Bank:
    """Store explicit features in single precision, block of rows by block of rows; traces are learnt in double."""
    precise = StreamingBank(kernels, samples)
    parts: list[Any] = []
    features = None
    sums = np.zeros(int(precise.starts[-1]) + 1)
    for rows, Z in precise.blocks():
        squares = Z.multiply(Z).sum(axis=0) if sp.issparse(Z) else np.einsum("ij,ij->j", Z, Z)
        sums[:-1] += np.asarray(squares, dtype=float).ravel()
        if sp.issparse(Z):
            parts.append(Z.astype(np.float32))
            continue
        features = np.empty((precise.n, Z.shape[1]), dtype=np.float32) if features is None else features
        features[rows] = Z
    means = np.add.reduceat(sums, precise.starts[:-1]) * (precise.ranks > 0) / precise.n
    normaliser.learn_traces(index, means)
    precise.scale = normaliser.scale[index].copy()
    stored = sp.vstack(parts, format="csr") if features is None else features
    return LowRankBank(stored, precise.starts, normaliser.scale[index], precise)


def learn_blockwise(
    kernels: list[Kernel], stored: Index, samples: Any, n: int, normaliser: Normaliser
) -> None:
    """Learn the normalisation of kernels that will not be stored: diagonals, and row means in blocks."""
    means = row_means(kernels, stored, samples, np.arange(n)) if normaliser.center else None
    for j in stored:
        normaliser.learn(int(j), kernels[j].diag(samples), None if means is None else means[j])


def row_means(kernels: list[Kernel], which: Index, samples: Any, rows: Index) -> Array:
    """Means of some rows of raw kernels over all samples, ``(all kernels, rows)``; a block of rows at a time."""
    means = np.zeros((len(kernels), rows.size))
    height = max(1, BLOCK_ENTRIES // n_samples(samples))
    for group in base_groups(kernels, which):
        for top in range(0, rows.size, height):
            part = slice(top, min(rows.size, top + height))
            base = kernels[group[0]].base(take(samples, rows[part]), samples)
            for j in group:
                means[j, part] = kernels[j].of_base(base).mean(axis=1)
    return means
