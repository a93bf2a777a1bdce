"""From kernels and samples, or from matrices, to a bank: check, learn the normalisation, choose the storage, fill it.

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

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._numerics.euclid import distances_among
from .._numerics.matrices import check_semidefinite, check_symmetric
from .._numerics.resources import in_threads, one_blas_thread
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, stack_features, take
from ._base import Bank
from .lazy import LazyBank, base_groups
from .lowrank import LowRankBank, suits_blocks
from .memory import check_storage, parse_bytes, refuse
from .normalise import Normaliser
from .power import Chain, PowerBank, find_chains, mirror_lower, packed_offsets, triangle_cuts
from .streaming import StreamingBank, streaming_bank
from .views import CompositeBank

# ------------------------------------------------------------------------------------------------------------
# Kernels that come as matrices: checked, and used where they lie.


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
        matrix = _of_those_who_have_it(matrix, name)
        check_symmetric(matrix, name)
        if check_psd:
            check_semidefinite(matrix, name)


def _of_those_who_have_it(matrix: np.ndarray, name: str) -> np.ndarray:
    """Return the part of samples that have a kernel; the others have NaN in their rows and columns."""
    gone = np.isnan(np.diagonal(matrix))
    if not gone.any():
        return matrix
    if not (np.isnan(matrix[gone]).all() and np.isnan(matrix[:, gone]).all()):
        raise ValueError(f"{name}: samples that lack it must have NaN in their whole row and column")
    here = np.flatnonzero(~gone)
    return matrix[np.ix_(here, here)]


def precomputed_bank(
    matrices: Any,
    *,
    normalize: str | None = "trace",
    center: bool = False,
    memory_budget: int | float | str | None = None,
    threads: int = 1,
) -> tuple[PowerBank, Normaliser]:
    """Bank on matrices in memory: used in place where they only need a factor, else packed copies."""
    from .._numerics.passes import pack_rows

    m, n = len(matrices), matrices[0].shape[0]
    normaliser = Normaliser.empty(normalize, center, m, n, [f"precomputed kernel {j}" for j in range(m)])
    if normaliser.mode == "cosine":
        raise ValueError(
            "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold: "
            "normalise the matrices yourself, or use kernelweave.kernels.held(stack)"
        )
    chains = [Chain((j,), (0,), (0,)) for j in range(m)]
    in_place = isinstance(matrices, np.ndarray) and matrices.dtype in (np.float64, np.float32)
    in_place = in_place and matrices.flags.c_contiguous and not center
    budget = parse_bytes(memory_budget)
    extra = 16 * n * n + (0 if in_place else m * (n * (n + 1) // 2) * 8)
    if extra > budget:
        raise refuse(
            f"fitting on {m} precomputed kernels of {n} samples", extra, budget,
            ["raise memory_budget", "pass one C-contiguous (m, n, n) array, which is used in place", "fewer samples"],
        )  # fmt: skip
    if in_place:
        for j in range(m):
            normaliser.learn(j, np.diagonal(matrices[j]).astype(float))
        _refuse_zero(normaliser)
        store = matrices.reshape(m, n * n)
        return PowerBank(
            store, np.arange(n, dtype=np.intp) * n, chains, normaliser.scale, threads=threads
        ), normaliser
    offsets = packed_offsets(n)
    store = np.empty((m, n * (n + 1) // 2))
    everyone = np.arange(n)
    for j in range(m):
        entries = np.array(matrices[j], dtype=float)
        means: Array | None = entries.mean(axis=1) if center else None
        normaliser.learn(j, np.diagonal(entries).copy(), means)
        pack_rows(normaliser.train_block(j, entries, everyone, everyone), 0, offsets, store[j])
    _refuse_zero(normaliser)
    return PowerBank(store, offsets, chains, threads=threads), normaliser


def _refuse_zero(normaliser: Normaliser) -> None:
    """Refuse a matrix of zeros: computed beforehand, it is a mistake."""
    zero = np.flatnonzero(normaliser.scale == 0.0)
    if zero.size:
        what = "is constant, so nothing is left after centring it" if normaliser.center else "has trace zero"
        raise ValueError(f"{normaliser.names[zero[0]]!r} {what}: drop it, or use normalize=None")


# ------------------------------------------------------------------------------------------------------------
# Filling a bank of stored triangles: one per chain of powers, in parts that threads share.
#
# Gaussians on few columns, of which most banks have many, are compiled (``_numerics.decays.fill_decays``):
# all of them in one call per part, so that no thread waits for the interpreter.  Other bases are asked of
# their kernels, block by block.


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


def _base_of(
    kernel: Kernel, samples: Any, n: int, diagonal: Array, points: Array | None = None
) -> Callable[[int, int], Array]:
    """Return the function of ``top, bottom`` that gives base entries left of the diagonal, which is exact.

    Of many blocks of distances between ``points``, what all of them need is computed once.
    """
    among = distances_among(points) if points is not None and n * n > CACHED_ENTRIES else None

    def base(top: int, bottom: int) -> Array:
        if among is not None:
            entries = among(top, bottom)
        elif bottom - top == n:
            entries = kernel.base(samples, samples)
        else:
            entries = kernel.base(take(samples, np.arange(top, bottom)), take(samples, np.arange(bottom)))
        at = np.arange(bottom - top)
        entries[at, at + top] = diagonal[top:bottom]
        return entries

    return base


class _Families(NamedTuple):
    """Gaussians on few columns that are filled by compiled code: their columns, and which views hold which widths."""

    points: list[Array]
    views: list[list[int]]
    rates: list[list[float]]

    def fill(self, store: Array, offsets: Index, threads: int) -> None:
        """Fill their triangles; parts are of rows and families, and do not depend on the number of threads."""
        from .._numerics.exponentials import PIECE, fill_decays

        if not self.points:
            return
        table = np.ascontiguousarray(np.concatenate([points.T for points in self.points]))
        columns = np.cumsum([0, *(points.shape[1] for points in self.points)])
        links = np.cumsum([0, *map(len, self.views)])
        rates, views = np.concatenate(self.rates), np.concatenate(self.views)
        everyone = np.arange(len(self.points))
        cuts = triangle_cuts(offsets.size, MOST_PARTS // len(everyone))
        groups = np.array_split(everyone, min(everyone.size, 4 * threads if threads > 1 else 1))

        def run(part: tuple[Index, int]) -> None:
            families, at = part
            rows = np.array(cuts[at : at + 2])
            fill_decays(table, columns, links, rates, views, families, rows, offsets, np.empty(PIECE), store)

        in_threads(run, [(group, at) for at in range(len(cuts) - 2, -1, -1) for group in groups], threads)


class _Block(NamedTuple):
    """Rows ``top .. bottom - 1`` of a base, which some views are powers of."""

    kernel: Kernel
    views: list[int]
    #: gives the entries of rows ``top .. bottom - 1`` and columns ``0 .. bottom - 1``
    base: Callable[[int, int], Array]
    top: int
    bottom: int


def stored_bank(
    kernels: list[Kernel],
    chains: list[Chain],
    samples: Any,
    n: int,
    normaliser: Normaliser,
    dtype: np.dtype,
    threads: int,
) -> PowerBank:
    """Learn the normalisation and store a triangle for every chain."""
    from .._numerics.passes import pack_rows

    single = dtype == np.float32 and _fits_single(kernels, chains, samples)
    heads = [kernels[chain.kernels[0]] for chain in chains]
    powers = normaliser.keeps_powers()
    store, offsets, square = _room_for(chains, n, single)
    # a single-precision power squared many times loses digits: keep the distances instead
    rate = np.array([head.exponent if single and powers and head.decay else 0.0 for head in heads])
    families, blocks = _Families([], [], []), []
    ones: list[int] = []
    for first, views in _views_of_bases(kernels, chains):
        points = first.points(samples) if powers and first.decay else None
        if points is not None and not single and 0 < points.shape[1] <= FEW_COLUMNS:
            families.points.append(points)
            families.views.append(views)
            families.rates.append([heads[v].exponent for v in views])
            ones += [j for v in views for j in chains[v].kernels]
            continue
        diagonal = first.base_diag(samples)
        if not powers:
            base = _base_of(first, samples, n, diagonal)(0, n)
            for v in views:
                j = chains[v].kernels[0]
                pack_rows(_normalised(heads[v].of_base(base), j, normaliser), 0, offsets, store[v])
            continue
        held = [j for v in views for j in chains[v].kernels]
        plain = first.decay and not np.any(diagonal)  # a diagonal of ones: nothing to compute
        ones += held if plain else []
        for j in () if plain else held:
            normaliser.learn(j, kernels[j].of_base(diagonal))
        base_of = _base_of(first, samples, n, diagonal, points)
        blocks += [_Block(first, views, base_of, *rows) for rows in _row_blocks(n, first, points is not None)]
    if ones:
        normaliser.learn_traces(np.array(ones), np.ones(len(ones)))

    def fill(block: _Block) -> None:
        base = block.base(block.top, block.bottom)
        for v in block.views:
            last = base if v == block.views[-1] else None  # the last may overwrite what all of them come from
            entries = base if rate[v] > 0 else heads[v].of_base(base, out=last)
            pack_rows(entries, block.top, offsets, store[v])

    families.fill(store, offsets, threads)
    _fill_all(fill, blocks, threads)
    if square:
        mirror_lower(store.reshape(n, n), threads)
    local, order = _in_own_order(chains)
    # where matrices are stored normalised, the scale is in them already
    scale = normaliser.scale[order] if powers else None
    return PowerBank(store, offsets, local, scale, rate, threads, square)


def _room_for(chains: list[Chain], n: int, single: bool) -> tuple[np.ndarray, Index, bool]:
    """Triangles to be filled, where their rows start, and whether there is but one, and room for its other half.

    The only kernel there is needs no mixing, but a whole matrix instead of a triangle and a mixed kernel.
    """
    if len(chains) == 1 and len(chains[0].kernels) == 1 and not single:
        return np.empty((1, n * n)), n * np.arange(n), True
    dtype = np.float32 if single else np.float64
    return np.empty((len(chains), n * (n + 1) // 2), dtype=dtype), packed_offsets(n), False


def _views_of_bases(kernels: list[Kernel], chains: list[Chain]) -> list[tuple[Kernel, list[int]]]:
    """A kernel of every base that chains are powers of, and which chains those are."""
    heads = [chain.kernels[0] for chain in chains]
    view_of = {head: v for v, head in enumerate(heads)}
    groups = base_groups(kernels, np.array(heads))
    return [(kernels[group[0]], [view_of[j] for j in group]) for group in groups]


def _normalised(entries: Array, j: int, normaliser: Normaliser) -> Array:
    """Learn the normalisation of kernel j from its matrix, and apply it in place."""
    everyone = np.arange(len(entries))
    normaliser.learn(j, np.diagonal(entries).copy(), np.mean(entries, axis=1))
    return normaliser.train_block(j, entries, everyone, everyone)


def _in_own_order(chains: list[Chain]) -> tuple[list[Chain], list[int]]:
    """Chains with positions among the kernels that they hold, which keep their order; and those kernels."""
    order = sorted(j for chain in chains for j in chain.kernels)
    place = {j: k for k, j in enumerate(order)}
    return [Chain(tuple(place[j] for j in c.kernels), c.squarings, c.times_base) for c in chains], order


def _fill_all(fill: Callable[[_Block], None], blocks: list[_Block], threads: int) -> None:
    """Fill the blocks of kernels of the library in threads; functions of users are called by this one alone."""
    if len(blocks) < MANY_BLOCKS:
        for block in blocks:
            fill(block)
        return
    with one_blas_thread():
        in_threads(fill, [block for block in blocks if block.kernel.sure], threads)
    for block in blocks:
        if not block.kernel.sure:
            fill(block)


def _fits_single(kernels: list[Kernel], chains: list[Chain], samples: Any) -> bool:
    """Whether entries, and the squares of them that sweeps form, are far from the ends of single precision."""
    powers = [kernels[j] for chain in chains for j in chain.kernels if not kernels[j].decay]
    with np.errstate(over="ignore"):
        tops = [float(np.max(np.abs(kernel.diag(samples)), initial=0.0)) for kernel in powers]
    return all(top == 0.0 or 1e-15 < top < 1e15 for top in tops)


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
