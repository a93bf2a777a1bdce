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
    if name.startswith("folds"):
        return folds(name)
    if name.startswith("leaves"):
        rng, own = np.random.default_rng(1), np.repeat(np.arange(100), 16)
        views = [size * rng.standard_normal((100, 64))[own] for size in (0.45, 0.35, 0.3)]
        X = np.hstack([view + 0.8 * rng.standard_normal(view.shape) for view in views])
        parts = {f"view {v}": range(64 * v, 64 * (v + 1)) for v in range(3)}
        bank = kw.per_view(parts, kw.gaussian([0.5, 1.0, 2.0, 4.0], relative=True))
        return Case(X, own, bank, {"C": float(name.split("C = ")[1]) if "C = " in name else 1.0})
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


def folds(name: str) -> Case:
    """350 samples of 27 classes in 12 views that have most of their variation in common, as of protein folds."""
    from kernelweave import kernels as kw

    rng, n, k = np.random.default_rng(0), 350, 27
    own = np.concatenate(
        [np.repeat(np.arange(k), 6), rng.choice(k, n - 6 * k, p=rng.dirichlet(np.full(k, 3.0)))]
    )
    centres, common = rng.standard_normal((k, 6)), rng.standard_normal((n, 6))
    X = np.empty((n, 240))
    for v in range(12):
        latent = centres[own] + 1.5 * (0.95 * common + 0.31 * rng.standard_normal((n, 6)))
        X[:, 20 * v : 20 * (v + 1)] = latent @ rng.standard_normal((6, 20)) / np.sqrt(6)
    X += 0.02 * rng.standard_normal(X.shape)
    again = rng.random(n) < 0.4
    own = np.where(again, rng.permutation(own), own)
    parts = {f"view {v}": range(20 * v, 20 * (v + 1)) for v in range(12)}
    bank = kw.per_view(parts, kw.gaussian([0.5, 1.0, 2.0, 4.0], relative=True))
    return Case(X, own, bank, {"C": float(name.split("C = ")[1]) if "C = " in name else 6.0})


def fitted(name: str, repeats: int, patience: float | None = None) -> dict[str, Any]:
    """Median processor seconds of a joint fit, after one that compiles, and what it reached."""
    from kernelweave import MKLClassifier, MKLClassifierCV

    small = case_of("iris")
    MKLClassifier().fit(small.X, small.y)
    X, y, bank, parameters = case_of(name)
    if patience is not None:
        limit = int(time.process_time() + patience) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    seconds, estimator = [], MKLClassifier(bank, **parameters)
    if name.endswith("search"):
        estimator = MKLClassifierCV(bank)
    for _ in range(repeats):
        start = time.process_time()
        fit = estimator.fit(X, y)
        seconds.append(time.process_time() - start)
    certificate = fit.certificate_
    return {
        "seconds": statistics.median(seconds),
        "primal": float(certificate.primal),
        "gap": float(certificate.relative_gap),
    }


if __name__ == "__main__":
    print(json.dumps(fitted(sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:]))), flush=True)
