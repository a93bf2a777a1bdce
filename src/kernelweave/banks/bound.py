"""The learnt function, and where the kernel values of new samples come from: what predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._numerics.resources import in_threads, one_blas_thread
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, stack_features, take
from ._base import support
from .lazy import BLOCK_ENTRIES, FEW_VALUES, Exponentials, row_slices
from .lowrank import Features
from .normalise import NOTHING, Normaliser
from .power import base_groups
from .streaming import BLOCK_BYTES, as_rows

if TYPE_CHECKING:
    import pandas as pd

#: factor of a kernel, after centring, beyond which its exponentials are computed in double precision
MOST_ENLARGED = 1e3

#: blocks of rows that a thread takes at a time: preparing them costs a little per block
BLOCKS_AT_ONCE = 8


class MissingViewSummary(NamedTuple):
    """Facts about training samples that lack kernels; none of kernels that no sample can lack.

    ``predictability`` is the R2 of every part of the kernels from the others, ``patterns`` a table of what is lacking.
    """

    predictability: dict[str, float] | None = None
    patterns: pd.DataFrame | None = None


class PredictingKernels(ABC):
    """Kernels bound to training samples, wherever those are: the source that a ``KernelFunction`` predicts from.

    Attributes
    ----------
    normaliser : Normaliser
        Factors and centres, learnt on the training samples.
    kernels : list of Kernel
        Settled; none where the user computes them.
    samples : samples
        Those that are kept; None where kernels are computed without.
    """

    normaliser: Normaliser
    kernels: list[Kernel]
    samples: Any

    @abstractmethod
    def restrict(self, kernels: Index, coef: Array) -> tuple[PredictingKernels, Array]:
        """Keep these kernels and what they need; return the coefficients that go with it."""

    @abstractmethod
    def alone(self, j: int) -> PredictingKernels:
        """Return the kernel at position j by itself."""

    @abstractmethod
    def decision(
        self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64, device: Any = None
    ) -> Array:
        """``sum_j weights_j K_j(new, samples) coef``, on a device of torch where one is named and can do it."""

    def missing_view_summary(self) -> MissingViewSummary:
        """Return what is known of training samples that lack some of the kernels; by default none can."""
        return MissingViewSummary()


@dataclass(frozen=True)
class Term:
    """Kernels that share their coefficients: ``sum_j weights_j K_j coef``.

    ``index`` says which kernels of the model they are.
    """

    kernels: PredictingKernels
    index: Index
    weights: Array
    coef: Array

    @classmethod
    def of(cls, bound: PredictingKernels, index: Index, weights: Array, coef: Array) -> Term:
        """Keep what some kernels need of the training samples; ``weights`` are those of all kernels."""
        kept, coef_kept = bound.restrict(index, coef)
        return cls(kept, index, weights[..., index], coef_kept)


@dataclass(frozen=True)
class KernelFunction:
    """``f = sum of terms + intercept`` of m kernels.

    A mixture of kernels is one term; where every kernel has coefficients of its own, each is a term.
    """

    terms: list[Term]
    intercept: float | Array
    m: int

    @classmethod
    def mixture(
        cls, bound: PredictingKernels, weights: Array, coef: Array, intercept: float | Array
    ) -> KernelFunction:
        """Return the function of a learnt mixture."""
        return cls([Term.of(bound, support(weights.T), weights, coef)], intercept, weights.shape[-1])

    @property
    def active(self) -> Index:
        """Kernels with weight."""
        return np.concatenate([term.index for term in self.terms])

    def __call__(self, new: Any, dtype: Any = np.float64, device: Any = None) -> Array:
        """Values at new samples, ``(n_new,)`` or ``(n_new, k)``; on a device where one is named and can do it."""
        total: Any = self.intercept
        for term in self.terms:
            total = term.kernels.decision(new, term.weights, term.coef, dtype, device) + total
        return np.asarray(total)

    def each(self) -> Iterator[Term]:
        """Yield the kernels with weight one by one."""
        for term in self.terms:
            for position, j in enumerate(term.index):
                alone = term.kernels.alone(position)
                yield Term(alone, np.array([j]), term.weights[..., [position]], term.coef)

    def by_kernel(self, new: Any) -> NDArray[np.float64]:
        """Return the part that each kernel adds to the values at new samples, ``(n_new, m)`` or ``(n_new, m, k)``."""
        parts = {
            int(term.index[0]): term.kernels.decision(new, term.weights, term.coef) for term in self.each()
        }
        shape = np.shape(next(iter(parts.values()))) if parts else np.shape(self(new))
        out = np.zeros((shape[0], self.m, *shape[1:]))
        for j, values in parts.items():
            out[:, j] = values
        return out


def _add_products(matrices: Iterable[tuple[int, Array]], weights: Array, coef: Array, out: Array) -> None:
    """Add ``w_j K_j coef`` of kernel matrices to ``out``; one mixed matrix where the weights are shared."""
    mixed: Array | None = None
    for j, entries in matrices:
        if weights.ndim == 2:
            out += entries @ (coef * weights[:, j])
            continue
        entries = entries * weights[j]
        if mixed is None or mixed.dtype != entries.dtype:
            mixed = entries if mixed is None else mixed + entries
        else:
            np.add(mixed, entries, out=mixed)
    if mixed is not None:
        out += mixed @ coef


@dataclass
class BoundKernels(PredictingKernels):
    """Kernels on training samples; after ``restrict`` on the support alone, or on all where they are centred.

    Of kernels that are known through explicit features of a ``bank``, ``restrict`` keeps the direction of the function
    in feature space, ``Z' coef``, and no sample; kernel j begins at ``starts[j]`` of it.
    """

    kernels: list[Kernel]
    samples: Any
    normaliser: Normaliser
    bank: Features | None = None
    direction: Array | None = None
    starts: Index | None = None

    def restrict(self, kernels: Index, coef: Array) -> tuple[BoundKernels, Array]:
        """Keep these kernels and the support of the coefficients; return the coefficients that go with it."""
        kept, normaliser = [self.kernels[j] for j in kernels], self.normaliser.restrict(kernels)
        if self.bank is not None:  # one pass
            blocks = [np.arange(*self.bank.starts[[j, j + 1]]) for j in kernels]
            columns = np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.intp)
            starts = np.cumsum([0, *map(len, blocks)])
            return BoundKernels(kept, None, normaliser, None, self.bank.image(coef)[columns], starts), coef
        if normaliser.center:  # the row means of new rows run over all training samples
            return BoundKernels(kept, self.samples, normaliser), coef
        used = support(coef)
        if normaliser.diagonal is not None:
            normaliser.diagonal = normaliser.diagonal[:, used]
        return BoundKernels(kept, take(self.samples, used), normaliser), coef[used]

    def alone(self, j: int) -> BoundKernels:
        """Return one of the kernels by itself, on the same samples, or with its part of the direction."""
        one = BoundKernels([self.kernels[j]], self.samples, self.normaliser.restrict(np.array([j])))
        if self.direction is not None and self.starts is not None:
            one.direction = self.direction[self.starts[j] : self.starts[j + 1]]
            one.starts = np.array([0, len(one.direction)])
        return one

    def cross(self, new: Any) -> Array:
        """Normalised kernels between new rows and the samples, ``(m, n_new, n)``."""
        out = np.empty((len(self.kernels), n_samples(new), n_samples(self.samples)))
        for j, entries in self.visit(new):
            out[j] = entries
        return out

    def diagonal(self, new: Any) -> Array:
        """Normalised ``k_j(x, x)`` of new rows, ``(m, n_new)``."""
        known, out = self.normaliser, np.empty((len(self.kernels), n_samples(new)))
        for j, kernel in enumerate(self.kernels):
            raw = kernel.diag(new)
            if known.center:
                assert known.grand_means is not None
                entries = kernel.of_base(kernel.base(new, self.samples))
                raw = raw - 2.0 * np.mean(entries, axis=1) + known.grand_means[j]
            out[j] = raw * known.scale[j] if known.diagonal is None else np.where(raw > NOTHING, 1.0, 0.0)
        return out

    def decision(
        self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64, device: Any = None
    ) -> Array:
        """``sum_j weights_j K_j(new, samples) coef`` in blocks of rows; ``(n_new,)`` or ``(n_new, k)``.

        Blocks are shared among the threads that are allowed, and do not depend on them.  With ``dtype=float32`` kernels
        that are exponentials are computed in single precision, from distances in double precision; powers of inner
        products are not, as there is no time to gain and single precision overflows at 1e38.
        """
        if self.direction is not None:
            return self._along(self.direction, new, weights)
        known, samples = self.normaliser, self.samples
        rows_of_numbers = isinstance(samples, np.ndarray) and samples.ndim == 2
        if device is not None and rows_of_numbers and known.keeps_powers():
            from .torch_bank import device_decision

            return device_decision(self, device, new, weights, coef)
        out = np.zeros((n_samples(new), *coef.shape[1:]))
        # no support: the function is its intercept, and there is nothing to compare with
        if not np.any(coef):
            return out
        # kernels that are cheaper through their features than through the support: Z (Z' coef)
        shape: tuple[int, ...] = getattr(self.samples, "shape", ())
        by_features = known.diagonal is None and len(shape) == 2
        ranks = [kernel.rank(int(shape[1])) for kernel in self.kernels] if by_features else []
        explicit = [j for j, rank in enumerate(ranks) if rank is not None and rank < shape[0]]
        if explicit:
            kernels = [self.kernels[j] for j in explicit]
            training, starts = stack_features(kernels, self.samples)
            others, _ = stack_features(kernels, new)
            if known.center:
                means = np.asarray(training.mean(axis=0)).ravel()
                training, others = np.asarray(training - means), np.asarray(others - means)
            direction = np.asarray(training.T @ coef, dtype=float)  # Z' coef, (R,) or (R, k)
            mixing = np.repeat((weights * known.scale)[..., explicit], np.diff(starts), axis=-1)
            # one set of weights serves all columns of the coefficients, or each column has its own
            direction = (direction.T * mixing).T if weights.ndim == 1 else direction * mixing.T
            out += np.asarray(others @ direction, dtype=float)
        matrices = np.setdiff1d(np.arange(len(self.kernels)), explicit)
        if matrices.size:
            self._add_matrices(new, matrices, weights, coef, np.dtype(dtype), out)
        return out

    def _along(self, direction: Array, new: Any, weights: Array) -> Array:
        """Values at new rows from their features, block by block."""
        source = as_rows(new)
        _, starts = stack_features(self.kernels, source[:1])
        mixing = np.repeat(weights * self.normaliser.scale, np.diff(starts), axis=-1)
        # one set of weights serves all columns of the coefficients, or each column has its own
        direction = (direction.T * mixing).T if weights.ndim == 1 else direction * mixing.T
        out = np.empty((len(source), *direction.shape[1:]))
        height = max(64, BLOCK_BYTES // (8 * max(1, int(starts[-1]))))
        for top in range(0, len(source), height):
            rows = slice(top, min(len(source), top + height))
            Z, _ = stack_features(self.kernels, source[rows])
            out[rows] = Z @ direction
        return out

    def _add_matrices(
        self, new: Any, which: Index, weights: Array, coef: Array, dtype: np.dtype, out: Array
    ) -> None:
        """Add the values of some kernels through their entries, blocks of new rows in threads."""
        dtype, known = np.dtype(self._prediction_dtype(dtype, weights, coef)), n_samples(self.samples)
        worth_compiling = float(len(out)) * known * which.size > FEW_VALUES
        quick = np.array([self.kernels[j].decay for j in which])
        quick &= worth_compiling and self.normaliser.keeps_powers()
        # every column has kernels and a support of its own: distances are cheap, functions not
        if weights.ndim == 2:
            quick &= np.array([self.kernels[j].quick for j in which])
        factors, compiled, others = weights * self.normaliser.scale, which[quick], which[~quick]
        mixtures: list[tuple[Exponentials, Any]] = []
        at: Any
        for column, own in enumerate(np.atleast_2d(factors) if compiled.size else ()):
            at, kept, samples, mine = ..., compiled, self.samples, coef
            if weights.ndim == 2:
                used = support(coef[:, column])
                at, kept, mine = (..., column), compiled[own[compiled] != 0], coef[used, column]
                samples = take(self.samples, used)
            if kept.size and mine.size:
                kernels = [self.kernels[j] for j in kept]
                mixtures.append((Exponentials(kernels, samples, own[kept], mine, dtype), at))
        rest = self
        if compiled.size or which.size < len(self.kernels):
            slow = [self.kernels[j] for j in others]
            rest = BoundKernels(slow, self.samples, self.normaliser.restrict(others))
        rest_weights, rest_coef = weights[..., others].astype(dtype), coef.astype(dtype)
        parts = row_slices(len(out), known, BLOCKS_AT_ONCE * BLOCK_ENTRIES)

        def run(part: slice) -> None:
            block = new if len(parts) == 1 else take(new, np.arange(part.start, part.stop))
            for mixture, at in mixtures:
                mixture.add(block, out[part][at])
            pieces = row_slices(n_samples(block), known) if others.size else []
            for piece in pieces:
                some = block if len(pieces) == 1 else take(block, np.arange(piece.start, piece.stop))
                _add_products(rest.visit(some, dtype), rest_weights, rest_coef, out[part][piece])

        if len(parts) == 1:
            run(parts[0])
        else:
            with one_blas_thread():
                in_threads(run, parts)

    def _prediction_dtype(self, dtype: Any, weights: Array, coef: Array) -> Any:
        """Single precision only for numbers that have one, their products too."""
        sizes = [np.abs(values[values != 0]) for values in (weights, coef, self.normaliser.scale)]
        with np.errstate(over="ignore", under="ignore"):
            smallest, largest = (float(np.prod([f(s, initial=1.0) for s in sizes])) for f in (np.min, np.max))
        # centring that leaves little of an exponential leaves fewer digits of single precision still
        learnt = self.normaliser
        if learnt.center and (
            np.max(learnt.scale, initial=0.0) > MOST_ENLARGED
            or (learnt.diagonal is not None and np.min(learnt.diagonal) * MOST_ENLARGED < 1.0)
        ):
            return np.float64
        return dtype if smallest > 1e-30 and largest < 1e30 else np.float64

    def exact_columns(self) -> dict[int, tuple[Array, float]]:
        """Columns of the samples and a factor, by place, of the kernels that are ``factor X X'`` of few columns."""
        samples = self.samples
        if self.normaliser.center or self.normaliser.diagonal is not None:
            return {}
        if not isinstance(samples, np.ndarray) or samples.ndim != 2 or samples.dtype.kind not in "fiu":
            return {}
        out = {}
        for j, kernel in enumerate(self.kernels):
            columns = kernel.feature_columns(samples.shape[1])
            if columns is not None and columns.size < len(samples):
                out[j] = np.asarray(samples[:, columns], dtype=float), float(self.normaliser.scale[j])
        return out

    def visit(self, new: Any, dtype: Any = np.float64) -> Iterator[tuple[int, Array]]:
        """Yield every normalised kernel matrix on ``new``, with its position; a base is computed once per family."""
        cosine = self.normaliser.diagonal is not None
        for group in base_groups(self.kernels, range(len(self.kernels))):
            base = self.kernels[group[0]].base(new, self.samples)
            if self.kernels[group[0]].decay:
                base = base.astype(dtype, copy=False)
            for j in group:
                entries = self.kernels[j].of_base(base)
                diagonal = self.kernels[j].diag(new) if cosine else None
                yield j, self.normaliser.cross_block(j, entries, diagonal, slice(None))


