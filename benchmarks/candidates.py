"""Candidates for the exact engine that are not in the package, against the one that is.

Run ``python benchmarks/candidates.py``; ``--quick`` takes a smaller second problem, one run each and writes nothing.
``engines.py`` has the solvers that are in the package; the prototypes here were written to be measured.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from _candidates_dal import SpicyDAL
from _candidates_smo import InterleavedSMO, stack_of
from _problems import SETTING, Problem, generated, mid, small
from _report import machine, show, write_table
from _targets import Targets
from _threads import pin
from kernelweave.banks import Bank
from kernelweave.losses import Hinge
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Solution, Solver, Stop, make_solver, solve, without_caches

L1 = ("newton", "smo", "dal", "nesterov")
LP = ("newton", "smo", "nesterov", "lp_analytic")
HARDER = ("newton", "smo", "lp_analytic")
PS = (1.1, 1.5, 2.0)
NOTE = f"""{SETTING} Stopped at the certified relative gap of the column *to*, after {{cap:g}} s or where nothing
more could be gained (*ended*). All run in the package's own loop, on the same bank, which is built before, start from
the SVM on equal weights and are judged by the same certificate, recomputed from the kernels at the end (*relative
gap*).

- `newton`: the package's engine.
- `smo`: interleaved SMO (Vishwanathan et al. 2010), a prototype in `_candidates_smo.py`. Two coefficients move to the
  exact maximum of the joint dual on their line, second-order choice of the pair, weights in closed form after every
  step. For l1 the limit of large q, from 2 ln m on, doubled whenever the surrogate is solved better than it resembles
  l1. A step reads two rows of every kernel: 2 m n entries. It is given all kernels as one stored array, row by row, in
  double precision; making that array and its memory ({{stacks}}, the banks take {{banks}}) count for nothing here.
- `dal`: dual augmented Lagrangian with an active set of kernels (SpicyMKL, Suzuki and Tomioka 2011), a prototype in
  `_candidates_dal.py`, for half the squared block norm instead of SpicyMKL's plain one; hinge loss by a box QP a Newton
  step, on the package's SMO engine. First step length {SpicyDAL().gamma:g}, then times {SpicyDAL().growth:g}: the best
  of a small grid on the small problem. l1 only.
- `nesterov`: accelerated gradients on the smoothed dual, as it is in the package (Xu et al. 2010; `docs/solvers.md`).
- `lp_analytic`: SVM and closed-form weights in turn, from the package, beside the candidates for lp norms.

*Passes*: entries of the (m, n, n) tensor read, over m n^2. *Steps*: iterations of the loop; for `smo` each is n / 4
pair moves. *Seconds*: median of {{repeats}}, of one run where that took more than {{long:g}} s. *Times newton*: seconds
over those of `newton` on the same case; a lower bound where the candidate did not get there.

{{sources}}

