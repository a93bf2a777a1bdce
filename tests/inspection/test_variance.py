"""Shares of variance and parts of R2: they sum to what they should, and find what made the targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.displays import VarianceDisplay
from kernelweave.inspection import r2_split, split_r2, variance_shares

VIEWS = kw.per_view({"a": slice(0, 4), "b": slice(4, 8)}, kw.linear(), kw.gaussian(3.0))


def data(n: int = 300, t: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8)) + 1.0
    signal = X[:, :4] @ rng.normal(size=(4, t))
    return X, signal / signal.std(axis=0) * np.sqrt(0.6) + np.sqrt(0.4) * rng.normal(size=(n, t)) + 7.0


@pytest.fixture(scope="module")
def model() -> MKLRegressorCV:
    X, Y = data()
    return make_pipeline(StandardScaler(), MKLRegressorCV(VIEWS, criterion="reml")).fit(X[:150], Y[:150])


def test_shares_are_the_variance_that_made_the_targets(model: MKLRegressorCV) -> None:
    shares = variance_shares(model)
    assert shares.parts.shape == (4, 5)
    np.testing.assert_allclose(shares.total + shares.rest, 1.0)
    assert abs(np.mean(shares.by_view()[0]) - 0.6) < 0.15
    assert np.mean(shares.by_view()[1]) < 0.1
    assert list(shares.table()["view"]) == ["a", "a", "b", "b"]
    assert "5 targets" in repr(shares)


def test_parts_of_r2_sum_to_r2(model: MKLRegressorCV) -> None:
    X, Y = data()
    new, truth = X[150:], Y[150:]
    split = r2_split(model, new, truth)
    np.testing.assert_allclose(
        split.total, r2_score(truth, model.predict(new), multioutput="raw_values"), atol=1e-10
    )
    one = MKLRegressor(VIEWS).fit(X[:150], Y[:150, 0])
    np.testing.assert_allclose(r2_split(one, new, truth[:, 0]).total, one.score(new, truth[:, 0]), atol=1e-10)


def test_the_other_form_is_himalaya_s() -> None:
    rng = np.random.default_rng(1)
    parts, Y = rng.normal(size=(3, 40, 2)) + 0.3, rng.normal(size=(40, 2))
    Y -= Y.mean(axis=0)
    # r2_score_split(Y, parts) of himalaya 0.4, written out
    theirs = np.stack(
        [((2 * Y * part - (part * parts).sum(axis=0)) / (Y**2).sum(axis=0)).sum(axis=0) for part in parts]
    )
    np.testing.assert_allclose(split_r2(Y, parts.transpose(1, 0, 2), centred=False), theirs, atol=1e-12)
    try:
        from himalaya.scoring import r2_score_split
    except ImportError:
        return
    np.testing.assert_allclose(theirs, r2_score_split(Y, parts), atol=1e-10)


def test_pictures(model: MKLRegressorCV) -> None:
    import matplotlib.pyplot as plt

    X, Y = data()
    shares = variance_shares(model)
    drawn = VarianceDisplay(shares).plot()
    assert [text.get_text() for text in drawn.ax_.get_yticklabels()] == ["a", "b"]
    np.testing.assert_allclose(drawn.boxes_["medians"][0].get_xdata(), np.median(shares.by_view()[0]))
    pair = VarianceDisplay(r2_split(model, X, Y)).plot_pair("a", "b")
    assert pair.density_.get_array().sum() == 5
    single = MKLRegressorCV(VIEWS, criterion="reml").fit(X[:60], Y[:60, 0])
    bars = VarianceDisplay(variance_shares(single)).plot()
    np.testing.assert_allclose([bar.get_width() for bar in bars.bars_], variance_shares(single).by_view())
    with pytest.raises(ValueError, match="no view 'c'"):
        VarianceDisplay(shares).plot_pair("a", "c")
    with pytest.raises(ValueError, match="several targets"):
        VarianceDisplay(variance_shares(single)).plot_pair("a", "b")
    plt.close("all")


def test_what_has_no_shares() -> None:
    X, Y = data(40, 2)
    with pytest.raises(ValueError, match="take MKLRegressorCV"):
        variance_shares(MKLRegressor(VIEWS).fit(X, Y))
    with pytest.raises(ValueError, match="center=True"):
        variance_shares(MKLRegressorCV(VIEWS, criterion="reml", center=False).fit(X, Y))
    with pytest.raises(ValueError, match="regressors"):
        r2_split(MKLClassifier(VIEWS).fit(X, Y[:, 0] > 7), X, Y)
    with pytest.raises(ValueError, match="does not go with"):
        r2_split(MKLRegressor(VIEWS).fit(X, Y), X, Y[:, 0])
