"""Candidates for the exact engine that are not in the package, against the one that is.

Run ``python benchmarks/candidates.py``; ``--quick`` takes a smaller second problem, one run each and writes nothing.
``engines.py`` has the solvers that are in the package; the prototypes here were written to be measured.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from _candidates_dal import SpicyDAL
from _candidates_smo import InterleavedSMO, stack_of
from _problems import SETTING, generated, mid, small
from _report import machine, show, write_table
from _runner import Case, Runner, in_turns
from _targets import Targets
from _threads import pin
from kernelweave.banks import Bank
from kernelweave.solvers import Solver, without_caches

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
  `_candidates_dal.py`, for half the squared block norm instead of SpicyMKL's plain one; hinge loss by a box QP per
  Newton step, on the package's SMO engine. First step length {SpicyDAL().gamma:g}, then times
  {SpicyDAL().growth:g}: the best of a small grid on the small problem. l1 only.
- `nesterov`: accelerated gradients on the smoothed dual, as it is in the package (Xu et al. 2010; `docs/solvers.md`).
- `lp_analytic`: SVM and closed-form weights in turn, from the package, beside the candidates for lp norms.

*Passes*: entries of the (m, n, n) tensor read, over m n^2. *Steps*: iterations of the loop; for `smo` each is n / 4
pair moves. *Seconds*: median of {{repeats}}, of one run where that took more than {{long:g}} s. *Times newton*: seconds
over those of `newton` on the same case; a lower bound where the candidate did not get there.

{{sources}}

{{targets}}"""


class Given(NamedTuple):
    """What is made before the clock starts: a bank, and all its kernels as one array."""

    bank: Bank
    stack: np.ndarray


class Candidate(Runner):
    """A prototype or a solver of the package; ``stack`` are all kernels as one array."""

    def __init__(self, case: Case, bank: Bank, stack: np.ndarray, solver: str, cap: float) -> None:
        super().__init__(case, bank, solver, cap)
        self.stack = stack

    def make_solver(self) -> Solver:
        """Return the prototype or the solver by its name."""
        if self.solver == "smo":
            return InterleavedSMO(self.stack)
        return SpicyDAL() if self.solver == "dal" else super().make_solver()

    @property
    def gap(self) -> float:
        """Relative gap of the point, primal and dual from the kernels alone."""
        problem = self.make_problem()
        judged = problem.certificate(without_caches(self.solution.point))
        dual = problem.dual(self.solution.certificate.dual_point)
        return replace(judged, dual=max(judged.dual, dual)).relative_gap

    def row(self, newton: Candidate) -> dict[str, Any]:
        """Return a line of the table."""
        return {
            "problem": self.case.problem.name,
            "norm": self.case.norm_name,
            "C": self.case.C,
            "to": self.case.tol,
            "candidate": self.solver,
            "passes": self.solution.passes,
            "steps": self.solution.n_iter,
            "seconds": self.median,
            "times newton": self.times(newton),
            "relative gap": self.gap,
            "ended": self.ended,
            "runs": len(self.seconds),
        }


def measure(case: Case, given: Given, repeats: int, cap: float, long: float) -> list[Candidate]:
    """Run all candidates once, then the quick ones in turns."""
    runners = [Candidate(case, given.bank, given.stack, solver, cap) for solver in case.solvers]
    for runner in runners:
        runner.once()
    in_turns(runners, repeats, long)
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


def judge(what: str, runs: list[list[Candidate]], targets: Targets) -> None:
    """Check that no candidate that reaches the gap is ahead of Newton, which is in the package.

    For lp norms passes are shown and not judged: those of `smo` are over an array of all kernels, which no
    bank keeps.
    """
    ratios: dict[str, dict[str, float]] = {"passes": {}, "seconds": {}}
    for newton, *others in runs:
        for other in (other for other in others if other.reached):
            label = f"{other.solver}, {other.case.label}"
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
    parser.add_argument("--cap", type=float, default=None, help="most seconds per run (60, quick: 3)")
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
