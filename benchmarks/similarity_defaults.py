"""Is ``SimilarityClassifier()`` a safe choice?  Its error beside those of every method it could have been told to use.

Run ``python benchmarks/similarity_defaults.py``; ``--quick`` takes two splits of six sets and writes nothing.  The data
come from the folder named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

from _report import machine, show, write_table
from _similarity_sets import SETS, Split
from _targets import Targets
from _threads import pin
from kernelweave import SimilarityClassifier

SPLITS = 20
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
NOTE = f"""Test error in %, mean over {SPLITS} splits. *default*: `SimilarityClassifier()`, chooses method and rule
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


def row_of(name: str, splits: int) -> dict[str, Any]:
    """Return the row of one set."""
    pairs = [errors_of(SETS[name](seed)) for seed in range(splits)]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two splits of six sets, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    rows = []
    for name in QUICK if quick else SETS:
        rows.append(row_of(name, 2 if quick else SPLITS))
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
            "python benchmarks/similarity_defaults.py",
            NOTE.format(targets=targets.text()),
        )


if __name__ == "__main__":
    main()
