"""Times to an event: how they are read; curves and scores by their definitions, and equal to scikit-survival's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kernelweave import metrics, survival


def some(seed: int = 0, n: int = 60, ties: bool = True):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n) * 1.0 if ties else rng.exponential(size=n)
    return survival(time, rng.random(n) < 0.6), rng.normal(size=n).round(1), rng


# ---- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "value"),
    [
        ([True, False, True], None),
        ([1, 0, 1], None),
        ([1.0, 0.0, 1.0], None),
        (np.array([1, 0, 1], dtype=np.uint8), None),
        (["dead", "alive", "dead"], None),
        (["1:DECEASED", "0:LIVING", "1:DECEASED"], None),
        (["relapse", "none", "relapse"], "relapse"),
        ([2, 1, 2], 2),
        ([1, 2, 1], 1),
        ([True, False, True], True),
    ],
)
def test_events_are_read(event, value):
    y = survival([3, 1, 2], event, value)
    assert y["event"].tolist() == [True, False, True]
    assert y["time"].tolist() == [3.0, 1.0, 2.0]
    assert y.dtype.names == ("event", "time")


@pytest.mark.parametrize(
    ("time", "event", "value", "words"),
    [
        ([1, np.nan, 3], [1, 0, 1], None, "1 times are missing, infinite or negative, the first in row 1"),
        ([1, 2, np.inf], [1, 0, 1], None, "the first in row 2"),
        ([-1, 2, -3], [1, 0, 1], None, "2 times are missing, infinite or negative, the first in row 0"),
        ([1, 2, 3], [1, 0, 2], None, r"values 0, 1, 2: say which is the event"),
        ([1, 2, 3], ["a", "b", "a"], None, "say which is the event"),
        ([1, 2, 3], ["dead", "died", "dead"], None, "say which is the event"),
        (
            [1, 2, 3],
            [1, 0, np.nan],
            None,
            "1 samples do not say whether the event happened, the first in row 2",
        ),
        ([1, 2, 3], ["dead", None, "alive"], None, "the first in row 1"),
        ([1, 2, 3], ["a", "b", "a"], "c", "event_value='c' is not among"),
        ([1, 2], [1, 0, 1], None, r"shapes \(2,\) and \(3,\)"),
        (["x", 2, 3], [1, 0, 1], None, "times must be numbers"),
    ],
)
def test_what_is_no_survival_is_refused(time, event, value, words):
    with pytest.raises(ValueError, match=words):
        survival(time, event, value)


def test_other_forms_are_read():
    y = survival([3, 1, 2], [1, 0, 1])
    turned = np.array([(3.0, True), (1.0, False), (2.0, True)], dtype=[("days", float), ("status", bool)])
    table = pd.DataFrame({"time": [3, 1, 2], "event": [1, 0, 1], "age": [50, 60, 70]})
    zeros = np.array([(1, 3.0), (0, 1.0), (1, 2.0)], dtype=[("event", int), ("t", float)])
    for form in (y, turned, table, zeros):
        time, event = metrics.read_survival(form)
        assert time.tolist() == [3.0, 1.0, 2.0]
        assert event.tolist() == [True, False, True]
    for form in (np.arange(3.0), [1, 2], pd.DataFrame({"t": [1], "e": [1]}), None):
        with pytest.raises(ValueError, match=r"kernelweave\.survival|target y is None"):
            metrics.read_survival(form)


# ---- curves --------------------------------------------------------------------------------------------------------


def test_step_function():
    step = metrics.StepFunction(np.array([1.0, 4.0]), np.array([0.5, 0.2]), 1.0)
    assert [step(0.5), step(1), step(3.9), step(4), step(100)] == [1.0, 0.5, 0.5, 0.2, 0.2]
    assert step.domain_ == (0.0, 4.0)
    assert "2 steps from 1 to 4" in repr(step)


def test_kaplan_meier_by_its_product():
    y, _, rng = some()
    weight = rng.integers(0, 3, len(y)) * 1.0
    for censoring in (False, True):
        curve = metrics.kaplan_meier(y, weight, censoring=censoring)
        left = 1.0
        for time in np.unique(y["time"]):
            now, later = y["time"] == time, y["time"] >= time
            events = np.sum(weight[now & y["event"]])
            jump, base = events, np.sum(weight[later])
            if censoring:  # events come first
                jump, base = np.sum(weight[now & ~y["event"]]), base - events
            left *= 1.0 - (jump / base if jump else 0.0)
            assert curve(time) == pytest.approx(left, abs=1e-14)
    # weights are copies
    copies = metrics.kaplan_meier(np.repeat(y, weight.astype(int)))
    np.testing.assert_allclose(metrics.kaplan_meier(y, weight)(copies.x), copies.y, atol=1e-14)


def test_log_rank_of_two_groups_by_hand():
    y, _, rng = some(1)
    group = rng.integers(0, 2, len(y))
    excess = spread = 0.0
    for time in np.unique(y["time"][y["event"]]):
        later, dies = y["time"] >= time, (y["time"] == time) & y["event"]
        n, d, ours = later.sum(), dies.sum(), (later & (group == 1)).sum()
        excess += (dies & (group == 1)).sum() - d * ours / n
        spread += d * ours / n * (1 - ours / n) * (n - d) / max(n - 1, 1)
    from scipy.stats import chi2

    assert metrics.log_rank_p_value(y, group) == pytest.approx(chi2.sf(excess**2 / spread, 1), rel=1e-12)
    with pytest.raises(ValueError, match="two groups"):
        metrics.log_rank_p_value(y, np.zeros(len(y)))


# ---- scores --------------------------------------------------------------------------------------------------------


def pairs(y, risk, weight):
    """Concordance by looking at every pair."""
    agreeing = comparable = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            later = y["time"][j] > y["time"][i] or (y["time"][j] == y["time"][i] and not y["event"][j])
            if i != j and y["event"][i] and later:
                comparable += weight[i]
                agreeing += weight[i] * (0.5 if abs(risk[i] - risk[j]) <= 1e-8 else float(risk[j] < risk[i]))
    return agreeing / comparable


@pytest.mark.parametrize("seed", range(8))
def test_concordance_by_pairs(seed):
    y, risk, rng = some(seed, ties=bool(seed % 2))
    risk = risk + 1e-9 * rng.normal(size=risk.size)  # tied all the same
    assert metrics.concordance(y, risk) == pytest.approx(pairs(y, risk, np.ones(len(y))), abs=1e-14)
    assert metrics.concordance(y, -risk) == pytest.approx(1.0 - metrics.concordance(y, risk), abs=1e-14)
    train = y[:40]
    free = metrics.kaplan_meier(train, censoring=True)
    G = free(y["time"])
    weight = np.where(
        (G > 0) & (y["time"] <= train["time"].max()) & (y["time"] < 9.0), 1.0 / np.maximum(G, 1e-9) ** 2, 0.0
    )
    assert metrics.concordance_ipcw(train, y, risk, 9.0) == pytest.approx(pairs(y, risk, weight), abs=1e-12)


def test_brier_score_by_hand():
    y, _, rng = some(2)
    train, times, survived = y[:40], np.array([2.0, 5.0, 8.0]), rng.uniform(size=(60, 3))
    free = metrics.kaplan_meier(train, censoring=True)
    expected = np.zeros(3)
    for k, t in enumerate(times):
        for i in range(60):
            own = free(y["time"][i])
            if y["time"][i] <= t and y["event"][i] and own > 0:
                expected[k] += survived[i, k] ** 2 / own
            elif y["time"][i] > t:
                expected[k] += (1 - survived[i, k]) ** 2 / free(t)
    scores = metrics.brier_score(train, y, survived, times)
    np.testing.assert_allclose(scores, expected / 60, atol=1e-14)
    whole = metrics.integrated_brier_score(train, y, survived, times)
    assert whole == pytest.approx((scores[0] / 2 + scores[1] + scores[2] / 2) / 2)


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_scikit_survival(seed):
    other = pytest.importorskip("sksurv.metrics")
    from sksurv.compare import compare_survival
    from sksurv.nonparametric import kaplan_meier_estimator

    y, risk, rng = some(seed, 90, ties=bool(seed % 2))
    train, test = y[:60], y[60:]
    test, risk = test[test["time"] < train["time"].max()], risk[60:][test["time"] < train["time"].max()]
    theirs = other.concordance_index_censored(test["event"], test["time"], risk)[0]
    assert metrics.concordance(test, risk) == pytest.approx(theirs, abs=1e-12)
    for tau in (None, float(np.quantile(test["time"], 0.7))):
        theirs = other.concordance_index_ipcw(train, test, risk, tau)[0]
        assert metrics.concordance_ipcw(train, test, risk, tau) == pytest.approx(theirs, abs=1e-12)
    times = np.unique(np.quantile(test["time"], [0.1, 0.3, 0.5, 0.7, 0.9]))
    survived = rng.uniform(size=(len(test), len(times)))
    theirs = other.brier_score(train, test, survived, times)[1]
    np.testing.assert_allclose(metrics.brier_score(train, test, survived, times), theirs, atol=1e-12)
    theirs = other.integrated_brier_score(train, test, survived, times)
    assert metrics.integrated_brier_score(train, test, survived, times) == pytest.approx(theirs, abs=1e-12)
    x, share = kaplan_meier_estimator(y["event"], y["time"])
    np.testing.assert_allclose(metrics.kaplan_meier(y)(x), share, atol=1e-12)
    group = rng.integers(0, 3, len(y))
    assert metrics.log_rank_p_value(y, group) == pytest.approx(compare_survival(y, group)[1], abs=1e-12)


def test_partial_likelihood_by_hand():
    y = survival([1, 2, 2, 3], [1, 1, 1, 0])
    f = np.array([0.5, -1.0, 0.0, 2.0])
    e = np.exp(f)
    by_hand = (f[0] - np.log(e.sum()) + f[1] + f[2] - 2 * np.log(e[1:].sum())) / 3
    assert metrics.partial_likelihood(y, f) == pytest.approx(by_hand)
    strata = ["a", "b", "a", "b"]
    apart = (f[0] - np.log(e[0] + e[2]) + 0.0 + f[1] - np.log(e[1] + e[3])) / 3
    assert metrics.partial_likelihood(y, f, strata) == pytest.approx(apart)


def test_bad_input_of_scores():
    y, risk, _ = some()
    with pytest.raises(ValueError, match="one number per sample, 60"):
        metrics.concordance(y, risk[:5])
    with pytest.raises(ValueError, match="one number per sample"):
        metrics.concordance(y, np.where(np.arange(60) == 3, np.nan, risk))
    with pytest.raises(ValueError, match="no two samples"):
        metrics.concordance(survival([1, 2], [0, 0]), [1, 2])
    with pytest.raises(ValueError, match="there is no likelihood"):
        metrics.partial_likelihood(survival([1, 2], [0, 0]), [1, 2])
    with pytest.raises(ValueError, match="a row per sample"):
        metrics.brier_score(y, y, np.ones((60, 2)), [1.0])
    with pytest.raises(ValueError, match="between 0 and the last time"):
        metrics.brier_score(y, y, np.ones((60, 1)), [99.0])
    with pytest.raises(ValueError, match="increase"):
        metrics.integrated_brier_score(y, y, np.ones((60, 2)), [2.0, 2.0])
    with pytest.raises(ValueError, match="scoring must be one of"):
        metrics.scorer("accuracy")
