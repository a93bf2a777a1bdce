"""What the page says of choices that the scores leave open, and whether what the model is compared with is fair."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import BestKernelClassifier, MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.estimators.subsets import SubsetFits
from kernelweave.inspection import tied_views
from kernelweave.report import make_report
from kernelweave.views import Views

from .refitted import refit

CS = np.logspace(-2, 3, 7)
NAMES = ("first", "second", "third")
VIEWS = kw.per_view({"first": slice(0, 4), "second": slice(4, 8), "third": slice(8, 12)}, kw.linear())


def views(seed: int = 103):
    """Two classes; the second view repeats the first with noise."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["sick", "well"], 30))
    X = rng.normal(size=(60, 12))
    X[:, :4] += np.where(y == "sick", 1.5, 0.0)[:, None]
    X[:, 4:8] = X[:, :4] + 0.7 * rng.normal(size=(60, 4))
    return X, y


def text_of(page):
    body = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).replace("\xa0", " ").split())


# ---- choices that the scores do not tell apart -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def tied():
    X, y = views()
    model = MKLClassifierCV(VIEWS, Cs=CS, cv=StratifiedKFold(4, shuffle=True, random_state=3)).fit(X, y)
    return model, text_of(make_report(model, X, y, n_folds=3, n_repeats=1))


def test_what_is_left_open_is_said_first(tied):
    model, text = tied
    assert tied_views(model) is not None
    assert (
        text.index("Read this first")
        < text.index("C is not decided by the scores")
        < text.index("What was learnt")
    )
    low, high = (f"{end:.2f}" for end in tied_views(model).ranges["first"])
    assert f"'first' {low} to {high}" in text


def test_weights_at_every_tied_choice_are_on_the_page(tied):
    model, text = tied
    found = text[text.index("Weights of the views at choices that the scores do not tell apart") :]
    for C, kind in zip(model.ties_["C"], model.ties_["tie"], strict=True):
        fit = MKLClassifier(VIEWS, C=C, tol=1e-5).fit(*views())
        shares = fit.weights_ / fit.weights_.sum()
        value = f"{C:.0f}" if C >= 1000 else f"{C:.3g}"
        row = re.search(rf"l1 {value}( \(this fit\))? 0\.\d+ {kind} ([\d.]+) ([\d.]+) ([\d.]+)", found)
        head = re.search(r"norm C score choice (\w+) (\w+) (\w+)", found).groups()
        shown = dict(zip(head, map(float, row.groups()[1:]), strict=True))
        np.testing.assert_allclose([shown[name] for name in NAMES], shares, atol=0.02)


def test_no_view_leads_where_that_depends_on_the_choice(tied):
    model, text = tied
    among = tied_views(model)
    assert among.leader is None
    assert not among.settled
    assert "The view with the most weight is" not in text
    assert "Which view has the most weight is not decided: among the" in text
    assert "knowledge of which kernels were needed" not in text
    assert "range of tied choices" in text


def test_a_leader_is_named_with_its_range_over_tied_choices():
    X, y = views()
    X[:, 4:] = np.random.default_rng(1).normal(size=(60, 8))  # the first view alone says anything
    model = MKLClassifierCV(VIEWS, Cs=CS, cv=3).fit(X, y)
    among = tied_views(model)
    assert among.leader == "first"
    low, high = (f"{100 * end:.0f} %" for end in among.ranges["first"])
    text = text_of(make_report(model, X, y, n_folds=2, n_repeats=1))
    assert "The view with the most weight is “first”" in text
    assert f"{low} to {high} among the {len(among.choices)} choices of C that" in text


