"""Where the time of a small fit goes: reading the bank, inner SVMs, models, and what lies between.

Run ``python benchmarks/small_fit.py``; ``--quick`` repeats less and writes nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from _problems import SETTING, small
from _report import machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifier
from kernelweave.banks import build as stored
from kernelweave.banks import power
from kernelweave.estimators import _base, _fitting
from kernelweave.problems import curvature, mkl
from kernelweave.solvers import newton as _model

#: a phase, and the functions whose own time belongs to it: without that of the others that they call
PHASES: dict[str, list[tuple[Any, str]]] = {
    "reading the bank: products and quadratic forms": [(power.PowerBank, "_sweep")],
    "reading the bank: mixed kernels": [(power.PowerBank, "combine")],
    "building the bank: distances and exponentials": [(stored, "stored_bank")],
    "building the bank: which kernels share what": [(_base, "bind")],
    "inner SVMs": [(mkl, "solve_fixed")],
    "models in the weights": [(_model.SimplexModel, "__init__"), (_model.SimplexModel, "minimise")],
    "second derivatives": [(curvature.Curvature, "__init__"), (curvature, "_root_of")],
    "certificates, the reading aside": [(mkl.MKLProblem, "certificate"), (_fitting, "final_certificate")],
    "checks of X, y and the parameters": [(MKLClassifier, "_prepared")],
}
REST = "everything else"
NOTE = f"""{SETTING} `MKLClassifier(kernels.preset("stpmkl"), C=1)` on the small problem ({{source}}), everything else
at its default: {{passes:.3g}} passes, {{iterations}} iterations. Medians of {{repeats}} fits, of the own time of each
phase, without that of other phases inside it; *calls* is how often its functions are entered. The clock that watches is
in it.

A bank of {{bytes:.1f}} MB is read again by every pass: on processors whose second-level cache is smaller, a part of the
reading is waiting for the cache behind it."""


class Stopwatch:
    """Own seconds and calls of every phase."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inside: list[float] = []

    def watch(self, phase: str, owner: Any, name: str) -> None:
        """Add what a function takes to a phase from now on."""
        function: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            self._inside.append(0.0)
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                taken = time.perf_counter() - began
                self.seconds[phase] += taken - self._inside.pop()
                self.calls[phase] += 1
                if self._inside:
                    self._inside[-1] += taken

        setattr(owner, name, watched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    problem, repeats = small(), 3 if quick else 51
    watch = Stopwatch()
    for phase, functions in PHASES.items():
        for owner, name in functions:
            watch.watch(phase, owner, name)
    fits = []
    for _ in range(repeats + 3):
        watch.seconds.clear()
        watch.calls.clear()
        began = time.perf_counter()
        model = MKLClassifier(problem.kernels, C=1.0).fit(problem.X, problem.y)
        whole = time.perf_counter() - began
        rest = whole - sum(watch.seconds.values())
        fits.append({**watch.seconds, REST: rest, "the whole fit": whole})
    fits = fits[3:]  # those before have compiled
    rows = [
        {
            "phase": phase,
            "ms": 1e3 * statistics.median(fit[phase] for fit in fits),
            "share": statistics.median(fit[phase] / fit["the whole fit"] for fit in fits),
            "calls": watch.calls[phase] or "",
        }
        for phase in (*PHASES, REST, "the whole fit")
    ]
    show(rows)
    if not quick:
        note = NOTE.format(
            source=problem.source, passes=model.n_passes_, iterations=model.n_iter_, repeats=repeats,
            bytes=model.bank_bytes_ / 1e6,
        )  # fmt: skip
        write_table("small_fit", rows, "python benchmarks/small_fit.py", note)


if __name__ == "__main__":
    main()
