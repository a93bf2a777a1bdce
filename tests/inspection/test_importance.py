"""Shapley values are those of the definition; importance of views beside what it hangs on."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import factorial

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLRegressor, NoisyLabelMKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import ShapleyDisplay
from kernelweave.inspection import contributions, feature_weights, shapley_values, view_importance

mpl.use("Agg")
X, Y = load_iris(return_X_y=True)
VIEWS = {"sepal": [0, 1], "length": [2], "width": [3]}
BANK = kw.per_view(VIEWS, kw.linear(), kw.gaussian(1.0))


def by_definition(decide, x, background):
    """Weighted differences over all coalitions, absent views taken from the background."""
    views = list(VIEWS.values())

    def worth(known):
        mixed = background.copy()
        for v in known:
            mixed[:, views[v]] = x[views[v]]
        return decide(mixed).mean(axis=0)

    m, out = len(views), []
    for v in range(m):
        others = [u for u in range(m) if u != v]
        out.append(
            sum(
                factorial(size) * factorial(m - size - 1) / factorial(m) * (worth((*some, v)) - worth(some))
                for size in range(m)
                for some in combinations(others, size)
            )
        )
    return np.array(out)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (MKLClassifier(BANK, norm=2), Y == 1),
        (MKLClassifier(BANK, norm=2), Y),
        (make_pipeline(StandardScaler(), MKLClassifier(BANK, norm=2)), Y == 2),
        (MKLRegressor(BANK, norm=2), X[:, 2] * X[:, 3]),
    ],
    ids=["two classes", "three", "pipeline", "regression"],
)
def test_shapley_values_are_those_of_the_definition(model, y):
    model.fit(X, y)
    decide = getattr(model, "decision_function", model.predict)
    background = X[::10]
    found = shapley_values(model, X[[0, 77]], background)
    np.testing.assert_allclose(found.decision, decide(X[[0, 77]]), atol=1e-9)
    np.testing.assert_allclose(found.base, decide(background).mean(axis=0), atol=1e-9)
    for row, sample in enumerate((0, 77)):
        np.testing.assert_allclose(found.values[row], by_definition(decide, X[sample], background), atol=1e-9)


def test_tables_say_which_class():
    two = MKLClassifier(BANK, norm=2).fit(X, np.where(Y == 1, "versicolor", "another"))
    table = contributions(two, X[:1]).table(0)
    assert table["class"].tolist() == [
        "versicolor" if value >= 0 else "another" for value in table["contribution"]
    ]
    three = MKLClassifier(BANK, norm=2).fit(X, Y)
    assert set(contributions(three, X[:1]).table(0)["class"]) == {three.predict(X[:1])[0]}
    assert set(contributions(three, X[:1]).table(0, class_=2)["class"]) == {2}
    assert "class" not in contributions(MKLRegressor(BANK).fit(X, X[:, 0]), X[:1]).table(0)
    shares = shapley_values(three, X[:1], X)
    assert set(shares.table(0, class_=1)["class"]) == {1}
    with pytest.raises(ValueError, match="unknown class 7"):
        shares.table(0, class_=7)
    with pytest.raises(ValueError, match="leave class_ out"):
        shapley_values(two, X[:1]).of(0, "another")


def test_feature_weights_are_sorted_by_size():
    for y in (Y == 1, Y):
        table = feature_weights(MKLClassifier(BANK, norm=2).fit(X, y))
        size = table.iloc[:, 3:].abs().max(axis=1).to_numpy()
        assert np.all(np.diff(size) <= 0)
        assert set(table["feature"]) == {f"feature {j}" for j in range(4)}


def test_the_picture_goes_from_the_mean_to_the_decision():
    model = MKLClassifier(BANK, norm=2).fit(X, Y)
    display = ShapleyDisplay.from_estimator(model, X, 3, background=X, class_=0)
    steps = display.steps()
    assert steps[0][1] == pytest.approx(model.decision_function(X)[:, 0].mean())
    assert steps[-1][2] == pytest.approx(model.decision_function(X[3:4])[0, 0])
    assert all(before[2] == after[1] for before, after in pairwise(steps))
    assert "decision for 0" in display.ax_.get_title()
    few = ShapleyDisplay([3.0, 1.0, -0.5, 0.25], list("abcd")).steps(top=2)
    assert few == [("a", 0.0, 3.0), ("3 other views", 3.0, 3.75)]
    with pytest.raises(ValueError, match="one number for each of 2 views"):
        ShapleyDisplay([1.0], ["a", "b"])
    mpl.pyplot.close("all")


def test_importance_of_views_beside_what_it_hangs_on():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 6))
    Z[:, 4:] = Z[:, :2] + 0.01 * rng.normal(size=(90, 2))  # says what the first view says
    y = np.where(Z[:, 0] + Z[:, 1] > 0, "up", "down")
    views = {"signal": [0, 1], "noise": [2, 3], "copy": [4, 5]}
    model = MKLClassifier(kw.per_view(views, kw.linear(), kw.gaussian(1.0)), norm=2).fit(Z, y)
    told = []
    answer = view_importance(
        model, Z, y, n_folds=3, n_permutations=49, factors=(0.1, 1.0), progress=lambda *at: told.append(at)
    )
    table = answer.table.set_index("view")
    assert list(table.index) == list(views)
    assert table["weight"].sum() == pytest.approx(1.0)
    assert np.all(table["low_C"] <= table["weight"] + 1e-12)
    assert np.all(table["weight"] <= table["high_C"] + 1e-12)
    assert np.all(table["low_bank"] <= table["high_bank"])
    assert table.loc["signal", "p_value"] == pytest.approx(0.02)  # the model leans on it,
    assert table.loc["signal", "score"] - table.loc["signal", "without"] < 0.05  # and does as well without it
    assert table["score"].nunique() == 1
    np.testing.assert_allclose(answer.along_C["C"], [0.1, 1.0])
    assert answer.banks["left_out"].tolist() == ["linear", "gaussian(width=1)"]
    np.testing.assert_allclose(answer.banks[list(views)].sum(axis=1), 1.0)
    assert "signal: weight" in str(answer)
    assert told[-1][0] == told[-1][1]
    with pytest.raises(ValueError, match="factors"):
        view_importance(model, Z, y, factors=(0.0,))
    with pytest.raises(ValueError, match="not one mixture"):
        view_importance(NoisyLabelMKLClassifier(kw.linear()).fit(Z, y), Z, y)


@pytest.mark.parametrize("target", ["two", "three", "number"])
def test_p_values_are_those_of_shuffling_one_view_at_a_time(target):
    from kernelweave.inspection.importance import test_views as shuffled_views

    classify = target != "number"
    labels = {"two": (Y > 0).astype(int), "three": Y, "number": X[:, 3]}[target]
    model = MKLClassifier(BANK, norm=2, C=0.1) if classify else MKLRegressor(BANK, norm=2, C=0.1)
    part = contributions(model.fit(X[::3], labels[::3]), X[1::3])
    held_out = labels[1::3]

    def quality(decision):
        if not classify:
            return -np.mean((decision - held_out) ** 2)
        if decision.ndim == 1:
            margins = decision * (2 * held_out - 1)
        else:
            own = decision[np.arange(len(held_out)), held_out]
            others = [np.max(np.delete(row, code)) for row, code in zip(decision, held_out, strict=True)]
            margins = own - np.array(others)
        return np.mean(np.clip(margins, -1, 1))

    table = shuffled_views([(part, held_out)], 19, np.random.RandomState(0), classify)
    random = np.random.RandomState(0)
    orders = [random.permutation(len(held_out)) for _ in range(19)]
    for v, row in table.iterrows():
        mine = part.by_view()[:, v]
        values = np.array([quality(part.decision - mine + mine[order]) for order in orders])
        assert row["quality"] == pytest.approx(quality(part.decision), abs=1e-12)
        assert row["shuffled"] == pytest.approx(values.mean(), abs=1e-12)
        assert row["p_value"] == (1 + np.sum(values >= row["quality"] - 1e-12)) / 20
