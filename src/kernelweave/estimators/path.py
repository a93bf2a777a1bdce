"""Paths over C on one bank, each fit started from the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._estimating import TimeShares, one_call, several_fits
from ..exceptions import KernelWeaveConvergenceWarning, warn_at_caller
from ..problems import Certificate
from ._bind import bind
from ._tasks import path_of
from ._types import Array, Column, KernelsLike, Samples
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
    status : list of str
        Why every fit ended, as ``status_`` of an estimator.
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
    status: list[str]

    def __repr__(self) -> str:
        worst = max(certificate.relative_gap for certificate in self.certificates)
        return (
            f"MKLPath: {len(self.Cs)} fits for C from {self.Cs[0]:g} to {self.Cs[-1]:g}, each proved to be within "
            f"{100 * max(worst, 0.0):.2g} % of its optimum, in {self.passes.sum():.1f} passes over the bank"
        )


@several_fits
@one_call
def mkl_path(
    X: Samples, y: Column, kernels: KernelsLike = None, *, Cs: ArrayLike | None = None, **parameters: Any
) -> MKLPath:
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
    labelled = estimator._checked(X, y, None)
    if labelled.classes.size != 2:
        raise ValueError(f"mkl_path needs two classes, got {labelled.classes.size}")
    plan = labelled.plan
    bound = bind(labelled.training, plan.bank)
    fits = path_of(labelled.tasks()[0], bound.bank, plan, Cs, TimeShares(plan.stop, len(Cs)))
    solutions = [solution for _, _, solution in fits]
    short = [solution for solution in solutions if not solution.converged]
    if short:
        worst = max(short, key=lambda solution: solution.certificate.relative_gap)
        warn_at_caller(
            f"{len(short)} of {len(Cs)} fits of the path ended before the tolerance, the worst at a relative gap of "
            f"{worst.certificate.relative_gap:.2g} ({worst.message}); their certificates are valid",
            KernelWeaveConvergenceWarning,
        )
    return MKLPath(
        Cs=Cs,
        weights=np.stack([solution.point.weights for solution in solutions]),
        dual_coefs=np.stack([solution.point.beta for solution in solutions]),
        intercepts=np.array([solution.certificate.intercept for solution in solutions]),
        certificates=[solution.certificate for solution in solutions],
        n_iter=np.array([solution.n_iter for solution in solutions]),
        passes=np.array([solution.passes for solution in solutions]),
        seconds=np.array([solution.seconds for solution in solutions]),
        kernel_names=np.array(labelled.training.names, dtype=object),
        status=[solution.status for solution in solutions],
    )


def checked_Cs(Cs: ArrayLike) -> Array:
    """Return increasing values of C; a whole number stands for that many from 1e-2 to 1e3."""
    given = np.logspace(-2, 3, Cs) if isinstance(Cs, int | np.integer) and Cs > 0 else Cs
    values = np.unique(np.atleast_1d(np.asarray(given, dtype=float)))
    if values.size == 0 or not (np.all(np.isfinite(values)) and np.all(values > 0)):
        raise ValueError(f"Cs must be a positive whole number or finite values > 0, got {Cs!r}")
    return values
