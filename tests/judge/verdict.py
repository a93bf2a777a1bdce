"""Fit one case and hold the library to every sentence it says about the fit."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bounds import LONG, NormCase, ProblemCase, digits_are_gone, normalised, training_matrices
from .problems import Case, loss_of, make_case

#: how much of the rounding's doubt is forgiven, and what is forgiven in any case
FORGIVEN, ALWAYS = 200.0, 1e-9


@dataclass
class Verdict:
    """What became of a case: ``converged``, another status, ``refused`` (ValueError), and the violations."""

    case: Case
    outcome: str
    seconds: float
    violations: list[str] = field(default_factory=list)
    gap: float = np.nan
    solver: str = ""

    def __str__(self) -> str:
        told = "".join(f"\n    VIOLATION {text}" for text in self.violations)
        return f"{self.outcome} ({self.seconds:.1f} s, gap {self.gap:.2g}, {self.solver}) {self.case}{told}"


def judge(case: Case, limit: float = 30.0) -> Verdict:
    """Fit, and check status, warnings, certificate, weights and predictions against the definitions."""
    from kernelweave.exceptions import KernelWeaveConvergenceWarning

    began = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator = _fitted(case)
    except np.linalg.LinAlgError as error:  # a ValueError by inheritance, and no sentence
        return Verdict(case, "error", time.process_time() - began, [f"LinAlgError: {error}"])
    except ValueError as error:
        text = str(error)
        problems = [] if len(text) > 20 else [f"an error without a way out: {text!r}"]
        return Verdict(case, "refused", time.process_time() - began, problems, solver=text[:300])
    except Exception as error:
        seconds = time.process_time() - began
        return Verdict(case, "error", seconds, [f"{type(error).__name__}: {str(error)[:300]}"])
    seconds = time.process_time() - began
    told = [w for w in caught if issubclass(w.category, KernelWeaveConvergenceWarning)]
    verdict = Verdict(
        case, estimator.status_, seconds, gap=estimator.certificate_.relative_gap, solver=estimator.solver_
    )
    if seconds > limit:
        verdict.violations.append(f"took {seconds:.0f} s")
    stray = [w for w in caught if issubclass(w.category, RuntimeWarning)]
    if stray:
        verdict.violations.append(
            f"stray warning: {stray[0].message} ({stray[0].filename}:{stray[0].lineno})"
        )
    _check_status(case, estimator, told, verdict.violations)
    with np.errstate(all="ignore"):
        _check_bounds(case, estimator, verdict.violations)
    return verdict


def judge_number(job: tuple[int, int]) -> Verdict:
    """Judge a case by seed and number."""
    return judge(make_case(*job))


def _fitted(case: Case) -> Any:
    from kernelweave import MKLClassifier, MKLRegressor, kernels, losses, norms

    if case.stack is not None:
        spec, X = "precomputed", case.stack
    else:
        spec, X = _spec(kernels, case.kernels), case.X
    norm = norms.Fixed(list(case.given)) if case.norm == "fixed" else case.norm
    loss = losses.registry[case.loss](*case.numbers)
    parameters = dict(case.parameters)
    if parameters["solver"] == "any":
        parameters["solver"] = _some_solver(case, loss, norms.make_norm(norm), parameters)
    make = MKLRegressor if case.task == "regression" else MKLClassifier
    return make(spec, loss=loss, norm=norm, **parameters).fit(X, case.y, sample_weight=case.sample_weight)


def _spec(kernels: Any, cases: list) -> Any:
    made = []
    for case in cases:
        if case.family in ("gaussian", "laplacian"):
            kernel = getattr(kernels, case.family)(case.number, relative=case.relative)
        elif case.family == "polynomial":
            kernel = kernels.polynomial(int(case.number))
        else:
            kernel = getattr(kernels, case.family)()
        made.append(kernel if case.columns is None else kernel.on(list(case.columns)))
    spec = made[0]
    for kernel in made[1:]:
        spec = spec + kernel
    return spec


def _some_solver(case: Case, loss: Any, norm: Any, parameters: dict) -> str:
    """One of the solvers that say they fit; the case decides which."""
    from kernelweave.solvers import fitting_solvers

    several = case.task == "several" and parameters.get("multi_class", "joint") == "joint"
    meant = loss.of_several_classes() if several else loss
    fitting = sorted(fitting_solvers(meant, norm, parameters["fit_intercept"]))
    return fitting[case.index % len(fitting)] if fitting else "auto"


def _check_status(case: Case, estimator: Any, told: list, violations: list[str]) -> None:
    tol = case.parameters.get("tol", 1e-3)
    gaps = [certificate.relative_gap for certificate in estimator.certificates_]
    reached = all(np.isfinite(gap) and gap <= tol for gap in gaps)
    if (estimator.status_ == "converged") != reached:
        violations.append(f"status {estimator.status_!r} with gaps {gaps} at tol {tol:g}")
    if (estimator.status_ == "converged") == bool(told):
        violations.append(
            f"status {estimator.status_!r} with {len(told)} warnings: {[str(w.message)[:90] for w in told]}"
        )
    if not np.all(np.isfinite(gaps)):
        violations.append(f"a gap that is not finite: {gaps}")


def problems_of(case: Case, estimator: Any) -> list[ProblemCase]:
    """The problems that the docs say are solved, with everything in them recomputed."""
    center, normalize = case.parameters["center"], case.parameters["normalize"]
    if case.stack is not None:
        stack = [np.asarray(K, dtype=LONG) for K in case.stack]
        K, unsure = normalised(stack, [0 * k for k in stack], normalize, center)
    else:
        K, unsure = training_matrices(case.kernels, case.X, normalize, center)
    weight = np.ones(len(case.y)) if case.sample_weight is None else case.sample_weight
    cost = case.parameters["C"] * np.asarray(weight, dtype=LONG)
    columns = case.task == "several" or case.loss == "multiclass_hinge"
    reading = case.parameters.get("multi_class", "joint")
    loss = loss_of(case, reading == "joint", columns)
    lams = np.ravel(estimator.lam_) if hasattr(estimator, "lam_") else []
    if case.task == "regression":
        targets = [np.asarray(case.y, dtype=LONG)]
    elif not columns:
        targets = [np.where(case.y == np.max(case.y), LONG(1), LONG(-1))]
    else:
        one_hot = np.where(case.y[:, None] == np.unique(case.y)[None, :], LONG(1), LONG(-1))
        targets = [one_hot] if reading != "ovr" else list(one_hot.T)
    made = []
    for k, y in enumerate(targets):
        c = np.repeat(cost[:, None], y.shape[1], axis=1) if y.ndim == 2 else cost
        lam = float(lams[k if len(lams) > 1 else 0]) if len(lams) else 0.0
        made.append(ProblemCase(K, unsure, y, c, loss, _norm(case, lam), case.parameters["fit_intercept"]))
    return made


def _norm(case: Case, lam: float) -> NormCase:
    if case.norm in ("uniform", "fixed"):
        return NormCase("fixed", given=case.given)
    if case.norm == "entropy":
        return NormCase("entropy", lam)
    return NormCase(case.norm) if isinstance(case.norm, str) else NormCase("lp", float(case.norm))


def _check_bounds(case: Case, estimator: Any, violations: list[str]) -> None:
    if case.parameters["center"] and case.stack is None and digits_are_gone(case.kernels, case.X):
        return  # a warning says so, and there is nothing that could be recomputed
    problems = problems_of(case, estimator)
    single = len(problems) == 1
    for k, problem in enumerate(problems):
        certificate = estimator.certificates_[k]
        weights = estimator.weights_ if single else estimator.weights_[k]
        beta = estimator.dual_coef_ if single else estimator.dual_coef_[:, k]
        intercept = estimator.intercept_ if single else estimator.intercept_[k]
        coarse = 1e-6 if case.parameters.get("dtype") == "float32" else 0.0
        _check_problem(problem, certificate, beta, weights, intercept, coarse, violations)
    _check_predictions(case, estimator, problems, violations)


def _check_problem(problem, certificate, beta, weights, intercept, coarse, violations) -> None:
    if not all(np.all(np.isfinite(v)) for v in (beta, weights, intercept, certificate.dual_point)):
        violations.append("coefficients, weights or intercept are not finite")
        return
    if problem.norm.outside(weights) > 1e-9:
        violations.append(f"weights leave their set by {problem.norm.outside(weights):.1e}")
    primal = problem.primal(beta, weights, intercept)
    dual = problem.dual(certificate.dual_point, intercept)
    size = max(abs(primal.value), abs(dual.value) if np.isfinite(dual.value) else 0.0)
    slack = ALWAYS * size + FORGIVEN * (primal.doubt + dual.doubt)
    if not abs(primal.value - certificate.primal) <= slack:
        violations.append(
            f"primal {certificate.primal!r} is {primal.value!r} by definition (slack {slack:.1e})"
        )
    if not certificate.dual <= dual.value + slack:
        violations.append(
            f"lower bound {certificate.dual!r}, by definition {dual.value!r} (slack {slack:.1e})"
        )
    if not certificate.primal >= certificate.dual - slack:
        violations.append(f"upper bound {certificate.primal!r} below lower bound {certificate.dual!r}")
    margin = problem.loss.margin(problem.y, problem.decision(beta, weights)[0] + intercept, problem.c)
    if abs(margin - certificate.margin) > 1e-6 + slack / max(size, 1e-300):
        violations.append(f"margin {certificate.margin!r}, by definition {margin!r}")


def _check_predictions(
    case: Case, estimator: Any, problems: list[ProblemCase], violations: list[str]
) -> None:
    """What predicts on the training rows is what was certified."""
    rows = case.stack if case.stack is not None else case.X
    decision = np.asarray(estimator._decision(rows))
    if not np.all(np.isfinite(decision)):
        violations.append("decision values are not finite")
        return
    single = len(problems) == 1
    for k, problem in enumerate(problems):
        weights = estimator.weights_ if single else estimator.weights_[k]
        beta = estimator.dual_coef_ if single else estimator.dual_coef_[:, k]
        intercept = estimator.intercept_ if single else estimator.intercept_[k]
        f, blur = problem.decision(beta, weights)
        f = f + intercept
        given = decision if single else decision[:, k]
        coarse = 1e-4 if case.parameters.get("dtype") == "float32" else 1e-8
        mixed = np.tensordot(np.asarray(weights, dtype=LONG), np.abs(problem.K), axes=1) @ np.abs(beta)
        slack = FORGIVEN * blur + coarse * (mixed + np.abs(f)) + 1e-10
        if np.any(np.abs(given - f) > slack):
            worst = float(np.max(np.abs(given - f)))
            violations.append(
                f"decision values on training rows differ by {worst:.2g} of {float(np.max(np.abs(f))):.2g}"
            )
