"""Which view a kernel belongs to: what the columns that it looks at are called."""

from __future__ import annotations

from ._kernel import Kernel
from ._selection import describe
from .columns import OnColumns

__all__ = ["ALL", "SEVERAL", "view_of"]

ALL = "all features"
SEVERAL = "several views"


def view_of(kernel: Kernel) -> str:
    """Return the label of the columns that a kernel is on; a held matrix is a view of its own.

    >>> from kernelweave import kernels as kw
    >>> view_of(kw.linear()), view_of(kw.linear().on([0, 1])), view_of(kw.linear().on(0) * kw.linear().on(1))
    ('all features', 'features 0, 1', 'several views')
    """
    if kernel.family == "held":
        return str(kernel.name)
    labels = set(_labels(kernel))
    return ALL if not labels else labels.pop() if len(labels) == 1 else SEVERAL


def _labels(kernel: Kernel) -> list[str]:
    """Labels of the columns that a kernel, or a kernel inside it, is on."""
    if isinstance(kernel, OnColumns):
        return [str(kernel.label or describe(kernel.columns))]
    inside = list(getattr(kernel, "kernels", ()) or ())
    if hasattr(kernel, "kernel"):
        inside.append(kernel.kernel)
    found = [labels for one in inside for labels in (_labels(one) or [ALL])]
    return found if set(found) != {ALL} else []
