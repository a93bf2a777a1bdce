"""Names of modules that programs may know from an earlier version: they still answer, with a ``DeprecationWarning``."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["moved_to"]


def moved_to(new: str, old: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose contents are now in another.

    Importing the old module says nothing (registries import all modules of a room); taking a name out of it does.

    Parameters
    ----------
    new, old : str
        Names of the modules.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(new), name)
        warnings.warn(
            f"{old}.{name} is now {new}.{name}; the old name goes in version 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        return value

    return __getattr__
