"""Error bars, groups, matrices, noise, paths, several solvers: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from kernelweave import MKLClassifier, MKLClassifierCV, NoisyLabelMKLClassifier, mkl_path
from kernelweave import kernels as kw
from kernelweave.displays import (
    ConvergenceDisplay,
    KernelMatrixDisplay,
    NoiseDisplay,
    PathDisplay,
    WeightsDisplay,
)
from kernelweave.inspection import weight_stability

RAW, Y = load_breast_cancer(return_X_y=True)
X, Y = scale(RAW)[:150], Y[:150]
BANK = kw.per_view({"mean": slice(0, 10), "worst": slice(20, 30)}, kw.linear(), kw.gaussian([2.0, 4.0]))


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def fitted():
    return MKLClassifier(BANK, norm=2).fit(X, Y)


# ---- weights ------------------------------------------------------------------------------------------------


def test_error_bars_over_refits(ax):
    stability = weight_stability(MKLClassifier(BANK, norm=2), X, Y, n_refits=3, n_folds=3)
    display = WeightsDisplay.from_stability(stability, ax=ax, group_by=None)
    table = stability.kernels().sort_values("mean", ascending=False)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], table["mean"])
    ends = np.array([segment[:, 0] for segment in display.error_bars_.get_segments()])
    np.testing.assert_allclose(ends, table[["low", "high"]])


def test_groups_have_their_sums(fitted, ax):
    WeightsDisplay.from_estimator(fitted, ax=ax, group_by="view", top=2)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    heads = [label for label in ax.get_yticklabels() if label.get_fontweight() == "bold"]
    shown = {head.get_text().split(":")[0] for head in heads}
    assert shown <= {"mean", "worst"}
    for head in heads:
        name, _, total = head.get_text().partition(": ")
        mine = [f" on {name}" in kernel for kernel in fitted.kernel_names_]
        assert float(total) == pytest.approx(fitted.weights_[mine].sum(), abs=0.002)
    assert labels[-1] == "4 others"
    assert "gaussian(width=2)" in " ".join(labels)
    assert all(" on worst" not in label for label in labels)  # the heading says so


def test_groups_by_family(fitted, ax):
    WeightsDisplay.from_estimator(fitted, ax=ax, group_by="family")
    heads = [label.get_text() for label in ax.get_yticklabels() if label.get_fontweight() == "bold"]
    assert {head.split(":")[0] for head in heads} == {"gaussian", "linear"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"intervals": [[0.0], [1.0]]}, r"intervals must have shape \(2, 2\)"),
        ({"groups": ["a"]}, "1 groups were given for 2 kernels"),
    ],
)
def test_wrong_additions(settings, message):
    with pytest.raises(ValueError, match=message):
        WeightsDisplay([0.5, 0.5], ["a", "b"], **settings)


def test_groups_are_for_one_set_of_weights(fitted):
    with pytest.raises(ValueError, match=r"weights of shape \(m,\)"):
        WeightsDisplay([[0.5, 0.5]], ["a", "b"], groups=["x", "y"])
    with pytest.raises(ValueError, match="group_by must be"):
        WeightsDisplay.from_estimator(fitted, group_by="size")


# ---- convergence of several solvers -------------------------------------------------------------------------


def test_several_solvers(ax):
    fits = {name: MKLClassifier(BANK, solver=name).fit(X, Y) for name in ("newton", "level")}
    display = ConvergenceDisplay.from_estimators(fits, ax=ax, x="iteration")
    assert [line.get_label() for line in display.lines_] == ["newton", "level"]
    for line, fit in zip(display.lines_, fits.values(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), fit.trace_["relative_gap"])
    assert ax.get_legend().get_title().get_text() == "solver"


def test_several_solvers_refused():
    with pytest.raises(ValueError, match="no estimator"):
        ConvergenceDisplay.from_estimators({})
    several = MKLClassifier(kw.linear(), multi_class="ovr").fit(X, np.arange(150) % 3)
    with pytest.raises(ValueError, match="fitted as several problems"):
        ConvergenceDisplay.from_estimators({"ovr": several})


# ---- matrices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"center": True}, {"normalize": "cosine"}, {"normalize": None}])
def test_the_learnt_mixture(settings, ax):
    model = MKLClassifier(BANK, norm=2, **settings).fit(X, Y)
    display = KernelMatrixDisplay.from_estimator(model, X, Y, ax=ax)
    # on the training samples the mixture times the coefficients is the decision function
    np.testing.assert_allclose(
        display.matrix @ model.dual_coef_ + model.intercept_, model.decision_function(X), atol=1e-8
    )
    shown = display.image_.get_array()
    np.testing.assert_allclose(shown, display.matrix[np.ix_(display.order, display.order)])
    assert np.all(np.diff(Y[display.order]) >= 0)


def test_one_kernel(fitted, ax):
    display = KernelMatrixDisplay.from_estimator(fitted, X, kernel="gaussian(width=2) on worst", ax=ax)
    np.testing.assert_allclose(display.matrix, kw.gaussian(2.0)(X[:, 20:]))
    assert ax.get_title() == "gaussian(width=2) on worst"
    pipeline = make_pipeline(StandardScaler(), MKLClassifier(kw.gaussian(2.0))).fit(RAW, RAW[:, 0] > 14)
    display = KernelMatrixDisplay.from_estimator(pipeline, RAW[:20], kernel=0, ax=Figure().subplots())
    np.testing.assert_allclose(display.matrix, kw.gaussian(2.0)(scale(RAW)[:20]))


def test_matrices_refused(fitted):
    with pytest.raises(ValueError, match=r"no kernel 'gausian'"):
        KernelMatrixDisplay.from_estimator(fitted, X, kernel="gausian")
    sparse = MKLClassifier(kw.linear() + kw.gaussian(1e6)).fit(X, Y)
    unused = int(np.flatnonzero(sparse.weights_ == 0)[0])
    with pytest.raises(ValueError, match="has no weight"):
        KernelMatrixDisplay.from_estimator(sparse, X, kernel=unused)
    with pytest.raises(ValueError, match="computed from samples"):
        KernelMatrixDisplay.from_estimator(MKLClassifier("precomputed").fit(X @ X.T, Y), X @ X.T)
    with pytest.raises(ValueError, match="mixture of its own"):
        KernelMatrixDisplay.from_estimator(
            MKLClassifier(kw.linear(), multi_class="ovr").fit(X, np.arange(150) % 3), X
        )
    with pytest.raises(ValueError, match="square"):
        KernelMatrixDisplay(np.ones((2, 3)))
    with pytest.raises(ValueError, match="3 labels do not go with 2 samples"):
        KernelMatrixDisplay(np.eye(2), [0, 1, 1])


# ---- noise --------------------------------------------------------------------------------------------------


def test_suspects(ax):
    flipped = np.zeros(150, dtype=bool)
    flipped[::10] = True
    model = NoisyLabelMKLClassifier(BANK).fit(X, np.where(flipped, 1 - Y, Y))
    display = NoiseDisplay.from_estimator(
        model, ax=ax, wrong=flipped, names=[f"s{i}" for i in range(150)], top=3
    )
    np.testing.assert_array_equal(display.order, model.suspects_)
    np.testing.assert_allclose(display.line_.get_ydata(), np.sort(model.label_quality_))
    (box,) = ax.texts
    assert box.get_text().splitlines()[1].startswith(f"s{model.suspects_[0]} ")
    assert len(box.get_text().splitlines()) == 4
    crosses = next(line for line in ax.lines if line.get_marker() == "x")
    np.testing.assert_array_equal(
        display.order[crosses.get_xdata() - 1], display.order[flipped[display.order]]
    )


def test_noise_refused():
    with pytest.raises(ValueError, match="one number per sample"):
        NoiseDisplay(np.ones((2, 2)))
    with pytest.raises(ValueError, match="names has 1 entries, there are 2 samples"):
        NoiseDisplay([0.5, 0.5], names=["a"])


# ---- paths --------------------------------------------------------------------------------------------------


def test_weights_along_a_path(ax):
    path = mkl_path(X, Y, BANK, Cs=[0.1, 1.0, 10.0])
    display = PathDisplay.from_path(path, ax=ax, top=2)
    named = display.heaviest(2)
    assert path.weights[:, named[0]].max() == path.weights.max()
    for line, j in zip(display.lines_, named, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), path.weights[:, j])
    assert ax.get_xscale() == "log"


def test_scores_of_cross_validation(ax):
    model = MKLClassifierCV(kw.gaussian([2.0, 4.0]), Cs=[0.1, 1.0], norms=["l1", 2], cv=3).fit(X, Y)
    display = PathDisplay.from_estimator(model, ax=ax)
    means = model.cv_results_.groupby(["norm", "C"], sort=False)["score"].mean()
    np.testing.assert_allclose(display.lines_[0].get_ydata(), means.loc["l1"])
    assert len(display.lines_) == 2
    assert any("chosen" in text.get_text() for text in ax.get_legend().get_texts())


def test_paths_refused(ax):
    with pytest.raises(ValueError, match="do not go with 2 values of C"):
        PathDisplay([1.0, 2.0], np.ones((3, 1)))
    with pytest.raises(ValueError, match="2 kernel names do not go with 1 kernels"):
        PathDisplay([1.0], np.ones((1, 1)), ["a", "b"])
    with pytest.raises(ValueError, match="kind must be one of weights, scores"):
        PathDisplay([1.0], np.ones((1, 1))).plot(ax=ax, kind="gap")
    with pytest.raises(ValueError, match="no scores to draw"):
        PathDisplay([1.0], np.ones((1, 1))).plot(ax=ax, kind="scores")


@pytest.mark.parametrize(
    ("display", "arguments"),
    [(KernelMatrixDisplay, (X,)), (NoiseDisplay, ()), (PathDisplay, ())],
)
def test_unfitted(display, arguments):
    with pytest.raises(NotFittedError):
        display.from_estimator(MKLClassifier(), *arguments)
