"""How the weights, or the score, change with C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._style import ACCENT, FAINT, INK, LINES, axes_to_draw_on, shorten, tidy

__all__ = ["PathDisplay"]


class PathDisplay:
    """Kernel weights over a series of C.

    Parameters
    ----------
    Cs : array of shape (c,)
    weights : array of shape (c, m), optional
    kernel_names : sequence of m str, optional
    scores : DataFrame, optional
        ``C``, ``score`` and, if wanted, ``norm`` and ``fold``: the ``cv_results_`` of ``MKLClassifierCV``.
    chosen : float, optional
        The C that was chosen.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> display = PathDisplay([0.1, 1.0], [[1.0, 0.0], [0.4, 0.6]], ["linear", "gaussian(width=1)"])
    >>> display.heaviest(1)
    [0]
    """

    def __init__(
        self,
        Cs: Any,
        weights: Any = None,
        kernel_names: Sequence[str] | None = None,
        *,
        scores: Any = None,
        chosen: float | None = None,
    ) -> None:
        self.Cs = np.asarray(Cs, dtype=float)
        self.weights = None if weights is None else np.asarray(weights, dtype=float)
        if self.weights is not None and (self.weights.ndim != 2 or len(self.weights) != len(self.Cs)):
            raise ValueError(
                f"weights of shape {self.weights.shape} do not go with {len(self.Cs)} values of C"
            )
        m = 0 if self.weights is None else self.weights.shape[1]
        self.kernel_names = (
            [f"kernel {j}" for j in range(m)] if kernel_names is None else list(map(str, kernel_names))
        )
        if len(self.kernel_names) != m:
            raise ValueError(f"{len(self.kernel_names)} kernel names do not go with {m} kernels")
        self.scores, self.chosen = scores, chosen

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None, top: int = 6, **kwargs: Any) -> PathDisplay:
        """Draw the weights along a path of ``mkl_path``."""
        return cls(path.Cs, path.weights, path.kernel_names).plot(ax=ax, top=top, **kwargs)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> PathDisplay:
        """Draw the cross-validated scores of a fitted ``MKLClassifierCV``."""
        check_is_fitted(estimator, "cv_results_")
        scores = estimator.cv_results_
        made = cls(np.unique(scores["C"]), scores=scores, chosen=float(np.ravel(estimator.C_)[0]))
        return made.plot(ax=ax, kind="scores", **kwargs)

    def heaviest(self, top: int) -> list[int]:
        """Kernels with the largest weight anywhere on the path, at most ``top``."""
        if self.weights is None:
            return []
        largest = self.weights.max(axis=0)
        order = np.argsort(-largest, kind="stable")[:top]
        return [int(j) for j in order if largest[j] > 0]

    def plot(self, *, ax: Any = None, kind: str = "weights", top: int = 6, **kwargs: Any) -> PathDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : {"weights", "scores"}, default="weights"
            Weights of the heaviest kernels with the others in grey, or mean scores with their standard errors.
        top : int, default=6
            Kernels with a name.
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        self
        """
        if kind not in ("weights", "scores"):
            raise ValueError(f"kind must be 'weights' or 'scores', got {kind!r}")
        if (self.weights if kind == "weights" else self.scores) is None:
            raise ValueError(f"there are no {kind} to draw")
        ax = axes_to_draw_on(ax, (6.8, 4.0))
        self.lines_: list[Any] = []
        (self._weights if kind == "weights" else self._scores)(ax, top, kwargs)
        ax.set_xscale("log")
        ax.set_xlabel("C")
        if self.chosen is not None:
            ax.axvline(
                self.chosen, color=ACCENT, linestyle="--", linewidth=1.2, label=f"chosen: {self.chosen:g}"
            )
        handles, _ = ax.get_legend_handles_labels()
        if handles:
            ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        tidy(ax, "y")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _weights(self, ax: Any, top: int, kwargs: dict[str, Any]) -> None:
        assert self.weights is not None
        named = self.heaviest(top)
        others = [j for j in self.heaviest(len(self.kernel_names)) if j not in named]
        for j in others:
            ax.plot(self.Cs, self.weights[:, j], color=FAINT, linewidth=1.0, zorder=1)
        shades = np.linspace(0.0, 0.55, max(len(named), 1))
        markers = "osD^vP*X"
        for number, j in enumerate(named):
            looks = {
                "color": INK if number == 0 else str(shades[number]), "linestyle": LINES[number % len(LINES)],
                "marker": markers[number % len(markers)], "markersize": 4, "linewidth": 1.6,
            }  # fmt: skip
            name = shorten(self.kernel_names[j], 34)
            self.lines_ += ax.plot(self.Cs, self.weights[:, j], label=name, **{**looks, **kwargs})
        ax.set_ylim(bottom=0.0)
        ax.set_ylabel("weight")
        rest = (
            ""
            if not others
            else ", one other in grey"
            if len(others) == 1
            else f", {len(others)} others in grey"
        )
        ax.set_title(f"Weights along the path{rest}")

    def _scores(self, ax: Any, top: int, kwargs: dict[str, Any]) -> None:
        table = self.scores
        norms = list(dict.fromkeys(table["norm"])) if "norm" in table else [None]
        for number, norm in enumerate(norms):
            curve = table if norm is None else table[table["norm"] == norm]
            groups = curve.groupby("C")["score"]
            mean, count = groups.mean(), groups.count()
            error = groups.std(ddof=1).fillna(0.0) / np.sqrt(count)
            looks = {
                "color": INK if number == 0 else str(0.55 * number / len(norms)), "marker": "o", "markersize": 4,
                "linestyle": LINES[number % len(LINES)], "capsize": 3,
            }  # fmt: skip
            drawn = ax.errorbar(
                mean.index.to_numpy(float),
                mean.to_numpy(float),
                yerr=error.to_numpy(float),
                label=None if norm is None else f"norm {norm}",
                **{**looks, **kwargs},
            )
            self.lines_.append(drawn.lines[0])
        ax.set_ylabel("score on held-out folds")
        ax.set_title("Cross-validation")
