"""From kernels and samples, or from matrices, to a bank: check, learn the normalisation, choose the storage, fill it.

Storage, for ``storage=``:

- ``"family"``: one packed matrix for each chain of powers (Gaussians of doubling widths, polynomial degrees);
- ``"dense"``: one packed matrix per kernel;
- ``"lowrank"``: explicit features, for kernels that have them;
- ``"lazy"``: nothing, every pass computes its entries;
- ``"products"``: matrices of the objects of both sides of pairs, see ``pairs``;
- ``"stream"``: explicit features that are computed block by block in every pass, see ``streaming``;
- ``"auto"``: what the rules in ``decide`` say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._numerics.euclid import distances_among
from .._numerics.matrices import check_semidefinite, check_symmetric
from .._numerics.resources import in_threads, one_blas_thread
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, stack_features, take
from ._base import Bank, Storage
from .bound import BoundKernels, GivenMatrices
from .decide import Asked, Decision, keep
from .facts import chains_of, explicit_kernels, facts_of_kernels, ranks_of, used_in_place
from .gram import Gram, SideBySide
from .lazy import Computed
from .lowrank import FeatureMatrix, Features, FeatureStorage, column_squares
from .memory import check_storage
from .normalise import Normaliser
from .pairs import pair_bank
from .power import Chain, Powers, base_groups, mirror_lower, packed_offsets, triangle_cuts
from .streaming import FeatureStream

#: entries of a block that is computed at once: it stays in the second-level cache
CACHED_ENTRIES = 100_000
#: the same of distances on many columns, whose matrix product wants blocks that are not too flat
PRODUCT_ENTRIES = 400_000
#: blocks from which building is divided among threads
MANY_BLOCKS = 64
#: columns up to which differences are quicker than a matrix product
FEW_COLUMNS = 16
#: parts that the triangles of compiled families are cut into at most, whatever the number of threads
MOST_PARTS = 64
#: entries of a block of rows whose means are taken
BLOCK_ENTRIES = 4_000_000


def as_stack(kernels: Any, what: str = "kernels", gaps: bool = False) -> np.ndarray | list[np.ndarray]:
    """Return an ``(m, a, b)`` float array (no copy where it is one), or a list of equally shaped matrices.

    ``gaps`` lets NaN pass, which marks samples that lack a kernel.
    """
    if isinstance(kernels, np.ndarray) and kernels.dtype != object:
        stack = kernels[None] if kernels.ndim == 2 else kernels
        if stack.ndim != 3:
            raise ValueError(
                f"precomputed {what} must have shape (m, n, n) or be a list of matrices, got {kernels.shape}"
            )
        matrices: Any = stack
    else:
        matrices = [np.asarray(matrix) for matrix in kernels]
        shapes = sorted({matrix.shape for matrix in matrices})
        if len(shapes) != 1 or len(shapes[0]) != 2:
            raise ValueError(
                f"precomputed {what} must be matrices of one shape, got shapes {shapes or 'none at all'}"
            )
    if len(matrices) == 0:
        raise ValueError("the bank is empty: no precomputed kernel was given")
    for j, matrix in enumerate(matrices):
        if matrix.dtype.kind not in "fiub":
            raise ValueError(f"precomputed kernel {j} is not numeric (dtype {matrix.dtype})")
        if not np.all(np.isfinite(matrix) | np.isnan(matrix) if gaps else np.isfinite(matrix)):
            raise ValueError(f"precomputed kernel {j} contains NaN or infinite entries")
    return matrices


def check_training_stack(
    matrices: Any, n: int | None, check_psd: bool = True, names: list[str] | None = None
) -> None:
    """Raise where a training kernel is not square, not symmetric, or not positive semi-definite."""
    rows, cols = matrices[0].shape
    if rows != cols:
        raise ValueError(
            f"precomputed training kernels must be square, got {rows} x {cols}; inside cross-validation pass "
            "kernels=kernelweave.kernels.held(stack) and sample indices as X, so that rows and columns are cut together"
        )
    if n is not None and rows != n:
        raise ValueError(
            f"precomputed kernels are {rows} x {cols}, but y has {n} entries; inside cross-validation pass "
            "kernels=kernelweave.kernels.held(stack) and sample indices as X"
        )
    for j, matrix in enumerate(matrices):
        name = names[j] if names else f"precomputed kernel {j}"
        # samples that lack the kernel have NaN in their rows and columns
        gone = np.isnan(np.diagonal(matrix))
        if gone.any():
            if not (np.isnan(matrix[gone]).all() and np.isnan(matrix[:, gone]).all()):
                raise ValueError(f"{name}: samples that lack it must have NaN in their whole row and column")
            here = np.flatnonzero(~gone)
            matrix = matrix[np.ix_(here, here)]
        check_symmetric(matrix, name)
        if check_psd:
            check_semidefinite(matrix, name)


def _given_powers(matrices: Any, normaliser: Normaliser, threads: int) -> Powers:
    """Take matrices as they are where they only need a factor, else normalise packed copies."""
    from .._numerics.passes import pack_rows

    m, n = len(matrices), matrices[0].shape[0]
    chains = [Chain((j,), (0,), (0,)) for j in range(m)]
    in_place = used_in_place(matrices, normaliser.center)
    offsets = np.arange(n, dtype=np.intp) * n if in_place else packed_offsets(n)
    store = matrices.reshape(m, n * n) if in_place else np.empty((m, n * (n + 1) // 2))
    everyone = np.arange(n)
    for j in range(m):
        if in_place:
            normaliser.learn(j, np.diagonal(matrices[j]).astype(float))
            continue
        entries = np.array(matrices[j], dtype=float)
        means: Array | None = entries.mean(axis=1) if normaliser.center else None
        normaliser.learn(j, np.diagonal(entries).copy(), means)
        pack_rows(normaliser.train_block(j, entries, everyone, everyone), 0, offsets, store[j])
    # a matrix of zeros that was computed beforehand is a mistake
    zero = np.flatnonzero(normaliser.scale == 0.0)
    if zero.size:
        what = "is constant, so nothing is left after centring it" if normaliser.center else "has trace zero"
        raise ValueError(f"{normaliser.names[zero[0]]!r} {what}: drop it, or use normalize=None")
    return Powers(store, offsets, chains, normaliser.scale if in_place else None, threads=threads)


class _Block(NamedTuple):
    """Rows ``top .. bottom - 1`` of a base, which some views are powers of."""

    kernel: Kernel
    samples: Any
    views: list[int]
    diagonal: Array
    #: gives distances where they are squared distances between points; what all blocks need is computed once
    distances: Callable[[int, int], Array] | None
    top: int
    bottom: int

    def base(self) -> Array:
        """Return the entries of these rows and columns ``0 .. bottom - 1``, whose diagonal is exact."""
        top, bottom, samples = self.top, self.bottom, self.samples
        if self.distances is not None:
            entries = self.distances(top, bottom)
        elif bottom - top == self.diagonal.size:
            entries = self.kernel.base(samples, samples)
        else:
            rows = np.arange(bottom)
            entries = self.kernel.base(take(samples, rows[top:]), take(samples, rows))
        at = np.arange(bottom - top)
        entries[at, at + top] = self.diagonal[top:bottom]
        return entries


def _powers(
    kernels: list[Kernel],
    chains: list[Chain],
    samples: Any,
    n: int,
    normaliser: Normaliser,
    dtype: np.dtype,
    threads: int,
) -> Powers:
    """Learn the normalisation and store a triangle for every chain of powers, in parts that threads share."""
    from .._numerics.passes import pack_rows

    members = sorted(j for chain in chains for j in chain.kernels)
    single = dtype == np.float32 and _fits_single([kernels[j] for j in members], samples)
    heads = [kernels[chain.kernels[0]] for chain in chains]
    powers = normaliser.keeps_powers()
    # the only kernel there is needs no mixing, but a whole matrix instead of a triangle and a mixed kernel
    square = len(members) == 1 and not single
    offsets = n * np.arange(n) if square else packed_offsets(n)
    size = n * n if square else n * (n + 1) // 2
    store = np.empty((len(chains), size), dtype=np.float32 if single else np.float64)
    # a single-precision power squared many times loses digits: keep the distances instead
    rate = np.array([h.exponent * h.decay for h in heads]) if single and powers else np.zeros(len(heads))
    view_of = {chain.kernels[0]: v for v, chain in enumerate(chains)}
    groups = [[view_of[j] for j in group] for group in base_groups(kernels, np.array(list(view_of)))]
    if powers:
        _fill_powers(kernels, chains, groups, samples, normaliser, store, offsets, rate, threads)
    for views in () if powers else groups:  # stored normalised, so that the scale is in the matrices
        first, everyone = heads[views[0]], np.arange(n)
        base = _Block(first, samples, views, first.base_diag(samples), None, 0, n).base()
        for v in views:
            j, entries = chains[v].kernels[0], heads[v].of_base(base)
            normaliser.learn(j, np.diagonal(entries).copy(), np.mean(entries, axis=1))
            pack_rows(normaliser.train_block(j, entries, everyone, everyone), 0, offsets, store[v])
    if square:
        mirror_lower(store.reshape(n, n), threads)
    place = {j: k for k, j in enumerate(members)}  # kernels keep their order
    local = [Chain(tuple(place[j] for j in c.kernels), c.squarings, c.times_base) for c in chains]
    return Powers(store, offsets, local, normaliser.scale[members] if powers else None, rate, threads, square)


def _fits_single(kernels: list[Kernel], samples: Any) -> bool:
    """Whether entries, and the squares of them that sweeps form, are far from the ends of single precision."""
    with np.errstate(over="ignore"):
        diagonals = [kernel.diag(samples) for kernel in kernels if not kernel.decay]
        tops = [float(np.max(np.abs(diagonal), initial=0.0)) for diagonal in diagonals]
    return all(top == 0.0 or 1e-15 < top < 1e15 for top in tops)


def _fill_powers(
    kernels: list[Kernel],
    chains: list[Chain],
    groups: list[list[int]],
    samples: Any,
    normaliser: Normaliser,
    store: Array,
    offsets: Index,
    rate: Array,
    threads: int,
) -> None:
    """Learn the traces of kernels and fill the triangles of their bases; ``groups`` are chains of the same base."""
    from .._numerics.passes import pack_rows

    n, single = offsets.size, store.dtype == np.float32
    heads = [kernels[chain.kernels[0]] for chain in chains]
    families: list[tuple[Array, list[int]]] = []
    blocks: list[_Block] = []
    ones: list[int] = []
    for views in groups:
        first, held = heads[views[0]], [j for v in views for j in chains[v].kernels]
        points = first.points(samples) if first.decay else None
        if points is not None and not single and 0 < points.shape[1] <= FEW_COLUMNS:
            families.append((points, views))
            ones += held
            continue
        worker, prepared = first.prepare(samples)
        diagonal = worker.base_diag(prepared)
        if first.decay and not np.any(diagonal):  # a diagonal of ones: nothing to compute
            ones += held
        else:
            for j in held:
                normaliser.learn(j, kernels[j].of_base(diagonal))
        among = distances_among(points) if points is not None and n * n > CACHED_ENTRIES else None
        row_blocks = _row_blocks(n, first, points is not None or prepared is not samples)
        blocks += [_Block(worker, prepared, views, diagonal, among, *rows) for rows in row_blocks]
    if ones:
        normaliser.learn_traces(np.array(ones), np.ones(len(ones)))
    if families:
        _fill_families(families, heads, store, offsets, threads)

    def fill(block: _Block) -> None:
        base = block.base()
        for v in block.views:
            last = base if v == block.views[-1] else None  # the last may overwrite what all of them come from
            entries = base if rate[v] > 0 else heads[v].of_base(base, out=last)
            pack_rows(entries, block.top, offsets, store[v])

    # functions of users are called by this thread alone
    shared = [block for block in blocks if block.kernel.sure] if len(blocks) >= MANY_BLOCKS else []
    if shared:
        with one_blas_thread():
            in_threads(fill, shared, threads)
    for block in blocks:
        if not (shared and block.kernel.sure):
            fill(block)


def _row_blocks(n: int, kernel: Kernel, by_products: bool) -> Iterator[tuple[int, int]]:
    """Row ranges whose part left of the diagonal is computed at once: small enough for the second-level cache.

    A user's function is asked for the whole matrix, which it computes in halves itself.
    """
    entries = PRODUCT_ENTRIES if by_products else CACHED_ENTRIES
    if not kernel.sure or n * n <= CACHED_ENTRIES:
        yield 0, n
        return
    top = 0
    while top < n:
        height = int((np.sqrt(top**2 + 4.0 * entries) - top) / 2.0)  # height * (top + height) entries
        bottom = min(n, top + max(height, 1))
        yield top, bottom
        top = bottom


def _fill_families(
    families: list[tuple[Array, list[int]]], heads: list[Kernel], store: Array, offsets: Index, threads: int
) -> None:
    """Fill the triangles of Gaussians on few columns, given by their columns and views, by compiled code.

    All of them are filled in one call per part, so that no thread waits for the interpreter; parts are of rows and
    families, and do not depend on the number of threads.
    """
    from .._numerics.exponentials import PIECE, fill_decays

    table = np.ascontiguousarray(np.concatenate([points.T for points, _ in families]))
    columns = np.cumsum([0, *(points.shape[1] for points, _ in families)])
    links = np.cumsum([0, *(len(views) for _, views in families)])
    views = np.concatenate([views for _, views in families])
    rates = np.array([heads[v].exponent for v in views], dtype=float)
    everyone = np.arange(len(families))
    cuts = triangle_cuts(offsets.size, MOST_PARTS // len(everyone))
    groups = np.array_split(everyone, min(everyone.size, 4 * threads if threads > 1 else 1))

    def run(part: tuple[Index, int]) -> None:
        some, at = part
        rows = np.array(cuts[at : at + 2])
        fill_decays(table, columns, links, rates, views, some, rows, offsets, np.empty(PIECE), store)

    in_threads(run, [(group, at) for at in range(len(cuts) - 2, -1, -1) for group in groups], threads)


def build_bank(
    kernels: list[Kernel] | None,
    samples: Any,
    *,
    normalize: str | None = "trace",
    center: bool = False,
    storage: str = "auto",
    dtype: Any = np.float64,
    memory_budget: int | float | str | None = None,
    threads: int = 1,
    mixing: bool = True,
    decision: Decision | None = None,
    device: Any = None,
) -> Bank:
    """Bind resolved kernels to training samples as ``decision`` says, in memory or on a device.

    Without kernels the samples are matrices, one a kernel.  Without a decision it is made here, from ``storage``,
    ``dtype`` and ``memory_budget``, for a solver that works on the mixed kernel or not (``mixing``), in memory.
    """
    m, n = len(samples if kernels is None else kernels), n_samples(samples[0] if kernels is None else samples)
    names = [f"precomputed kernel {j}" for j in range(m)] if kernels is None else [k.name for k in kernels]
    if decision is None:
        check_storage(storage)
        dtype = np.dtype(dtype)
        if dtype not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {dtype}")
        facts = facts_of_kernels(kernels, samples, normalize, center, memory_budget=memory_budget)
        decision = keep(facts, Asked(mixes=mixing, storage=storage, dtype=dtype.name))
    if decision.storage == "products":
        return pair_bank(list(kernels or ()), samples, normalize, center, decision)
    normaliser = Normaliser.empty(normalize, center, m, n, names)
    if decision.place == "device":
        from .torch_bank import device_storage  # needs torch

        kept: Storage = device_storage(kernels, samples, n, normaliser, decision, device, threads)
    elif kernels is None:
        kept = _given_powers(samples, normaliser, threads)
    elif decision.storage == "stream":
        kept = FeatureStream(kernels, samples, dtype=decision.dtype, threads=threads)
        if normaliser.mode == "trace":  # the traces of the kernels are learnt in one sweep
            normaliser.learn_traces(np.arange(m), kept.mean_squares())
            kept.scale = normaliser.scale.copy()
    else:
        check_kernels(kernels, samples)
        kept = _host_storage(kernels, samples, n, normaliser, decision, threads)
    bank: Bank = Features(kept) if isinstance(kept, FeatureStorage) else Gram(kept)
    bank.decision = decision
    given = GivenMatrices(m, n, np.arange(m)) if kernels is None else None
    bank.source = BoundKernels(kernels or [], None if given else samples, normaliser, given=given)
    return bank


def _host_storage(
    kernels: list[Kernel], samples: Any, n: int, normaliser: Normaliser, decision: Decision, threads: int
) -> Storage:
    """Store features, matrices, or features of some kernels beside matrices or nothing of others."""
    dtype, everyone = np.dtype(decision.dtype), np.arange(len(kernels))
    explicit = {"features": everyone, "gram": everyone[:0]}.get(decision.representation)
    if explicit is None:
        explicit = explicit_kernels(ranks_of(kernels, samples), decision.feature_rank)
    stored = np.setdiff1d(everyone, explicit)
    features: FeatureMatrix | None = None
    if explicit.size:
        store = _single_features if decision.feature_dtype == "float32" else _explicit_features
        features = store(kernels, explicit, samples, normaliser)
    if features is not None and not stored.size:
        return features
    matrices: Storage
    if decision.storage == "lazy":
        learn_blockwise(kernels, stored, samples, n, normaliser)
        chosen = [kernels[j] for j in stored]
        matrices = Computed(chosen, samples, n, normaliser.restrict(stored), dtype, threads)
    else:
        chains = chains_of(kernels, stored, decision.storage == "family")
        matrices = _powers(kernels, chains, samples, n, normaliser, dtype, threads)
    if features is None:
        return matrices
    return SideBySide([Features(features), matrices], [explicit, stored])


def check_kernels(kernels: list[Kernel], samples: Any) -> None:
    """Raise where a user's own function is not a kernel on the training samples: no certificate would be valid."""
    for kernel in kernels:
        if not kernel.sure:
            check_semidefinite(kernel(samples), f"kernel {kernel.name!r}")


