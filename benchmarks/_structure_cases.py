"""What ``structure.py`` measures: rows of one number each, by part."""

from __future__ import annotations

import sys
import time
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from _problems import uci
from kernelweave import MKLClassifier, MKLClassifierCV, norms
from kernelweave import kernels as kw
from kernelweave.solvers import Stop, choose_solver, solve
from kernelweave_studies.datasets import load_mfeat, load_uci

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
import references as ref
from problems.making import STRUCTURED, make_case

COLUMNS = ("part", "problem", "method", "measure", "value")
Row = dict[str, Any]


def row(part: str, problem: str, method: str, measure: str, value: float) -> Row:
    """Return one number with what it is."""
    return dict(zip(COLUMNS, (part, problem, method, measure, value), strict=True))


# ---- agreement with a conic solver -----------------------------------------------------------------------------------

FIVE = [ref.HINGE, ref.SQUARED_HINGE, ref.LOGISTIC, ref.SQUARED, ref.epsilon_insensitive(0.1)]


def agreement(quick: bool) -> list[Row]:
    """Objectives at a gap of 1e-7 beside those of CLARABEL, which is given the set of weights itself."""
    rows = []
    names = list(STRUCTURED)[::4] if quick else list(STRUCTURED)
    for name, loss, fit_intercept in product(names, FIVE, (True, False)):
        case = make_case(loss, name, fit_intercept, n=14, m=5)
        problem = case.problem
        found = solve(problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol=1e-7))
        point, conic = found.point, case.conic()
        # both objectives from the definitions in tests/references.py
        primal = case.primal(point.beta, point.weights)
        title = f"{loss.label}, {'with' if fit_intercept else 'without'} intercept"
        rows += [
            row("agreement", title, name, "difference", abs(primal - conic.value) / abs(conic.value)),
            row("agreement", title, name, "gap", found.certificate.relative_gap),
            row("agreement", title, name, "conic gap", conic.relative_gap),
        ]
    return rows


# ---- passes to a gap of 1e-3 ---------------------------------------------------------------------------------------

NORMS = {
    "l1": "l1",
    "elastic net, mix 0.2": norms.ElasticNet(0.2),
    "elastic net, mix 0.8": norms.ElasticNet(0.8),
    "elastic blocks, mix 0.5": norms.ElasticBlocks(0.5),
    "elastic, alpha 1, r 2": norms.Elastic(1.0, 2.0),
    "grouped (1, 2)": norms.Grouped(1, 2),
    "grouped (2, 1)": norms.Grouped(2, 1),
    "grouped (1, 4/3)": norms.Grouped(1, 4 / 3),
}


