"""Start-up: seconds of the import, of the first fit of a process, and the same from a read-only install.

Run ``python benchmarks/startup.py``; ``--quick`` repeats less and writes nothing.  ``--install`` measures what comes
before, and nothing else: ``pip install`` of the package in a new environment, and of the libraries that it cannot do
without (asks PyPI).

Where the time of a small fit goes: reading the bank, inner SVMs, models, and what lies between.

Run ``python benchmarks/startup.py small_fit``; ``--quick`` repeats less and writes nothing.

How long commands take that people wait for: a fit with its report, and the quick reproductions.

    python benchmarks/startup.py commands fit
    python benchmarks/startup.py commands smkl svrg

``fit`` is 150 patients with three views of 526 columns together and three classes, ``kernelweave fit`` with a model
file and a report; other words are studies, run with ``--quick``.  Each command is a process of its own, so what it
imports and compiles (from numba's cache, where it has been run before) counts.  Rows are added to
``docs/results/commands.csv``, one for each command; a command that is run again replaces its row.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import kernelweave
from _measure import ONE, RESULTS, SETTING, Targets, machine, pin, run_part, show, small, write_table
from kernelweave import MKLClassifier

IMPORTS = {
    "from sklearn.svm import SVC": "SVC",
    "from kernelweave import MKLClassifier": "MKLClassifier",
}
IMPORT = """
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""
FIT = """
import json, sys, time
start = time.perf_counter()
import numpy as np
from kernelweave import MKLClassifier, kernels as kw
imported = time.perf_counter()
data = np.load(sys.argv[1])
begin = time.perf_counter()
model = MKLClassifier(kw.preset("stpmkl")).fit(data["X"], data["y"])
first = time.perf_counter()
MKLClassifier(kw.preset("stpmkl")).fit(data["X"], data["y"])
second = time.perf_counter()
import kernelweave
mine = [module for name, module in sys.modules.items() if name.startswith("kernelweave.")]
functions = {id(f): f for module in mine for f in vars(module).values() if hasattr(f, "nopython_signatures")}
stats = [f.stats for f in functions.values() if f.stats.cache_path is not None]
print(json.dumps({
    "import": imported - start, "first fit": first - begin, "second fit": second - first,
    "caches": sorted({one.cache_path for one in stats}), "package": kernelweave.__path__[0],
    "loaded": sum(sum(one.cache_hits.values()) for one in stats),
    "compiled": sum(sum(one.cache_misses.values()) for one in stats),
}))
"""
NOTE = f"""{SETTING} Every time is taken inside a process of its own, medians of {{repeats}}, runs of the two imports
and of the kinds of install in turns; the interpreter's own start is not in it. The fit is the first of the process, on
the small problem ({{source}}), C = 1, to a certified relative gap of 1e-3; *second fit* is the same once more.

- *cold cache*: the compilation cache is empty: everything is compiled and kept.
- *warm cache*: a process before this one has filled the cache.
- *read-only install*: the package is copied to a folder that the process cannot write to ({{how}}), without any cache
  in it; the compiled code has to go to the user's cache folder ({{where}}), from where the next process takes it.
- *whole command*: from the prompt to the prompt, the interpreter's start included; of the demo, *the first* on a new
  machine also reads all libraries from disk and has matplotlib look for fonts, *cold cache* compiles and no more.

{{targets}}"""
DAC_OVERRIDE, CAPBSET_DROP = 1, 24
#: what every process below has: one thread, and bytecode that is kept, as it is for everybody who does not forbid it
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | ONE
#: libraries without which there is no package of this kind
LEAST = ("numpy", "scipy", "scikit-learn", "numba")
INSTALL_NOTE = """`pip install` in new environments, by the pip that comes with this Python, its own cache off, bytecode
compiled as by default: of {least} and what those ask for, which no package of this kind could do without, and of the
package from its checkout. Then `kernelweave demo` for the first time: libraries are read from disk, everything is
compiled. One run each, by the clock.

{targets}"""


