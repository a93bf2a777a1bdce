"""Survival over time: by groups of risk, as predicted for some samples, and predicted against observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..inspection import calibration, risk_groups
from ..inspection.views import predicts_survival
from ..metrics import StepFunction, curves_of, kaplan_meier, log_rank_p_value, survival
from .colours import ACCENT, INK, LINES, Display, axes_to_draw_on

#: what groups are called, from the lowest risk on, where there are three
THIRDS = ("low risk", "middle", "high risk")


def _styles(count: int) -> list[dict[str, Any]]:
    """Return styles of so many curves, the last one dark."""
    shades = [str(shade) for shade in np.linspace(0.6, 0.0, count)] if count > 1 else [INK]
    lines = [LINES[number % len(LINES)] for number in range(count)]
    return [
        {"color": color, "linestyle": line, "linewidth": 1.6}
        for color, line in zip(shades, lines, strict=True)
    ]


class SurvivalDisplay(Display):
    """Curves of the probability to be without event over time.

    Parameters
    ----------
    curves : mapping from a label to a function of time
        ``metrics.StepFunction``, or one of scikit-survival's: with places ``x``, increasing, and values ``y`` there.
    title : str, optional

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> from kernelweave import metrics
    >>> y = metrics.survival([1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 0, 1])
    >>> SurvivalDisplay({"all": metrics.kaplan_meier(y)}).labels
    ['all']
    """

    def __init__(self, curves: Mapping[str, StepFunction], *, title: str | None = None) -> None:
        if not curves:
            raise ValueError("there is no curve to draw")
        self.curves, self.title = dict(curves), title

    @property
    def labels(self) -> list[str]:
        """Labels of the curves, in order."""
        return [str(label) for label in self.curves]

    @classmethod
    def from_predictions(
        cls, y: Any, risk: ArrayLike, *, n_groups: int = 3, ax: Any = None, **kwargs: Any
    ) -> SurvivalDisplay:
        """Draw Kaplan and Meier's curve of every group of risk, with the p-value of the log-rank test.

        Parameters
        ----------
        y : targets
            As ``kernelweave.survival`` makes them.
        risk : array of shape (n,)
            Of samples that the model has not seen: curves of its own training samples are too far apart.
        n_groups : int, default=3
            Groups of equal size.
        ax, **kwargs
            As for ``plot``.
        """
        group = risk_groups(risk, n_groups)
        y = np.asarray(y) if getattr(y, "dtype", None) is not None else survival(y["time"], y["event"])
        curves = {}
        for number in np.unique(group).tolist():
            own = y[group == number]
            label = THIRDS[number] if n_groups == len(THIRDS) else f"group {number + 1} of {n_groups}"
            curves[f"{label} ({len(own)})"] = kaplan_meier(own)
        title = f"log-rank p = {log_rank_p_value(y, group):.2g}" if len(curves) > 1 else None
        return cls(curves, title=title).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        names: Sequence[str] | None = None,
        strata: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> SurvivalDisplay:
        """Draw the curves that a fitted model, or a pipeline, predicts for a few samples.

        Parameters
        ----------
        estimator : MKLSurvival or pipeline
        X : samples
            One curve each.
        names : sequence of str, optional
            What they are called.
        strata : array, optional
            Where the model was fitted with strata.
        ax, **kwargs
            As for ``plot``.
        """
        if not predicts_survival(estimator):
            raise ValueError(
                "there are curves of models of survival alone: MKLSurvival, or a pipeline that ends in it"
            )
        curves = curves_of(estimator, X, strata)
        labels = [f"sample {k}" for k in range(len(curves))] if names is None else [str(n) for n in names]
        return cls(dict(zip(labels, curves, strict=True)), title="predicted").plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> SurvivalDisplay:
        """Draw the curves as steps from time 0 on.

        Parameters
        ----------
        ax : matplotlib axes, optional
        **kwargs
            For ``Axes.step``.
        """
        ax = axes_to_draw_on(ax, (6.0, 3.6))
        self.lines_: list[Any] = []
        for style, (label, curve) in zip(_styles(len(self.curves)), self.curves.items(), strict=True):
            x, y = np.append(0.0, curve.x), np.append(1.0, curve.y)
            self.lines_ += ax.step(x, y, where="post", label=str(label), **{**style, **kwargs})
        if len(self.curves) > 1:
            ax.legend(frameon=False, fontsize="small", ncols=1 + (len(self.curves) - 1) // 6)
        ax.set_xlim(left=0.0)
        labels = {"title": self.title or "", "xlabel": "time", "ylabel": "without event"}
        return self._drawn_on(ax, "y", ylim=(0.0, 1.02), **labels)


class CalibrationDisplay(Display):
    """Observed against predicted probabilities to be without event, a line for every horizon.

    Parameters
    ----------
    table : DataFrame
        Of ``inspection.calibration``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"time": [1.0, 1.0], "predicted": [0.2, 0.8], "observed": [0.3, 0.7]})
    >>> CalibrationDisplay(table).table["time"].nunique()
    1
    """

    def __init__(self, table: Any) -> None:
        self.table = table

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, times: ArrayLike | None = None, *, ax: Any = None, **options: Any
    ) -> CalibrationDisplay:
        """Draw the calibration of a fitted model; ``options`` are those of ``inspection.calibration``."""
        return cls(calibration(estimator, X, y, times, **options)).plot(ax=ax)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> CalibrationDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib axes, optional
        **kwargs
            For ``Axes.plot``.
        """
        ax = axes_to_draw_on(ax, (4.2, 4.0))
        ax.plot([0, 1], [0, 1], color=ACCENT, linestyle="--", linewidth=1.2)
        self.lines_: list[Any] = []
        horizons = self.table.groupby("time")
        for style, (time, rows) in zip(_styles(len(horizons)), horizons, strict=True):
            style |= {"linewidth": 1.2, "marker": "o", "markersize": 4, "label": f"{time:.3g}"}
            self.lines_ += ax.plot(rows["predicted"], rows["observed"], **{**style, **kwargs})
        ax.legend(title="time", frameon=False, fontsize="small")
        labels = {"xlabel": "predicted to be without event", "ylabel": "observed"}
        return self._drawn_on(ax, "both", xlim=(0, 1), ylim=(0, 1), **labels)