def mfeat(n: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Even against odd digits by six views, Gaussians of six widths on each."""
    data = load_mfeat(download=False)
    X = scale(data.data)
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    y = np.where(np.asarray(data.target).astype(int) % 2 == 0, 1.0, -1.0)
    widths = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    return X[rows], y[rows], kw.per_view(data.views, kw.gaussian(widths))


def passes(quick: bool) -> list[Row]:
    """Passes over the bank of every norm, for C = 1 and 10."""
    rows = []
    for name in ("ionosphere", "pima") if quick else ("ionosphere", "sonar", "pima", "wdbc", "mfeat"):
        if name == "mfeat":
            X, y, kernels = mfeat(500)
        else:
            problem = uci(name)
            X, y, kernels = problem.X, problem.y, problem.kernels
        for label, norm in NORMS.items():
            for C in (1.0, 10.0):
                began = time.process_time()
                model = MKLClassifier(kernels, norm=norm, C=C).fit(X, y)
                seconds = time.process_time() - began
                title = f"{name}, C = {C:g}"
                rows += [
                    row("passes", title, label, "passes", model.n_passes_),
                    row("passes", title, label, "gap", model.certificate_.relative_gap),
                    row("passes", title, label, "seconds", seconds),
                ]
    return rows


# ---- planted views -------------------------------------------------------------------------------------------------

VIEWS, COLUMNS_OF_A_VIEW = 20, 5


def planted(quick: bool) -> list[Row]:
    """20 views of five kernels; three of them tell the label, by kernels that are alike."""
    rows = []
    methods = {
        "l1": "l1",
        "elastic net, mix 0.5": norms.ElasticNet(0.5),
        "elastic blocks, mix 0.5": norms.ElasticBlocks(0.5),
        "grouped (1, 2)": norms.Grouped(1, 2, [f"view {j // COLUMNS_OF_A_VIEW:02d}" for j in range(100)]),
    }
    for draw in range(2 if quick else 20):
        X, y, kernels, truth = planted_problem(draw)
        for (label, norm), C in product(methods.items(), (0.1, 0.3)):
            model = MKLClassifier(kernels, norm=norm, C=C).fit(X, y)
            share = view_shares(model.weights_)
            found = set(np.flatnonzero(share > 0.01).tolist())
            measured: dict[str, float] = {
                "three largest": set(np.argsort(-share)[:3].tolist()) == truth,
                "exactly": found == truth,
                "views": len(found),
            }
            measured["jaccard"] = refit_jaccard(kernels, norm, C, X, y, draw)
            title = f"draw {draw}, C = {C:g}"
            rows += [row("planted", title, label, measure, value) for measure, value in measured.items()]
    return rows


def planted_problem(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray, Any, set[int]]:
    """Three views measure a latent number each, five times and nearly alike; the other views are noise.

    The label is the sign of the sum of the three numbers, with some noise.
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice(VIEWS, 3, replace=False)
    latent = rng.normal(size=(n, VIEWS))
    X = rng.normal(size=(n, VIEWS, COLUMNS_OF_A_VIEW))
    X[:, truth] = np.sqrt(0.9) * latent[:, truth, None] + np.sqrt(0.1) * X[:, truth]
    y = np.where(latent[:, truth].sum(axis=1) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    bank = kw.Stack(tuple(kw.gaussian(2.0).on(j) for j in range(VIEWS * COLUMNS_OF_A_VIEW)))
    return X.reshape(n, -1), y, bank, set(truth.tolist())


def view_shares(weights: np.ndarray) -> np.ndarray:
    """Shares of the weight by view of five kernels."""
    sums = weights.reshape(VIEWS, COLUMNS_OF_A_VIEW).sum(axis=1)
    return sums / sums.sum()


def refit_jaccard(kernels: Any, norm: Any, C: float, X: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Mean agreement of the kernels chosen on pairs of random 80 % of the samples."""
    rng = np.random.default_rng(seed)
    chosen = []
    for _ in range(4):
        rows = np.sort(rng.permutation(len(y))[: int(0.8 * len(y))])
        weights = MKLClassifier(kernels, norm=norm, C=C).fit(X[rows], y[rows]).weights_
        chosen.append(weights > 1e-3 * weights.sum())
    return float(np.mean([np.sum(a & b) / np.sum(a | b) for a, b in combinations(chosen, 2)]))


# ---- at most k kernels ---------------------------------------------------------------------------------------------


def thirty(d: int, m: int = 30) -> Any:
    """Gaussians, Laplacians and polynomials on all features, then Gaussians on single ones, m in all."""
    unit = float(np.sqrt(d))
    whole = kw.gaussian([unit * w for w in (0.25, 0.5, 1.0, 2.0)]) + kw.laplacian([d * 0.25, d * 1.0])
    whole = whole + kw.linear() + kw.polynomial(2) + kw.polynomial(3)
    single = [kw.gaussian(width).on(j) for width in (1.0, 0.5, 2.0) for j in range(d)]
    bank = list(whole)[: m if m < 9 else 9]
    return kw.Stack(tuple(bank + single[: m - len(bank)]))


def subsets(quick: bool) -> list[Row]:
    """Proofs for m = 30, and the enumeration of all subsets for m = 12."""
    rows = []
    for name in ("sonar",) if quick else ("ionosphere", "sonar", "pima"):
        problem = uci(name)
        X, y = problem.X, problem.y
        for k in (3, 5):
            began, clock = time.process_time(), time.perf_counter()
            model = MKLClassifier(thirty(X.shape[1]), norm=norms.AtMost(k), max_seconds=300).fit(X, y)
            title = f"{name}, m = 30, k = {k}"
            rows += [
                row("subsets", title, "at most k", "gap", model.certificate_.relative_gap),
                row("subsets", title, "at most k", "seconds", time.process_time() - began),
                row("subsets", title, "at most k", "clock", time.perf_counter() - clock),
                row("subsets", title, "at most k", "inner solves", len(model.certificate_.cuts)),
                row("subsets", title, "at most k", "objective", model.certificate_.primal),
            ]
        rows += enumerated(name, X, y, 3)
    return rows


def enumerated(name: str, X: np.ndarray, y: np.ndarray, k: int) -> list[Row]:
    """The best of all subsets of 12 kernels, one SVM each, beside the two bounds."""
    bank = thirty(X.shape[1], 12)
    model = MKLClassifier(bank, norm=norms.AtMost(k)).fit(X, y)
    best = np.inf
    for chosen in combinations(range(12), k):
        weights = np.isin(np.arange(12), chosen) / k
        best = min(best, MKLClassifier(bank, norm=norms.Fixed(weights)).fit(X, y).certificate_.dual)
    title = f"{name}, m = 12, k = {k}"
    return [
        row("subsets", title, "at most k", "gap", model.certificate_.relative_gap),
        row("subsets", title, "at most k", "objective", model.certificate_.primal),
        row("subsets", title, "at most k", "bound", model.certificate_.dual),
        row("subsets", title, "enumeration", "objective", best),
    ]


# ---- accuracy ------------------------------------------------------------------------------------------------------

CS = (1.0, 10.0, 100.0)
RIVALS = {
    "l1": "l1",
    "l2": 2,
    "uniform": "uniform",
    "elastic net, mix 0.5": norms.ElasticNet(0.5),
    "at most 3": norms.AtMost(3),
    "at most 5": norms.AtMost(5),
}


#: the sets at hand; the study whose margins are in question has ten
SETS = ("heart", "ionosphere", "liver", "sonar", "wdbc", "breast", "pima")


def accuracy(quick: bool, sets: tuple[str, ...] = SETS) -> list[Row]:
    """Accuracy on the other half of the samples; every C by three folds."""
    rows = []
    for name in ("heart",) if quick else sets:
        X, y = load_uci(name, return_X_y=True, download=False)
        for split in range(2 if quick else 10):
            halves = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
            for method in (*RIVALS, "SVC, tuned"):
                began = time.process_time()
                value = score(method, *halves)
                rows.append(row("accuracy", f"{name}, split {split}", method, "accuracy", value))
                rows.append(
                    row("accuracy", f"{name}, split {split}", method, "seconds", time.process_time() - began)
                )
    return rows


def score(method: str, X: np.ndarray, new: np.ndarray, y: np.ndarray, wanted: np.ndarray) -> float:
    """Fit on one half, return the accuracy on the other."""
    scaler = StandardScaler().fit(X)
    X, new = scaler.transform(X), scaler.transform(new)
    if method == "SVC, tuned":
        grid = {"C": CS, "gamma": [g / X.shape[1] for g in (0.03, 0.1, 0.3, 1.0, 3.0)]}
        return float(GridSearchCV(SVC(), grid, cv=3).fit(X, y).score(new, wanted))
    model = MKLClassifierCV(thirty(X.shape[1]), norms=[RIVALS[method]], Cs=CS, cv=3, tol=1e-2)
    return float(model.fit(X, y).score(new, wanted))


PARTS = {
    "agreement": agreement,
    "passes": passes,
    "planted": planted,
    "subsets": subsets,
    "accuracy": accuracy,
}
