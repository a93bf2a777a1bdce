"""The contract of a kernel: parameters, never data; and of specs that hold several.

A kernel is an elementwise transform of a *base* matrix, so that a bank can compute one base (say, the squared
distances) and share it between many kernels (all widths of a Gaussian)::

    K = exp(-exponent * base(A, B))   if decay   else   base(A, B) ** exponent
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .._components import Component, Registry
from ..views import Pairs, Views


@dataclass(eq=False, repr=False)
class Same:
    """A key for one object by identity; it keeps the object alive, so that its id is not reused."""

    what: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.what is self.what

    def __hash__(self) -> int:
        return id(self.what)


def identity(what: Any) -> Hashable:
    """Return a hashable key for a parameter: by value where that is cheap, else by identity."""
    if what is None or isinstance(what, (bool, int, float, str, np.generic)):
        return what
    if isinstance(what, (tuple, list)):
        return tuple(identity(part) for part in what)
    if isinstance(what, Component) and type(what).__hash__ is object.__hash__:
        parameters = sorted(what.everything().items())
        return type(what), tuple((name, identity(value)) for name, value in parameters)
    return Same(what)


def refuse_non_finite(values: np.ndarray, what: str | Kernel) -> None:
    """Raise where numbers that a kernel is to work on are NaN or infinite."""
    # the sum of finite numbers is almost always finite: each is checked only if it is not
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.isfinite(values.sum()))
    if not finite and not np.isfinite(values).all():
        called = what if isinstance(what, str) else f"kernel {what.name!r}"
        raise ValueError(
            f"{called}: the samples contain NaN or infinity; impute missing values first (SimpleImputer), or drop "
            "those rows"
        )


def n_samples(A: Any) -> int:
    """Return the number of samples; sparse matrices have no len."""
    shape = getattr(A, "shape", None)
    return int(shape[0]) if shape else len(A)


def take(A: Any, rows: Sequence[int] | np.ndarray) -> Any:
    """Return some samples of an array, a sparse matrix, a data frame or a list."""
    if hasattr(A, "iloc"):
        return A.iloc[np.asarray(rows)]
    if hasattr(A, "tocsr"):
        return A.tocsr()[np.asarray(rows)]
    if hasattr(A, "shape"):
        return A[np.asarray(rows)]
    return [A[i] for i in rows]


def readable(value: Any) -> str:
    """Return a number as short as a plot wants it."""
    return f"{value:.6g}" if type(value) is float or isinstance(value, Real) else str(value)


class Schema(NamedTuple):
    """Facts about the samples that a bank of kernels may know before it sees them.

    ``n_features`` is None for lists of objects, ``feature_names`` but for a data frame, ``views`` (the columns of every
    view by its name) but for ``Views``; ``of_objects`` are the views that hold no numbers.  Of ``Pairs`` there are
    ``sides``, the facts about left and right objects.
    """

    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    views: dict[str, tuple[int, ...]] | None = None
    of_objects: frozenset[str] = frozenset()
    sides: tuple[Any, Any] | None = None
    one_kind: bool = False

    @classmethod
    def of(cls, samples: Any) -> Schema:
        """Read the schema off a two-dimensional array, sparse matrix or data frame.

        >>> import numpy as np
        >>> Schema.of(np.zeros((5, 3)))
        Schema(n_features=3, feature_names=None, views=None, of_objects=frozenset(), sides=None, one_kind=False)
        """
        if isinstance(samples, Pairs):
            sides = cls.of(samples.left.objects), cls.of(samples.right.objects)
            return cls(sides=sides, one_kind=samples.one_kind)
        if isinstance(samples, Views):
            return cls(samples.shape[1], samples.feature_names, samples.groups, samples.of_objects)
        shape: Any = getattr(samples, "shape", ())
        if len(shape) != 2:
            return cls(None, None)
        columns = getattr(samples, "columns", None)
        if columns is None or not all(isinstance(column, str) for column in columns):
            return cls(int(shape[1]), None)
        return cls(int(shape[1]), tuple(columns))


class KernelSpec(Component):
    """Anything that expands to kernels once the features are known: a kernel, a stack, ``per_feature(...)``.

    ``+`` puts kernels side by side in a bank (it never sums matrices: that is ``summed``), ``*``
    multiplies them entry by entry; with stacks, every kernel on the left meets every kernel on the right.
    """

    # numpy scalars and arrays on the left must leave the operation to __radd__ and __rmul__
    __array_ufunc__ = None
    #: why the kernels cannot be put on columns, where there is more to say than that they choose their own
    _no_columns: ClassVar[str] = ""

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the kernels this stands for, with columns as positions."""
        kernels = self._plain()
        if kernels is None:
            raise NotImplementedError
        return kernels

    def on(self, columns: Any) -> KernelSpec:
        """Return the same kernels looking only at these columns."""
        raise ValueError(
            self._no_columns
            or f"{self!r} chooses its own columns: give them to its families, or to its `columns`"
        )

    def _plain(self) -> list[Kernel] | None:
        """Return the kernels where they are known without any schema, else None."""
        return None

    def __add__(self, other: Any) -> KernelSpec:
        from ._algebra import Stack, spec_parts

        return Stack((*spec_parts(self), *spec_parts(other)))

    def __radd__(self, other: Any) -> KernelSpec:
        from ._algebra import as_spec

        # sum([...]) starts from 0
        return self if isinstance(other, int) and other == 0 else as_spec(other) + self

    def __mul__(self, other: Any) -> KernelSpec:
        from ._algebra import multiplied

        return multiplied(self, other)

    def __rmul__(self, other: Any) -> KernelSpec:
        from ._algebra import multiplied

        return multiplied(other, self)


