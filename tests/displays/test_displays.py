"""Displays: what is drawn, not how it looks."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import ConvergenceDisplay, WeightsDisplay


@pytest.fixture(scope="module")
def binary():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1, 2]))).fit(X[50:], y[50:])


@pytest.fixture(scope="module")
def several():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    return MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1, 2])), multi_class="ovr").fit(X, names)


@pytest.fixture
def ax():
    # a bare figure needs no backend and leaves nothing behind in pyplot
    return Figure().subplots()


def labels(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_weights_of_estimator(binary, ax):
    display = WeightsDisplay.from_estimator(binary, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    used = np.flatnonzero(binary.weights_)
    assert sorted(labels(ax)) == sorted(binary.kernel_names_[used])
    lengths = [bar.get_width() for bar in display.bars_]
    assert lengths == sorted(lengths, reverse=True)
    assert sum(lengths) == pytest.approx(1.0)


def test_what_does_not_fit_is_summed(ax):
    weights = np.linspace(1, 0, 101)  # the last one is zero
    display = WeightsDisplay(weights / weights.sum(), [f"kernel {j}" for j in range(101)]).plot(ax=ax, top=10)
    assert labels(ax)[-1] == "90 others"
    lengths = [bar.get_width() for bar in display.bars_]
    assert "100 of 101" in ax.get_title()
    # the sum is a number: a bar of it would be the longest, and read as one kernel
    assert lengths[-1] == 0.0
    others = [text.get_text() for text in ax.texts if text.get_text().endswith(" together")]
    assert len(others) == 1
    assert sum(lengths) + float(others[0].removesuffix(" together")) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("groups", [None, ["a"] * 9 + ["b"] * 9])
def test_equal_weights_have_no_longest_bar(ax, groups):
    """Eighteen kernels alike, fifteen rows: the other three are no bar of three times the length."""
    names = [f"kernel {j}" for j in range(18)]
    display = WeightsDisplay(np.full(18, 1 / 18), names, groups=groups, learnt=np.zeros(18)).plot(ax=ax)
    assert max(bar.get_width() for bar in display.bars_) == pytest.approx(1 / 18)
    assert "not learnt" in ax.get_title()
    assert [text.get_text() for text in ax.texts if "together" in text.get_text()] == ["0.1667 together"]


def test_nothing_left_over(ax):
    display = WeightsDisplay([0.0, 1.0, 2.0], ["a", "b", "c"]).plot(ax=ax, top=2)
    assert labels(ax) == ["c", "b"]
    assert len(display.bars_) == 2


@pytest.mark.parametrize("group_by", [None, "view"])
def test_no_tick_where_no_weight_can_be(ax, group_by):
    groups = None if group_by is None else ["a", "a", "b"]
    WeightsDisplay(np.array([1.0, 0.0, 0.0]), ["x", "y", "z"], groups=groups).plot(ax=ax)
    ticks = [tick for tick in ax.get_xticks() if tick <= ax.get_xlim()[1]]
    assert max(ticks) == pytest.approx(1.0)
    assert ax.get_xlim()[1] > 1.1  # room for the number behind the bar


def test_weights_of_several_problems(several, ax):
    display = WeightsDisplay.from_estimator(several, ax=ax, top=3)
    table = display.image_.get_array()
    assert table.shape == (4, 3)
    np.testing.assert_allclose(table.sum(axis=0), 1.0)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["setosa", "versicolor", "virginica"]


def test_keywords_reach_the_bars(ax):
    display = WeightsDisplay([1.0], ["a"]).plot(ax=ax, color="red")
    assert display.bars_[0].get_facecolor()[:3] == (1.0, 0.0, 0.0)


def test_weights_that_do_not_go_with_the_names():
    with pytest.raises(ValueError, match="do not go with"):
        WeightsDisplay([1.0, 2.0], ["a"])


@pytest.mark.parametrize("x", ["passes", "seconds", "iteration"])
def test_bounds(binary, ax, x):
    display = ConvergenceDisplay.from_estimator(binary, ax=ax, x=x)
    primal, dual = display.lines_
    np.testing.assert_array_equal(primal.get_xdata(), binary.trace_[x])
    np.testing.assert_array_equal(primal.get_ydata(), binary.trace_["primal"])
    np.testing.assert_array_equal(dual.get_ydata(), binary.trace_["dual"])
    assert display.ax_ is ax
    assert binary.solver_ in ax.get_title()


def test_gap_has_the_tolerance(binary, ax):
    display = ConvergenceDisplay.from_estimator(binary, ax=ax, kind="gap")
    assert ax.get_yscale() == "log"
    (curve,) = display.lines_
    np.testing.assert_allclose(curve.get_ydata(), binary.trace_["relative_gap"])
    assert any("0.001" in text.get_text() for text in ax.texts)


def test_several_problems(several, ax):
    display = ConvergenceDisplay.from_estimator(several, ax=ax, kind="gap")
    assert [line.get_label() for line in display.lines_] == ["setosa", "versicolor", "virginica"]
    with pytest.raises(ValueError, match="shows one problem"):
        ConvergenceDisplay.from_estimator(several, ax=ax)
    mine = several.trace_[several.trace_["problem"] == "setosa"]
    display = ConvergenceDisplay.from_estimator(several, ax=Figure().subplots(), problem="setosa")
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), mine["primal"])


def test_from_plain_arrays(ax):
    trace = {"passes": [1, 2], "primal": [4, 3], "dual": [1, 2.9], "relative_gap": [0.75, 0.03]}
    assert len(ConvergenceDisplay(trace).plot(ax=ax).lines_) == 2


def test_wrong_requests(binary, ax):
    with pytest.raises(ValueError, match="kind must be one of bounds, gap"):
        ConvergenceDisplay.from_estimator(binary, ax=ax, kind="loss")
    with pytest.raises(ValueError, match="x must be one of passes, seconds, iteration"):
        ConvergenceDisplay.from_estimator(binary, ax=ax, x="time")
    with pytest.raises(ValueError, match="unknown problem"):
        ConvergenceDisplay.from_estimator(binary, ax=ax, problem="b")
    with pytest.raises(ValueError, match="no column 'dual'"):
        ConvergenceDisplay({"primal": [1.0], "passes": [1.0]})


@pytest.mark.parametrize("display", [WeightsDisplay, ConvergenceDisplay])
def test_unfitted(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(MKLClassifier())


def test_own_figure_where_no_axes_are_given(binary, monkeypatch):
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    display = WeightsDisplay.from_estimator(binary)
    assert display.figure_.number in plt.get_fignums()
    plt.close(display.figure_)
