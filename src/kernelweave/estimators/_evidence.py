"""Kernel weights by evidence on a bank: from samples and targets to coefficients, and what can be proved of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..banks import Bank
from ..banks.memory import parse_bytes, refuse
from ..evidence import Choice, Criterion, Design, Folds, LeaveOneOut, Reml, batch_size, choose_weights
from ..exceptions import KernelWeaveWarning
from ..problems import Certificate
from ._plan import Plan
from ._types import Array, Codes, Device

__all__ = ["EVIDENCE", "Evidence", "by_evidence", "criterion_of"]

EVIDENCE = ("reml", "loo", "folds")


@dataclass(frozen=True)
class Evidence:
    """Ridge regressions with chosen weights, in the terms of the convex problem.

    Attributes
    ----------
    weights : array of shape (t, m)
        Of the bank's kernels; they sum to one, or are all zero.
    beta : array of shape (n, t)
    intercept, C : arrays of shape (t,)
        With ``C = 1 / (2 alpha)``, alpha the ridge.
    primal, dual : arrays of shape (t,)
        Bounds of every target's objective with these weights and this C.
    noise : array of shape (t,)
        Estimated variance of the noise of a sample of weight one.
    choice : Choice
    """

    weights: Array
    beta: Array
    intercept: Array
    C: Array
    primal: Array
    dual: Array
    noise: Array
    choice: Choice

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
            self.beta,
            self.intercept,
            _rounding(self.primal),
        )

    @property
    def gaps(self) -> Array:
        """Relative gap of every target's ridge regression."""
        size = np.maximum(np.maximum(np.abs(self.primal), np.abs(self.dual)), _rounding(self.primal))
        return np.asarray((self.primal - self.dual) / size)


def _rounding(primal: Array) -> float:
    return float(np.finfo(float).tiny + 1e-13 * np.max(np.abs(primal), initial=0.0))


def criterion_of(name: str, folds: Callable[[], list[tuple[Codes, Codes]]], weight: Array) -> Criterion:
    """Return the criterion of a name; ``folds`` makes the splits of all samples where they are needed."""
    if name == "reml":
        return Reml()
    if name == "loo":
        return LeaveOneOut()
    n, used = weight.size, np.flatnonzero(weight > 0)
    position = np.full(n, -1)
    position[used] = np.arange(used.size)
    parts = []
    for train, test in folds():
        if np.union1d(train, test).size != n:
            raise ValueError(
                "criterion='folds' leaves a fold out and fits all other samples, which these splits do not: for blocks "
                "of time take KFold(shuffle=False)"
            )
        parts.append(position[test][position[test] >= 0])
    parts = [part for part in parts if part.size]
    if np.unique(np.concatenate(parts)).size != sum(part.size for part in parts):
        raise ValueError("criterion='folds' needs folds that do not overlap: no repeated or shuffled splits")
    return Folds(parts)


def by_evidence(
    bank: Bank,
    plan: Plan,
    Y: Array,
    weight: Array,
    criterion: Criterion,
    targets_in_batch: int | None,
    device: Device = None,
) -> Evidence:
    """Choose weights for the targets ``(n, t)``, on a device where one is named, and certify the ridge regressions."""
    used = np.flatnonzero(weight > 0)
    _refuse_too_many(Y, plan)
    stack = _matrices(bank, used, plan)
    if criterion.name == "loo":
        _warn_of_repeated_rows(stack)
    design = Design.of(stack, weight[used], plan.fit_intercept, single=True)
    targets = Y if used.size == len(Y) else Y[used]
    with _progress(plan.verbose, Y.shape[1]) as progress:
        placed = design if device is None else design.on(device)
        choice = choose_weights(placed, targets, criterion, targets_in_batch, progress)
    weights = choice.weights * design.scale
    total = weights.sum(axis=1)
    shares = weights / np.where(total > 0, total, 1.0)[:, None]
    t = Y.shape[1]
    out = Evidence(
        shares, np.zeros(Y.shape), np.zeros(t), 0.5 * total, np.zeros(t), np.zeros(t), np.zeros(t), choice
    )
    size = targets_in_batch or batch_size(design)
    for at in (slice(first, first + size) for first in range(0, t, size)):
        part = targets[:, at]
        out.noise[at] = np.sum(design.targets(part) * choice.coef[:, at], axis=0) / max(design.freedom, 1)
        beta = (design.root[:, None] * choice.coef[:, at]) * total[at]
        out.beta[used, at] = beta
        decision = _decision(stack, shares[at], beta)
        if plan.fit_intercept:
            out.intercept[at] = weight[used] @ (part - decision) / np.sum(weight)
        bounds = _bounds(part, beta, decision, out.intercept[at], 0.5 * total[at], weight[used])
        out.primal[at], out.dual[at] = bounds
    return out


