"""What scaling is worth, and what is said where it was left out: raw and scaled columns under the default call.

Run ``python benchmarks/scales.py``; ``--quick`` takes one split of two sets and writes nothing.  Data come from
scikit-learn and from the folder named by ``KERNELWEAVE_DATA``.

Is ``SimilarityClassifier()`` a safe choice?  Its error beside those of every method it could have been told to use.

Run ``python benchmarks/scales.py similarity``; ``--quick`` takes two splits of six sets and writes nothing.  The data
come from the folder named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _measure import pin
from _report import Targets, machine, run_part, show, write_table
from kernelweave import MKLClassifierCV, SimilarityClassifier
from kernelweave.banks import scales
from kernelweave.exceptions import ScaleWarning
from kernelweave_studies.datasets import load_similarity, load_uci
from kernelweave_studies.similarity.data import FAMILIES, REAL, UCI, protein_split, single_split

SPLITS = 5
NOTE = f"""`MKLClassifierCV(random_state=split).fit(X, y)` with all defaults on 70 % of the rows, stratified, and
the same behind `StandardScaler()` in a pipeline; accuracy in % on the other 30 %, mean over {SPLITS} splits. *said,
raw*: the warning about scales, with the number of splits that had it; *said, scaled*: the same behind the scaler.
*looking*: time of the look at the kernels, in % of the whole fit, median.

{{targets}}"""

SETS: dict[str, Callable[..., Any]] = {
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    **{
        name: lambda return_X_y, name=name: load_uci(name, return_X_y=return_X_y)
        for name in ("heart", "pima", "liver", "ionosphere")
    },
}


def tried(model: Any, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, list[str], float]:
    """Return accuracy on held-out rows, what was said of scales, and the share of the time that looking took."""
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    spent = 0.0
    look = scales.findings_of_kernels

    def timed(*given: Any) -> tuple[str, ...]:
        nonlocal spent
        began = time.perf_counter()
        found = look(*given)
        spent += time.perf_counter() - began
        return found

    scales.findings_of_kernels = timed
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            began = time.perf_counter()
            model.fit(A, a)
            whole = time.perf_counter() - began
    finally:
        scales.findings_of_kernels = look
    said = [str(one.message) for one in caught if one.category is ScaleWarning]
    return float(model.score(B, b)), said, spent / whole


def row_of(name: str, splits: int) -> dict[str, Any]:
    """Return the row of one set."""
    X, y = SETS[name](return_X_y=True)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    raw, scaled = [], []
    for seed in range(splits):
        raw.append(tried(MKLClassifierCV(random_state=seed), X, y, seed))
        scaled.append(tried(make_pipeline(StandardScaler(), MKLClassifierCV(random_state=seed)), X, y, seed))

    def sayings(results: list[tuple[float, list[str], float]]) -> str:
        # the figures differ from split to split: what comes before them is the same
        counts = Counter(sentence.split(". ")[0] for _, said, _ in results for sentence in said[:1])
        first = next(iter(counts), "nothing")
        return f"{first} ({sum(counts.values())} of {splits})" if counts else first

    return {
        "set": name,
        "n": len(y),
        "columns": X.shape[1],
        "raw": round(100 * float(np.mean([accuracy for accuracy, _, _ in raw])), 1),
        "scaled": round(100 * float(np.mean([accuracy for accuracy, _, _ in scaled])), 1),
        "said, raw": sayings(raw),
        "said, scaled": sayings(scaled),
        "looking": round(100 * float(np.median([share for _, _, share in raw + scaled])), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of two sets, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    MKLClassifierCV(Cs=[1.0], cv=2).fit(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2)
    rows = []
    for name in list(SETS)[:2] if quick else SETS:
        rows.append(row_of(name, 1 if quick else SPLITS))
        print(rows[-1], flush=True)
    show(rows)
    targets = Targets()
    lost = [row for row in rows if row["scaled"] - row["raw"] > 2.0]
    silent = sum(row["said, raw"] == "nothing" for row in lost)
    targets.at_most("sets that lose more than two points and are told nothing", silent, 0)
    alarms = sum(row["said, scaled"] != "nothing" for row in rows)
    targets.at_most("sets that are told something though they are scaled", alarms, 0)
    targets.at_most(
        "largest share of the time that looking takes, %", max(row["looking"] for row in rows), 1.0
    )
    if not quick:
        write_table("scales", rows, "python benchmarks/scales.py", NOTE.format(targets=targets.text()))


# The default on similarities.

# Similarity sets: name, kind, and a split of each by number.

#: similarities of all samples (m, n, n), labels, training and test samples
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NAMES = ("smith_waterman", "needleman_wunsch", "psi_blast")
#: samples of the sets with several superfamilies, and the share to train on
MOST, SHARE = 320, 0.6


def _single(name: str, seed: int) -> Split:
    split = single_split(name, seed)
    return split.stack, split.y, split.train, split.test


def _family(family: str, which: slice, seed: int) -> Split:
    split = protein_split(family, seed)
    return split.stack[which], split.y, split.train, split.test


def _several(families: tuple[str, ...], which: slice, seed: int) -> Split:
    """Superfamilies as they come, not balanced."""
    loaded = load_similarity("scop40")
    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(np.flatnonzero(np.isin(loaded.target, families)))[:MOST]
    stack = loaded.similarities[which][:, rows][:, :, rows]
    first = round(SHARE * rows.size)
    return stack, loaded.target[rows], np.arange(first), np.arange(first, rows.size)


def _linear(name: str, seed: int) -> Split:
    """The linear kernel of standardised columns: positive semidefinite and of low rank."""
    X, y = load_uci(name, return_X_y=True)
    rows = np.random.default_rng([seed, 9]).permutation(len(y))[:200]
    X, y = X[rows], y[rows]
    X = (X - X[:120].mean(axis=0)) / np.maximum(X[:120].std(axis=0), 1e-12)
    return (X @ X.T)[None], y, np.arange(120), np.arange(120, 200)


def _all() -> dict[str, Callable[[int], Split]]:
    sets: dict[str, Callable[[int], Split]] = {name: partial(_single, name) for name in (*UCI, *REAL)}
    every = slice(None)
    for family in FAMILIES:
        sets[f"{family}, three similarities"] = partial(_family, family, every)
        for j, name in enumerate(NAMES):
            sets[f"{family}, {name}"] = partial(_family, family, slice(j, j + 1))
    for count in (4, 8):
        families = FAMILIES[:count]
        sets[f"{count} superfamilies, three similarities"] = partial(_several, families, every)
        for j, name in enumerate(NAMES):
            sets[f"{count} superfamilies, {name}"] = partial(_several, families, slice(j, j + 1))
    for name in ("sonar", "wdbc"):
        sets[f"{name}, linear kernel"] = partial(_linear, name)
    return sets


SIMILARITY_SETS = _all()


SIMILARITY_SPLITS = 20
#: by the rule of the literature, and by the smooth one
METHODS = (
    ("denoise", "classical"),
    ("flip", "classical"),
    ("features", "classical"),
    ("denoise", "smooth"),
    ("flip", "smooth"),
)
QUICK = (
    "sonar",
    "aural_sonar",
    "voting",
    "a.4.1, three similarities",
    "c.47.1, needleman_wunsch",
    "wdbc, linear kernel",
)
SIMILARITY_NOTE = f"""\
Test error in %, mean over {SIMILARITY_SPLITS} splits. *default*: `SimilarityClassifier()`, chooses method and rule
by cross-validation on the training block; *denoise*, *flip*, *features*: told to use that method, the first three with
rule="classical", then with rule="smooth". C = 1 throughout, similarities scaled on the training block. *above*: the
default's error less that of the best of the first three columns on that set; *above any*: less that of the best of
all five, which nobody can know before. *chosen*: what the default took, by number of splits; *gap*: the largest
relative gap of a certificate; *seconds*: of the processor, of one default fit.

