"""Which views account for the variance of many targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._style import ACCENT, FAINT, INK, axes_to_draw_on, shorten, tidy

__all__ = ["VarianceDisplay"]


class VarianceDisplay:
    """Shares of variance, or parts of R2, by view: the spread over targets, or two views against each other.

    Parameters
    ----------
    split : VarianceSplit
        Of ``inspection.variance_shares`` or ``inspection.r2_split``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    boxes_ : dict of artists, of ``plot`` for several targets
    bars_ : bar container, of ``plot`` for one target
    density_ : collection, of ``plot_pair``
    """

    def __init__(self, split: Any) -> None:
        self.split = split

    def plot(self, *, ax: Any = None) -> VarianceDisplay:
        """Draw one row per view: a bar for one target, a box over several."""
        names, parts = self.split.view_names, self.split.by_view()
        ax = axes_to_draw_on(ax, (6.0, 1.0 + 0.4 * len(names)))
        places = np.arange(len(names))
        if parts.ndim == 1:
            self.bars_ = ax.barh(places, parts, color=INK)
        else:
            self.boxes_ = ax.boxplot(
                list(parts), positions=places, orientation="horizontal", widths=0.6, sym=".", patch_artist=True,
                boxprops={"facecolor": FAINT, "edgecolor": INK}, medianprops={"color": ACCENT, "linewidth": 2.0},
                flierprops={"markeredgecolor": INK, "markersize": 3},
            )  # fmt: skip
        ax.set_yticks(places, [shorten(str(name)) for name in names])
        ax.invert_yaxis()
        ax.set_xlabel(self.split.what)
        tidy(ax, "x")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def plot_pair(self, first: str, second: str, *, ax: Any = None, gridsize: int = 30) -> VarianceDisplay:
        """Draw the density of the targets over the parts of two views.

        Parameters
        ----------
        first, second : str
            Names of views.
        ax : matplotlib axes, optional
        gridsize : int, default=30
            Cells from left to right.
        """
        names, parts = self.split.view_names, self.split.by_view()
        for name in (first, second):
            if name not in names:
                raise ValueError(f"there is no view {name!r}: there are {', '.join(map(str, names))}")
        if parts.ndim == 1:
            raise ValueError("a density needs several targets; plot() shows one")
        ax = axes_to_draw_on(ax, (5.0, 4.2))
        x, y = parts[names.index(first)], parts[names.index(second)]
        self.density_ = ax.hexbin(x, y, gridsize=gridsize, mincnt=1, cmap="Blues", bins="log")
        ax.axline((0.0, 0.0), slope=1.0, color=ACCENT, linewidth=0.8)
        ax.set_xlabel(f"{self.split.what}, {shorten(first)}")
        ax.set_ylabel(f"{self.split.what}, {shorten(second)}")
        ax.figure.colorbar(self.density_, ax=ax, label="targets")
        tidy(ax, "both")
        self.ax_, self.figure_ = ax, ax.figure
        return self
