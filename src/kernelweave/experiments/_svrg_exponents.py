"""Table 1 of [APO17] as measured exponents: work against n, F and 1/eps, slopes of the logarithms beside the claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..norms import make_norm
from ..problems import MKLProblem
from ..solvers import Stop, registry, solve
from ._study import Key, Report, Row
from ._svrg_data import view_problem

__all__ = ["SETTINGS", "keys", "missing", "report", "work"]

BASE = {"n": 500, "F": 10}
NS = (125, 250, 500, 1000, 2000)
FS = (5, 10, 20, 40, 80)
EPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)


@dataclass(frozen=True)
class Method:
    """A row of Table 1: how it is run here, in which unit it works, and the exponents that are claimed."""

    solver: str
    loss: str
    norm: float | str
    accuracy: float
    unit: str
    claims: tuple[str, str, str]
    max_iter: int


#: p of UFO depends on F in the paper, 2 ln F / (2 ln F - 1); here that of F = 10 throughout
METHODS = {
    "level": Method("level", "hinge", "l1", 1e-3, "kernel entries", ("2", "1", "2"), 2000),
    "ufo": Method("ufo", "hinge", 1.28, 1e-2, "steps on samples", ("1", "log", "1"), 2000),
    "obscure": Method("obscure", "hinge", 1.5, 1e-2, "steps on samples", ("1", "1/q = 0.33", "1"), 2000),
    "svrg": Method("svrg", "logistic", 1.5, 1e-6, "steps on samples", ("1", "1/q = 0.33", "log"), 1000),
}
SETTINGS = {"n": NS, "F": FS, "eps": EPS, "methods": {k: str(v) for k, v in METHODS.items()}, "version": 2}


def here() -> list[str]:
    """Methods whose solver there is."""
    return [name for name, method in METHODS.items() if method.solver in registry]


def missing() -> list[str]:
    """Sentences about those there are not."""
    return [f"{name}: there is no solver of that name" for name in METHODS if name not in here()]


def keys(repeats: int) -> list[Key]:
    """One run a method, size and seed; accuracies are read off the trace of the base size."""
    sizes = [(n, BASE["F"]) for n in NS] + [(BASE["n"], F) for F in FS if BASE["F"] != F]
    return [
        {"method": name, "n": n, "F": F, "seed": seed}
        for seed in range(repeats)
        for name in here()
        for n, F in sizes
    ]


def _problem(method: Method, key: Key) -> MKLProblem:
    made = view_problem(int(key["seed"]), 1.5, 1.0, method.loss, int(key["n"]), int(key["F"]))
    return MKLProblem(made.bank, made.loss, make_norm(method.norm), made.y, 1.0, None, False)


def _best(method: Method, key: Key) -> float:
    """Optimal value from below."""
    problem = _problem(method, key)
    name = "svrg" if method.solver == "svrg" else "newton"
    return solve(problem, registry[name](), Stop(tol=1e-8)).certificate.dual


def work(key: Key) -> list[Row]:
    """Passes at which every accuracy was first reached."""
    method = METHODS[str(key["method"])]
    best = _best(method, key)
    problem = _problem(method, key)
    finest = (
        min(method.accuracy, min(EPS))
        if int(key["n"]) == BASE["n"] and int(key["F"]) == BASE["F"]
        else method.accuracy
    )
    stop = Stop(tol=0.1 * finest, max_iter=method.max_iter, max_seconds=60.0)
    trace = np.array(solve(problem, registry[method.solver](), stop).trace)
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
        "Level: hinge and l1; UFO and OBSCURE: hinge; SVRG: logistic, p = 1.5. Exponents of 1/eps near 0 "
        "are what a logarithm looks like: *passes a digit* is the slope against log10(1/eps)."
    )
    report.table(table, note, "SVRG: Table 1 as measured exponents")
    report.table(detail, "What the slopes are fitted to.", "SVRG: work behind the exponents", suffix="_work")
    return []


def _digit(over_eps: pd.DataFrame) -> float:
    known = over_eps[np.isfinite(over_eps["passes"])]
    if len(known) < 3:
        return np.nan
    return float(np.polyfit(-np.log10(known["eps"].to_numpy(float)), known["passes"].to_numpy(float), 1)[0])
