"""Kernels of pairs: products of a kernel of the left objects and one of the right objects."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..views import Pairs, Views
from ..views.pairs import Side
from ._algebra import as_spec, expand_kernels
from ._kernel import Kernel, KernelSpec, Schema, n_samples

#: what ``symmetric=`` stands for: the sign with which a pair and its reverse are alike
SYMMETRIES = {False: 0, True: 1, "symmetric": 1, "antisymmetric": -1}


class _AllAlike(Kernel):
    """One for all objects: what makes main effects of the other side."""

    family = "constant"

    def base(self, A: Any, B: Any) -> np.ndarray:
        return np.ones((n_samples(A), n_samples(B)))


class _SameObject(Kernel):
    """One where both are the same object, else zero."""

    family = "identity"

    def base(self, A: Any, B: Any) -> np.ndarray:
        codes: dict[Hashable, int] = {}
        left, right = ([codes.setdefault(key, len(codes)) for key in keys] for keys in (A, B))
        return np.asarray(np.equal.outer(left, right), dtype=float)


@dataclass(eq=False, repr=False)
class PairKernel(Kernel):
    """The product of a kernel of left objects and one of right objects; see :func:`pairs`.

    With ``symmetry`` 1 it is made the same for a pair and its reverse, with -1 the opposite.
    """

    left: Kernel
    right: Kernel
    symmetry: int = 0

    family = "pair"
    takes_objects = True

    @property
    def sure(self) -> bool:  # type: ignore[override]
        """Whether both factors are."""
        return self.left.sure and self.right.sure

    @property
    def name(self) -> str:
        return f"{self.left.name} x {self.right.name}"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Kernel:
        shared = {} if shared is None else shared
        # banks of all products have each factor many times
        sides = shared.get("sides of pairs")
        if sides is None:
            used = checked_pairs(A).compact()
            sides = shared["sides of pairs"] = [(used.left, {}), (used.right, {})]
        factors = []
        for kernel, (side, known) in zip((self.left, self.right), sides, strict=True):
            key = ("settled", id(kernel))
            if key not in known:
                known[key] = kernel.resolve(objects_for(kernel, side), known)
            factors.append(known[key])
        return self._with(left=factors[0], right=factors[1])

    def base(self, A: Any, B: Any) -> np.ndarray:
        first, second = checked_pairs(A).compact(), checked_pairs(B).compact()
        (a, b), (c, d) = first.index.T, second.index.T

        def matrix(kernel: Kernel, one: Side, other: Side) -> np.ndarray:
            here = objects_for(kernel, one)
            return kernel(here, None if one is other else objects_for(kernel, other))

        if A is B:
            second = first
        left = matrix(self.left, first.left, second.left)
        right = matrix(self.right, first.right, second.right)
        if not self.symmetry:
            return left[np.ix_(a, c)] * right[np.ix_(b, d)]
        out = left[np.ix_(a, c)] * right[np.ix_(b, d)] + left[np.ix_(b, d)] * right[np.ix_(a, c)]
        out += self.symmetry * (
            left[np.ix_(a, d)] * right[np.ix_(b, c)] + left[np.ix_(b, c)] * right[np.ix_(a, d)]
        )
        return np.asarray(0.25 * out)

    def base_diag(self, A: Any) -> np.ndarray:
        used = checked_pairs(A).compact()
        left, right = (
            kernel(objects_for(kernel, side)) if self.symmetry else kernel.diag(objects_for(kernel, side))
            for kernel, side in ((self.left, used.left), (self.right, used.right))
        )
        a, b = used.index.T
        if not self.symmetry:
            return np.asarray(left[a] * right[b])
        out = (
            left[a, a] * right[b, b]
            + left[b, b] * right[a, a]
            + 2.0 * self.symmetry * left[a, b] * right[a, b]
        )
        return np.asarray(0.25 * out)


def only_identity(kernels: Sequence[Kernel], weights: np.ndarray) -> tuple[str, ...]:
    """Say so where all weight is on kernels that only ask whether the objects of a side are the same."""
    total = np.atleast_2d(weights).sum(axis=0)
    active = [kernel for kernel, weight in zip(kernels, total, strict=False) if weight > 0]
    pairs = [kernel for kernel in active if isinstance(kernel, PairKernel)]
    for which in ("left", "right"):
        # made symmetric, they have the other end to go by
        if pairs and all(isinstance(getattr(k, which), _SameObject) and not k.symmetry for k in pairs):
            return (
                f"All weight is on kernels that only ask whether two {which} objects are the same (identity): a new "
                f"{which} object is predicted by the intercept alone.",
            )
    return ()


def checked_pairs(A: Any) -> Pairs:
    """Return samples that are pairs, or raise."""
    if not isinstance(A, Pairs):
        raise ValueError(f"kernels of pairs take X = Pairs(left, right, index), got {type(A).__name__}")
    return A


def objects_for(kernel: Kernel, side: Side) -> Any:
    """Return the objects of a side as a kernel takes them."""
    return side.keys() if isinstance(kernel, _SameObject) else side.objects


@dataclass(eq=False, repr=False)
class PairStack(KernelSpec):
    """All products of kernels of two sides; see :func:`pairs`."""

    left: Any
    right: Any = None
    main: bool = True
    identity: bool = True
    symmetric: Any = False

    _no_columns = "kernels of pairs are on two tables: choose columns inside left= and right="

    def expand(self, schema: Schema) -> list[Kernel]:
        if schema.sides is None:
            raise ValueError(
                "kernels of pairs need pairs of objects as samples: X = Pairs(left, right, index)"
            )
        symmetry = _symmetry(self.symmetric)
        if symmetry and not schema.one_kind:
            raise ValueError(
                f"symmetric={self.symmetric!r} needs pairs of one kind, X = Pairs(objects, index=pairs), and these "
                "have left and right objects"
            )
        specs = (self.left, self.left if self.right is None else self.right)
        sides = []
        for spec, own in zip(specs, schema.sides, strict=True):
            kernels = expand_kernels(spec, own)
            given = [kernel.name for kernel in kernels if kernel.always is not None]
            if given:
                raise ValueError(
                    f"{given[0]!r} always counts, and factors of pairs cannot: leave kernels.always out"
                )
            sides.append(kernels)
        if symmetry and self.right is None:
            sides[1] = sides[0]
        extra = [_AllAlike()] * self.main + [_SameObject()] * self.identity
        lefts, rights = ([*kernels, *extra] for kernels in sides)
        out: list[Kernel] = []
        for i, one in enumerate(lefts):
            for j, other in enumerate(rights):
                if one is other and one in extra:
                    continue  # the intercept, and the noise
                if symmetry and self.right is None and j < i:
                    continue
                out.append(PairKernel(one, other, symmetry))
        return out

    def groups(self, X: Pairs, side: str = "left") -> list[str]:
        """Return the left or the right factor of every kernel, by name: ``groups`` of :class:`norms.Grouped`.

        >>> from kernelweave import Pairs, kernels as kw
        >>> bank = kw.pairs(kw.held([np.eye(2)], names=["a"]), kw.held([np.eye(3)], names=["b"]), identity=False)
        >>> bank.groups(Pairs.from_grid(2, 3, np.ones((2, 3))), "right")
        ['b', 'constant', 'b']
        """
        if side not in ("left", "right"):
            raise ValueError(f"side must be 'left' or 'right', got {side!r}")
        return [str(getattr(kernel, side).name) for kernel in self.expand(Schema.of(checked_pairs(X)))]


def _symmetry(symmetric: Any) -> int:
    if isinstance(symmetric, bool | str) and symmetric in SYMMETRIES:
        return SYMMETRIES[symmetric]
    raise ValueError(f"symmetric must be False, 'symmetric' or 'antisymmetric', got {symmetric!r}")


def pairs(
    left: Any, right: Any = None, *, main: bool = True, identity: bool = True, symmetric: bool | str = False
) -> PairStack:
    """Return the kernels of pairs: every kernel of left objects times every kernel of right objects.

    Parameters
    ----------
    left, right : kernels, or kernel matrices of shape (m, objects, objects)
        Kernels of the left and of the right objects; of pairs of one kind the left ones may stand for both.
    main : bool, default=True
        Whether each kernel of one side is there by itself as well: effects of objects that do not depend on their
        partner.
    identity : bool, default=True
        Whether each side has a kernel more that is one for the same object and else zero: effects of single objects
        that nothing else explains (and, times a kernel of the other side, effects of its own for every object).  A new
        object has none.
    symmetric : {False, "symmetric", "antisymmetric"}, default=False
        For pairs of one kind, whether the order of a pair makes no difference, or changes the sign.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import Pairs, kernels as kw
    >>> X = Pairs.from_grid(np.eye(3), np.eye(2), np.ones((3, 2)))
    >>> bank = kw.pairs(left=kw.linear(), right=kw.gaussian([1.0, 2.0]), identity=False)
    >>> [kernel.name for kernel in bank.expand(kw.Schema.of(X))][:3]
    ['linear x gaussian(width=1)', 'linear x gaussian(width=2)', 'linear x constant']
    """
    from .holder import held

    _symmetry(symmetric)
    for name, switch in (("main", main), ("identity", identity)):
        if not isinstance(switch, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {switch!r}")
    specs = [
        held(spec) if _is_matrices(spec) else spec if spec is None else as_spec(spec)
        for spec in (left, right)
    ]
    if specs[0] is None:
        raise ValueError("left is missing: give kernels of the left objects, or their kernel matrices")
    return PairStack(specs[0], specs[1], bool(main), bool(identity), symmetric)


def _is_matrices(spec: Any) -> bool:
    """Whether kernels are given as matrices, in one array or a list."""
    if isinstance(spec, list | tuple) and spec:
        return all(getattr(one, "ndim", 0) == 2 for one in spec)
    return getattr(spec, "ndim", 0) in (2, 3)


def factors_of(kernels: Sequence[PairKernel]) -> tuple[list[Kernel], list[Kernel], np.ndarray]:
    """Return the different kernels of both sides, and which two of them each kernel is the product of, ``(m, 2)``."""
    lefts, rights = {id(k.left): k.left for k in kernels}, {id(k.right): k.right for k in kernels}
    place = [{key: number for number, key in enumerate(side)} for side in (lefts, rights)]
    terms = [[place[0][id(k.left)], place[1][id(k.right)]] for k in kernels]
    return list(lefts.values()), list(rights.values()), np.array(terms, dtype=np.intp).reshape(-1, 2)


def plain_pairs(pairs: Pairs) -> Pairs:
    """Return pairs whose objects are numbers without names of columns, where they are tables of numbers."""
    left = _plain_side(pairs.left)
    return pairs.with_sides(left, left if pairs.one_kind else _plain_side(pairs.right))


def _plain_side(side: Side) -> Side:
    objects = side.objects
    if isinstance(objects, Views):
        objects = objects.bare().table()
    elif hasattr(objects, "iloc") and getattr(objects, "ndim", 0) == 2:
        kinds = {np.dtype(kind).kind if isinstance(kind, np.dtype) else "O" for kind in objects.dtypes}
        objects = objects.to_numpy(dtype=float if kinds <= set("fiub") else object)
    elif isinstance(objects, np.ndarray) and objects.ndim == 2 and objects.dtype.kind in "fiub":
        objects = np.asarray(objects, dtype=float)
    return Side(objects, side.names)
