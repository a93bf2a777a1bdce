"""One fit of ``SimilarityClassifier``, the weight of the distance to the similarities, and the choice of a method."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._estimating import leads_of
from .._numerics.matrices import EIGENVALUES
from .._numerics.stopping import out_of_time
from .._typing import Array
from ..exceptions import KernelWeaveConvergenceWarning, NotFiniteError, warn_at_caller
from ..losses import Hinge
from ..problems import Certificate, solve_fixed
from ..solvers import MESSAGES, Stop, final_status, solve
from .inputs import Normalised, normalised
from .losses import SimilarityLoss, SquaredLoss, make_similarity_loss
from .problems import SimilarityCertificate, SimilarityProblem
from .solvers import SimilaritySolver, similarity_solvers
from .transformers import classical, smooth

LEARNED = ("eskl", "emkl", "rekl", "indsvm")
METHODS = (*LEARNED, "denoise", "flip", "shift", "features")


@dataclass(frozen=True)
class SimilarityTask:
    """One fit to make: targets of shape (n,), or (n, k) for classes that share their kernels, and the costs."""

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
    """Result of a fit: ``decision = aggregate(rows) @ coef + intercept``, or a sum over similarities."""

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
    def kernel(self) -> np.ndarray:
        """Kernel of the SVM: the mix of several where there are several."""
        return self.kernels[0] if len(self.kernels) == 1 else np.tensordot(self.weights, self.kernels, axes=1)

    def decision(self, rows: np.ndarray) -> np.ndarray:
        """Decision values of normalised rows ``(m, n_new, n)``, each from its own row alone."""
        if self.loss is not None:  # one kernel: the loss joins the similarities of a row first
            return self.loss.aggregate(rows, self.shares) @ self.coef + self.certificate.intercept
        values = sum(R @ w for R, w in zip(rows, self.coef, strict=True))
        return values + self.certificate.intercept


def fit_method(method: str, given: Normalised, task: SimilarityTask) -> SimilarityFit:
    """Fit one method to normalised similarities."""
    if method in LEARNED:
        return _fit_learned(method, given, task)
    began = time.perf_counter()
    m = given.stack.shape[0]
    shares = np.full(m, 1.0 / m)
    if method == "features":  # a linear SVM on the similarities to all training samples
        K = sum(S @ S for S in given.stack)
    else:  # new eigenvalues for the mean of the similarities
        whole = (given.values[0], given.vectors[0]) if m == 1 else np.linalg.eigh(given.stack.mean(axis=0))
        values, vectors = whole
        K = (vectors * EIGENVALUES[method](values)) @ vectors.T
    factor = K.shape[0] / float(np.trace(K))  # mean diagonal one, so that C means the same for all
    K = factor * K
    columns = 1 if task.y.ndim == 1 else task.y.shape[1]
    c = task.C * (task.weight if task.y.ndim == 1 else np.repeat(task.weight[:, None], columns, 1))
    solved = solve_fixed(K, Hinge(), task.y, c, task.fit_intercept, min(task.stop.tol, 1e-3))
    beta = solved.beta
    scope = "with this kernel, " + ("no function" if columns == 1 else f"no {columns} functions") + " on it"
    certificate = SimilarityCertificate(solved.primal, solved.dual, beta, solved.intercept, scope=scope)
    row = (1, time.perf_counter() - began, 1.0, solved.primal, solved.dual, solved.relative_gap, m)
    status = final_status("stalled", certificate.relative_gap, task.stop.tol)
    _warn(status, 1, certificate, task, "fixed_weights")
    if method == "features":
        coef = np.stack([factor * (S @ beta) for S in given.stack])
    elif task.rule == "smooth":
        coef = factor * smooth(K, beta)
    else:
        coef = factor * classical(values, vectors, method, beta)
    loss = None if method == "features" else SquaredLoss()
    return SimilarityFit(K[None], shares, shares, beta, coef, certificate, [row], 1, status, 1.0, loss)


def _fit_learned(method: str, given: Normalised, task: SimilarityTask) -> SimilarityFit:
    made = similarity_solvers.make(task.solver or method, SimilaritySolver)
    if not isinstance(made, similarity_solvers[method]):
        raise ValueError(f"method={method!r} needs a solver of its own kind, got {made!r}")
    several = method in ("emkl", "rekl")
    # with m copies of one similarity (6) is (4) at C / m^2 and rho / m^2: the numbers then mean the same everywhere;
    # classes that share a kernel share its charge as well
    scale = 1.0 / given.stack.shape[0] ** 2 if several else 1.0
    columns = 1 if task.y.ndim == 1 else task.y.shape[1]
    problem: SimilarityProblem = made.problem(
        given.stack, task.y, C=task.C * scale, rho=task.rho * scale * columns, loss=task.loss,
        sample_weight=task.weight, fit_intercept=task.fit_intercept,
    )  # fmt: skip
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
    if task.rule == "smooth":
        rows = [smooth(K, beta) for K in kernels]
    elif several:
        spectra = zip(given.values, given.vectors, strict=True)
        rows = [classical(values, vectors, "denoise", beta) for values, vectors in spectra]
    else:
        rows = [classical(*np.linalg.eigh(given.stack.mean(axis=0)), "denoise", beta)]
    if several:
        shares, loss = weights / weights.sum(), None
        coef = np.stack([w * row for w, row in zip(weights, rows, strict=True)])
    else:
        loss = SquaredLoss() if method == "indsvm" else make_similarity_loss(task.loss)
        weights = shares = loss.shares(kernels - given.stack)
        coef = rows[0]
    return SimilarityFit(
        kernels, weights, shares, beta, coef, certificate, solution.trace, solution.n_iter, status,
        problem.passes, loss,
    )  # fmt: skip


def _warn(status: str, iterations: int, certificate: Certificate, task: SimilarityTask, name: str) -> None:
    """Say what is proved of a fit that did not reach its tolerance; raise where nothing is."""
    if not certificate.finite:
        raise NotFiniteError(
            f"the objective ({certificate.primal:g}) or its lower bound ({certificate.dual:g}) is not finite, so that "
            "nothing is proved of the fit: scale the similarities, or choose C and rho nearer to 1"
        )
    if status != "converged":
        warn_at_caller(
            f"{task.label}{MESSAGES[status]}: stopped at a relative gap of {certificate.relative_gap:.2g} "
            f"(tol={task.stop.tol:g}) after {iterations} iterations of {name!r}. The best kernel was kept and its "
            "certificate is valid; raise max_iter or tol.",
            KernelWeaveConvergenceWarning,
        )


#: how far the SVM may move a kernel, relative to its size
MOVE = 0.1
#: errors among training rows beyond those of the fitted kernel, as a share of the samples, that are a finding
WORSE = 0.1


def scaled_rho(method: str, given: Normalised, task: SimilarityTask) -> float:
    """Return the weight of the distance at which the SVM moves the kernel by about a tenth of its size.

    With K the denoised mean similarity and b the coefficients of an SVM on it, the SVM's value falls by ``|b b'| / 2``
    per unit of movement along ``D = b b' / |b b'|``, and a movement of size t costs
    ``cost(t) = sum_i [L(X_i + t D) + L(X_i - t D)] / 2 - L(X_i)``, ``X_i = K - S_i``, quadratic in t where L is smooth.
    The two balance at ``rho = t |b b'| / (4 cost(t))``; t is a tenth of ``|K|``.  For the Frobenius loss of a strongly
    indefinite similarity that grows with the negative part, whose size makes the loss flat.
    """
    loss: SimilarityLoss = SquaredLoss() if method == "indsvm" else make_similarity_loss(task.loss)
    svm = fit_method("denoise", given, task)
    K = svm.kernels[0]
    b = svm.beta.reshape(K.shape[0], -1)
    pull = b @ b.T
    force = float(np.linalg.norm(pull))
    if force == 0.0:
        return 1.0
    D = pull / force
    t = MOVE * float(np.linalg.norm(K))
    cost = slope = 0.0
    for S in given.stack:
        X = K - S
        cost += 0.5 * (loss.value(X + t * D) + loss.value(X - t * D)) - loss.value(X)
        slope += float(np.linalg.norm(loss.subgradient(X)))
    # where the loss is straight along D nothing but its slope holds the kernel
    cost = max(cost, 1e-3 * t * slope, np.finfo(float).tiny)
    # classes that share a kernel share its charge: the fit multiplies rho with their number
    return 0.25 * t * force / (cost * b.shape[1])


def poor_rule(method: str, rule: str, by_kernel: int, by_rows: int, n: int) -> str | None:
    """Return a sentence where training rows are predicted far worse than by the fitted kernel.

    A row of a training sample is what a row of a new sample looks like at best.

    >>> poor_rule("eskl", "smooth", 3, 5, 100) is None
    True
    >>> poor_rule("eskl", "smooth", 3, 33, 100)[:66]
    'Rows of training samples are predicted with 33 of 100 errors where'
    """
    if by_rows - by_kernel <= WORSE * n:
        return None
    others = [f"rule={other!r}" for other in ("classical", "smooth") if other != rule]
    ways = [*others, "method='features'", "method='auto'"] + (["a larger rho"] if method == "eskl" else [])
    return (
        f"Rows of training samples are predicted with {by_rows} of {n} errors where the fitted kernel makes "
        f"{by_kernel}: new rows do not follow the kernel of method={method!r} with rule={rule!r}, and new samples will "
        f"fare no better. Try {', '.join(ways[:-1])} or {ways[-1]}."
    )


#: kernel and rule; the first one is taken unless another is ahead by more than half a standard error
CANDIDATES = (
    ("denoise", "classical"), ("features", "classical"), ("flip", "classical"), ("denoise", "smooth"),
    ("flip", "smooth"),
)  # fmt: skip
FOLDS = 5
#: repetitions of the folds with other samples together: fewer samples have noisier errors
SAMPLES, MOST_ROUNDS = 400, 4
DOUBT = 0.5
#: more samples than this are not used, which bounds the seconds
MOST = 1200


def choose_method(
    stack: Array,
    names: list[str],
    codes: NDArray[np.intp],
    task: SimilarityTask,
    scale: bool,
    rules: tuple[str, ...],
    random: np.random.RandomState,
) -> tuple[str, str, Any]:
    """Return method and rule by cross-validation on the training samples, and a table of the errors.

    The candidates are solved in closed form but for one SVM each, so that comparing all of them costs a few
    eigendecompositions per fold.  Every fold does what a user would: it scales, decomposes and fits on the similarities
    of its training samples alone, and predicts the others from their rows.  ``task`` has the targets of all classes
    together; ``rules`` are those to choose among.
    """
    import pandas as pd
    from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

    candidates = [pair for pair in CANDIDATES if pair[1] in rules or pair[0] == "features"]
    used = np.flatnonzero(task.weight > 0)
    if used.size > MOST:
        used = np.sort(train_test_split(used, train_size=MOST, stratify=codes[used], random_state=random)[0])
    folds = min(FOLDS, int(np.unique(codes[used], return_counts=True)[1].min()))
    if folds < 2:  # a class has a single sample
        return *candidates[0], pd.DataFrame(columns=["method", "rule", "fold", "error", "margin"])
    rounds = int(np.clip(round(SAMPLES / used.size), 1, MOST_ROUNDS))
    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=rounds, random_state=random)
    found: list[dict[str, object]] = []
    for fold, (train, test) in enumerate(splitter.split(used, codes[used])):
        if found and out_of_time():
            break
        train, test = used[train], used[test]
        given = normalised(stack[:, train][:, :, train], names, scale)
        new = given.factors[:, None, None] * stack[:, test][:, :, train]
        part = replace(task, y=task.y[train], weight=task.weight[train])
        own, weight = codes[test], task.weight[test]
        total = float(weight.sum())
        for method, rule in candidates:
            values = fit_method(method, given, replace(part, rule=rule)).decision(new)
            margins = leads_of(values, own)
            error = float(weight @ (margins <= 0)) / total
            margin = float(weight @ np.clip(margins, -1.0, 1.0)) / total
            found.append({"method": method, "rule": rule, "fold": fold, "error": error, "margin": margin})
    table = pd.DataFrame(found)
    # the least mean error, or the first candidate where that is hardly worse: the folds are few
    errors = table.pivot(index="fold", columns=["method", "rule"], values="error")
    means = errors.mean()
    best = min(candidates, key=lambda pair: (means[pair], candidates.index(pair)))
    lead = errors[candidates[0]] - errors[best]
    deviation = float(lead.std(ddof=1)) / np.sqrt(len(lead)) if len(lead) > 1 else 0.0
    return *(candidates[0] if lead.mean() <= DOUBT * deviation else best), table
