"""Axes, colours, lines and labels that all pictures share."""

from __future__ import annotations

from typing import Any, Self

#: dark, middle and light, apart in grey as well as in colour
INK = "#1b3a57"
ACCENT = "#c8641e"
FAINT = "#d9dee3"
#: line styles for curves that colour alone would not tell apart
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


def tidy(ax: Any, grid: str) -> None:
    """Take away the frame that says nothing, and put a light grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)


class Display:
    """A picture that is drawn by ``plot``, and keeps its axes and figure."""

    ax_: Any
    figure_: Any

    def _drawn_on(self, ax: Any, grid: str | None = None, **labels: Any) -> Self:
        """Label and keep the axes, tidy but for ``grid=None``, and return the display."""
        ax.set(**labels)
        if grid is not None:
            tidy(ax, grid)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def shorten(name: str, most: int = 48) -> str:
    """Cut a long name in the middle: what kernel it is and what it looks at stand at the two ends.

    Dollars are written so that matplotlib does not take what is between them for a formula.

    >>> shorten("gaussian(width=0.5) on a very long column name", 30)
    'gaussian(widt...ng column name'
    """
    if len(name) > most:
        head = (most - 3) // 2
        name = f"{name[:head]}...{name[-(most - 3 - head) :]}"
    return name.replace("$", r"\$")


def axes_to_draw_on(ax: Any, size: tuple[float, float]) -> Any:
    """Return ``ax``, or the axes of a new pyplot figure where it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]