def _refuse_too_many(Y: Array, plan: Plan) -> None:
    """Raise where targets and their coefficients do not fit into memory, before anything is computed."""
    # the targets, coefficients of the choice, of the model and of its function
    needed, budget = 4 * 8 * Y.size, parse_bytes(plan.bank.memory_budget)
    if needed > budget:
        few = max(1, budget // (4 * 8 * len(Y)))
        raise refuse(
            f"{Y.shape[1]:,} targets of {len(Y):,} samples, four times over,", needed, budget,
            [f"fits of {few:,} targets at a time, which do not depend on each other", "a larger memory_budget"],
        )  # fmt: skip


def _matrices(bank: Bank, used: Codes, plan: Plan) -> Array:
    """Return the kernels of the bank as an array ``(m, n, n)``, or refuse what does not fit."""
    if bank.on_device or bank.streams or bank.cluster_cost is not None:
        raise ValueError(
            "weights by evidence need kernels in memory: leave out storage, or take criterion='convex'"
        )
    needed, budget = 3 * 8 * bank.m * used.size**2, parse_bytes(plan.bank.memory_budget)
    if needed > budget:
        raise refuse(
            f"{bank.m} kernels of {used.size} samples, three times over,", needed, budget,
            ["fewer samples or kernels", "criterion='convex', which stores kernels once"],
        )  # fmt: skip
    return np.stack([bank.block(used, used, np.array([j]))[0] for j in range(bank.m)])


def _decision(stack: Array, shares: Array, beta: Array) -> Array:
    """``sum_j d_j K_j beta`` of every target."""
    out = np.zeros(beta.shape)
    for j, K in enumerate(stack):
        having = np.flatnonzero(shares[:, j])
        if having.size:
            out[:, having] += K @ (beta[:, having] * shares[having, j])
    return out


def _bounds(
    Y: Array, beta: Array, decision: Array, intercept: Array, C: Array, weight: Array
) -> tuple[Array, Array]:
    """Primal and dual of every target's ridge regression; notation (3) with the weights given."""
    half = 0.5 * np.sum(beta * decision, axis=0)
    primal = half + C * (weight @ (Y - decision - intercept) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        charge = np.sum(beta**2 / weight[:, None], axis=0) / (4.0 * C)
    # without any weight the objective is C = 0 times the loss
    dual = np.sum((Y - Y[0]) * beta, axis=0) + Y[0] * beta.sum(axis=0) - np.where(C > 0, charge, 0.0) - half
    return np.asarray(primal), np.asarray(dual)


def _warn_of_repeated_rows(stack: Array) -> None:
    """Say so where samples are the same for every kernel: leaving one out leaves its twin in."""
    mean = np.mean(stack, axis=0)
    diagonal = np.diagonal(mean)
    distance = diagonal[:, None] + diagonal - 2.0 * mean
    near = np.count_nonzero(distance <= 1e-10 * np.mean(diagonal)) - len(mean)
    if near > 0:
        warnings.warn(
            "some samples are the same for every kernel: leave-one-out sees their twins and promises too much; take "
            "criterion='folds' with groups, or 'reml'",
            KernelWeaveWarning,
            stacklevel=5,
        )


@contextmanager
def _progress(verbose: int, t: int) -> Iterator[Callable[[int], object] | None]:
    """A bar over the targets, with the time left."""
    if not verbose:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(total=t, desc="targets") as bar:
        yield bar.update