def test_whether_a_view_is_needed_is_asked_at_the_ends_of_the_tied_range(tied):
    model, text = tied
    X, y = views()
    splits = refit(model, X, y).splits
    Cs = [float(model.C_), *sorted({model.ties_["C"].min(), model.ties_["C"].max()} - {float(model.C_)})]
    needed = []
    for C in Cs:

        def score(columns, C=C):
            bank = kw.per_view({str(k): slice(4 * k, 4 * k + 4) for k in columns}, kw.linear())
            fits = ((MKLClassifier(bank, C=C).fit(X[train], y[train]), test) for train, test in splits)
            return np.mean([fit.score(X[test], y[test]) for fit, test in fits])

        whole = score((0, 1, 2))
        needed.append([score(others) < whole - 1e-12 for others in ((1, 2), (0, 2), (0, 1))])
    here, elsewhere = np.array(needed[0]), np.array(needed[1:])
    if "the view need not be measured" in text:
        name = re.search(r"Without '(\w+)' the model does as well", text)[1]
        assert not here[NAMES.index(name)]
        assert not elsewhere[:, NAMES.index(name)].any()
    elif "Every view helps" in text:
        assert here.all()
        assert elsewhere.all()
    else:
        assert re.search(r"Whether (every view|'\w+') is needed is not decided", text)
        assert not (here.all() and elsewhere.all())


def test_subsets_with_another_norm_and_C_of_the_search():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80], y[:80]
    bank = kw.per_view({"body": [0, 1, 2, 3], "blood": [4, 5, 6, 7, 8, 9]}, kw.linear())
    model = MKLRegressorCV(bank, Cs=[0.1, 1.0, 10.0], cv=3).fit(X, y)
    splits = list(KFold(3).split(X))
    body = kw.per_view({"body": [0, 1, 2, 3]}, kw.linear())
    for label, norm, C in [("uniform", "uniform", 10.0), ("l2", 2, 0.1)]:
        scores, _ = SubsetFits(model, X, y).scores([np.arange(2), np.array([0])], splits, (label, C))
        for row, some in zip(scores, (bank, body), strict=True):
            alone = MKLRegressor(some, norm=norm, C=C, center=True)
            by_hand = [clone(alone).fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits]
            np.testing.assert_allclose(row, by_hand, atol=0.01)


def test_the_range_of_refits_is_no_confidence_interval(tied):
    text = tied[1]
    assert "range of the refits" in text
    assert "it is no confidence interval" in text
    assert "95 % of" not in text.replace("95 % of the", "95 % of")
    X, y = views()
    refits = refit(tied[0], X, y)
    rows = refits.stability.by_view()
    sums = refits.stability.weights
    np.testing.assert_allclose(rows["low"], sums.min(axis=0))
    np.testing.assert_allclose(rows["high"], sums.max(axis=0))


def test_nothing_is_left_open_where_C_was_given():
    X, y = views()
    assert tied_views(MKLClassifier(VIEWS).fit(X, y)) is None
    one = MKLClassifierCV(VIEWS, Cs=[1.0], cv=3).fit(X, y)
    assert tied_views(one) is None


# ---- what the model is compared with ---------------------------------------------------------------------------------


def test_the_best_kernel_is_tuned_like_the_model():
    X, y = views()
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    model = MKLClassifierCV(VIEWS, Cs=CS, cv=folds).fit(X, y)
    found = refit(model, X, y)
    best = next(method for method in found.methods if method.name == "best single kernel")
    alone = BestKernelClassifier(VIEWS, Cs=CS, cv=folds, C=model.C_)
    scores = [clone(alone).fit(X[a], y[a]).score(X[b], y[b]) for a, b in found.splits]
    np.testing.assert_allclose(best.measures["accuracy"].scores, scores)
    mean = next(method for method in found.methods if method.name == "mean kernel")
    uniform = MKLClassifierCV(VIEWS, Cs=CS, cv=folds, norm="uniform")
    scores = [clone(uniform).fit(X[a], y[a]).score(X[b], y[b]) for a, b in found.splits]
    np.testing.assert_allclose(mean.measures["accuracy"].scores, scores)


