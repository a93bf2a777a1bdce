"""Fit one case and hold the library to every sentence it says about the fit."""

from __future__ import annotations

import itertools
import re
import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from references import STRATUM

from .bounds import LONG, NormCase, ProblemCase, digits_are_gone, margin, normalised, training_matrices
from .completion import Completion
from .evidence import check_choice
from .problems import Case, as_novelty, loss_of, make_case

#: what says that a fit is done: the convex problem is solved to the tolerance, or a criterion is where it is flat
DONE = ("converged", "stationary")

#: how much of the rounding's doubt is forgiven, and what is forgiven in any case
FORGIVEN, ALWAYS = 200.0, 1e-9
#: what is zero
NOTHING = 1e-300


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
    try:
        _check_sentences(estimator, verdict.violations)
        with np.errstate(all="ignore"):
            _check_bounds(case, estimator, verdict.violations)
    except Exception as error:  # a fitted model that cannot be asked what it is
        verdict.violations.append(f"after the fit, {type(error).__name__}: {str(error)[:300]}")
    return verdict


def judge_number(job: tuple[int, int]) -> Verdict:
    """Judge a case by seed and number."""
    return judge(make_case(*job))


def judge_novelty(job: tuple[int, int]) -> Verdict:
    """Judge a case by seed and number without its targets; those of several targets or criteria are the next ones."""
    seed, index = job
    while (case := make_case(seed, index)).criterion is not None or np.ndim(case.y) > 1:
        index += 10**6
    return judge(as_novelty(case))


def criterion_of(case: Case) -> str | None:
    """Name of the case's criterion, among all that the library offers."""
    if case.criterion is None:
        return None
    from kernelweave.estimators.regressor import CRITERIA

    return CRITERIA[case.criterion % len(CRITERIA)]


def _fitted(case: Case) -> Any:
    from kernelweave import (
        MKLClassifier,
        MKLOneClass,
        MKLRegressor,
        MKLRegressorCV,
        MKLSurvival,
        kernels,
        losses,
        norms,
    )

    spec = "precomputed" if case.stack is not None else _spec(kernels, case)
    norm = _library_norm(norms, case)
    novelty, parameters = case.task == "novelty", dict(case.parameters)
    loss = losses.OneClass(*case.numbers) if novelty else losses.registry[case.loss](*case.numbers)
    if parameters["solver"] == "any":
        parameters["solver"] = _some_solver(case, loss, norms.make_norm(norm), parameters)
    if novelty:
        for name in ("center", "fit_intercept"):
            del parameters[name]
        model = MKLOneClass(spec, norm=norm, nu=case.numbers[0], **parameters)
        return model.fit(samples_of(case), sample_weight=case.sample_weight)
    make = MKLRegressor if case.task == "regression" else MKLClassifier
    further = {}
    if case.task == "survival":
        make, further = MKLSurvival, {"strata": case.strata}
        for name in ("fit_intercept", "center"):  # it has no choice there
            parameters.pop(name)
    criterion = criterion_of(case)
    if criterion is not None:
        make = MKLRegressorCV
        parameters["criterion"] = criterion
        if criterion in ("convex", "folds"):
            parameters["cv"] = 3
        if criterion == "convex":
            parameters["Cs"] = [0.1, 10.0, 1e3]
    if case.norm != "l1" or make is not MKLRegressorCV:
        parameters["norm"] = norm
    estimator = make(spec, loss=loss, **parameters)
    return estimator.fit(samples_of(case), case.y, sample_weight=case.sample_weight, **further)


def _library_norm(norms: Any, case: Case) -> Any:
    """The library's norm of a case; the kernels that always count are said by the kernels."""
    norm = case.norm
    if norm == "fixed":
        return norms.Fixed(list(case.given))
    if not isinstance(norm, NormCase):
        return norm
    make = norms.registry[norm.name]
    if norm.name == "at_most":
        return make(int(norm.number))
    if norm.name == "elastic":
        return make(norm.number, norm.second or None)
    if norm.name == "entropy":
        return make(norm.second)
    if norm.name == "grouped":
        return make(norm.number, norm.second, [f"group {g}" for g in norm.groups])
    return make(norm.number) if norm.number else make()


