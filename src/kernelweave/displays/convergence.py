"""How a fit closed in on the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._components import check_choice
from .colours import ACCENT, FAINT, INK, LINES, Display, axes_to_draw_on

_X_LABELS = {"passes": "passes over the bank", "seconds": "seconds", "iteration": "iteration"}


class ConvergenceDisplay(Display):
    """Primal and dual bounds of the optimum, or the relative gap between them, as the fit went on.

    Parameters
    ----------
    trace : DataFrame or mapping of arrays
        ``primal``, ``dual`` and ``relative_gap``, and at least one of ``passes``, ``seconds`` and ``iteration``;
        ``problem`` where several problems were fitted.  An estimator's ``trace_`` is one.
    tol : float, optional
        Relative gap that was asked for.
    solver : str, optional
        For the title.
    several : str, default="problem"
        What the entries of ``problem`` are, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> trace = {"passes": [1.0, 2.0], "primal": [4.0, 3.0], "dual": [1.0, 2.9], "relative_gap": [0.75, 0.033]}
    >>> ConvergenceDisplay(trace, tol=1e-2).problems
    [None]
    """

    def __init__(
        self, trace: Any, *, tol: float | None = None, solver: str | None = None, several: str = "problem"
    ) -> None:
        self.trace = {str(name): np.asarray(trace[name]) for name in trace}
        missing = [name for name in ("primal", "dual", "relative_gap") if name not in self.trace]
        if missing:
            raise ValueError(f"the trace has no column {missing[0]!r}")
        self.tol, self.solver, self.several = tol, solver, several

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Any = None,
        kind: str = "bounds",
        x: str = "passes",
        problem: Any = None,
        **kwargs: Any,
    ) -> ConvergenceDisplay:
        """Draw the trace of a fitted estimator; the parameters are those of ``plot``."""
        check_is_fitted(estimator, "trace_")
        made = cls(estimator.trace_, tol=estimator.tol, solver=estimator.solver_)
        return made.plot(ax=ax, kind=kind, x=x, problem=problem, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, ax: Any = None, x: str = "passes", **kwargs: Any
    ) -> ConvergenceDisplay:
        """Compare the relative gaps of several fits of one problem each, say by different solvers.

        Parameters
        ----------
        estimators : mapping from a name to a fitted estimator
        ax, x, **kwargs
            As for ``plot``.
        """
        import pandas as pd

        tables = []
        for name, estimator in estimators.items():
            check_is_fitted(estimator, "trace_")
            if "problem" in estimator.trace_:
                raise ValueError(f"{name!r} was fitted as several problems: compare fits of one")
            tables.append(estimator.trace_.assign(problem=str(name)))
        if not tables:
            raise ValueError("there is no estimator to draw")
        made = cls(pd.concat(tables), tol=min(e.tol for e in estimators.values()), several="solver")
        return made.plot(ax=ax, kind="gap", x=x, **kwargs)

    @property
    def problems(self) -> list[Any]:
        """Problems in the order in which they were fitted; ``[None]`` where there is one without a name."""
        if "problem" not in self.trace:
            return [None]
        return list(dict.fromkeys(self.trace["problem"].tolist()))

    def plot(
        self, *, ax: Any = None, kind: str = "bounds", x: str = "passes", problem: Any = None, **kwargs: Any
    ) -> ConvergenceDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : {"bounds", "gap"}, default="bounds"
            The primal value and the dual bound with what is not known yet between them, or the relative gap on a
            logarithmic scale, one curve per problem.
        x : {"passes", "seconds", "iteration"}, default="passes"
        problem : label, optional
            One of several problems; needed for ``kind="bounds"`` where there are several.
        **kwargs
            For ``Axes.plot``.
        """
        check_choice("kind", kind, ("bounds", "gap"))
        check_choice("x", x, [name for name in _X_LABELS if name in self.trace])
        wanted = self.problems if problem is None else [problem]
        if problem is not None and problem not in self.problems:
            raise ValueError(f"unknown problem {problem!r}: the trace has {self.problems}")
        if kind == "bounds" and len(wanted) > 1:
            raise ValueError(f"kind='bounds' shows one problem: choose one of {wanted} with problem=...")
        ax = axes_to_draw_on(ax, (6.0, 3.6))
        self.lines_: list[Any] = []
        traces = [self.trace]
        if "problem" in self.trace:
            chosen = [self.trace["problem"] == label for label in wanted]
            traces = [{name: values[some] for name, values in self.trace.items()} for some in chosen]
        if kind == "bounds":
            (rows,) = traces
            at, primal, dual = rows[x], rows["primal"], rows["dual"]
            style = {"marker": "o", "markersize": 4, "linewidth": 1.6, **kwargs}
            ax.fill_between(at, dual, primal, color=FAINT, linewidth=0.0)
            self.lines_ += ax.plot(at, primal, color=INK, label="primal: best fit so far", **style)
            style = {"linestyle": "--", "color": ACCENT, "label": "dual: proved lower bound", **style}
            self.lines_ += ax.plot(at, dual, **{**style, "marker": "s"})
            # early dual bounds can be far below anything of interest
            low, high, last = float(np.min(dual)), float(np.max(primal)), float(primal[-1])
            floor = max(low, last - (high - last) - 0.35 * abs(last))
            margin = 0.05 * (high - floor) or 1.0
            ax.set_ylim(floor - margin, high + margin)
            ax.legend(frameon=False, loc="upper right")  # above the primal value, where it has fallen
        else:
            shades = np.linspace(0.0, 0.65, len(wanted))
            for number, (rows, name) in enumerate(zip(traces, wanted, strict=True)):
                style = {"marker": "o", "markersize": 4, "linewidth": 1.6, "color": INK}
                if len(wanted) > 1:
                    line = LINES[number % len(LINES)]
                    style |= {"marker": "", "color": str(shades[number]), "linestyle": line}
                gap = np.maximum(rows["relative_gap"], np.finfo(float).tiny)
                label = None if name is None else str(name)
                self.lines_ += ax.plot(rows[x], gap, label=label, **{**style, **kwargs})
            ax.set_yscale("log")
            if self.tol is not None:
                ax.axhline(self.tol, color=ACCENT, linestyle="--", linewidth=1.2)
                ax.annotate(
                    f"asked for: {self.tol:g}", (0.01, self.tol), xycoords=("axes fraction", "data"),
                    xytext=(0, 3), textcoords="offset points", va="bottom", color=ACCENT, fontsize="small",
                )  # fmt: skip
            if len(wanted) > 1:
                columns = 1 + (len(wanted) - 1) // 6
                ax.legend(title=self.several, frameon=False, ncols=columns, fontsize="small")
        title = "bounds of the optimum" if kind == "bounds" else "relative gap"
        if x == "iteration":
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"{self.solver}: {title}" if self.solver else title.capitalize()
        ylabel = "objective" if kind == "bounds" else "relative gap"
        return self._drawn_on(ax, "y", title=title, xlabel=_X_LABELS[x], ylabel=ylabel)
