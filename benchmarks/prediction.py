"""Prediction on many new rows: seconds, rows per second and memory, against SVC on the mixed kernel.

Run ``python benchmarks/prediction.py``; ``--quick`` takes a tenth of the rows and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from typing import Any

import numpy as np
from sklearn.svm import SVC

import _measure as memory
from _measure import answer, in_child, in_turns
from _problems import SETTING, Problem, generated, mid
from _report import Targets, machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifier

BLOCK = 125  # rows that SVC is given at a time: 250,000 kernel values, the block that suits our own prediction best
NOTE = f"""{SETTING} The model is `MKLClassifier(kernels.preset("stpmkl"))` on the mid problem, C = 1, l1 norm, to
1e-3; the new rows are training rows with noise. Seconds of `decision_function`, median of {{repeats}}.

*SVC, mixed kernel*: `SVC(kernel="precomputed")` fitted on the same weighted sum of kernels, asked in blocks of {BLOCK}
rows against all training rows, as it has to be; the kernels with weight are computed one by one. *Kernel seconds*:
the part of that which computes kernels; libsvm's own part is the rest. *Extra MB*: most resident memory during the
prediction over that before it. *Same sign*: share of rows on which the decision has the sign of the first line's;
*times the first*: seconds over that line's. Each line is a process of its own.

{{targets}}"""


def setting(small: bool, rows: int) -> tuple[Problem, np.ndarray]:
    """The training problem, and new rows like it: values far out would be quicker or slower to exponentiate."""
    problem = generated(400, 10) if small else mid()
    random = np.random.default_rng(1)
    new = problem.X[random.integers(problem.n, size=rows)] + random.normal(0, 0.3, (rows, problem.X.shape[1]))
    return problem, new


def _timed(decide: Any, repeats: int) -> tuple[dict[str, Any], np.ndarray]:
    """Memory of the first call, seconds of them all."""
    decide(slice(0, 10))
    before = memory.resident()
    resettable = memory.reset_peak()
    values = decide(slice(None))
    extra = memory.peak() - before if resettable else float("nan")
    seconds = in_turns({"it": lambda: decide(slice(None))}, repeats)["it"].seconds
    return {"seconds": seconds, "rows a second": values.size / seconds, "extra MB": extra / 1e6}, values


def ours_case(dtype: str, small: bool, rows: int, repeats: int, signs: str) -> dict[str, Any]:
    """Inside a child: the estimator's own prediction."""
    problem, new = setting(small, rows)
    model = MKLClassifier(problem.kernels, dtype=dtype).fit(problem.X, problem.y)
    facts, values = _timed(lambda part: model.decision_function(new[part]), repeats)
    return {
        "what": f"MKLClassifier, {dtype}",
        **facts,
        "kernel seconds": "",
        "kernels": int(np.count_nonzero(model.weights_)),
        "support": int(model.support_.size),
        "same sign": _same(values, signs, write=dtype == "float64"),
    }


def svc_case(small: bool, rows: int, repeats: int, signs: str) -> dict[str, Any]:
    """Inside a child: a support vector machine on the mixed kernel that the model found."""
    problem, new = setting(small, rows)
    model = MKLClassifier(problem.kernels).fit(problem.X, problem.y)
    kernels = problem.expanded
    in_use = np.flatnonzero(model.weights_)
    in_kernels: list[float] = []

    def mixed(part: np.ndarray) -> np.ndarray:
        # Gaussians have a diagonal of ones: trace normalisation does not change them
        start = time.perf_counter()
        total = np.zeros((len(part), problem.n))
        for j in in_use:
            total += model.weights_[j] * kernels[j](part, problem.X)
        in_kernels.append(time.perf_counter() - start)
        return total

    svc = SVC(kernel="precomputed", C=1.0).fit(mixed(problem.X), problem.y)

    def decide(part: slice) -> np.ndarray:
        in_kernels.clear()
        wanted = new[part]
        return np.concatenate(
            [svc.decision_function(mixed(wanted[top : top + BLOCK])) for top in range(0, len(wanted), BLOCK)]
        )

    facts, values = _timed(decide, repeats)
    return {
        "what": "SVC, mixed kernel",
        **facts,
        "kernel seconds": float(np.sum(in_kernels)),
        "kernels": in_use.size,
        "support": int(svc.support_.size),
        "same sign": _same(values, signs),
    }


def _same(values: np.ndarray, path: str, write: bool = False) -> float:
    """Share of rows with the sign of the first line's decision, which leaves its signs in a file."""
    if write:
        np.save(path, values > 0)
    return float(np.mean((values > 0) == np.load(path)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, nothing is written")
    parser.add_argument("--case", choices=("ours", "svc"), help=argparse.SUPPRESS)
    parser.add_argument("--parameters", type=json.loads, default={}, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin()
    if options.case:
        answer({"ours": ours_case, "svc": svc_case}[options.case](**options.parameters))
        return
    quick = options.quick
    print(machine())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        common = {
            "small": quick,
            "rows": 10_000 if quick else 100_000,
            "repeats": 1 if quick else 3,
            "signs": f"{folder}/signs.npy",
        }
        rows.append(in_child(__file__, "ours", dtype="float64", **common))
        rows.append(in_child(__file__, "ours", dtype="float32", **common))
        rows.append(in_child(__file__, "svc", **common))
    for row in rows:
        row["times the first"] = row["seconds"] / rows[0]["seconds"]
    show(rows)
    targets = Targets()
    targets.at_most(f"extra MB while {common['rows']:,} rows are predicted", rows[0]["extra MB"], 100)
    targets.at_least("same signs as SVC on the same mixed kernel", rows[2]["same sign"], 0.99)
    if not quick:
        note = NOTE.format(repeats=common["repeats"], targets=targets.text())
        write_table("prediction", rows, "python benchmarks/prediction.py", note)


if __name__ == "__main__":
    main()