def _child(code: str, *arguments: str, env: dict[str, str] | None = None, before: Any = None) -> str:
    command = [sys.executable, "-c", code, *arguments]
    environment = {**ENVIRONMENT, **(env or {})}
    done = subprocess.run(command, env=environment, preexec_fn=before, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout.splitlines()[-1]


def imports(repeats: int) -> dict[str, float]:
    """Median seconds of both imports, in turns, after one of each that fills the file cache."""
    seconds: dict[str, list[float]] = {statement: [] for statement in IMPORTS}
    for k in range(repeats + 1):
        for statement in IMPORTS:
            taken = float(_child(IMPORT.format(statement=statement)))
            if k:
                seconds[statement].append(taken)
    return {statement: statistics.median(seconds[statement]) for statement in IMPORTS}


def bound_by_permissions() -> None:
    """Let the permissions of files hold for the superuser too, who may otherwise write everywhere (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(CAPBSET_DROP, DAC_OVERRIDE, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the capability to write everywhere could not be dropped")


def read_only_copy(folder: Path) -> Path:
    """The package without its caches, in a folder that cannot be written to."""
    site = folder / "site"
    source = Path(kernelweave.__path__[0])
    shutil.copytree(source, site / "kernelweave", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [site, *site.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return site


def writable_again(site: Path) -> None:
    """So that the temporary folder can be removed by whoever is not the superuser."""
    for path in [site, *site.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


class Install:
    """One way to have the package and its compilation cache; ``fit`` runs a process on it."""

    def __init__(self, data: Path, env: dict[str, str], before: Callable[[], None] | None = None) -> None:
        self.data, self.env, self.before = data, env, before
        self.runs: list[dict[str, Any]] = []

    def fit(self) -> dict[str, Any]:
        """Import and fit in a new process."""
        self.runs.append(json.loads(_child(FIT, str(self.data), env=self.env, before=self.before)))
        return self.runs[-1]

    def median(self, key: str) -> float:
        """Of all runs but the first, which fills the cache."""
        return statistics.median(run[key] for run in self.runs[1:])

    def rows(self, name: str) -> list[dict[str, Any]]:
        """A line for the first run and one for those after it."""
        keys = ("import", "first fit", "second fit")
        return [
            {"what": f"{name}, cold cache", **{key: self.runs[0][key] for key in keys}},
            {"what": f"{name}, warm cache", **{key: self.median(key) for key in keys}},
        ]


def fits(folder: Path, repeats: int) -> tuple[Install, Install, Path]:
    """The install at hand with a cache of its own, and a read-only copy of it, in turns."""
    problem = small()
    data = folder / "small.npz"
    np.savez(data, X=problem.X, y=problem.y)
    usual = Install(data, {"NUMBA_CACHE_DIR": str(folder / "cache")})
    site, home = read_only_copy(folder), folder / "home"
    home.mkdir()
    superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    env = {
        "PYTHONPATH": str(site), "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "NUMBA_CACHE_DIR": "",
    }  # fmt: skip
    locked = Install(data, env, bound_by_permissions if superuser else None)
    for _ in range(repeats + 1):
        usual.fit()
        locked.fit()
    return usual, locked, site


def check_read_only(locked: Install, site: Path, home: Path) -> None:
    """The copy was used, it could not be written to, and the cache is in the user's folder."""
    attempt = """
try:
    open({!r}, "w")
except PermissionError:
    print("refused")
else:
    print("written")
"""
    probe = str(site / "kernelweave" / "probe")
    answer = _child(attempt.format(probe), env=locked.env, before=locked.before)
    assert answer == "refused", "the read-only install could be written to: nothing was measured"
    last = locked.runs[-1]
    assert Path(last["package"]).parent == site, last
    assert all(home in Path(cache).parents for cache in last["caches"]), last
    assert not list(site.rglob("__pycache__")), "caches in the read-only install"


def commands(folder: Path, repeats: int) -> dict[str, float]:
    """Seconds from the prompt to the prompt: ``inspect`` of a saved model, and a first ``demo`` with an empty cache."""
    model, problem = folder / "model.skops", small()
    table = pd.DataFrame(problem.X, columns=[f"x{j}" for j in range(problem.X.shape[1])])
    table.assign(label=problem.y).to_csv(folder / "train.csv", index=False)

    def seconds(*arguments: str, cache: str = "demo cache") -> float:
        environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(folder / cache), "MPLBACKEND": "agg"}
        began = time.perf_counter()
        command = [sys.executable, "-m", "kernelweave.cli", *arguments]
        subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
        return time.perf_counter() - began

    # on a new machine the first of all also reads every library from disk and has matplotlib look for fonts
    demos = {
        "kernelweave demo, the first": seconds("demo", cache="first cache"),
        **{f"kernelweave demo, {cache} cache": seconds("demo") for cache in ("cold", "warm")},
    }
    # which notes in the file what it did
    seconds("fit", "train.csv", "--target", "label", "--model", str(model))
    looks = [seconds("inspect", str(model)) for _ in range(repeats + 1)]
    return {"kernelweave inspect": statistics.median(looks[1:]), **demos}


