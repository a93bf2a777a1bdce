"""Safe screening: how many kernels does a certificate prove to have no weight at the optimum, and how early?

Run ``python benchmarks/screening.py``; ``--quick`` takes one data set and writes nothing.

For l1-MKL, ``D(beta) = gain(beta) - max_j s_j(beta) / 2``, let (beta*, d*) be a saddle point, d any weights on the
simplex, beta_d the inner solution for them, J(d) its value, LB any lower bound of the optimum, mu the strong concavity
of the gain (the reciprocal of C times the loss's smoothness: 1 / (2 C) for the squared losses, 4 / C for the logistic
one, 0 for the hinge).  Then:

1. *The ball.*  ``L_d(beta) = gain(beta) - beta'K_d beta / 2`` is concave, strongly so in the metric M = K_d + mu I, and
   beta_d maximises it: ``L_d(beta*) <= J(d) - |beta* - beta_d|_M^2 / 2``.  As d's <= max s,
   ``L_d(beta*) >= D(beta*) >= LB``.  Hence ``|beta* - beta_d|_M <= r``, ``r^2 = 2 (J(d) - LB)``.
   An inner solution of gap e is itself within sqrt(2 e) of beta_d: r grows by that, J(d) is replaced by its primal.
2. *The threshold.*  A kernel with weight has ``s_j(beta*) = max s(beta*) >= d's(beta*) = |beta*|_{K_d}^2``, and since
   K_d <= M, ``|beta*|_{K_d} >= |beta_d|_{K_d} - r``.  The constant of this bound is one; a single kernel in the place
   of the mixture would have its own eigenvalues to pay.
3. *The rule.*  ``sqrt(s_j(beta*)) <= sqrt(s_j(beta_d)) + sqrt(l_j) r``, l_j the largest eigenvalue of K_j relative to
   M, on vectors that sum to zero (both points do).  Kernel j is out where the right hand side is below the threshold.

*Generous*: l_j itself, one eigenproblem per kernel and iteration: too expensive to use, but no rule from this ball with
the triangle inequality can prove more.  Where M is singular to rounding (hinge), eigenvalues below 1e-12 of the largest
are lifted to that, which makes l_j smaller than it is and the rule only more generous.
*Cheap*: ``lmax(K_j) / (lmin(K_d) + mu)``, lmax once and for all.
*Free*: the same with the trace in the place of lmax(K_j), which takes no pass.
For losses with mu > 0 there is also the ball around any feasible beta, ``|beta* - beta|^2 <= 2 (UB - D(beta)) / mu``,
since D itself is mu-strongly concave.  With the same bounds, around beta_d, it contains the one above, whose metric has
K_d on top.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from _problems import UCI, Problem, uci
from _report import Targets, machine, show, write_table
from _threads import pin
from kernelweave.losses import make_loss
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem, relative_gap
from kernelweave.solvers import make_solver

Array = np.ndarray
LOSSES = ("hinge", "squared_hinge", "logistic", "squared")
CS = (0.1, 1.0, 10.0)
GAPS = tuple(10.0**-k for k in range(2, 9))
FINE = 1e-9
GOALS = (1e-3, 1e-6)
NOTE = """Features standardised on the training rows, kernels trace-normalised, an intercept, l1 norm. `newton` runs
to a certified relative gap of 1e-9 or {most} iterations. The three rules of `benchmarks/screening.py`, whose derivation
stands there, are tried at its first iterate at or below 1e-1 and each gap of the columns on the right, with the best
lower bound known by then; once out, a kernel stays out. Those columns have the kernels proven out, *free / cheap /
generous*; as `newton` squares its error, one iterate often answers for several columns; "-" where it did not get there.
*Zero*: kernels without weight at the end, the ones that could be proven out. *Passes*: what `newton` reads to 1e-3 and
to 1e-6; *saved*: the most that leaving out the proven kernels from then on would have saved of it, for each rule, the
price of proving not counted. That price is, for *free*, the smallest eigenvalue of every mixture, O(n^3); for
*cheap* also the largest of every kernel, once (a pass for a rough bound, ten for a good one); for *generous* an
eigenproblem a kernel and an iterate.
The inner problem is solved once more for the rules, to 1e-12, for nothing. *Wrong*: kernels proven out by any rule that
have weight at the end.