def _explicit_features(
    kernels: list[Kernel], index: Index, samples: Any, normaliser: Normaliser
) -> FeatureMatrix:
    """Learn and store explicit features; normalising them normalises the kernel."""
    features, starts = stack_features([kernels[j] for j in index], samples)
    if normaliser.keeps_powers():
        lengths = np.append(column_squares(features), 0.0)
        means = np.add.reduceat(lengths, starts[:-1]) * (np.diff(starts) > 0) / features.shape[0]
        normaliser.learn_traces(index, means)
        return FeatureMatrix(features, starts, normaliser.scale[index])
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
            # from the centred features: the raw ones may be of any size beside them
            own = np.sum(z**2, axis=1)
            normaliser.learn(int(j), squares, (z + means) @ means, own)
        else:
            normaliser.learn(int(j), squares)
        if normaliser.diagonal is not None:
            lengths = np.sqrt(normaliser.diagonal[j])
            z = z.multiply(1.0 / lengths[:, None]) if sp.issparse(z) else z / lengths[:, None]
        blocks.append(z)
    features = sp.hstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.hstack(blocks)
    return FeatureMatrix(features, starts, normaliser.scale[index])


def _single_features(
    kernels: list[Kernel], index: Index, samples: Any, normaliser: Normaliser
) -> FeatureMatrix:
    """Store explicit features in single precision, block of rows by block of rows; traces are learnt in double."""
    precise = FeatureStream([kernels[j] for j in index], samples)
    parts: list[Any] = []
    features = None
    sums = np.zeros(int(precise.starts[-1]) + 1)
    for rows, Z in precise.blocks():
        sums[:-1] += column_squares(Z)
        if sp.issparse(Z):
            parts.append(Z.astype(np.float32))
            continue
        features = np.empty((precise.n, Z.shape[1]), dtype=np.float32) if features is None else features
        features[rows] = Z
    means = np.add.reduceat(sums, precise.starts[:-1]) * (precise.ranks > 0) / precise.n
    normaliser.learn_traces(index, means)
    precise.scale = normaliser.scale[index].copy()
    stored = sp.vstack(parts, format="csr") if features is None else features
    return FeatureMatrix(stored, precise.starts, normaliser.scale[index], precise)


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
