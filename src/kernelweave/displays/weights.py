"""Pictures of what a fit uses: kernels, groups of columns, weights along a path over C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._components import check_choice
from ..inspection import group_table, kernel_families
from ..inspection.views import kernel_groups
from .colours import ACCENT, FAINT, INK, LINES, Display, axes_to_draw_on, shorten, tidy


class WeightsDisplay(Display):
    """Kernel weights, largest first; what does not fit is summed up in the last row, as a number without a bar.

    Parameters
    ----------
    weights : array of shape (m,) or (k, m)
        Kernel weights, one row per problem where several were fitted.
    kernel_names : sequence of m str
        Names of the kernels.
    problem_names : sequence of k str, optional
        Names of the problems (classes), for weights of shape (k, m).
    intervals : array of shape (2, m), optional
        Lower and upper ends of lines beside the bars (the range of refits), for weights of shape (m,).
    groups : sequence of m str, optional
        What a kernel belongs to (its view, its family): kernels are then shown under their groups, the heaviest group
        first, for weights of shape (m,).
    learnt : array of shape (m,), optional
        Which weights were learnt; the title says where some, or all, were not.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    bars_ : bar container, for weights of shape (m,)
    places_ : dict of kernels and which of the bars each has, for weights of shape (m,)
    image_ : matplotlib image, for weights of shape (k, m)

    Examples
    --------
    >>> display = WeightsDisplay([0.7, 0.0, 0.2, 0.1], ["linear", "cosine", "gaussian(width=1)", "gaussian(width=2)"])
    >>> display.rows(top=2)
    ([0, 2], 'one other')
    """

    def __init__(
        self,
        weights: Any,
        kernel_names: Sequence[str],
        *,
        problem_names: Sequence[str] | None = None,
        intervals: Any = None,
        groups: Sequence[str] | None = None,
        learnt: Any = None,
    ) -> None:
        self.weights = np.asarray(weights, dtype=float)
        self.kernel_names = [str(name) for name in kernel_names]
        self.problem_names = None if problem_names is None else [str(name) for name in problem_names]
        m = len(self.kernel_names)
        if self.weights.ndim not in (1, 2) or self.weights.shape[-1] != m:
            raise ValueError(f"weights of shape {self.weights.shape} do not go with {m} kernel names")
        self.intervals = None if intervals is None else np.asarray(intervals, dtype=float)
        self.groups = None if groups is None else [str(group) for group in groups]
        if (intervals is not None or groups is not None) and self.weights.ndim != 1:
            raise ValueError("error bars and groups go with weights of shape (m,)")
        if self.intervals is not None and self.intervals.shape != (2, m):
            raise ValueError(f"intervals must have shape (2, {m}), got {self.intervals.shape}")
        if self.groups is not None and len(self.groups) != m:
            raise ValueError(f"{len(self.groups)} groups were given for {m} kernels")
        self.learnt = np.ones(m, dtype=bool) if learnt is None else np.asarray(learnt, dtype=bool)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, top: int = 15, group_by: str | None = None, **kwargs: Any
    ) -> WeightsDisplay:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : MKLClassifier or MKLRegressor
            Fitted.
        ax, top, **kwargs
            As for ``plot``.
        group_by : {"view", "family", None}, default=None
            Show kernels under their views (see ``inspection.kernel_views``; where the norm has groups, under those) or
            families; one set of weights only.
        """
        check_is_fitted(estimator, "weights_")
        classes = getattr(estimator, "classes_", None) if estimator.weights_.ndim == 2 else None
        groups = None
        if group_by is not None:
            if group_by not in ("view", "family"):
                raise ValueError(f"group_by must be 'view', 'family' or None, got {group_by!r}")
            groups = list((kernel_groups if group_by == "view" else kernel_families)(estimator))
        learnt = getattr(estimator, "learnt_kernels_", None)
        made = cls(
            estimator.weights_, estimator.kernel_names_, problem_names=classes, groups=groups, learnt=learnt
        )
        return made.plot(ax=ax, top=top, **kwargs)

    @classmethod
    def from_stability(
        cls, stability: Any, *, ax: Any = None, top: int = 15, group_by: str | None = "view", **kwargs: Any
    ) -> WeightsDisplay:
        """Draw mean weights over refits, with lines from ``low`` to ``high``: the range of the refits.

        Parameters
        ----------
        stability : WeightStability
            From ``inspection.weight_stability``.
        ax, top, **kwargs
            As for ``plot``.
        group_by : {"view", "family", None}, default="view"
        """
        table = stability.kernels()
        groups = None if group_by is None else table[group_by].tolist()
        intervals = table[["low", "high"]].to_numpy().T
        made = cls(table["mean"], table["kernel"].tolist(), intervals=intervals, groups=groups)
        return made.plot(ax=ax, top=top, **kwargs)

    def rows(self, top: int = 15) -> tuple[list[int], str]:
        """Return the kernels that get a row, and the label of the row for the others (empty where there are none)."""
        size = self.weights if self.weights.ndim == 1 else self.weights.max(axis=0)
        order = np.argsort(-size, kind="stable")
        active = order[size[order] > 0]
        rest = len(active) - top
        shown = [int(j) for j in (active[:top] if rest > 0 else active)]
        return shown, "" if rest <= 0 else "one other" if rest == 1 else f"{rest} others"

    def plot(self, *, ax: Any = None, top: int = 15, **kwargs: Any) -> WeightsDisplay:
        """Draw bars, or for several problems a table in shades of grey.

        Parameters
        ----------
        ax : matplotlib axes, optional
        top : int, default=15
            Kernels with a row of their own.
        **kwargs
            For ``Axes.barh`` or ``Axes.imshow``.
        """
        shown, rest = self.rows(top)
        heads = len({self.groups[j] for j in shown}) if self.groups is not None else 0
        height = 0.9 + 0.28 * (len(shown) + bool(rest) + heads)
        ax = axes_to_draw_on(ax, (7.0, max(2.0, height)))
        (self._bars if self.weights.ndim == 1 else self._image)(ax, shown, rest, kwargs)
        used = int(np.count_nonzero(self.weights if self.weights.ndim == 1 else self.weights.max(axis=0)))
        m, given = len(self.kernel_names), int(np.count_nonzero(~self.learnt))
        title = f"{used} of {m} kernels have weight" if used < m else f"{m} kernels, all with weight"
        if given:
            title += " (given, not learnt)" if given == m else f" ({given} given, not learnt)"
        return self._drawn_on(ax, title=title)

    def _bars(self, ax: Any, shown: list[int], rest: str, kwargs: dict[str, Any]) -> None:
        """Rows of kernels, under the names of their groups where there are any, with the sums over whole groups."""
        largest = max((float(self.weights[j]) for j in shown), default=1.0)
        decimals = max(0, 2 - int(np.floor(np.log10(largest or 1.0))))  # three digits of the largest weight
        of_kernel = np.array(self.groups or np.full(len(self.kernel_names), None), dtype=object)
        totals = {name: float(self.weights[of_kernel == name].sum()) for name in dict.fromkeys(of_kernel)}
        groups = sorted(dict.fromkeys(of_kernel[j] for j in shown), key=lambda name: -totals[name])
        rows: list[tuple[str, float, str]] = []  # label, length of the bar, number beside it
        heads: list[int] = []
        places: dict[int, int] = {}  # rows of the kernels
        for name in groups:
            if name is not None:
                heads.append(len(rows))
                rows.append((f"{shorten(name)}: {totals[name]:.{decimals}f}", 0.0, ""))
            for j in shown:
                if of_kernel[j] == name:
                    places[j], weight = len(rows), float(self.weights[j])
                    label = shorten(self.kernel_names[j])
                    if name is not None:
                        label = label.removesuffix(f" on {name}")
                    rows.append((label, weight, f"{weight:.{decimals}f}"))
        if rest:  # a sum over many small weights may dwarf them all: a bar would be read as one kernel
            others = float(self.weights.sum()) - sum(length for _, length, _ in rows)
            rows.append((rest, 0.0, f"{others:.{decimals}f} together"))
        at, lengths = np.arange(len(rows)), [length for _, length, _ in rows]
        self.places_ = places
        self.bars_ = ax.barh(at, lengths, **{"color": INK, "height": 0.72, **kwargs})
        ends: dict[int, float] = {}
        if self.intervals is not None and shown:
            low, high = self.intervals[:, list(places)]
            self.error_bars_ = ax.hlines(
                list(places.values()), low, high, color=ACCENT, linewidth=2.2, zorder=3
            )
            ends = dict(zip(places.values(), high.tolist(), strict=True))
        beyond = 1.12 if self.groups is None else 1.2
        limit = max([1.2 * largest, *(beyond * end for end in ends.values())])
        for row, (_, length, text) in enumerate(rows):
            if text:
                far = max(length, ends.get(row, 0.0)) + 0.01 * limit
                ax.text(far, row, text, va="center", fontsize="small")
        ax.set_yticks(at, [label for label, _, _ in rows])
        for row in heads:
            ax.get_yticklabels()[row].set_fontweight("bold")
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(len(rows), 3) - 0.4, -0.6)
        # space for the numbers behind the bars, and no tick there that no weight can have
        ax.set_xlim(0.0, limit)
        ax.set_xlabel("weight")
        if max([*lengths, *ends.values(), 0.0]) <= 1.0:
            ax.set_xticks([tick for tick in ax.get_xticks() if 0.0 <= tick <= min(limit, 1.0 + 1e-9)])
        tidy(ax, "x")

    def _image(self, ax: Any, shown: list[int], rest: str, kwargs: dict[str, Any]) -> None:
        from matplotlib.colors import PowerNorm

        names = [shorten(self.kernel_names[j]) for j in shown]
        table = self.weights[:, shown].T
        if rest:
            names, table = [*names, rest], np.vstack([table, self.weights.sum(axis=1) - table.sum(axis=0)])
        k = table.shape[1]
        # the square root keeps small weights visible beside large ones
        scale = PowerNorm(0.5, vmin=0.0, vmax=float(table.max()) or 1.0)
        self.image_ = ax.imshow(table, **{"cmap": "Greys", "aspect": "auto", "norm": scale, **kwargs})
        columns = self.problem_names or [str(number) for number in range(k)]
        ax.set_yticks(np.arange(len(names)), names)
        ax.set_xticks(np.arange(k), columns)
        if max(map(len, columns)) > 4:
            ax.tick_params(axis="x", labelrotation=45)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        ax.tick_params(length=0)
        # thin white lines part the cells, and a dark one the sum of the others from the kernels
        ax.set_xticks(np.arange(k + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
        ax.grid(which="minor", color=FAINT, linewidth=0.8)
        ax.tick_params(which="minor", length=0)
        if rest:
            ax.axhline(len(names) - 1.5, color=INK, linewidth=1.2)
        ax.figure.colorbar(self.image_, ax=ax, label="weight")


class GroupsDisplay(Display):
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
        ax, top
            As for ``plot``.
        **kwargs
            For ``inspection.group_table``: ``n_refits``, ``n_permutations``, ...
        """
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
        # below the axes, where no bar reaches: as far as their own labels need, whatever their height
        below = -0.65 * ax.figure.dpi / ax.get_window_extent().height
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, below), ncols=2, frameon=False, fontsize="small")
        weighted = int(np.sum(self.table["weight"] > 0))
        title = f"{weighted} of {len(self.table)} groups have weight"
        return self._drawn_on(ax, "x", title=title, xlabel="share")


class PathDisplay(Display):
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
            shape = self.weights.shape
            raise ValueError(f"weights of shape {shape} do not go with {len(self.Cs)} values of C")
        m = 0 if self.weights is None else self.weights.shape[1]
        names = [f"kernel {j}" for j in range(m)] if kernel_names is None else kernel_names
        self.kernel_names = [str(name) for name in names]
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
        """
        check_choice("kind", kind, ("weights", "scores"))
        if (self.weights if kind == "weights" else self.scores) is None:
            raise ValueError(f"there are no {kind} to draw")
        ax = axes_to_draw_on(ax, (6.8, 4.0))
        self.lines_: list[Any] = []
        if kind == "weights" and self.weights is not None:
            named = self.heaviest(top)
            others = [j for j in self.heaviest(len(self.kernel_names)) if j not in named]
            for j in others:
                ax.plot(self.Cs, self.weights[:, j], color=FAINT, linewidth=1.0, zorder=1)
            shades = np.linspace(0.0, 0.55, max(len(named), 1))
            markers = "osD^vP*X"
            for number, j in enumerate(named):
                style = {
                    "color": INK if number == 0 else str(shades[number]), "linestyle": LINES[number % len(LINES)],
                    "marker": markers[number % len(markers)], "markersize": 4, "linewidth": 1.6,
                }  # fmt: skip
                name = shorten(self.kernel_names[j], 34)
                self.lines_ += ax.plot(self.Cs, self.weights[:, j], label=name, **{**style, **kwargs})
            ax.set_ylim(bottom=0.0)
            rest = ", one other in grey" if len(others) == 1 else f", {len(others)} others in grey"
            title, ylabel = f"Weights along the path{rest if others else ''}", "weight"
        else:
            table = self.scores
            norms = list(dict.fromkeys(table["norm"])) if "norm" in table else [None]
            for number, norm in enumerate(norms):
                curve = table if norm is None else table[table["norm"] == norm]
                groups = curve.groupby("C")["score"]
                mean, count = groups.mean(), groups.count()
                error = groups.std(ddof=1).fillna(0.0) / np.sqrt(count)
                style = {
                    "color": INK if number == 0 else str(0.55 * number / len(norms)), "marker": "o", "markersize": 4,
                    "linestyle": LINES[number % len(LINES)], "capsize": 3,
                }  # fmt: skip
                at, height, bars = (values.to_numpy(float) for values in (mean.index, mean, error))
                label = None if norm is None else f"norm {norm}"
                drawn = ax.errorbar(at, height, yerr=bars, label=label, **{**style, **kwargs})
                self.lines_.append(drawn.lines[0])
            title, ylabel = "Cross-validation", "score on held-out folds"
        if self.chosen is not None:
            label = f"chosen: {self.chosen:g}"
            ax.axvline(self.chosen, color=ACCENT, linestyle="--", linewidth=1.2, label=label)
        handles, _ = ax.get_legend_handles_labels()
        if handles:
            ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return self._drawn_on(ax, "y", title=title, xlabel="C", ylabel=ylabel, xscale="log")
