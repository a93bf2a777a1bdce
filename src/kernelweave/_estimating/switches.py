"""Parameters that are on or off."""

from __future__ import annotations

import numpy as np

__all__ = ["check_switch"]


def check_switch(name: str, value: object) -> None:
    """Raise where a switch is neither on nor off: ``center='no'`` would be on."""
    if not isinstance(value, bool | np.bool_) and not (
        isinstance(value, int | float | np.number) and value in (0, 1)
    ):
        raise ValueError(f"{name} must be True or False, got {value!r}")
