"""Columns of objects: lists, tables, dicts of views, missing objects, bad ones, folds and model files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict

from kernelweave import KernelFeatures, MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, Views
from kernelweave import kernels as kw
from kernelweave.persistence import load, save

N = 80
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
SEQUENCES = ["".join(RNG.choice(list("ACGT"), size=30)) for _ in range(N)]
SEQUENCES = [s[:10] + "GATTACA" + s[17:] if label else s for s, label in zip(SEQUENCES, Y, strict=True)]
NUMBERS = RNG.normal(size=(N, 3)) + Y[:, None]
GAPS: list = [None if i % 20 == 3 else s for i, s in enumerate(SEQUENCES)]


def table(sequences=SEQUENCES) -> pd.DataFrame:
    return pd.DataFrame({"a": NUMBERS[:, 0], "sequence": sequences, "b": NUMBERS[:, 1]})


BANK = kw.spectrum([2, 3]).on("sequence") + kw.gaussian(1.0).on(["a", "b"])


def same_after_saving(model, X, path) -> None:
    """Check that a pickle and a model file predict what the model predicts."""
    wanted = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), wanted)
    save(model, path)
    np.testing.assert_array_equal(load(path).predict(X), wanted)


@pytest.mark.parametrize(
    ("X", "bank"),
    [
        (SEQUENCES, kw.spectrum([2, 3])),
        (np.array(SEQUENCES, dtype=object), kw.spectrum([2, 3])),
        (pd.Series(SEQUENCES), kw.spectrum(3, gaps=1) + kw.spectrum(3, mismatches=1, alphabet="dna")),
        (table(), BANK),
        ({"sequence": SEQUENCES, "numbers": NUMBERS}, kw.spectrum([2, 3]) + kw.gaussian(1.0)),
        (Views({"sequence": SEQUENCES, "numbers": NUMBERS}), kw.spectrum(3) + kw.linear().on("numbers")),
    ],
    ids=["list", "array", "series", "table", "dict", "views"],
)
def test_every_shape_of_objects(X, bank, tmp_path):
    model = MKLClassifier(bank).fit(X, Y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.score(X, Y) > 0.9
    same_after_saving(model, X, tmp_path / "m.skops")


def test_kernels_go_where_they_are_taken():
    model = MKLClassifier(kw.spectrum(3) + kw.linear()).fit({"s": SEQUENCES, "x": NUMBERS, "z": NUMBERS}, Y)
    assert model.kernel_names_.tolist() == ["spectrum(k=3) on s", "linear on x", "linear on z"]
    both = MKLClassifier([lambda a, b: float(np.all(a == b))]).fit({"s": SEQUENCES, "x": NUMBERS}, Y)
    assert len(both.kernel_names_) == 2
    with pytest.raises(ValueError, match="takes none of the views"):
        MKLClassifier(kw.spectrum(3)).fit({"x": NUMBERS}, Y)


def test_prediction_is_the_sum_over_training_samples():
    """The function of sparse features is kept as a direction, and is the same function."""
    bank = kw.spectrum([1, 2, 3]) + kw.spectrum(2, gaps=1) + kw.spectrum(3, compare="tanimoto")
    bank += kw.spectrum(4, compare="product")  # whose diagonal is not one
    model = MKLClassifier(bank, norm=2).fit(SEQUENCES[:60], Y[:60])
    parts = zip(model.weights_, model.kernels_, strict=True)
    K = sum(w * k(SEQUENCES, SEQUENCES[:60]) / k.diag(SEQUENCES[:60]).mean() for w, k in parts)
    wanted = (K @ model.dual_coef_.reshape(60, -1)).ravel() + model.intercept_
    np.testing.assert_allclose(model.decision_function(SEQUENCES), wanted, atol=1e-9)


@pytest.mark.parametrize("missing", ["mean", "predict"])
@pytest.mark.parametrize("kind", ["dict", "table"])
def test_missing_objects_are_missing_views(kind, missing, tmp_path):
    X = {"sequence": GAPS, "numbers": NUMBERS} if kind == "dict" else table(GAPS)
    bank = kw.spectrum(3) + kw.gaussian(1.0) if kind == "dict" else BANK
    model = MKLClassifier(bank, missing=missing).fit(X, Y)
    assert model.score(X, Y) > 0.85
    same_after_saving(model, X, tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"missing for 4 of 80 samples|row 3: there is none; row 23"):
        MKLClassifier(bank).fit(X, Y)


def test_bad_objects_are_named_by_kernel_column_and_row():
    bad: list = list(SEQUENCES)
    bad[5], bad[9] = "AC7T", 3.5
    said = r"kernel 'spectrum\(k=2, alphabet=dna\)' on 'sequence' takes texts, and 2 of 80 samples are none: row 5: "
    said += r"'AC7T' has '7', which is no letter of alphabet 'dna'; row 9: float 3.5"
    bank = kw.spectrum(2, alphabet="dna").on("sequence") + kw.linear().on(["a", "b"])
    with pytest.raises(ValueError, match=said):
        MKLClassifier(bank).fit(table(bad), Y)
    model = MKLClassifier(bank).fit(table(), Y)
    with pytest.raises(ValueError, match=said):
        model.predict(table(bad))
    with pytest.raises(ValueError, match=said):
        MKLClassifier(kw.spectrum(2, alphabet="dna") + kw.linear()).fit({"sequence": bad, "x": NUMBERS}, Y)
    # rows are those of all samples, also where some of them lack the view
    gone = [None, *bad[1:]]
    with pytest.raises(ValueError, match="2 of 79 samples are none: row 5"):
        MKLClassifier(kw.spectrum(2, alphabet="dna") + kw.linear(), missing="mean").fit(
            {"s": gone, "x": NUMBERS}, Y
        )
    with pytest.raises(ValueError, match="those on texts, molecules and graphs are in"):
        MKLClassifier().fit(SEQUENCES, Y)
    with pytest.raises(ValueError, match="takes one column of objects, and there are 3"):
        MKLClassifier(kw.spectrum(2)).fit(table(), Y)


def test_searches_over_the_length_of_words():
    one = GridSearchCV(MKLClassifier(kw.spectrum(1)), {"kernels__k": [1, 3]}, cv=3).fit(SEQUENCES, Y)
    assert one.best_params_ == {"kernels__k": 3}
    bank = kw.spectrum(1).on("sequence") + kw.linear().on("a")
    grid = {"kernels__spectrum__kernel__k": [1, 3]}
    assert GridSearchCV(MKLClassifier(bank), grid, cv=3).fit(table(), Y).best_params_[next(iter(grid))] == 3
    # what was settled on samples is no part of the copy
    kernel = kw.spectrum(2).resolve(SEQUENCES)
    assert kernel.vocabulary is not None
    assert GridSearchCV(MKLClassifier(kernel), {"kernels__k": [3]}, cv=3).fit(SEQUENCES, Y).best_score_ > 0.7


@pytest.mark.parametrize("estimator", [MKLClassifierCV, MKLRegressorCV])
def test_folds_see_the_vocabulary_of_their_own(estimator):
    """Folds use one bank, in which held-out samples have words of their own: the values are the same."""
    model = estimator(kw.spectrum([2, 3]), cv=3, random_state=0).fit(SEQUENCES, Y)
    assert model.score(SEQUENCES, Y) > 0.6
    held_out = cross_val_predict(MKLClassifier(kw.spectrum(3)), SEQUENCES, Y, cv=3)
    assert np.mean(held_out == Y) > 0.7


@pytest.mark.parametrize(
    "options",
    [
        {"center": True},
        {"normalize": "cosine"},
        {"normalize": None},
        {"storage": "lowrank"},
        {"storage": "lazy"},
        {"storage": "dense", "dtype": "float32"},
        {"loss": "logistic"},
        {"loss": "squared_hinge", "solver": "block_descent", "storage": "lowrank"},
        {"loss": "squared_hinge", "solver": "lbfgs", "storage": "lowrank", "norm": "lp"},
        {"norm": "lp"},
    ],
    ids=str,
)
def test_every_way_to_keep_and_to_solve(options, tmp_path):
    kernels = [k.resolve(SEQUENCES) for k in kw.spectrum([2, 3], n_features=64)]
    dense = np.hstack([k.features(SEQUENCES).toarray() for k in kernels])
    widths = np.cumsum([0, *(k.rank(1) for k in kernels)])
    by_hand = kw.linear().on(list(range(widths[1]))) + kw.linear().on(list(range(widths[1], widths[2])))
    model = MKLClassifier(kw.spectrum([2, 3], n_features=64), tol=1e-6, max_iter=5000, **options).fit(
        SEQUENCES, Y
    )
    wanted = MKLClassifier(by_hand, tol=1e-6, max_iter=5000, **options).fit(dense, Y)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.certificate_.primal == pytest.approx(wanted.certificate_.primal, rel=3e-6)
    np.testing.assert_allclose(model.decision_function(SEQUENCES), wanted.decision_function(dense), atol=2e-2)
    same_after_saving(model, SEQUENCES, tmp_path / "m.skops")


def test_features_and_other_estimators(tmp_path):
    Z = KernelFeatures(kw.spectrum([2, 3])).fit(SEQUENCES).transform(SEQUENCES[:5])
    assert Z.shape[0] == 5
    model = MKLRegressor(kw.spectrum([2, 3])).fit(SEQUENCES, NUMBERS[:, 0])
    with pytest.raises(ValueError, match="sparse features of objects"):
        model.predict(SEQUENCES, return_std=True)
    kept = MKLRegressor(kw.spectrum([2, 3], compare="tanimoto")).fit(SEQUENCES, NUMBERS[:, 0])
    assert np.all(kept.predict(SEQUENCES, return_std=True)[1] > 0)
    same_after_saving(kept, SEQUENCES, tmp_path / "m.skops")
    online = MKLClassifier(
        kw.spectrum([2, 3], n_features=64), solver="obscure", norm=1.2, fit_intercept=False
    )
    online.partial_fit(SEQUENCES[:40], Y[:40], classes=[0, 1]).partial_fit(SEQUENCES[40:], Y[40:])
    assert online.score(SEQUENCES, Y) > 0.6


def test_a_damaged_vocabulary_is_refused(tmp_path):
    from kernelweave.persistence import ModelFileError

    model = MKLClassifier(kw.spectrum(2)).fit(SEQUENCES, Y)
    model.kernels_[0].vocabulary = model.kernels_[0].vocabulary[::-1].copy()
    save(model, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="vocabulary of a kernel is not in order"):
        load(tmp_path / "m.skops")
