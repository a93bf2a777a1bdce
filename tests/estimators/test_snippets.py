"""What people do with any estimator of scikit-learn, as they write it: each test is a snippet, and none of them fails."""

from __future__ import annotations

import copy
import io
import pickle
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import (
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    classification_report,
    confusion_matrix,
    make_scorer,
    roc_auc_score,
)
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneOut,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelEncoder, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import estimator_html_repr, get_tags

from kernelweave import (
    KernelFeatures,
    MeanKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    SimilarityClassifier,
    similarity,
)
from kernelweave import kernels as kw

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
SCORE = X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=60)
Y = (SCORE > 0).astype(int)
THREE = np.digitize(SCORE, [-0.5, 0.5])
FRAME = pd.DataFrame(X, columns=["mean a", "mean b", "se a", "age"])
BANK = kw.gaussian([1.0, 2.0]) + kw.linear()
CV = StratifiedKFold(2)

# ---- fit, predict, score -------------------------------------------------------------------------------------------


def test_fit_predict_in_one_line():
    assert MKLClassifier().fit(X, Y).predict(X).shape == (60,)


def test_train_test_split():
    X_train, X_test, y_train, y_test = train_test_split(X, Y, random_state=0, stratify=Y)
    assert accuracy_score(y_test, MKLClassifier(BANK).fit(X_train, y_train).predict(X_test)) > 0.5


def test_labels_that_are_texts():
    model = MKLClassifier(BANK).fit(X, np.where(Y, "ill", "well"))
    assert set(model.predict(X)) <= set(model.classes_) == {"ill", "well"}


def test_labels_as_a_column_of_a_table():
    table = FRAME.assign(diagnosis=np.where(Y, "ill", "well"))
    model = MKLClassifier(BANK).fit(table.drop(columns="diagnosis"), table["diagnosis"])
    assert list(model.feature_names_in_) == list(FRAME.columns)


def test_labels_by_an_encoder():
    encoder = LabelEncoder().fit(np.where(Y, "ill", "well"))
    codes = MKLClassifier(BANK).fit(X, encoder.transform(np.where(Y, "ill", "well"))).predict(X)
    assert set(encoder.inverse_transform(codes)) == {"ill", "well"}


def test_truth_values_as_labels():
    assert MKLClassifier(BANK).fit(X, SCORE > 0).predict(X).dtype == bool


def test_three_classes():
    model = MKLClassifier(BANK).fit(X, THREE)
    assert model.decision_function(X).shape == (60, 3)


def test_a_report_of_the_classes():
    text = classification_report(THREE, MKLClassifier(BANK).fit(X, THREE).predict(X))
    assert "macro avg" in text


def test_a_confusion_matrix():
    assert confusion_matrix(Y, MKLClassifier(BANK).fit(X, Y).predict(X)).sum() == 60


def test_area_under_the_curve():
    assert roc_auc_score(Y, MKLClassifier(BANK).fit(X, Y).decision_function(X)) > 0.9


def test_probabilities():
    shares = MKLClassifier(BANK, loss="logistic").fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_regression():
    assert MKLRegressor(BANK, C=10.0).fit(X, SCORE).score(X, SCORE) > 0.8


def test_several_targets():
    assert MKLRegressor(BANK).fit(X, np.c_[SCORE, X[:, 2]]).predict(X).shape == (60, 2)


def test_weights_of_samples():
    weight = np.where(Y, 5.0, 1.0)
    model = MKLClassifier(BANK).fit(X, Y, sample_weight=weight)
    assert 0 < model.score(X, Y, sample_weight=weight) <= 1


def test_weights_of_classes():
    assert MKLClassifier(BANK, class_weight="balanced").fit(X, Y).status_ == "converged"


def test_lists_instead_of_arrays():
    assert MKLClassifier(BANK).fit(X.tolist(), Y.tolist()).predict(X[:2].tolist()).shape == (2,)


def test_sparse_samples():
    sparse = csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    assert MKLClassifier(BANK).fit(sparse, Y).predict(sparse).shape == (60,)


def test_single_precision_samples():
    assert MKLClassifier(BANK).fit(X.astype(np.float32), Y).predict(X.astype(np.float32)).shape == (60,)


def test_refit_with_other_data():
    model = MKLClassifier(BANK).fit(X, Y)
    assert model.fit(X[:40, :3], THREE[:40]).n_features_in_ == 3


# ---- kernels as SVC has them ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "cosine", "laplacian"])
def test_a_kernel_by_name(name):
    assert MKLClassifier(name).fit(X, Y).score(X, Y) > 0.5


def test_kernels_by_name_in_a_list():
    assert len(MKLClassifier(["rbf", "linear", "poly"]).fit(X, Y).weights_) == 5


