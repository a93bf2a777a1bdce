"""One fit of ``SimilarityClassifier``: kernels, coefficients, certificate, and what new rows are multiplied with."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import KernelWeaveConvergenceWarning, NotFiniteError, warn_at_caller
from ..losses import Hinge
from ..problems import Certificate, solve_fixed
from ..solvers import MESSAGES, Stop, final_status, solve
from .inputs import Normalised
from .losses import SimilarityLoss, SquaredLoss, make_similarity_loss
from .new_rows import classical, smooth, spectrum_kernel
from .problems import SimilarityCertificate, SimilarityProblem
from .solvers import SimilaritySolver, similarity_solvers

__all__ = ["LEARNED", "METHODS", "SPECTRUM", "SimilarityFit", "Task", "fit_method"]

LEARNED = ("eskl", "emkl", "rekl", "indsvm")
SPECTRUM = ("denoise", "flip", "shift")
METHODS = (*LEARNED, *SPECTRUM, "features")


@dataclass(frozen=True)
class Task:
    """What to fit: targets of shape (n,), or (n, k) for classes that share their kernels, and the costs."""

    y: np.ndarray
    weight: np.ndarray
    C: float
    rho: float
    loss: Any
    rule: str
    fit_intercept: bool
    stop: Stop
    solver: Any = None
    callback: Any = None
    verbose: int = 0
    label: str = ""


@dataclass
class SimilarityFit:
    """What a fit leaves: ``decision = aggregate(rows) @ coef + intercept``, or a sum over similarities."""

    kernels: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    beta: np.ndarray
    coef: np.ndarray
    certificate: Certificate
    trace: list[tuple[float, ...]]
    n_iter: int
    status: str
    passes: float
    loss: SimilarityLoss | None = None

    @property
    def training_values(self) -> np.ndarray:
        """Decision values of the training samples by the fitted kernels themselves, not by rows of similarities."""
        if len(self.kernels) == 1:
            return np.asarray(self.kernels[0] @ self.beta + self.certificate.intercept)
        mixed = np.tensordot(self.weights, self.kernels, axes=1)
        return np.asarray(mixed @ self.beta + self.certificate.intercept)

    def decision(self, rows: np.ndarray) -> np.ndarray:
        """Decision values of normalised rows ``(m, n_new, n)``, each from its own row alone."""
        if (
            self.loss is not None
        ):  # one kernel: the similarities of a row are joined first, as the loss joins them
            return self.loss.aggregate(rows, self.shares) @ self.coef + self.certificate.intercept
        values = sum(R @ w for R, w in zip(rows, self.coef, strict=True))
        return values + self.certificate.intercept


def fit_method(method: str, given: Normalised, task: Task) -> SimilarityFit:
    """Fit one method to normalised similarities."""
    if method in SPECTRUM:
        return _fit_spectrum(method, given, task)
    return _fit_features(given, task) if method == "features" else _fit_learned(method, given, task)


# ---- learned kernels --------------------------------------------------------------------------------------------


def _fit_learned(method: str, given: Normalised, task: Task) -> SimilarityFit:
    made = similarity_solvers.make(task.solver or method, SimilaritySolver)
    if not isinstance(made, similarity_solvers[method]):
        raise ValueError(f"method={method!r} needs a solver of its own kind, got {made!r}")
    m = given.stack.shape[0]
    several = method in ("emkl", "rekl")
    # with m copies of one similarity (6) is (4) at C / m^2 and rho / m^2: the numbers then mean the same everywhere;
    # classes that share a kernel share its charge as well
    scale = 1.0 / m**2 if several else 1.0
    columns = 1 if task.y.ndim == 1 else task.y.shape[1]
    problem: SimilarityProblem = made.problem(
        given.stack,
        task.y,
        C=task.C * scale,
        rho=task.rho * scale * columns,
        loss=task.loss,
        sample_weight=task.weight,
        fit_intercept=task.fit_intercept,
    )
    solution = solve(problem, made, task.stop, callback=task.callback, verbose=task.verbose)
    certificate = problem.certificate(solution.point).with_dual_of(solution.certificate)
    if certificate.relative_gap < -1e-6:
        raise ValueError(
            f"the lower bound {certificate.dual:.6g} is above the objective {certificate.primal:.6g}: the similarity "
            "loss is not convex, or its subgradient or conjugate is wrong"
        )
    status = final_status(solution.status, certificate.relative_gap, task.stop.tol)
    _warn(status, solution.n_iter, certificate, task, str(made.registered_as))
    point: Any = solution.point
    kernels = problem.matrices(point.kernels)
    beta, weights = point.beta, point.weights
    if several:
        shares, loss = weights / weights.sum(), None
        coef = np.stack(
            [
                w * _row_weights(task.rule, K, beta, values, vectors)
                for w, K, values, vectors in zip(weights, kernels, given.values, given.vectors, strict=True)
            ]
        )
    else:
        loss = SquaredLoss() if method == "indsvm" else make_similarity_loss(task.loss)
        shares = loss.shares(kernels - given.stack)
        mean = given.stack.mean(axis=0) if task.rule == "classical" else None
        spectrum = (None, None) if mean is None else np.linalg.eigh(mean)
        coef = _row_weights(task.rule, kernels[0], beta, *spectrum)
        weights = shares
    return SimilarityFit(
        kernels, weights, shares, beta, coef, certificate, solution.trace, solution.n_iter, status,
        problem.passes, loss,
    )  # fmt: skip


def _row_weights(rule: str, kernel: np.ndarray, beta: np.ndarray, values: Any, vectors: Any) -> np.ndarray:
    if rule == "smooth":
        return smooth(kernel, beta)
    return classical(values, vectors, "denoise", beta)


def _warn(status: str, iterations: int, certificate: Certificate, task: Task, name: str) -> None:
    """Say what is proved of a fit that did not reach its tolerance; raise where nothing is."""
    if not certificate.finite:
        raise NotFiniteError(
            f"the objective ({certificate.primal:g}) or its lower bound ({certificate.dual:g}) is not finite, so that "
            "nothing is proved of the fit: scale the similarities, or choose C and rho nearer to 1"
        )
    if status == "converged":
        return
    warn_at_caller(
        f"{task.label}{MESSAGES[status]}: stopped at a relative gap of {certificate.relative_gap:.2g} "
        f"(tol={task.stop.tol:g}) after {iterations} iterations of {name!r}. The best kernel was kept and its "
        "certificate is valid; raise max_iter or tol.",
        KernelWeaveConvergenceWarning,
    )


# ---- kernels that are not learned ---------------------------------------------------------------------------------


def _fit_spectrum(method: str, given: Normalised, task: Task) -> SimilarityFit:
    """Denoise, Flip or Shift the mean of the similarities."""
    m = given.stack.shape[0]
    shares = np.full(m, 1.0 / m)
    if m == 1:
        values, vectors = given.values[0], given.vectors[0]
    else:
        values, vectors = np.linalg.eigh(given.stack.mean(axis=0))
    K = spectrum_kernel(values, vectors, method)
    factor = K.shape[0] / float(np.trace(K))  # mean diagonal one, so that C means the same for all
    fit = _svm(factor * K, shares, task)
    if task.rule == "smooth":
        fit.coef = factor * smooth(fit.kernels[0], fit.beta)
    else:
        fit.coef = factor * classical(values, vectors, method, fit.beta)
    fit.loss = SquaredLoss()
    return fit


def _fit_features(given: Normalised, task: Task) -> SimilarityFit:
    """A linear SVM on the similarities to all training samples as features."""
    m = given.stack.shape[0]
    K = sum(S @ S for S in given.stack)
    factor = K.shape[0] / float(np.trace(K))
    fit = _svm(factor * K, np.full(m, 1.0 / m), task)
    fit.coef = np.stack([factor * (S @ fit.beta) for S in given.stack])
    return fit


def _svm(K: np.ndarray, shares: np.ndarray, task: Task) -> SimilarityFit:
    began = time.perf_counter()
    c = task.C * (task.weight if task.y.ndim == 1 else np.repeat(task.weight[:, None], task.y.shape[1], 1))
    solved = solve_fixed(K, Hinge(), task.y, c, task.fit_intercept, min(task.stop.tol, 1e-3))
    columns = 1 if task.y.ndim == 1 else task.y.shape[1]
    scope = "with this kernel, " + ("no function" if columns == 1 else f"no {columns} functions") + " on it"
    certificate = SimilarityCertificate(
        solved.primal, solved.dual, solved.beta, solved.intercept, scope=scope
    )
    row = (1, time.perf_counter() - began, 1.0, solved.primal, solved.dual, solved.relative_gap, shares.size)
    status = final_status("stalled", certificate.relative_gap, task.stop.tol)
    _warn(status, 1, certificate, task, "fixed_weights")
    return SimilarityFit(
        K[None], shares, shares, solved.beta, np.empty(0), certificate, [row], 1, status, 1.0
    )
