"""Parameters of all estimators: in groups, stored as given, and each of them with an effect."""

from __future__ import annotations

import contextlib
import io
import re
from inspect import signature

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_regressor

import kernelweave
from kernelweave import MKLClassifier, SimilarityClassifier
from kernelweave import kernels as kw
from kernelweave.similarity import similarity_solvers

ESTIMATORS = {
    name: cls
    for name in kernelweave.__all__
    if isinstance(cls := getattr(kernelweave, name), type)
    and issubclass(cls, BaseEstimator)
    and hasattr(cls, "fit")
}
GROUPED = {name: cls for name, cls in ESTIMATORS.items() if hasattr(cls, "parameter_groups")}
BANK = kw.per_view({"a": [0, 1], "b": [2, 3]}, kw.gaussian([1.0, 4.0]) + kw.polynomial([2]))


def test_models_are_in_groups():
    assert set(ESTIMATORS) - set(GROUPED) == {
        "DenoiseSpectrum",
        "FlipSpectrum",
        "ShiftSpectrum",
        "SquareSpectrum",
        "SimilarityFeatures",
        "ViewScaler",
    }
    groups = MKLClassifier.parameter_groups()
    assert list(groups) == ["model", "stopping", "memory and precision", "hardware"]
    assert [name for names in groups.values() for name in names] == list(MKLClassifier().get_params())


def place(cls, name):
    """Return the number of the group of a parameter."""
    return next(number for number, names in enumerate(cls.parameter_groups().values()) if name in names)


@pytest.mark.parametrize("name", GROUPED)
def test_signatures_and_docstrings_follow_the_groups(name):
    cls = GROUPED[name]
    names = list(signature(cls).parameters)
    assert [place(cls, part) for part in names] == sorted(place(cls, part) for part in names)
    section = str(cls.__doc__).partition("Parameters\n    ----------\n")[2].partition("\n    Attributes\n")[0]
    section = section.partition("\n    Examples\n")[0].replace("\\\n", "")
    heads = re.findall(r"(?m)^    (\w[\w, ]*?) ?:", section)
    said = [part for head in heads for part in re.split(r", *", head)]
    assert [part for part in said if part not in names] == []
    places = [place(cls, part) for part in said]
    assert places == sorted(places)
    assert said or "Parameters are those of ``MKL" in str(cls.__doc__)
    if "**others" not in section and said:
        assert sorted(said) == sorted(names)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_are_stored_as_they_were_given(name):
    cls = ESTIMATORS[name]
    given = {part: object() for part in signature(cls).parameters}
    model = cls(**given)
    assert {part: getattr(model, part) for part in given} == given
    assert vars(model).keys() >= given.keys()
    assert list(clone(cls()).get_params()) == list(cls().get_params())


def test_repr_has_a_line_for_every_group_where_it_is_long():
    assert repr(MKLClassifier(n_jobs=2, C=2.0)) == "MKLClassifier(C=2.0, n_jobs=2)"
    long = MKLClassifier(BANK, norm=2, tol=1e-4, max_iter=7, dtype="float32", n_jobs=2)
    lines = repr(long).splitlines()
    assert lines[0].startswith("MKLClassifier(kernels=PerView(")
    assert max(map(len, lines)) <= 80
    assert lines[-3:] == [
        " " * 14 + "tol=0.0001, max_iter=7,",
        " " * 14 + "dtype='float32',",
        " " * 14 + "n_jobs=2)",
    ]
    with config_context(print_changed_only=False):
        assert "device=None" in repr(SimilarityClassifier()) or "random_state=0" in repr(
            SimilarityClassifier()
        )
        assert repr(MKLClassifier()).splitlines()[-1].strip() == "n_jobs=None, device=None)"
    assert len(repr(MKLClassifier([kw.gaussian(float(w)) for w in range(1, 200)]))) < 710
    page = long._repr_html_()
    for line in ("stopping: tol=0.0001, max_iter=7", "memory and precision: dtype=", "hardware: n_jobs=2"):
        assert f"<div>{line}" in page


def test_an_estimator_of_ones_own_shows_its_parameters():
    class Own(MKLClassifier):
        def __init__(self, kernels=None, *, more=1, C=1.0, n_jobs=None):
            super().__init__(kernels, C=C, n_jobs=n_jobs)
            self.more = more

    assert repr(Own(C=2.0, more=3, n_jobs=2)) == "Own(C=2.0, more=3, n_jobs=2)"
    assert clone(Own(more=3)).more == 3


RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 4))
SCORE = X[:, 0] + X[:, 2] + 0.5 * RNG.normal(size=36)
SIMILARITY = np.exp(-np.abs(np.subtract.outer(X[:, 0], X[:, 0]))) + 0.1 * RNG.normal(size=(36, 36))
SIMILARITY = SIMILARITY + SIMILARITY.T
FEW = {"Cs": [0.3, 3.0], "cv": 2}