{{targets}}"""
ENDED = {"converged": "reached", "max_seconds": "time", "max_iter": "iterations"}


@dataclass(frozen=True)
class Case:
    """A problem, a norm and a tolerance, and who is to solve it."""

    problem: Problem
    norm: Any
    tol: float
    candidates: tuple[str, ...]
    C: float = 1.0

    @property
    def norm_name(self) -> str:
        """The norm as the table calls it."""
        return self.norm if isinstance(self.norm, str) else f"p = {self.norm:g}"


@dataclass(frozen=True)
class Given:
    """What is made before the clock starts."""

    bank: Bank
    stack: np.ndarray


class Runner:
    """One candidate on one case, again and again."""

    def __init__(self, case: Case, given: Given, candidate: str, cap: float) -> None:
        self.case, self.given, self.candidate = case, given, candidate
        self.norm = make_norm(case.norm)
        self.stop = Stop(case.tol, None, cap)
        self.seconds: list[float] = []

    def _solver(self) -> Solver:
        if self.candidate == "smo":
            return InterleavedSMO(self.given.stack)
        if self.candidate == "dal":
            return SpicyDAL()
        return make_solver(self.candidate, Hinge(), self.norm)

    def once(self) -> Solution:
        """Solve, timed."""
        problem = MKLProblem(self.given.bank, Hinge(), self.norm, self.case.problem.y, self.case.C)
        solver = self._solver()
        start = time.perf_counter()
        self.solution = solve(problem, solver, self.stop)
        self.seconds.append(time.perf_counter() - start)
        return self.solution

    @property
    def reached(self) -> bool:
        """Whether the gap asked for was certified."""
        return self.solution.converged

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)

    @property
    def gap(self) -> float:
        """Relative gap of the point, primal and dual from the kernels alone."""
        problem = MKLProblem(self.given.bank, Hinge(), self.norm, self.case.problem.y, self.case.C)
        judged = problem.certificate(without_caches(self.solution.point))
        dual = problem.dual(self.solution.certificate.dual_point)
        return replace(judged, dual=max(judged.dual, dual)).relative_gap

    def row(self, newton: Runner) -> dict[str, Any]:
        """A line of the table."""
        ratio = self.median / newton.median
        return {
            "problem": self.case.problem.name,
            "norm": self.case.norm_name,
            "C": self.case.C,
            "to": self.case.tol,
            "candidate": self.candidate,
            "passes": self.solution.passes,
            "steps": self.solution.n_iter,
            "seconds": self.median,
            "times newton": ratio if self.reached else f"> {ratio:.3g}",
            "relative gap": self.gap,
            "ended": ENDED.get(self.solution.status, self.solution.status),
            "runs": len(self.seconds),
        }


def measure(case: Case, given: Given, repeats: int, cap: float, long: float) -> list[Runner]:
    """Everyone once, then the quick ones in turns: a busy moment of the machine is shared."""
    runners = [Runner(case, given, candidate, cap) for candidate in case.candidates]
    for runner in runners:
        runner.once()
    for _ in range(repeats - 1):
        for runner in runners:
            if runner.seconds[0] < long:
                runner.once()
    return runners


def cases(quick: bool) -> list[Case]:
    """The l1 norm and two lp norms on both problems, to a fine gap on the small one."""
    first, second = small(), generated(400, 10, name="mid, smaller") if quick else mid()
    out = []
    for norm, candidates in (("l1", L1), *((p, LP) for p in PS)):
        out += [Case(first, norm, tol, candidates) for tol in (1e-3, 1e-6)]
        out.append(Case(second, norm, 1e-3, candidates))
        if norm != "l1":
            out.append(Case(second, norm, 1e-3, HARDER, C=10.0))
    return out


def judge(what: str, runs: list[list[Runner]], targets: Targets) -> None:
    """Newton is in the package: nobody who gets there may be ahead of it.

    For lp norms passes are shown and not judged: those of `smo` are over an array of all kernels that nobody has.
    """
    ratios: dict[str, dict[str, float]] = {"passes": {}, "seconds": {}}
    for newton, *others in runs:
        for other in (other for other in others if other.reached):
            case = other.case
            label = (
                f"{other.candidate}, {case.problem.name}, {case.norm_name}, C = {case.C:g}, to {case.tol:g}"
            )
            ratios["passes"][label] = other.solution.passes / newton.solution.passes
            ratios["seconds"][label] = other.median / newton.median
    least = {"passes": 1.0, "seconds": 1.0} if what == "l1" else {"seconds": 1.0}
    for unit, bound in least.items():
        values = ratios[unit]
        if values:
            best = min(values, key=lambda label: values[label])
            targets.at_least(
                f"{what}: {unit} of the best candidate over newton's ({best})", values[best], bound
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller second problem, nothing is written")
    parser.add_argument("--cap", type=float, default=None, help="most seconds a run (60, quick: 3)")
    options = parser.parse_args()
    pin()
    quick = options.quick
    cap, repeats, long = options.cap or (3.0 if quick else 60.0), 1 if quick else 3, 5.0
    print(machine())
    everything = cases(quick)
    given: dict[str, Given] = {}
    for case in everything:
        if case.problem.name not in given:
            bank = case.problem.bank()
            given[case.problem.name] = Given(bank, stack_of(bank))
    for case in (everything[0], everything[3]):  # compiles
        measure(case, given[case.problem.name], 1, 1.0, 0.0)
    runs = []
    for case in everything:
        runs.append(measure(case, given[case.problem.name], repeats, cap, long))
        show([runner.row(runs[-1][0]) for runner in runs[-1]])
    targets = Targets()
    for norm in dict.fromkeys(case.norm for case in everything):
        same = [run for run in runs if run[0].case.norm == norm]
        judge(same[0][0].case.norm_name, same, targets)
    if not quick:
        sources = "\n".join(f"- {p}" for p in dict.fromkeys(case.problem.source for case in everything))
        stacks = " and ".join(f"{case.stack.nbytes / 2**30:.2g} GiB" for case in given.values())
        banks = " and ".join(f"{case.bank.nbytes / 2**30:.2g} GiB" for case in given.values())
        note = NOTE.format(
            banks=banks,
            cap=cap,
            repeats=repeats,
            long=long,
            sources=sources,
            targets=targets.text(),
            stacks=stacks,
        )
        rows = [runner.row(run[0]) for run in runs for runner in run]
        write_table("candidates", rows, "python benchmarks/candidates.py", note)


if __name__ == "__main__":
    main()