def test_methods_on_the_columns_by_scikit_learn():
    X, y = views()
    leak = np.column_stack([X, y == "sick"])  # a column that no kernel looks at is not given to the others
    found = refit(MKLClassifier(VIEWS, class_weight="balanced").fit(leak, y), leak, y)
    logistic, forest = found.methods[3:5]
    grid = {"logisticregression__C": 10.0 ** np.arange(-4, 3)}
    steps = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    trees = RandomForestClassifier(100, class_weight="balanced", random_state=0)
    for method, theirs in ((logistic, GridSearchCV(steps, grid, cv=inner)), (forest, trees)):
        scores, areas = [], []
        for train, test in found.splits:
            fit = clone(theirs).fit(X[train], y[train])
            scores.append(fit.score(X[test], y[test]))
            areas.append(roc_auc_score(y[test] == "well", fit.predict_proba(X[test])[:, 1]))
        np.testing.assert_allclose(method.measures["accuracy"].scores, scores)
        np.testing.assert_allclose(method.measures["AUROC"].scores, areas)


def test_regression_has_one_row_for_the_mean_kernel():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:90], y[:90]
    bank = kw.per_view({"body": [0, 1, 2, 3], "blood": [4, 5, 6, 7, 8, 9]}, kw.linear())
    expected = ["this model", "mean kernel", "ridge regression", "random forest", "mean of the targets"]
    for model in (
        MKLRegressor(bank, C=10.0),
        MKLRegressorCV(bank, Cs=4, cv=3),
        MKLRegressorCV(bank, criterion="reml"),
        MKLRegressor(bank, loss="epsilon_insensitive"),
    ):
        found = refit(model.fit(X, y), X, y)
        assert [method.name for method in found.methods] == expected
    chosen = refit(MKLRegressorCV(bank, criterion="reml").fit(X, y), X, y)
    assert not np.allclose(chosen.methods[1].measures["R²"].scores, chosen.ours.measures["R²"].scores)


def test_samples_that_are_no_table_have_no_methods_on_columns():
    X, y = views()
    stack = np.stack([X[:, :4] @ X[:, :4].T, X[:, 4:] @ X[:, 4:].T])
    held = MKLClassifier(kw.held(stack)).fit(np.arange(60), y)
    found = refit(held, np.arange(60), y)
    assert [method.name for method in found.methods] == [
        "this model", "mean kernel", "best single kernel", "majority class",
    ]  # fmt: skip
    text = text_of(make_report(held, np.arange(60), y, n_folds=2, n_repeats=1))
    assert "There is no method from outside beside it: the samples are no table of numbers" in text


def test_views_that_samples_lack_are_imputed_for_the_others():
    X, y = views()
    tables = {name: X[:, 4 * k : 4 * k + 4].copy() for k, name in enumerate(NAMES)}
    tables["second"][:20] = np.nan
    samples = Views(tables)
    bank = kw.linear().on("first") + kw.linear().on("second") + kw.linear().on("third")
    model = MKLClassifier(bank, missing="mean").fit(samples, y)
    found = refit(model, samples, y)
    forest = next(method for method in found.methods if method.name == "random forest")
    whole = np.hstack(list(tables.values()))
    steps = make_pipeline(
        SimpleImputer(keep_empty_features=True), RandomForestClassifier(100, random_state=0)
    )
    scores = [clone(steps).fit(whole[a], y[a]).score(whole[b], y[b]) for a, b in found.splits]
    np.testing.assert_allclose(forest.measures["accuracy"].scores, scores)
    assert "missing ones replaced by the mean" in forest.about


def test_groups_stay_together_inside_every_method(monkeypatch):
    """Folds that a method chooses its strength on do not part a group either."""
    data = load_iris()
    X, y = data.data, data.target
    groups = np.arange(150) // 5
    model = MKLClassifierCV(kw.gaussian([1.0, 2.0]), Cs=[1.0, 10.0], cv=StratifiedGroupKFold(3))
    seen = []

    def looked(self, X, y=None, **others):
        seen.append((len(y), self.cv))
        return fit(self, X, y, **others)

    for kind in (GridSearchCV, BestKernelClassifier):
        fit = kind.fit
        monkeypatch.setattr(kind, "fit", looked)
        seen.clear()
        found = refit(model.fit(X, y, groups=groups), X, y, groups=groups)
        assert len(seen) == 3
        for (size, folds), (train, _) in zip(seen, found.splits, strict=True):
            assert size == len(train)
            for inner, held_out in folds:
                assert not set(groups[train][inner]) & set(groups[train][held_out])
        monkeypatch.setattr(kind, "fit", fit)
