"""Pages about models of pairs: folds of every setting, simple predictions, and what stands on the page."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor, MKLRegressorCV, PairKFold, Pairs, inspection
from kernelweave import kernels as kw
from kernelweave.report import make_report
from kernelweave.report.pairs import ObjectMeans, ObjectShares, pair_folds

RNG = np.random.default_rng(0)
LEFT, RIGHT = RNG.normal(size=(14, 3)), RNG.normal(size=(11, 3))
TABLE = LEFT @ RIGHT.T + LEFT[:, :1] + 0.1 * RNG.normal(size=(14, 11))
TABLE[RNG.random(TABLE.shape) < 0.25] = np.nan
X = Pairs.from_grid(
    LEFT, RIGHT, TABLE, left_names=[f"d{i}" for i in range(14)], right_names=list("abcdefghijk")
)
Y = X.labels
BANK = kw.pairs(kw.linear(), kw.linear() + kw.gaussian(2.0))


@pytest.mark.parametrize("setting", ["pairs", "left", "right", "both"])
@pytest.mark.parametrize("one_kind", [False, True])
def test_folds_hold_every_pair_out_once(setting, one_kind):
    some = Pairs(LEFT, index=RNG.integers(0, 14, size=(60, 2))) if one_kind else X
    splits = pair_folds(some, setting, 4, 1, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(len(some)))
    for train, test in splits:
        lefts, rights = some.left_of[train], some.right_of[train]
        if one_kind:
            lefts = rights = np.concatenate([lefts, rights])
        if setting in ("left", "both"):
            assert not np.intersect1d(lefts, some.left_of[test]).size
        if setting in ("right", "both"):
            assert not np.intersect1d(rights, some.right_of[test]).size
        assert not np.intersect1d(train, test).size


def test_means_of_objects_are_least_squares():
    """By turns they come to what a regression on indicators of both objects gives; new objects add nothing."""
    Z = np.hstack([np.eye(14)[X.left_of], np.eye(11)[X.right_of]])
    exact = Z @ np.linalg.lstsq(Z, Y, rcond=None)[0]
    np.testing.assert_allclose(ObjectMeans().fit(X, Y).predict(X), exact, atol=0.01)
    train = X.left_of > 0
    fitted = ObjectMeans().fit(X[train], Y[train])
    assert fitted.effects_[0][0] == 0.0
    one = X[~train]
    np.testing.assert_allclose(fitted.predict(one), fitted.mean_ + fitted.effects_[1][one.right_of])
    shares = ObjectShares().fit(X, Y > 0)
    np.testing.assert_array_equal(shares.predict(X), shares.decision_function(X) > 0)
    three = ObjectShares().fit(X, np.digitize(Y, [-1, 1]))
    np.testing.assert_allclose(three.decision_function(X).sum(axis=1), 1.0)


def cells(page, caption):
    """Return the rows of a table."""
    body = re.search(rf"<caption><span>{caption}.*?<tbody>(.*?)</tbody>", page, flags=re.DOTALL)[1]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]


def test_a_regression():
    model = MKLRegressorCV(BANK, Cs=[1.0, 10.0], cv=PairKFold(3, setting="right")).fit(X, Y)
    page = make_report(
        model, X, Y, n_folds=3, n_repeats=1, note={"pairs": {"left_id": "drug", "right_id": "cell"}}
    )
    rows = {row[0]: row[1:] for row in cells(page, "Held-out R²")}
    assert list(rows) == [
        "a new pair of a known drug and a known cell", "a new drug", "a new cell (this page)", "a new drug with a new cell",
    ]  # fmt: skip
    for row in rows.values():
        assert float(row[0]) > float(row[1])
    splits = pair_folds(X, "left", 4, 1, 0)
    scores = [ObjectMeans().fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in splits]
    assert float(rows["a new drug"][1]) == pytest.approx(np.mean(scores), abs=6e-4)
    again = MKLRegressor(BANK, C=float(model.C_), norm=model.norm_)
    scores = [again.fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in splits]
    assert float(rows["a new drug"][0]) == pytest.approx(np.mean(scores), abs=2e-3)
    table = inspection.pair_table(model, margins=True)
    for caption, sums in (
        ("Weights by kernel of drug", table["all"]),
        ("Weights by kernel of cell", table.loc["all"]),
    ):
        for name, weight, _ in cells(page, caption):
            assert float(weight.replace("&lt;", "").replace("<", "")) == pytest.approx(sums[name], abs=1.1e-3)
    assert f"{len(X)} of 154 pairs were measured ({100 * len(X) / 154:.1f}" in page
    assert 'id="confusion"' not in page
    assert 'id="subsets"' not in page


def test_other_models():
    """Fixed C, weights by evidence, and classes with few objects; a setting of one's own."""
    with pytest.raises(ValueError, match="setting must be one of"):
        make_report(MKLRegressor(BANK).fit(X, Y), X, Y, setting="drug")
    few = X[::2]
    model = MKLRegressorCV(kw.pairs(kw.linear(), kw.linear()), criterion="reml").fit(few, Y[::2])
    page = make_report(model, few, Y[::2], n_folds=2, n_repeats=1, setting="both")
    assert "a new left object with a new right object (this page)" in page
    labels = np.digitize(Y, [-1.0, 1.5])
    some = X[X.left_of < 4]
    kept = labels[X.left_of < 4]
    model = MKLClassifier(BANK, loss="logistic", C=10.0).fit(some, kept)
    page = make_report(model, some, kept, n_folds=2, n_repeats=1)
    assert "of each left object" in page
    assert ", 10 have none" in page


def test_features_of_pairs_are_not_numbered():
    with pytest.raises(ValueError, match="pairs"):
        inspection.feature_weights(MKLRegressor(BANK).fit(X, Y))
