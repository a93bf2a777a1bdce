"""What is certified: against a conic solver, in how many iterations, at what size, at what rate; and as printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from kernelweave._typing import Array
from kernelweave.similarity import similarity_solvers
from kernelweave.solvers import Stop, solve

from ..datasets import load_similarity
from ..study import Key, Report, Row, at_hand
from .data import gaussian_similarities, protein_split

PROBLEMS = ("indsvm", "eskl", "emkl", "rekl")
LOSSES = ("squared", "frobenius", "l1")
RHOS = (0.5, 5.0, 50.0)
SETTINGS = {"sdp": 20, "iterations": 100, "thousand": 1000, "rate": 60, "steps": 300, "version": 3}


def _pairs() -> list[tuple[str, str]]:
    return [(p, loss) for p in PROBLEMS for loss in (LOSSES if p != "indsvm" else ("squared",))]


def keys() -> list[Key]:
    """All runs; conic ones only where cvxpy is installed."""
    sets = ["gaussian", *(["proteins"] if at_hand(load_similarity, ["scop40"]) else [])]

    def key(what: str, problem: str, loss: str, data: str = "gaussian", rho: float = 5.0) -> Key:
        return {"what": what, "problem": problem, "loss": loss, "data": data, "rho": rho}

    runs = [key("conic", p, loss) for p, loss in _pairs()] if _conic() else []
    for data in sets:
        runs += [key("iterations", p, loss, data, rho) for p, loss in _pairs() for rho in RHOS]
    runs += [key("thousand", "rekl", loss) for loss in LOSSES[:2]]
    runs += [key(what, "eskl", "frobenius") for what in ("adaptive", "proposition", "printed")]
    return runs


def _conic() -> bool:
    return find_spec("cvxpy") is not None


def missing() -> list[str]:
    """Say what cannot be run."""
    return [] if _conic() else ["the comparison with a conic solver needs cvxpy"]


def _problem(name: str, S: Array, y: Array, rho: float, loss: str) -> Any:
    """C = 1, both divided by the squared number of kernels, as the estimator does."""
    scale = len(S) ** 2 if name in ("emkl", "rekl") else 1.0
    return similarity_solvers[name].problem(S, y, C=1.0 / scale, rho=rho / scale, loss=loss)


def _data(what: str, name: str) -> tuple[Array, Array]:
    n = SETTINGS.get(what, SETTINGS["rate"])
    if name == "gaussian":
        return gaussian_similarities(n, 2 if what == "conic" else 3, seed=0)
    split = protein_split("b.1.18", 0)
    rows = np.r_[split.train, split.test][:n]
    S = split.stack[:, rows][:, :, rows]
    return _scaled(S), split.y[rows]


def _scaled(S: Array) -> Array:
    values = np.linalg.eigvalsh(S)
    return S * (S.shape[1] / np.sum(np.maximum(values, 0.0), axis=1))[:, None, None]


def work(key: Key) -> list[Row]:
    """One row, or for the runs of the picture one an iteration."""
    what, name = str(key["what"]), str(key["problem"])
    S, y = _data("sdp" if what == "conic" else what, str(key["data"]))
    problem = _problem(name, S, y, float(key["rho"]), str(key["loss"]))
    if what in ("adaptive", "proposition", "printed"):
        return _path(what, problem)
    tol = 1e-3 if what == "conic" else 1e-2
    began, worked = time.perf_counter(), time.process_time()
    solved = solve(problem, similarity_solvers[name](), Stop(tol=tol, max_iter=600))
    row: Row = {
        "n": len(y),
        "iteration": solved.n_iter,
        "primal": solved.certificate.primal,
        "dual": solved.certificate.dual,
        "gap": solved.certificate.relative_gap,
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - worked,
        "svms": problem.svms,
        "decompositions": problem.decompositions,
        "optimum": np.nan,
        "rate": np.nan,
    }
    if what == "conic":
        scale = len(S) ** 2 if name in ("emkl", "rekl") else 1.0
        row["optimum"] = conic_optimum(name, S, y, 1.0 / scale, float(key["rho"]) / scale, str(key["loss"]))
    return [row]


def _path(what: str, problem: Any) -> list[Row]:
    """Objectives along a run, the bound of the corrected proposition, and the optimum (from below)."""
    cls: Any = similarity_solvers["eskl"]
    steps = SETTINGS["steps"]
    optimum = solve(problem, cls(), Stop(tol=1e-4, max_iter=600)).certificate
    solver = (
        cls(variant="paper")
        if what == "printed"
        else cls(uniform_start=True, step_size=what, check_every=10**9)
    )
    state, rows, best = None, [], np.inf
    for t in range(1, steps + 1):
        state = solver.init(problem, None, 1e-3) if state is None else solver.step(problem, state)
        point = solver.point(state)
        # mirror descent's own iterates alone: the bound is about them
        best = min(best, problem.primal(point.kernels, point.beta, point.weights)[0])
        rate = np.nan if what == "printed" else solver.rate(problem, state)
        rows.append(
            {
                "n": problem.n, "iteration": t, "primal": best, "dual": optimum.dual, "gap": np.nan,
                "seconds": np.nan, "processor": np.nan, "svms": problem.svms,
                "decompositions": problem.decompositions, "optimum": optimum.primal, "rate": rate,
            }
        )  # fmt: skip
    return rows


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Targets, the table of runs, and the picture of the printed algorithm."""
    targets = report.targets()
    table: list[Row] = []
    for _, row in rows[rows["what"] == "conic"].iterrows():
        above = 100 * (row["primal"] / row["optimum"] - 1)
        below = 100 * (1 - row["dual"] / row["optimum"])
        name = f"{row['problem']}, {row['loss']}"
        targets.at_most(f"{name}: objective above the conic optimum, %", above, 0.5)
        # the conic solver's own precision is 1e-6 or so
        targets.at_least(f"{name}: room of the bounds around it, %", min(above, below), -1e-3)
        table.append(_line(row, f"{above:+.3f} % / {-below:+.3f} %"))
    these = rows[rows["what"] == "iterations"]
    for (name, loss), group in these[these["loss"] != "l1"].groupby(["problem", "loss"], sort=False):
        worst = group.loc[group["gap"].idxmax()] if (group["gap"] > 0.01).any() else None
        most = float(group["iteration"].max()) if worst is None else np.inf
        targets.at_most(f"{name}, {loss}: most iterations to a gap of 1 % at n = 100", most, 100)
    table += [_line(row, "") for _, row in these.iterrows()]
    for _, row in rows[rows["what"] == "thousand"].iterrows():
        targets.at_most(f"REKL, {row['loss']}, n = 1000, m = 3: gap", row["gap"], 0.01)
        # elapsed time says more about the neighbours than about the method where the machine is busy
        targets.at_most(f"REKL, {row['loss']}, n = 1000, m = 3: processor seconds", row["processor"], 120)
        table.append(_line(row, ""))
    for what in ("adaptive", "proposition"):
        these = rows[rows["what"] == what]
        ratio = float(((these["primal"] - these["dual"]) / these["rate"]).max())
        targets.at_most(f"{what} steps: distance to the optimum over the corrected rate, largest", ratio, 1.0)
    steps = {what: rows[rows["what"] == what] for what in ("adaptive", "printed")}
    away = {
        what: 100 * (these["primal"].iloc[-1] / these["optimum"].iloc[-1] - 1)
        for what, these in steps.items()
        if len(these)
    }
    note = (
        "Perturbed Gaussian similarities (of two widths for n = 20, three otherwise) and 100 proteins (b.1.18 against "
        "the rest), scaled by n / tr(S_+); C = 1 and rho as given, for EMKL and REKL over m squared. The conic solver "
        "is Clarabel; *against it*: objective and lower bound relative to its optimum. Solved to a gap of 0.1 % "
        "(conic), else 1 %; l1 is not among the targets. The picture: the best objective of the corrected and of the "
        "printed algorithm, from the identity"
    )
    if len(away) == 2:
        note += (
            f"; after {SETTINGS['steps']} iterations the first is {away['adaptive']:.2g} % above the optimum, the "
            f"second {away['printed']:.0f} %"
        )
    note += "."
    report.table(table, f"{note}\n\n{targets.text()}", "Similarities: what is certified")
    report.picture(_picture(rows))
    return [str(target) for target in targets.all]


