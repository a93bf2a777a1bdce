"""How views move one decision away from the average one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._style import ACCENT, INK, axes_to_draw_on, shorten, tidy

__all__ = ["ShapleyDisplay"]


class ShapleyDisplay:
    """Shapley values of views for one decision: a bar for each, from the mean decision to that of the sample.

    Parameters
    ----------
    values : array of shape (views,)
        By how much each view moves the decision value.
    view_names : sequence of str
    base : float
        Mean decision value, where the first bar begins.
    title : str, optional
        Whose decision it is.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    bars_ : bar container

    Examples
    --------
    >>> ShapleyDisplay([0.5, -1.5], ["mrna", "age"], base=0.25).steps()
    [('age', 0.25, -1.25), ('mrna', -1.25, -0.75)]
    """

    def __init__(self, values: Any, view_names: Any, base: float = 0.0, title: str = "") -> None:
        self.values = np.asarray(values, dtype=float)
        self.view_names = [str(name) for name in view_names]
        self.base, self.title = float(base), title
        if self.values.shape != (len(self.view_names),):
            raise ValueError(
                f"values must be one number for each of {len(self.view_names)} views, got shape {self.values.shape}"
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        sample: int = 0,
        *,
        background: Any = None,
        class_: Any = None,
        views: Any = None,
        ax: Any = None,
        top: int = 12,
    ) -> ShapleyDisplay:
        """Compute the values of one sample's decision, and draw them.

        Parameters
        ----------
        estimator : estimator or pipeline
            Fitted.
        X : samples
            As for its ``predict``.
        sample : int, default=0
            Row of X that is explained.
        background : samples, optional
            What decisions are compared with, best the training samples; X itself by default.
        class_ : label, optional
            Whose decision value, where every class has one; by default that of the predicted class.
        views : sequence or function, optional
            As for ``inspection.kernel_views``.
        ax : matplotlib axes, optional
        top : int, default=12
            Views with a bar of their own; the others share one.
        """
        from ..inspection import shapley_values

        found = shapley_values(estimator, X, background, views=views)
        values, base, label = found.of(sample, class_)
        title = f"sample {sample}" if label is None else f"sample {sample}: decision for {label}"
        return cls(values, found.view_names, base, title).plot(ax=ax, top=top)

    def steps(self, top: int = 12) -> list[tuple[str, float, float]]:
        """Return name, beginning and end of every bar: the largest first, small ones of more than ``top`` together."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        rows = [(self.view_names[v], float(self.values[v])) for v in order]
        if len(rows) > top:
            rest = sum(value for _, value in rows[top - 1 :])
            rows = [*rows[: top - 1], (f"{len(rows) - top + 1} other views", rest)]
        out, at = [], self.base
        for name, value in rows:
            out.append((name, at, at + value))
            at += value
        return out

    def plot(self, *, ax: Any = None, top: int = 12) -> ShapleyDisplay:
        """Draw the bars from the mean decision (top) to that of the sample (bottom).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        top : int, default=12
            Views with a bar of their own.
        """
        steps = self.steps(top)
        ax = axes_to_draw_on(ax, (7.0, 1.6 + 0.35 * len(steps)))
        places = np.arange(len(steps))
        moves = np.array([end - begin for _, begin, end in steps])
        # against the class: lighter and hatched, so that grey is enough
        self.bars_ = ax.barh(
            places,
            moves,
            left=[begin for _, begin, _ in steps],
            color=[INK if move >= 0 else ACCENT for move in moves],
            hatch=["" if move >= 0 else "///" for move in moves],
            edgecolor="white",
        )
        ends = [end for _, _, end in steps]
        for place, begin, end in zip(places[1:], ends[:-1], ends[:-1], strict=True):
            ax.plot([begin, end], [place - 1, place], color=INK, linewidth=0.8)
        for place, move, (_, begin, end) in zip(places, moves, steps, strict=True):
            ax.annotate(
                f"{move:+.2g}", (max(begin, end), place), xytext=(3, 0), textcoords="offset points", va="center",
                fontsize="small",
            )  # fmt: skip
        ax.axvline(self.base, color=INK, linewidth=0.8, linestyle=":")
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_yticks(places, [shorten(name) for name, _, _ in steps])
        ax.invert_yaxis()
        ax.margins(x=0.15)
        ax.set_xlabel(
            f"decision value: {self.base:.2g} on average (dotted), {ends[-1] if ends else self.base:.2g} here"
        )
        ax.set_title(self.title)
        tidy(ax, "x")
        self.ax_, self.figure_ = ax, ax.figure
        return self
