"""Several classes at once: no stalls, cross-validation beside a grid of SVMs, the version before, the softmax.

Run ``python benchmarks/multiclass.py``; ``--quick`` takes smaller problems and writes nothing, ``--only`` names the
parts to measure, the others keep their rows.  ``--before`` names the commit to compare with; its source is taken out of
the repository into a temporary folder, where it stays for the next time.  mfeat and MNIST come from the folder named by
``KERNELWEAVE_DATA`` and are left out where it is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from _measure import ONE, RESULTS, Targets, machine, pin, show, write_table
from _multiclass_cases import case_of
from kernelweave import MKLClassifier, MKLClassifierCV
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave_studies import datasets

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "8535c68"
CS = np.logspace(-2, 3, 10)
#: the parts of the table
PARTS = ("fits", "search", "joint", "before", "many", "softmax")
#: many classes: the commit to compare with, and the problems
BEFORE_MANY = "352afb16"
MANY = ("folds", "folds, C = 77", "folds, search", "leaves", "digits", "mfeat", "iris", "wine")
#: a fit of the version before is given up after this many times our processor seconds
PATIENCE = 10.5
#: seconds of the version before over ours, at least, where it is not 10: the images have to be no slower than they were
NO_SLOWER = ("mnist",)
NOTE = """Kernels normalised by their trace, with intercepts, l1 norm and every fit to a certified relative gap of 1e-3
unless said otherwise; processor seconds of one thread, medians of {repeats}, from data to answer: the bank's building
counts. *fits*: {fits} random problems of three to five classes, balanced or 50 to 1, C from 0.01 to 1,000, default
parameters; gaps are computed again from the definitions with NumPy alone. *search*: 10 values of C from 1e-2 to 1e3
in 5 folds, `MKLClassifierCV` beside `GridSearchCV(SVC)` on the mean kernel (built in the same time). *joint*: all
classes in one problem beside one problem per class. *before*: the same fit with the source of commit {before}, each
once; "more than" where it was given up after {patience:g} times as long. *many*: the same beside {many}, medians of
{repeats}: *folds*, 350 generated samples of 27 overlapping classes, 40 % of the labels drawn again, with 48 kernels in
12 views; *search*, `MKLClassifierCV` on it; *leaves*, 100 classes of 16 samples. MNIST without intercept, block norm
1.25 and a gap of 1e-2, 20,000 images in single precision with kernels computed where they are read. *softmax*: the
multinomial loss beside scikit-learn's, and the log loss on 1,197 digits beside sigmoid calibration around the hinge,
the lowest of C = 1, 10, 100 for both. *at*: the commit that was measured; parts can be measured at different times.

{targets}"""


@cache
def commit_here() -> str:
    """Return the commit that is measured."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def seconds_of(functions: dict[str, Any], repeats: int) -> dict[str, float]:
    """Median processor seconds of functions that take turns, after a first round that compiles."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for round_ in range(repeats + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if round_:
                taken[name].append(time.process_time() - start)
    return {name: float(np.median(times)) for name, times in taken.items()}


def row(what: str, problem: str, ours: float, other: float, unit: str, beside: str) -> dict[str, Any]:
    """One line of the table."""
    ratio = ours / other if other else float("nan")
    return {
        "what": what,
        "problem": problem,
        "here": ours,
        "beside": other,
        "ratio": ratio,
        "unit": unit,
        "of": beside,
        "at": commit_here(),
    }


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Samples of three to five classes, balanced or with one class 50 times as large as the others."""
    rng = np.random.default_rng(seed)
    n, k, d = int(rng.integers(15, 120)), int(rng.integers(3, 6)), int(rng.integers(1, 8))
    share = np.full(k, 1.0 / k) if seed % 2 else np.r_[50.0, np.ones(k - 1)] / (49 + k)
    y = np.r_[np.arange(k), rng.choice(k, n - k, p=share)]
    return rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y], y, 10.0 ** rng.uniform(-2, 3)


