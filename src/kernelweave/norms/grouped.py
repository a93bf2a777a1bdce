"""Norms of groups of kernels: one norm within groups, another between them."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._components import is_number, nearest
from .._numerics.grouped import grouped_boundary, project_grouped, prox_grouped
from .._numerics.quadratic import Boundary
from .._typing import Array
from ._base import Norm, p_norm
from .lp import Lp
from .simplex import L1

FORMS = (
    "groups must be 'views', a mapping from a group's name to its kernels (by name or number), or the group of every "
    "kernel"
)


def group_labels(
    groups: Any, names: Sequence[str], views: Sequence[str] | None, held: Collection[int] = ()
) -> list[str]:
    """Return the name of every kernel's group, ``groups`` as of ``Grouped``.

    ``views`` is None where there are matrices alone; the kernels in ``held`` always count, and are in no group.
    """
    if isinstance(groups, str):
        if groups != "views":
            raise ValueError(f"{FORMS}; got {groups!r}")
        if views is None:
            raise ValueError(
                "groups='views' needs kernels that know their columns, and here there are only matrices: say the "
                "groups, as a mapping or as the group of every kernel"
            )
        return [str(view) for view in views]
    if not isinstance(groups, Mapping):
        try:
            each = [str(group) for group in groups]
        except TypeError:
            raise ValueError(f"{FORMS}; got {groups!r}") from None
        if len(each) != len(names):
            raise ValueError(
                f"groups says {len(each)} groups for {len(names)} kernels: one for each is needed"
            )
        return each
    if not groups:
        raise ValueError("groups names no group: without groups take norm='l1', or a number p")
    labels: list[str | None] = [None] * len(names)
    for group, members in groups.items():
        several = isinstance(members, Iterable) and not isinstance(members, str)
        made = list(members) if several else [members]
        if not made:
            raise ValueError(f"group {group!r} has no kernels: leave it out")
        for member in made:
            if isinstance(member, str):
                if member not in names:
                    raise ValueError(
                        f"group {group!r} names a kernel {member!r} that there is not.{nearest(member, list(names))} "
                        f"Kernels: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
                    )
                j = list(names).index(member)
            else:
                try:
                    j = operator.index(member)
                except TypeError:
                    message = f"group {group!r} has {member!r}, which is no kernel's name or number"
                    raise ValueError(message) from None
                if not 0 <= j < len(names):
                    message = f"group {group!r} has kernel {j}, but there are {len(names)}, counted from 0"
                    raise ValueError(message)
            if j in held:
                raise ValueError(
                    f"kernel {names[j]!r} always counts (kernels.always), so that it is in no group: leave it out of "
                    f"{str(group)!r}"
                )
            if labels[j] is not None and labels[j] != str(group):
                raise ValueError(
                    f"kernel {names[j]!r} is in the groups {labels[j]!r} and {str(group)!r}: put it into the bank "
                    "twice, under two names (.named), and each of the two into one group"
                )
            labels[j] = str(group)
    return [names[j] if label is None else label for j, label in enumerate(labels)]


class Grouped(Norm, registered_as="grouped"):
    """Weights in ``sum_g (sum_{j in g} d_j^q)^(p/q) <= 1``: p (outer) chooses groups, q (inner) kernels in a group.

    ``outer="l1", inner=2`` keeps few groups and all kernels of those; ``outer=2, inner="l1"`` keeps every group and few
    kernels of each.  Kernels that belong to two groups are put into the bank twice, once for each.

    Parameters
    ----------
    outer, inner : number >= 1 or "l1"
        Kloft's exponents p between the groups and q within them.
    groups : "views", mapping or sequence
        ``"views"``: kernels on the same columns are a group.  A mapping from a group's name to its kernels, by name or
        number (counted from 0 in the bank); kernels that it leaves out are groups of their own.  A sequence: the group
        of every kernel.

    Examples
    --------
    >>> import numpy as np
    >>> norm = Grouped(outer="l1", inner=2, groups=["a", "a", "b"]).for_kernels(3)
    >>> norm.weights(np.array([3.0, 4.0, 4.5]))  # the first group has |(3, 4)| = 5, the other 4.5
    array([0.6, 0.8, 0. ])
    """

    has_prox = has_projection = has_boundary = True
    label_text = "grouped({0.outer_norm.p:.3g}, {0.inner_norm.p:.3g})"
    allowed_text = (
        "non-negative weights whose {0.inner_norm.p:g}-norms within the groups have a "
        "{0.outer_norm.p:g}-norm of at most one"
    )

    def __init__(self, outer: Any = "l1", inner: Any = 2, groups: Any = "views") -> None:
        self.outer = outer
        self.inner = inner
        self.groups = groups
        self.labels: Any = None  # number of every kernel's group, once bound to kernels
        self.group_names: tuple[str, ...] = ()

    @property
    def analytic(self) -> bool:  # type: ignore[override]
        return self.outer_norm.p > 1.0 and self.inner_norm.p > 1.0

    smooth_conjugate = smooth_on_blocks = analytic  # type: ignore[assignment]

    @property
    def constrained(self) -> bool:  # type: ignore[override]
        return not self.analytic

    @property
    def update_rate(self) -> float:  # type: ignore[override]
        return max(self.outer_norm.update_rate, self.inner_norm.update_rate)

    @property
    def outer_norm(self) -> L1 | Lp:
        """Norm between the groups."""
        return _norm_of(self.outer)

    @property
    def inner_norm(self) -> L1 | Lp:
        """Norm within the groups."""
        return _norm_of(self.inner)

    def check(self, m: int) -> None:
        for name, value in (("outer", self.outer), ("inner", self.inner)):
            if not 1.0 <= _norm_of(value).p < np.inf:
                raise ValueError(
                    f"{name} of Grouped must be 'l1' or a finite number >= 1, Kloft's exponent on the weights, got "
                    f"{value!r}; for equal weights in a group add its kernels up to one"
                )
        self.for_kernels(m)

    def with_names(
        self, names: Sequence[str], views: Sequence[str] | None, held: Collection[int] = ()
    ) -> Norm:
        labels = group_labels(self.groups, names, views, held)
        return self._bound([label for j, label in enumerate(labels) if j not in held])

    def for_kernels(self, m: int) -> Grouped:
        if self.labels is None:
            return self._bound(group_labels(self.groups, [f"kernel {j}" for j in range(m)], None))
        if self.labels.size != m:
            raise ValueError(f"the groups are of {self.labels.size} kernels, the bank has {m}")
        return self

    def kernel_groups(self, m: int) -> list[str | None]:
        settled = self.for_kernels(m)
        return [settled.group_names[g] for g in settled.labels]

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        if self.labels is None:
            raise ValueError("groups are not bound to kernels yet")
        return self._bound([self.group_names[g] for g in self.labels[kernels]])

    def _bound(self, groups: Sequence[str]) -> Grouped:
        bound = copy(self)
        names = tuple(dict.fromkeys(groups))
        number = {name: g for g, name in enumerate(names)}
        bound.group_names, bound.labels = names, np.array([number[name] for name in groups], dtype=np.intp)
        return bound

    def members(self, m: int) -> list[NDArray[np.intp]]:
        """Numbers of the kernels of every group."""
        settled = self.for_kernels(m)
        return [np.flatnonzero(settled.labels == g) for g in range(len(settled.group_names))]

    def group_weights(self, weights: Array) -> Array:
        """Weight of every group, ``|d_g|_q``, in the order of ``group_names``."""
        q, top = self.inner_norm.p, float(np.max(weights, initial=0.0)) or 1.0
        sums = [float(np.sum((weights[at] / top) ** q)) for at in self.members(weights.size)]
        return np.array([top * each ** (1.0 / q) for each in sums])

    def group_lengths(self, t: Array) -> Array:
        """Norm of the block norms of every group."""
        return np.array([np.sqrt(2.0 * self.inner_norm.half_square(t[at])) for at in self.members(t.size)])

    def half_square(self, t: Array) -> float:
        return self.outer_norm.half_square(self.group_lengths(t))

    def block_gradient(self, t: Array) -> Array:
        sizes, gradient = self.group_lengths(t), np.zeros_like(t)
        pulls = self.outer_norm.block_gradient(sizes)
        for at, size, pull in zip(self.members(t.size), sizes, pulls, strict=True):
            if size > 0:
                gradient[at] = self.inner_norm.block_gradient(t[at]) * (pull / size)
        return gradient

    @property
    def has_block_step(self) -> bool:
        # where an l1 norm chooses groups, all blocks of one leave zero together or not at all
        return self.outer_norm.p > 1.0 or self.inner_norm.p == 1.0

    def conjugate(self, s: Array) -> float:
        return self.outer_norm.conjugate(self._forms(s))

    def _forms(self, s: Array) -> Array:
        return np.array([2.0 * self.inner_norm.conjugate(s[at]) for at in self.members(s.size)])

    def weights(self, s: Array) -> Array:
        d = np.zeros_like(s)
        for at, share in zip(self.members(s.size), self.outer_norm.weights(self._forms(s)), strict=True):
            d[at] = share * self.inner_norm.weights(s[at])
        return d

    def weights_of_blocks(self, t: Array) -> Array:
        d = np.zeros_like(t)
        shares = self.outer_norm.weights_of_blocks(self.group_lengths(t))
        for at, share in zip(self.members(t.size), shares, strict=True):
            d[at] = share * self.inner_norm.weights_of_blocks(t[at])
        return d

    def inside(self, weights: Array) -> Array:
        inner = 0.8 * self.scaled(weights)
        return np.concatenate([inner, 1.1 * self.group_weights(inner)])

    def boundary(self, place: Array) -> Boundary:
        # with the sizes of the groups as numbers of their own a group may vanish without a corner
        return grouped_boundary(place, self.labels, self.outer_norm.p, self.inner_norm.p)

    def scaled(self, weights: Array) -> Array:
        return weights / p_norm(self.group_weights(weights), self.outer_norm.p)

    def project(self, weights: Array) -> Array:
        nearest = project_grouped(weights, self.members(weights.size), self.outer_norm.p, self.inner_norm.p)
        # on the boundary exactly, where it is not inside: a price is rounded
        return self.scaled(nearest) if np.any(nearest < weights) and np.any(nearest > 0) else nearest

    def prox(self, t: Array, mu: float) -> Array:
        p, q = self.outer_norm.p, self.inner_norm.p
        return prox_grouped(t, mu, self.members(t.size), 2.0 * p / (p + 1.0), 2.0 * q / (q + 1.0))


def _norm_of(exponent: Any) -> L1 | Lp:
    """Norm of Kloft's exponent, with p = nan for what is none."""
    p = {"l1": 1.0}.get(exponent, np.nan) if isinstance(exponent, str) else np.nan
    if is_number(exponent):
        p = float(exponent)
    return L1() if p == 1.0 else Lp(p)
