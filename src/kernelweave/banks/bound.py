"""Kernels with their training samples and normalisation, and the learnt function: what predicts new samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._typing import Array, Index
from ..kernels import Kernel
from .normalise import Normaliser

if TYPE_CHECKING:
    import pandas as pd
from collections.abc import Callable
from typing import ClassVar

from .._numerics.resources import in_threads, one_blas_thread
from ..kernels import n_samples, stack_features, take
from ._base import support
from .lazy import BLOCK_ENTRIES, FEW_VALUES, Exponentials, base_groups, row_slices

# ------------------------------------------------------------------------------------------------------------
# A learnt function, ready for new samples: kernels with weight, on the samples that have a coefficient.


class MissingViewSummary(NamedTuple):
    """Facts about training samples that lack kernels; none of kernels that no sample can lack.

    ``predictability`` is the R2 of every part of the kernels from the others, ``patterns`` a table of who lacks what.
    """

    predictability: dict[str, float] | None = None
    patterns: pd.DataFrame | None = None


class PredictingKernels(Protocol):
    """Kernels bound to training samples, wherever those are: in memory, in a file, on a cluster, with the user."""

    @property
    def normaliser(self) -> Normaliser:
        """Factors and centres, learnt on the training samples."""

    @property
    def kernels(self) -> list[Kernel]:
        """Settled; none where the user computes them."""

    @property
    def samples(self) -> Any:
        """Those that are kept; None where kernels are computed without."""

    def restrict(self, kernels: Index, coef: Array) -> tuple[PredictingKernels, Array]:
        """Keep these kernels and what they need; return the coefficients that go with it."""

    def alone(self, j: int) -> PredictingKernels:
        """Return the kernel at position j by itself."""

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """``sum_j weights_j K_j(new, samples) coef``."""

    def missing_view_summary(self) -> MissingViewSummary:
        """Return what is known of training samples that lack some of the kernels."""


def active_kernels(weights: Array) -> Index:
    """Kernels with weight, of ``(m,)`` or ``(k, m)`` weights."""
    return np.flatnonzero(weights if weights.ndim == 1 else np.any(weights != 0, axis=0))


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

    def each(self) -> Iterator[Term]:
        """Yield the kernels one by one."""
        for position, j in enumerate(self.index):
            yield Term(self.kernels.alone(position), np.array([j]), self.weights[..., [position]], self.coef)


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
        return cls([Term.of(bound, active_kernels(weights), weights, coef)], intercept, weights.shape[-1])

    @property
    def active(self) -> Index:
        """Kernels with weight."""
        return np.concatenate([term.index for term in self.terms])

    def __call__(self, new: Any, dtype: Any = np.float64, device: Any = None) -> Array:
        """Values at new samples, ``(n_new,)`` or ``(n_new, k)``; on a device where one is named and can do it."""
        total: Any = self.intercept
        for term in self.terms:
            kernels: Any = term.kernels
            if device is not None:
                from .torch_bank import at_device

                kernels = at_device(kernels, device)
            total = kernels.decision(new, term.weights, term.coef, dtype) + total
        return np.asarray(total)

    def each(self) -> Iterator[Term]:
        """Yield the kernels with weight one by one."""
        for term in self.terms:
            yield from term.each()

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


#: factor of a kernel, after centring, beyond which its exponentials are computed in double precision
MOST_ENLARGED = 1e3

Adding = Callable[[Any, Array], None]

#: blocks of rows that a thread takes at a time: preparing them costs a little per block
BLOCKS_AT_ONCE = 8


class _Accumulator:
    """Sums ``w_j K_j coef`` over kernels for one block of rows; one mixed matrix where the weights are shared."""

    def __init__(self, weights: Array, coef: Array, out: Array) -> None:
        self.weights, self.coef, self.out = weights, coef, out
        self.mixed: Array | None = None

    def add(self, j: int, entries: Array) -> None:
        if self.weights.ndim == 1:
            entries = entries * self.weights[j]
            if self.mixed is None or self.mixed.dtype != entries.dtype:
                self.mixed = entries if self.mixed is None else self.mixed + entries
            else:
                np.add(self.mixed, entries, out=self.mixed)
        else:
            self.out += entries @ (self.coef * self.weights[:, j])

    def finish(self) -> None:
        if self.mixed is not None:
            self.out += self.mixed @ self.coef


@dataclass
class BoundKernels:
    """Kernels on training samples.

    Parameters
    ----------
    kernels : list of Kernel
        Resolved on the training samples.
    samples : samples
        Training samples; after ``restrict`` the support alone (all of them where kernels are centred).
    normaliser : Normaliser
        Learnt on the training samples.
    """

    kernels: list[Kernel]
    samples: Any
    normaliser: Normaliser

    def restrict(self, kernels: Index, coef: Array) -> tuple[BoundKernels, Array]:
        """Keep these kernels and the support of the coefficients; return the coefficients that go with it."""
        kept, normaliser = [self.kernels[j] for j in kernels], self.normaliser.restrict(kernels)
        if normaliser.center:  # the row means of new rows run over all training samples
            return BoundKernels(kept, self.samples, normaliser), coef
        used = support(coef)
        if normaliser.diagonal is not None:
            normaliser.diagonal = normaliser.diagonal[:, used]
        return BoundKernels(kept, take(self.samples, used), normaliser), coef[used]

    def alone(self, j: int) -> BoundKernels:
        """Return one of the kernels by itself, on the same samples."""
        return BoundKernels([self.kernels[j]], self.samples, self.normaliser.restrict(np.array([j])))

    def cross(self, new: Any) -> Array:
        """Normalised kernels between new rows and the samples, ``(m, n_new, n)``."""
        out = np.empty((len(self.kernels), n_samples(new), n_samples(self.samples)))
        self.visit(new, lambda j, entries: out.__setitem__(j, entries))
        return out

    def diagonal(self, new: Any) -> Array:
        """Normalised ``k_j(x, x)`` of new rows, ``(m, n_new)``."""
        out = np.empty((len(self.kernels), n_samples(new)))
        for j, kernel in enumerate(self.kernels):
            entries = kernel.of_base(kernel.base(new, self.samples)) if self.normaliser.center else None
            out[j] = self.normaliser.new_diagonal(j, kernel.diag(new), entries)
        return out

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """``sum_j weights_j K_j(new, samples) coef`` in blocks of rows; ``(n_new,)`` or ``(n_new, k)``.

        Blocks are shared among the threads that are allowed (``_numerics.threads``), and do not depend on them.  With
        ``dtype=float32`` kernels that are exponentials are computed in single precision, from distances in double
        precision.  Powers of inner products stay in double precision: there is no time to gain, and single precision
        overflows at 1e38.
        """
        rows = n_samples(new)
        out = np.zeros((rows, *coef.shape[1:]))
        if not np.any(
            coef
        ):  # no support: the function is its intercept, and there is nothing to compare with
            return out
        explicit = self._explicit()
        matrices = np.setdiff1d(np.arange(len(self.kernels)), explicit)
        if explicit.size:
            self._add_explicit(new, explicit, weights, coef, out)
        if matrices.size == 0:
            return out
        dtype = np.dtype(self._prediction_dtype(dtype, weights, coef))
        worth_compiling = float(rows) * n_samples(self.samples) * matrices.size > FEW_VALUES
        terms = list(self._terms(matrices, weights, coef, dtype, worth_compiling))
        parts = row_slices(rows, n_samples(self.samples), BLOCKS_AT_ONCE * BLOCK_ENTRIES)

        def run(part: slice) -> None:
            block = new if len(parts) == 1 else take(new, np.arange(part.start, part.stop))
            for add in terms:
                add(block, out[part])

        if len(parts) == 1:
            run(parts[0])
        else:
            with one_blas_thread():
                in_threads(run, parts)
        return out

    def _terms(
        self, which: Index, weights: Array, coef: Array, dtype: np.dtype, compiled: bool
    ) -> Iterator[Adding]:
        """Yield functions that add parts of the values at a block of new rows."""
        powers = compiled and self.normaliser.keeps_powers()
        decaying = powers & np.array([self.kernels[j].decay for j in which])
        if (
            weights.ndim == 2
        ):  # every column has kernels and a support of its own: distances are cheap, functions not
            decaying &= np.array([self.kernels[j].quick for j in which])
        factors = weights * self.normaliser.scale
        quick, rest = which[decaying], which[~decaying]
        if quick.size and weights.ndim == 1:
            kernels = [self.kernels[j] for j in quick]
            yield Exponentials(kernels, self.samples, factors[quick], coef, dtype).add
        elif quick.size:
            for column, own in enumerate(factors):
                yield from self._column(column, quick[own[quick] != 0], own, coef[:, column], dtype)
        if rest.size:
            yield self._others(rest, weights, coef, dtype)

    def _column(
        self, column: int, which: Index, factors: Array, coef: Array, dtype: np.dtype
    ) -> Iterator[Adding]:
        """Yield the mixture of one column of the coefficients, on its own support."""
        used = support(coef)
        if not (used.size and which.size):
            return
        kernels, samples = [self.kernels[j] for j in which], take(self.samples, used)
        mixture = Exponentials(kernels, samples, factors[which], coef[used], dtype)
        yield lambda new, out: mixture.add(new, out[:, column])

    def _others(self, which: Index, weights: Array, coef: Array, dtype: np.dtype) -> Adding:
        """Return what adds kernels that are no exponentials, or are centred or divided by their diagonals."""
        rest = BoundKernels([self.kernels[j] for j in which], self.samples, self.normaliser.restrict(which))
        weights, coef = weights[..., which].astype(dtype), coef.astype(dtype)

        def add(new: Any, out: Array) -> None:
            parts = row_slices(n_samples(new), coef.shape[0])
            for part in parts:
                sums = _Accumulator(weights, coef, out[part])
                block = new if len(parts) == 1 else take(new, np.arange(part.start, part.stop))
                rest.visit(block, sums.add, dtype)
                sums.finish()

        return add

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

    def _explicit(self) -> Index:
        """Kernels that are cheaper through their features than through the support: ``Z (Z' coef)``."""
        if self.normaliser.diagonal is not None:
            return np.zeros(0, dtype=np.intp)
        shape: tuple[int, ...] = getattr(self.samples, "shape", ())
        if len(shape) != 2:
            return np.zeros(0, dtype=np.intp)
        ranks = [kernel.rank(int(shape[1])) for kernel in self.kernels]
        return np.array(
            [j for j, rank in enumerate(ranks) if rank is not None and rank < shape[0]], dtype=np.intp
        )

    def _add_explicit(self, new: Any, explicit: Index, weights: Array, coef: Array, out: Array) -> None:
        kernels = [self.kernels[j] for j in explicit]
        training, starts = stack_features(kernels, self.samples)
        others, _ = stack_features(kernels, new)
        if self.normaliser.center:
            means = np.asarray(training.mean(axis=0)).ravel()
            training, others = np.asarray(training - means), np.asarray(others - means)
        direction = np.asarray(training.T @ coef, dtype=float)  # Z' coef, (R,) or (R, k)
        mixing = np.repeat((weights * self.normaliser.scale)[..., explicit], np.diff(starts), axis=-1)
        # one set of weights serves all columns of the coefficients, or each column has its own
        direction = (direction.T * mixing).T if weights.ndim == 1 else direction * mixing.T
        out += np.asarray(others @ direction, dtype=float)

    def exact_columns(self) -> dict[int, tuple[Array, float]]:
        """Columns of the samples and a factor, by place, of the kernels that are ``factor X X'`` of few columns."""
        samples = self.samples
        if (
            self.normaliser.center
            or self.normaliser.diagonal is not None
            or not isinstance(samples, np.ndarray)
        ):
            return {}
        if samples.ndim != 2 or samples.dtype.kind not in "fiu":
            return {}
        out = {}
        for j, kernel in enumerate(self.kernels):
            columns = kernel.feature_columns(samples.shape[1])
            if columns is not None and columns.size < len(samples):
                out[j] = np.asarray(samples[:, columns], dtype=float), float(self.normaliser.scale[j])
        return out

    def visit(self, new: Any, use: Callable[[int, Array], None], dtype: Any = np.float64) -> None:
        """Hand every normalised kernel matrix on ``new`` to ``use``; a base is computed once per family."""
        cosine = self.normaliser.diagonal is not None
        for group in base_groups(self.kernels, range(len(self.kernels))):
            base = self.kernels[group[0]].base(new, self.samples)
            if self.kernels[group[0]].decay:
                base = base.astype(dtype, copy=False)
            for j in group:
                entries = self.kernels[j].of_base(base)
                diagonal = self.kernels[j].diag(new) if cosine else None
                use(j, self.normaliser.cross_block(j, entries, diagonal, slice(None)))

    def missing_view_summary(self) -> MissingViewSummary:
        """Nobody lacks anything."""
        return MissingViewSummary()


@dataclass
class PrecomputedKernels:
    """Kernels that the user computes: matrices in, matrices for new rows in again.

    Parameters
    ----------
    n, m : int
        Numbers of training samples and of the matrices that are expected.
    normaliser : Normaliser
        Of the kernels that are kept.
    index : array, optional
        Matrices that are kept; None is all of them.
    """

    n: int
    m: int
    normaliser: Normaliser
    index: Index | None = None

    kernels: ClassVar[list[Kernel]] = []
    samples: ClassVar[None] = None

    def restrict(self, kernels: Index, coef: Array) -> tuple[PrecomputedKernels, Array]:
        """As for ``BoundKernels``; the coefficients remain those of all training samples."""
        kept = np.arange(self.m)[kernels] if self.index is None else self.index[kernels]
        return PrecomputedKernels(self.n, self.m, self.normaliser.restrict(kernels), kept), coef

    def alone(self, j: int) -> PrecomputedKernels:
        """As for ``BoundKernels``."""
        return self.restrict(np.array([j]), np.zeros(0))[0]

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """As for ``BoundKernels``, from raw entries ``(m, n_new, n)``; always in double precision."""
        out = np.zeros((new[0].shape[0], *coef.shape[1:]))
        used = support(coef)
        sums = _Accumulator(weights, coef[used], out)
        for j, matrix in enumerate(range(self.m) if self.index is None else self.index):
            entries = np.asarray(new[matrix], dtype=float)
            sums.add(j, self.normaliser.cross_block(j, entries, None, used))
        sums.finish()
        return out

    def missing_view_summary(self) -> MissingViewSummary:
        """Nobody lacks anything."""
        return MissingViewSummary()