FIRST_ORDER = {"solver": "svrg", "loss": "logistic"}
#: settings in which a parameter is to have an effect, and a value; one of them has to do so.  ``classes``, ``targets``
#: and ``annotators`` say how many there are
WAYS = {
    "kernels": [({}, kw.linear())],
    "similarity": [({}, lambda x, y: float(np.exp(-np.abs(x - y).sum())))],
    "method": [({}, "confident"), ({}, "flip")],
    "criterion": [({}, "reml")],
    "noise_rate": [({"method": "trimmed"}, 0.3)],
    "suspect_weight": [({"method": "confident"}, 0.0)],
    "confidence": [({"method": "stochastic"}, 0.6)],
    "budget": [({"method": "stochastic"}, 0.2)],
    "exact_set": [({"method": "stochastic", "noise_rate": rate, "C": C}, True) for rate in (0.3, 0.45) for C in (1.0, 30.0)],
    "crowd": [({"annotators": 3}, "dawid_skene")],
    "crowd_rounds": [({"annotators": 3, "crowd": "dawid_skene"}, 3)],
    "loss": [
        ({"method": "corrected"}, "squared"), ({}, "logistic"), ({"method": "eskl"}, "l1"), ({}, "epsilon_insensitive"),
        ({}, "censored_squared"),
    ],
    "quantiles": [({"loss": "quantile"}, 0.9)],
    "norm": [({"method": "confident"}, 2), ({}, 2), ({}, "uniform")],
    "rho": [({"method": "eskl"}, 3.0)],
    "C": [({"method": "confident"}, 0.01), ({"Cs": None}, 0.01), ({}, 0.01)],
    "Cs": [({}, [0.05])],
    "norms": [({}, [2]), ({}, ["uniform"])],
    "nu": [({}, 0.9)],
    "n_folds": [({}, 2)],
    "cv": [({}, 3)],
    "scoring": [({}, "neg_mean_absolute_error"), ({}, "roc_auc"), ({}, "concordance")],
    "probability": [({}, False)],
    "rule": [({"method": "denoise"}, "classical")],
    "rank": [({}, 3)],
    "error": [({}, 0.3)],
    "sampling": [({"rank": 9}, "leverage")],
    "fit_intercept": [({}, False)],
    "normalize": [({}, None), ({}, False)],
    "center": [({}, True), ({}, False)],
    "missing": [({}, "mean")],
    "multi_class": [
        ({"classes": 3}, "ovr"), ({"classes": 3}, "shared"), ({"classes": 3, "method": "eskl"}, "joint"),
    ],
    "multi_output": [({"targets": 2}, "each"), ({"targets": 2}, "shared")],
    "class_weight": [({}, {0: 5.0})],
    "nuisance": [({"criterion": "reml"}, "b")],
    "leave_one_out": [({}, True)],
    "solver": [
        ({}, "silp"), ({"method": "confident"}, "silp"), ({}, "working_set"), ({}, "nesterov"),
        ({"method": "eskl"}, similarity_solvers["eskl"](fast=False, partial_steps=3, uniform_start=True)),
    ],
    "tol": [({}, 0.3), ({}, 1e-9), ({"solver": "svrg"}, 0.3), ({"method": "confident"}, 0.3), ({"method": "eskl"}, 0.5), ({"solver": "nesterov"}, 0.3)],
    "max_rounds": [({"method": "trimmed", "noise_rate": 0.3}, 1)],
    "max_iter": [
        ({"method": "confident"}, 1), ({"method": "eskl"}, 1), ({}, 1), (FIRST_ORDER, 1), ({"solver": "svrg"}, 1),
        ({"norm": "l1"}, 1),
    ],
    "max_seconds": [({"method": "confident"}, 1e-9), ({"method": "eskl"}, 1e-9), ({}, 1e-9)],
    "warm_start": [({"norm": 2}, True), ({}, True), (FIRST_ORDER, True), ({"solver": "nesterov"}, True)],
    "checkpoint": [({}, "file")],
    "callback": [
        ({"method": "confident"}, "called"), ({"method": "eskl"}, "called"), ({}, "called"), (FIRST_ORDER, "called"),
        ({"solver": "svrg"}, "called"), ({"norm": "l1"}, "called"),
    ],
    "verbose": [({"method": "confident"}, 2), ({"method": "eskl"}, 2), ({}, 2)],
    "random_state": [
        ({}, 5), ({"rank": 5}, 5), (FIRST_ORDER, 5), ({"solver": "svrg"}, 5), ({"solver": "svrg", "norm": 2}, 5),
        ({**FIRST_ORDER, "norm": 2}, 5),
    ],
    "storage": [({}, "lazy")],
    "dtype": [({}, "float32")],
    "memory_budget": [({}, 100)],
    "targets_in_batch": [({"criterion": "reml"}, 0)],
    "n_jobs": [({}, 0)],
    "device": [({"criterion": "reml"}, "mps"), ({}, "cpu")],
}  # fmt: skip
#: whose effect may be a refusal; that of batches and threads, which no number shows, is tested elsewhere
REFUSED = {"targets_in_batch", "n_jobs", "memory_budget", "device"}
#: whose effect takes more samples than there are here: of survival only proximal Newton steps draw, from 2,000 rows on
BEYOND = {("MKLSurvival", "random_state")}


