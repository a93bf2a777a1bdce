"""How much of the variance of a target each kernel accounts for: in the model, and in new data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._typing import Array
from ..estimators.fitted import function_of, samples_for
from .views import ViewsOfKernels, final_estimator, kernel_views, paired, transformed


@dataclass(frozen=True)
class VarianceSplit(ViewsOfKernels):
    """Parts of one for every kernel, and what is left.

    Attributes
    ----------
    parts : array of shape (m,) or (m, t)
    rest : float or array of shape (t,)
        The noise's share of the variance, or what a wrong mean of the predictions takes off R2.
    kernel_names, views : arrays of shape (m,)
    what : str
        ``"share of variance"`` or ``"R2"``.
    """

    parts: Array
    rest: Any
    kernel_names: NDArray[Any]
    views: NDArray[Any]
    what: str

    def __repr__(self) -> str:
        t = 1 if self.parts.ndim == 1 else self.parts.shape[1]
        kernels, views = len(self.parts), len(self.view_names)
        return f"VarianceSplit: {self.what} of {t} targets, over {kernels} kernels of {views} views"

    @property
    def total(self) -> Any:
        """Sum of the parts; of a split of R2, with the rest: R2."""
        total = self.parts.sum(axis=0)
        return total + self.rest if self.what == "R2" else total

    def by_view(self) -> Array:
        """Return the parts summed over the kernels of each view, ``(views,)`` or ``(views, t)``."""
        return np.stack([self.parts[self.views == name].sum(axis=0) for name in self.view_names])

    def table(self) -> Any:
        """Return one row per kernel: its view, and the mean and quartiles of its parts over the targets."""
        parts = self.parts.reshape(len(self.parts), -1)
        table = pd.DataFrame({"kernel": self.kernel_names, "view": self.views, "mean": parts.mean(axis=1)})
        names = ["lower quartile", "median", "upper quartile"]
        table[names] = np.quantile(parts, [0.25, 0.5, 0.75], axis=1).T
        return table


def variance_shares(model: Any, *, views: Any = None) -> VarianceSplit:
    """Return the share of each kernel in the variance of a target, as the model sees it.

    Weights ``d_j`` beside a ridge alpha say that a target is a sum of independent Gaussian processes with covariances
    ``d_j K_j`` and of noise with variance alpha, in the same units.  With kernels of mean diagonal one, centred, the
    shares are ``d_j / (sum d + alpha)``; by REML these are the variance components of the mixed model.

    Parameters
    ----------
    model : MKLRegressorCV, or a pipeline that ends in one
        Fitted with centred kernels of trace n, its defaults.
    views : sequence or function, optional
        As for :func:`kernel_views`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressorCV, kernels as kw
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=60)
    >>> views = kw.per_view({"first": [0, 1], "last": [2, 3]}, kw.linear())
    >>> shares = variance_shares(MKLRegressorCV(views, criterion="reml").fit(X, y))
    >>> bool(shares.parts[0] > 0.2), round(float(shares.total + shares.rest), 9)
    (True, 1.0)
    """
    estimator = final_estimator(model)
    names = estimator_names(estimator)
    if not hasattr(estimator, "alpha_"):
        raise ValueError(f"{type(estimator).__name__} has no ridge per target: take MKLRegressorCV")
    if estimator.normalize != "trace" or not estimator.center:
        needed = "fit with normalize='trace' and center=True"
        raise ValueError(f"shares of variance need kernels of one scale: {needed}")
    # d over alpha; nothing where alpha is infinite
    scaled = np.asarray(estimator.weights_).T * (2.0 * np.asarray(estimator.C_))
    total = 1.0 + scaled.sum(axis=0)
    return VarianceSplit(scaled / total, 1.0 / total, names, kernel_views(model, views), "share of variance")


def r2_split(model: Any, X: Any, y: Any, *, views: Any = None, centred: bool = True) -> VarianceSplit:
    """Split R2 on samples into what each kernel contributes; the parts and the rest sum to R2.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted regressor.
    X, y : samples and targets
        New ones, to say something about prediction.
    views : sequence or function, optional
        As for :func:`kernel_views`.
    centred : bool, default=True
        As for :func:`split_r2`.
    """
    estimator = final_estimator(model)
    names = estimator_names(estimator)
    function = function_of(estimator)
    X, y = paired(model, X, y)
    parts = function.by_kernel(samples_for(estimator, transformed(model, X)))
    targets = np.asarray(y, dtype=float)
    predicted = (parts.shape[0], *parts.shape[2:])
    if targets.shape != predicted:
        raise ValueError(f"y of shape {targets.shape} does not go with predictions of {predicted}")
    split = split_r2(targets, parts, centred)
    rest = np.zeros(targets.shape[1:])
    if centred:
        bias = np.mean(targets - parts.sum(axis=1) - function.intercept, axis=0)
        rest = -(bias**2) * len(targets) / np.sum((targets - targets.mean(axis=0)) ** 2, axis=0)
    return VarianceSplit(split, rest if rest.ndim else float(rest), names, kernel_views(model, views), "R2")


def split_r2(y: Array, parts: Array, centred: bool = True) -> Array:
    """Return ``sum_i (2 y_i f_ij - f_ij f_i) / sum_i y_i^2`` of every part j; f is the sum of the parts.

    Parameters
    ----------
    y : array of shape (n,) or (n, t)
    parts : array of shape (n, m) or (n, m, t)
        What each kernel adds to the predictions.
    centred : bool, default=True
        Whether targets and parts are taken from their means first.  The sum over parts is then R2 of predictions whose
        mean is right.  Without it the form is that of himalaya's ``r2_score_split``, for targets of mean zero.

    Returns
    -------
    array of shape (m,) or (m, t)

    Examples
    --------
    >>> split_r2(np.array([1.0, -1.0]), np.array([[0.5, 0.5], [-0.5, -0.5]])).tolist()
    [0.5, 0.5]
    """
    if centred:
        y, parts = y - y.mean(axis=0), parts - parts.mean(axis=0)
    total = parts.sum(axis=1)
    return np.asarray(np.sum(parts * (2.0 * y - total)[:, None], axis=0) / np.sum(y**2, axis=0))


def estimator_names(estimator: Any) -> NDArray[Any]:
    """Return the names of the kernels of a fitted regressor, or raise."""
    function_of(estimator)
    if hasattr(estimator, "classes_"):
        raise ValueError("variance is split for regressors; for classes see contributions")
    return np.asarray(estimator.kernel_names_)
