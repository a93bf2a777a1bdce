"""The methods of the similarity study: tuned by five-fold cross-validation on the training part, then fitted once."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from kernelweave.estimators import (
    DenoiseSpectrum,
    MeanKernelRidgeClassifier,
    MKLClassifier,
    SimilarityClassifier,
    held_similarities,
)
from kernelweave.exceptions import KernelWeaveWarning

from ..study import Row
from .data import SimilaritySplit

CS = (0.1, 1.0, 10.0)
RHOS = (0.5, 5.0, 50.0)
#: in cross-validation, and for the fit that is tested
TUNING = {"tol": 0.05, "max_iter": 20}
FINAL = {"tol": 0.01, "max_iter": 150}


class DenoisedMKL(ClassifierMixin, BaseEstimator):
    """MKL on the denoised similarities, X being sample indices: the rivals that learn weights only, or nothing."""

    def __init__(self, holder: Any = None, norm: Any = "l1", C: float = 1.0, rule: str = "smooth") -> None:
        self.holder = holder
        self.norm = norm
        self.C = C
        self.rule = rule

    def fit(self, X: Any, y: Any) -> DenoisedMKL:
        """Denoise every training block, and fit on the kernels."""
        self._train = np.asarray(X).ravel()
        self._steps = [DenoiseSpectrum(rule=self.rule) for _ in self.holder.stack]
        blocks = [S[np.ix_(self._train, self._train)] for S in self.holder.stack]
        kernels = [step.fit_transform(block) for step, block in zip(self._steps, blocks, strict=True)]
        if self.norm == "ridge":
            self._model: Any = MeanKernelRidgeClassifier("precomputed")
        else:
            self._model = MKLClassifier("precomputed", norm=self.norm, C=self.C, tol=1e-2)
        self._model.fit(kernels, y)
        self.classes_, self.certificate_ = self._model.classes_, self._model.certificate_
        self.n_iter_ = int(self._model.n_iter_)
        return self

    def predict(self, X: Any) -> Any:
        """Predict from rows of similarities to the training samples."""
        rows = [S[np.ix_(np.asarray(X).ravel(), self._train)] for S in self.holder.stack]
        return self._model.predict([step.transform(R) for step, R in zip(self._steps, rows, strict=True)])


@dataclass(frozen=True)
class _Method:
    """A method, its fixed parameters, and whether it has a rho."""

    parameters: dict[str, Any]
    rho: bool = False

    def estimator(self, holder: Any) -> Any:
        if "norm" in self.parameters:
            return DenoisedMKL(holder, **self.parameters)
        return SimilarityClassifier(holder, **self.parameters)

    def grid(self) -> dict[str, Any]:
        if self.parameters.get("norm") == "ridge":
            return {}
        return {"C": list(CS), "rho": list(RHOS)} if self.rho else {"C": list(CS)}


def _learned(method: str, loss: str = "frobenius", rule: str = "smooth") -> _Method:
    return _Method({"method": method, "loss": loss, "rule": rule}, rho=True)


#: spectrum methods by their own rule, as in the literature; "smooth" is ours
_CLASSIC = {
    "Denoise": _Method({"method": "denoise", "rule": "classical"}),
    "Flip": _Method({"method": "flip", "rule": "classical"}),
    "Shift": _Method({"method": "shift", "rule": "classical"}),
    "features": _Method({"method": "features"}),
    "Denoise, smooth": _Method({"method": "denoise"}),
    "IndSVM": _learned("indsvm"),
    "ESKL, l1": _learned("eskl", "l1"),
    "ESKL, frobenius": _learned("eskl"),
    "ESKL, squared": _learned("eskl", "squared"),
    "ESKL, frobenius, classical": _learned("eskl", rule="classical"),
}
SINGLE = {**_CLASSIC}
METHODS = {
    **_CLASSIC,
    "l1-MKL on denoised": _Method({"norm": "l1", "rule": "classical"}),
    "l1-MKL on denoised, smooth": _Method({"norm": "l1"}),
    "mean of denoised, smooth": _Method({"norm": "uniform"}),
    "ridge, mean of denoised, smooth": _Method({"norm": "ridge"}),
    "EMKL, l1": _learned("emkl", "l1"),
    "EMKL, frobenius": _learned("emkl"),
    "REKL, frobenius": _learned("rekl"),
}
#: kernel x rule
ABLATION = {
    "Denoise": ("Denoise", "Denoise, smooth"),
    "ESKL, frobenius": ("ESKL, frobenius, classical", "ESKL, frobenius"),
    "l1-MKL on denoised": ("l1-MKL on denoised", "l1-MKL on denoised, smooth"),
}


def run_similarity_method(name: str, split: SimilaritySplit, seed: int) -> Row:
    """Tune, fit, test: one row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)  # the gap reached is reported
        return _run(name, split, seed)


def _run(name: str, split: SimilaritySplit, seed: int) -> Row:
    method = METHODS[name]
    holder = held_similarities(split.stack)
    X, y = split.train[:, None], split.y[split.train]
    model = method.estimator(holder)
    learned = isinstance(model, SimilarityClassifier)
    began = time.perf_counter()
    best: dict[str, Any] = {}
    if grid := method.grid():
        cv = StratifiedKFold(5, shuffle=True, random_state=seed)
        search = GridSearchCV(model.set_params(**TUNING) if learned else model, grid, cv=cv, refit=False)
        search.fit(X, y)
        best = search.best_params_
        model = method.estimator(holder).set_params(**best)
    if learned:
        model.set_params(**FINAL)
    tuned = time.perf_counter()
    model.fit(X, y)
    done = time.perf_counter()
    predicted = model.predict(split.test[:, None])
    truth = split.y[split.test]
    return {
        "method": name,
        "accuracy": float(np.mean(predicted == truth)),
        "f_score": float(f1_score(truth, predicted, pos_label=1.0)),
        "C": best.get("C", np.nan),
        "rho": best.get("rho", np.nan),
        "relative_gap": float(model.certificate_.relative_gap),
        "iterations": int(model.n_iter_),
        "fit_seconds": done - tuned,
        "tuning_seconds": tuned - began,
    }
