"""The exact list of what a model file may hold."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

__all__ = ["allowed_objects", "allowed_parts", "is_estimator"]

#: rooms whose components (kernels, losses, norms, solvers) are parameters of a model
ROOMS = ("views", "kernels", "losses", "norms", "solvers", "estimators", "similarity")
#: what an estimator keeps beside components
KEPT = (
    "kernelweave.banks.bound.BoundKernels",
    "kernelweave.banks.bound.PrecomputedKernels",
    "kernelweave.banks.completed.CompletedKernels",
    "kernelweave.banks.completion.Completion",
    "kernelweave.banks.function.KernelFunction",
    "kernelweave.banks.function.Term",
    "kernelweave.banks.normalise.Normaliser",
    "kernelweave.banks.parts.MatrixPart",
    "kernelweave.banks.parts.MeanScale",
    "kernelweave.banks.parts.SampledPart",
    "kernelweave.banks.streaming.StreamedKernels",
    "kernelweave.cluster.workers.ClusterCost",
    "kernelweave.crowd.CrowdLabels",
    "kernelweave.estimators._deviation.Spread",
    "kernelweave._estimating.tables.SavedTable",
    "kernelweave.persistence._curves.SavedCurve",
    "kernelweave.problems.certificate.Certificate",
    "kernelweave.views.holder.Views",
    "kernelweave.views.known.KnownViews",
    "kernelweave.views.layout.ViewLayout",
    "kernelweave.views.missingness.MissingRates",
    "kernelweave.similarity.fits.SimilarityFit",
    "kernelweave.similarity.inputs.FunctionSource",
    "kernelweave.similarity.inputs.HeldSource",
    "kernelweave.similarity.inputs.Source",
    "kernelweave.similarity.points.DualPoint",
    "kernelweave.similarity.points.SimilarityCertificate",
    "kernelweave.solvers.online._stream.Stream",
)
#: what people put around a model; a function inside one of them (FunctionTransformer) is refused for itself
SKLEARN = (
    "sklearn.calibration.CalibratedClassifierCV",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._target.TransformedTargetRegressor",
    "sklearn.decomposition._incremental_pca.IncrementalPCA",
    "sklearn.decomposition._pca.PCA",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_selection._univariate_selection.GenericUnivariateSelect",
    "sklearn.feature_selection._univariate_selection.SelectFdr",
    "sklearn.feature_selection._univariate_selection.SelectFpr",
    "sklearn.feature_selection._univariate_selection.SelectFwe",
    "sklearn.feature_selection._univariate_selection.SelectKBest",
    "sklearn.feature_selection._univariate_selection.SelectPercentile",
    "sklearn.feature_selection._variance_threshold.VarianceThreshold",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.impute._knn.KNNImputer",
    "sklearn.isotonic.IsotonicRegression",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._search.GridSearchCV",
    "sklearn.model_selection._search.RandomizedSearchCV",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.LeaveOneOut",
    "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.model_selection._split.StratifiedShuffleSplit",
    "sklearn.model_selection._split.TimeSeriesSplit",
    "sklearn.multiclass.OneVsOneClassifier",
    "sklearn.multiclass.OneVsRestClassifier",
    "sklearn.pipeline.FeatureUnion",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.Binarizer",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.Normalizer",
    "sklearn.preprocessing._data.PowerTransformer",
    "sklearn.preprocessing._data.QuantileTransformer",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._discretization.KBinsDiscretizer",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.preprocessing._label.LabelBinarizer",
    "sklearn.preprocessing._label.LabelEncoder",
    "sklearn.preprocessing._polynomial.PolynomialFeatures",
    "sklearn.preprocessing._polynomial.SplineTransformer",
    # what a scorer of scikit-learn 1.6 keeps: names of arguments and whether they are asked for
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)
#: functions that transformers and searches of scikit-learn keep: pure ones, by their whole names; no others
FUNCTIONS = (
    *(
        f"sklearn.feature_selection._univariate_selection.{name}"
        for name in ("chi2", "f_classif", "f_regression", "r_regression")
    ),
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    *(
        f"sklearn.metrics._classification.{name}"
        for name in (
            "accuracy_score", "balanced_accuracy_score", "f1_score", "log_loss", "matthews_corrcoef",
            "precision_score", "recall_score",
        )
    ),
    "sklearn.metrics._classification.brier_score_loss",
    "sklearn.metrics._ranking.average_precision_score",
    "sklearn.metrics._ranking.roc_auc_score",
    *(
        f"sklearn.metrics._regression.{name}"
        for name in (
            "explained_variance_score", "max_error", "mean_absolute_error", "mean_squared_error",
            "median_absolute_error", "r2_score", "root_mean_squared_error",
        )
    ),
    # how scipy's splines make arrays
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy._external.array_api_compat.numpy._aliases.asarray",
)  # fmt: skip
SCALARS = (
    *(f"numpy.{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "numpy.float16",
    "numpy.float32",
    "numpy.float64",
    "numpy.bool",
    "numpy.bool_",
    "numpy.str_",
)
SPARSE = tuple(
    f"scipy.sparse._{kind}.{kind}_{what}" for kind in ("csr", "csc", "coo") for what in ("matrix", "array")
)
#: what every node of the description may be, beside the objects; methods have nodes that are not here
PARTS = {
    "DictNode": ("builtins.dict",),
    "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",),
    "SetNode": ("builtins.set",),
    "SliceNode": ("builtins.slice",),
    "JsonNode": ("builtins.str",),
    "NdArrayNode": ("numpy.ndarray", *SCALARS),
    "DTypeNode": ("numpy.dtype",),
    # no bool: a dictionary with truth values as keys does not survive JSON
    "TypeNode": ("builtins.float", "builtins.int", "builtins.str", *(s for s in SCALARS if "bool" not in s)),
    "SparseMatrixNode": SPARSE,
    "MaskedArrayNode": ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),  # NumPy 2, NumPy 1
    "FunctionNode": FUNCTIONS,
}


def allowed_parts() -> dict[str, frozenset[str]]:
    """Types by the kind of node that may hold them."""
    return {loader: frozenset(types) for loader, types in PARTS.items()} | {"ObjectNode": allowed_objects()}


@cache
def allowed_objects() -> frozenset[str]:
    """Classes of which a model file may hold instances: this library's own, and scikit-learn's around them."""
    return frozenset((*KEPT, *SKLEARN, *_components()))


def is_estimator(name: str) -> bool:
    """Whether a class on the list is one whose instances can be fitted, and not a part of one."""
    module, _, kind = name.rpartition(".")
    # not every version of a library has every class
    return hasattr(getattr(importlib.import_module(module), kind, None), "fit")


def _components() -> set[str]:
    """Names of all components and estimators that the library itself defines.

    Read off the modules rather than the registries: a class that a program registers is not the library's.
    """
    from .._components import Component

    allowed = set()
    for room in ROOMS:
        package = importlib.import_module(f"kernelweave.{room}")
        names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
        for name in names:
            module = importlib.import_module(name)
            for what in vars(module).values():
                own = isinstance(what, type) and what.__module__ == name
                if own and (issubclass(what, Component) or hasattr(what, "fit")):
                    allowed.add(f"{name}.{what.__qualname__}")
    return allowed