OF_EVERY_FIT = ("n_iter_", "solver_", "status_", "bank_bytes_", "C_", "rule_")
OF_THE_LAST = (
    "weights_", "dual_coef_", "intercept_", "starts_", "scale_", "nu_", "best_score_", "scores_", "comparison_",
)  # fmt: skip


def outcome(cls, settings, folder):
    """Return all that can be seen of two fits with these settings, the second of them on the first."""
    settings, called = dict(settings), []
    classes, targets, annotators = (settings.pop(key, 1) for key in ("classes", "targets", "annotators"))
    if settings.get("checkpoint") == "file":
        settings["checkpoint"] = folder / "checkpoint.npz"
    if settings.get("callback") == "called":
        settings["callback"] = lambda row: called.append(row) and None
    samples, y = X, np.digitize(SCORE, [0.0] if classes == 1 else [-0.5, 0.5])
    if getattr(cls, "_task", "") == "survival":
        y = kernelweave.survival(np.exp(SCORE), np.arange(36) % 4 > 0)
    elif is_regressor(cls()):
        y = SCORE if targets == 1 else np.stack([SCORE, X[:, 3]], axis=1)
    if annotators > 1:
        flips = np.random.default_rng(1).random((36, annotators)) < [0.05, 0.3, 0.45]
        y = np.where(flips, 1 - y[:, None], y[:, None])
    if "similarity" in settings or cls is SimilarityClassifier:
        samples = SIMILARITY
    elif "missing" in settings:
        samples = np.where((np.arange(36) % 6 == 0)[:, None] & (np.arange(4) < 2), np.nan, X)
    model, said = cls(**settings), io.StringIO()
    seen = []
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        for _ in range(2):
            try:
                model.fit(samples, y)
            except Exception as error:  # which says no
                return [type(error).__name__, str(error)]
            seen += [getattr(model, name, None) for name in OF_EVERY_FIT]
        seen += [getattr(model, name, None) for name in OF_THE_LAST]
        seen.append(model.transform(X) if hasattr(model, "transform") else None)
        seen.append(model.predict(samples) if hasattr(model, "predict") else None)
    certificate = getattr(model, "certificate_", None)
    return [
        *seen, None if certificate is None else (certificate.primal, certificate.dual), sorted(vars(model)), len(called),
        len(said.getvalue().splitlines()), sorted(file.name for file in folder.iterdir()),
    ]  # fmt: skip


def same(one, other):
    """Return whether two outcomes are the same to the last bit."""
    return len(one) == len(other) and all(
        np.array_equal(a, b)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        else repr(a) == repr(b)
        for a, b in zip(one, other, strict=True)
    )


def small(cls):
    """Return settings that make an estimator quick."""
    names = signature(cls).parameters
    known = {"kernels": BANK, **FEW}
    if "nu" in names:  # one search is not another
        known["n_folds"] = 3
    return {name: value for name, value in known.items() if name in names}


@pytest.fixture(scope="module")
def plain():
    """Outcomes of settings without the parameter that is asked about, by estimator and settings."""
    return {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, one)
        for name, cls in GROUPED.items()
        for one in signature(cls).parameters
        if (name, one) not in BEYOND
    ],
)
def test_no_parameter_is_ignored(name, parameter, plain, tmp_path):
    cls = GROUPED[name]
    names, tried = signature(cls).parameters, []
    if parameter.startswith("crowd"):
        pytest.importorskip("crowdkit")
    for number, (where, value) in enumerate(WAYS[parameter]):
        context = {**small(cls), **where}
        if not {*context} - {"classes", "targets", "annotators"} <= {*names}:
            continue
        if parameter == "missing":
            context["missing"] = "error"
        settings = {**context, parameter: value}
        folder = tmp_path / str(number)
        folder.mkdir()
        known = name, repr(sorted(context.items(), key=lambda item: item[0]))
        if known not in plain:  # the same for many parameters
            (folder / "without").mkdir()
            plain[known] = outcome(cls, context, folder / "without")
            (folder / "without").rmdir()
        before, after = plain[known], outcome(cls, settings, folder)
        refused = isinstance(after[0], str)
        tried.append((where, value, after[:2] if refused else "no difference"))
        if isinstance(before[0], str):  # samples that lack a view are taken where that is asked for
            worked = parameter == "missing" and not refused
        elif refused:
            worked = parameter in REFUSED and parameter in after[1]
        else:
            worked = not same(before, after)
        if worked:
            return
    pytest.fail(f"{name} ignores {parameter}: {tried}")
