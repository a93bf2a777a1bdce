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
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.impute import KNNImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import StratifiedShuffleSplit

from _measure import RUNS, Targets, machine, pin, show, write_table
from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave._numerics.significance import corrected_t_test
from kernelweave.banks import completed_bank
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.views import Views, ViewScaler
from kernelweave_studies.datasets import load_mfeat

# Ways to learn from samples that lack views: functions from training and new views to predicted labels.

Predict = Callable[[Views, np.ndarray, Views], np.ndarray]
#: one Gaussian per view, of the median distance
KERNELS = kw.gaussian(1.0, relative=True)
ROUNDS = 5
NEIGHBOURS = 5


def completed(how: str) -> Predict:
    """Complete kernels in feature space."""

    def predict(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
        return _quietly(MKLClassifier(KERNELS, norm=2, C=1.0, missing=how), train, y, new)

    return predict


def _quietly(model: MKLClassifier, train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Fit and predict; that views are lost by class, or more often than before, is what is studied here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        return model.fit(train, y).predict(new)


def zeros(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Let samples have no similarity to any other in the views they lack."""
    stack = np.zeros((len(train.names), len(train), len(train)))
    cross = np.zeros((len(train.names), len(new), len(train)))
    for j, kernel in enumerate(expand_kernels(KERNELS, Schema.of(train))):
        have, theirs = np.flatnonzero(train.present[:, j]), np.flatnonzero(new.present[:, j])
        settled = kernel.resolve(train[have])
        stack[j][np.ix_(have, have)] = settled(train[have])
        cross[j][np.ix_(theirs, have)] = settled(new[theirs], train[have])
    return MKLClassifier("precomputed", norm=2, C=1.0, normalize=None).fit(stack, y).predict(cross)


def _on_columns(train: np.ndarray, y: np.ndarray, new: np.ndarray, like: Views) -> np.ndarray:
    """Fit the same kernels on tables without gaps."""
    bank = kw.per_view(like.groups, KERNELS)
    return MKLClassifier(bank, norm=2, C=1.0).fit(train, y).predict(new)


def column_mean(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Put the mean of every column in the gaps."""
    filled, means = np.asarray(train, dtype=float), np.nanmean(np.asarray(train, dtype=float), axis=0)
    other = np.asarray(new, dtype=float)
    filled, other = (np.where(np.isnan(table), means, table) for table in (filled, other))
    return _on_columns(filled, y, other, train)


def neighbours(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Put the mean of the nearest samples in the gaps, by the columns that both have."""
    imputer = KNNImputer(n_neighbors=NEIGHBOURS).fit(np.asarray(train, dtype=float))
    tables = (imputer.transform(np.asarray(table, dtype=float)) for table in (train, new))
    return _on_columns(next(tables), y, next(tables), train)


def column_ridge(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Predict the columns of every view from all others by ridge regression, in rounds."""
    tables = [np.asarray(table, dtype=float) for table in (train, new)]
    means = np.nanmean(tables[0], axis=0)
    tables = [np.where(np.isnan(table), means, table) for table in tables]
    starts = train.starts
    for _ in range(ROUNDS):
        for k in range(len(train.names)):
            own = np.arange(starts[k], starts[k + 1])
            others = np.setdiff1d(np.arange(starts[-1]), own)
            have = train.present[:, k]
            ridge = RidgeCV(np.logspace(0, 4, 5)).fit(tables[0][have][:, others], tables[0][have][:, own])
            for table, views in zip(tables, (train, new), strict=True):
                gone = ~views.present[:, k]
                if gone.any():
                    table[np.ix_(gone, own)] = ridge.predict(table[gone][:, others])
    return _on_columns(tables[0], y, tables[1], train)


def complete_samples(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Learn from complete samples alone and complete new ones by them; no labels where a class has none."""
    whole = np.flatnonzero(train.present.all(axis=1))
    if np.unique(y[whole]).size < np.unique(y).size:
        return np.full(len(new), -1)
    return completed("predict")(train[whole], y[whole], new)


def views_of_pattern(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Fit one model for every pattern of new samples, on its views and all samples that have one of them (*mean*)."""
    labels = np.empty(len(new), dtype=y.dtype)
    for names, rows in _patterns(new):
        mine, theirs = train.only(names), new.only(names)[rows]
        have = np.flatnonzero(mine.present.any(axis=1))
        labels[rows] = completed("mean")(mine[have], y[have], theirs)
    return labels


def _patterns(new: Views) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield the views of every pattern, and who has it."""
    for pattern in np.unique(new.present, axis=0):
        names = [name for name, here in zip(new.names, pattern, strict=True) if here]
        yield names, np.flatnonzero(np.all(new.present == pattern, axis=1))


def model_per_pattern(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Fit one model for every pattern of new samples, on its views and the training samples that have them."""
    labels = np.empty(len(new), dtype=y.dtype)
    for names, rows in _patterns(new):
        have = np.flatnonzero(train.only(names).present.all(axis=1))
        values, counts = np.unique(y[have] if have.size else y, return_counts=True)
        if values.size < 2 or have.size < 2:
            labels[rows] = values[np.argmax(counts)]
            continue
        model = MKLClassifier(KERNELS, norm=2, C=1.0)
        labels[rows] = model.fit(train.only(names)[have], y[have]).predict(new.only(names)[rows])
    return labels


METHODS: dict[str, Predict] = {
    "predict": completed("predict"),
    "mean": completed("mean"),
    "zeros": zeros,
    "column mean": column_mean,
    "column neighbours": neighbours,
    "column ridge": column_ridge,
    "views of the pattern": views_of_pattern,
    "model per pattern": model_per_pattern,
    "complete samples": complete_samples,
}


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
    bank = completed_bank(expand_kernels(KERNELS, Schema.of(shuffled)), shuffled, "mean")
    return float(bank.source.predictability[shuffled.position("fou")])


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