registry: Registry[Kernel] = Registry("kernel", "kernelweave.kernels")

#: share of a kernel that centring leaves, below which it is computed around a point of the samples (``recentred``)
LITTLE = 1e-5


class Kernel(KernelSpec):
    """One kernel.  A new one defines ``base``, and as much of the rest as makes it quick.

    Attributes
    ----------
    family : str
        The kind of kernel, for grouping in tables and plots.
    decay : bool
        Whether the kernel is ``exp(-exponent * base)`` rather than ``base ** exponent``.
    columns : tuple of int or None
        The columns looked at; None for all.
    accepts_sparse, takes_objects, takes_indices : bool
        Whether samples may be a sparse matrix, any objects, or indices into something held elsewhere.
    takes_numbers : bool
        Whether samples may be rows of numbers; with views, kernels are placed on those that they take.
    nonzeros : float or None
        Of sparse ``features``, how many of a training sample's are not zero on average; None for dense ones.
    for_tables : bool
        Whether any table of numbers will do and every parameter has a default, so that the command line offers it by
        the name of its function.
    sure : bool
        Whether every matrix of this kernel is positive semi-definite by construction; a user's function may be wrong
        about that, so its training matrix is checked.
    quick : bool
        Whether the base matrix costs next to nothing, so that it may be computed twice rather than kept.
    is_settled : bool
        Whether nothing is left to learn of the training samples, so that ``resolve`` has nothing to do.
    always : float or None
        Weight that is given, outside the norm (``kernels.always``); None where the weight is learnt.
    """

    components = registry
    family: str = "kernel"
    decay: bool = False
    columns: Any = None
    accepts_sparse: bool = False
    takes_objects: bool = False
    takes_indices: bool = False
    takes_numbers: bool = True
    nonzeros: float | None = None
    for_tables: bool = False
    sure: bool = True
    quick: bool = False
    is_settled: bool = False
    always: float | None = None
    #: parameters that the name shows
    _shown: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, registered_as: str | None = None, passes_on: str = "", **options: Any) -> None:
        """Enter the registry; attributes and methods named in ``passes_on`` are those of ``self.kernel``."""
        super().__init_subclass__(registered_as=registered_as, **options)
        for name in passes_on.split():
            setattr(cls, name, property(attrgetter(f"kernel.{name}")))
        if registered_as is not None and "family" not in vars(cls):
            cls.family = registered_as

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the base matrix, ``(len(A), len(B))``, float64 and fresh (the caller may overwrite it).

        ``A is B`` marks the symmetric case, where the result is exactly symmetric.
        """
        raise NotImplementedError

    def base_diag(self, A: Any) -> np.ndarray:
        """Return ``base(a, a)`` for every sample; the default evaluates them one by one."""
        rows = (take(A, [i]) for i in range(n_samples(A)))
        return np.array([self.base(row, row)[0, 0] for row in rows], dtype=np.float64)

    @property
    def base_key(self) -> Hashable:
        """A key under which the base matrix may be shared; equal keys mean equal base matrices."""
        return identity(self), None

    @property
    def exponent(self) -> float:
        """The power of the base, or the factor inside the exponential when ``decay``."""
        return 1.0

    @property
    def name(self) -> str:
        """A short name that reads well in a plot."""
        values = ", ".join(f"{name}={readable(getattr(self, name))}" for name in self._shown)
        return f"{self.family}({values})" if values else self.family

    def _with(self, **changes: Any) -> Self:
        """Return a copy with other values of some attributes."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__ | changes)
        return made

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Kernel:
        """Return this kernel with everything that depends on the training samples settled.

        In ``shared`` kernels of a bank leave what the others can use (the median distance, say).
        """
        return self

    def check_samples(self, A: Any, where: str = "", rows: np.ndarray | None = None) -> None:
        """Raise where samples are no objects that the kernel takes, all of them at once, with their rows."""

    def prepare(self, A: Any) -> tuple[Kernel, Any]:
        """Return a kernel and samples that have the same values and take less time block by block."""
        return self, A

    def features(self, A: Any) -> Any:
        """Return Z (dense or sparse) with ``K(A, B) = features(A) @ features(B).T`` exactly, or None."""
        return None

    def portable_features(self, A: Any) -> Any:
        """Return ``features`` of rows in the array library they come in, checks left out; None for NumPy's alone."""
        return None

    def points(self, A: Any) -> np.ndarray | None:
        """Return rows of numbers whose squared distances are the base, checked; None where the base is another."""
        return None

    def looks_at(self, n_columns: int) -> frozenset[int]:
        """Return the columns, of so many, that an expanded kernel depends on."""
        return frozenset(range(n_columns))

    def linear_columns(self, n_columns: int) -> np.ndarray | None:
        """Return the columns that the kernel is an inner product of, up to their origin; None where it is not one."""
        return self.feature_columns(n_columns)

    def feature_columns(self, n_columns: int) -> np.ndarray | None:
        """Return which columns of the samples are the features themselves; None where they are not that simple."""
        return None

    def rank(self, n_columns: int) -> int | None:
        """Return how many columns ``features`` has, given those of the samples; None without a map."""
        return None

    def __call__(self, A: Any, B: Any = None) -> np.ndarray:
        """Return the kernel matrix between the samples of A and those of B (A itself when omitted)."""
        base = self.base(A, A if B is None else B)
        return self.of_base(base, out=base)

    def diag(self, A: Any) -> np.ndarray:
        """Return the diagonal of ``self(A)`` without computing the rest."""
        base = self.base_diag(A)
        return self.of_base(base, out=base)

    def of_base(self, base: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel matrix of a base matrix: fresh, or in ``out`` (which may be the base)."""
        exponent = self.exponent
        if self.decay:
            out = np.multiply(base, -exponent, out=out)
            return np.exp(out, out=out)
        if exponent == 1.0:
            return base if out is base else np.positive(base, out=out)
        # small whole powers by products, many times quicker than pow
        if exponent == 2.0:
            return np.square(base, out=out)
        if exponent == 3.0:
            return np.multiply(np.square(base), base, out=out)
        return np.power(base, exponent, out=out)

    def recentred(self, A: Any) -> Kernel:
        """Return a kernel that is the same once it is centred on these samples, and keeps its digits."""
        return self

    def on(self, columns: Any) -> Kernel:
        """Return this kernel on some columns: a position, a name, a list of these, a slice or a mask."""
        from .columns import OnColumns, plain_columns

        if self._picks_columns:
            raise ValueError(
                f"kernel {self.name!r} is already on columns: choose them once, with a single .on(...)"
            )
        return OnColumns(self, plain_columns(columns))

    def named(self, name: str) -> Kernel:
        """Return this kernel under a display name of its own.

        >>> from kernelweave import kernels as kw
        >>> kw.gaussian(2.0).named("smooth").name
        'smooth'
        """
        from .columns import Named

        return Named(self, name)

    def _plain(self) -> list[Kernel]:
        return [self]

    @property
    def _picks_columns(self) -> bool:
        return self.columns is not None


class NamedParts(KernelSpec):
    """A spec that holds a sequence of others, each a parameter by its position and by its family.

    ``kernels__0__width``, ``kernels__gaussian__width``; several of one family are ``gaussian-1``, ``gaussian-2``, ...
    """

    #: parameter with the sequence
    _sequence: ClassVar[str] = "parts"

    def _named_parts(self) -> dict[str, int]:
        """Positions of the parts by every name they have."""
        parts = getattr(self, self._sequence)
        if not isinstance(parts, tuple | list):
            return {}
        kinds = [getattr(part, "family", None) for part in parts]
        families = [
            family if isinstance(family, str) else type(part).__name__.lower()
            for family, part in zip(kinds, parts, strict=True)
        ]
        counts, seen = Counter(families), Counter[str]()
        names: dict[str, int] = {str(place): place for place in range(len(parts))}
        for place, family in enumerate(families):
            seen[family] += 1
            names[family if counts[family] == 1 else f"{family}-{seen[family]}"] = place
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` those of every part as well.

        >>> from kernelweave import kernels as kw
        >>> bank = kw.gaussian(2.0) + kw.linear()
        >>> bank.get_params()["0__width"], bank.get_params()["gaussian__width"]
        (2.0, 2.0)
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if not deep:
            return params
        parts = getattr(self, self._sequence)
        for name, place in self._named_parts().items():
            part = parts[place]
            params[name] = part
            if hasattr(part, "get_params") and not isinstance(part, type):
                params |= {f"{name}__{inner}": value for inner, value in part.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the stack, whole parts, and parameters of parts.

        >>> from kernelweave import kernels as kw
        >>> bank = kw.gaussian(2.0) + kw.linear()
        >>> bank.set_params(gaussian__width=3.0)[0].name
        'gaussian(width=3)'
        """
        if self._sequence in params:
            setattr(self, self._sequence, params.pop(self._sequence))
        places, parts = self._named_parts(), list(getattr(self, self._sequence) or ())
        for name in [name for name in params if name in places]:
            parts[places[name]] = params.pop(name)
        inside: dict[int, dict[str, Any]] = {}
        for name in [name for name in params if name.partition("__")[0] in places and "__" in name]:
            whose, _, inner = name.partition("__")
            inside.setdefault(places[whose], {})[inner] = params.pop(name)
        for place, values in inside.items():
            parts[place].set_params(**values)
        before = getattr(self, self._sequence)
        if inside or any(new is not old for new, old in zip(parts, before, strict=True)):
            setattr(self, self._sequence, type(before)(parts))
        return super().set_params(**params) if params else self