{sources}

{targets}"""
MOST = 60


@dataclass(frozen=True)
class Iterate:
    """Weights, the best lower bound when they were found, and what it took."""

    weights: Array
    lower: float
    gap: float
    passes: float


def iterates(problem: MKLProblem, most: int = MOST) -> list[Iterate]:
    """Every new best of `newton`, down to ``FINE``."""
    solver = make_solver("newton", problem.loss, problem.norm)
    before, upper, lower = problem.bank.passes, np.inf, -np.inf
    state: Any = None
    out: list[Iterate] = []
    weights = np.zeros(problem.m)
    for _ in range(most):
        state = solver.init(problem, None, FINE) if state is None else solver.step(problem, state)
        point = solver.point(state)
        judged = problem.certificate(point)
        lower = max(lower, judged.dual)
        if judged.primal < upper:
            upper, weights = judged.primal, point.weights
        gap = relative_gap(upper, lower)
        out.append(Iterate(weights, lower, gap, problem.bank.passes - before))
        if gap <= FINE:
            break
    return out


class Screen:
    """The rules for one problem, with what does not change from one iterate to the next."""

    def __init__(self, stack: Array, largest: Array, problem: MKLProblem) -> None:
        self.stack, self.largest, self.problem = stack, largest, problem
        self.traces = np.trace(stack, axis1=1, axis2=2)
        smoothness = problem.loss.smoothness
        self.mu = 1.0 / (smoothness * float(problem.c[0])) if smoothness else 0.0

    def at(self, iterate: Iterate, before: Array) -> Array:
        """Kernels out by each of the rules, on top of those that were out before: (3, m)."""
        problem, d = self.problem, iterate.weights
        oracle = problem.oracle(d, None, 1e-12)
        inner = oracle.inner
        lower = max(iterate.lower, problem.dual(inner.beta, oracle.quad))
        slack = max(inner.primal - inner.dual, 0.0)
        radius = np.sqrt(2.0 * max(inner.primal - lower, 0.0)) + np.sqrt(2.0 * slack)
        roots = np.sqrt(np.maximum(oracle.quad, 0.0))
        room = np.sqrt(max(float(d @ oracle.quad), 0.0)) - radius - roots  # what sqrt(l_j) r may be
        values, vectors = eigh(self._inside(problem.bank.combine(d)))
        smallest = max(float(values[0]), 0.0) + self.mu
        with np.errstate(divide="ignore"):
            free = before[0] | (np.sqrt(self.traces / smallest) * radius < room)
            cheap = before[1] | free | (np.sqrt(self.largest / smallest) * radius < room)
        generous = before[2] | cheap
        scales = np.maximum(values, 1e-12 * values[-1]) + self.mu
        # Rayleigh quotients of a few vectors bound l_j from below: many kernels fall by them already
        basis = self._outside(vectors[:, :8])
        open_ = np.flatnonzero((room > 0) & ~generous)
        forms = np.einsum("jab,ak,bk->jk", self.stack[open_], basis, basis, optimize=True)
        needed = np.sqrt(np.max(np.maximum(forms, 0.0) / scales[:8], axis=1)) * radius
        root = (vectors / np.sqrt(scales)) @ vectors.T
        for j in open_[needed < room[open_]]:
            generous[j] = np.sqrt(self._relative(j, root)) * radius < room[j]
        return np.stack([free, cheap, generous])

    def _relative(self, j: int, root: Array) -> float:
        """Largest eigenvalue of K_j relative to M, both on vectors that sum to zero."""
        inside = self._inside(self.stack[j])
        size = root.shape[0]

        def times(x: Array) -> Array:
            return root @ (inside @ (root @ np.ravel(x)))

        operator = LinearOperator((size, size), matvec=times, dtype=float)
        return 1.001 * float(eigsh(operator, 1, which="LA", tol=1e-3, return_eigenvectors=False)[0])

    def _reflector(self) -> Array:
        """Householder vector that takes the constant vector to the last axis."""
        n = self.problem.n
        u = np.full(n, 1.0 / np.sqrt(n))
        u[-1] += 1.0
        return u / np.linalg.norm(u)

    def _inside(self, K: Array) -> Array:
        """K on an orthonormal basis of the vectors that sum to zero."""
        u = self._reflector()
        Ku = K @ u
        turned = K - 2.0 * np.outer(u, Ku) - 2.0 * np.outer(Ku, u) + 4.0 * float(u @ Ku) * np.outer(u, u)
        return turned[:-1, :-1]

    def _outside(self, x: Array) -> Array:
        """Vectors of that basis as vectors of length n."""
        u = self._reflector()
        full = np.vstack([x, np.zeros((1, x.shape[1]))])
        return full - 2.0 * np.outer(u, u @ full)


def row_of(problem: Problem, mkl: MKLProblem, stack: Array, largest: Array) -> dict[str, Any]:
    """A line of the table: what is proven at every gap, and what that could have saved."""
    steps = iterates(mkl)
    final = steps[-1].weights
    screen = Screen(stack, largest, mkl)
    crossings = {
        gap: next((k for k, step in enumerate(steps) if step.gap <= gap), None) for gap in (0.1, *GAPS)
    }
    out = np.zeros((3, mkl.m), dtype=bool)
    counts: list[Array] = []
    wrong = 0
    for k, iterate in enumerate(steps):
        if k in crossings.values():
            out = screen.at(iterate, out)
            wrong = max(wrong, int(np.count_nonzero(out[2] & (final > 0))))
        counts.append(np.count_nonzero(out, axis=1))
    row: dict[str, Any] = {
        "problem": problem.name,
        "loss": mkl.loss.registered_as,
        "C": float(mkl.c[0]),
        "kernels": mkl.m,
        "zero": int(np.count_nonzero(final == 0)),
    }
    for gap in GOALS:
        last = crossings[gap]
        row[f"passes to {gap:g}"] = "-" if last is None else steps[last].passes
        row[f"saved to {gap:g}"] = "-" if last is None else _saved(steps, counts, last, mkl.m)
    for gap in GAPS:
        at = crossings[gap]
        row[f"{gap:g}"] = "-" if at is None else " / ".join(map(str, counts[at]))
    row["wrong"] = wrong
    return row


def _saved(steps: list[Iterate], counts: list[Array], last: int, m: int) -> str:
    """Passes that would not have been read, had the proven kernels been left out of everything that followed."""
    read = np.diff([step.passes for step in steps[: last + 1]])
    saved = read @ np.array(counts[:last]).reshape(-1, 3) / m
    return " / ".join(f"{value:.2g}" for value in saved)


def rows_of(problem: Problem, Cs: tuple[float, ...]) -> list[dict[str, Any]]:
    """All lines of one data set."""
    bank = problem.bank()
    everyone = np.arange(bank.n)
    stack = bank.block(everyone, everyone, np.arange(bank.m))
    # a thousandth on top, for the tolerance
    largest = 1.001 * np.array([eigsh(K, 1, tol=1e-3, return_eigenvectors=False)[0] for K in stack])
    out = []
    for loss in LOSSES:
        for C in Cs:
            mkl = MKLProblem(bank, make_loss(loss), make_norm("l1"), problem.y, C)
            out.append(row_of(problem, mkl, stack, largest))
    show(out)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one data set, one C, nothing is written")
    options = parser.parse_args()
    pin()
    print(machine())
    names = ("heart",) if options.quick else tuple(UCI)
    problems = [uci(name) for name in names]
    rows = []
    for problem in problems:
        rows += rows_of(problem, CS[1:2] if options.quick else CS)
    targets = Targets()
    targets.at_most("kernels proven out that have weight at the end", sum(row["wrong"] for row in rows), 0)
    if not options.quick:
        sources = "\n".join(f"- {problem.source}" for problem in problems)
        note = NOTE.format(most=MOST, sources=sources, targets=targets.text())
        write_table("screening", rows, "python benchmarks/screening.py", note)


if __name__ == "__main__":
    main()
