"""The run of ``kernelweave demo``: which of twenty descriptions of handwritten digits are worth anything?"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .. import __version__
from .. import kernels as kw
from .._estimating import several_fits
from .._output import whole_file
from ..estimators import BestKernelClassifier, MeanKernelClassifier, MKLClassifier
from ..inspection import weight_stability
from ._terminal import has_written, say, strip, table

SUFFIXES = (".png", ".pdf", ".svg")
TRAINING_ROWS = 300
DECOYS_OF_EACH = 4


class Split(NamedTuple):
    """Views side by side, in a training and a test part, standardised by the training part."""

    views: dict[str, slice]  # the columns of each
    real: tuple[str, ...]  # which of the views are no decoys
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


def descriptions(images: Any) -> dict[str, Any]:
    """Describe 8 x 8 images in four ways, one table each."""
    n = len(images)
    ink = images > 4
    # how far it is from each of the four edges to the first ink, row by row and column by column
    sides = [ink, ink[:, :, ::-1], ink.swapaxes(1, 2), ink.swapaxes(1, 2)[:, :, ::-1]]
    outline = np.hstack([np.where(side.any(axis=2), side.argmax(axis=2), 8) for side in sides])
    frequencies = np.abs(np.fft.rfft2(images))[:, :5, :5].reshape(n, -1)
    # into which of eight directions, and how strongly, the grey changes in each quarter of the image
    down, right = np.gradient(images, axis=(1, 2))
    angle, strength = np.arctan2(down, right) * 4 / np.pi, np.hypot(down, right)
    shares = [np.clip(1 - np.abs((angle - k + 4) % 8 - 4), 0, None) for k in range(8)]
    directions = [
        (strength * share).reshape(n, 2, 4, 2, 4).sum(axis=(2, 4)).reshape(n, -1) for share in shares
    ]
    return {
        "pixels": images.reshape(n, -1),
        "outline": outline,
        "frequencies": frequencies,
        "directions": np.sqrt(np.hstack(directions)),
    }


def split_digits(seed: int, quick: bool = False) -> Split:
    """Describe the digits, add decoys, and part training from test images."""
    images, y = load_digits(return_X_y=True)
    tables = descriptions(images.reshape(-1, 8, 8))
    real, rng = tuple(tables), np.random.default_rng(seed)
    for number in range(1 if quick else DECOYS_OF_EACH):
        tables |= {f"decoy {number + 1} of {name}": rng.permutation(tables[name]) for name in real}
    ends = np.cumsum([0, *(view.shape[1] for view in tables.values())])
    views = {name: slice(int(ends[k]), int(ends[k + 1])) for k, name in enumerate(tables)}
    X, X_test, y, y_test = train_test_split(
        np.hstack(list(tables.values())), y, train_size=TRAINING_ROWS, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    return Split(views, real, scaler.transform(X), y, scaler.transform(X_test), y_test)


def one_kernel_each(views: dict[str, slice]) -> Any:
    """Return a Gaussian for every view, of the view's median distance."""
    return kw.per_view(views, kw.gaussian(1.0, relative=True))


def fit(name: str, classifier: Any, split: Split) -> Outcome:
    """Fit on the training samples, score on the others."""
    began = time.perf_counter()
    classifier.fit(split.X, split.y)
    seconds = time.perf_counter() - began
    return Outcome(name, classifier, float(classifier.score(split.X_test, split.y_test)), seconds)


