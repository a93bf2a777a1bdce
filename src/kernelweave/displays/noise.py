"""Where to look for wrong labels first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._style import ACCENT, FAINT, INK, axes_to_draw_on, shorten, tidy

__all__ = ["NoiseDisplay"]


class NoiseDisplay:
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
        made = cls(
            estimator.label_quality_,
            noise_rate=estimator.noise_rate_,
            interval=estimator.noise_rate_interval_,
            names=names,
            wrong=wrong,
        )
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

        Returns
        -------
        self
        """
        ax = axes_to_draw_on(ax, (6.4, 3.8))
        n = len(self.order)
        ranks, quality = np.arange(1, n + 1), self.label_quality[self.order]
        if self.interval is not None:
            low, high = (n * float(end) for end in self.interval)
            ax.axvspan(low, max(high, low + 1e-9), color=FAINT, label="where the number of wrong labels is")
        if self.noise_rate is not None:
            at = n * float(self.noise_rate)
            ax.axvline(
                at, color=ACCENT, linestyle="--", linewidth=1.4, label=f"about {at:.0f} labels are wrong"
            )
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
        ax.set_xlim(1, max(n, 2))
        ax.set_ylim(-0.02, 1.04)
        ax.set_xlabel("training samples, the most suspicious first")
        ax.set_ylabel("probability that the label is right")
        if self.interval is not None or self.noise_rate is not None or self.wrong is not None:
            ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.66), fontsize="small")
        tidy(ax, "y")
        ax.set_title("Suspected labels")
        self.ax_, self.figure_ = ax, ax.figure
        return self
