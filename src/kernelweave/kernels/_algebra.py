"""Stacks of kernels: their products, what may stand for a kernel, and families on every feature or view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import Any

from ._kernel import Kernel, KernelSpec, NamedParts, Schema
from .columns import OnColumns, describe, pick, plain_columns


@dataclass(eq=False, repr=False)
class Stack(NamedParts):
    """Kernels side by side: what ``k1 + k2`` gives, and what a bank is made of.

    Where all parts are plain kernels a stack has a length and can be indexed (a slice gives a stack).  Parameters of
    its kernels have names for grid searches: ``kernels__gaussian__width``, ``kernels__gaussian_2__width``.

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

    parts: Any = ()

    def expand(self, schema: Schema) -> list[Kernel]:
        return [kernel for part in self.parts for kernel in as_spec(part).expand(schema)]

    def on(self, columns: Any) -> Stack:
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

    def __getitem__(self, index: Any) -> Any:
        chosen = self._kernels()[index]
        return Stack(tuple(chosen)) if isinstance(index, slice) else chosen


@dataclass(eq=False, repr=False)
class AllProducts(KernelSpec):
    """Every kernel on the left times every kernel on the right, expanded once the features are known."""

    left: Any
    right: Any

    def expand(self, schema: Schema) -> list[Kernel]:
        from .combined import product

        rights = as_spec(self.right).expand(schema)
        return [product(left, right) for left in as_spec(self.left).expand(schema) for right in rights]


def as_spec(what: Any) -> KernelSpec:
    """Return a spec from a spec, a function, a sequence of these, or the name of a kernel or of a preset.

    >>> as_spec(["rbf", lambda a, b: float(a == b)]).expand(Schema(2))[-1].family
    'function'
    """
    if isinstance(what, KernelSpec):
        return what
    if isinstance(what, str):
        from .papers import by_name

        return by_name(what)
    if isinstance(what, (list, tuple)):
        return Stack(tuple(as_spec(part) for part in what))
    if isinstance(what, type):
        name = what.__name__
        raise ValueError(f"kernels must be objects, not classes: write {name}(...), not {name}")
    if callable(what):
        name = getattr(what, "__name__", "")
        if getattr(import_module(__package__), name, None) is what:
            raise ValueError(f"kernels.{name} is a function that makes kernels: call it, kernels.{name}(...)")
        from .functions import function

        return function(what)
    if getattr(what, "ndim", 0) in (2, 3):
        raise ValueError("kernel matrices go in a holder, with sample indices as X: kernels.held(stack)")
    raise ValueError(
        "kernels must be a kernel, a stack of kernels, a function of two samples, a list of these or a "
        f"name ('rbf', 'linear', ...); got {what!r} of type {type(what).__name__}"
    )


def spec_parts(what: Any) -> tuple[KernelSpec, ...]:
    """Return the parts of a stack, or the one thing that is none."""
    spec = as_spec(what)
    return tuple(as_spec(part) for part in spec.parts) if isinstance(spec, Stack) else (spec,)


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
    """Expand a spec to its kernels, on every view where they choose none; at least one, and all names different.

    >>> from kernelweave import kernels as kw
    >>> [kernel.name for kernel in expand_kernels(kw.per_feature(kw.linear()), Schema(2, ("age", "dose")))]
    ['linear on age', 'linear on dose']
    """
    kernels = as_spec(spec).expand(schema)
    if not kernels:
        raise ValueError(f"the bank is empty: {spec!r} has no kernel in it; give at least one")
    if schema.views is not None:
        bare, kernels = kernels, []
        for placed, together in groupby(bare, key=lambda kernel: kernel._picks_columns):
            run = list(together)
            if placed:
                kernels += run
                continue
            on_views = [
                OnColumns(kernel, positions, view, single=len(positions) == 1)
                for view, positions in schema.views.items()
                for kernel in run
                if (kernel.takes_objects if view in schema.of_objects else kernel.takes_numbers)
            ]
            taken = {id(put.kernel) for put in on_views}
            if idle := [kernel.name for kernel in run if id(kernel) not in taken]:
                raise ValueError(f"kernel {idle[0]!r} takes none of the views ({', '.join(schema.views)})")
            kernels += on_views
        reached = frozenset().union(*(kernel.looks_at(schema.n_features or 0) for kernel in kernels))
        lost = [view for view, positions in schema.views.items() if not reached & set(positions)]
        if lost and any(not kernel._picks_columns for kernel in bare):
            raise ValueError(
                f"no kernel takes view {lost[0]!r}, which holds texts or objects: leave it out, encode it "
                f"(OneHotEncoder), or give it a kernel of its own, such as kernels.spectrum(3).on({lost[0]!r})"
            )
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


