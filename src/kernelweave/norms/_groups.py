"""Which group every kernel belongs to, from what a user says."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .._components import nearest

__all__ = ["group_labels"]

FORMS = (
    "groups must be 'views', a mapping from a group's name to its kernels (by name or number), or the group of every "
    "kernel"
)


def group_labels(
    groups: Any, names: Sequence[str], views: Sequence[str] | None, held: Collection[int] = ()
) -> list[str]:
    """Return the name of every kernel's group.

    Parameters
    ----------
    groups : "views", mapping or sequence
        As of ``Grouped``.
    names : sequence of m str
        Names of the kernels.
    views : sequence of m str or None
        Views of the kernels; None where they are not known (a bare problem, without an estimator).
    held : collection of int
        Kernels that always count: a mapping must not name them.
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
    if isinstance(groups, Mapping):
        return _of_mapping(groups, names, held)
    try:
        labels = [str(group) for group in groups]
    except TypeError:
        raise ValueError(f"{FORMS}; got {groups!r}") from None
    if len(labels) != len(names):
        raise ValueError(f"groups says {len(labels)} groups for {len(names)} kernels: one for each is needed")
    return labels


def _of_mapping(groups: Mapping[Any, Any], names: Sequence[str], held: Collection[int]) -> list[str]:
    if not groups:
        raise ValueError("groups names no group: without groups take norm='l1', or a number p")
    labels: list[str | None] = [None] * len(names)
    for group, members in groups.items():
        for member in _members(members, group):
            j = _number(member, names, group)
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


def _members(members: Any, group: Any) -> list[Any]:
    """Kernels of a group, of which there is at least one."""
    several = isinstance(members, Iterable) and not isinstance(members, str)
    made = list(members) if several else [members]
    if not made:
        raise ValueError(f"group {group!r} has no kernels: leave it out")
    return made


def _number(member: Any, names: Sequence[str], group: Any) -> int:
    if isinstance(member, str):
        if member not in names:
            raise ValueError(
                f"group {group!r} names a kernel {member!r} that there is not.{nearest(member, list(names))} "
                f"Kernels: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
            )
        return list(names).index(member)
    try:
        j = operator.index(member)
    except TypeError:
        raise ValueError(f"group {group!r} has {member!r}, which is no kernel's name or number") from None
    if not 0 <= j < len(names):
        raise ValueError(f"group {group!r} has kernel {j}, but there are {len(names)}, counted from 0")
    return j
