"""What a model has to beat on the same folds: guessing, simpler methods on its kernels, and others on the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples

__all__ = ["BASELINE", "MODEL", "Method", "methods_for", "parted"]

MODEL = "this model"
#: names of the methods that look at no feature
BASELINE = {True: "majority class", False: "mean of the targets"}
#: values that linear methods on the columns choose among
LINEAR_CS = tuple(10.0 ** np.arange(-4, 3))
TREES = 100


@dataclass(frozen=True)
class Method:
    """Something to fit and score on the folds.

    Attributes
    ----------
    name, about : str
    estimator : estimator
    sees : {"samples", "columns", "nothing"}
        What it is given: the samples as the model gets them, the columns of them that kernels look at, or no features.
    columns : sequence of int or None
        Which ones; None is all.
    """

    name: str
    about: str
    estimator: Any
    sees: str = "samples"
    columns: Sequence[int] | None = None

    def view(self, samples: Any) -> Any:
        """Return what the estimator is given of some samples."""
        if self.sees == "nothing":
            return np.zeros((_num_samples(samples), 1))
        return samples if self.sees == "samples" else _table(samples, self.columns)


def _table(samples: Any, columns: Sequence[int] | None) -> Any:
    """Return columns as one table of numbers; of whole views that a sample lacks they are NaN."""
    table = sparse.csr_matrix(samples) if sparse.issparse(samples) else np.asarray(samples, dtype=float)
    return table if columns is None else table[:, list(columns)]


def methods_for(model: Any, fitted: Any, classify: bool, samples: Any, seed: int) -> tuple[list[Method], str]:
    """Return the methods to compare, and why there is none on the columns, where there is none.

    The model (without steps before it) comes first, then simpler methods on the same kernels and methods on the columns
    themselves, and last one without features.  ``samples`` are those of the fit as the model gets them.
    """
    dummy: Any = DummyClassifier(strategy="most_frequent") if classify else DummyRegressor()
    about = "always the most frequent class" if classify else "always the mean of the training targets"
    simpler = _for_classes(model, fitted) if classify else [_for_numbers(model, fitted)]
    on_columns, why = _on_columns(model, fitted, classify, samples, seed)
    last = Method(BASELINE[classify], about, dummy, sees="nothing")
    return [Method(MODEL, "", model), *simpler, *on_columns, last], why


# ---- on the columns --------------------------------------------------------------------------------------------------


def _on_columns(model: Any, fitted: Any, classify: bool, samples: Any, seed: int) -> tuple[list[Method], str]:
    """Return a linear method and a forest on the columns of the samples; or nothing, and why."""
    kernels = getattr(fitted, "kernels_", None)
    if not kernels or any(kernel.takes_indices or kernel.takes_objects for kernel in kernels):
        return [], "the samples are no table of numbers that other methods could be fitted on"
    try:
        table = _table(samples, None)
    except (TypeError, ValueError):
        return [], "the columns are not all numbers, and other methods cannot be fitted on them"
    if table.ndim != 2:
        return [], "the samples are no table of numbers that other methods could be fitted on"
    used = sorted(set().union(*(kernel.looks_at(table.shape[1]) for kernel in kernels)))
    columns = None if len(used) == table.shape[1] else tuple(used)
    is_sparse = sparse.issparse(table)
    gaps = not is_sparse and not np.all(np.isfinite(table[:, used]))
    steps: list[tuple[str, Any]] = [("imputed", SimpleImputer(keep_empty_features=True))] if gaps else []
    filled = ", missing ones replaced by the mean" if gaps else ""
    weight = {"class_weight": getattr(model, "class_weight", None)} if classify else {}
    linear: Any = LogisticRegression(max_iter=1000, **weight) if classify else Ridge()
    grid = {"linear__C": LINEAR_CS} if classify else {"linear__alpha": tuple(1.0 / C for C in LINEAR_CS)}
    scaler = StandardScaler(with_mean=not is_sparse)
    search = GridSearchCV(Pipeline([*steps, ("scaled", scaler), ("linear", linear)]), grid)
    kind: Any = RandomForestClassifier if classify else RandomForestRegressor
    forest = Pipeline([*steps, ("forest", kind(TREES, random_state=seed, **weight))])
    what = f"on the {len(used)} columns that the kernels look at{filled}"
    name, strength = ("logistic regression", "C") if classify else ("ridge regression", "the penalty")
    about = f"{what}, standardised, {strength} by cross-validation inside each fold"
    return [
        Method(name, about, search, "columns", columns),
        Method("random forest", f"{TREES} trees {what}", forest, "columns", columns),
    ], ""


# ---- on the same kernels ---------------------------------------------------------------------------------------------


def _has_fixed_parts(fitted: Any) -> bool:
    """Whether some kernels always count (``kernels.always``): rules that weigh all kernels refuse those."""
    return any(kernel.always is not None for kernel in getattr(fitted, "kernels_", None) or [])


def _for_numbers(model: Any, fitted: Any) -> Method:
    """Equal weights: with C chosen as the model chooses it, else by leave-one-out."""
    from ..estimators import MeanKernelRidgeRegressor

    about = "all kernels with the same weight"
    chosen = hasattr(model, "Cs") and model.criterion == "convex"
    if chosen or _has_fixed_parts(fitted) or not fitted.loss_.least_squares:
        return _mean_kernel(model, about)
    ridge = MeanKernelRidgeRegressor(model.kernels, missing=getattr(model, "missing", "error"))
    return Method("mean kernel", f"{about}, C by leave-one-out", ridge)


def _for_classes(model: Any, fitted: Any) -> list[Method]:
    from ..estimators import BestKernelClassifier, MeanKernelClassifier, MKLClassifier
    from ..estimators.noisy import NoisyLabelMKLClassifier

    C = float(np.mean(fitted.C_))
    fixed = _has_fixed_parts(fitted)
    if isinstance(model, NoisyLabelMKLClassifier) or "norm" not in model.get_params(deep=False):
        # a loss or weights by a rule of its own
        about = f"SVM with all kernels weighted alike, at the model's C = {C:.3g}"
        weight = model.class_weight
        made: Any = MeanKernelClassifier(model.kernels, C=C, class_weight=weight)
        if fixed:
            made = MKLClassifier(model.kernels, norm="uniform", C=C, class_weight=weight)
        mean = Method("mean kernel", about, made)
    else:
        mean = _mean_kernel(model, "all kernels weighted alike")
    if fixed:
        return [mean]
    best = BestKernelClassifier(
        model.kernels, C=C, class_weight=model.class_weight, missing=getattr(model, "missing", "error")
    )
    about = f"SVM on the kernel that does best in cross-validation, at the model's C = {C:.3g}"
    if hasattr(model, "Cs"):
        best.set_params(Cs=model.Cs, cv=model.cv, random_state=model.random_state)
        about = "SVM on the kernel that does best in cross-validation, C among the model's values and on its folds"
    return [mean, Method("best single kernel", about, best)]


def _mean_kernel(model: Any, about: str) -> Method:
    """The same model with weights that are not learnt; it chooses C where the model does."""
    last = clone(model).set_params(norm="uniform", solver="auto")
    chosen = hasattr(last, "Cs")
    if chosen:
        last.set_params(norms=None)
    how = "C chosen as for the model" if chosen else "at the same C"
    return Method("mean kernel", f"{about}, {how}", last)


def parted(model: Any) -> tuple[Any, Any]:
    """Return the steps before the model, None where there are none, and the model itself."""
    if not isinstance(model, Pipeline):
        return None, model
    return model[:-1] if len(model.steps) > 1 else None, model.steps[-1][1]
