"""Several kernels inside one: products, fixed sums, and kernels that always count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from ._algebra import Stack, as_spec
from ._kernel import Kernel, KernelSpec, Schema, n_samples, readable
from ._numeric import checked_number
from .columns import Named


def _of_parts(name: str, combine: Callable[[Iterable[bool]], bool]) -> Any:
    """Return a property: whether all parts, or any of them, have an attribute."""
    return property(lambda self: combine(getattr(kernel, name) for kernel in self.kernels))


class _Combined(Kernel):
    """Base of products and sums: parts, and the answers that need all of them."""

    kernels: Any
    accepts_sparse = _of_parts("accepts_sparse", all)
    sure = _of_parts("sure", all)
    # one part is enough: then the samples cannot be asked to be numbers
    takes_objects = _of_parts("takes_objects", any)
    takes_indices = _of_parts("takes_indices", any)
    takes_numbers = _of_parts("takes_numbers", all)
    _picks_columns = _of_parts("_picks_columns", any)
    #: of the ranks of the parts
    _total_rank: ClassVar[Any]

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Self:
        return self._with(kernels=tuple(kernel.resolve(A, shared) for kernel in self.kernels))

    def check_samples(self, A: Any, where: str = "", rows: np.ndarray | None = None) -> None:
        for kernel in self.kernels:
            kernel.check_samples(A, where, rows)

    def expand(self, schema: Schema) -> list[Kernel]:
        return [self._with(kernels=tuple(kernel.expand(schema)[0] for kernel in self.kernels))]

    def looks_at(self, n_columns: int) -> frozenset[int]:
        return frozenset().union(*(kernel.looks_at(n_columns) for kernel in self.kernels))

    def rank(self, n_columns: int) -> int | None:
        ranks = [kernel.rank(n_columns) for kernel in self.kernels]
        return None if None in ranks else self._total_rank(ranks)


@dataclass(eq=False, repr=False)
class Product(_Combined, registered_as="product"):
    """The entrywise product of kernels: what ``k1 * k2`` gives.

    >>> from kernelweave import kernels as kw
    >>> (kw.linear() * kw.linear())([[2.0]], [[3.0]])
    array([[36.]])
    """

    kernels: Any

    _total_rank = staticmethod(prod)

    @property
    def name(self) -> str:
        return " x ".join(
            f"({kernel.name})" if " + " in kernel.name else kernel.name for kernel in self.kernels
        )

    def base(self, A: Any, B: Any) -> np.ndarray:
        first, *others = self.kernels
        result = first(A, B)
        for kernel in others:
            result *= kernel(A, B)
        return result

    def base_diag(self, A: Any) -> np.ndarray:
        return np.prod([kernel.diag(A) for kernel in self.kernels], axis=0)

    def features(self, A: Any) -> Any:
        """Return all products of a feature of each part."""
        parts = [kernel.features(A) for kernel in self.kernels]
        if any(part is None for part in parts):
            return None
        dense = [part.toarray() if sparse.issparse(part) else part for part in parts]
        result = dense[0]
        for part in dense[1:]:
            result = (result[:, :, None] * part[:, None, :]).reshape(len(result), -1)
        return result


@dataclass(eq=False, repr=False)
class Summed(_Combined, registered_as="summed"):
    """A fixed non-negative combination of kernels as one kernel; see :func:`summed`."""

    kernels: Any
    weights: Any = None

    _total_rank = staticmethod(sum)

    def _checked_weights(self) -> list[float]:
        if self.weights is None:
            return [1.0] * len(self.kernels)
        if len(self.weights) != len(self.kernels):
            raise ValueError(f"summed has {len(self.kernels)} kernels but {len(self.weights)} weights")
        return [checked_number(weight, "a weight in summed", strict=False) for weight in self.weights]

    @property
    def name(self) -> str:
        weights = self._checked_weights()
        parts = [
            kernel.name if weight == 1 else f"{readable(weight)} {kernel.name}"
            for kernel, weight in zip(self.kernels, weights, strict=True)
        ]
        if len(parts) > 3:
            return f"{parts[0]} + ... + {parts[-1]} ({len(parts)} kernels)"
        return " + ".join(parts)

    def base(self, A: Any, B: Any) -> np.ndarray:
        result = np.zeros((n_samples(A), n_samples(B)))
        for kernel, weight in zip(self.kernels, self._checked_weights(), strict=True):
            matrix = kernel(A, B)
            matrix *= weight
            result += matrix
        return result

    def base_diag(self, A: Any) -> np.ndarray:
        parts = zip(self.kernels, self._checked_weights(), strict=True)
        return np.sum([weight * kernel.diag(A) for kernel, weight in parts], axis=0)

    def features(self, A: Any) -> Any:
        """Return the features of the parts side by side."""
        parts = [kernel.features(A) for kernel in self.kernels]
        if any(part is None for part in parts):
            return None
        scaled = [part * sqrt(weight) for part, weight in zip(parts, self._checked_weights(), strict=True)]
        if any(sparse.issparse(part) for part in scaled):
            return sparse.hstack([sparse.csr_matrix(part) for part in scaled], format="csr")
        return np.hstack(scaled)


@dataclass(eq=False, repr=False)
class SumOf(KernelSpec):
    """A sum whose kernels are only known with the features, such as ``summed(per_feature(...))``."""

    parts: Any
    weights: Any = None

    def expand(self, schema: Schema) -> list[Kernel]:
        return [_checked_sum(Stack(self.parts).expand(schema), self.weights)]


def _checked_sum(kernels: Sequence[Kernel], weights: Any) -> Summed:
    if not kernels:
        raise ValueError("summed needs at least one kernel")
    _refuse_always(kernels)
    result = Summed(tuple(kernels), weights)
    result._checked_weights()
    return result


def _refuse_always(kernels: Sequence[Kernel]) -> None:
    """Raise where a part has a weight of its own: that is one of whole kernels."""
    if any(kernel.always is not None for kernel in kernels):
        raise ValueError("always(...) gives a whole kernel its weight: put it around the product or the sum")


def product(left: Kernel, right: Kernel) -> Product:
    """Return the product of two kernels, flat where they are products themselves."""
    _refuse_always((left, right))
    sides = [side.kernels if isinstance(side, Product) else (side,) for side in (left, right)]
    return Product((*sides[0], *sides[1]))


def summed(*kernels: Any, weights: Any = None) -> Any:
    """Return one kernel that is the sum of several; ``+`` would put them side by side instead.

    Parameters
    ----------
    *kernels : Kernel or Stack
        A stack stands for all of its kernels.
    weights : sequence of float or None
        Fixed non-negative weights, one for each kernel; by default all 1.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.summed(kw.linear(), kw.constant(), weights=[2.0, 1.0])([[1.0]], [[3.0]])
    array([[7.]])
    """
    weights = None if weights is None else tuple(float(weight) for weight in weights)
    parts = Stack(kernels)._plain()
    if parts is None:
        return SumOf(tuple(map(as_spec, kernels)), weights)
    return _checked_sum(parts, weights)


@dataclass(eq=False, repr=False)
class Always(Named, passes_on="name"):
    """A kernel with a given weight; see :func:`always`."""

    kernel: Kernel
    weight: float = 1.0

    always = property(attrgetter("weight"))

    def on(self, columns: Any) -> Kernel:
        return Always(self.kernel.on(columns), self.weight)

    def named(self, name: str) -> Kernel:
        return Always(self.kernel.named(name), self.weight)


@dataclass(eq=False, repr=False)
class AlwaysAll(KernelSpec):
    """Every kernel of a bank that is only known with the features, each with a given weight."""

    part: Any
    weight: float = 1.0

    def expand(self, schema: Schema) -> list[Kernel]:
        return [Always(kernel, self.weight) for kernel in as_spec(self.part).expand(schema)]


def always(kernels: Any, weight: float = 1.0) -> KernelSpec:
    """Return kernels that count with a given weight, whatever the norm chooses of the others.

    For what is to be adjusted for: age and sex, a batch, a scanner.  The larger the weight, the less is charged for
    this part of the function; with a very large one (1e3, say) the features are covariates without a penalty.

    Parameters
    ----------
    kernels : Kernel, Stack or other spec
    weight : float, default=1.0
        Of every normalised kernel, > 0, like those in ``weights_``.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> bank = kw.always(kw.linear().on(["age", "sex"]), weight=10) + kw.gaussian([0.5, 1.0])
    >>> [kernel.always for kernel in bank]
    [10.0, None, None]
    """
    weight = checked_number(weight, "the weight of always", strict=True)
    spec = as_spec(kernels)
    plain = spec._plain()
    if plain is None:
        return AlwaysAll(spec, weight)
    made = tuple(Always(kernel, weight) for kernel in plain)
    return made[0] if isinstance(spec, Kernel) else Stack(made)
