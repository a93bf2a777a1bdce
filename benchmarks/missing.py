"""Samples that lack whole views: ``missing="predict"`` and ``"mean"`` against the other ways, on six views of mfeat.

Run ``python benchmarks/missing.py``, about nine minutes.  ``--lost 0.3`` (0.5, 0.7, "by class", nothing, time) is one
part of it: every part keeps its runs in ``studies/results/missing_runs.csv``, and the table is written from those
that are there.  ``--quick`` takes one split and two settings and writes nothing.  The data come from the folder named
by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import csv
import time

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from _missing_methods import KERNELS, METHODS
from _report import RUNS, machine, show, write_table
from _targets import Targets
from _threads import pin
from kernelweave._numerics.significance import corrected_t_test
from kernelweave.banks import completed_bank
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.views import Views, ViewScaler
from kernelweave_studies.datasets import load_mfeat

TRAIN = TEST = 600
SPLITS = 5
#: least margins of `predict` over `mean`, in points
MARGINS = {"0.3": 0.8, "0.5": 1.5, "0.7": 2.5, "by class": 4.0}
#: most seconds to complete so many samples
SECONDS = {600: 3.0, 2000: 60.0}
PARTS = (*MARGINS, "nothing", "time")
NOTE = f"""Accuracy in % on the six views of mfeat, {TRAIN} training and {TEST} test samples, {SPLITS} stratified
splits: mean ± standard deviation, and processor seconds of fit and prediction. `MKLClassifier` throughout, with one
Gaussian per view whose width is the median distance, columns standardised on the training samples that have the view,
trace normalisation, norm p = 2, hinge of all classes together, C = 1.
Every view of every sample is lost with the given probability, in training and test alike (samples keep at least one);
*by class*: in training with .8 or .2 as class and view have it, in the test with .5 whatever the class.

*predict*, *mean*: `missing="predict"`, `missing="mean"`. *zeros*: no similarity to anybody in a view that is
missing. *column mean*, *column neighbours* (5), *column ridge* (5 rounds of ridge regression of every view's columns
on all others, penalties by leave-one-out): columns filled in, then the same model. *model per pattern*: for every
pattern of views in the test one model, on the training samples that have all of these views; *views of the pattern*: on
those that have one of them, with `missing="mean"`. *complete samples*: fitted with `missing="predict"` on the samples
that have all views; "-" where some class has none in some split. The p-values compare with *predict* (paired t-test
over the splits, corrected for their overlap).

