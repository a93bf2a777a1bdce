"""Norms on the blocks and what they say of the weights."""

from __future__ import annotations

import re
from typing import Any

from .._components import is_number
from ._base import Norm, registry
from .elastic import Elastic, ElasticBlocks, ElasticNet
from .fixed import Fixed, FixedParts, Uniform
from .grouped import Grouped
from .lp import Block, Lp, Maximum
from .simplex import L1, AtMost, Entropy

__all__ = [
    "L1", "AtMost", "Block", "Elastic", "ElasticBlocks", "ElasticNet", "Entropy", "Fixed", "FixedParts",
    "Grouped", "Lp", "Maximum", "Norm", "Uniform", "make_norm", "norm_from_text", "registry",
]  # fmt: skip


def norm_from_text(text: str) -> Norm:
    """Return the norm that a name with its first parameters stands for, as the command line takes it.

    >>> norm_from_text("at_most:5"), norm_from_text("grouped:l1,1.5")
    (AtMost(k=5), Grouped(inner=1.5))
    """
    name, _, values = text.partition(":")
    given: list[float | str] = []
    for word in map(str.strip, values.split(",")):
        try:
            value = float(word)
        except ValueError:
            given.append(word)
        else:
            given.append(int(value) if value.is_integer() and word.lstrip("+-").isdigit() else value)
    try:
        return registry[name](*given)
    except TypeError as error:
        raise ValueError(f"{text!r}: {name} does not take {len(given)} parameters") from error


def make_norm(norm: Any) -> Norm:
    """Return the norm that a number (Kloft's p), a name or an instance stands for.

    Examples
    --------
    >>> make_norm(1), make_norm("l2"), make_norm("uniform")
    (L1(), Lp(p=2), Uniform())
    """
    if isinstance(norm, str) and norm not in registry and re.fullmatch(r"l(\d+(\.\d*)?|inf)", norm):
        norm = float(norm[1:])  # as its label is written
    if is_number(norm):
        p = float(norm)
        made: Norm = L1() if p == 1.0 else Lp(p=p)
        made.check(1)
        return made
    return registry.make(norm, Norm)


__dir__ = __all__.copy  # completion shows the public names alone