@dataclass
class PrecomputedKernels(PredictingKernels):
    """Kernels that the user computes: matrices in, matrices for new rows in again.

    ``n`` training samples and ``m`` matrices are expected, of which those at ``index`` are kept; None is all of them.
    """

    n: int
    m: int
    normaliser: Normaliser
    index: Index | None = None

    kernels: ClassVar[list[Kernel]] = []  # type: ignore[misc]
    samples: ClassVar[None] = None  # type: ignore[misc]

    def restrict(self, kernels: Index, coef: Array) -> tuple[PrecomputedKernels, Array]:
        """As for ``BoundKernels``; the coefficients remain those of all training samples."""
        kept = np.arange(self.m)[kernels] if self.index is None else self.index[kernels]
        return PrecomputedKernels(self.n, self.m, self.normaliser.restrict(kernels), kept), coef

    def alone(self, j: int) -> PrecomputedKernels:
        """As for ``BoundKernels``."""
        return self.restrict(np.array([j]), np.zeros(0))[0]

    def decision(
        self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64, device: Any = None
    ) -> Array:
        """As for ``BoundKernels``, from raw entries ``(m, n_new, n)``; always in double precision."""
        out = np.zeros((new[0].shape[0], *coef.shape[1:]))
        used = support(coef)
        index = range(self.m) if self.index is None else self.index
        raw = (np.asarray(new[matrix], dtype=float) for matrix in index)
        matrices = (self.normaliser.cross_block(j, entries, None, used) for j, entries in enumerate(raw))
        _add_products(enumerate(matrices), weights, coef[used], out)
        return out
