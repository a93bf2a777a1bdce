"""Curves of survival and calibration: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from kernelweave import MKLSurvival, metrics, survival
from kernelweave import kernels as kw
from kernelweave.displays import CalibrationDisplay, SurvivalDisplay
from kernelweave.inspection import calibration, risk_groups


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = survival(rng.exponential(np.exp(-X[:, 0])), rng.random(90) < 0.7)
    return MKLSurvival(kw.linear(), C=0.1).fit(X, y), X, y


def test_groups_of_risk(fitted, ax):
    model, X, y = fitted
    risk = model.predict(X)
    shown = SurvivalDisplay.from_predictions(y, risk, ax=ax)
    assert shown.labels == ["low risk (30)", "middle (30)", "high risk (30)"]
    for number, line in enumerate(shown.lines_):
        curve = metrics.kaplan_meier(y[risk_groups(risk) == number])
        np.testing.assert_array_equal(line.get_xdata()[1:], curve.x)
        np.testing.assert_array_equal(line.get_ydata()[1:], curve.y)
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (0.0, 1.0)
    assert "log-rank p" in ax.get_title()
    assert shown.ax_ is ax
    alone = SurvivalDisplay.from_predictions(y, np.zeros(90), n_groups=2)
    assert alone.labels == ["group 1 of 2 (90)"]
    assert alone.figure_ is not ax.figure


def test_predicted_curves(fitted, ax):
    model, X, _ = fitted
    shown = SurvivalDisplay.from_estimator(model, X[:2], names=["first", "second"], ax=ax, linewidth=3.0)
    assert shown.labels == [line.get_label() for line in shown.lines_] == ["first", "second"]
    curve = model.predict_survival_function(X[:2])[1]
    np.testing.assert_array_equal(shown.lines_[1].get_ydata()[1:], curve.y)
    assert shown.lines_[0].get_linewidth() == 3.0
    assert SurvivalDisplay.from_estimator(model, X[:1]).labels == ["sample 0"]
    with pytest.raises(ValueError, match="no curve"):
        SurvivalDisplay({})


def test_calibration(fitted, ax):
    model, X, y = fitted
    table = calibration(model, X, y, [0.3, 0.8], n_groups=3)
    shown = CalibrationDisplay.from_estimator(model, X, y, [0.3, 0.8], n_groups=3, ax=ax)
    assert [line.get_label() for line in shown.lines_] == ["0.3", "0.8"]
    np.testing.assert_array_equal(shown.lines_[1].get_xdata(), table["predicted"][table["time"] == 0.8])
    np.testing.assert_array_equal(shown.lines_[1].get_ydata(), table["observed"][table["time"] == 0.8])
