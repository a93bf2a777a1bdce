"""Samples that lack whole views: completion in feature space against the other ways, on the six views of mfeat.

Run ``python benchmarks/missing.py``; ``--quick`` takes one split and two settings and writes nothing.  The data come
from the folder named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from _missing_methods import KERNELS, METHODS, completed
from _report import machine, show, write_table
from _targets import Targets
from _threads import pin
from kernelweave._numerics.significance import corrected_t_test
from kernelweave.banks import completed_bank
from kernelweave.datasets import load_mfeat
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.views import Views, ViewScaler

TRAIN = TEST = 600
SPLITS = 5
#: least margins of `predict` over `mean`, in points
MARGINS = {"0.3": 0.8, "0.5": 1.5, "0.7": 2.5, "by class": 4.0}
NOTE = f"""Accuracy in % on the six views of mfeat, {TRAIN} training and {TEST} test samples, {SPLITS} stratified
splits: mean ± standard deviation. One Gaussian per view whose width is the median distance, columns standardised on the
training samples that have the view, trace normalisation, norm p = 2, hinge of all classes together, C = 1 throughout.
Every view of every sample is lost with the given probability, in training and test alike (samples keep at least one);
*by class*: in training with .8 or .2 as class and view have it, in the test with .5 whatever the class.

*predict*, *mean*: kernels completed in feature space (`missing=`). *zeros*: no similarity to anybody in a view that is
missing. *column mean*, *column neighbours* (5), *column ridge* (5 rounds of ridge regression of every view's columns
on all others, penalties by leave-one-out): columns filled in, then the same model. *model per pattern*: for every
pattern of views in the test one model, on the training samples that have all of these views; *views of the pattern*: on
those that have one of them, completed by the mean. *complete samples*: fitted on the samples that have all views, where
every class has some. The p-values compare with *predict* (paired t-test over the
splits, corrected for their overlap).

{{targets}}"""


def lost(y: np.ndarray, setting: str, training: bool, rng: np.random.Generator) -> np.ndarray:
    """Which views are lost, ``(n, 6)``; every sample keeps at least one."""
    if setting == "by class":
        odd = (y.astype(int)[:, None] + np.arange(6)[None, :]) % 2 == 1
        share = np.where(odd, 0.8, 0.2) if training else np.full((y.size, 6), 0.5)
    else:
        share = np.full((y.size, 6), float(setting))
    gone = rng.random((y.size, 6)) < share
    nothing = np.flatnonzero(gone.all(axis=1))
    gone[nothing, rng.integers(0, 6, nothing.size)] = False
    return gone


def without(views: Views, gone: np.ndarray) -> Views:
    """Return the views with some taken away."""
    return Views(
        {name: np.where(gone[:, [k]], np.nan, block) for k, (name, block) in enumerate(views.items())}
    )


def cut(views: Views, y: np.ndarray, setting: str, seed: int) -> tuple[Views, np.ndarray, Views, np.ndarray]:
    """Return training and test samples, scaled by the training samples that have each view."""
    splitter = StratifiedShuffleSplit(1, train_size=TRAIN, test_size=TEST, random_state=seed)
    train, test = next(splitter.split(np.zeros((y.size, 1)), y))
    rng = np.random.default_rng(seed)
    mine = without(views[train], lost(y[train], setting, True, rng))
    theirs = without(views[test], lost(y[test], setting, False, rng))
    scaler = ViewScaler().fit(mine)
    return scaler.transform(mine), y[train], scaler.transform(theirs), y[test]


def accuracies(views: Views, y: np.ndarray, setting: str, splits: int) -> dict[str, list[float]]:
    """Accuracy of every method on every split; NaN where a method has no answer."""
    scores: dict[str, list[float]] = {name: [] for name in METHODS}
    for seed in range(splits):
        mine, labels, theirs, truth = cut(views, y, setting, seed)
        for name, method in METHODS.items():
            predicted = method(mine, labels, theirs)
            right = 100.0 * float(np.mean(predicted == truth))
            scores[name].append(np.nan if np.all(predicted == -1) else right)
            print(setting, seed, name, scores[name][-1], flush=True)
    return scores


def nothing_lost(views: Views, y: np.ndarray, splits: int) -> list[float]:
    """Accuracy with all views of all samples."""
    scores = []
    for seed in range(splits):
        mine, labels, theirs, truth = cut(views, y, "0.0", seed)
        scores.append(100.0 * float(np.mean(completed("mean")(mine, labels, theirs) == truth)))
    return scores


def rows_of(setting: str, scores: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return a row for each method."""
    best = np.array(scores["predict"])
    rows = []
    for name, values in scores.items():
        own = np.array(values)
        answered = not np.isnan(own).any()
        p_value = corrected_t_test(best, own, TEST / TRAIN) if answered and name != "predict" else np.nan
        rows.append(
            {
                "lost": setting,
                "method": name,
                "accuracy": f"{own.mean():.1f} ± {own.std(ddof=1) if own.size > 1 else 0.0:.1f}"
                if answered
                else "-",
                "below predict": f"{(best - own).mean():+.1f}" if answered and name != "predict" else "",
                "p": f"{p_value:.2g}" if np.isfinite(p_value) else "",
            }
        )
    return rows