@dataclass(eq=False, repr=False)
class Chosen(KernelSpec):
    """The kernels of a bank that have these names, in the bank's order.

    Other parts of the bank may ask for views or columns that are not there.

    Parameters
    ----------
    bank : KernelSpec
    names : tuple of str
    """

    bank: Any
    names: tuple[str, ...]

    def expand(self, schema: Schema) -> list[Kernel]:
        kernels: list[Kernel] = []
        refused: ValueError | None = None
        for part in spec_parts(self.bank):
            try:
                kernels += expand_kernels(part, schema)
            except ValueError as error:
                refused = refused or error
        wanted = [kernel for kernel in kernels if kernel.name in self.names]
        for name in self.names:
            if name not in {kernel.name for kernel in wanted}:
                message = f"the samples have no view or columns for kernel {name!r}, which the model needs"
                raise ValueError(message) from refused
        return wanted


def kernels_without_columns(families: tuple[Any, ...], schema: Schema, what: str) -> list[Kernel]:
    """Return the kernels of some families, none of them on columns already."""
    kernels = Stack(families).expand(schema)
    placed = [kernel.name for kernel in kernels if kernel._picks_columns]
    if placed:
        raise ValueError(f"{what} places its kernels itself, but {placed[0]!r} is already on columns")
    return kernels


@dataclass(eq=False, repr=False)
class PerFeature(NamedParts):
    """Every kernel of some families on every single feature; see :func:`per_feature`."""

    families: Any = ()
    columns: Any = None

    family = "per_feature"
    _sequence = "families"
    _no_columns = "per_feature places its kernels itself: choose features with per_feature(..., columns=...)"

    def expand(self, schema: Schema) -> list[Kernel]:
        if schema.n_features is None:
            raise ValueError(
                "per_feature needs samples with features: an array or a data frame, not a list of objects"
            )
        chosen = slice(None) if self.columns is None else self.columns
        kernels = kernels_without_columns(self.families, Schema(1), "per_feature")
        labels = [(j, describe((j,), schema.feature_names)) for j in pick(chosen, schema)[0]]
        return [OnColumns(kernel, (j,), label, single=True) for j, label in labels for kernel in kernels]


@dataclass(eq=False, repr=False)
class PerView(NamedParts):
    """Every kernel of some families on every view, a group of columns; see :func:`per_view`."""

    views: Any
    families: Any = ()

    family = "per_view"
    _sequence = "families"
    _no_columns = "per_view places its kernels itself: choose columns in its views"

    def expand(self, schema: Schema) -> list[Kernel]:
        kernels: list[Kernel] = []
        for view, columns in self.views.items():
            try:
                positions, single = pick(columns, schema)
            except ValueError as error:
                raise ValueError(f"view {view!r}: {error}") from error
            inside = kernels_without_columns(self.families, Schema(len(positions), None), "per_view")
            kernels += [OnColumns(kernel, positions, str(view), single) for kernel in inside]
        return kernels


def per_feature(*families: Any, columns: Any = None) -> PerFeature:
    """Return every kernel of these families on every single feature.

    Parameters
    ----------
    *families : Kernel, Stack or function of two samples
    columns : columns or None
        Only these features; by default all.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> spec = kw.per_feature(kw.gaussian([0.5, 1.0]), kw.linear())
    >>> [kernel.name for kernel in spec.expand(kw.Schema(1, ("age",)))]
    ['gaussian(width=0.5) on age', 'gaussian(width=1) on age', 'linear on age']
    """
    if not families:
        raise ValueError(
            "per_feature needs at least one family, for example per_feature(gaussian([0.5, 1, 2]))"
        )
    return PerFeature(tuple(map(as_spec, families)), None if columns is None else plain_columns(columns))


def per_view(views: Mapping[str, Any], *families: Any) -> PerView:
    """Return every kernel of these families on every view: a named group of columns.

    Parameters
    ----------
    views : mapping from a name to columns
    *families : Kernel, Stack or function of two samples

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> spec = kw.per_view({"mrna": slice(0, 50), "clinical": [50, 51]}, kw.gaussian(2.0))
    >>> [kernel.name for kernel in spec.expand(kw.Schema(52))]
    ['gaussian(width=2) on mrna', 'gaussian(width=2) on clinical']
    """
    if not isinstance(views, Mapping) or not views:
        raise ValueError(
            'per_view needs a mapping from names to columns: per_view({"mrna": slice(0, 50)}, ...)'
        )
    if not families:
        raise ValueError(
            "per_view needs at least one family, for example per_view(views, gaussian([0.5, 1, 2]))"
        )
    return PerView({view: plain_columns(c) for view, c in views.items()}, tuple(map(as_spec, families)))
