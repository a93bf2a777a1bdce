"""Kernels that do not suit the scales of the samples: a warning at the caller's line, once, and a finding."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelweave import (
    LPBetaClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    mkl_path,
)
from kernelweave import kernels as kw
from kernelweave.banks import as_rows
from kernelweave.banks.scales import findings_of_kernels, findings_of_matrices
from kernelweave.exceptions import DegenerateModelWarning, ScaleWarning
from kernelweave.kernels import Schema, expand_kernels, resolve_kernels


def raw_table(n=60, seed=0):
    """Two classes told apart by the second column, which is a thousand times smaller than the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1000.0, 1.0, 1.0]
    return X, np.where(X[:, 1] > 0, 1, 0)


def said(estimator, X, y):
    """Fit; return what was said of the scales, each with the file it points at, and the fitted estimator."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = estimator.fit(X, y)
    of_scales = [one for one in caught if issubclass(one.category, ScaleWarning)]
    assert all(one.filename == __file__ for one in of_scales)
    return [str(one.message) for one in of_scales], fitted


def findings(spec, X, center=False):
    """Return what is found on resolved kernels."""
    return findings_of_kernels(resolve_kernels(expand_kernels(spec, Schema.of(X)), X), X, center)


@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifier(),
        MKLClassifier(multi_class="ovr"),
        MKLClassifierCV(Cs=[0.1, 1.0], cv=3),
        MKLRegressor(),
        MKLRegressorCV(Cs=[0.1, 1.0], cv=3),
        MKLRegressorCV(criterion="reml"),
        NoisyLabelMKLClassifier(),
        NoisyLabelMKLClassifier(method="trimmed"),
        LPBetaClassifier(kw.gaussian([1.0, 2.0], relative=True)),
    ],
    ids=str,
)
def test_raw_columns_are_one_warning_at_the_callers_line_and_a_finding(estimator):
    X, _ = raw_table(90)
    y = np.digitize(X[:, 1], [-0.5, 0.5])  # three classes: not once per class, nor per fold
    sentences, fitted = said(estimator, X, y)
    assert len(sentences) == 1
    assert sentences[0] == fitted.findings_[0]
    assert "StandardScaler" in sentences[0]
    assert "relative=True alone does not help" in sentences[0]
    sentences, fitted = said(clone(estimator), StandardScaler().fit_transform(X), y)
    assert sentences == []
    assert not any("scale" in sentence for sentence in fitted.findings_)


def test_the_numbers_of_the_sentence():
    X, y = raw_table()
    table = pd.DataFrame(X, columns=["income", "age", "dose"])
    (sentence,), _ = said(MKLClassifier(), table, y)
    deviations = X.std(axis=0)
    least = int(np.argmin(deviations))
    assert f"'{table.columns[least]}' ({deviations[least]:.3g}) to 'income' ({deviations[0]:.3g})" in sentence
    assert f"a factor of {deviations[0] / deviations[least]:,.0f}: 2 of 3 columns" in sentence
    # columns without names go by their numbers, also where there are more of them than samples
    wide = np.hstack([np.random.default_rng(0).normal(size=(60, 70)), X[:, :1]])
    sentence = findings(kw.gaussian(1.0, relative=True), wide)[-1]
    assert f"to column 70 ({deviations[0]:.3g})" in sentence


def test_warnings_reach_the_line_that_calls_a_pipeline_and_a_path():
    X, y = raw_table()
    assert len(said(make_pipeline(MinMaxScaler((0, 1)), MKLClassifier()), X, y)[0]) == 0
    sentences, _ = said(make_pipeline("passthrough", MKLClassifier()), X, y)
    assert len(sentences) == 1
    with pytest.warns(ScaleWarning) as caught:
        mkl_path(X, y, kw.gaussian(1.0, relative=True), Cs=[1.0])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_the_default_call_on_known_sets(load):
    X, y = load(return_X_y=True)
    sentences, _ = said(MKLClassifierCV(Cs=[1.0], cv=3), X, y)
    assert len(sentences) == 1
    assert said(make_pipeline(StandardScaler(), MKLClassifierCV(Cs=[1.0], cv=3)), X, y)[0] == []


def test_narrow_widths_on_raw_columns_know_training_rows_by_heart():
    X, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    bank = kw.gaussian([0.25, 0.5, 1.0])
    sentences, model = said(MKLClassifier(bank, C=10.0), train, y_train)
    # what is warned of: all right on the training rows, hardly better than the larger class on new ones
    assert model.score(train, y_train) == 1.0
    assert model.score(test, y_test) < 0.7
    distances = np.sqrt(((train[:, None] - train[None]) ** 2).sum(axis=2)) + np.diag(
        np.full(len(train), np.inf)
    )
    alike = np.exp(-(distances.min(axis=1) ** 2) / 2.0)  # the widest of the three
    assert np.quantile(alike, 0.75) < 0.05
    assert [
        sentence
        for sentence in sentences
        if "nearly the identity" in sentence and "relative=True" in sentence
    ]
    scaled = make_pipeline(StandardScaler(), MKLClassifier(kw.gaussian([1.0, 4.0]), C=10.0))
    assert said(scaled, train, y_train)[0] == []
    assert scaled.score(test, y_test) > 0.9


def test_wide_widths_and_columns_far_from_zero_are_nearly_constant():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    bank = kw.gaussian([100.0, 200.0])
    (sentence,) = findings(bank, X)
    assert "nearly constant" in sentence
    K = kw.gaussian(100.0)(X)
    assert 1 - K.mean() < 1e-3
    (sentence,) = findings(kw.gaussian([1e-3, 1e3]), X)  # neither one alone would be true of both
    assert "either nearly the identity on these samples" in sentence
    assert "or nearly constant" in sentence
    years = 2000.0 + 10 * X  # a linear kernel of these is 4,000,000 and little else
    (sentence,) = findings(kw.linear(), years)
    assert "nearly constant" in sentence
    assert "StandardScaler" in sentence
    assert "relative" not in sentence  # a linear kernel has no width
    assert findings(kw.linear(), years, center=True) == ()  # centring takes the constant away
    # widths that are counted in median distances need no scaling of columns
    (sentence,) = findings(kw.gaussian([100.0, 200.0], relative=True), X)
    assert sentence.endswith("Take smaller widths.")
    (sentence,) = findings(kw.gaussian([1e-3, 2e-3], relative=True), X)
    assert sentence.endswith("Take larger widths.")
    assert findings(bank, X, center=True) == ()


def test_what_is_found_is_found_by_definition():
    """Around each threshold: one side is found, the other is not."""
    rng = np.random.default_rng(1)
    for factor, expected in ((90.0, False), (130.0, True)):
        X = rng.uniform(size=(200, 2))
        X = (X - X.mean(axis=0)) / X.std(axis=0) * [factor, 1.0]
        found = findings(kw.gaussian(1.0, relative=True), X)
        assert bool(found) is expected
    grid = np.arange(60.0)[:, None]  # neighbours one apart: alike exp(-1 / (2 width^2))
    for width, expected in ((0.39, True), (0.43, False)):
        assert bool(np.exp(-0.5 / width**2) < 0.05) is expected
        assert bool(findings(kw.gaussian(width), grid)) is expected
    unit = np.tile(
        [[0.0], [1.0]], (30, 1)
    )  # half of the pairs one apart: 1 - mean K is half of 1 - exp(-1/(2 w^2))
    for width, expected in ((17.0, True), (14.0, False)):
        assert bool(0.5 * (1 - np.exp(-0.5 / width**2)) < 1e-3) is expected
        assert bool(findings(kw.gaussian(width), unit)) is expected


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        (kw.gaussian(0.05), "identity"),
        (kw.laplacian(0.02), "identity"),
        (kw.matern(0.02), "identity"),
        (kw.rational_quadratic(0.001, alpha=2.0), "identity"),
        (kw.random_fourier(0.05), "identity"),
        (kw.nystroem(kw.gaussian(0.05), rank=10), "identity"),
        (kw.gaussian(0.05).named("own"), "identity"),
        (kw.gaussian(0.05) * kw.gaussian(1.0), "identity"),
        (kw.gaussian(0.05).on([0, 1, 2]), "identity"),
        (kw.gaussian(1e3), "constant"),
        (kw.laplacian(1e5), "constant"),
        (kw.matern(1e3), "constant"),
        (kw.polynomial(2, gamma=1e-6), "constant"),
        (kw.random_fourier(1e3), "constant"),
        (kw.summed(kw.gaussian(1e3), kw.gaussian(2e3)), "constant"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_every_family(kernel, kind):
    X = np.random.default_rng(0).normal(size=(70, 5))
    (sentence,) = findings(kernel, X)
    assert f"nearly {'the ' if kind == 'identity' else ''}{kind}" in sentence
    of_use = kw.gaussian(2.0).named("of use")
    assert findings(kernel + (of_use if kernel.columns is None else of_use.on([0, 1, 2])), X) == ()


def test_no_alarm_where_nothing_is_wrong():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    grid = kw.gaussian(2.0 ** np.arange(-6, 8))
    assert findings(grid, X) == ()  # extreme widths on both ends, and some of use
    assert findings(kw.preset("stpmkl"), MinMaxScaler().fit_transform(X)) == ()
    assert findings(kw.default_bank(), X) == ()
    # one-hot columns, common and rare, also standardised, and beside a number
    hot = np.eye(20)[rng.integers(0, 20, size=300)]
    for table in (hot, StandardScaler().fit_transform(hot), np.column_stack([hot, rng.normal(size=300)])):
        assert findings(kw.default_bank() + kw.per_feature(kw.gaussian(1.0), kw.linear()), table) == ()
    rare = (rng.random((300, 5)) < 0.01).astype(float)
    assert findings(kw.per_feature(kw.gaussian(1.0)), rare) == ()
    # counts of words: most of them rare, some frequent
    counts = rng.poisson(np.geomspace(0.005, 30.0, 200), size=(300, 200)).astype(float)
    assert findings(kw.linear() + kw.gaussian(1.0, relative=True), counts) == ()
    assert findings(kw.linear() + kw.gaussian(1.0, relative=True), sp.csr_matrix(counts)) == ()
    # constant columns, alone and among others
    assert findings(kw.default_bank(), np.column_stack([X, np.full(100, 1e6)])) == ()
    assert findings(kw.gaussian(1.0) + kw.linear().on(0), np.full((100, 2), 3.0)) == ()
    assert findings(kw.constant() + kw.gaussian(1.0), X) == ()
    # few samples, and every sample twice
    assert findings(kw.gaussian(1e-3), X[:15]) == ()
    assert findings(kw.gaussian([0.5, 1.0]), np.repeat(X, 2, axis=0)) == ()
    # more columns than samples: inner products of unlike samples are no fault of the scale
    assert findings(kw.linear(), rng.normal(size=(50, 20_000))) == ()
    # a single column has no other to be compared with
    assert findings(kw.per_feature(kw.gaussian(1.0, relative=True)), X * [1e6, 1.0, 1e-3, 1.0]) == ()
    # neighbours that a first look at some of the samples does not see
    dense = np.sort(rng.uniform(size=(20_000, 1)), axis=0)
    assert findings(kw.gaussian(2e-3), dense) == ()


@pytest.mark.parametrize("load", [load_wine, load_iris, load_breast_cancer, load_digits])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_no_alarm_on_scaled_sets(load, scaler):
    X = scaler.fit_transform(load(return_X_y=True)[0])
    for spec in (kw.default_bank(), kw.preset("stpmkl"), kw.preset("smkl"), kw.preset("simplemkl")):
        assert findings(spec, X) == ()


def test_views_are_judged_one_by_one():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(80, 3)), 1e4 * rng.normal(size=(80, 3))])
    bank = kw.per_view({"clinic": slice(0, 3), "genes": slice(3, 6)}, kw.gaussian([1.0, 2.0]))
    (sentence,) = findings(bank, X)
    assert "Every kernel on genes (1 of 2 groups of columns looked at) is nearly the identity" in sentence
    relative = kw.per_view(
        {"clinic": slice(0, 3), "genes": slice(3, 6)}, kw.gaussian([1.0, 2.0], relative=True)
    )
    assert findings(relative, X) == ()  # each view has one scale, and widths of its own
    mixing = relative + kw.gaussian(1.0, relative=True).named("all")
    (sentence,) = findings(mixing, X)
    assert "(1 of 3 groups of columns looked at are like that)" in sentence
    views = {"clinic": X[:, :3], "genes": np.where(np.arange(80)[:, None] < 40, np.nan, X[:, 3:])}
    y = np.where(X[:, 0] > 0, 1, 0)
    sentences, _ = said(MKLClassifier(kw.gaussian([1.0, 2.0]), missing="mean"), views, y)
    assert [one for one in sentences if "on genes" in one]
    assert said(MKLClassifier(kw.gaussian([1.0, 2.0], relative=True), missing="mean"), views, y)[0] == []
    # a kernel of all columns is looked at on the samples that have all views
    table = np.hstack(list(views.values()))
    sentences, _ = said(MKLClassifier(mixing, missing="mean"), table, y)
    assert [one for one in sentences if "(1 of 3 groups of columns looked at are like that)" in one]


def test_matrices_computed_elsewhere():
    X = np.random.default_rng(0).normal(size=(60, 4))
    narrow = np.stack([kw.gaussian(width)(X) for width in (0.05, 0.1)])
    wide = np.stack([kw.gaussian(width)(X) for width in (500.0, 1000.0)])
    good = kw.gaussian(2.0)(X)
    y = np.where(X[:, 0] > 0, 1, 0)
    for stack, kind in ((narrow, "the identity"), (wide, "constant")):
        sentences, fitted = said(MKLClassifier("precomputed"), stack, y)
        assert len(sentences) == 1
        assert f"Every kernel matrix is nearly {kind}" in sentences[0]
        assert fitted.findings_[0] == sentences[0]
        held = kw.held(stack)
        assert said(MKLClassifier(held), np.arange(60).reshape(-1, 1), y)[0] == sentences
        assert said(MKLClassifier("precomputed"), np.concatenate([stack, [good]]), y)[0] == []
    assert findings_of_matrices([np.eye(60), np.ones((60, 60))]) == ()  # as they were meant
    assert findings_of_matrices([np.eye(60), good]) == ()
    assert len(findings_of_matrices([np.eye(60), narrow[0]])) == 1
    assert findings_of_matrices(wide, center=True) == ()


@pytest.mark.parametrize(
    ("bank", "options"),
    [
        (kw.gaussian(1.0, relative=True), {"storage": "dense"}),
        (kw.gaussian(1.0, relative=True), {"storage": "lazy"}),
        (kw.gaussian(1.0, relative=True), {"dtype": "float32"}),
        (kw.random_fourier(1.0, relative=True), {"storage": "lowrank"}),
        (kw.linear(), {"storage": "stream", "loss": "logistic", "solver": "svrg", "norm": 2}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_every_storage(bank, options):
    X, y = raw_table(80)
    sentences, _ = said(MKLClassifier(bank, **options), X, y)
    assert len(sentences) == 1
    assert said(MKLClassifier(bank, **options), StandardScaler().fit_transform(X), y)[0] == []


def test_rows_that_are_read_as_needed_and_sparse_samples():
    X, y = raw_table(80)
    streamed = MKLClassifier(kw.linear(), loss="logistic", solver="svrg", norm=2)
    assert len(said(streamed, as_rows(X), y)[0]) == 1
    assert len(said(MKLClassifier(), sp.csr_matrix(X), y)[0]) == 1


def test_on_a_device():
    torch = pytest.importorskip("torch")
    X, y = raw_table(80)
    assert len(said(MKLClassifier(device="cpu", tol=1e-2), X, y)[0]) == 1
    assert len(said(MKLClassifier(tol=1e-2), torch.tensor(X), y)[0]) == 1
    assert said(MKLClassifier(device="cpu", tol=1e-2), StandardScaler().fit_transform(X), y)[0] == []


def test_the_first_batch_of_a_stream():
    X, y = raw_table(80)
    online = MKLClassifier(kw.gaussian(1.0, relative=True), norm=1.5, solver="obscure", fit_intercept=False)
    with pytest.warns(ScaleWarning) as caught:
        online.partial_fit(X[:40], y[:40], classes=[0, 1])
    assert caught[0].filename == __file__
    assert online.findings_ == (str(caught[0].message),)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateModelWarning)
        online.partial_fit(X[40:], y[40:])


def test_looking_changes_nothing(monkeypatch):
    """Neither passes nor numbers nor drawn ones differ from a fit that does not look."""
    X, y = raw_table(80)
    estimators = [
        MKLClassifier(),
        MKLClassifier(kw.random_fourier([1.0, 2.0], relative=True, random_state=0), storage="lazy"),
        MKLClassifier(kw.linear(), loss="logistic", solver="svrg", norm=2, random_state=0, tol=1e-2),
    ]
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    looked = [said(clone(one), X, y)[1] for one in estimators]
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    monkeypatch.setattr("kernelweave.banks.scales.findings_of_kernels", lambda *given: ())
    for one, before in zip(estimators, looked, strict=True):
        blind = one.fit(X, y)
        assert before.n_passes_ == blind.n_passes_
        np.testing.assert_array_equal(before.weights_, blind.weights_)
        np.testing.assert_array_equal(before.dual_coef_, blind.dual_coef_)


def test_inspection_of_a_fit_does_not_say_it_again():
    from kernelweave.inspection import drop_view

    X, y = raw_table(80)
    bank = kw.per_view({"a": [0, 1], "b": [1, 2]}, kw.gaussian(1.0, relative=True))
    _, model = said(MKLClassifier(bank), X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        without = drop_view(model, X, y, "a").model
    assert without.findings_ == ()  # the view that is left has one scale