def samples_of(case: Case, rows: Any = None, pattern: Any = None) -> Any:
    """Samples as the library takes them; some rows of them, and these with a pattern of views of their own."""
    whole = rows is None
    rows = np.arange(len(case.y)) if whole else np.asarray(rows)
    if case.left_columns:
        from kernelweave import Pairs

        sides = [case.X[:, : case.left_columns], case.X[:, case.left_columns :]]
        found = [np.unique(side, axis=0, return_inverse=True) for side in sides]
        objects, places = [one[0] for one in found], [np.ravel(one[1])[rows] for one in found]
        return Pairs(*objects, np.column_stack(places))
    if case.present is None:
        if case.stack is None:
            return case.X[rows]
        return case.stack if whole else [K[rows] for K in case.stack]
    has = case.present[rows] if pattern is None else np.tile(pattern, (len(rows), 1))
    if case.stack is None:
        return {
            f"view {v}": np.where(has[:, [v]], case.X[np.ix_(rows, columns)], np.nan)
            for v, columns in enumerate(case.views)
        }
    return [
        np.where(has[:, [v]] & case.present[:, v][None, :], K[rows], np.nan) for v, K in enumerate(case.stack)
    ]


def _spec(kernels: Any, bank: Case) -> Any:
    if bank.left_columns:
        made = [dict.fromkeys(kernel.factors[side] for kernel in bank.kernels) for side in range(2)]
        specs = [
            [_factor(kernels, case) for case in side if case.family not in ("constant", "identity")]
            for side in made
        ]
        return kernels.pairs(left=specs[0], right=specs[1])
    made = []
    held = dict(bank.norm.held) if isinstance(bank.norm, NormCase) else {}
    for j, case in enumerate(bank.kernels):
        if case.family in ("gaussian", "laplacian"):
            kernel = getattr(kernels, case.family)(case.number, relative=case.relative)
        elif case.family == "polynomial":
            kernel = kernels.polynomial(int(case.number))
        else:
            kernel = getattr(kernels, case.family)()
        if bank.present is not None:
            kernel = kernel.on(f"view {bank.views.index(case.columns)}")
        elif case.columns is not None:
            kernel = kernel.on(list(case.columns))
        made.append(kernels.always(kernel, held[j]) if j in held else kernel)
    spec = made[0]
    for kernel in made[1:]:
        spec = spec + kernel
    return spec


def _factor(kernels: Any, case: Any) -> Any:
    """A kernel of one side of pairs, whose columns are all of that side."""
    return kernels.linear() if case.family == "linear" else getattr(kernels, case.family)(case.number)


def _some_solver(case: Case, loss: Any, norm: Any, parameters: dict) -> str:
    """One of the solvers that say they fit; the case decides which."""
    from kernelweave.solvers import fitting_solvers

    several = case.task == "several" and parameters.get("multi_class", "joint") == "joint"
    meant = loss.of_several_classes() if several else loss
    fitting = sorted(fitting_solvers(meant, norm, parameters["fit_intercept"]))
    return fitting[case.index % len(fitting)] if fitting else "auto"


def certificates_of(estimator: Any) -> list:
    """One certificate per problem; criteria by evidence have one for all ridge regressions together."""
    return list(getattr(estimator, "certificates_", [estimator.certificate_]))


def _check_status(case: Case, estimator: Any, told: list, violations: list[str]) -> None:
    tol = case.parameters.get("tol", 1e-3)
    gaps = [float(certificate.relative_gap) for certificate in certificates_of(estimator)]
    by_target = getattr(estimator, "targets_", None)
    if by_target is not None:
        gaps += [float(gap) for gap in by_target["relative_gap"]]
        for gap, status in zip(by_target["relative_gap"], by_target["status"], strict=True):
            if status in ("certified", "stationary") and not gap <= tol:
                violations.append(f"a target is {status!r} with a gap of {gap:.2g} at tol {tol:g}")
    reached = all(np.isfinite(gap) and gap <= tol for gap in gaps)
    evidence = criterion_of(case) not in (None, "convex")
    if evidence and estimator.status_ in DONE and not reached:
        violations.append(f"status {estimator.status_!r} with gaps {gaps} at tol {tol:g}")
    if not evidence and (estimator.status_ == "converged") != reached:
        violations.append(f"status {estimator.status_!r} with gaps {gaps} at tol {tol:g}")
    # a criterion that is not yet flat is in targets_; a ridge regression that is not solved is worth a warning
    if (not reached if evidence else estimator.status_ != "converged") != bool(told):
        violations.append(
            f"status {estimator.status_!r} with {len(told)} warnings: {[str(w.message)[:90] for w in told]}"
        )
    if not np.all(np.isfinite(gaps)):
        violations.append(f"a gap that is not finite: {gaps}")


