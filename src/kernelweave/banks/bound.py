"""The learnt function, and where the kernel values of new samples come from: what predicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._numerics.resources import in_threads, one_blas_thread
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, stack_features, take
from ..views import Pairs
from ._base import support
from .lazy import BLOCK_ENTRIES, FEW_VALUES, Exponentials, row_slices
from .normalise import NOTHING, Normaliser
from .power import base_groups
from .streaming import BLOCK_BYTES, as_rows

if TYPE_CHECKING:
    import pandas as pd

    from ._base import Bank

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


@dataclass(frozen=True)
class Term:
    """Kernels that share their coefficients: ``sum_j weights_j K_j coef``.

    ``index`` says which kernels of the model they are, ``part`` which of those that samples may lack.
    """

    kernels: BoundKernels
    index: Index
    weights: Array
    coef: Array
    part: int = 0


@dataclass(frozen=True)
class KernelFunction:
    """``f = sum of terms + intercept`` of m kernels.

    A mixture of kernels is one term; where every kernel has coefficients of its own, each is a term.  Of kernels that
    samples may lack every part is a term, and ``completion`` says what new samples get in its place.
    """

    terms: list[Term]
    intercept: float | Array
    m: int
    completion: Any = None

    @classmethod
    def mixture(
        cls, source: Bank | BoundKernels, weights: Array, coef: Array, intercept: float | Array
    ) -> KernelFunction:
        """Return the function of a learnt mixture."""
        terms = source.restrict(support(weights.T), weights, coef)
        return cls(terms, intercept, weights.shape[-1], source.completion)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read functions of 0.2.0 too, where completed kernels were one term."""
        terms = state["terms"]
        if len(terms) == 1 and "parts" in vars(terms[0].kernels):
            (old,), known = terms, terms[0].kernels
            among = np.arange(old.index.size)
            parts = known.restrict(among, old.weights, old.coef)
            terms = [replace(term, index=old.index[term.index]) for term in parts]
            state = {**state, "terms": terms, "completion": known}
        vars(self).update(state)

    @property
    def active(self) -> Index:
        """Kernels with weight."""
        return np.concatenate([term.index for term in self.terms])

    def __call__(self, new: Any, dtype: Any = np.float64, device: Any = None) -> Array:
        """Values at new samples, ``(n_new,)`` or ``(n_new, k)``; on a device where one is named and can do it."""
        if self.completion is not None:
            return np.asarray(self.completion.total(self.terms, new, dtype) + self.intercept)
        values = [term.kernels.decision(new, term.weights, term.coef, dtype, device) for term in self.terms]
        return np.asarray(sum(values[1:], start=values[0]) + self.intercept)

    def each(self) -> Iterator[Term]:
        """Yield the kernels with weight one by one."""
        for term in self.terms:
            for k, j in enumerate(term.index):
                alone, weights = term.kernels.choose(np.array([k])), term.weights[..., [k]]
                yield replace(term, kernels=alone, index=np.array([j]), weights=weights)

    def by_kernel(self, new: Any) -> NDArray[np.float64]:
        """Return the part that each kernel adds to the values at new samples, ``(n_new, m)`` or ``(n_new, m, k)``."""
        alone = (replace(self, terms=[term], intercept=0.0) for term in self.each())
        parts = {int(one.active[0]): one(new) for one in alone}
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


@dataclass(frozen=True)
class MatrixRows:
    """New rows of matrices that the user computes, ``matrices[j]`` of shape ``(n_new, n)``, indexed like samples."""

    matrices: Any

    @property
    def shape(self) -> tuple[int]:
        """The number of new samples."""
        some = next(iter(self.matrices.values())) if isinstance(self.matrices, dict) else self.matrices[0]
        return (some.shape[0],)

    def __getitem__(self, rows: Index) -> MatrixRows:
        named = self.matrices.items() if isinstance(self.matrices, dict) else enumerate(self.matrices)
        return MatrixRows({j: matrix[rows] for j, matrix in named})


@dataclass(frozen=True)
class GivenMatrices:
    """Which entries of matrices that the user computes are read: those of some matrices, at some training samples.

    ``m`` matrices of ``n`` columns are to be brought; None is all columns.
    """

    m: int
    n: int
    index: Index
    columns: Index | None = None