def test_a_kernel_by_name_on_counts():
    assert MKLClassifier("tanimoto").fit(np.abs(X), Y).kernel_names_[0] == "tanimoto"


def test_gamma_instead_of_a_width():
    np.testing.assert_allclose(kw.gaussian(gamma=0.3)(X), rbf_kernel(X, gamma=0.3))
    np.testing.assert_allclose(kw.laplacian(gamma=0.3)(X), laplacian_kernel(X, gamma=0.3))


def test_degree_and_coef0():
    mine = kw.polynomial(degree=3, gamma=0.5, coef0=1.0)(X)
    np.testing.assert_allclose(mine, polynomial_kernel(X, degree=3, gamma=0.5, coef0=1.0))


def test_one_kernel_is_an_svc():
    mine = MKLClassifier(kw.gaussian(gamma=0.3), normalize=None, tol=1e-6).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(mine, SVC(gamma=0.3, tol=1e-6).fit(X, Y).decision_function(X), atol=1e-3)


def test_a_function_of_sklearn_metrics_pairwise():
    assert MKLClassifier(rbf_kernel).fit(X, Y).kernel_names_[0] == "rbf_kernel"


def test_a_function_with_arguments():
    bank = [partial(rbf_kernel, gamma=g) for g in (0.1, 1.0)]
    assert MKLClassifier(bank).fit(X, Y).kernel_names_[1] == "rbf_kernel(gamma=1.0)"


def test_kernels_of_a_gaussian_process():
    bank = [RBF(1.0), Matern(2.0, nu=1.5)]
    np.testing.assert_allclose(kw.as_spec(bank).expand(kw.Schema(4))[1](X), Matern(2.0, nu=1.5)(X))
    assert MKLClassifier(bank).fit(X, Y).score(X, Y) > 0.8


def test_a_precomputed_kernel():
    train, test = np.arange(40), np.arange(40, 60)
    model = MKLClassifier("precomputed").fit([rbf_kernel(X[train]), X[train] @ X[train].T], Y[train])
    assert model.predict([rbf_kernel(X[test], X[train]), X[test] @ X[train].T]).shape == (20,)


def test_precomputed_kernels_in_a_search():
    holder = kw.held([rbf_kernel(X), X @ X.T], names=["rbf", "linear"])
    search = GridSearchCV(MKLClassifier(holder), {"C": [0.1, 1.0]}, cv=CV)
    assert search.fit(np.arange(60).reshape(-1, 1), Y).best_score_ > 0.7


# ---- tables --------------------------------------------------------------------------------------------------------


def test_views_by_a_pattern():
    views = {"means": "mean *", "rest": ["se *", "age"]}
    model = MKLClassifier(kw.per_view(views, "rbf", "linear")).fit(FRAME, Y)
    assert set(model.view_weights_) == set(views)


def test_columns_by_a_selector():
    model = MKLClassifier(kw.linear().on(make_column_selector(pattern="^mean"))).fit(FRAME, Y)
    assert list(model.kernel_names_) == ["linear on mean a, mean b"]


def test_a_dict_of_tables():
    views = {"one": FRAME[["mean a", "mean b"]], "two": FRAME[["age"]]}
    assert MKLClassifier("linear").fit(views, Y).predict(views).shape == (60,)


def test_texts_are_encoded_before():
    table = FRAME.assign(sex=np.where(np.arange(60) % 2, "m", "f"))
    encode = ColumnTransformer([("sex", OneHotEncoder(), ["sex"])], remainder="passthrough")
    assert make_pipeline(encode, MKLClassifier(BANK)).fit(table, Y).score(table, Y) > 0.7


def test_gaps_are_imputed_before():
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    assert make_pipeline(SimpleImputer(), MKLClassifier(BANK)).fit(gaps, Y).score(gaps, Y) > 0.6


# ---- pipelines -----------------------------------------------------------------------------------------------------


def test_a_scaler_before():
    assert make_pipeline(StandardScaler(), MKLClassifier()).fit(X * 1e3, Y).score(X * 1e3, Y) > 0.7


def test_steps_by_name():
    pipe = Pipeline([("scale", StandardScaler()), ("mkl", MKLClassifier(BANK))]).set_params(mkl__C=5.0)
    assert pipe.fit(X, Y)[-1].C == 5.0


def test_a_selection_before():
    assert make_pipeline(SelectKBest(k=2), MKLClassifier(BANK)).fit(X, Y)[-1].n_features_in_ == 2


def test_a_union_before():
    union = FeatureUnion([("pca", PCA(2)), ("all", FunctionTransformer())])
    assert make_pipeline(union, MKLClassifier(BANK)).fit(X, Y)[-1].n_features_in_ == 6


