"""Putting kernels together: stacks, products of stacks, and what may stand for a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, overload

from ._kernel import Kernel, KernelSpec, Schema
from ._parts import NamedParts

__all__ = [
    "AllProducts",
    "Stack",
    "as_spec",
    "expand_kernels",
    "multiplied",
    "resolve_kernels",
    "spec_parts",
    "stacked",
]


class Stack(NamedParts):
    """Kernels side by side: what ``k1 + k2`` gives, and what a bank is made of.

    Where all parts are plain kernels a stack has a length and can be indexed (a slice gives a stack).  Parameters of
    its kernels have names for grid searches: ``kernels__0__width``, ``kernels__gaussian__width``.

    Parameters
    ----------
    parts : sequence of KernelSpec or callable

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> bank = kw.gaussian([0.5, 1.0]) + kw.linear()
    >>> [kernel.name for kernel in bank]
    ['gaussian(width=0.5)', 'gaussian(width=1)', 'linear']
    """

    def __init__(self, parts: Any = ()) -> None:
        self.parts = parts

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the kernels of all parts, in order."""
        return [kernel for part in self.parts for kernel in as_spec(part).expand(schema)]

    def on(self, columns: Any) -> Stack:
        """Return the stack of the same kernels, each on these columns."""
        return Stack(tuple(as_spec(part).on(columns) for part in self.parts))

    def _plain(self) -> list[Kernel] | None:
        parts = [as_spec(part)._plain() for part in self.parts]
        return None if None in parts else [kernel for part in parts for kernel in part or ()]

    def _kernels(self) -> list[Kernel]:
        kernels = self._plain()
        if kernels is None:
            raise TypeError(f"the number of kernels in {self!r} depends on the features: use .expand(schema)")
        return kernels

    def __len__(self) -> int:
        return len(self._kernels())

    def __bool__(self) -> bool:  # without this, truth would ask for the length
        return True

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels())

    @overload
    def __getitem__(self, index: int) -> Kernel: ...
    @overload
    def __getitem__(self, index: slice) -> Stack: ...
    def __getitem__(self, index: Any) -> Kernel | Stack:
        chosen = self._kernels()[index]
        return Stack(tuple(chosen)) if isinstance(index, slice) else chosen


class AllProducts(KernelSpec):
    """Every kernel on the left times every kernel on the right, expanded once the features are known."""

    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return all products, those of the first kernel on the left first."""
        from .combined import product

        rights = as_spec(self.right).expand(schema)
        return [product(left, right) for left in as_spec(self.left).expand(schema) for right in rights]


def as_spec(what: Any) -> KernelSpec:
    """Return a spec from a spec, a function of two samples, a sequence of these, or the name of a preset.

    >>> as_spec(["stpmkl", lambda a, b: float(a == b)]).expand(Schema(2))[-1].family
    'function'
    """
    if isinstance(what, KernelSpec):
        return what
    if isinstance(what, str):
        from .papers import preset

        return preset(what)
    if isinstance(what, (list, tuple)):
        return Stack(tuple(as_spec(part) for part in what))
    if isinstance(what, type):
        raise ValueError(
            f"kernels must be objects, not classes: write {what.__name__}(...), not {what.__name__}"
        )
    if callable(what):
        from .functions import function

        return function(what)
    if getattr(what, "ndim", 0) in (2, 3):
        raise ValueError("kernel matrices go in a holder, with sample indices as X: kernels.held(stack)")
    raise ValueError(
        "kernels must be a kernel, a stack of kernels, a function of two samples, a list of these or the "
        f"name of a preset; got {what!r} of type {type(what).__name__}"
    )


def spec_parts(what: Any) -> tuple[KernelSpec, ...]:
    """Return the parts of a stack, or the one thing that is none."""
    spec = as_spec(what)
    return tuple(as_spec(part) for part in spec.parts) if isinstance(spec, Stack) else (spec,)


def stacked(left: Any, right: Any) -> Stack:
    """Return both sides in one flat stack."""
    return Stack((*spec_parts(left), *spec_parts(right)))


def multiplied(left: Any, right: Any) -> KernelSpec:
    """Return the product kernel, or with stacks the stack of all products."""
    if any(isinstance(side, (int, float, complex)) or hasattr(side, "dtype") for side in (left, right)):
        raise TypeError(
            "a number times a kernel: the weights of kernels are learnt; for a fixed weight inside a kernel "
            "use kernels.summed(kernel, weights=[...])"
        )
    from .combined import product

    left, right = as_spec(left), as_spec(right)
    lefts, rights = left._plain(), right._plain()
    if lefts is None or rights is None:
        return AllProducts(left, right)
    products = tuple(product(left_kernel, other) for left_kernel in lefts for other in rights)
    return products[0] if isinstance(left, Kernel) and isinstance(right, Kernel) else Stack(products)


def expand_kernels(spec: Any, schema: Schema) -> list[Kernel]:
    """Expand a spec to its kernels and check them: at least one, all names different, all columns there.

    Where the samples have views, kernels that choose no columns are put on every one of them.

    >>> from kernelweave import kernels as kw
    >>> [kernel.name for kernel in expand_kernels(kw.per_feature(kw.linear()), Schema(2, ("age", "dose")))]
    ['linear on age', 'linear on dose']
    """
    kernels = as_spec(spec).expand(schema)
    if not kernels:
        raise ValueError(f"the bank is empty: {spec!r} has no kernel in it; give at least one")
    if schema.views is not None:
        from .families import on_every_view

        kernels = on_every_view(kernels, schema.views)
    counts = Counter(kernel.name for kernel in kernels)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        listed = ", ".join(repr(name) for name in twice[:5]) + (", ..." if len(twice) > 5 else "")
        raise ValueError(
            f"kernels of the same name: {listed}. Take the copies out, or tell them apart with "
            '.named("..."); per_view names kernels after their view.'
        )
    return kernels


def resolve_kernels(kernels: Sequence[Kernel], A: Any) -> list[Kernel]:
    """Settle all kernels on the training samples; what several need, such as a median, is computed once."""
    shared: dict[Hashable, Any] = {}
    return [kernel.resolve(A, shared) for kernel in kernels]
