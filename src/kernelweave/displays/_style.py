"""What the displays share: axes to draw on, and how they look."""

from __future__ import annotations

from typing import Any

from .colours import ACCENT, FAINT, INK, LINES, shorten, tidy

__all__ = ["ACCENT", "FAINT", "INK", "LINES", "axes_to_draw_on", "shorten", "tidy"]


def axes_to_draw_on(ax: Any, size: tuple[float, float]) -> Any:
    """Return ``ax``, or the axes of a new pyplot figure where it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]
