"""Growth in samples and kernels, and the large cases within their memory; every case in a process of its own.

Run ``python benchmarks/scaling.py``; ``--quick`` stops at smaller sizes and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import _measure as memory
from _measure import answer, in_child, in_turns
from _problems import SETTING, Problem, generated, mid
from _report import Targets, machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifier
from kernelweave import kernels as kw

WIDTHS = [2.0**k for k in range(-3, 7)]
SAMPLES = (250, 500, 1000, 2000)
FEATURES = (1, 3, 7, 15, 31, 63)  # with kernels of their own: m = 10 (features + 1) = 20, 40, ..., 640
GROWTH_NOTE = f"""{SETTING} Generated problems, `MKLClassifier` with Gaussians of ten widths, C = 1, l1 norm, to a
certified relative gap of 1e-3. *Growing n*: 10 features, Gaussians on all of them and on every single one, m = 110.
*Growing m*: n = {{fixed_n}}, {FEATURES[-1]} features, Gaussians on all of them and on every one of the first few.
*Seconds*: the fit with the building of the bank, median of {{repeats}}. *Peak MB*: most resident memory during the fit
over that before it; *stored stack MB*: what the m matrices would take. Each line is a process of its own. The last
lines are exponents, fitted by least squares on the logarithms.

{{targets}}"""
LARGE_NOTE = f"""{SETTING} Generated problems, C = 1, l1 norm, `MKLClassifier` with default parameters but for the
tolerance. Each line is a process of its own. *Imported MB*: resident after the imports and the making of the data,
before anything is built or compiled code loaded; *peak MB*: the most that the whole process ever held; *stored stack
MB*: what the m matrices would take. *Seconds*: the first fit of the process, with the building of the bank and the
loading of compiled code.

- wide: 1,000 features, ten Gaussians on every single one
- tall: 4 features, ten Gaussians on all and ten on every single one
- mid: 10 features, likewise

