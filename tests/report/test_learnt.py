"""Weights that nobody learnt are no finding: report, command line, notebook and pictures ask the fitted model."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

import kernelweave
from kernelweave import (
    BestKernelClassifier,
    LPBetaClassifier,
    MKLClassifier,
    MKLRegressor,
    MKLRegressorCV,
    MKLSurvival,
    NoisyLabelMKLClassifier,
    SimilarityClassifier,
    survival,
)
from kernelweave import kernels as kw
from kernelweave.cli import main
from kernelweave.displays import WeightsDisplay
from kernelweave.estimators.fitted import weight_origin
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.inspection import weight_stability
from kernelweave.inspection.stability import WeightStability
from kernelweave.norms import Fixed, registry
from kernelweave.persistence import save
from kernelweave.report import make_report

RNG = np.random.default_rng(3)
N = 48
X = RNG.normal(size=(N, 6))
Y = np.where(X[:, 0] + 0.5 * X[:, 2] + 0.4 * RNG.normal(size=N) > 0, "a", "b")
TARGET = X[:, 0] + 0.5 * X[:, 2] + 0.2 * RNG.normal(size=N)
VIEWS = {"one": [0, 1], "two": [2, 3], "three": [4, 5]}
#: eighteen kernels: more than the picture has rows
BANK = kw.per_view(VIEWS, kw.gaussian([0.5, 1.0, 2.0, 4.0, 8.0]) + kw.linear())
SMALL = kw.per_view(VIEWS, kw.linear())
#: what must not be said of weights that were not learnt
CLAIMS = (
    r"with the most (learnt )?weight",
    "knowledge of which kernels were needed",
    r"95 % of",
    "selected",
    r"\d+ others",
    "How the weights depend on C",
    "Which views and kernels matter",
)


def text_of(page):
    page = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def inspected(model, folder, *more):
    """What ``kernelweave inspect`` says of a model."""
    save(model, folder / "model.skops", note={"target": "t", "rows": N})
    done = CliRunner().invoke(main, ["inspect", str(folder / "model.skops"), *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def estimators():
    """Every estimator of the package that can be fitted to kernels and has weights."""
    for name in kernelweave.__all__:
        found = getattr(kernelweave, name)
        if isinstance(found, type) and hasattr(found, "fit") and hasattr(found, "predict"):
            yield found


NOT_LEARNT = [
    *(name for name in registry if not registry[name]().allowed_weights),
    Fixed(np.arange(1.0, 19.0) / 171.0),
]


@pytest.mark.parametrize("norm", NOT_LEARNT, ids=lambda norm: getattr(norm, "label", norm))
def test_no_finding_about_weights_that_were_not_learnt(norm, tmp_path):
    clf = MKLClassifier(BANK, norm=norm).fit(X, Y)
    origin = weight_origin(clf)
    assert origin.nothing
    page = text_of(make_report(clf, X, Y, n_folds=2, n_repeats=1))
    assert page.count(origin.sentence) >= 2
    for claim in CLAIMS:
        assert not re.search(claim, page), claim
    assert "none of it learnt" in page
    assert "p-value" in page  # which is about the decisions, whoever set the weights
    assert "no weights" not in page
    assert str(clf.certificate_)[1:] in page  # the proof, word for word
    told = inspected(clf, tmp_path)
    assert origin.sentence in told
    assert origin.sentence in html.unescape(clf._html_repr())


def test_uniform_does_not_claim_the_bound_of_free_weights():
    """A fit under another norm is below the bound that the page of the mean kernel shows."""
    mean = MKLClassifier(BANK, norm="uniform").fit(X, Y)
    free = {norm: MKLClassifier(BANK, norm=norm).fit(X, Y).certificate_.primal for norm in ("l1", 2)}
    assert max(free.values()) < mean.certificate_.dual
    page = text_of(make_report(mean, X, Y, n_folds=2, n_repeats=1))
    proof = re.search(r"The objective at this C is .*? of this problem", page)[0]
    assert "with these weights, no function on these kernels" in proof
    assert not re.search(r"no (non-negative )?weights", page)


@pytest.mark.parametrize("norm", [name for name in registry if registry[name]().allowed_weights])
def test_learnt_weights_are_a_finding(norm, tmp_path):
    clf = MKLClassifier(SMALL, norm=norm).fit(X, Y)
    assert weight_origin(clf).sentence == ""
    assert weight_origin(clf).learnt.all()
    assert "not learnt" not in inspected(clf, tmp_path)
    assert "not learnt" not in clf._html_repr()


def test_needed_kernels_are_known_only_where_others_were_left_out():
    adds = "knowledge of which kernels were needed"
    dense = MKLClassifier(SMALL, norm=2).fit(X, Y)
    assert np.all(dense.weights_ > 0)
    assert adds not in text_of(make_report(dense, X, Y, n_folds=2, n_repeats=1))


def test_kernels_that_always_count_are_no_finding():
    always = kw.always(kw.per_view({"age": [5]}, kw.linear()), 50.0)
    clf = MKLClassifier(always + SMALL).fit(X, Y)
    origin = weight_origin(clf)
    assert origin.learnt.tolist() == [False, True, True, True]
    page = text_of(make_report(clf, X, Y, n_folds=2, n_repeats=1))
    assert "The weight of 1 kernel was given, not learnt" in page
    heaviest = re.search(r"with the most learnt weight is “(\w+)”, with (\d+) %", page)
    shares = clf.weights_[1:] / clf.weights_[1:].sum()
    assert heaviest[1] == ["one", "two", "three"][int(np.argmax(shares))]
    assert int(heaviest[2]) == pytest.approx(100 * shares.max(), abs=0.51)
    assert "linear on age age linear given given given" in page
    assert clf.norm_name_ == "l1 + 1 fixed"


def test_stability_of_some_kernels():
    weights = np.array([[0.5, 0.25, 0.25, 0.0], [0.5, 0.1, 0.2, 0.2]])
    names = np.array(["k0", "k1", "k2", "k3"], dtype=object)
    views = np.array(["x", "y", "y", "z"], dtype=object)
    by_view = np.array([[0.5, 0.5, 0.0], [0.5, 0.3, 0.2]])
    whole = WeightStability(
        weights, weights[0], names, views, names, np.zeros(2), "folds", 0.95, 1e-3, by_view, by_view[0]
    )
    some = whole.among(np.array([False, True, True, True]))
    np.testing.assert_allclose(some.weights, [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4]])
    np.testing.assert_allclose(some.view_weights, [[1.0, 0.0], [0.6, 0.4]])
    assert some.view_names == ["y", "z"]
    # a view of which one kernel is given: the weight of the rest is that of its kernels
    mixed = whole.among(np.array([True, False, True, True]))
    assert mixed.view_weights is None
    np.testing.assert_allclose(mixed.by_view()["weight"], [2 / 3, 1 / 3, 0.0])
    assert whole.among(np.ones(4, dtype=bool)) is whole


def test_stability_of_weights_that_nobody_learnt_is_a_warning():
    with pytest.warns(KernelWeaveWarning, match="The weights were not learnt: all kernels have the same one"):
        weight_stability(MKLClassifier(SMALL, norm="uniform"), X, Y, n_refits=2, n_folds=2)


LEARNT_BY = {
    "MKLClassifier", "MKLClassifierCV", "MKLRegressor", "MKLRegressorCV", "LPBetaClassifier", "MKLSurvival", "MKLSurvivalCV",
}  # fmt: skip


@pytest.mark.parametrize("kind", list(estimators()), ids=lambda kind: kind.__name__)
def test_every_estimator_says_whether_it_learnt_its_weights(kind, tmp_path):
    """A new estimator is in this list the day it appears; what it fits is what it is said to have fitted."""
    if kind is SimilarityClassifier:
        kernel = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 6)
        model = kind(method="denoise").fit(kernel, Y)
        assert weight_origin(model).sentence == "The weights were not learnt: all similarities count alike."
        told = inspected(model, tmp_path)
        assert "norm none (method denoise), loss hinge, C = 1" in told
        assert "with this kernel, no function on it" in told
        return
    regression = issubclass(kind, MKLRegressor)
    if issubclass(kind, MKLSurvival):
        y = survival(np.exp(TARGET), np.arange(len(X)) % 4 > 0)
    else:
        y = TARGET if regression else Y
    model = kind(SMALL).fit(X, y)
    origin = weight_origin(model)
    assert origin.nothing == (kind.__name__ not in LEARNT_BY)
    ax = Figure().subplots()
    WeightsDisplay.from_estimator(model, ax=ax)
    assert ("not learnt" in ax.get_title()) == origin.nothing
    if kind is LPBetaClassifier:  # it has no certificate
        return
    facts = json.loads(inspected(model, tmp_path, "--json"))
    assert facts["loss"] == (model.loss_.registered_as or repr(model.loss_))
    assert facts["solver"] == model.solver_
    assert facts["weights_learnt"] == (0 if origin.nothing else 3)
    if origin.nothing:
        assert facts["norm"] in ("uniform", "fixed")
        assert "with these weights, no" in facts["certificate_in_words"]


def test_the_command_line_says_what_was_fitted(tmp_path):
    """The method for wrong labels has a loss and weights of its own, whatever its parameters say."""
    clf = NoisyLabelMKLClassifier(SMALL, loss="logistic", norm="l1").fit(X, Y)
    told = inspected(clf, tmp_path)
    assert "norm fixed, loss squared" in told
    assert "logistic" not in told
    trimmed = NoisyLabelMKLClassifier(SMALL, method="trimmed", loss="logistic").fit(X, Y)
    assert "norm l1, loss hinge" in inspected(trimmed, tmp_path)
    reg = MKLRegressorCV(SMALL, criterion="reml").fit(X, TARGET)
    assert "norm none (weights by reml), loss squared" in inspected(reg, tmp_path)
    given = MKLClassifier(SMALL, norm=Fixed([0.2, 0.3, 0.5])).fit(X, Y)
    assert "norm fixed, loss hinge" in inspected(given, tmp_path)
    three = np.array(["u", "v", "w"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    assert "loss multiclass_hinge" in inspected(MKLClassifier(SMALL).fit(X, three), tmp_path)


def test_the_rule_is_named():
    best = BestKernelClassifier(SMALL).fit(X, Y)
    assert "the kernel that does best in cross-validation" in weight_origin(best).sentence


def test_weights_by_evidence_are_called_stationary():
    reg = MKLRegressorCV(SMALL, criterion="reml").fit(X, TARGET)
    page = text_of(make_report(reg, X, TARGET, n_folds=2, n_repeats=1))
    assert "known to be stationary, not to be the best" in page
    assert "with the C that reml chose, with these weights, no function" in page


def test_models_of_earlier_versions_know_it_too():
    for model, learnt in (
        (MKLClassifier(SMALL, norm="uniform"), [0, 0, 0]),
        (MKLClassifier(SMALL), [1, 1, 1]),
        (BestKernelClassifier(SMALL), [0, 0, 0]),
        (NoisyLabelMKLClassifier(SMALL), [0, 0, 0]),
        (MKLClassifier(kw.always(kw.linear(), 1.0) + SMALL), [0, 1, 1, 1]),
    ):
        model.fit(X, Y)
        sentence, state = weight_origin(model).sentence, model.__getstate__()
        for name in ("learnt_kernels_", "weights_rule_", "norm_name_"):
            state.pop(name)
        old = type(model).__new__(type(model))
        old.__setstate__(state)
        assert weight_origin(old).learnt.tolist() == [bool(one) for one in learnt]
        assert weight_origin(old).sentence == sentence
