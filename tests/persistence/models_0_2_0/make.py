"""Made the files beside this one, with kernelweave 0.2.0 (commit 6b2dcb6): ``PYTHONPATH=<checkout>/src python make.py``.

Not run again: the point of the files is that an older version wrote them.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    KernelFeatures,
    LPBetaClassifier,
    MeanKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    SimilarityClassifier,
    Views,
    losses,
    norms,
)
from kernelweave import kernels as kw
from kernelweave.persistence import save

HERE = Path(__file__).parent


def matrices(A, X):
    squares = ((A[:, None] - X[None]) ** 2).sum(-1)
    return np.stack([np.exp(-gamma * squares) for gamma in (0.2, 1.0, 3.0)])


def every_kernel():
    """A bank with a kernel of every kind that takes rows of numbers."""
    near = kw.gaussian([1.0])
    return (
        near
        + kw.laplacian([1.0])
        + kw.linear()
        + kw.polynomial(2)
        + kw.cosine()
        + kw.matern(1.0)
        + kw.rational_quadratic(1.0)
        + kw.periodic(1.0)
        + kw.nystroem(near, 6)
        + kw.random_fourier(1.0, 8)
        + kw.per_feature(near)
    )


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3)).round(2)
    new = rng.normal(size=(5, 3)).round(2)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    three = np.digitize(X[:, 0], [-0.4, 0.4])
    bank = kw.gaussian([0.5, 1.0, 2.0]) + kw.linear()
    gaps = X.copy()
    gaps[:6, :2] = np.nan
    of_views = kw.linear() + kw.gaussian([1.0])
    elastic = MKLClassifier(bank, norm=norms.ElasticNet(0.5), loss=losses.HuberHinge(0.3))

    streamed = MKLClassifier(
        kw.linear() + kw.polynomial(2), loss="logistic", norm=1.5, storage="stream", solver="lbfgs"
    )
    online = MKLClassifier(bank, norm=norms.Block(1.25), solver="obscure", fit_intercept=False)
    models = {
        "classifier": MKLClassifier(bank).fit(X, y),
        "kernels": MKLClassifier(every_kernel(), norm=2.0).fit(X, y),
        "logistic_ovr": MKLClassifier(bank, loss="logistic", multi_class="ovr", norm=2.0).fit(X, three),
        "centred": MKLClassifier(bank, center=True, normalize="cosine").fit(X, y),
        "precomputed": MKLClassifier("precomputed").fit(matrices(X, X), y),
        "streamed": streamed.fit(X, y),
        "elastic": elastic.fit(X, y),
        "entropy": MKLClassifier(bank, norm=norms.Entropy(0.1), loss="squared_hinge").fit(X, y),
        "regressor": MKLRegressor(bank, loss="epsilon_insensitive").fit(X, X[:, 0]),
        "evidence": MKLRegressorCV(bank, criterion="loo").fit(
            X, X[:, :2] @ np.array([[1.0, 0.3], [0.2, 1.0]])
        ),
        "lp_beta": LPBetaClassifier(bank, n_folds=2).fit(X, three),
        "noisy": NoisyLabelMKLClassifier(bank).fit(X, y),
        "mean": MeanKernelClassifier(bank).fit(X, y),
        "cv": MKLClassifierCV(bank, Cs=[0.1, 1.0], cv=2).fit(X, y),
        "partial": online.partial_fit(X[:12], y[:12], classes=[0, 1]),
        "missing": MKLClassifier(of_views, missing="predict").fit(
            Views({"a": gaps[:, :2], "b": gaps[:, 2:]}), y
        ),
        "similarity": SimilarityClassifier(method="eskl", loss="l1", tol=0.1).fit(matrices(X, X)[1], y),
        "features": KernelFeatures(bank, rank=5).fit(X),
        "pipeline": make_pipeline(StandardScaler(), MKLClassifier(bank)).fit(X, y),
        "search": GridSearchCV(MKLClassifier(bank), {"C": [0.1, 1.0]}, cv=2).fit(X, y),
    }
    samples = {"precomputed": matrices(new, X), "similarity": matrices(new, X)[1]}
    samples["missing"] = Views({"a": new[:, :2], "b": new[:, 2:]})
    values = {"new": new.tolist(), "matrices": matrices(new, X).tolist()}
    for name, model in models.items():
        save(model, HERE / f"{name}.skops")
        given = samples.get(name, new)
        methods = ("decision_function", "predict", "transform")
        answer = next(getattr(model, method) for method in methods if hasattr(model, method))
        values[name] = answer(given).tolist()
    (HERE / "values.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main()
