"""Figure 3: all methods against the number of training samples, on 36 kernels of which many are poor."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.estimators import LPBetaClassifier, MeanKernelRidgeClassifier, MKLClassifier, MKLClassifierCV
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.norms import Block, Elastic
from kernelweave.solvers.online import UFO, Obscure, Pegasos

from ..study import Key, Report, Row
from ..tables import mean_sd
from .data import C_GRID, MFEAT, mfeat_split, several_per_view, splits_of
from .preselection import loo_errors

SIZES = (50, 100, 300, 1000)
EXPONENTS, FOLDS, EPOCHS = (1.05, 1.25, 1.75), 2, 60
SETTINGS = {"exponents": EXPONENTS, "folds": FOLDS, "epochs": EPOCHS, "C": C_GRID, "version": 2}
OVR: dict[str, Any] = {"multi_class": "ovr"}


def keys(repeats: int) -> list[Key]:
    """A split of every size before the next split; methods that are tuned alike are run together."""
    return [{"n": n, "group": g, "seed": t} for t in range(repeats) for n in SIZES for g in GROUPS]


def work(key: Key) -> list[Row]:
    """One group of methods on one split."""
    split = mfeat_split(int(key["n"]), int(key["seed"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
        return GROUPS[str(key["group"])](split, int(key["seed"]))


def _tuned(split: Any, seed: int, kernels: Any, norms: Sequence[Any], **options: Any) -> Any:
    from sklearn.model_selection import StratifiedKFold

    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = MKLClassifierCV(kernels, norms=list(norms), Cs=list(C_GRID), cv=cv, tol=1e-2, **options)
    return search.fit(split.X, split.y)


def _row(name: str, model: Any, split: Any, **others: Any) -> Row:
    began = time.process_time()
    model.fit(split.X, split.y)
    seconds = time.process_time() - began
    wrong = 1.0 - float(model.score(split.X_test, split.y_test))
    return {"method": name, "error": wrong, "seconds": seconds, "C": np.nan, "p": np.nan, **others}


def _joint(split: Any, seed: int) -> list[Row]:
    """The same problem, p and C by three solvers."""
    tuned = _tuned(split, seed, several_per_view(), [Block(p) for p in EXPONENTS], fit_intercept=False)
    C, norm = float(tuned.C_), tuned.norm_
    made: dict[str, Any] = {"norm": norm, "C": C, "fit_intercept": False}
    solvers: dict[str, dict[str, Any]] = {
        "OBSCURE": {"solver": Obscure(), "max_iter": EPOCHS},
        "Pegasos": {"solver": Pegasos(), "max_iter": EPOCHS},
        "joint, default solver": {},
    }
    return [
        _row(name, MKLClassifier(several_per_view(), **made, **options), split, C=C, p=float(norm.r))
        for name, options in solvers.items()
    ]


def _ufo(split: Any, seed: int) -> list[Row]:
    norm = Elastic(1.0)
    options: dict[str, Any] = {"norm": norm, "solver": UFO(), "fit_intercept": False, "max_iter": EPOCHS}
    C = float(_tuned(split, seed, several_per_view(), [norm], **options).C_)
    return [_row("UFO", MKLClassifier(several_per_view(), C=C, **options), split, C=C)]


def _lp_beta(split: Any, seed: int) -> list[Row]:
    return [_row("LP-beta", LPBetaClassifier(several_per_view(), C=C_GRID), split)]


def _means(split: Any, seed: int) -> list[Row]:
    C = float(_tuned(split, seed, several_per_view(), ["uniform"], fit_intercept=False).C_)
    mean = MKLClassifier(several_per_view(), norm="uniform", C=C, fit_intercept=False)
    return [
        _row("mean kernel", mean, split, C=C),
        _row("mean kernel, ridge", MeanKernelRidgeClassifier(several_per_view()), split),
    ]


def _best(split: Any, seed: int) -> list[Row]:
    """The kernel by closed-form leave-one-out, its C by cross-validation."""
    spec, errors = loo_errors(split)
    kernel = spec[int(np.argmin(errors))]
    C = float(_tuned(split, seed, kernel, ["uniform"], fit_intercept=False).C_)
    return [_row("best kernel", MKLClassifier(kernel, norm="uniform", C=C, fit_intercept=False), split, C=C)]


def _ovr(split: Any, seed: int) -> list[Row]:
    C = float(_tuned(split, seed, several_per_view(), ["l1"], **OVR).C_)
    return [
        _row(
            f"{name}, one against the rest",
            MKLClassifier(several_per_view(), C=C, solver=solver, **OVR),
            split,
            C=C,
        )
        for name, solver in (("SILP", "silp"), ("SimpleMKL", "simplemkl"))
    ]


GROUPS: dict[str, Callable[[Any, int], list[Row]]] = {
    "joint": _joint, "ufo": _ufo, "lp_beta": _lp_beta, "means": _means, "best": _best, "ovr": _ovr,
}  # fmt: skip


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Accuracy and seconds by size."""
    sizes = sorted(set(rows["n"]))
    methods = list(dict.fromkeys(rows["method"]))
    table: list[Row] = []
    for method in methods:
        of_method = rows[rows["method"] == method]
        accuracy = {f"n = {n}": mean_sd(1.0 - of_method[of_method["n"] == n]["error"]) for n in sizes}
        last = of_method[of_method["n"] == sizes[-1]]["seconds"].mean()
        table.append({"method": method, **accuracy, f"seconds at n = {sizes[-1]}": float(last)})
    best = max(table, key=lambda line: float(str(line[f"n = {sizes[-1]}"]).split(" ")[0]))
    note = (
        f"Accuracy in % on the other samples. {MFEAT}; Gaussians of six widths per view (36 kernels, many of them poor "
        f"or redundant, as Caltech's 39), {splits_of(rows)}. C of 1, 10, 100, 1000 and for the "
        f"joint problem p of {', '.join(f'{p:g}' for p in EXPONENTS)} by {FOLDS}-fold cross-validation on the "
        "training part; LP-beta: every kernel's C and nu by five folds; best kernel: by closed-form leave-one-out; "
        f"UFO: `Elastic(alpha=1)`; ridge: C by leave-one-out. OBSCURE, Pegasos and UFO: {EPOCHS} epochs. No intercept "
        "but for SILP, SimpleMKL, LP-beta and ridge. Seconds are processor time of the last fit. "
        f"Best at n = {sizes[-1]}: {best['method']}."
    )
    report.table(table, note, "All methods against training size (Figure 3)")
    report.picture(_draw(rows, methods))
    return [f"best at n = {sizes[-1]}: {best['method']}"]


def _draw(rows: pd.DataFrame, methods: Sequence[str]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, method in enumerate(methods):
        of_method = rows[rows["method"] == method].groupby("n")[["error", "seconds"]].mean()
        style = {
            "color": f"C{k}",
            "marker": "osDv^<>pXd"[k % 10],
            "ms": 4,
            "lw": 2.0 if method == "OBSCURE" else 1.0,
        }
        left.semilogx(of_method.index, 100 * (1 - of_method["error"]), label=method, **style)
        right.loglog(of_method.index, of_method["seconds"], **style)
    left.set_ylabel("test accuracy, %")
    right.set_ylabel("seconds of the last fit")
    for ax in (left, right):
        ax.set_xlabel("training samples")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    return figure