def test_tables_through_a_pipeline():
    scale = StandardScaler().set_output(transform="pandas")
    pipe = make_pipeline(scale, MKLClassifier(kw.gaussian(1.0).on("mean *"))).fit(FRAME, Y)
    assert list(pipe[-1].kernel_names_) == ["gaussian(width=1) on mean *"]


def test_features_of_kernels_for_a_linear_model():
    pipe = make_pipeline(KernelFeatures(BANK, rank=10), LogisticRegression())
    assert pipe.fit(X, Y).score(X, Y) > 0.8


def test_the_learnt_kernel_in_an_svc():
    bank = MKLClassifier(BANK).fit(X, Y)
    gram = sum(w * k(X) for w, k in zip(bank.weights_, BANK, strict=True))
    assert SVC(kernel="precomputed").fit(gram, Y).score(gram, Y) > 0.8
    assert KernelPCA(2, kernel="precomputed").fit_transform(gram).shape == (60, 2)


# ---- searches ------------------------------------------------------------------------------------------------------


def test_a_grid_over_cost_and_norm():
    grid = {"C": [0.1, 1.0], "norm": ["l1", "l2", 1.5]}
    assert len(GridSearchCV(MKLClassifier(BANK), grid, cv=CV).fit(X, Y).cv_results_["params"]) == 6


@pytest.mark.parametrize(
    "kernels", [kw.gaussian(1.0), kw.gaussian([1.0]), kw.gaussian([1.0, 2.0]), "rbf", None]
)
def test_a_grid_over_widths_whatever_the_call(kernels):
    grid = {"kernels__gaussian__width": [0.5, [0.5, 1.0, 2.0]]}
    assert GridSearchCV(MKLClassifier(kernels), grid, cv=CV).fit(X, Y).best_score_ > 0.5


def test_a_grid_over_banks():
    grid = {"kernels": ["rbf", kw.linear(), BANK, None]}
    assert not np.isnan(
        GridSearchCV(MKLClassifier(), grid, cv=CV).fit(X, Y).cv_results_["mean_test_score"]
    ).any()


def test_a_grid_in_a_pipeline():
    pipe = make_pipeline(StandardScaler(), MKLClassifier(BANK))
    grid = {"mklclassifier__kernels__gaussian__width": [0.5, 2.0], "mklclassifier__C": [0.1, 1.0]}
    assert GridSearchCV(pipe, grid, cv=CV).fit(X, Y).best_estimator_[-1].kernels[0].width in (0.5, 2.0)


def test_a_randomised_search():
    draws = {"C": loguniform(1e-2, 1e2), "kernels__gaussian__width": loguniform(0.1, 10)}
    search = RandomizedSearchCV(MKLClassifier(kw.gaussian()), draws, n_iter=3, cv=CV, random_state=0)
    assert 0.01 <= search.fit(X, Y).best_params_["C"] <= 100


def test_a_search_of_our_own():
    assert MKLClassifierCV(BANK, Cs=[0.1, 1.0], cv=2).fit(X, Y).best_score_ > 0.6
    assert MKLRegressorCV(BANK).fit(X, SCORE).score(X, SCORE) > 0.6


def test_several_scores_in_a_search():
    search = GridSearchCV(
        MKLClassifier(BANK), {"C": [0.1, 1.0]}, cv=CV, scoring=["accuracy", "roc_auc"], refit="roc_auc"
    ).fit(X, Y)
    assert "mean_test_accuracy" in search.cv_results_


def test_a_score_of_ones_own():
    scorer = make_scorer(accuracy_score)
    assert cross_val_score(MKLClassifier(BANK), X, Y, cv=CV, scoring=scorer).shape == (2,)