def methods(split: Split) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Return what is compared on all views, and on the real ones alone."""
    bank, alone = (
        one_kernel_each(split.views),
        one_kernel_each({name: split.views[name] for name in split.real}),
    )
    verbose = 1 if sys.stderr.isatty() else 0
    return [
        ("MKL, l1 norm", MKLClassifier(bank, verbose=verbose)),
        ("SVM on the best view, by 5-fold cross-validation", BestKernelClassifier(bank)),
        ("random forest of 500 trees on all columns", RandomForestClassifier(500, random_state=0)),
        ("SVM on the mean kernel of all views", MeanKernelClassifier(bank)),
        ("SVM on all columns (scikit-learn's SVC)", SVC()),
    ], [
        ("MKL, l1 norm, told which views are real", MKLClassifier(alone)),
        ("SVM on the mean kernel, told the same", MeanKernelClassifier(alone)),
    ]  # fmt: skip


@several_fits
def run(output: Path, seed: int, quick: bool) -> None:
    """Fit, compare, explain, draw."""
    split = split_digits(seed, quick)
    real, decoys, refits = len(split.real), len(split.views) - len(split.real), 5 if quick else 20
    say(f"kernelweave {__version__} demo: which descriptions of handwritten digits are worth anything?\n")
    say(
        f"  data      {len(split.y)} images to train on, {len(split.y_test)} to test on (scikit-learn's digits, ten"
    )
    say(f"            classes, seed {seed}); columns standardised on the training images")
    say(f"  views     {real} real ones: {', '.join(split.real)};")
    say(
        f"            {decoys} decoys: one of these with its rows shuffled, so that it knows nothing of its image"
    )
    say("  kernels   one Gaussian per view, as wide as the view's median distance")
    say(
        "  settings  hinge loss of all classes together, C = 1, nothing tuned; stop at a relative gap of 0.001\n"
    )
    # everything once on a few samples, so that compiling is not counted as fitting
    began = time.perf_counter()
    every, told = methods(split)
    MKLClassifier(one_kernel_each(split.views)).fit(split.X[::3], split.y[::3]).predict(split.X[::3])
    say(
        f"A small fit first, so that compiling is not counted as fitting: {time.perf_counter() - began:.1f} s\n"
    )
    outcomes = [fit(name, classifier, split) for name, classifier in every]
    knowing = [fit(name, classifier, split) for name, classifier in told]
    stability = weight_stability(outcomes[0].classifier, split.X, split.y, n_refits=refits)
    weights = stability.by_view().set_index("view").sort_values("weight", ascending=False)

    compare(outcomes, knowing, len(split.y_test))
    explain(weights, split.real, refits)
    say("\nCertificate\n")
    classifier = outcomes[0].classifier
    proved = str(classifier.certificate_)
    say(fill(f"{proved[:1].upper()}{proved[1:]}.", 100, initial_indent="  ", subsequent_indent="  "))
    say(
        f"  The solver {classifier.solver_!r}, picked by 'auto', took {classifier.n_iter_} iterations, "
        f"{classifier.n_passes_:.1f} passes over the"
    )
    say(f"  {len(weights)} kernels and {outcomes[0].seconds:.2f} s, building them included.")
    draw(weights, split.real, [*outcomes, *knowing], output)
    has_written(output)
    say(f"\nPicture of weights, accuracy and convergence: {output}")


def compare(outcomes: list[Outcome], knowing: list[Outcome], n_test: int) -> None:
    """Print the accuracy and the seconds of every method, and when learning weights gains nothing."""
    say("On the test images\n")
    rows = [[o.name, f"{100 * o.accuracy:.1f} %", f"{o.seconds:.2f}"] for o in (*outcomes, *knowing)]
    say(table(["method", "accuracy", "seconds"], rows, right=(1, 2)))
    learnt, mean = (100 * outcome.accuracy for outcome in knowing)
    say(
        f"\n  One test image is {100 / n_test:.2f} points. Where all views are good there is little to find out:"
    )
    say(
        f"  told which views are real, the mean kernel reaches {mean:.1f} %, and learnt weights {learnt:.1f} %."
    )


def explain(weights: Any, real: tuple[str, ...], refits: int) -> None:
    """Print the weights of the real views and of all decoys together, with their range over the refits."""
    say(f"\nWeights of the views (and their range over {refits} refits on parts of the training images)\n")
    for name in sorted(real, key=lambda view: -weights.weight[view]):
        view = weights.loc[name]
        say(f"  {name:<12} {view.weight:.2f}  ({view.low:.2f} to {view.high:.2f})  {strip(view.weight)}")
    decoys = weights.drop(index=list(real))
    used, ever = int((decoys.weight > 1e-3).sum()), int((decoys.selected > 0).sum())
    say(f"  {'decoys':<12} {decoys.weight.sum():.2f}  for {used} of {len(decoys)} here;", nl=False)
    say(f" {ever} of them had some weight in some refit, the largest {decoys.high.max():.2f}")


def draw(weights: Any, real: tuple[str, ...], outcomes: list[Outcome], output: Path) -> None:
    """Weights of the views on the left; accuracy, and the gap that closes, on the right."""
    # a bare figure: no window system is asked for, and nothing is left behind in pyplot
    from matplotlib.figure import Figure

    from ..displays import ConvergenceDisplay
    from ..displays.colours import ACCENT, FAINT, INK, tidy

    figure = Figure(figsize=(12.0, 5.6), layout="constrained")
    panels = figure.subplot_mosaic("ab;ac", width_ratios=[1.0, 1.0], height_ratios=[1.15, 1.0])
    ax, rows = panels["a"], np.arange(len(weights))
    ax.barh(rows, weights["weight"], color=INK, height=0.72)
    ax.hlines(rows, weights["low"], weights["high"], color=ACCENT, linewidth=2.2, zorder=3)
    ax.set_yticks(rows, weights.index)
    for label in ax.get_yticklabels():
        label.set_color(INK if label.get_text() in real else "#6b7683")
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(left=0.0)
    ax.set_title("Weight of each view (line: range over refits)")

    # points and not bars, because the axis does not begin at zero
    ax, rows = panels["b"], np.arange(len(outcomes))
    percent = np.array([100 * outcome.accuracy for outcome in outcomes])
    ax.hlines(rows, 0.0, percent, color=FAINT, linewidth=1.4)
    ax.plot(percent, rows, "o", color=INK)
    for row, number in zip(rows, percent, strict=True):
        ax.text(number + 0.5, float(row), f"{number:.1f}", va="center", fontsize="small")
    ax.set_yticks(rows, [outcome.name.partition(" (")[0].partition(", by")[0] for outcome in outcomes])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(percent.min() - 3.0, 101.0)
    ax.set_title("Accuracy on new images, in %")
    ConvergenceDisplay.from_estimator(outcomes[0].classifier, ax=panels["c"])
    panels["c"].set_title("The optimum lies between these bounds")
    for name in "ab":
        panels[name].tick_params(axis="y", length=0)
        tidy(panels[name], "x")
    with whole_file(output) as part:
        figure.savefig(part, dpi=110)
