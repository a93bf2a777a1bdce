"""How long commands take that people wait for: a fit with its report, and the quick reproductions.

    python benchmarks/commands.py fit
    python benchmarks/commands.py smkl svrg

``fit`` is 150 patients with three views of 526 columns together and three classes, ``kernelweave fit`` with a model
file and a report; other words are studies, run with ``--quick``.  Each command is a process of its own, so what it
imports and compiles (from numba's cache, where it has been run before) counts.  Rows are added to
``docs/results/commands.csv``, one for each command; a command that is run again replaces its row.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from _report import RESULTS, write_table

N = 150
VIEWS = {"rna": (200, 20, 1.0), "methylation": (184, 15, 0.8), "protein": (142, 10, 0.5)}


def patients() -> pd.DataFrame:
    """Three views of correlated columns, some of which tell three subtypes apart."""
    rng = np.random.default_rng(0)
    subtype = rng.integers(0, 3, N)
    table: dict[str, object] = {"patient": [f"P{i}" for i in range(N)]}
    table["subtype"] = np.array(["basal", "luminal", "her2"])[subtype]
    for name, (columns, informative, strength) in VIEWS.items():
        values = rng.normal(size=(N, columns)) + 0.5 * rng.normal(size=(N, 5)) @ rng.normal(size=(5, columns))
        values[:, :informative] += strength * rng.normal(size=(3, informative))[subtype]
        table |= {f"{name}_{j}": values[:, j].round(4) for j in range(columns)}
    return pd.DataFrame(table)


def command(what: str) -> list[str]:
    """The words of a command."""
    if what != "fit":
        return ["reproduce", what, "--quick", "-o", "results"]
    patients().to_csv("patients.csv", index=False)
    views = [word for name in VIEWS for word in ("--view", f"{name}={name}_*")]
    outputs = ["--model", "model.skops", "--report", "report.html", "--quiet"]
    return ["fit", "patients.csv", "--target", "subtype", "--id", "patient", *views, *outputs]


def measure(what: str) -> dict:
    """Run a command in an empty folder; return what it took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        home = Path.cwd()
        os.chdir(folder)
        try:
            words = command(what)
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "kernelweave.cli", *words], check=True, stdout=subprocess.DEVNULL
            )
        finally:
            os.chdir(home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shown = words if what != "fit" else [*words[:4], "...", *words[-5:-1]]
    return {
        "what": what,
        "command": "kernelweave " + " ".join(shown),
        "seconds": round(time.perf_counter() - began, 1),
        "processor seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "allowed": 20 if what == "fit" else 120,
    }


def main() -> None:
    """Measure what was asked for."""
    kept = RESULTS / "commands.csv"
    rows = pd.read_csv(kept).to_dict("records") if kept.exists() else []
    for what in sys.argv[1:] or ["fit"]:
        rows = [row for row in rows if row["what"] != what] + [measure(what)]
        print(rows[-1], flush=True)
        note = f"Table of the fit: {N} patients, {sum(v[0] for v in VIEWS.values())} columns in {len(VIEWS)} views."
        write_table(
            "commands", rows, "python benchmarks/commands.py " + " ".join(r["what"] for r in rows), note
        )


if __name__ == "__main__":
    main()
