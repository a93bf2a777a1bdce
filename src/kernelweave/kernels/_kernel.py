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
from sklearn.base import BaseEstimator

from .._components import Component, Registry, nearest
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


def subsample(A: Any, most: int = 1000) -> Any:
    """Return at most ``most`` evenly spaced samples: deterministic, and fair to sorted data."""
    n = n_samples(A)
    return A if n <= most else take(A, np.linspace(0, n - 1, most).astype(np.intp))


def readable(value: Any) -> str:
    """Return a number as short as a plot wants it."""
    return f"{value:.6g}" if type(value) is float or isinstance(value, Real) else str(value)


def several(value: Any) -> bool:
    """Whether a parameter has several values, of which each makes a kernel."""
    return isinstance(value, (list, tuple, set, range)) or getattr(value, "ndim", 0) == 1


class Schema(NamedTuple):
    """Facts about the samples that a bank of kernels may know before it sees them.

    ``n_features`` is None for lists of objects, ``feature_names`` but for a data frame, ``views`` (the columns of every
    view by its name) but for ``Views``, ``dtypes`` of the columns but for a data frame; ``of_objects`` are the views
    that hold no numbers.  Of ``Pairs`` there are ``sides``, the facts about left and right objects.
    """

    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    views: dict[str, tuple[int, ...]] | None = None
    dtypes: tuple[Any, ...] | None = None
    of_objects: frozenset[str] = frozenset()
    sides: tuple[Any, Any] | None = None
    one_kind: bool = False

    @classmethod
    def of(cls, samples: Any) -> Schema:
        """Read the schema off a two-dimensional array, sparse matrix or data frame.

        >>> import numpy as np
        >>> Schema.of(np.zeros((5, 3)))  # doctest: +ELLIPSIS
        Schema(n_features=3, feature_names=None, views=None, dtypes=None, of_objects=frozenset(), sides=None, ...)
        """
        if isinstance(samples, Pairs):
            sides = cls.of(samples.left.objects), cls.of(samples.right.objects)
            return cls(sides=sides, one_kind=samples.one_kind)
        if isinstance(samples, Views):
            return cls(samples.shape[1], samples.feature_names, samples.groups, of_objects=samples.of_objects)
        shape: Any = getattr(samples, "shape", ())
        if len(shape) != 2:
            return cls(None, None)
        columns = getattr(samples, "columns", None)
        if columns is None or not all(isinstance(column, str) for column in columns):
            return cls(int(shape[1]), None)
        dtypes = tuple(samples.dtypes) if hasattr(samples, "iloc") else None
        return cls(int(shape[1]), tuple(columns), dtypes=dtypes)


class KernelSpec(Component):
    """Anything that expands to kernels once the features are known: a kernel, a stack, ``per_feature(...)``.

    ``+`` puts kernels side by side in a bank (it never sums matrices: that is ``summed``), ``*``
    multiplies them entry by entry; with stacks, every kernel on the left meets every kernel on the right.
    """

    # numpy scalars and arrays on the left must leave the operation to __radd__ and __rmul__
    __array_ufunc__ = None
    #: the kind of kernel, which parameters may be named by
    family: str = ""
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

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters, and those of what is inside, by all names but those that begin with a family."""
        known: dict[str, Any] = super().get_params(deep=False)
        for name, value in list(known.items()):
            if hasattr(value, "get_params") and not isinstance(value, type):
                inside = value._parameters() if isinstance(value, KernelSpec) else value.get_params()
                known |= {f"{name}__{inner}": inside[inner] for inner in inside}
        return known

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also by the names that they have in every bank.

        >>> from kernelweave import kernels as kw
        >>> kw.gaussian(2.0).get_params()
        {'relative': False, 'width': 2.0, 'gaussian__relative': False, 'gaussian__width': 2.0}
        """
        if not deep:
            return super().get_params(deep=False)  # type: ignore[no-any-return]
        known = self._parameters()
        return known | ({f"{self.family}__{name}": known[name] for name in known} if self.family else {})

    def set_params(self, **params: Any) -> Self:
        """Set parameters: ``width`` and ``gaussian__width`` are the same; a sequence makes a kernel of every value.

        >>> from kernelweave import kernels as kw
        >>> len(kw.gaussian(1.0).set_params(gaussian__width=[0.5, 1.0, 2.0]).expand(kw.Schema(3)))
        3
        """
        for name, value in params.items():
            head, _, rest = name.partition("__")
            known = self._parameters()
            if head == self.family and rest in known:
                self.set_params(**{rest: value})
            elif head in self._get_param_names():
                super().set_params(**{name: value})
            elif name in known:  # of the kernel inside
                self.kernel.set_params(**{name: value})  # type: ignore[attr-defined]
            else:
                self._refuse(name, [one for one in known if not one.startswith("kernel__")])
        return self

    def _refuse(self, name: str, known: list[str]) -> None:
        """Raise where a parameter has a name that none has."""
        what = f"the {self.family} kernel" if isinstance(self, Kernel) else self.family or "these kernels"
        wrong, listed = name.partition("__")[0], ", ".join(sorted(known)) or "none"
        close = nearest(wrong, sorted({one.partition("__")[0] for one in known}))
        raise ValueError(f"Invalid parameter {wrong!r} for {what}.{close} There are: {listed}.")

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
    for_texts : str
        Whether entries of a column of texts will do: then the parameter that the command line gives numbers to.
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
    #: whether ``resolve`` looks at the samples that ``subsample`` takes, and no others
    settles_on_some: ClassVar[bool] = False
    #: parameter of which a factory takes several values, to make a kernel of each
    _varied: ClassVar[str] = ""
    decay: bool = False
    columns: Any = None
    accepts_sparse: bool = False
    takes_objects: bool = False
    takes_indices: bool = False
    takes_numbers: bool = True
    nonzeros: float | None = None
    for_tables: bool = False
    for_texts: str = ""
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
        values: Any = getattr(self, self._varied) if self._varied else None
        return [self._with(**{self._varied: value}) for value in values] if several(values) else [self]

    @property
    def _picks_columns(self) -> bool:
        return self.columns is not None


