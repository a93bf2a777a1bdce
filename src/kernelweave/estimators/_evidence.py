"""Kernel weights by evidence on a bank: coefficients, their bounds, and standard deviations of predictions, and
predictions of samples that are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._estimating import TimeShares
from .._numerics.namespace import to_numpy
from .._numerics.stopping import time_limit, time_spent
from .._typing import Array
from ..banks import Bank, KernelFunction
from ..banks.memory import parse_bytes, refuse
from ..exceptions import KernelWeaveConvergenceWarning, KernelWeaveWarning, warn_at_caller
from ..norms import Fixed, Uniform
from ..problems import UNIT, Certificate, Point, forms_doubt, scope_of, values_doubt
from ._parameters import Codes, Device, Samples, Splits
from ._plan import Plan, Task

if TYPE_CHECKING:  # imported by those who choose by evidence: a classifier needs none of it
    from ..evidence import Components, Criterion, Design, WeightChoice
    from ..problems.reml import RemlChoice
    from ._bind import Bound


@dataclass(frozen=True)
class Spread:
    """Numbers for standard deviations of predictions under the squared loss, beside the learnt function.

    A ridge regression is the mean of a Gaussian process.
    """

    #: of the noise of a sample of weight one, by target
    variance: Array
    #: ``1 / (2 C)``, beside the mixed kernel, by target; infinite where no kernel has weight
    ridge: Array
    #: of the training samples
    weight: Array
    #: training samples that have a coefficient, which are those that are kept unless kernels are centred
    support: Codes
    #: whether one was fitted
    intercept: bool


def deviations(function: KernelFunction, spread: Spread, new: Samples) -> Array:
    """Standard deviations of new observations, ``(n_new, t)``: of the function, and of their own noise.

    With ``G = K + ridge / weight``, in units of ``variance / ridge``:
    ``k(x, x) - k'G^-1 k + (1 - 1'G^-1 k)^2 / 1'G^-1 1 + ridge``.
    """
    term = function.terms[0]
    if function.completion is not None or term.kernels.samples is None:
        raise ValueError(
            "predict(return_std=True) needs kernels that are computed from samples kept in memory, and not completed "
            "ones (missing=...), nor sparse features of objects, of which a model keeps the direction of its function "
            "(those with compare='tanimoto' keep samples)"
        )
    kernels = term.kernels
    used = np.flatnonzero(spread.weight > 0) if kernels.normaliser.center else spread.support
    train = used if kernels.normaliser.center else np.arange(used.size)
    own, cross, diagonal = kernels.cross(kernels.samples), kernels.cross(new), kernels.diagonal(new)
    own, cross = own[:, train][:, :, train], cross[:, :, train]
    weights = np.atleast_2d(term.weights)
    noise = 1.0 / spread.weight[used]
    out = np.empty((cross.shape[1], spread.variance.size))
    settings = np.column_stack(
        [np.broadcast_to(weights, (spread.ridge.size, weights.shape[1])), spread.ridge]
    )
    for setting in np.unique(settings, axis=0):
        at = np.flatnonzero(np.all(settings == setting, axis=1))
        d, ridge = setting[:-1], setting[-1]
        if not d.any():
            share = np.full(len(out), 1.0 + float(spread.intercept) / spread.weight.sum())
        else:
            factor = cho_factor(np.tensordot(d, own, axes=1) + np.diag(ridge * noise), lower=True)
            k = np.tensordot(d, cross, axes=1)
            explained = d @ diagonal - np.sum(k.T * cho_solve(factor, k.T), axis=0)
            if spread.intercept:
                ones = cho_solve(factor, np.ones(used.size))
                explained = explained + (1.0 - k @ ones) ** 2 / np.sum(ones)
            share = 1.0 + np.maximum(explained, 0.0) / ridge
        out[:, at] = np.sqrt(np.maximum(share, 0.0))[:, None] * np.sqrt(np.maximum(spread.variance[at], 0.0))
    return out


def left_out_predictions(
    bank: Bank, tasks: Sequence[Task], weights: Array, C: Array, plan: Plan
) -> Array | None:
    """Return what ridge regressions say of each sample when it alone is left out, ``(n,)`` or ``(n, t)``.

    Kernel weights, C and the scale of the kernels are those of all samples.  With ``G = K + diag(1 / (2 c))`` and A the
    inverse of ``[[G, 1], [1', 0]]`` without its last row and column, coefficients are ``alpha = A y`` and what sample i
    misses is ``alpha_i / A_ii``.  ``weights`` are ``(tasks, m)``, ``C`` one number for every task.  None where the time
    of the fit is up.
    """
    if bank.on_device or bank.streams or bank.cluster_cost is not None:
        raise ValueError("leave_one_out=True needs kernels in memory: leave out storage and device")
    needed, budget = 3 * 8 * bank.n**2, parse_bytes(plan.bank.memory_budget)
    if needed > budget:
        raise refuse(
            f"the mixed kernel of {bank.n} samples and its inverse", needed, budget, ["leave_one_out=False"]
        )
    columns = []
    for task, own, strength in zip(tasks, weights, C, strict=True):
        if TimeShares(plan.stop, 1).used_up:
            warn_at_caller(
                "the time of the fit was up before the samples could be left out: there is no loo_predictions_; raise "
                "max_seconds",
                KernelWeaveConvergenceWarning,
            )
            return None
        used = np.flatnonzero(task.weight > 0)
        K, y = np.asarray(to_numpy(bank.mixed(own)), dtype=float), task.y.reshape(bank.n, -1)
        G = K[np.ix_(used, used)] + np.diag(0.5 / (strength * task.weight[used]))
        A = cho_solve(cho_factor(G, lower=True), np.eye(used.size))
        constant = np.zeros(y.shape[1])
        if plan.fit_intercept:
            ones = A.sum(axis=1)
            constant = ones @ y[used] / np.sum(ones)
            A -= np.outer(ones, ones) / np.sum(ones)
        alpha = A @ y[used]
        found = K[:, used] @ alpha + constant  # samples without weight are left out as it is
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # nothing remains when the only sample is left out
            found[used] = y[used] - alpha / np.diag(A)[:, None]
        columns.append(found.reshape(task.y.shape))
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


EVIDENCE = ("reml", "loo", "folds")
#: share of ``max_seconds`` that is kept for the ridge regressions with the chosen weights, and their certificate
LAST = 0.1


@dataclass(frozen=True)
class Evidence:
    """Ridge regressions of t targets with chosen weights, in the terms of the convex problem."""

    #: ``(t, m)``, of the bank's kernels; they sum to one, or are all zero
    weights: Array
    #: ``(n, t)``
    beta: Array
    intercept: Array
    #: ``1 / (2 alpha)``, alpha the ridge
    C: Array
    #: bounds of every target's objective with these weights and this C, widened by what rounding may have done
    primal: Array
    dual: Array
    #: estimated variance of the noise of a sample of weight one
    noise: Array
    #: without its coefficients
    choice: WeightChoice
    #: of a target that stands alone, by REML
    components: Components | None = None
    #: of the weights, until all targets were finished or the choice was cut short
    steps: int = 0
    #: what the bounds are for, in words
    scope: str = ""

    @property
    def alpha(self) -> Array:
        """Ridges, infinite where no kernel has weight."""
        with np.errstate(divide="ignore"):
            return np.asarray(0.5 / self.C)

    @property
    def certificate(self) -> Certificate:
        """One for the ridge regressions of all targets, their weights given."""
        return Certificate(
            float(self.primal.sum()),
            float(self.dual.sum()),
            np.where(self.dual > 0, self.beta, 0.0),
            self.intercept,
            _rounding(self.primal),
            scope=self.scope,
            problems=self.primal.size,
        )

    @property
    def gaps(self) -> Array:
        """Relative gap of every target's ridge regression."""
        size = np.maximum(np.maximum(np.abs(self.primal), np.abs(self.dual)), _rounding(self.primal))
        return np.asarray((self.primal - self.dual) / size)


def _rounding(primal: Array) -> float:
    return float(np.finfo(float).tiny + 1e-13 * np.max(np.abs(primal), initial=0.0))


def criterion_of(name: str, splits: Splits, n: int) -> Callable[[NDArray[np.bool_]], Criterion]:
    """Return what makes the criterion of a name for some of n samples; ``splits`` are those of all of them."""
    from ..evidence import Folds, LeaveOneOut, Reml

    if name != "folds":
        return lambda used: Reml() if name == "reml" else LeaveOneOut()
    for train, test in splits:
        if np.union1d(train, test).size != n:
            raise ValueError(
                "criterion='folds' leaves a fold out and fits all other samples, which these splits do not: for blocks "
                "of time take KFold(shuffle=False)"
            )
    tests = [test for _, test in splits]
    if np.unique(np.concatenate(tests)).size != sum(test.size for test in tests):
        raise ValueError("criterion='folds' needs folds that do not overlap: no repeated or shuffled splits")

    def folds_of(used: NDArray[np.bool_]) -> Criterion:
        position = np.where(used, np.cumsum(used) - 1, -1)
        parts = [position[test][position[test] >= 0] for test in tests]
        return Folds([part for part in parts if part.size])

    return folds_of


def by_evidence(
    bank: Bank,
    plan: Plan,
    Y: Array,
    weight: Array,
    criterion: Callable[[NDArray[np.bool_]], Criterion],
    targets_in_batch: int | None,
    device: Device = None,
) -> Evidence:
    """Choose weights for the targets ``(n,)`` or ``(n, t)``, and certify the ridge regressions with them.

    Targets that lack the same samples go together.  One alone leaves the lattice that many share; REML then has errors.
    """
    from ..evidence import Design, Watch, WeightChoice, batch_size, choose_weights, variance_components

    alone, table = Y.ndim == 1, Y.reshape(len(Y), -1)
    n, t = table.shape
    # the coefficients of the choice are kept as beta alone
    intercept, C, primal, dual, noise = np.zeros((5, t))
    out = Evidence(
        np.zeros((t, bank.m)), np.zeros((n, t)), intercept, C, primal, dual, noise, WeightChoice.empty(bank.m, 0, t)
    )  # fmt: skip
    patterns, which = np.ones((1, n), dtype=bool), np.zeros(t, dtype=np.intp)
    if not np.all(np.isfinite(table)):
        patterns, which = np.unique(np.isfinite(table).T, axis=0, return_inverse=True)
    limit = plan.stop.max_seconds
    seconds = None if limit is None else max((1.0 - LAST) * limit - time_spent(), 0.0)
    components = None
    bar = None
    if plan.verbose:
        from tqdm.auto import tqdm

        bar = tqdm(total=t, desc="targets")
    with time_limit(seconds) as deadline, nullcontext() if bar is None else bar:
        # the starts of one target alone are not so many targets
        watch = Watch(plan.callback, None if alone or bar is None else bar.update)
        for p, known in enumerate(patterns):
            at = np.flatnonzero(which.ravel() == p)
            rows = np.flatnonzero(known & (weight > 0))
            if not rows.size:
                raise ValueError(f"target {at[0]} has no value at samples that have weight: leave it out")
            by = criterion(known & (weight > 0))
            stack = _matrices(bank, rows, plan)
            design = Design.of(stack, weight[rows], plan.fit_intercept, single=True)
            _warn_of_matrices(stack, design.scale, by)
            placed = design if device is None else design.on(device)
            # a view where nothing is missing: targets are many
            targets = table if len(patterns) == 1 else table[:, at]
            try:
                size = targets_in_batch or batch_size(placed)
                # From here on there is something to keep: Ctrl-C and the end of the time are looked for between two
                # steps, and targets that are left then get what the scan before any step gives.
                deadline.has_point = deadline.outermost.winding_up = True
                for first in range(0, at.size, size):
                    part, places = targets[rows, first : first + size], at[first : first + size]
                    choice = choose_weights(placed, part, by, exact=alone, watch=watch)
                    _certify(out, places, choice, part, stack, design, weight[rows], rows, plan.fit_intercept)
                if alone and by.name == "reml" and choice.status[0] != "constant":
                    components = variance_components(design, choice.weights[0], part[:, 0])
            except np.linalg.LinAlgError as error:
                raise ValueError(
                    f"criterion={by.name!r} cannot be computed: {error}, because rounding has taken the digits of the "
                    "kernels. Scale the features (StandardScaler), use normalize='trace', or leave out kernels that "
                    "are nearly constant"
                ) from error
    scope = scope_of(Uniform(), bank.m, 1, bank.completed, [f"with the C that {by.name} chose"])
    scope = f"in each of them {scope}" if t > 1 else scope
    return replace(out, components=components, steps=watch.iteration, scope=scope)


def tasks_by_products(
    bound: Bound, plan: Plan, Y: Array, weight: Array
) -> tuple[list[Task], list[RemlChoice], Array]:
    """Choose weights by REML where kernels are only multiplied with; return ridge regressions, choices and noises.

    Targets ``(n,)`` or ``(n, t)`` are chosen for one by one.
    """
    from ..problems.reml import ProductReml, choose_by_products

    table, bank, limit = Y.reshape(len(Y), -1), bound.bank, plan.stop.max_seconds
    share = None if limit is None else max((1.0 - LAST) * limit - time_spent(), 0.0) / table.shape[1]
    tasks, choices, noises = [], [], []
    for k, column in enumerate(table.T):
        known = np.isfinite(column) & (weight > 0)
        y, own = np.where(known, column, 0.0), weight * known
        if not known.any():
            raise ValueError(f"target {k} has no value at samples that have weight: leave it out")
        criterion = ProductReml(
            bank, y, np.divide(1.0, own, out=np.full(len(y), np.inf), where=known), plan.fit_intercept
        )
        with time_limit(share) as deadline:
            deadline.has_point = deadline.outermost.winding_up = True
            choice = choose_by_products(criterion, plan.callback)
        point, total = choice.point, float(np.sum(choice.point.d))
        shares = point.d / total
        tasks.append(
            Task(
                y, own, "y" if Y.ndim == 1 else k, plan.loss, Fixed(shares), 0.5 * total,
                start=Point(total * point.coef, shares), of="target", given=("with the C that reml chose",),
            )
        )  # fmt: skip
        choices.append(choice)
        noises.append(float(y @ point.coef) / criterion.freedom)
    return tasks, choices, np.array(noises)


def _certify(
    out: Evidence,
    at: Codes,
    choice: WeightChoice,
    Y: Array,
    stack: Array,
    design: Design,
    weight: Array,
    rows: Codes,
    has_intercept: bool,
) -> None:
    """Write the ridge regressions with the chosen weights to their places, and what bounds their objectives.

    Primal and dual of every target's ridge regression, notation (3) with the weights given: what rounding may have done
    is added to the primal and taken off the dual.
    """
    out.choice.put(at, choice)
    weights = choice.weights * design.scale
    total = weights.sum(axis=1)
    out.weights[at] = shares = weights / np.where(total > 0, total, 1.0)[:, None]
    out.C[at] = C = 0.5 * total
    out.noise[at] = np.sum(design.targets(Y) * choice.coef, axis=0) / max(design.freedom, 1)
    beta = (design.root[:, None] * choice.coef) * total
    # an intercept takes any constant: what is far from zero need not be carried through every sum
    mean = weight @ Y / np.sum(weight) if has_intercept else np.zeros(at.size)
    centred = Y - mean
    decision, intercept = np.zeros(beta.shape), np.zeros(at.size)  # sum_j d_j K_j beta
    for j, K in enumerate(stack):
        having = np.flatnonzero(shares[:, j])
        if having.size:
            decision[:, having] += K @ (beta[:, having] * shares[having, j])
    if has_intercept:
        intercept = weight @ (centred - decision) / np.sum(weight)
    lengths = np.sqrt(np.maximum(np.diagonal(stack, axis1=1, axis2=2), 0.0))
    forms, values = forms_doubt(lengths, beta), values_doubt(lengths, beta, shares.T)
    doubt = 0.5 * np.sum(shares.T * forms, axis=0)
    half = 0.5 * np.maximum(np.sum(beta * decision, axis=0), 0.0)
    missed = np.abs(centred - decision - intercept) + values
    with np.errstate(divide="ignore", invalid="ignore"):
        charge = np.where(C > 0, np.sum(beta**2 / weight[:, None], axis=0) / (4.0 * C), 0.0)
    # without any weight the objective is C = 0 times the loss
    gain = np.sum(centred * beta, axis=0) - charge
    own = UNIT * (np.sum(np.abs(centred * beta), axis=0) + charge)
    primal, dual = half + doubt + C * (weight @ missed**2), gain - half - doubt - own
    # the function that is zero is always at hand: where it is better, no digit of the other is right
    at_zero = C * (weight @ centred**2)
    kept = primal <= at_zero
    out.beta[np.ix_(rows, at)] = np.where(kept, beta, 0.0)
    out.intercept[at] = np.where(kept, intercept, 0.0) + mean
    out.primal[at] = np.where(kept, primal, at_zero)
    # coefficients of zero prove that no objective is negative
    out.dual[at] = np.where(kept, np.maximum(dual, 0.0), 0.0)


def refuse_too_many(Y: Array, plan: Plan) -> None:
    """Raise where targets and their coefficients do not fit into memory, before anything is computed."""
    # the targets, the coefficients of the model and of its function, and what is under way
    needed, budget = 4 * 8 * Y.size, parse_bytes(plan.bank.memory_budget)
    if needed > budget:
        few = max(1, budget // (4 * 8 * len(Y)))
        raise refuse(
            f"{Y.size // len(Y):,} targets of {len(Y):,} samples, four times over,", needed, budget,
            [f"fits of {few:,} targets at a time, which do not depend on each other", "a larger memory_budget"],
        )  # fmt: skip


def _matrices(bank: Bank, used: Codes, plan: Plan) -> Array:
    """Return the kernels of the bank as an array ``(m, n, n)``, or refuse what does not fit."""
    if bank.on_device or bank.streams or bank.cluster_cost is not None:
        raise ValueError(
            "weights by evidence need kernels in memory: pass X as an array and leave out storage, or take "
            "criterion='convex'"
        )
    needed, budget = 3 * 8 * bank.m * used.size**2, parse_bytes(plan.bank.memory_budget)
    if needed > budget:
        raise refuse(
            f"{bank.m} kernels of {used.size} samples, three times over,", needed, budget,
            ["fewer samples or kernels", "criterion='convex', which stores kernels once"],
        )  # fmt: skip
    return np.stack([bank.block(used, used, np.array([j]))[0] for j in range(bank.m)])


def _warn_of_matrices(stack: Array, scale: Array, criterion: Criterion) -> None:
    """Say so where samples are the same for every kernel, and where a kernel has no digits left without its mean."""
    if criterion.name == "loo":
        mean = np.mean(stack, axis=0)
        diagonal = np.diagonal(mean)
        distance = diagonal[:, None] + diagonal - 2.0 * mean
        if np.count_nonzero(distance <= 1e-10 * np.mean(diagonal)) > len(mean):
            warn_at_caller(
                "some samples are the same for every kernel: leave-one-out sees their twins and promises too much; "
                "take criterion='folds' with groups, or 'reml'",
                KernelWeaveWarning,
            )
    lost = [j for j in np.flatnonzero(scale == 0.0) if np.ptp(stack[j]) > 1e-13 * np.max(np.abs(stack[j]))]
    if lost:
        warn_at_caller(
            f"kernel {lost[0]}{' and others' if len(lost) > 1 else ''} is so far from centred that its digits are gone "
            "once its mean is taken off: it gets no weight. Use center=True, or scale the features (StandardScaler)",
            KernelWeaveWarning,
        )
