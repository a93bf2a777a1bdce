"""Problems of the multiclass benchmark, and a fit of one of them for whichever version of the library is on the path.

``python benchmarks/_multiclass_cases.py mfeat 3`` prints processor seconds of three fits, and the objective; with a
third argument it ends, with SIGXCPU, once that many processor seconds have gone by after the first fit that compiles.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.preprocessing import scale


class Case(NamedTuple):
    """Samples, labels, kernels (None is the default bank), and further parameters of the classifier."""

    X: np.ndarray
    y: np.ndarray
    kernels: Any = None
    parameters: dict[str, Any] = {}  # noqa: RUF012


def case_of(name: str) -> Case:
    """Return a problem by its name."""
    from kernelweave import kernels as kw

    if name in ("iris", "wine"):
        X, y = (load_iris if name == "iris" else load_wine)(return_X_y=True)
        return Case(scale(X), y)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        halves = {"all": range(64), "top": range(32), "bottom": range(32, 64)}
        bank = kw.per_view(halves, kw.gaussian([0.5, 1.0, 2.0, 4.0], relative=True), kw.linear())
        return Case(X[:600] / 16.0, y[:600], bank)
    if name.startswith("mfeat"):
        from kernelweave_studies.datasets import load_mfeat

        data: Any = load_mfeat(download=False)
        rows = np.random.default_rng(0).permutation(2000)[:1000]
        bank = kw.per_view(dict(data.views), kw.gaussian([0.25, 0.5, 1.0, 2.0], relative=True))
        C = float(name.split("C = ")[1]) if "C = " in name else 1.0
        return Case(scale(data.data[rows]), data.target[rows], bank, {"C": C})
    if name.startswith("generated"):
        n = int(name.split()[-1])
        X, y = make_classification(n, 64, n_informative=20, n_classes=10, random_state=0)
        return Case(scale(X), y, kw.gaussian(list(2.0 ** np.arange(-3, 1.5, 0.5)), relative=True))
    if name.startswith("mnist"):
        try:  # where version 0.1.0 has it
            from kernelweave.experiments._obscure_data import mnist_kernels, mnist_split
        except ModuleNotFoundError:
            from kernelweave_studies.obscure.data import mnist_kernels, mnist_split
        from kernelweave.norms import Block

        # as in the study of these images: what does not fit is computed where it is read, in single precision
        split = mnist_split(int(name.split()[1]))
        parameters = {
            "norm": Block(1.25),
            "C": 1.0,
            "solver": "working_set",
            "tol": 1e-2,
            "fit_intercept": False,
        }
        if len(split.y) > 5000:
            parameters |= {"storage": "lazy", "dtype": "float32"}
        return Case(split.X, split.y, mnist_kernels(2, 0.5), parameters)
    raise ValueError(f"no case {name!r}")


def fitted(name: str, repeats: int, patience: float | None = None) -> dict[str, Any]:
    """Median processor seconds of a joint fit, after one that compiles, and what it reached."""
    from kernelweave import MKLClassifier

    small = case_of("iris")
    MKLClassifier().fit(small.X, small.y)
    X, y, bank, parameters = case_of(name)
    if patience is not None:
        limit = int(time.process_time() + patience) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        fit = MKLClassifier(bank, **parameters).fit(X, y)
        seconds.append(time.process_time() - start)
    certificate = fit.certificate_
    return {
        "seconds": statistics.median(seconds),
        "primal": float(certificate.primal),
        "gap": float(certificate.relative_gap),
    }


if __name__ == "__main__":
    print(json.dumps(fitted(sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:]))), flush=True)