class NamedParts(KernelSpec):
    """A spec that holds a sequence of others, whose parameters are known by family: ``kernels__gaussian__width``.

    That is the width of all Gaussians: a number, or a sequence for a kernel of each.  One of several is
    ``gaussian_1``, ``gaussian_2``, ...; in a bank of one family ``kernels__width`` will do.
    """

    #: parameter with the sequence
    _sequence: ClassVar[str] = "parts"

    def _parameters(self) -> dict[str, Any]:
        return self.get_params()

    def _parts(self) -> list[Any]:
        parts = getattr(self, self._sequence)
        return list(parts) if isinstance(parts, tuple | list) else []

    def _leaves(self) -> list[Any]:
        """Return the parts, and those of stacks among them in their place."""
        every = [
            part._leaves() if isinstance(part, NamedParts) and part._sequence == "parts" else [part]
            for part in self._parts()
        ]
        return [leaf for leaves in every for leaf in leaves]

    def _families(self) -> dict[str, list[int]]:
        """Return the positions of the leaves of every family."""
        found: dict[str, list[int]] = {}
        for place, leaf in enumerate(self._leaves()):
            found.setdefault(getattr(leaf, "family", "") or type(leaf).__name__.lower(), []).append(place)
        return found

    def _named(self) -> dict[str, list[int]]:
        """Return the positions of the leaves by name, a family's or that of one of several in it."""
        families = self._families()
        numbered = {
            f"{family}_{number}": [place]
            for family, places in families.items()
            for number, place in enumerate(places, 1)
            if len(places) > 1
        }
        return families | numbered

    def _positions(self) -> dict[str, int]:
        """Return the parts by their numbers, and by the names that they had in earlier versions."""
        parts = self._parts()
        families = [
            part.family if isinstance(part, Kernel) else type(part).__name__.lower() for part in parts
        ]
        counts, seen = Counter(families), Counter[str]()
        names = {str(place): place for place in range(len(parts))}
        for place, family in enumerate(families):
            seen[family] += 1
            names[family if counts[family] == 1 else f"{family}-{seen[family]}"] = place
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` those of every part as well.

        >>> from kernelweave import kernels as kw
        >>> bank = kw.gaussian([1.0, 2.0]) + kw.linear()
        >>> bank.get_params()["gaussian__width"], bank.get_params()["gaussian_2__width"]
        ([1.0, 2.0], 2.0)
        """
        params = super().get_params(deep=False)
        if not deep:
            return params
        parts, leaves = self._parts(), self._leaves()
        by_name = {name: [parts[place]] for name, place in self._positions().items()}
        by_name |= {name: [leaves[place] for place in places] for name, places in self._named().items()}
        for name, those in by_name.items():
            params[name] = those[0] if len(those) == 1 else tuple(those)
            inside = [part._parameters() for part in those if isinstance(part, KernelSpec)]
            for inner in inside[0] if inside else ():
                distinct = {identity(known[inner]): known[inner] for known in inside if inner in known}
                values = list(distinct.values())
                params[f"{name}__{inner}"] = values[0] if len(values) == 1 else values
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the spec, whole parts, and parameters of parts.

        >>> from kernelweave import kernels as kw
        >>> bank = kw.gaussian([1.0, 2.0]) + kw.linear()
        >>> [kernel.name for kernel in bank.set_params(gaussian__width=3.0)]
        ['gaussian(width=3)', 'linear']
        """
        for name in sorted(params, key=lambda name: "__" in name):  # whole parts before what is in them
            value = params[name]
            head, _, rest = name.partition("__")
            named, positions, families = self._named(), self._positions(), list(self._families())
            if head in self._get_param_names():
                BaseEstimator.set_params(self, **{name: value})
            elif head in named:
                self._set_leaves(named[head], rest, value)
            elif head in positions:
                parts = self._parts()
                if rest:
                    parts[positions[head]].set_params(**{rest: value})
                else:
                    parts[positions[head]] = value
                self._keep(parts)
            elif len(families) == 1:  # the bare names of a bank of one family
                self._set_leaves(named[families[0]], name, value)
            else:
                known = [one for one in self.get_params() if one.partition("__")[0] in families]
                self._refuse(name, [*self._get_param_names(), *known])
        return self

    def _set_leaves(self, places: list[int], name: str, value: Any) -> None:
        """Set a parameter of some leaves, or put one thing in their place; of those that become equal one is left."""
        leaves, gone = self._leaves(), set(places[1:])
        if name:
            for place in places:
                leaves[place].set_params(**{name: value})
            first = {identity(leaves[place]): place for place in reversed(places)}
            gone = set(places) - set(first.values())
            if not gone:
                return
        else:
            leaves[places[0]] = value
        self._keep([leaf for place, leaf in enumerate(leaves) if place not in gone])

    def _keep(self, parts: list[Any]) -> None:
        setattr(self, self._sequence, type(getattr(self, self._sequence))(parts))