def gap_by_hand(fit: MKLClassifier, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Relative gap of an l1 fit from its coefficients, weights, intercepts and dual point."""
    resolved = kw.resolve_kernels(kw.expand_kernels(kw.default_bank(), kw.Schema.of(X)), X)
    bank = build_bank(resolved, X, normalize="trace")
    everyone = np.arange(len(X))
    Ks = bank.block(everyone, everyone, np.arange(bank.m))
    own, rows = np.searchsorted(fit.classes_, y), everyone
    quad = np.einsum("ik,mij,jk->m", fit.dual_coef_, Ks, fit.dual_coef_)
    scores = np.tensordot(fit.weights_, Ks, axes=1) @ fit.dual_coef_ + fit.intercept_
    scores = scores + (np.arange(len(fit.classes_)) != own[:, None])
    losses = scores.max(axis=1) - scores[rows, own]
    primal = 0.5 * np.sum(fit.weights_ * np.sqrt(np.maximum(quad, 0.0))) ** 2 + C * np.sum(losses)
    beta = fit.certificate_.dual_point
    inside = np.all(beta <= np.where(np.arange(beta.shape[1]) == own[:, None], C, 0.0) * (1 + 1e-12))
    sums = max(np.abs(beta.sum(axis=0)).max(), np.abs(beta.sum(axis=1)).max())
    if not inside or sums > 1e-12 * max(np.abs(beta).sum(), 1e-300):
        return float("inf")
    quad = np.einsum("ik,mij,jk->m", beta, Ks, beta)
    dual = np.sum(beta[rows, own]) - 0.5 * np.max(quad)
    return float((primal - dual) / max(abs(primal), abs(dual)))


def fits_rows(count: int) -> list[dict[str, Any]]:
    """Random default fits: how many did not get there, the largest gap and the longest fit."""
    gaps, taken, missed = [], [], 0
    for seed in range(count):
        X, y, C = random_problem(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            fit = MKLClassifier(C=C).fit(X, y)
            taken.append(time.process_time() - start)
        missed += fit.status_ != "converged"
        gaps.append(gap_by_hand(fit, X, y, C))
    return [
        row("fits", f"{count} random", missed, count, "not converged", "fits"),
        row("fits", f"{count} random", float(np.max(gaps)), 1e-3, "largest gap by hand", "tol"),
        row(
            "fits",
            f"{count} random",
            float(np.max(taken[1:])),
            float(np.median(taken)),
            "s, longest",
            "median",
        ),
    ]


def search_row(name: str, repeats: int) -> dict[str, Any]:
    """Cross-validation beside a grid of SVMs on the mean kernel."""
    X, y, bank, _ = case_of(name)

    def grid() -> None:
        spec = kw.expand_kernels(kw.as_spec(kw.default_bank() if bank is None else bank), kw.Schema.of(X))
        built = build_bank(kw.resolve_kernels(spec, X), X, normalize="trace")
        mean = built.mixed(np.full(built.m, 1.0 / built.m))
        GridSearchCV(SVC(kernel="precomputed"), {"C": CS}, cv=5).fit(mean, y)

    taken = seconds_of({"cv": lambda: MKLClassifierCV(bank, Cs=CS, cv=5).fit(X, y), "grid": grid}, repeats)
    return row("search", name, taken["cv"], taken["grid"], "s", "GridSearchCV of SVC")


def joint_row(name: str, repeats: int) -> dict[str, Any]:
    """All classes in one problem beside one problem per class."""
    X, y, bank, _ = case_of(name)
    ways = {m: (lambda m=m: MKLClassifier(bank, multi_class=m).fit(X, y)) for m in ("joint", "ovr")}
    taken = seconds_of(ways, repeats)
    return row("joint", name, taken["joint"], taken["ovr"], "s", "one against the rest")


def child(source: Path, name: str, repeats: int, patience: float | None = None) -> dict[str, Any] | None:
    """A fit with the library under ``source``, or None where it takes more processor seconds than ``patience``."""
    script = Path(__file__).with_name("_multiclass_cases.py")
    environment = {**os.environ, **ONE, "PYTHONPATH": str(source)}
    command = [sys.executable, str(script), name, str(repeats)] + (
        [] if patience is None else [str(patience)]
    )
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if patience is not None and done.returncode == -signal.SIGXCPU:
        return None
    if done.returncode:
        raise RuntimeError(f"{name} failed under {source}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def source_of(commit: str) -> Path:
    """Return the folder with the source of a commit, taken out of the repository where it is not there yet."""
    folder = Path(tempfile.gettempdir()) / f"kernelweave-{commit}"
    if not (folder / "src").exists():
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
        folder.mkdir(exist_ok=True)
        subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def before_rows(names: list[str], commit: str, repeats: int, what: str = "before") -> list[dict[str, Any]]:
    """Fits beside those of an earlier commit, in turns."""
    rows = []
    for name in names:
        now = child(ROOT / "src", name, repeats)
        assert now is not None
        patience = repeats * PATIENCE * now["seconds"] + 1.0
        old = child(source_of(commit), name, repeats, patience)
        seconds, of = (
            (patience / repeats, f"{commit}, more than") if old is None else (old["seconds"], commit)
        )
        rows.append(row(what, name, now["seconds"], seconds, "s", of))
        show(rows[-1:])
    return rows


def softmax_rows() -> list[dict[str, Any]]:
    """The objective beside scikit-learn's on explicit features, the log loss beside calibration."""
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    worst = 0.0
    for C in (0.1, 1.0, 10.0):
        ours = MKLClassifier(kw.linear(), loss="logistic", norm="uniform", normalize=None, C=C, tol=1e-8).fit(
            X, y
        )
        other = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="newton-cg").fit(X, y)
        p = other.predict_proba(X)[np.arange(len(y)), y]
        value = 0.5 * np.sum(other.coef_**2) - C * np.sum(np.log(p))
        worst = max(worst, abs(ours.certificate_.primal / value - 1.0))
    rows = [row("softmax", "iris, linear", worst, 1e-6, "relative difference", "LogisticRegression")]
    X, y = load_digits(return_X_y=True)
    X, bank = X / 16.0, case_of("digits").kernels
    found = {}
    for C in (1.0, 10.0, 100.0):
        soft = MKLClassifier(bank, loss="logistic", C=C).fit(X[:600], y[:600])
        hinge = CalibratedClassifierCV(MKLClassifier(bank, C=C), cv=5).fit(X[:600], y[:600])
        found[C] = [log_loss(y[600:], one.predict_proba(X[600:])) for one in (soft, hinge)]
    best = np.min(list(found.values()), axis=0)
    rows.append(row("softmax", "digits, 1,197 others", best[0], best[1], "log loss", "calibrated hinge"))
    return rows


