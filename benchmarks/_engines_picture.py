"""The picture of the engines: certified gap against passes and against seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "performance_engines.png"
#: line style, width and grey of every solver: they differ without colour, and the first one stands out
LOOKS: dict[str, dict[str, Any]] = {
    "newton": {"linestyle": "-", "linewidth": 2.6, "color": "#12304a", "marker": "o", "markersize": 4},
    "level": {"linestyle": "--", "linewidth": 1.5, "color": "#b4521a"},
    "silp": {"linestyle": ":", "linewidth": 1.9, "color": "#6b7f2a"},
    "simplemkl": {"linestyle": "-.", "linewidth": 1.5, "color": "#777777"},
    "subgradient": {"linestyle": (0, (6, 1, 1, 1, 1, 1)), "linewidth": 1.4, "color": "#5b6fa8"},
}
PASSES, SECONDS, GAP = 2, 1, 5  # columns of the trace
FLOOR = 3e-8


def draw(first: list[Any], second: list[Any], path: Path | None) -> None:
    """Draw the runs of two cases, one a row; without a path into a file that is thrown away, to see that it works."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained", sharey="row")
    for row, runs in zip(axes, (first, second), strict=True):
        for ax, column, what in zip(row, (PASSES, SECONDS), ("passes over the bank", "seconds"), strict=True):
            _panel(ax, runs, column, what)
        problem, tol = runs[0].case.problem, runs[0].case.tol
        row[0].set_ylabel("certified relative gap")
        row[0].set_title(f"{problem.title}, l1 norm, to {_power(tol)}", loc="left", fontsize=11)
    with tempfile.TemporaryDirectory() as folder:
        target = path or Path(folder) / "picture.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=130)
    plt.close(figure)


def _power(value: float) -> str:
    return f"$10^{{{round(np.log10(value))}}}$"


def _panel(ax: Any, runs: list[Any], column: int, what: str) -> None:
    ends = []
    for run in runs:
        trace = np.array(run.solution.trace)
        x, gap = trace[:, column], np.maximum(np.minimum.accumulate(trace[:, GAP]), FLOOR)
        # steps: between two iterations nothing is certified
        ax.plot(
            x, gap, drawstyle="steps-post", zorder=3 if run.solver == "newton" else 2, **LOOKS[run.solver]
        )
        ends.append((run.solver, x[-1], gap[-1]))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(what)
    tol = runs[0].case.tol
    ax.axhline(tol, color="#888888", linewidth=0.9)
    ax.annotate("asked for", (0.0, tol), (4, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
                ha="left", fontsize=8.5, color="#666666")  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e3e6e9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.set_ylim(0.3 * min(gap for _, _, gap in ends), 3.0)
    _label(ax, ends)


def _label(ax: Any, ends: list[tuple[str, float, float]]) -> None:
    """The first name beside its line, the others in the margin, in the order of their gaps, with thin leaders."""
    from matplotlib.patheffects import withStroke

    first, *others = ends
    clear = [
        withStroke(linewidth=3, foreground="white")
    ]  # the line of the tolerance may run through the name
    ax.annotate(
        first[0], first[1:], (7, 0), textcoords="offset points", va="center",
        color=LOOKS[first[0]]["color"], fontsize=10, fontweight="bold", path_effects=clear,
    )  # fmt: skip
    low, high = np.log10(ax.get_ylim())
    height = -np.inf
    for name, x, gap in sorted(others, key=lambda end: end[2]):
        # as a share of the axis, pushed up where it would touch the one below
        height = max((np.log10(gap) - low) / (high - low), height + 0.06)
        color = LOOKS[name]["color"]
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 2}
        ax.annotate(
            name, (x, gap), (1.02, height), textcoords="axes fraction", va="center", color=color, fontsize=9.5,
            arrowprops={**leader, "relpos": (0.0, 0.5)},
        )  # fmt: skip
