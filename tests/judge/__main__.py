"""Run the judge for long: ``python -m tests.judge --cases 5000 --seed 7``."""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections import Counter

import numpy as np

from .verdict import Verdict, criterion_of, judge_novelty, judge_number

#: share of the fits with default solver, limits and normalisation that may end without reaching the tolerance, where that
#: is 1e-3 (the default) or more, and where it is less; kernels of raw data that differ by twenty powers of ten are beyond
#: double precision, and are counted by themselves
UNFINISHED, UNFINISHED_FINE = 0.001, 0.003


def main() -> int:
    """Judge cases, print what was tried and what survived, and return 1 on a violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--novelty", action="store_true", help="the same samples without targets")
    parser.add_argument("--verbose", action="store_true", help="print every case that did not converge")
    options = parser.parse_args()
    jobs = [(options.seed, i) for i in range(options.first, options.first + options.cases)]
    verdicts = []
    began = time.time()
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        judged = judge_novelty if options.novelty else judge_number
        for verdict in pool.imap_unordered(judged, jobs, chunksize=4):
            verdicts.append(verdict)
            if verdict.violations or (options.verbose and verdict.outcome != "converged"):
                print(verdict, flush=True)
    return summarise(verdicts, options.seed, time.time() - began)


def summarise(verdicts: list[Verdict], seed: int, seconds: float) -> int:
    """Print tried and survived by category; return the exit status."""
    categories: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        case = verdict.case
        for name in (
            case.task,
            f"loss {case.loss}",
            *([f"criterion {criterion_of(case)}"] if case.criterion is not None else []),
            f"norm {case.norm_name}",
            *(re.sub(r" [-+.e0-9]+$", "", tag) for tag in case.tags),
        ):
            categories.setdefault(name, []).append(verdict)
    print(f"{'category':28} {'tried':>6} {'survived':>9} {'converged':>10} {'refused':>8}")
    for name, group in sorted(categories.items()):
        survived = sum(not v.violations for v in group)
        outcomes = Counter(v.outcome for v in group)
        print(f"{name:28} {len(group):6d} {survived:9d} {outcomes['converged']:10d} {outcomes['refused']:8d}")
    violations = sum(bool(v.violations) for v in verdicts)
    print(
        f"seed {seed}: {len(verdicts)} cases in {seconds:.0f} s, {violations} with a violation, "
        f"{sum(v.outcome == 'refused' for v in verdicts)} refused, slowest {max(v.seconds for v in verdicts):.1f} s "
        f"(median {np.median([v.seconds for v in verdicts]):.3f} s)"
    )
    coarse, fine = _unfinished("default solver and limits, normalised kernels", verdicts, raw=False)
    _unfinished("default solver and limits, kernels of raw data (normalize=None)", verdicts, raw=True)
    return int(violations > 0 or coarse > UNFINISHED or fine > UNFINISHED_FINE)


def _unfinished(title: str, verdicts: list[Verdict], raw: bool) -> tuple[float, float]:
    """Print how many fits ended without reaching the tolerance; return the shares from 1e-3 up, and of finer ones."""
    fits = [
        v
        for v in verdicts
        if v.outcome not in ("refused", "error")
        and v.case.default
        and v.case.raw == raw
        and criterion_of(v.case)
        in (None, "convex")  # the others are not convex: they end where they are flat
    ]
    counts: dict[float, list[int]] = {}
    for v in fits:
        count = counts.setdefault(v.case.parameters.get("tol", 1e-3), [0, 0])
        count[0] += v.outcome != "converged"
        count[1] += 1
    each = ", ".join(f"{missed} of {tried} at tol {tol:g}" for tol, (missed, tried) in sorted(counts.items()))
    print(f"{title}: {sum(v.outcome != 'converged' for v in fits)} of {len(fits)} did not converge ({each})")

    def share(some: list[list[int]]) -> float:
        return sum(missed for missed, _ in some) / max(sum(tried for _, tried in some), 1)

    return (
        share([count for tol, count in counts.items() if tol >= 1e-3]),
        share([count for tol, count in counts.items() if tol < 1e-3]),
    )


if __name__ == "__main__":
    sys.exit(main())
