"""Which groups of columns a fit stands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._style import ACCENT, INK, axes_to_draw_on, shorten, tidy

__all__ = ["GroupsDisplay"]


class GroupsDisplay:
    """Weights of groups of columns (gene sets, views), the heaviest first, beside their shares of the variance.

    Parameters
    ----------
    table : DataFrame
        From ``inspection.group_table``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    bars_ : bar container
        Weights.
    marks_ : matplotlib line
        Shares of the decision's variance.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = {"group": ["repair", "growth"], "weight": [0.9, 0.1], "variance": [0.8, 0.2], "size": [7, 9]}
    >>> table = pd.DataFrame(columns)
    >>> GroupsDisplay(table).labels(top=1)
    ['repair (7)']
    """

    def __init__(self, table: Any) -> None:
        lacking = {"group", "weight", "variance", "size"} - set(table.columns)
        if lacking:
            raise ValueError(
                f"the table has no column {', '.join(sorted(lacking))}: take that of inspection.group_table"
            )
        self.table = table

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, top: int = 20, **kwargs: Any
    ) -> GroupsDisplay:
        """Make the table of a fitted model, and draw it.

        Parameters
        ----------
        estimator : estimator or pipeline
            Fitted.
        X, y : samples and targets
            As for ``inspection.group_table``.
        ax : matplotlib axes, optional
        top : int, default=20
            Groups with a row.
        **kwargs
            For ``inspection.group_table``: ``n_refits``, ``n_permutations``, ...
        """
        from ..inspection import group_table

        return cls(group_table(estimator, X, y, **kwargs)).plot(ax=ax, top=top)

    def shown(self, top: int = 20) -> Any:
        """Return the rows that are drawn: at most so many, and none without weight."""
        order = np.argsort(-self.table["weight"].to_numpy(), kind="stable")
        rows = self.table.iloc[order]
        return rows[rows["weight"] > 0].head(top)

    def labels(self, top: int = 20) -> list[str]:
        """Return what stands beside the bars: the group, its size, and where it was tested how sure it is."""
        said = []
        for _, row in self.shown(top).iterrows():
            notes = [str(int(row["size"]))]
            if "selected" in row:
                notes.append(f"in {100 * row['selected']:.0f} % of refits")
            if "p_value" in row:
                notes.append(f"p = {row['p_value']:.2g}")
            said.append(f"{shorten(str(row['group']))} ({', '.join(notes)})")
        return said

    def plot(self, *, ax: Any = None, top: int = 20) -> GroupsDisplay:
        """Draw a bar for every weight and a mark for every share of the variance.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        top : int, default=20
            Groups with a row.
        """
        rows = self.shown(top)
        ax = axes_to_draw_on(ax, (7.0, 1.2 + 0.3 * len(rows)))
        places = np.arange(len(rows))
        self.bars_ = ax.barh(places, rows["weight"], color=INK, label="weight")
        (self.marks_,) = ax.plot(
            rows["variance"], places, "o", color=ACCENT, label="share of the decision's variance"
        )
        ax.set_yticks(places, self.labels(top))
        ax.invert_yaxis()
        ax.set_xlabel("share")
        weighted = int(np.sum(self.table["weight"] > 0))
        ax.set_title(f"{weighted} of {len(self.table)} groups have weight")
        # below the axes, where no bar reaches: as far as their own labels need, whatever their height
        below = -0.65 * ax.figure.dpi / ax.get_window_extent().height
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, below), ncols=2, frameon=False, fontsize="small")
        tidy(ax, "x")
        self.ax_, self.figure_ = ax, ax.figure
        return self
