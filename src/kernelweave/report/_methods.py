"""What a model has to beat on the same folds: guessing, and simpler methods on the same kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline

__all__ = ["BASELINE", "MODEL", "Method", "methods_for", "parted"]

MODEL = "this model"
#: names of the methods that look at no feature
BASELINE = {True: "majority class", False: "mean of the targets"}


@dataclass(frozen=True)
class Method:
    """Something to fit and score on the folds; a blind one gets no features."""

    name: str
    about: str
    estimator: Any
    blind: bool = False


def methods_for(model: Any, fitted: Any, classify: bool) -> list[Method]:
    """Return the model (without steps before it), simpler methods on the same kernels, and one without features."""
    dummy: Any = DummyClassifier(strategy="most_frequent") if classify else DummyRegressor()
    about = "always the most frequent class" if classify else "always the mean of the training targets"
    simpler = _for_classes(model, fitted) if classify else _for_numbers(model, fitted)
    return [Method(MODEL, "", model), *simpler, Method(BASELINE[classify], about, dummy, blind=True)]


def _has_fixed_parts(fitted: Any) -> bool:
    """Whether some kernels always count (``kernels.always``): rules that weigh all kernels refuse those."""
    return any(kernel.always is not None for kernel in getattr(fitted, "kernels_", None) or [])


def _for_numbers(model: Any, fitted: Any) -> list[Method]:
    from ..estimators import MeanKernelRidgeRegressor

    if _has_fixed_parts(fitted):
        return [_mean_kernel(model, "all kernels with the same weight")]
    ridge = MeanKernelRidgeRegressor(model.kernels, missing=getattr(model, "missing", "error"))
    return [
        _mean_kernel(model, "all kernels with the same weight"),
        Method("ridge on the mean kernel", "C by leave-one-out", ridge),
    ]


def _for_classes(model: Any, fitted: Any) -> list[Method]:
    from ..estimators import BestKernelClassifier, MeanKernelClassifier, MKLClassifier
    from ..estimators.noisy import NoisyLabelMKLClassifier

    C = float(np.mean(fitted.C_))
    fixed = _has_fixed_parts(fitted)
    if isinstance(model, NoisyLabelMKLClassifier):
        about = f"SVM with all kernels weighted alike, at the model's C = {C:.3g}"
        options: dict[str, Any] = {"C": C, "class_weight": model.class_weight}
        plain = MKLClassifier(model.kernels, norm="uniform", **options) if fixed else None
        mean = Method("mean kernel", about, plain or MeanKernelClassifier(model.kernels, **options))
    else:
        mean = _mean_kernel(model, "all kernels weighted alike")
    if fixed:
        return [mean]
    best = BestKernelClassifier(
        model.kernels, C=C, class_weight=model.class_weight, missing=getattr(model, "missing", "error")
    )
    about = f"SVM on the kernel that does best in cross-validation, at the model's C = {C:.3g}"
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