{{targets}}"""


class RunFile:
    """Accuracy and seconds of every run by setting, method and split, kept in a file from one part to the next."""

    heads = ("lost", "method", "split", "accuracy", "seconds")

    def __init__(self, keep: bool) -> None:
        self.path = RUNS / "missing_runs.csv"
        self.keep = keep
        self.runs: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
        if keep and self.path.exists():
            with self.path.open(newline="") as file:
                for row in csv.DictReader(file):
                    self.put(
                        row["lost"],
                        row["method"],
                        int(row["split"]),
                        float(row["accuracy"]),
                        float(row["seconds"]),
                    )

    def put(self, lost: str, method: str, split: int, accuracy: float, seconds: float) -> None:
        """Keep one run."""
        self.runs.setdefault((lost, method), {})[split] = (accuracy, seconds)

    def forget(self, lost: str) -> None:
        """Drop the runs of a setting that is run again."""
        self.runs = {key: runs for key, runs in self.runs.items() if key[0] != lost}

    def values(self, lost: str, method: str) -> np.ndarray:
        """Return accuracies and seconds, ``(splits, 2)``."""
        return np.array([run for _, run in sorted(self.runs.get((lost, method), {}).items())]).reshape(-1, 2)

    def save(self) -> None:
        """Write all runs."""
        if not self.keep:
            return
        with self.path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.heads)
            for (lost, method), runs in self.runs.items():
                for split, (accuracy, seconds) in sorted(runs.items()):
                    writer.writerow([lost, method, split, f"{accuracy:.4f}", f"{seconds:.3f}"])


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


def run_setting(views: Views, y: np.ndarray, setting: str, splits: int, file: RunFile) -> None:
    """Run every method on every split; an accuracy of NaN where a method has no answer."""
    file.forget(setting)
    methods = {"all": METHODS["mean"]} if setting == "nothing" else METHODS
    for seed in range(splits):
        mine, labels, theirs, truth = cut(views, y, "0.0" if setting == "nothing" else setting, seed)
        for name, method in methods.items():
            began = time.process_time()
            predicted = method(mine, labels, theirs)
            seconds = time.process_time() - began
            right = np.nan if np.all(predicted == -1) else 100.0 * float(np.mean(predicted == truth))
            file.put(setting, name, seed, right, seconds)
            print(setting, seed, name, f"{right:.2f} {seconds:.2f} s", flush=True)
        file.save()


def rows_of(setting: str, file: RunFile) -> list[dict[str, str]]:
    """Return a row for each method that was run."""
    best = file.values(setting, "predict")[:, 0]
    rows = []
    for (lost, name), _ in file.runs.items():
        if lost != setting:
            continue
        own, seconds = file.values(setting, name).T
        answered, other = not np.isnan(own).any(), name not in ("predict", "all")
        p_value = corrected_t_test(best, own, TEST / TRAIN) if answered and other else np.nan
        spread = own.std(ddof=1) if own.size > 1 else 0.0
        rows.append(
            {
                "lost": setting,
                "method": name,
                "accuracy": f"{own.mean():.1f} ± {spread:.1f}" if answered else "-",
                "below predict": f"{(best - own).mean():+.1f}" if answered and other else "",
                "p": f"{p_value:.2g}" if np.isfinite(p_value) else "",
                "seconds": f"{np.median(seconds):.2g}" if answered else "-",
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


def timings(views: Views, y: np.ndarray, sizes: tuple[int, ...], file: RunFile) -> None:
    """Time the completion at every size, once what is compiled has been, and judge a view with shuffled samples."""
    file.forget("time")
    seconds_to_complete(views, y, 200)
    for n in sizes:
        file.put("time", f"complete {n}", 0, np.nan, seconds_to_complete(views, y, n))
    file.put("time", "R2 of a shuffled view", 0, permuted_r2(views), 0.0)
    file.save()


def judged(file: RunFile) -> Targets:
    """Return what was promised, of the parts that were run."""
    targets = Targets()
    for setting, least in MARGINS.items():
        ours, mean = (file.values(setting, method) for method in ("predict", "mean"))
        if ours.size:
            margin = float(np.mean(ours[:, 0] - mean[:, 0]))
            targets.at_least(f"lost {setting}: points of predict over mean", margin, least)
    shuffled = file.values("time", "R2 of a shuffled view")
    if shuffled.size:
        targets.at_most("R2 of a view with shuffled samples from the others", float(shuffled[0, 0]), 0.01)
    for n, most in SECONDS.items():
        seconds = file.values("time", f"complete {n}")
        if seconds.size:
            what = f"processor seconds to complete six views of {n} samples, half lost"
            targets.at_most(what, float(seconds[0, 1]), most)
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split, two settings, nothing is written")
    parser.add_argument("--lost", choices=PARTS, action="append", help="one part; all of them by default")
    options = parser.parse_args()
    pin()
    print(machine())
    data = load_mfeat()
    views, y = Views.of_table(data.data, data.views), np.asarray(data.target)
    y = np.unique(y, return_inverse=True)[1]
    file = RunFile(keep=not options.quick)
    for part in ("0.5", "by class", "time") if options.quick else options.lost or PARTS:
        if part == "time":
            timings(views, y, tuple(SECONDS)[: 1 if options.quick else None], file)
        else:
            run_setting(views, y, part, 1 if options.quick else SPLITS, file)
            show(rows_of(part, file))
    targets = judged(file)
    rows = [row for part in PARTS if part != "time" for row in rows_of(part, file)]
    if rows and not options.quick:
        write_table("missing", rows, "python benchmarks/missing.py", NOTE.format(targets=targets.text()))


if __name__ == "__main__":
    main()
