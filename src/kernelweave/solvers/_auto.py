"""Which solver for which problem."""

from __future__ import annotations

from .._numerics.resources import default_budget
from ..banks import Bank
from ..losses import Loss
from ..norms import Norm
from ._base import Solver, registry

#: samples from which steps on blocks of features win with losses that are quadratic or a line: before that, the mixed
#: kernel solves those exactly at next to no cost
QUADRATIC = 1000

#: solvers that ask explicit features for nothing but sums over samples, the better one first
ON_SUMS = ("lbfgs", "proximal_newton")


def choose_solver(loss: Loss, norm: Norm, bank: Bank) -> Solver:
    """Return the solver that ``solver="auto"`` stands for.

    Fixed weights need one inner solve.  Where the objective is convex in the weights, second-order steps take the
    fewest passes over the bank; unless every kernel has a rank far below n and there are more of them than samples, as
    with one kernel per term of a text: sparse mixtures of them are singular, the curvature misleads, and a pass costs
    next to nothing, so first-order steps win.  Kernels of a feature or two under the l1 norm and a hinge make an
    objective of planes, which the level method describes best.  The maximum norm is left to alternation, at most k
    kernels to programs over subsets.  Where the mixed kernel of all samples would take too much memory, one on a
    working set of them is mixed instead (norms that are convex in the weights, fixed weights).  Explicit features of
    many samples, with a smooth loss, never need it: there, steps go over one kernel's features at a time.
    Wherever the loss and the norm allow it, features that are streamed go with stochastic steps, those on a cluster
    or a device with L-BFGS, which asks for nothing but sums over samples; under the l1 norm, which has corners, with
    proximal Newton steps, which ask for no more.
    """
    if bank.preferred_solver is not None:
        # a softmax has no stochastic steps, the l1 norm no gradient; these ask for as little
        for name in (bank.preferred_solver, *ON_SUMS):
            suited = registry[name]()
            if suited.serves(loss, norm):
                return suited
    blocks = registry["block_descent"]()
    if bank.suits_blocks and blocks.serves(loss, norm) and (loss.sigmoid or bank.n >= QUADRATIC):
        return blocks
    working_set = registry["working_set"]()
    too_many = not bank.mixes_whole or 8 * bank.n**2 > default_budget() // 4
    if too_many and working_set.serves(loss, norm):
        return working_set
    if norm.fixed:
        return registry["fixed_weights"]()
    first_order = registry["nesterov"]()
    if bank.thin and not norm.analytic and first_order.serves(loss, norm):
        return first_order
    # J is polyhedral, or nearly: planes describe it, and its curvature does not
    if norm.simplex and bank.low_rank and not (loss.has_curvature or loss.ridge or loss.joint):
        return registry["level"]()
    for name in ("newton", "lp_analytic", "outer_approximation"):
        solver = registry[name]()
        if solver.serves(loss, norm):
            return solver
    raise ValueError(f"no solver fits loss={loss!r} with norm={norm.label!r}")