def installs(folder: Path) -> dict[str, float]:
    """Seconds of ``pip install``: of the least, of the package, and of the first demo after that."""
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PIP_NO_COMPILE"}
    seconds = {}

    def timed(what: str, *command: str | Path) -> None:
        began = time.perf_counter()
        subprocess.run(
            [str(word) for word in command], env=environment, cwd=folder, check=True, capture_output=True
        )
        seconds[what] = time.perf_counter() - began

    package = Path(__file__).resolve().parents[1]
    for what, wanted in (("pip install, least", LEAST), ("pip install .", (package,))):
        scripts = folder / what / ("Scripts" if os.name == "nt" else "bin")
        venv.create(folder / what, with_pip=True)
        timed(what, scripts / "python", "-m", "pip", "install", "--no-cache-dir", *wanted)
    environment["MPLBACKEND"] = "agg"
    timed("kernelweave demo, the first after it", scripts / "kernelweave", "demo")
    return seconds


def measure_installs(quick: bool) -> None:
    """A table of its own: it depends on the network, and on where packages come from."""
    with tempfile.TemporaryDirectory() as name:
        seconds = installs(Path(name).resolve())
    rows = [{"what": what, "seconds": value} for what, value in seconds.items()]
    show(rows)
    _, package, demo = seconds.values()
    targets = Targets()
    targets.at_most("pip install . and the first demo after it, seconds", package + demo, 30.0)
    if not quick:
        note = INSTALL_NOTE.format(least=", ".join(LEAST), targets=targets.text())
        write_table("install", rows, "python benchmarks/startup.py --install", note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, nothing is written")
    parser.add_argument("--install", action="store_true", help="time pip install instead (asks PyPI)")
    options = parser.parse_args()
    quick = options.quick
    pin()
    print(machine())
    if options.install:
        measure_installs(quick)
        return
    import_runs, fit_runs = (3, 2) if quick else (11, 5)
    seconds = imports(import_runs)
    reference, ours = seconds.values()
    rows = [
        {"what": what, "import": value, "first fit": "", "second fit": ""} for what, value in seconds.items()
    ]
    targets = Targets()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        usual, locked, site = fits(folder, fit_runs)
        try:
            check_read_only(locked, site, folder / "home")
        finally:
            writable_again(site)
        commanded = commands(folder, fit_runs)
        where = str(Path(locked.runs[-1]["caches"][0]).relative_to(folder / "home").parent)
    rows += usual.rows("small problem") + locked.rows("read-only install")
    rows = [{**row, "whole command": ""} for row in rows]
    empty = dict.fromkeys(("import", "first fit", "second fit"), "")
    rows += [{"what": what, **empty, "whole command": value} for what, value in commanded.items()]
    show(rows)
    targets.at_most("import of MKLClassifier over that of SVC", ours / reference, 1.1)
    targets.at_most("first fit of a process, warm cache, seconds", usual.median("first fit"), 2.0)
    targets.at_most(
        "first fit from a read-only install, warm cache, seconds", locked.median("first fit"), 2.0
    )
    targets.at_most(
        "kernelweave inspect, seconds of the whole command", commanded["kernelweave inspect"], 1.0
    )
    first, second = (commanded[f"kernelweave demo, {cache} cache"] for cache in ("cold", "warm"))
    targets.at_most("kernelweave demo: seconds that compiling adds to the first run", first - second, 8.0)
    warm = [run for install in (usual, locked) for run in install.runs[1:]]
    targets.at_most("functions compiled although the cache was warm", max(run["compiled"] for run in warm), 0)
    # were it zero, the count above would say nothing
    targets.at_least("functions loaded from the warm cache", min(run["loaded"] for run in warm), 1)
    if not quick:
        how = "permissions 0555"
        if locked.before:
            how += ", with the superuser's right to ignore them dropped from the process"
        note = NOTE.format(
            repeats=f"{import_runs} (imports) and {fit_runs} (fits)",
            source=small().source,
            how=how,
            where=f"`~/{where}`",
            targets=targets.text(),
        )
        write_table("startup", rows, "python benchmarks/startup.py", note)


# Where the time of a small fit goes.

REST = "everything else"
SMALL_FIT_NOTE = f"""\
{SETTING} `MKLClassifier(kernels.preset("stpmkl"), C=1)` on the small problem ({{source}}), everything else
at its default: {{passes:.3g}} passes, {{iterations}} iterations. Medians of {{repeats}} fits, of the own time of each
phase, without that of other phases inside it; *calls* is how often its functions are entered. The clock that watches is
in it.

A bank of {{bytes:.1f}} MB is read again by every pass: on processors whose second-level cache is smaller, a part of the
reading is waiting for the cache behind it."""


def phases() -> dict[str, list[tuple[Any, str]]]:
    """Phases, and the functions whose own time belongs to each: without that of the others that they call."""
    from kernelweave.banks import build, power
    from kernelweave.estimators import _base, _fitting
    from kernelweave.problems import curvature, mkl
    from kernelweave.solvers import newton

    return {
        "reading the bank: products and quadratic forms": [(power.Powers, "_sweep")],
        "reading the bank: mixed kernels": [(power.Powers, "combine")],
        "building the bank: distances and exponentials": [(build, "stored_bank")],
        "building the bank: which kernels share what": [(_base, "bind")],
        "inner SVMs": [(mkl, "solve_fixed")],
        "models in the weights": [(newton.SimplexModel, "__init__"), (newton.SimplexModel, "minimise")],
        "second derivatives": [(curvature.Curvature, "_collect"), (curvature, "_hessian_by_steps")],
        "certificates, the reading aside": [(mkl.MKLProblem, "certificate"), (_fitting, "final_certificate")],
        "checks of X, y and the parameters": [(MKLClassifier, "_prepared")],
    }


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


def small_fit_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    problem, repeats = small(), 3 if quick else 51
    watch = Stopwatch()
    watched = phases()
    for phase, functions in watched.items():
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
        for phase in (*watched, REST, "the whole fit")
    ]
    show(rows)
    if not quick:
        note = SMALL_FIT_NOTE.format(
            source=problem.source, passes=model.n_passes_, iterations=model.n_iter_, repeats=repeats,
            bytes=model.bank_bytes_ / 1e6,
        )  # fmt: skip
        write_table("small_fit", rows, "python benchmarks/startup.py small_fit", note)


# Seconds of the commands.

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


def commands_main() -> None:
    """Measure what was asked for."""
    kept = RESULTS / "commands.csv"
    rows = pd.read_csv(kept).to_dict("records") if kept.exists() else []
    for what in sys.argv[1:] or ["fit"]:
        rows = [row for row in rows if row["what"] != what] + [measure(what)]
        print(rows[-1], flush=True)
        note = f"Table of the fit: {N} patients, {sum(v[0] for v in VIEWS.values())} columns in {len(VIEWS)} views."
        write_table(
            "commands",
            rows,
            "python benchmarks/startup.py commands " + " ".join(r["what"] for r in rows),
            note,
        )


if __name__ == "__main__":
    run_part(main, small_fit=small_fit_main, commands=commands_main)
