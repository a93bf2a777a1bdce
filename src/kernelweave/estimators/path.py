"""Paths over C on one bank, each fit started from the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ..problems import Certificate
from ..solvers import choose_solver, follow_path
from ._inputs import bind
from ._one_fit import TimeShares, one_call
from .classifier import MKLClassifier

__all__ = ["MKLPath", "checked_Cs", "mkl_path"]


@dataclass(frozen=True)
class MKLPath:
    """Solutions for a series of C, smallest first.

    Attributes
    ----------
    Cs : array of shape (c,)
    weights : array of shape (c, m)
    dual_coefs : array of shape (c, n)
    intercepts : array of shape (c,)
    certificates : list of Certificate
    n_iter, passes, seconds : arrays of shape (c,)
        Iterations, passes over the bank and seconds of every fit; the bank is built once, before.
    kernel_names : array of shape (m,)
    """

    Cs: np.ndarray
    weights: np.ndarray
    dual_coefs: np.ndarray
    intercepts: np.ndarray
    certificates: list[Certificate]
    n_iter: np.ndarray
    passes: np.ndarray
    seconds: np.ndarray
    kernel_names: np.ndarray

    def __repr__(self) -> str:
        worst = max(one.relative_gap for one in self.certificates)
        return (
            f"MKLPath: {len(self.Cs)} fits for C from {self.Cs[0]:g} to {self.Cs[-1]:g}, each proved to be within "
            f"{100 * max(worst, 0.0):.2g} % of its optimum, in {self.passes.sum():.1f} passes over the bank"
        )


@one_call
def mkl_path(X: Any, y: Any, kernels: Any = None, *, Cs: Any = None, **parameters: Any) -> MKLPath:
    """Fit a two-class problem for many values of C, each started from the last, on one bank.

    Parameters
    ----------
    X, y : samples and labels
        As for ``MKLClassifier.fit``; two classes.
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : array-like, optional
        Values of C; by default 30 from 1e-2 to 1e3.
    **parameters
        Further parameters of ``MKLClassifier``; ``max_seconds`` is for the whole path.

    Returns
    -------
    MKLPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import kernels as kw, mkl_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = mkl_path(scale(X)[:200], y[:200], kw.gaussian([2.0, 4.0, 8.0]), Cs=[0.1, 1.0, 10.0])
    >>> path.weights.shape, max(c.relative_gap for c in path.certificates) <= 1e-3
    ((3, 3), True)
    """
    estimator = MKLClassifier(kernels, **parameters)
    Cs = checked_Cs(30 if Cs is None else Cs)
    training, codes, weight = estimator._checked(X, y, None)
    if estimator.classes_.size != 2:
        raise ValueError(f"mkl_path needs two classes, got {estimator.classes_.size}")
    targets, weights, _ = estimator._problems(codes, weight)
    loss, norm, solver = estimator._components()
    bank, _ = bind(training, estimator, effective_n_jobs(estimator.n_jobs))
    solver = solver or choose_solver(loss, norm, bank)
    found = [
        solution
        for _, _, solution in follow_path(
            bank,
            loss,
            norm,
            solver,
            targets[0],
            Cs,
            TimeShares(estimator._stop(), len(Cs)),
            sample_weight=weights[0],
            fit_intercept=estimator.fit_intercept,
            callback=estimator.callback,
            verbose=estimator.verbose,
        )
    ]
    return MKLPath(
        Cs=Cs,
        weights=np.stack([one.point.weights for one in found]),
        dual_coefs=np.stack([one.point.beta for one in found]),
        intercepts=np.array([one.certificate.intercept for one in found]),
        certificates=[one.certificate for one in found],
        n_iter=np.array([one.n_iter for one in found]),
        passes=np.array([one.passes for one in found]),
        seconds=np.array([one.seconds for one in found]),
        kernel_names=np.array(training.names, dtype=object),
    )


def checked_Cs(Cs: Any) -> np.ndarray:
    """Return increasing values of C; a whole number stands for that many from 1e-2 to 1e3."""
    given = np.logspace(-2, 3, Cs) if isinstance(Cs, int | np.integer) and Cs > 0 else Cs
    values = np.unique(np.atleast_1d(np.asarray(given, dtype=float)))
    if values.size == 0 or not (np.all(np.isfinite(values)) and np.all(values > 0)):
        raise ValueError(f"Cs must be a positive whole number or finite values > 0, got {Cs!r}")
    return values