{{targets}}"""


def _megabytes(size: float) -> float:
    return size / 1e6


def _stack(problem: Problem) -> float:
    return _megabytes(8.0 * problem.m * problem.n**2)


def growth_case(n: int, features: int, chosen: int, repeats: int) -> dict[str, Any]:
    """Inside a child: seconds, passes and peak memory of one size, compiled code loaded before."""
    tiny = generated(60, 2)
    MKLClassifier(tiny.kernels).fit(tiny.X, tiny.y)
    gaussians = kw.gaussian(WIDTHS)
    problem = generated(n, features, kernels=gaussians + kw.per_feature(gaussians, columns=range(chosen)))
    before = memory.resident()
    resettable = memory.reset_peak()
    model = MKLClassifier(problem.kernels).fit(problem.X, problem.y)
    extra = memory.peak() - before if resettable else float("nan")
    fit = in_turns({"fit": lambda: MKLClassifier(problem.kernels).fit(problem.X, problem.y)}, repeats)["fit"]
    return {
        "n": problem.n,
        "m": problem.m,
        "seconds": fit.seconds,
        "passes": model.n_passes_,
        "iterations": model.n_iter_,
        "peak MB": _megabytes(extra),
        "bank MB": _megabytes(model.bank_bytes_),
        "stored stack MB": _stack(problem),
        "relative gap": model.certificate_.relative_gap,
    }


def large_problem(name: str, scale: float) -> tuple[Problem, float]:
    """The problem and its tolerance; ``scale`` shrinks it for quick runs."""
    if name == "wide":
        return generated(
            500, int(1000 * scale), kernels=kw.per_feature(kw.gaussian(WIDTHS)), name="wide"
        ), 1e-3
    if name == "tall":
        return generated(int(10_000 * scale), 4, name="tall"), 1e-2
    return mid(), 1e-3


def large_case(name: str, scale: float) -> dict[str, Any]:
    """Inside a child: one fit, and the peak of the whole process."""
    problem, tol = large_problem(name, scale)
    imported = memory.resident()
    start = time.perf_counter()
    model = MKLClassifier(problem.kernels, tol=tol).fit(problem.X, problem.y)
    return {
        "case": name,
        "n": problem.n,
        "m": problem.m,
        "to": tol,
        "relative gap": model.certificate_.relative_gap,
        "passes": model.n_passes_,
        "iterations": model.n_iter_,
        "seconds": time.perf_counter() - start,
        "imported MB": _megabytes(imported),
        "peak MB": _megabytes(memory.peak()),
        "bank MB": _megabytes(model.bank_bytes_),
        "stored stack MB": _stack(problem),
    }


def exponents(rows: list[dict[str, Any]], variable: str) -> dict[str, Any]:
    """A line of exponents, from straight lines through the logarithms."""
    size = np.log([row[variable] for row in rows])
    line: dict[str, Any] = dict.fromkeys(rows[0], "")
    line["growing"] = f"exponent in {variable}"
    for key in ("seconds", "passes", "peak MB", "bank MB"):
        line[key] = float(np.polyfit(size, np.log([row[key] for row in rows]), 1)[0])
    return line


def growth(quick: bool) -> None:
    """Sizes one after the other, and the exponents."""
    repeats, fixed_n = (1, 300) if quick else (5, 500)
    in_n, in_m = [], []
    for n in SAMPLES[:3] if quick else SAMPLES:
        row = in_child(__file__, "growth", n=n, features=10, chosen=10, repeats=repeats)
        in_n.append({"growing": "n", **row})
    for chosen in FEATURES[:4] if quick else FEATURES:
        row = in_child(__file__, "growth", n=fixed_n, features=FEATURES[-1], chosen=chosen, repeats=repeats)
        in_m.append({"growing": "m", **row})
    lines = [exponents(in_n, "n"), exponents(in_m, "m")]
    rows = in_n + in_m + lines
    show(rows)
    targets = Targets()
    # the sizes are few and the fit has an error: a tenth is allowed for it
    targets.at_most("exponent of seconds in n", lines[0]["seconds"], 2.1)
    targets.at_most("exponent of peak memory in n", lines[0]["peak MB"], 2.1)
    targets.at_most("exponent of seconds in m", lines[1]["seconds"], 1.1)
    targets.at_most("exponent of peak memory in m", lines[1]["peak MB"], 1.1)
    if not quick:
        note = GROWTH_NOTE.format(repeats=repeats, fixed_n=fixed_n, targets=targets.text())
        write_table("scaling", rows, "python benchmarks/scaling.py", note)


def large(quick: bool) -> None:
    """The large cases and their limits."""
    limits = {"wide": 4000.0, "tall": 8000.0}
    rows = []
    for name in ("mid", "wide", "tall"):
        rows.append(in_child(__file__, "large", name=name, scale=0.1 if quick else 1.0))
        show(rows[-1:])
    targets = Targets()
    for row in rows:
        what = f"{row['case']} (n = {row['n']}, m = {row['m']})"
        if row["case"] == "mid":
            targets.at_most(
                f"{what}: MB over the imported process", row["peak MB"] - row["imported MB"], 500.0
            )
        else:
            targets.at_most(f"{what}: peak MB of the process", row["peak MB"], limits[row["case"]])
        targets.at_most(f"{what}: certified relative gap", row["relative gap"], row["to"])
    if not quick:
        note = LARGE_NOTE.format(targets=targets.text())
        write_table("scaling_large", rows, "python benchmarks/scaling.py --only large", note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, nothing is written")
    parser.add_argument("--only", choices=("growth", "large"), help="one of the two tables")
    parser.add_argument("--case", choices=("growth", "large"), help=argparse.SUPPRESS)
    parser.add_argument("--parameters", type=json.loads, default={}, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin()
    if options.case:
        answer({"growth": growth_case, "large": large_case}[options.case](**options.parameters))
        return
    print(machine())
    if options.only != "large":
        growth(options.quick)
    if options.only != "growth":
        large(options.quick)


if __name__ == "__main__":
    main()
