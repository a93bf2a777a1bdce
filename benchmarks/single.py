"""One kernel, because people will try it: an SVM path by cross-validation, and one large SVM, beside libsvm.

Run ``python benchmarks/single.py`` (``path`` or ``digits`` for one of them; ``--quick`` takes smaller problems and
writes nothing).  The digits are MNIST's from the folder named by ``KERNELWEAVE_DATA``; without it a generated problem
of that size stands in, and says so.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _problems import generated
from _report import Targets, machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifier, MKLClassifierCV
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave_studies.datasets import load_mnist

TOL = 1e-3
#: values of C, as many as TorchKM takes
VALUES, FOLDS = 50, 5
NOTE = """One Gaussian kernel, hinge loss with an intercept, one thread, after compilation; seconds of the processor,
medians of {repeats} runs in turns.

- *path*: {values} values of C from 1e-2 to 1e3 by {folds} folds in one call, the job that TorchKM is made for, and a
  last fit of all samples: `MKLClassifierCV` to a certified gap of {tol:g} beside `GridSearchCV(SVC)` at libsvm's own
  tolerance; the same folds, values of C and width. {path}
- *digits*: one SVM, C = 10: `MKLClassifier` to a certified gap of {tol:g} beside `SVC` at its default tolerance (1e-3
  of the gradient) and its default cache of 200 MB. {digits}

*Accuracy*: of the C that was chosen, over the folds (path); on other rows (digits).

{targets}"""


class Problem(NamedTuple):
    """Rows for training and for testing, and where they come from."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str


def digits(n: int) -> Problem:
    """Even against odd digits on 16 x 16 pixels, or a generated problem of that size."""
    try:
        images = load_mnist()
        X = np.concatenate([_halved(images.data[:n]), _halved(images.test_data[:2000])])
        y = np.concatenate([images.target[:n], images.test_target[:2000]]) % 2
        source = f"MNIST's first {n:,} digits on 16 x 16 pixels, even against odd; tested on 2,000 of its test set."
    except FileNotFoundError:
        X, y = make_classification(
            n + 2000, 256, n_informative=40, n_redundant=100, flip_y=0.02, random_state=0
        )
        X = StandardScaler().fit_transform(X)
        source = f"Generated (`make_classification`): {n:,} training rows, 256 features, 2,000 test rows."
    return Problem(X[:n], y[:n], X[n:], y[n:], source)


def _halved(images: np.ndarray) -> np.ndarray:
    """28 x 28 pixels, with a margin, as means of 2 x 2: 16 x 16."""
    framed = np.pad(images.reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
    return framed.reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(-1, 256)


def typical_width(X: np.ndarray) -> float:
    """Median distance between rows."""
    some = X[:: max(1, len(X) // 300)]
    squares = np.sum((some[:, None, :] - some[None, :, :]) ** 2, axis=2)
    return float(np.sqrt(np.median(squares[np.triu_indices(len(some), 1)])))


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came out."""
    began = time.process_time()
    made = function()
    return time.process_time() - began, made


def in_turns(methods: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Median seconds of every method, and its last result."""
    runs: dict[str, list[tuple[float, Any]]] = {name: [] for name in methods}
    for _ in range(repeats):
        for name, method in methods.items():
            runs[name].append(seconds_of(method))
    return {name: (statistics.median(run[0] for run in done), done[-1][1]) for name, done in runs.items()}


def path_rows(n: int, repeats: int) -> tuple[list[dict[str, Any]], str]:
    """Cross-validation over C on one Gaussian."""
    problem = generated(n, 10)
    X, y = problem.X, problem.y
    width = typical_width(X)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    Cs = np.logspace(-2, 3, VALUES)
    gamma = 0.5 / width**2

    def ours() -> Any:
        return MKLClassifierCV(kw.gaussian(width), Cs=Cs, cv=folds, tol=TOL).fit(X, y)

    def theirs() -> Any:
        return GridSearchCV(SVC(gamma=gamma), {"C": Cs}, cv=folds).fit(X, y)

    found = in_turns({"kernelweave": ours, "GridSearchCV(SVC)": theirs}, repeats)
    rows = []
    for name, (seconds, model) in found.items():
        C = float(model.C_) if name == "kernelweave" else model.best_params_["C"]
        accuracy = float(np.mean(cross_val_score(SVC(gamma=gamma, C=C), X, y, cv=folds)))
        gap = model.certificate_.relative_gap if name == "kernelweave" else "no"
        rows.append(
            {"job": "path", "n": n, "method": name, "CPU seconds": seconds, "C": C, "accuracy": accuracy,
             "certified gap": gap}
        )  # fmt: skip
    return rows, f"n = {n:,}, 10 features, {problem.source}."


def digit_rows(n: int, repeats: int) -> tuple[list[dict[str, Any]], str]:
    """One SVM on images."""
    data = digits(n)
    width = typical_width(data.X)

    def ours() -> Any:
        return MKLClassifier(kw.gaussian(width), C=10.0, tol=TOL).fit(data.X, data.y)

    def theirs() -> Any:
        return SVC(gamma=0.5 / width**2, C=10.0).fit(data.X, data.y)

    rows = []
    for name, (seconds, model) in in_turns({"kernelweave": ours, "SVC": theirs}, repeats).items():
        gap = model.certificate_.relative_gap if name == "kernelweave" else "no"
        rows.append(
            {"job": "digits", "n": n, "method": name, "CPU seconds": seconds, "C": 10.0,
             "accuracy": float(np.mean(model.predict(data.X_test) == data.y_test)), "certified gap": gap}
        )  # fmt: skip
    return rows, data.source


def targets_of(rows: list[dict[str, Any]]) -> Targets:
    """No slower than libsvm, at the same accuracy and with a certificate."""
    targets = Targets()
    for job in dict.fromkeys(row["job"] for row in rows):
        ours, theirs = (row for row in rows if row["job"] == job)
        ratio = theirs["CPU seconds"] / ours["CPU seconds"]
        targets.at_least(f"{job}: {theirs['method']} takes this many times as long (CPU)", ratio, 1.0)
        targets.at_least(
            f"{job}: accuracy over that of {theirs['method']}", ours["accuracy"] / theirs["accuracy"], 0.995
        )
        targets.at_most(f"{job}: certified relative gap", max(ours["certified gap"], 0.0), TOL)
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="one of the two jobs")
    parser.add_argument(
        "--quick", action="store_true", help="smaller problems, one run each, nothing is written"
    )
    arguments = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    MKLClassifier(kw.gaussian(1.0)).fit(*_few())  # compiles
    repeats = 1 if arguments.quick else 3
    sizes = {"path": 400, "digits": 1500} if arguments.quick else {"path": 2000, "digits": 7000}
    makers = {"path": path_rows, "digits": digit_rows}
    rows, sources = [], {"path": "Not run this time.", "digits": "Not run this time."}
    for job in arguments.jobs or makers:
        found, sources[job] = makers[job](sizes[job], repeats)
        rows += found
        show(found)
    targets = targets_of(rows)
    if not arguments.quick and not arguments.jobs:
        note = NOTE.format(
            repeats=repeats, values=VALUES, folds=FOLDS, tol=TOL, targets=targets.text(), **sources
        )
        write_table("single", rows, "python benchmarks/single.py", note)


def _few() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.sign(X[:, 0] + 0.1)


if __name__ == "__main__":
    main()
