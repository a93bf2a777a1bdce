"""The run of ``kernelweave demo``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from .. import __version__
from .. import kernels as kw
from .._estimating import several_fits
from .._output import whole_file
from ..estimators import BestKernelClassifier, MeanKernelClassifier, MeanKernelRidgeClassifier, MKLClassifier
from ._terminal import has_written, say, table

SUFFIXES = (".png", ".pdf", ".svg")
TOP = 10


class Split(NamedTuple):
    """Training and test part, standardised by the training part; data frames, so that kernels have readable names."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


class Outcome(NamedTuple):
    """A fitted classifier and what it took."""

    name: str
    classifier: Any
    accuracy: float
    seconds: float


@several_fits
def run(output: Path, seed: int, quick: bool) -> None:
    """Fit, compare, explain, draw."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().set_output(transform="pandas").fit(X)
    split = Split(scaler.transform(X), y, scaler.transform(X_test), y_test)
    # Gaussians on all features; Gaussians and polynomials on every single one
    widths = 2.0 ** (np.array([-1, 1, 3]) if quick else np.arange(-3, 7))
    degrees = (1,) if quick else (1, 2, 3)
    columns = ["mean radius", "mean texture", "worst area", "worst concave points"] if quick else None
    families = kw.gaussian(widths), kw.polynomial(degrees)
    bank = kw.gaussian(widths) + kw.per_feature(*families, columns=columns)
    wide, each = ("3 Gaussians", "3 Gaussians and a linear one on each of 4") if quick else (
        "10 Gaussians", "10 Gaussians and 3 polynomials on each single one"
    )  # fmt: skip
    say(f"kernelweave {__version__} demo: breast cancer (scikit-learn), {X.shape[1]} features\n")
    say(f"  data      {len(y)} samples to train on, {len(y_test)} to test on: stratified, seed {seed};")
    say("            features standardised on the training samples")
    say(f"  kernels   {wide} on all features, {each};")
    say("            scaled to a mean diagonal of 1 on the training samples")
    say("  settings  hinge loss, intercept, C = 1 for all, not tuned (ridge picks its own);")
    say("            stop at a relative gap of 0.001\n")
    # everything once on a few samples, so that compiling is not counted as fitting
    began = time.perf_counter()
    say("Compiling the inner loops (several seconds on the first run, then kept) ... ", nl=False)
    few = np.arange(0, len(split.y), 5)
    for classifier in (MKLClassifier(bank), MeanKernelRidgeClassifier(bank)):
        classifier.fit(split.X.iloc[few], split.y.iloc[few]).predict(split.X.iloc[few])
    say(f"{time.perf_counter() - began:.1f} s\n")
    say("Learning the weights of the kernels and the classifier together")
    mkl = fit("MKL, l1 norm", MKLClassifier(bank, verbose=verbosity()), split)
    others = [
        fit("SVM on the mean kernel", MeanKernelClassifier(bank), split),
        fit("ridge on the mean kernel, C by leave-one-out", MeanKernelRidgeClassifier(bank), split),
        fit("SVM on the best kernel, by 5-fold cross-validation", BestKernelClassifier(bank), split),
    ]
    compare([mkl, *others], len(split.y_test))
    explain(mkl)
    draw(mkl.classifier, output)
    has_written(output)
    say(f"\nPicture of weights and convergence: {output}")


def verbosity() -> int:
    """Show a bar where someone watches, one line per iteration in a log."""
    return 1 if sys.stderr.isatty() else 2


def fit(name: str, classifier: Any, split: Split) -> Outcome:
    """Fit on the training samples, score on the others."""
    began = time.perf_counter()
    classifier.fit(split.X, split.y)
    seconds = time.perf_counter() - began
    return Outcome(name, classifier, float(classifier.score(split.X_test, split.y_test)), seconds)


def compare(outcomes: list[Outcome], n_test: int) -> None:
    """Print accuracy and cost of every method."""
    rows = []
    for outcome in outcomes:
        used, passes = np.count_nonzero(outcome.classifier.weights_), outcome.classifier.n_passes_
        accuracy = f"{100 * outcome.accuracy:.1f} %"
        rows.append([outcome.name, accuracy, str(used), f"{passes:.1f}", f"{outcome.seconds:.2f}"])
    say("\nOn the test samples\n")
    head = ["method", "accuracy", "kernels used", "passes", "seconds"]
    say(table(head, rows, right=range(1, 5)))
    say(f"\n  One test sample is {100 / n_test:.1f} points; a pass reads every entry of every kernel once.")


def explain(outcome: Outcome) -> None:
    """Print the heaviest kernels, and the certificate in words."""
    classifier = outcome.classifier
    weights, names = classifier.weights_, classifier.kernel_names_
    order = np.argsort(-weights, kind="stable")
    used = int(np.count_nonzero(weights))
    say("\nKernels with the most weight\n")
    for j in order[: min(TOP, used)]:
        say(f"  {weights[j]:.3f}  {names[j]}")
    if used > TOP:
        rest = float(weights[order[TOP:]].sum())
        say(f"  {rest:.3f}  {used - TOP} others together; {len(weights) - used} have weight zero")
    say("\nCertificate\n")
    proved = str(classifier.certificate_)
    say(fill(f"{proved[:1].upper()}{proved[1:]}.", 100, initial_indent="  ", subsequent_indent="  "))
    say(
        f"  The solver {classifier.solver_!r}, picked by 'auto', took {classifier.n_iter_} iterations, "
        f"{classifier.n_passes_:.1f} passes over the"
    )
    say(f"  {len(weights)} kernels and {outcome.seconds:.2f} s, building them included.")


def draw(classifier: Any, output: Path) -> None:
    """Weights on the left; the bounds and the gap on the right."""
    # a bare figure: no window system is asked for, and nothing is left behind in pyplot
    from matplotlib.figure import Figure

    from ..displays import ConvergenceDisplay, WeightsDisplay

    figure = Figure(figsize=(12.0, 5.6), layout="constrained")
    panels = figure.subplot_mosaic("ab;ac", width_ratios=[1.15, 1.0])
    WeightsDisplay.from_estimator(classifier, ax=panels["a"])
    ConvergenceDisplay.from_estimator(classifier, ax=panels["b"])
    ConvergenceDisplay.from_estimator(classifier, ax=panels["c"], kind="gap")
    panels["b"].set_xlabel("")
    with whole_file(output) as part:
        figure.savefig(part, dpi=110)
