"""Table 1 of [APO17] as measured exponents: work against n, F and 1/eps, slopes of the logarithms beside the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.norms import L1, Lp
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve

from ..study import Key, Report, Row
from .data import view_problem

BASE = {"n": 500, "F": 10}
NS = (125, 250, 500, 1000, 2000)
FS = (5, 10, 20, 40, 80)
EPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)


@dataclass(frozen=True)
class Method:
    """A row of Table 1: its norm for F kernels, in which unit it works, and the exponents that are claimed."""

    norm: Callable[[int], Any]
    accuracy: float
    unit: str
    claims: tuple[str, str, str]


def _ufo_norm(F: int) -> Any:
    """UFO's own norm, ``q = max(2, 2 ln F)``, with an l1 term that is small beside the rest."""
    from kernelweave.norms import Elastic

    return Elastic(alpha=0.01)


METHODS = {
    "level": Method(lambda F: L1(), 1e-3, "kernel entries", ("2", "1", "2")),
    "ufo": Method(_ufo_norm, 1e-4, "steps on samples", ("1", "log", "1")),
    "obscure": Method(lambda F: Lp(1.5), 1e-4, "steps on samples", ("1", "1/q = 0.33", "1")),
    "svrg": Method(lambda F: Lp(1.5), 1e-6, "steps on samples", ("1", "1/q = 0.33", "log")),
}
SETTINGS = {"n": NS, "F": FS, "eps": EPS, "methods": list(METHODS), "version": 3}


def here() -> list[str]:
    """Methods whose solver there is."""
    return [name for name in METHODS if name in registry]


def missing() -> list[str]:
    """Sentences about those there are not."""
    return [f"{name}: there is no solver of that name" for name in METHODS if name not in here()]


def keys(repeats: int) -> list[Key]:
    """Return one run per method, size and seed; accuracies are read off the trace of the base size."""
    sizes = [(n, BASE["F"]) for n in NS] + [(BASE["n"], F) for F in FS if BASE["F"] != F]
    return [
        {"method": name, "n": n, "F": F, "seed": seed}
        for seed in range(repeats)
        for name in here()
        for n, F in sizes
    ]


def _problem(key: Key) -> MKLProblem:
    made = view_problem(int(key["seed"]), 1.5, 1.0, "logistic", int(key["n"]), int(key["F"]))
    norm = METHODS[str(key["method"])].norm(int(key["F"]))
    return MKLProblem(made.bank, made.loss, norm, made.y, 1.0, None, False)


def work(key: Key) -> list[Row]:
    """Passes at which every accuracy was first reached."""
    name, method = str(key["method"]), METHODS[str(key["method"])]
    base = int(key["n"]) == BASE["n"] and int(key["F"]) == BASE["F"]
    finest = min([method.accuracy, *(EPS if base else [])])
    # a gap of a tenth of the accuracy: the dual value is then the optimum as far as that matters
    stop = Stop(tol=0.1 * finest, max_iter=5000, max_seconds=60.0)
    solution = solve(_problem(key), registry[name](), stop)
    trace, best = np.array(solution.trace), solution.certificate.dual
    rows = []
    for eps in sorted({method.accuracy, *EPS}, reverse=True):
        reached = np.flatnonzero((trace[:, 3] - best) / best <= eps)
        rows.append({"eps": eps, "passes": float(trace[reached[0], 2]) if reached.size else np.nan})
    return rows


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Slope of log y against log x, where y was measured."""
    known = np.isfinite(y) & (y > 0)
    return float(np.polyfit(np.log(x[known]), np.log(y[known]), 1)[0]) if known.sum() >= 3 else np.nan


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Fitted slopes beside the claims, and the work itself."""
    table: list[dict[str, Any]] = []
    detail: list[dict[str, Any]] = []
    for name, these in rows.groupby("method", sort=False):
        method = METHODS[str(name)]
        entries = method.unit == "kernel entries"
        work_of = these["passes"] * these["n"] * (these["F"] * these["n"] if entries else 1)
        middle = (
            these.assign(work=work_of).groupby(["n", "F", "eps"])[["work", "passes"]].median().reset_index()
        )
        at = middle[np.isclose(middle["eps"], method.accuracy)]
        over_n, over_F = at[at["F"] == BASE["F"]], at[at["n"] == BASE["n"]]
        over_eps = middle[(middle["F"] == BASE["F"]) & (middle["n"] == BASE["n"])]
        table.append(
            {
                "method": name,
                "work in": method.unit,
                "accuracy for n and F": method.accuracy,
                "exponent of n": slope(over_n["n"].to_numpy(float), over_n["work"].to_numpy(float)),
                "claimed (n)": method.claims[0],
                "exponent of F": slope(over_F["F"].to_numpy(float), over_F["work"].to_numpy(float)),
                "claimed (F)": method.claims[1],
                "exponent of 1/eps": slope(
                    1.0 / over_eps["eps"].to_numpy(float), over_eps["work"].to_numpy(float)
                ),
                "claimed (1/eps)": method.claims[2],
                "passes a digit": _digit(over_eps),
            }
        )
        for what, part in (("n", over_n), ("F", over_F), ("eps", over_eps)):
            detail += [
                {"method": name, "varied": what, "value": float(v), "passes": float(passes), "work": float(w)}
                for v, passes, w in zip(part[what], part["passes"], part["work"], strict=True)
            ]
    note = (
        f"Problem of random cosines at n = {BASE['n']}, F = {BASE['F']}, C = 1 (lambda = 1 / n), no intercept; n from "
        f"{NS[0]} to {NS[-1]}, F from {FS[0]} to {FS[-1]}, relative suboptimality from {EPS[0]:g} to {EPS[-1]:g}; "
        "medians over seeds. Work is counted in the unit of the claim: steps on single samples (a pass is n of them; "
        "each touches all F blocks, so arithmetic has one more power of F), for level entries of the kernels read. "
        "Logistic loss throughout; level has l1, OBSCURE and SVRG p = 1.5, UFO its own norm, which changes with F. An "
        "exponent of 1/eps near 0 is what a logarithm looks like: *passes a digit* is the slope against "
        "log10(1/eps)."
    )
    report.table(table, note, "SVRG: Table 1 as measured exponents")
    report.picture(_draw(pd.DataFrame(detail)))
    report.table(detail, "What the slopes are fitted to.", "SVRG: work behind the exponents", suffix="_work")
    return []


def _draw(detail: pd.DataFrame) -> Any:
    """Work, relative to the first value, against each of the three."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    labels = {"n": "samples n", "F": "kernels F", "eps": "1 / eps"}
    for ax, (what, label) in zip(axes, labels.items(), strict=True):
        for name, these in detail[detail["varied"] == what].groupby("method", sort=False):
            x = 1.0 / these["value"] if what == "eps" else these["value"]
            order = np.argsort(x.to_numpy())
            work = these["work"].to_numpy()[order]
            ax.loglog(x.to_numpy()[order], work / work[np.isfinite(work)][0], "o-", ms=4, label=name)
        if what != "eps":  # the sizes themselves
            values = sorted(set(detail.loc[detail["varied"] == what, "value"]))
            ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.minorticks_off()
        ax.set_xlabel(label)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("work, relative")
    axes[0].legend(fontsize="small")
    return figure


def _digit(over_eps: pd.DataFrame) -> float:
    known = over_eps[np.isfinite(over_eps["passes"])]
    if len(known) < 3:
        return np.nan
    return float(np.polyfit(-np.log10(known["eps"].to_numpy(float)), known["passes"].to_numpy(float), 1)[0])