def _check_sentences(estimator: Any, violations: list[str]) -> None:
    """Every text that a user may read, beside the numbers: none without a value, none better than the certificate."""
    texts = [repr(estimator), estimator.status_, *getattr(estimator, "findings_", ())]
    for certificate in certificates_of(estimator):
        for text in {repr(certificate), str(certificate)}:
            texts.append(text)
            said = re.search(r"within ([-+.e0-9]+) %", text)
            if said and not float(said[1]) / 100 >= 0.9 * certificate.relative_gap:
                violations.append(f"{text!r} with a gap of {certificate.relative_gap:.3g}")
            said = re.search(r"within ([-+.e0-9]+) nats per event", text)
            if (said is None) == (certificate.unit > 0) or (
                said and not float(said[1]) >= 0.9 * certificate.gap / certificate.unit
            ):
                violations.append(f"{text!r} with a gap of {certificate.gap:.3g} of {certificate.unit:.3g}")
            if np.isfinite(certificate.gap) and re.search(r"\b(nan|inf)\b", text):
                violations.append(f"no number in {text!r}")
    if not all(isinstance(text, str) and text.strip() for text in texts):
        violations.append(f"a sentence without words: {texts}")


def matrices_of(case: Case, estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Normalised kernels on the training samples, completed where samples lack some, and their rounding."""
    center, normalize = case.parameters["center"], case.parameters["normalize"]
    if case.present is not None:
        return completion_of(case, estimator).matrices()
    if case.stack is not None:
        stack = [np.asarray(K, dtype=LONG) for K in case.stack]
        return normalised(stack, [0 * k for k in stack], normalize, center)
    return training_matrices(case.kernels, case.X, normalize, center)


def completion_of(case: Case, estimator: Any) -> Completion:
    """How the library completed what samples lack."""
    return Completion(case, getattr(estimator, "_functions", [estimator._function])[0].completion)


#: norms that ``MKLRegressorCV`` chooses among by default, by their labels
CHOSEN = {
    "l1": NormCase("l1"),
    "l1.33333": NormCase("lp", 4 / 3),
    "l2": NormCase("lp", 2.0),
    "uniform": NormCase("fixed"),
}


def problems_of(case: Case, estimator: Any) -> list[ProblemCase]:
    """The problems that the docs say are solved, with everything in them recomputed."""
    K, unsure = matrices_of(case, estimator)
    weight = np.asarray(
        np.ones(len(case.y)) if case.sample_weight is None else case.sample_weight, dtype=LONG
    )
    columns = case.task == "several" or case.loss in ("multiclass_hinge", "multinomial")
    ordered = case.loss == "ordinal"
    reading = case.parameters.get("multi_class", "joint")
    loss = loss_of(case, reading == "joint", columns)
    if case.task == "novelty":
        targets = [np.ones(len(case.y), dtype=LONG)]
    elif case.task == "regression":
        each = np.ndim(case.y) == 2 and case.parameters["multi_output"] == "each"
        y = np.asarray(case.y, dtype=LONG)
        targets = list(y.T) if each else [y]
    elif ordered:
        targets = [np.searchsorted(np.unique(case.y), case.y).astype(LONG)]
    elif case.task == "survival":
        targets = [followed(case)]
    elif not columns:
        targets = [np.where(case.y == np.max(case.y), LONG(1), LONG(-1))]
    else:
        one_hot = np.where(case.y[:, None] == np.unique(case.y)[None, :], LONG(1), LONG(-1))
        targets = [one_hot] if reading != "ovr" else list(one_hot.T)
    C = np.ravel(estimator.C_ if case.criterion is not None else case.parameters.get("C", 0.0))
    if case.task == "novelty":
        C = np.array([1.0 / (case.numbers[0] * np.sum(weight))])
    lams = np.ravel(estimator.lam_) if hasattr(estimator, "lam_") else []
    made = []
    for k, y in enumerate(targets):
        cost = (C[k] if len(C) > 1 else C[0]) * weight
        c = np.repeat(cost[:, None], y.shape[1], axis=1) if y.ndim == 2 else cost
        c, y = np.where(np.isfinite(y), c, 0), np.where(np.isfinite(y), y, 0)
        lam = float(lams[k if len(lams) > 1 else 0]) if len(lams) else 0.0
        norm = _norm(case, lam)
        if (
            criterion_of(case) == "convex" and estimator.norm == "auto"
        ):  # what the default chose for this target
            chosen = estimator.norm_[k] if isinstance(estimator.norm_, list) else estimator.norm_
            norm = CHOSEN[chosen.label]
        if criterion_of(case) not in (None, "convex"):
            given = estimator.weights_ if len(targets) == 1 else estimator.weights_[k]
            norm = NormCase("fixed", given=tuple(float(d) for d in np.ravel(given)))
        made.append(ProblemCase(K, unsure, y, c, loss, norm, case.parameters["fit_intercept"]))
    return made


def followed(case: Case) -> np.ndarray:
    """Targets as the definitions take them: times with a minus where they are censored, or their ranks by stratum."""
    time, sign = case.y["time"], np.where(case.y["event"], LONG(1), LONG(-1))
    if case.loss != "cox":
        return sign * time
    stratum = 0 if case.strata is None else np.unique(case.strata, return_inverse=True)[1]
    return sign * (STRATUM * stratum + 1 + np.unique(time, return_inverse=True)[1])


def _norm(case: Case, lam: float) -> NormCase:
    if isinstance(case.norm, NormCase):
        return replace(case.norm, number=lam) if case.norm.name == "entropy" else case.norm
    if case.norm in ("uniform", "fixed"):
        return NormCase("fixed", given=case.given)
    if case.norm == "entropy":
        return NormCase("entropy", lam)
    return NormCase(case.norm) if isinstance(case.norm, str) else NormCase("lp", float(case.norm))


def _check_bounds(case: Case, estimator: Any, violations: list[str]) -> None:
    every = case.parameters["normalize"] == "cosine"
    if case.parameters["center"] and case.stack is None and digits_are_gone(case.kernels, case.X, every):
        return  # a warning says so, and there is nothing that could be recomputed
    problems = problems_of(case, estimator)
    tol = case.parameters.get("tol", 1e-3)
    certificates = certificates_of(estimator)
    points = [_point(estimator, problems, k) for k in range(len(problems))]
    for k, (problem, (beta, weights, intercept)) in enumerate(zip(problems, points, strict=True)):
        if len(certificates) == len(problems):
            certificate = certificates[k]
            if problem.y.ndim == 1:  # one column is as good as none
                certificate = replace(
                    certificate, dual_point=np.reshape(certificate.dual_point, problem.y.shape)
                )
        else:  # criteria by evidence: one certificate with the sum over the ridge regressions
            own = certificates[0].dual_point[:, k]
            primal, dual = problem.primal(beta, weights, intercept), problem.dual(own, intercept)
            certificate = replace(certificates[0], primal=primal.value, dual=dual.value, dual_point=own)
        _check_problem(problem, certificate, beta, weights, intercept, tol, violations)
    if len(certificates) != len(problems):
        _check_sum(problems, points, certificates[0], violations)
    if criterion_of(case) not in (None, "convex"):
        _check_evidence(case, estimator, problems, points, violations)
    _check_predictions(case, estimator, problems, violations)
    if case.present is not None:
        completion = completion_of(case, estimator)
        violations += completion.violations()
        _check_patterns(case, estimator, completion, problems, violations)


def _point(estimator: Any, problems: list[ProblemCase], k: int) -> tuple:
    """Coefficients, weights and intercept of one problem; the offset of novelty detection is its loss's to know."""
    if hasattr(estimator, "offset_"):
        return estimator.dual_coef_, estimator.weights_, 0.0
    if len(problems) == 1:
        return estimator.dual_coef_, estimator.weights_, estimator.intercept_
    return estimator.dual_coef_[:, k], estimator.weights_[k], estimator.intercept_[k]


def _check_sum(problems, points, certificate, violations: list[str]) -> None:
    """A certificate of several targets has the sums of their bounds."""
    primals = [problem.primal(*point) for problem, point in zip(problems, points, strict=True)]
    duals = [
        problem.dual(certificate.dual_point[:, k], point[2])
        for k, (problem, point) in enumerate(zip(problems, points, strict=True))
    ]
    size = sum(abs(primal.value) for primal in primals)
    slack = ALWAYS * size + FORGIVEN * sum(value.doubt for value in [*primals, *duals])
    if not abs(sum(primal.value for primal in primals) - certificate.primal) <= slack:
        violations.append(f"the targets' objectives add up to {size!r}, not to {certificate.primal!r}")
    if not certificate.dual <= sum(dual.value for dual in duals) + slack:
        violations.append(
            f"the targets' bounds add up to {sum(d.value for d in duals)!r}, below {certificate.dual!r}"
        )


def _check_evidence(case: Case, estimator: Any, problems, points, violations: list[str]) -> None:
    """The criterion's value and the scores at the weights that were chosen, each target by itself."""
    from sklearn.model_selection import KFold

    name, table = criterion_of(case), estimator.targets_
    folds = KFold(3 if len(case.y) >= 3 else 2, shuffle=True, random_state=0)
    tests = [test for _, test in folds.split(np.zeros((len(case.y), 1)))]
    weight = np.ones(len(case.y)) if case.sample_weight is None else case.sample_weight
    for k, (problem, (_, weights, _)) in enumerate(zip(problems, points, strict=True)):
        row = table.iloc[k]
        if row["status"] == "constant":
            continue
        known = np.isfinite(case.y if np.ndim(case.y) == 1 else case.y[:, k])
        used = np.flatnonzero(known & (weight > 0))
        folds = [np.flatnonzero(np.isin(used, test)) for test in tests]
        violations += check_choice(
            name, *(of[np.ix_(np.arange(len(of)), used, used)] for of in (problem.K, problem.unsure)),
            problem.y[used], weight[used],
            problem.fit_intercept, [fold for fold in folds if fold.size], weights,
            float(np.ravel(estimator.C_)[k]), float(row[name]), float(row["score"]),
        )  # fmt: skip
        if float(row["score"]) != float(np.ravel(estimator.scores_)[k]):
            violations.append(f"scores_ {estimator.scores_!r} and targets_ {row['score']!r} differ")


def _check_problem(problem, certificate, beta, weights, intercept, tol, violations) -> None:
    if not all(np.all(np.isfinite(v)) for v in (beta, weights, intercept, certificate.dual_point)):
        violations.append("coefficients, weights or intercept are not finite")
        return
    if not problem.norm.outside(weights) <= 1e-9:
        violations.append(f"weights leave their set by {problem.norm.outside(weights):.1e}")
    primal = problem.primal(beta, weights, intercept)
    if certificate.cuts is None:
        dual = problem.dual(certificate.dual_point, intercept)
    else:
        dual = problem.dual_of_cuts(certificate.cuts, intercept)
    size = max(abs(primal.value), abs(dual.value) if np.isfinite(dual.value) else 0.0)
    slack = ALWAYS * size + FORGIVEN * (primal.doubt + dual.doubt) + NOTHING
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
    nothing = problem.at_zero()
    if not certificate.dual <= nothing + slack:
        violations.append(f"lower bound {certificate.dual!r}, where f = 0 costs {nothing!r}")
    if not certificate.primal <= nothing * (1 + tol) + slack + certificate.tiny:
        violations.append(f"objective {certificate.primal!r}, where f = 0 costs {nothing!r}")
    left = margin(problem.loss, problem.y, problem.decision(beta, weights)[0] + intercept, problem.c)
    unit = float(np.sum(problem.c[(problem.y > 0) & (problem.c > 0)])) if problem.loss.coupled else 0.0
    if not abs(unit - certificate.unit) <= 1e-9 * unit:
        violations.append(f"unit {certificate.unit!r}, by definition {unit!r}")
    if abs(left - certificate.margin) > 1e-6 + slack / max(size, 1e-300):
        violations.append(f"margin {certificate.margin!r}, by definition {left!r}")


def _check_predictions(
    case: Case, estimator: Any, problems: list[ProblemCase], violations: list[str]
) -> None:
    """What predicts on the training rows is what was certified."""
    decision = np.asarray(estimator._decision(samples_of(case)))
    if not np.all(np.isfinite(decision)):
        violations.append("decision values are not finite")
        return
    said = np.asarray(estimator.predict(samples_of(case)))
    if case.task == "regression":
        meant = np.exp(decision) if case.loss == "poisson" else decision
        if not np.array_equal(said, meant):
            violations.append("predictions are not the decision values")
    elif case.task == "novelty":
        _check_offset(case, estimator, problems[0], decision, said, violations)
        decision = decision + estimator.offset_
    elif case.task == "survival":
        if not np.array_equal(said if case.loss == "cox" else -said, decision):
            violations.append("risks are not the decision values, or minus the log times")
        _check_hazards(case, estimator, decision, violations)
    elif not np.all(np.isin(said, case.y)):
        violations.append(f"predictions {set(said.tolist()) - set(case.y.tolist())} are no classes")
    single = len(problems) == 1
    for k, problem in enumerate(problems):
        beta, weights, intercept = _point(estimator, problems, k)
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


def _check_offset(case: Case, estimator: Any, problem: ProblemCase, decision, said, violations) -> None:
    """At most a share nu of the weight lies below the offset, at least so much not above it, and labels say which."""
    if not np.array_equal(said, np.where(decision >= 0, 1, -1)):
        violations.append("labels are not the signs of the decision values")
    f, blur = problem.decision(*_point(estimator, [problem], 0)[:2])
    share = np.asarray(problem.c / np.sum(problem.c), dtype=float)
    slack = FORGIVEN * blur + 1e-9 * np.abs(f)
    below, reached = share[f < estimator.offset_ - slack].sum(), share[f <= estimator.offset_ + slack].sum()
    if below > case.numbers[0] + 1e-9 or reached < case.numbers[0] - 1e-9:
        violations.append(f"{below:.3g} below the offset, {reached:.3g} up to it, nu = {case.numbers[0]:.3g}")


def _check_hazards(case: Case, estimator: Any, decision: np.ndarray, violations: list[str]) -> None:
    """Breslow's estimator, or Nelson and Aalen's on ratios of times: as many events as expected, whatever was learnt."""
    weight = np.ones(len(case.y)) if case.sample_weight is None else case.sample_weight
    curves = estimator.predict_cumulative_hazard_function(samples_of(case), strata=case.strata)
    at_times = np.array([curve(time) for curve, time in zip(curves, case.y["time"], strict=True)])
    events, expected = np.sum(weight * case.y["event"]), np.sum(weight * at_times)
    # a ratio of times is rounded, and may fall before its own event; so are values in single precision, or of huge kernels
    exact = case.loss == "cox" and case.parameters.get("dtype") != "float32" and not case.raw
    off = 1e-6 * events if exact else np.inf
    if not abs(expected - events) <= off or not np.all(at_times >= 0):
        violations.append(f"{events!r} events, where the baseline hazard expects {expected!r}")
    if not np.all(estimator.predict_median(samples_of(case), strata=case.strata) >= 0):
        violations.append("a median time is negative")


def _check_patterns(
    case: Case, estimator: Any, completion: Completion, problems, violations: list[str]
) -> None:
    """Decision values of samples with every pattern of views are what the completion's definition makes of them."""
    complete = np.flatnonzero(case.present.all(axis=1))[:3]
    for pattern in itertools.product([True, False], repeat=len(case.views)):
        if not any(pattern) or complete.size == 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decision = np.asarray(estimator._decision(samples_of(case, complete, pattern)))
            decision = decision + getattr(estimator, "offset_", 0.0)
        if not np.all(np.isfinite(decision)):
            violations.append(f"decision values of samples with the views {pattern} are not finite")
            continue
        single = len(problems) == 1
        choices = completion.cross(complete, np.asarray(pattern))
        for k in range(len(problems)):
            beta, weights, intercept = _point(estimator, problems, k)
            given = decision if single else decision[:, k]
            off = []
            for K in choices:
                mixed = np.tensordot(np.asarray(weights, dtype=LONG), K, axes=1)
                f = mixed @ beta + intercept
                off.append(
                    np.max(np.abs(given - f) / (1e-7 * (np.abs(mixed) @ np.abs(beta) + np.abs(f)) + 1e-9))
                )
            if not min(off) <= 1:
                violations.append(
                    f"samples with the views {pattern}: decision values are off by {float(min(off)):.2g} times the slack"
                )