def permuted_r2(views: Views) -> float:
    """How well a view with shuffled samples can be predicted from the others."""
    some = ViewScaler().fit_transform(views[np.random.default_rng(0).permutation(len(views))[:TRAIN]])
    blocks = dict(some.items())
    blocks["fou"] = np.random.default_rng(1).permutation(blocks["fou"])
    shuffled = Views(blocks)
    _, bound = completed_bank(expand_kernels(KERNELS, Schema.of(shuffled)), shuffled, "mean")
    return float(bound.completion.predictability[shuffled.position("fou")])


def seconds_to_complete(views: Views, y: np.ndarray, n: int) -> float:
    """Processor seconds of a completed bank with half of the views lost."""
    rng = np.random.default_rng(0)
    some = rng.permutation(len(views))[:n]
    incomplete = ViewScaler().fit_transform(without(views[some], lost(y[some], "0.5", True, rng)))
    kernels = expand_kernels(KERNELS, Schema.of(incomplete))
    began = time.process_time()
    completed_bank(kernels, incomplete, "predict")
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split, two settings, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    data = load_mfeat()
    views, y = Views.of_table(data.data, data.views), np.asarray(data.target)
    y = np.unique(y, return_inverse=True)[1]
    targets, rows = Targets(), []
    for setting in ("0.5", "by class") if quick else MARGINS:
        scores = accuracies(views, y, setting, 1 if quick else SPLITS)
        margin = float(np.mean(np.array(scores["predict"]) - np.array(scores["mean"])))
        targets.at_least(f"lost {setting}: points of predict over mean", margin, MARGINS[setting])
        rows += rows_of(setting, scores)
        show(rows_of(setting, scores))
    whole = nothing_lost(views, y, 1 if quick else SPLITS)
    spread = np.std(whole, ddof=1) if len(whole) > 1 else 0.0
    nothing = {"lost": "nothing", "method": "all", "accuracy": f"{np.mean(whole):.1f} ± {spread:.1f}"}
    rows.append(nothing | {"below predict": "", "p": ""})
    targets.at_most("R2 of a view with shuffled samples from the others", permuted_r2(views), 0.01)
    for n, most in ((600, 3.0),) if quick else ((600, 3.0), (2000, 60.0)):
        seconds = seconds_to_complete(views, y, n)
        targets.at_most(f"processor seconds to complete six views of {n} samples, half lost", seconds, most)
    if not quick:
        write_table("missing", rows, "python benchmarks/missing.py", NOTE.format(targets=targets.text()))


if __name__ == "__main__":
    main()
