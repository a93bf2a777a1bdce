"""Which exact algorithm: second order in the weights against the others, by passes, inner solves and seconds.

Run ``python benchmarks/engines.py``; ``--quick`` takes a smaller second problem, one run each and writes nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, replace
from typing import Any

from _counts import Counts, counted
from _engines_picture import PICTURE, draw
from _problems import SETTING, Problem, generated, mid, small
from _report import machine, show, write_table
from _targets import Targets
from _threads import pin
from kernelweave.banks import Bank
from kernelweave.losses import Hinge
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Solution, Stop, make_solver, solve

L1 = ("newton", "level", "silp", "simplemkl", "subgradient")
LP = ("newton", "lp_analytic", "subgradient")
PS = (1.1, 1.5, 2.0)
NOTE = f"""{SETTING} C = 1; stopped at the certified relative gap of the column *to*, after {{cap:g}} s or after the
solver's own number of iterations, whichever came first (*ended*). All solvers share the bank, which is built before,
the SMO engine, its warm starts and the judge that computes the gap; inner problems are solved to a share of the gap
that is left. `subgradient` is projected gradient descent with spectral step lengths.

*Passes*: entries of the (m, n, n) tensor read, over m n^2. *SVMs*: inner solves; *SMO steps*: those of all of them.
*Seconds*: median of {{repeats}}, of one run where that took more than {{long:g}} s. *Times newton*: seconds over
those of `newton` on the same line's problem; a lower bound where the solver did not get there.

{{sources}}

{{targets}}"""


@dataclass(frozen=True)
class Case:
    """A problem, a norm and a tolerance, and who is to solve it."""

    problem: Problem
    norm: Any
    tol: float
    solvers: tuple[str, ...]

    @property
    def norm_name(self) -> str:
        """The norm as the table calls it."""
        return self.norm if isinstance(self.norm, str) else f"p = {self.norm:g}"


@dataclass(frozen=True)
class Run:
    """What one solver did on a case."""

    case: Case
    solver: str
    solution: Solution
    counts: Counts
    seconds: float
    runs: int

    @property
    def ended(self) -> str:
        """Why it stopped."""
        return {"converged": "reached", "max_seconds": "time", "max_iter": "iterations"}.get(
            self.solution.status, self.solution.status
        )

    @property
    def reached(self) -> bool:
        """Whether the gap asked for was certified."""
        return self.solution.converged


class Runner:
    """One solver on one case, again and again."""

    def __init__(self, case: Case, bank: Bank, solver: str, cap: float) -> None:
        self.case, self.bank, self.solver = case, bank, solver
        self.norm = make_norm(case.norm)
        self.made = make_solver(solver, Hinge(), self.norm)
        self.stop = Stop(case.tol, None, cap)
        self.seconds: list[float] = []

    def once(self) -> Solution:
        """Solve, timed."""
        problem = MKLProblem(self.bank, Hinge(), self.norm, self.case.problem.y, 1.0)
        start = time.perf_counter()
        solution = solve(problem, self.made, self.stop)
        self.seconds.append(time.perf_counter() - start)
        return solution

    def first(self) -> None:
        """Solve, counted."""
        with counted() as self.counts:
            self.solution = self.once()

    def result(self) -> Run:
        """The counts of the first time, the median of all seconds."""
        seconds = statistics.median(self.seconds)
        return Run(self.case, self.solver, self.solution, self.counts, seconds, len(self.seconds))


def measure(case: Case, bank: Bank, repeats: int, cap: float, long: float) -> list[Run]:
    """Everyone once, counted, then the quick ones in turns: a busy moment of the machine is shared."""
    runners = [Runner(case, bank, solver, cap) for solver in case.solvers]
    for runner in runners:
        runner.first()
    for _ in range(repeats - 1):
        for runner in runners:
            if runner.seconds[0] < long:
                runner.once()
    return [runner.result() for runner in runners]


def row(run: Run, newton: Run) -> dict[str, Any]:
    """A line of the table."""
    ratio = run.seconds / newton.seconds
    return {
        "problem": run.case.problem.name,
        "norm": run.case.norm_name,
        "to": run.case.tol,
        "solver": run.solver,
        "passes": run.solution.passes,
        "SVMs": run.counts.solves,
        "SMO steps": run.counts.steps,
        "seconds": run.seconds,
        "times newton": ratio if run.reached else f"> {ratio:.3g}",
        "relative gap": run.solution.certificate.relative_gap,
        "ended": run.ended,
        "runs": run.runs,
    }


def cases(quick: bool) -> list[Case]:
    """The l1 norm on both problems, to a fine gap on the small one, and lp norms."""
    first, second = small(), generated(400, 10, name="mid, smaller") if quick else mid()
    out = [Case(first, "l1", tol, L1) for tol in (1e-3, 1e-6)] + [Case(second, "l1", 1e-3, L1)]
    for p in PS:
        out += [Case(first, p, tol, LP) for tol in (1e-3, 1e-6)] + [Case(second, p, 1e-3, LP)]
    return out


def judge(what: str, runs: list[list[Run]], targets: Targets) -> None:
    """Newton gets there, and nobody else who does is ahead of it by passes or by seconds; the worst case of each."""
    certified = {_label(run[0]): run[0].solution.certificate.relative_gap / run[0].case.tol for run in runs}
    passes: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for newton, *others in runs:
        for other in others:
            if other.reached:
                passes[_label(other)] = other.solution.passes / newton.solution.passes
                seconds[_label(other)] = other.seconds / newton.seconds
    worst = max(certified, key=lambda label: certified[label])
    targets.at_most(f"{what}: certified gap over the one asked for ({worst})", certified[worst], 1.0)
    for unit, ratios in (("passes", passes), ("seconds", seconds)):
        if ratios:
            best = min(ratios, key=lambda label: ratios[label])
            targets.at_least(f"{what}: {unit} of the best other over newton's ({best})", ratios[best], 1.0)


def _label(run: Run) -> str:
    return f"{run.solver}, {run.case.problem.name}, {run.case.norm_name}, to {run.case.tol:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller second problem, nothing is written")
    parser.add_argument("--cap", type=float, default=None, help="most seconds a run (60, quick: 3)")
    options = parser.parse_args()
    pin()
    quick = options.quick
    cap, repeats, long = options.cap or (3.0 if quick else 60.0), 1 if quick else 5, 10.0
    print(machine())
    everything = cases(quick)
    banks = {problem.name: problem.bank() for problem in (everything[0].problem, everything[2].problem)}
    for case in (replace(everything[0], tol=0.1), replace(everything[3], tol=0.1)):  # compiles
        measure(case, banks[case.problem.name], 1, 1.0, 0.0)
    runs = []
    for case in everything:
        runs.append(measure(case, banks[case.problem.name], repeats, cap, long))
        show([row(run, runs[-1][0]) for run in runs[-1]])
    targets = Targets()
    judge("l1", [group for group in runs if group[0].case.norm == "l1"], targets)
    judge("lp", [group for group in runs if group[0].case.norm != "l1"], targets)
    draw(runs[1], runs[2], None if quick else PICTURE)
    if not quick:
        sources = "\n".join(f"- {p}" for p in dict.fromkeys(case.problem.source for case in everything))
        note = NOTE.format(cap=cap, repeats=repeats, long=long, sources=sources, targets=targets.text())
        rows = [row(run, group[0]) for group in runs for run in group]
        write_table("engines", rows, "python benchmarks/engines.py", note)


if __name__ == "__main__":
    main()
