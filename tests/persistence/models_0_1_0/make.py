"""Made the files beside this one, with kernelweave 0.1.0 (commit 8535c68): ``PYTHONPATH=<checkout>/src python make.py``.

Not run again: the point of the files is that an older version wrote them.
"""

import json
from pathlib import Path

import numpy as np

from kernelweave import (
    KernelFeatures,
    LPBetaClassifier,
    MeanKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    NoisyLabelMKLClassifier,
    SimilarityClassifier,
    norms,
)
from kernelweave import kernels as kw
from kernelweave.persistence import save

HERE = Path(__file__).parent


def matrices(A, X):
    squares = ((A[:, None] - X[None]) ** 2).sum(-1)
    return np.stack([np.exp(-gamma * squares) for gamma in (0.2, 1.0, 3.0)])


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3)).round(2)
    new = rng.normal(size=(5, 3)).round(2)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    three = np.digitize(X[:, 0], [-0.4, 0.4])
    bank = kw.gaussian([0.5, 1.0, 2.0]) + kw.linear()

    streamed = MKLClassifier(
        kw.linear() + kw.polynomial(2), loss="logistic", norm=1.5, storage="stream", solver="lbfgs"
    )
    online = MKLClassifier(bank, norm=norms.Block(1.25), solver="obscure", fit_intercept=False)
    models = {
        "classifier": MKLClassifier(bank).fit(X, y),
        "logistic_ovr": MKLClassifier(bank, loss="logistic", multi_class="ovr", norm=2.0).fit(X, three),
        "centred": MKLClassifier(bank, center=True, normalize="cosine").fit(X, y),
        "precomputed": MKLClassifier("precomputed").fit(matrices(X, X), y),
        "streamed": streamed.fit(X, y),
        "regressor": MKLRegressor(bank).fit(X, X[:, 0]),
        "lp_beta": LPBetaClassifier(bank, n_folds=2).fit(X, three),
        "noisy": NoisyLabelMKLClassifier(bank).fit(X, y),
        "mean": MeanKernelClassifier(bank).fit(X, y),
        "cv": MKLClassifierCV(bank, Cs=[0.1, 1.0], cv=2).fit(X, y),
        "partial": online.partial_fit(X[:12], y[:12], classes=[0, 1]),
        "similarity": SimilarityClassifier().fit(matrices(X, X)[1], y),
        "features": KernelFeatures(bank, rank=5).fit(X),
    }
    values = {"new": new.tolist(), "matrices": matrices(new, X).tolist()}
    for name, model in models.items():
        save(model, HERE / f"{name}.skops")
        samples = (
            matrices(new, X)
            if name == "precomputed"
            else matrices(new, X)[1]
            if name == "similarity"
            else new
        )
        values[name] = (
            model.transform(samples)
            if hasattr(model, "transform")
            else (model.decision_function if hasattr(model, "decision_function") else model.predict)(samples)
        ).tolist()
    (HERE / "values.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main()