def _line(row: pd.Series, against: str) -> Row:
    return {
        "problem": row["problem"], "loss": row["loss"], "data": row["data"], "n": int(row["n"]),
        "rho": float(row["rho"]), "iterations": int(row["iteration"]), "gap, %": 100 * float(row["gap"]),
        "against the conic solver": against, "SVMs": int(row["svms"]),
        "eigendecompositions": int(row["decompositions"]), "seconds": float(row["seconds"]),
        "processor seconds": float(row["processor"]),
    }  # fmt: skip


def _picture(rows: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    ax = figure.subplots()
    looks = {
        "printed": ("as printed: eigenvalues of K, eigenvectors of the gradient", "#c8641e", "-"),
        "proposition": ("corrected, the steps of Proposition 3.1", "#1b3a57", "--"),
        "adaptive": ("corrected, adaptive steps", "#1b3a57", "-"),
    }
    for what, (label, colour, style) in looks.items():
        these = rows[rows["what"] == what]
        above = (these["primal"] - these["dual"]) / these["dual"]
        ax.loglog(these["iteration"], 100 * above, color=colour, ls=style, lw=1.8, label=label)
        if what != "printed":
            ax.loglog(
                these["iteration"], 100 * these["rate"] / these["dual"], color="0.55", ls=style, lw=1.0,
                label=f"its bound ({what})",
            )  # fmt: skip
    ax.set_xlabel("iteration")
    ax.set_ylabel("best objective above the optimum, %")
    ax.grid(color="#d9dee3", lw=0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize="small", frameon=False)
    return figure


def conic_optimum(problem: str, S: Array, y: Array, C: float, rho: float, loss: str) -> float:
    """Return the optimal value of (2), (4), (6) or (7) of [KTBB10] by a solver that knows nothing of ours (cvxpy).

    Omega in primal form: functions ``f_i`` with ``f_i' K_i^+ f_i <= t``, a linear matrix inequality by Schur's
    complement.

    Parameters
    ----------
    problem : {"indsvm", "eskl", "emkl", "rekl"}
    S : array of shape (m, n, n)
    y : array of shape (n,)
    C, rho : float
    loss : {"l1", "frobenius", "squared"}
    """
    import cvxpy as cp

    m, n, _ = S.shape
    t, b = cp.Variable(), cp.Variable()
    constraints: list[Any] = []
    kernels, functions = [], []
    for i in range(1 if problem in ("eskl", "indsvm") else m):
        f = cp.Variable((n, 1))
        if problem == "rekl":
            V = np.linalg.eigh(S[i])[1]
            mu, share = cp.Variable(n, nonneg=True), cp.Variable(n)
            K = V @ cp.diag(mu) @ V.T
            turned = V.T @ f
            constraints += [cp.quad_over_lin(turned[j, 0], mu[j]) <= share[j] for j in range(n)]
            constraints += [cp.sum(share) <= t, cp.sum(mu) == n]
        else:
            bordered = cp.Variable((n + 1, n + 1), PSD=True)
            K = bordered[:n, :n]
            constraints += [bordered[:n, n:] == f, bordered[n, n] == t]
            constraints += [] if problem == "indsvm" else [cp.trace(K) == n]
        kernels.append(K)
        functions.append(f)
    distance = {
        "l1": lambda X: cp.sum(cp.abs(X)) / n,
        "frobenius": lambda X: cp.norm(X, "fro"),
        "squared": lambda X: cp.sum_squares(X) / n,
    }[loss]
    whole: Any = sum(functions)
    hinge = cp.sum(cp.pos(1 - cp.multiply(y, whole[:, 0] + b)))
    kernels = kernels * m if len(kernels) == 1 else kernels
    away = sum(distance(K - Si) for K, Si in zip(kernels, S, strict=True))
    program = cp.Problem(cp.Minimize(t / 2 + C * hinge + rho * away), constraints)
    return float(program.solve(solver=cp.CLARABEL))