def test_folds_of_every_kind():
    model = MeanKernelClassifier(BANK)
    assert cross_val_score(model, X, Y, cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=2)).shape == (4,)
    assert cross_val_score(model, X, Y, cv=GroupKFold(3), groups=np.arange(60) // 5).shape == (3,)
    assert cross_val_score(MKLRegressor(BANK), X, SCORE, cv=TimeSeriesSplit(2)).shape == (2,)
    assert cross_val_predict(model, X[:12], Y[:12], cv=LeaveOneOut()).shape == (12,)


def test_cross_validation_with_models_and_times():
    found = cross_validate(MKLClassifier(BANK), X, Y, cv=CV, return_estimator=True, return_train_score=True)
    assert all(model.certificate_.relative_gap <= 1e-3 for model in found["estimator"])


def test_predictions_of_held_out_samples():
    values = cross_val_predict(MKLClassifier(BANK), X, Y, cv=CV, method="decision_function")
    assert roc_auc_score(Y, values) > 0.7


def test_curves():
    _, _, test = learning_curve(MKLClassifier(BANK), X, Y, cv=CV, train_sizes=[0.5, 1.0])
    assert test.shape == (2, 2)
    _, test = validation_curve(MKLClassifier(BANK), X, Y, cv=CV, param_name="C", param_range=[0.1, 1.0])
    assert test.shape == (2, 2)


def test_a_permutation_test():
    score, _, p = permutation_test_score(
        MeanKernelClassifier(BANK), X, Y, cv=CV, n_permutations=5, random_state=0
    )
    assert score > 0.7
    assert 0 < p <= 1


# ---- estimators around ---------------------------------------------------------------------------------------------


def test_calibration():
    model = CalibratedClassifierCV(MKLClassifier(BANK), cv=2).fit(X, Y)
    assert calibration_curve(Y, model.predict_proba(X)[:, 1], n_bins=3)[0].ndim == 1


def test_one_against_one_and_against_the_rest():
    assert OneVsOneClassifier(MKLClassifier(BANK)).fit(X, THREE).predict(X).shape == (60,)
    assert OneVsRestClassifier(MKLClassifier(BANK)).fit(X, THREE).predict(X).shape == (60,)


def test_several_outputs():
    both = np.c_[Y, X[:, 2] > 0].astype(int)
    assert MultiOutputClassifier(MKLClassifier(BANK)).fit(X, both).predict(X).shape == (60, 2)
    assert MultiOutputRegressor(MKLRegressor(BANK)).fit(X, both).predict(X).shape == (60, 2)


def test_votes():
    named = [("mkl", MKLClassifier(BANK)), ("svm", LinearSVC())]
    assert VotingClassifier(named).fit(X, Y).score(X, Y) > 0.8
    named = [("mkl", MKLRegressor(BANK)), ("ridge", Ridge())]
    assert VotingRegressor(named).fit(X, SCORE).score(X, SCORE) > 0.6


def test_a_stack():
    stack = StackingClassifier([("mkl", MKLClassifier(BANK)), ("svm", LinearSVC())], cv=2)
    assert stack.fit(X, Y).score(X, Y) > 0.8


def test_a_bag():
    bag = BaggingClassifier(MKLClassifier(BANK), n_estimators=2, random_state=0)
    assert bag.fit(X, Y).score(X, Y) > 0.7


def test_a_transformed_target():
    model = TransformedTargetRegressor(MKLRegressor(BANK), func=np.arcsinh, inverse_func=np.sinh)
    assert model.fit(X, SCORE).predict(X).shape == (60,)


def test_a_similarity_before_an_svc():
    pipe = make_pipeline(similarity.FlipSpectrum(), SVC(kernel="precomputed"))
    assert pipe.fit(np.tanh(X @ X.T), Y).predict(np.tanh(X[:5] @ X.T)).shape == (5,)
    assert SimilarityClassifier().fit(np.tanh(X @ X.T), Y).predict(np.tanh(X[:5] @ X.T)).shape == (5,)


# ---- inspection, copies, files -------------------------------------------------------------------------------------


def test_permutation_importance():
    found = permutation_importance(MKLClassifier(BANK).fit(X, Y), X, Y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 0


def test_partial_dependence():
    found = partial_dependence(MKLRegressor(BANK).fit(X, SCORE), X, [0], grid_resolution=5)
    assert found["average"].shape == (1, 5)


def test_weights_as_a_series():
    model = MKLClassifier(BANK).fit(X, Y)
    assert pd.Series(model.weights_, model.kernel_names_).sum() == pytest.approx(1.0)


def test_a_clone_is_not_fitted():
    assert not hasattr(clone(MKLClassifier(BANK, C=3.0).fit(X, Y)), "weights_")


def test_a_deep_copy():
    model = MKLClassifier(BANK).fit(X, Y)
    assert np.array_equal(copy.deepcopy(model).predict(X), model.predict(X))


def test_a_pickle():
    model = MKLClassifier(BANK).fit(X, Y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_joblib_dumps():
    model, file = MKLClassifier(BANK).fit(X, Y), io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    assert np.array_equal(joblib.load(file).predict(X), model.predict(X))


def test_parameters_there_and_back():
    model = MKLClassifier(kw.gaussian([1.0, 2.0]).on([0, 1]) + kw.linear(), norm="l2")
    for name, value in model.get_params().items():
        clone(model).set_params(**{name: value})  # every name that is shown can be set


def test_tags_and_kinds():
    assert is_classifier(MKLClassifier())
    assert is_regressor(MKLRegressor())
    assert get_tags(MKLClassifier()).input_tags.sparse


def test_what_notebooks_show():
    with config_context(display="diagram"):
        assert "MKLClassifier" in estimator_html_repr(make_pipeline(StandardScaler(), MKLClassifier(BANK)))