@dataclass
class BoundKernels:
    """Kernels and the training samples that they are bound to: where values of new samples come from.

    Parameters
    ----------
    kernels : list of Kernel
        Settled; none where the user computes them.
    samples : samples
        Those that are kept: the support, or all where kernels are centred; None where kernels are computed without.
    normaliser : Normaliser
        Factors and centres, learnt on the training samples.
    direction, starts : arrays, optional
        Of explicit features that are not in the host's memory, the direction of the function in feature space,
        ``Z' coef``, in the place of samples; kernel j begins at ``starts[j]`` of it.
    given : GivenMatrices, optional
        What is read of matrices that the user computes.
    """

    kernels: list[Kernel]
    samples: Any
    normaliser: Normaliser
    direction: Array | None = None
    starts: Index | None = None
    given: GivenMatrices | None = None

    #: how kernels that samples lack are completed
    completion: ClassVar[None] = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read kernels of 0.2.0 too, where matrices were a class of their own, and a bank was an attribute."""
        if "m" in state:
            given = GivenMatrices(state["m"], state["n"], state["index"])
            state = {"kernels": [], "samples": None, "normaliser": state["normaliser"], "given": given}
        vars(self).update({name: value for name, value in state.items() if name != "bank"})

    def choose(self, kernels: Index) -> BoundKernels:
        """Return some of the kernels, on the same samples, or with their parts of the direction."""
        chosen = [self.kernels[j] for j in kernels] if self.kernels else []
        made = replace(self, kernels=chosen, normaliser=self.normaliser.restrict(kernels))
        if self.given is not None:
            made.given = replace(self.given, index=self.given.index[kernels])
        if self.direction is not None and self.starts is not None:
            blocks = [np.arange(*self.starts[[j, j + 1]]) for j in kernels]
            made.direction = self.direction[np.concatenate([np.zeros(0, dtype=np.intp), *blocks])]
            made.starts = np.cumsum([0, *map(len, blocks)])
        return made

    def restrict(self, kernels: Index, weights: Array, coef: Array) -> list[Term]:
        """Return the terms of some kernels, with what they need of samples; ``weights`` are those of all kernels.

        Of kernels with sparse features that is the direction of the function, and no sample.
        """
        factors = self.direction is None and not self.normaliser.center and self.normaliser.diagonal is None
        sparse = np.array([factors and kernel.nonzeros is not None for kernel in self.kernels], dtype=bool)
        if sparse.any() and (chosen := kernels[sparse[kernels]]).size:
            along, used = self.choose(chosen), support(coef)
            Z, along.starts = stack_features(along.kernels, take(self.samples, used))
            along.samples, along.direction = None, np.asarray(Z.T @ coef[used], dtype=float)
            others = kernels[~sparse[kernels]]
            terms = self.restrict(others, weights, coef) if others.size else []
            return [Term(along, chosen, weights[..., chosen], coef[used]), *terms]
        kept = self.choose(kernels)
        # where kernels are centred, the row means of new rows run over all training samples
        if self.direction is None and not self.normaliser.center:
            used = support(coef)
            if kept.normaliser.diagonal is not None:
                kept.normaliser.diagonal = kept.normaliser.diagonal[:, used]
            if kept.given is not None:
                columns = kept.given.columns
                kept.given = replace(kept.given, columns=used if columns is None else columns[used])
            elif used.size < len(coef):
                kept.samples = take(self.samples, used)
            coef = coef[used]
        return [Term(kept, kernels, weights[..., kernels], coef)]

    def cross(self, new: Any) -> Array:
        """Normalised kernels between new rows and the samples, ``(m, n_new, n)``."""
        out = np.empty((len(self.kernels), n_samples(new), n_samples(self.samples)))
        if isinstance(self.samples, Pairs) and self.normaliser.center:
            raise ValueError("kernels of pairs that are centred have no entries between new and known pairs")
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
            return self._along(self.direction, new, weights, device)
        known, samples = self.normaliser, self.samples
        if isinstance(samples, Pairs):
            from .pairs import pair_decision

            return pair_decision(self, new, weights, coef)
        rows_of_numbers = isinstance(samples, np.ndarray) and samples.ndim == 2
        if device is not None and rows_of_numbers and known.keeps_powers():
            from .torch_bank import device_decision

            return device_decision(self, device, new, weights, coef)
        out = np.zeros((n_samples(new), *coef.shape[1:]))
        # no support: the function is its intercept, and there is nothing to compare with
        if not np.any(coef):
            return out
        if self.given is not None:
            _add_products(self.visit(new), weights, coef, out)
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
        if known.keeps_powers():  # objects are read once, not in every block
            prepared = {int(j): self.kernels[j].prepare(self.samples) for j in matrices}
            for j, (kernel, own) in prepared.items():
                if own is self.samples:
                    continue
                rows = self.kernels[j].prepare(new)[1]
                for part in row_slices(len(out), len(coef)):
                    entries = kernel(take(rows, np.arange(part.start, part.stop)), own)
                    _add_products([(0, entries)], (weights * known.scale)[..., [j]], coef, out[part])
            matrices = np.array([j for j in matrices if prepared[j][1] is self.samples], dtype=np.intp)
        if matrices.size:
            self._add_matrices(new, matrices, weights, coef, np.dtype(dtype), out)
        return out

    def _along(self, direction: Array, new: Any, weights: Array, device: Any) -> Array:
        """Values at new rows from their features, block by block; on a device where that can make them."""
        starts = np.asarray(self.starts)
        mixing = np.repeat(weights * self.normaliser.scale, np.diff(starts), axis=-1)
        # one set of weights serves all columns of the coefficients, or each column has its own
        direction = (direction.T * mixing).T if weights.ndim == 1 else direction * mixing.T
        if device is not None:
            from .torch_bank import decision_along

            there = decision_along(self.kernels, device, new, direction)
            if there is not None:
                return there
        out = np.empty((n_samples(new), *direction.shape[1:]))
        few = [kernel.nonzeros for kernel in self.kernels]
        width = int(starts[-1]) if None in few else int(sum(number or 0.0 for number in few))
        height, source = max(64, BLOCK_BYTES // (8 * max(1, width))), as_rows(new) if None in few else new
        for top in range(0, len(out), height):
            rows = slice(top, min(len(out), top + height))
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
            rest = self.choose(others)
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

    def missing_view_summary(self) -> MissingViewSummary:
        """Return what is known of training samples that lack some of the kernels: none can."""
        return MissingViewSummary()

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
        if self.given is not None:
            for j, matrix in enumerate(self.given.index):
                columns = slice(None) if self.given.columns is None else self.given.columns
                entries = np.asarray(new.matrices[matrix][:, columns], dtype=float)
                yield j, self.normaliser.cross_block(j, entries, None, slice(None))
            return
        cosine = self.normaliser.diagonal is not None
        for group in base_groups(self.kernels, range(len(self.kernels))):
            base = self.kernels[group[0]].base(new, self.samples)
            if self.kernels[group[0]].decay:
                base = base.astype(dtype, copy=False)
            for j in group:
                entries = self.kernels[j].of_base(base)
                diagonal = self.kernels[j].diag(new) if cosine else None
                yield j, self.normaliser.cross_block(j, entries, diagonal, slice(None))
