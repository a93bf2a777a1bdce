"""What scaling is worth, and what is said where it was left out: raw and scaled columns under the default call.

Run ``python benchmarks/scales.py``; ``--quick`` takes one split of two sets and writes nothing.  Data come from
scikit-learn and from the folder named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _report import Targets, machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifierCV
from kernelweave.banks import scales
from kernelweave.exceptions import ScaleWarning
from kernelweave_studies.datasets import load_uci

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


if __name__ == "__main__":
    main()
