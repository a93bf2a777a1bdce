"""Warnings name the line of whoever called, whatever they are about and whichever public method issues them."""

from __future__ import annotations

import ast
import inspect
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave
from kernelweave import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    crowd,
    displays,
    inspection,
    kernels,
    mkl_path,
)
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.report import make_report

PACKAGE = Path(kernelweave.__file__).parent
ESTIMATORS = {
    name: cls
    for name in kernelweave.__all__
    if isinstance(cls := getattr(kernelweave, name), type)
    and issubclass(cls, BaseEstimator)
    and hasattr(cls, "fit")
}
METHODS = (
    "fit",
    "fit_transform",
    "partial_fit",
    "predict",
    "decision_function",
    "predict_proba",
    "transform",
    "score",
)
OWN = (KernelWeaveWarning, DataConversionWarning)


def test_one_function_issues_warnings():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            if ast.unparse(node.func) == "warnings.warn":
                found.add(str(path.relative_to(PACKAGE)))
            # scikit-learn's own warning would name a line of this library
            assert not (
                ast.unparse(node.func) == "column_or_1d" and ast.unparse(node).endswith("warn=True)")
            ), path
    assert found == {"exceptions.py"}


class Sites:
    """Watches from where ``warn_at_caller`` is called."""

    def __init__(self):
        self.reached = set()

    def __call__(self, frame, event, _):
        if event == "call" and frame.f_code.co_name == "warn_at_caller":
            self.reached.add((Path(frame.f_back.f_code.co_filename), frame.f_back.f_lineno))

    def of(self, call, *, expects=None):
        """Call, check where the warnings are, and return their categories."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            before = sys.getprofile()
            sys.setprofile(self)
            try:
                call()
            except ValueError:  # what a method cannot take, it says in words
                pass
            finally:
                sys.setprofile(before)
        own = [one for one in caught if issubclass(one.category, OWN)]
        assert {one.filename for one in own} <= {__file__}, [
            (one.filename, one.lineno, str(one.message)) for one in own
        ]
        if expects is not None:
            assert any(issubclass(one.category, expects) for one in own), f"no warning of {expects}"
        return {one.category for one in own}


RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
SCORE = X[:, 0] + X[:, 2] + 0.5 * RNG.normal(size=40)
Y = (SCORE > 0).astype(int)
VIEWS = {"a": X[:, :2], "b": X[:, 2:]}
#: samples of the second class lack a view
GAPS = {"a": np.where((Y == 1)[:, None] & (np.arange(40) % 4 > 0)[:, None], np.nan, X[:, :2]), "b": X[:, 2:]}
SIMILARITY = np.exp(-np.abs(np.subtract.outer(X[:, 0], X[:, 0]))) + 0.1 * RNG.normal(size=(40, 40))
BANK = kernels.gaussian([1.0, 3.0])
FEW = {"Cs": [1e-4, 1e-3], "cv": 2, "n_folds": 2, "kernels": BANK}
GROUPS = kernels.from_groups({"one": ["a", "b", "gone"], "two": ["c", "d"]}, kernels.linear(), min_size=2)


def made(cls, **settings):
    """Return an estimator with those settings that it has."""
    names = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in {**FEW, **settings}.items() if name in names})


def targets_of(cls):
    """Return targets that an estimator takes."""
    if getattr(cls, "_task", "") == "survival":
        return kernelweave.survival(np.arange(40.0) % 23, Y[0] == Y)
    return SCORE if is_regressor(cls()) else Y


def fits(cls, folder):
    """Yield estimators, samples and targets with something to warn of."""
    import pandas as pd

    y = targets_of(cls)
    if cls.__name__ in (
        "SimilarityClassifier",
        "DenoiseSpectrum",
        "FlipSpectrum",
        "ShiftSpectrum",
        "SquareSpectrum",
        "SimilarityFeatures",
    ):
        symmetric = SIMILARITY + SIMILARITY.T
        yield made(cls), SIMILARITY, y
        yield made(cls, method="eskl", max_iter=1, tol=1e-9), symmetric, y
        yield made(cls), symmetric, y[:, None]
        yield made(cls, method="eskl", C=1e-4), symmetric, np.r_[np.zeros(36), np.ones(4)]
        return
    if cls.__name__ == "ViewScaler":
        yield cls(), GAPS, y
        return
    yield made(cls), X * [1.0, 1.0, 1.0, 1e6], y
    yield made(cls, tol=1e-12, max_iter=1, method="confident"), X, y
    yield made(cls, max_seconds=1e-9), X, y
    yield made(cls, missing="mean"), GAPS, y
    if getattr(cls, "_task", "") == "survival":
        yield made(cls), X, kernelweave.survival(np.arange(40.0), np.isin(np.arange(40), (3, 9, 20, 30)))
        return
    yield made(cls), X, y[:, None]
    rare = np.r_[np.zeros(36), np.ones(4)]
    yield made(cls, C=1e-4, method="confident"), X, rare + 0.0 if is_regressor(cls()) else rare.astype(int)
    yield made(cls, kernels=GROUPS), pd.DataFrame(X, columns=list("abcd")), y
    yield made(cls, kernels=kernels.linear() + BANK, center=True), X + 1e7, y
    yield made(cls, checkpoint=folder / "gone" / "fit.npz"), X, y
    for criterion in ("loo", "reml"):
        yield made(cls, kernels=kernels.linear() + BANK, criterion=criterion), np.repeat(X[:20], 2, axis=0), y
        yield made(cls, kernels=kernels.linear() + BANK, criterion=criterion, center=False), X + 1e9, y


@pytest.mark.parametrize(
    ("name", "method"), [(n, m) for n, cls in ESTIMATORS.items() for m in METHODS if hasattr(cls, m)]
)
def test_methods_of_estimators(name, method, tmp_path):
    cls, sites = ESTIMATORS[name], Sites()
    y = targets_of(cls)
    categories = set()
    if method in ("fit", "fit_transform"):
        for number, (model, samples, targets) in enumerate(fits(cls, tmp_path)):
            # every other one through a pipeline: another line of this file, and frames of scikit-learn between
            caller = make_pipeline(clone(model)) if number % 2 else model
            categories |= sites.of(lambda c=caller, s=samples, t=targets: getattr(c, method)(s, t))
    elif "missing" in inspect.signature(cls).parameters:
        loss = {"regression": "squared", "survival": "cox"}.get(cls._task, "logistic")
        model = made(cls, missing="mean", kernels=BANK, loss=loss, method="confident")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveWarning)
            model.fit(VIEWS, y)
        gone = {"a": np.where(np.arange(40)[:, None] < 30, np.nan, X[:, :2]), "b": X[:, 2:]}
        call = {"score": lambda: model.score(gone, y), "partial_fit": lambda: model.partial_fit(VIEWS, y)}
        if hasattr(model, method):
            categories |= sites.of(call.get(method, lambda: getattr(model, method)(gone)))
            assert categories, f"{name}.{method} had something to warn of"
        return
    if name not in ("ViewScaler", "SimilarityFeatures") and method.startswith("fit"):
        assert categories, f"{name}.{method} had something to warn of"


def test_partial_fit(tmp_path):
    norm = kernelweave.norms.Block(1.5)
    model = MKLClassifier(BANK, norm=norm, solver="obscure", fit_intercept=False)
    Sites().of(
        lambda: model.partial_fit(X * [1, 1, 1, 1e6], Y[:, None], classes=[0, 1]),
        expects=DataConversionWarning,
    )


def test_calls_through_scikit_learn():
    search = GridSearchCV(MKLClassifier(BANK, max_iter=1, tol=1e-12), {"C": [1.0, 2.0]}, cv=2)
    fit = inspect.unwrap(GridSearchCV.fit)  # where coverage is measured, a function of the tests is around it
    Sites().of(lambda: fit(search, X, Y), expects=KernelWeaveWarning)
    pipe = make_pipeline(StandardScaler(), MKLClassifierCV(BANK, Cs=[1e-4, 1e-3], cv=2))
    Sites().of(lambda: pipe.fit(X, Y), expects=KernelWeaveWarning)


#: public functions that fit or look at samples: what is called, by the names of their parameters
GIVEN = {
    "X": X, "y": Y, "view": "b", "n_folds": 2, "n_refits": 2, "n_permutations": 2, "factors": (1.0,), "n_repeats": 1,
    "background": X[:5], "parts": X[:, :2], "similarities": SIMILARITY, "similarity": SIMILARITY, "kernel": 0,
    "risk": np.arange(40.0),
}  # fmt: skip
#: those that need something else, or have no samples
ELSEWHERE = {
    "risk_groups",
    "add_view",
    "split_r2",
    "r2_split",
    "from_path",
    "from_stability",
    "from_similarity",
    "from_estimators",
}


def functions():
    """Yield the public functions that take a model, and how displays are made from one."""
    for name in inspection.__all__:
        if inspect.isfunction(function := getattr(inspection, name)):
            yield name, function
    yield "make_report", make_report
    for name in displays.__all__:
        made_from = getattr(getattr(displays, name), "from_estimator", None)
        if made_from is not None:
            yield f"{name}.from_estimator", made_from


@pytest.mark.parametrize(("name", "function"), [pair for pair in functions() if pair[0] not in ELSEWHERE])
def test_public_functions(name, function):
    bank = kernels.per_view({"a": [0, 1], "b": [2, 3]}, BANK)
    model = MKLClassifierCV(bank, norm=2, Cs=[1e-4, 1e-3], cv=2, max_iter=1, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        model.fit(X, Y)
    parameters = inspect.signature(function).parameters
    given = {key: value for key, value in GIVEN.items() if key in parameters}
    given |= {key: model for key in ("model", "estimator") if key in parameters}
    missing = [key for key, one in parameters.items() if one.default is one.empty and key not in given]
    assert not [key for key in missing if parameters[key].kind not in (2, 4)], f"{name} needs {missing}"
    categories = Sites().of(lambda: function(**given))
    if name in ("drop_view", "weight_stability", "view_p_values", "view_subsets"):
        assert categories, f"{name} fits again, and had something to warn of"


def test_paths_and_crowds():
    sites = Sites()
    sites.of(lambda: mkl_path(X, Y, BANK, Cs=[1.0, 2.0], max_iter=1, tol=1e-12), expects=KernelWeaveWarning)
    votes = np.stack([Y, 1 - Y, np.full(40, -1)], axis=1)
    sites.of(lambda: crowd.aggregate(votes), expects=KernelWeaveWarning)


def sites_of(path):
    """Return the places in a module that issue warnings: the lines from the first to the last of each call."""
    tree = ast.parse(path.read_text())
    calls = [
        n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "warn_at_caller"
    ]
    return [(path, range(call.lineno, (call.end_lineno or 0) + 1)) for call in calls]


#: issued where something is broken that these tests do not break, or where a package is needed
TESTED_ELSEWHERE = {
    "compiled.py": "a damaged cache (faults)",
    "_tables.py": "AnnData (views)",
    "_search.py": "time",
}


def test_every_place_that_warns_is_reached(tmp_path):
    sites = Sites()
    for name in ("MKLClassifierCV", "MKLRegressorCV", "SimilarityClassifier"):
        for model, samples, targets in fits(ESTIMATORS[name], tmp_path):
            sites.of(lambda m=model, s=samples, t=targets: m.fit(s, t))
    model = MKLRegressor(BANK, missing="mean").fit(VIEWS, SCORE)
    sites.of(lambda: model.predict({"a": np.full((40, 2), np.nan), "b": X[:, 2:]}))
    sites.of(lambda: mkl_path(X, Y, BANK, Cs=[1.0, 2.0], max_iter=1, tol=1e-12))
    sites.of(lambda: crowd.aggregate(np.stack([Y, 1 - Y, np.full(40, -1)], axis=1)))
    mean = MKLClassifier(BANK, norm="uniform").fit(X, Y)
    sites.of(lambda: inspection.weight_stability(mean, X, Y, n_refits=2))
    sites.of(lambda: MKLClassifier(kernels.rational_quadratic(1e6), center=True, storage="dense").fit(X, Y))
    sites.of(lambda: MKLRegressor(BANK, leave_one_out=True, max_seconds=1e-9).fit(X, SCORE))
    folder = tmp_path / "soon gone"
    folder.mkdir()
    online = MKLClassifier(
        BANK, checkpoint=folder / "fit.npz", callback=lambda row: shutil.rmtree(folder, ignore_errors=True)
    )
    sites.of(lambda: online.fit(X, Y))
    unreached = [
        f"{path.name}:{lines[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for path, lines in sites_of(path)
        if path.name not in TESTED_ELSEWHERE
        and not any(where == path and line in lines for where, line in sites.reached)
    ]
    assert not unreached
