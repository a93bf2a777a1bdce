"""Pictures of decisions: how views move one, variance of targets by view, labels that may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..inspection import shapley_values
from .colours import ACCENT, FAINT, INK, Display, axes_to_draw_on, shorten


class ShapleyDisplay(Display):
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
        estimator, X, background, views
            As for ``inspection.shapley_values``.
        sample : int, default=0
            Row of X that is explained.
        class_ : label, optional
            Whose decision value, where every class has one; by default that of the predicted class.
        ax, top
            As for ``plot``.
        """
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
        top : int, default=12
            Views with a bar of their own.
        """
        steps = self.steps(top)
        ax = axes_to_draw_on(ax, (7.0, 1.6 + 0.35 * len(steps)))
        places = np.arange(len(steps))
        moves = np.array([end - begin for _, begin, end in steps])
        # against the class: lighter and hatched, so that grey is enough
        begins, colors = [begin for _, begin, _ in steps], [INK if move >= 0 else ACCENT for move in moves]
        hatch = ["" if move >= 0 else "///" for move in moves]
        self.bars_ = ax.barh(places, moves, left=begins, color=colors, hatch=hatch, edgecolor="white")
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
        here = ends[-1] if ends else self.base
        said = f"decision value: {self.base:.2g} on average (dotted), {here:.2g} here"
        return self._drawn_on(ax, "x", title=self.title, xlabel=said)


class VarianceDisplay(Display):
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
        return self._drawn_on(ax, "x", xlabel=self.split.what)

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
        ax.figure.colorbar(self.density_, ax=ax, label="targets")
        xlabel, ylabel = (f"{self.split.what}, {shorten(name)}" for name in (first, second))
        return self._drawn_on(ax, "both", xlabel=xlabel, ylabel=ylabel)


class NoiseDisplay(Display):
    """Probability that each training label is right, the most suspicious first.

    Parameters
    ----------
    label_quality : array of shape (n,)
    noise_rate : float, optional
        Share of labels that are thought to be wrong.
    interval : pair of float, optional
        Where that share is.
    names : sequence of n str, optional
        What the samples are called; by default their positions.
    wrong : array of shape (n,) of bool, optional
        Which labels are known to be wrong, in a trial with flipped labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line
    order : array of shape (n,)
        Samples, the most suspicious first.

    Examples
    --------
    >>> NoiseDisplay([0.9, 0.1, 0.6]).order.tolist()
    [1, 2, 0]
    """

    def __init__(
        self,
        label_quality: Any,
        *,
        noise_rate: float | None = None,
        interval: tuple[float, float] | None = None,
        names: Sequence[Any] | None = None,
        wrong: Any = None,
    ) -> None:
        self.label_quality = np.asarray(label_quality, dtype=float)
        if self.label_quality.ndim != 1:
            raise ValueError(
                f"label_quality must be one number per sample, got shape {self.label_quality.shape}"
            )
        n = len(self.label_quality)
        for what, given in (("names", names), ("wrong", wrong)):
            if given is not None and len(given) != n:
                raise ValueError(f"{what} has {len(given)} entries, there are {n} samples")
        self.noise_rate, self.interval = noise_rate, interval
        self.names = [str(name) for name in (range(n) if names is None else names)]
        self.wrong = None if wrong is None else np.asarray(wrong, dtype=bool)
        self.order = np.argsort(self.label_quality, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Any = None,
        wrong: Any = None,
        ax: Any = None,
        top: int = 8,
        **kwargs: Any,
    ) -> NoiseDisplay:
        """Draw what a fitted ``NoisyLabelMKLClassifier`` thinks of its training labels.

        The parameters are those of the class and of ``plot``.
        """
        check_is_fitted(estimator, "label_quality_")
        rate, interval = estimator.noise_rate_, estimator.noise_rate_interval_
        made = cls(estimator.label_quality_, noise_rate=rate, interval=interval, names=names, wrong=wrong)
        return made.plot(ax=ax, top=top, **kwargs)

    def plot(self, *, ax: Any = None, top: int = 8, **kwargs: Any) -> NoiseDisplay:
        """Draw the curve, and where it is expected to turn.

        Parameters
        ----------
        ax : matplotlib axes, optional
        top : int, default=8
            Samples to name.
        **kwargs
            For ``Axes.plot``.
        """
        ax = axes_to_draw_on(ax, (6.4, 3.8))
        n = len(self.order)
        ranks, quality = np.arange(1, n + 1), self.label_quality[self.order]
        if self.interval is not None:
            low, high = (n * float(end) for end in self.interval)
            ax.axvspan(low, max(high, low + 1e-9), color=FAINT, label="where the number of wrong labels is")
        if self.noise_rate is not None:
            at = n * float(self.noise_rate)
            label = f"about {at:.0f} labels are wrong"
            ax.axvline(at, color=ACCENT, linestyle="--", linewidth=1.4, label=label)
        (self.line_,) = ax.plot(ranks, quality, **{"color": INK, "linewidth": 1.6, **kwargs})
        if self.wrong is not None:
            wrong = self.wrong[self.order]
            ax.plot(
                ranks[wrong], quality[wrong], linestyle="", marker="x", color=ACCENT, markersize=5,
                label="known to be wrong",
            )  # fmt: skip
        if top > 0:
            lines = [f"{shorten(self.names[i], 20)}  {self.label_quality[i]:.2f}" for i in self.order[:top]]
            ax.text(
                0.985, 0.03, "look here first:\n" + "\n".join(lines), transform=ax.transAxes, ha="right", va="bottom",
                fontsize="small", linespacing=1.35,
                bbox={"facecolor": "white", "edgecolor": FAINT, "boxstyle": "round,pad=0.5"},
            )  # fmt: skip
        if self.interval is not None or self.noise_rate is not None or self.wrong is not None:
            ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.66), fontsize="small")
        return self._drawn_on(
            ax, "y", title="Suspected labels", xlabel="training samples, the most suspicious first",
            ylabel="probability that the label is right", xlim=(1, max(n, 2)), ylim=(-0.02, 1.04),
        )  # fmt: skip