Sets: noisy Gaussians of UCI columns (48 + 48 training samples at most), Aural Sonar and Voting, each of eight protein
superfamilies against the rest with three similarities together and one by one (40 + 40 training samples), four and
eight superfamilies as classes ({320} samples, 60 % of them to train on), and linear kernels, which are positive
semidefinite and of low rank.

{{targets}}"""


def _title(method: str, rule: str) -> str:
    return method if method == "features" else f"{method}, {rule}"


def errors_of(split: Split) -> tuple[dict[tuple[str, str], float], dict[str, Any]]:
    """Return the error of every method on one split, and what the default did."""
    stack, y, train, test = split
    block, rows = stack[:, train][:, :, train], stack[:, test][:, :, train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        began = time.process_time()
        default = SimilarityClassifier().fit(block, y[train])
        seconds = time.process_time() - began
        told = {}
        for method, rule in METHODS:
            told[method, rule] = 1.0 - SimilarityClassifier(method=method, rule=rule).fit(
                block, y[train]
            ).score(rows, y[test])
    return told, {
        "error": 1.0 - default.score(rows, y[test]),
        "chosen": _title(default.method_, default.rule_),
        "gap": float(default.certificate_.relative_gap),
        "findings": len(default.findings_),
        "seconds": seconds,
    }


def similarity_row_of(name: str, splits: int) -> dict[str, Any]:
    """Return the row of one set."""
    pairs = [errors_of(SIMILARITY_SETS[name](seed)) for seed in range(splits)]
    told = {pair: 100.0 * float(np.mean([errors[pair] for errors, _ in pairs])) for pair in METHODS}
    mine = [facts for _, facts in pairs]
    error = 100.0 * float(np.mean([facts["error"] for facts in mine]))
    best = min(told[pair] for pair in METHODS[:3])
    chosen = Counter(facts["chosen"] for facts in mine).most_common()
    return {
        "set": name,
        "default": round(error, 1),
        **{
            f"{method}, {rule}" if method != "features" else method: round(told[method, rule], 1)
            for method, rule in METHODS
        },
        "above": round(error - best, 2),
        "above any": round(error - min(told.values()), 2),
        "chosen": "; ".join(f"{what} {count}" for what, count in chosen),
        "gap": max(facts["gap"] for facts in mine),
        "findings": sum(facts["findings"] for facts in mine),
        "seconds": round(float(np.median([facts["seconds"] for facts in mine])), 2),
    }


def similarity_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two splits of six sets, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    rows = []
    for name in QUICK if quick else SIMILARITY_SETS:
        rows.append(similarity_row_of(name, 2 if quick else SIMILARITY_SPLITS))
        print(rows[-1], flush=True)
    show(rows)
    targets = Targets()
    worst = max(rows, key=lambda row: row["above"])
    targets.at_most(
        f"points above the best of denoise, flip and features, at worst ({worst['set']})", worst["above"], 2.0
    )
    targets.at_most("largest relative gap of a default fit", max(row["gap"] for row in rows), 0.01)
    below = np.mean([row["default"] for row in rows])
    best = min(np.mean([row[key] for row in rows]) for key in list(rows[0])[2:7])
    targets.at_most("mean error over all sets, less that of the best single method", float(below - best), 0.5)
    if not quick:
        write_table(
            "similarity_defaults",
            rows,
            "python benchmarks/scales.py similarity",
            SIMILARITY_NOTE.format(targets=targets.text()),
        )


if __name__ == "__main__":
    run_part(main, similarity=similarity_main)
