"""Kernels that always count: a given weight, outside the norm and its choice."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ._algebra import Stack, as_spec
from ._kernel import Kernel, KernelSpec, Schema
from ._numeric import checked_number
from .columns import Named

__all__ = ["Always", "AlwaysAll", "always"]


class Always(Named):
    """A kernel with a given weight; see :func:`always`."""

    def __init__(self, kernel: Kernel, weight: float = 1.0) -> None:
        self.kernel = kernel
        self.weight = weight

    @property
    def name(self) -> str:
        """The name of the kernel inside."""
        return self.kernel.name

    @property
    def always(self) -> float | None:  # type: ignore[override]
        """The given weight."""
        return self.weight

    def on(self, columns: Any) -> Kernel:
        """Return the kernel inside on some columns, with the same weight."""
        return Always(self.kernel.on(columns), self.weight)

    def named(self, name: str) -> Kernel:
        """Return the kernel inside under a name of its own, with the same weight."""
        return Always(self.kernel.named(name), self.weight)

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Always:
        """Settle the kernel inside."""
        return Always(self.kernel.resolve(A, shared), self.weight)

    def recentred(self, A: Any) -> Always:
        """Settle the kernel inside around the mean of the samples."""
        return Always(self.kernel.recentred(A), self.weight)

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the kernel with its columns as positions."""
        return [Always(kernel, self.weight) for kernel in self.kernel.expand(schema)]


class AlwaysAll(KernelSpec):
    """Every kernel of a bank that is only known with the features, each with a given weight."""

    def __init__(self, part: Any, weight: float = 1.0) -> None:
        self.part = part
        self.weight = weight

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the kernels, each with the weight."""
        return [Always(kernel, self.weight) for kernel in as_spec(self.part).expand(schema)]


def always(kernels: Any, weight: float = 1.0) -> KernelSpec:
    """Return kernels that count with a given weight, whatever the norm chooses of the others.

    For what is to be adjusted for: age and sex, a batch, a scanner.  The weight is that of the normalised kernel, like
    those in ``weights_``; the larger it is, the less is charged for this part of the function, and with a very large
    one (1e3, say) the features of the kernel are covariates without a penalty.

    Parameters
    ----------
    kernels : Kernel, Stack or other spec
    weight : float, default=1.0
        Weight of every one of them, > 0.

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