def at_hand(load: Any) -> bool:
    """Whether a data set is in the local folder."""
    try:
        load()
    except (OSError, ValueError, RuntimeError):
        return False
    return True


def measure(part: str, quick: bool, before: str, fits_before: list[str] | None) -> list[dict[str, Any]]:
    """Measure one part of the table."""
    repeats, count = (1, 40) if quick else (3, 500)
    here = at_hand(lambda: datasets.load_mfeat(download=False))
    names = ["iris", "wine"] if quick else ["iris", "wine", "digits"]
    if part == "fits":
        return fits_rows(count)
    if part == "search":
        return [search_row(name, repeats) for name in names]
    if part == "joint":
        return [joint_row(name, repeats) for name in names[1:] + (["mfeat"] if here else [])]
    if part == "softmax":
        return softmax_rows()
    if part == "many":
        many = [name for name in MANY if here or name != "mfeat"]
        return before_rows(many[:1] if quick else many, BEFORE_MANY, repeats, "many")
    old = ["generated 1000"] if quick else ["generated 2000", "generated 7000"]
    if here and not quick:
        old = ["mfeat", "mfeat, C = 0.01", "mfeat, C = 100", "mfeat, C = 1000", *old]
        if at_hand(datasets.load_mnist):
            old += ["mnist 5000", "mnist 20000"]
    return before_rows(old if fits_before is None else fits_before, before, 1)


def targets_of(rows: list[dict[str, Any]]) -> Targets:
    """What the table has to show."""
    targets = Targets()
    for one in rows:
        what, problem = one["what"], one["problem"]
        if what == "fits" and one["unit"] == "not converged":
            targets.at_most(f"{problem} fits: not converged", one["here"], 0)
        elif what == "fits" and one["unit"] == "largest gap by hand":
            targets.at_most(f"{problem} fits: largest gap computed by hand", one["here"], 1e-3)
        elif what == "search":
            most = 5 if problem == "digits" else 3
            targets.at_most(
                f"{problem}: seconds of MKLClassifierCV over those of a grid of SVCs", one["ratio"], most
            )
        elif what == "joint":
            targets.at_most(f"{problem}: seconds of joint over one against the rest", one["ratio"], 2)
        elif what == "many":
            most = 0.5 if problem.startswith(("folds", "leaves")) else 1.0
            targets.at_most(f"{problem}: seconds over those of {BEFORE_MANY}", one["ratio"], most)
        elif what == "before":
            most = 1.0 if problem.startswith(NO_SLOWER) else 0.1
            targets.at_most(f"{problem}: seconds over those of the version before", one["ratio"], most)
        elif what == "softmax" and one["unit"] == "log loss":
            targets.at_most("softmax: log loss on digits over that of a calibrated hinge", one["ratio"], 1)
        elif what == "softmax":
            targets.at_most("softmax: relative difference to scikit-learn's objective", one["here"], 1e-6)
    return targets


def kept(part: str) -> list[dict[str, Any]]:
    """Rows of a part that is not measured this time."""
    path = RESULTS / "multiclass.csv"
    table = pd.read_csv(path, dtype={"at": str}) if path.exists() else pd.DataFrame({"what": []})
    table = table.assign(at=table["at"].fillna("") if "at" in table.columns else "")
    return table[table["what"] == part].to_dict("records")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems, nothing is written")
    parser.add_argument(
        "--only", nargs="*", choices=PARTS, default=PARTS, help="parts to measure; default all"
    )
    parser.add_argument("--before", default=BEFORE, help="commit to compare with")
    parser.add_argument(
        "--fits-before", nargs="*", help="names of the fits to compare with that commit; default all"
    )
    options = parser.parse_args()
    pin()
    print(machine())
    rows: list[dict[str, Any]] = []
    for part in PARTS:
        if part not in options.only:
            rows += [] if options.quick else kept(part)
            continue
        found = measure(part, options.quick, options.before, options.fits_before)
        show(found)
        rows += found
    targets = targets_of(rows)
    if not options.quick:
        note = NOTE.format(
            repeats=3,
            fits=500,
            before=options.before,
            many=BEFORE_MANY,
            patience=PATIENCE,
            targets=targets.text(),
        )
        write_table("multiclass", rows, "python benchmarks/multiclass.py", note)


if __name__ == "__main__":
    main()
