"""Checks of a model file before anything in it is built: the list of what it may hold, and its parameters."""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple


def _listed(package: str, modules: dict[str, str]) -> tuple[str, ...]:
    """Return the whole names of what is listed by module."""
    return tuple(f"{package}.{module}.{name}" for module, names in modules.items() for name in names.split())


#: subpackages whose components (kernels, losses, norms, solvers) are parameters of a model
SUBPACKAGES = ("views", "kernels", "losses", "norms", "solvers", "estimators", "similarity")
#: what an estimator keeps beside components
KEPT = _listed(
    "kernelweave",
    {
        "_estimating": "SavedTable",
        "banks.bound": "BoundKernels GivenMatrices KernelFunction MatrixRows Term",
        "banks.completion": "Completion",
        "banks.decide": "Decision",
        "banks.normalise": "Normaliser",
        "banks.parts": "MeanScale Part",
        "cluster.workers": "ClusterCost",
        "crowd": "CrowdLabels",
        "estimators._calibration": "Calibration",
        "estimators._evidence": "Spread",
        "estimators.survival": "Baseline Followed",
        "persistence._state": "SavedCurve",
        "problems.certificate": "Certificate",
        "similarity.fits": "SimilarityFit",
        "similarity.inputs": "FunctionSource HeldSource Source",
        "similarity.problems": "DualPoint SimilarityCertificate",
        "solvers.online": "Stream",
        "views.holder": "Views",
        "views.layout": "KnownViews MissingRates ViewLayout",
        "views.pairs": "KnownSides Pairs Side",
    },
)
#: classes of earlier versions that are others today, which take their attributes
RENAMED = {
    "CompletedKernels": "Completion", "MatrixPart": "Part", "PrecomputedKernels": "BoundKernels", "SampledPart": "Part",
    "StreamedKernels": "BoundKernels", "Denoise": "DenoiseSpectrum", "Flip": "FlipSpectrum", "Shift": "ShiftSpectrum",
    "Square": "SquareSpectrum",
}  # fmt: skip
#: what people put around a model; a function inside one of them (FunctionTransformer) is refused for itself
SKLEARN = _listed(
    "sklearn",
    {
        "calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
        "compose._column_transformer": "ColumnTransformer _RemainderColsList make_column_selector",
        "compose._target": "TransformedTargetRegressor",
        "decomposition._incremental_pca": "IncrementalPCA",
        "decomposition._pca": "PCA",
        "decomposition._truncated_svd": "TruncatedSVD",
        "feature_selection._univariate_selection": "GenericUnivariateSelect SelectFdr SelectFpr SelectFwe "
        "SelectKBest SelectPercentile",
        "feature_selection._variance_threshold": "VarianceThreshold",
        "gaussian_process.kernels": "ConstantKernel DotProduct ExpSineSquared Exponentiation Matern Product RBF "
        "RationalQuadratic Sum WhiteKernel",
        "impute._base": "MissingIndicator SimpleImputer",
        "impute._knn": "KNNImputer",
        "isotonic": "IsotonicRegression",
        "metrics._scorer": "_PassthroughScorer _Scorer",
        "model_selection._search": "GridSearchCV RandomizedSearchCV",
        "model_selection._split": "GroupKFold KFold LeaveOneOut ShuffleSplit StratifiedGroupKFold StratifiedKFold "
        "StratifiedShuffleSplit TimeSeriesSplit",
        "multiclass": "OneVsOneClassifier OneVsRestClassifier",
        "pipeline": "FeatureUnion Pipeline",
        "preprocessing._data": "Binarizer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer QuantileTransformer "
        "RobustScaler StandardScaler",
        "preprocessing._discretization": "KBinsDiscretizer",
        "preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
        "preprocessing._function_transformer": "FunctionTransformer",
        "preprocessing._label": "LabelBinarizer LabelEncoder",
        "preprocessing._polynomial": "PolynomialFeatures SplineTransformer",
        # what a scorer of scikit-learn 1.6 keeps: names of arguments and whether they are asked for
        "utils._metadata_requests": "MetadataRequest MethodMetadataRequest",
    },
)
#: functions that kernels, transformers and searches of scikit-learn keep: pure ones, by their whole names; no others
FUNCTIONS = (
    *_listed(
        "sklearn",
        {
            "feature_selection._univariate_selection": "chi2 f_classif f_regression r_regression",
            "feature_selection._mutual_info": "mutual_info_classif mutual_info_regression",
            "metrics._classification": "accuracy_score balanced_accuracy_score brier_score_loss f1_score log_loss "
            "matthews_corrcoef precision_score recall_score",
            "metrics._ranking": "average_precision_score roc_auc_score",
            "metrics.pairwise": "additive_chi2_kernel chi2_kernel cosine_similarity laplacian_kernel linear_kernel "
            "polynomial_kernel rbf_kernel sigmoid_kernel",
            "metrics._regression": "explained_variance_score max_error mean_absolute_error mean_squared_error "
            "median_absolute_error r2_score root_mean_squared_error",
        },
    ),
    # how scipy's splines make arrays
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy._external.array_api_compat.numpy._aliases.asarray",
)
SCALARS = (
    *(f"numpy.{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *(f"numpy.{name}" for name in ("float16", "float32", "float64", "bool", "bool_", "str_")),
)
SPARSE = tuple(
    f"scipy.sparse._{kind}.{kind}_{what}" for kind in ("csr", "csc", "coo") for what in ("matrix", "array")
)
#: what every node of the description may be, beside the objects; methods have nodes that are not here
PARTS = {
    **{f"{kind.title()}Node": (f"builtins.{kind}",) for kind in ("dict", "list", "tuple", "set", "slice")},
    "JsonNode": ("builtins.str",),
    "NdArrayNode": ("numpy.ndarray", *SCALARS),
    "DTypeNode": ("numpy.dtype",),
    # no bool: a dictionary with truth values as keys does not survive JSON
    "TypeNode": ("builtins.float", "builtins.int", "builtins.str", *(s for s in SCALARS if "bool" not in s)),
    "SparseMatrixNode": SPARSE,
    "MaskedArrayNode": ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),  # NumPy 2, NumPy 1
    "FunctionNode": FUNCTIONS,
}


@cache
def allowed_objects() -> frozenset[str]:
    """Classes of which a model file may hold instances: this library's own, and scikit-learn's around them."""
    from .._components import Component

    components = set()  # read off the modules: a class that a program registers is not the library's
    for subpackage in SUBPACKAGES:
        package = importlib.import_module(f"kernelweave.{subpackage}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for what in vars(importlib.import_module(found.name)).values():
                own = isinstance(what, type) and what.__module__ == found.name
                if own and (issubclass(what, Component) or hasattr(what, "fit")):
                    components.add(f"{found.name}.{what.__qualname__}")
    return frozenset((*KEPT, *SKLEARN, *components))


def update_names(description: Any) -> bool:
    """Write the modules of today into a description, in place; return whether one was different.

    No two classes that a file may hold have the same name: it alone says which one is meant, whatever the module was.
    """
    own = [name.rpartition(".") for name in allowed_objects() if name.startswith("kernelweave.")]
    today = {kind: module for module, _, kind in own}
    changed, remaining = False, [description]
    while remaining:  # without recursion: how deep a description is has not been checked yet
        node = remaining.pop()
        if isinstance(node, dict):
            module, kind = node.get("__module__"), node.get("__class__")
            if isinstance(module, str) and isinstance(kind, str) and module.startswith("kernelweave."):
                node["__class__"] = RENAMED.get(kind, kind)
                node["__module__"] = today.get(node["__class__"], module)
                changed |= node["__module__"] != module or node["__class__"] != kind
            remaining += node.values()
        elif isinstance(node, list):
            remaining += node
    return changed


# Parameters of estimators that reach beyond the model would be, in a file from somebody else, orders to the machine
# that refits it: a ``memory`` is a folder of pickles to load, a ``checkpoint`` a file to write over.  A search sets
# parameters by name, so a key of its grid (``"model__checkpoint"``) is held to the same list as an attribute.

#: never in a model file
PATHS = frozenset(("memory", "checkpoint", "callback"))
#: what else is somebody's choice for their own machine, with the value that leaves it to this one
MACHINE: dict[str, Any] = {
    **dict.fromkeys((*PATHS, "n_jobs", "memory_budget")),
    "pre_dispatch": "2*n_jobs",
    "verbose": False,
}
#: of these, what ``save`` leaves out without a word; a callback is code, which it refuses
DROPPED = {name: default for name, default in MACHINE.items() if name != "callback"}
#: numbers of jobs that mean anything; a loaded model has none of its own
MOST_JOBS = 1024
#: dictionaries of scikit-learn whose keys are names of steps, and are never set as parameters
KEYED_BY_STEPS = frozenset(("transformer_weights", "output_indices_", "_transformer_to_input_indices"))
#: parameters of scikit-learn whose keys are set as parameters, or handed to a function as arguments
APPLIED = frozenset(("param_grid", "param_distributions", "kw_args", "inv_kw_args"))


def parameter_of(key: str) -> str:
    """Return the parameter that ``set_params`` sets for a key: ``"pipeline__model__C"`` sets ``C``."""
    return key.rpartition("__")[2]


def is_default(name: str, value: Any) -> bool:
    """Whether one of these parameters leaves the choice to the machine; ``memory`` of a solver is a number of steps."""
    same = isinstance(value, bool | int | str) and value == MACHINE[name]
    return value is MACHINE[name] or same or (name == "memory" and type(value) is int)


def cleared(model: Any, *, machine: bool = False) -> Any:
    """Return an unfitted copy of a model without orders to the machine, nested estimators and grids included.

    Parameters
    ----------
    model : estimator
    machine : bool, default=False
        Clear numbers of jobs, memory budgets and verbosity too, as for a model that somebody else made.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernelweave import MKLClassifier
    >>> model = make_pipeline(MKLClassifier(checkpoint="fit.npz", n_jobs=2), memory="cache")
    >>> copy = cleared(model)
    >>> copy.memory is None, copy[-1].checkpoint is None, copy[-1].n_jobs
    (True, True, 2)
    >>> cleared(GridSearchCV(model, {"memory": ["a", "b"], "mklclassifier__C": [1.0, 10.0]})).param_grid
    {'mklclassifier__C': [1.0, 10.0]}
    """
    import numpy as np
    from sklearn.base import clone

    names = MACHINE if machine else dict.fromkeys(PATHS)

    def inside(value: Any) -> Any:
        """Clear what a search sets: keys that are such parameters, and estimators among the values."""
        if isinstance(value, dict):
            return {key: inside(part) for key, part in value.items() if parameter_of(str(key)) not in names}
        if isinstance(value, list | tuple):
            return type(value)([inside(part) for part in value])
        if isinstance(value, np.ndarray) and value.dtype == object:
            return [inside(part) for part in value.ravel()]
        return cleared(value, machine=machine) if hasattr(value, "get_params") else value

    copy = clone(model)
    settings = {}
    for name, value in copy.get_params(deep=True).items():
        last = parameter_of(name)
        if last in names and not is_default(last, value):
            settings[name] = names[last]
        elif last in APPLIED and value is not None:
            settings[name] = inside(value)
    return copy.set_params(**settings)


#: nodes that stand for something that can be called
CODE = ("FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode")
#: levels of JSON; a model in a pipeline in a pipeline has about thirty
MOST_LEVELS = 300


class Finding(NamedTuple):
    """Something that a model file may not hold: where it is, what it is, whether it is a function, and why not."""

    where: str
    what: str
    code: bool = False
    why: str = "which is not on the list of types that a model file may hold"

    def __str__(self) -> str:
        return f"{self.where} is {self.what}" + (f", {self.why}" if self.why else "")

    def for_the_author(self) -> str:
        """Return the message for saving a model."""
        if not self.why:
            return str(self)
        of_type = f"a {self.what}, which is not on the list of types"
        what = f"the function {self.what}" if self.code else of_type
        return (
            f"{self.where} is {what}, and a model file holds data, no code. Replace it by a component of the library, "
            "or use pickle between programs that trust each other"
        )


def audit(description: Any, n_jobs: int | None = None) -> Audit:
    """Return everything in the description that is not on the list, whatever ``skops`` trusts, with the way to it.

    Choices for the machine of whoever wrote the file (jobs, memory budgets, verbosity) become, in place, what leaves
    them to this machine, and numbers of jobs ``n_jobs``.
    """
    too_deep = Finding("model", f"nested in more than {MOST_LEVELS} levels", why="")
    remaining = [(description, 1)]
    while remaining:  # without recursion
        value, level = remaining.pop()
        if level > MOST_LEVELS:
            return Audit(n_jobs, [too_deep])
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        remaining += [(part, level + 1) for part in inside if isinstance(part, dict | list)]
    result = Audit(n_jobs)
    try:
        result.findings += _contradictions(description)
        if not result.findings:  # only then is the description no larger than it looks
            result.visit_root(description)
    except RecursionError:  # whoever calls is deep in calls already
        return Audit(n_jobs, [too_deep])
    return result


def _contradictions(description: Any) -> list[Finding]:
    """Find numbers of objects that stand at two different descriptions.

    ``skops`` builds an object at the first place of its number, whatever the others say, and ``save`` writes the whole
    description at each.  Anything else could hide one object behind another, or unfold a short text without end.
    """
    ranks: dict[Any, int] = {}
    rank_of: dict[int, int] = {}
    findings: list[Finding] = []

    def rank(value: Any) -> int:
        """Return the same whole number for equal values, which are compared by the ranks of their parts."""
        if isinstance(value, dict):
            parts = [(name, rank(part)) for name, part in value.items() if name not in ("__id__", "file")]
            key: Any = ("dict", *parts)
        elif isinstance(value, list):
            key = ("list", *map(rank, value))
        else:
            key = (type(value), value)
        own = ranks.setdefault(key, len(ranks))
        if isinstance(value, dict) and "__id__" in value:
            number = value["__id__"]
            if type(number) is not int or rank_of.setdefault(number, own) != own:
                findings.append(Finding("model", f"two different things under the number {number!r}", why=""))
        return own

    rank(description)
    return findings


_NO_JSON = object()


def _parsed(node: Any) -> Any:
    """Return the value of a node that holds JSON, or a mark that it holds none."""
    if not isinstance(node, dict) or node.get("__loader__") != "JsonNode":
        return _NO_JSON
    try:
        return json.loads(node.get("content"))  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return _NO_JSON


def _type_of(node: Any) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


@dataclass
class Audit:
    """Visits the nodes of a description and keeps what may not be there, types, and names and formats of arrays."""

    n_jobs: int | None = None
    findings: list[Finding] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    arrays: set[tuple[str, str]] = field(default_factory=set)
    changed: bool = False  # whether choices for another machine were replaced in the description
    owner: str = ""  # class of the object that the visit is in
    attribute: str = ""  # and the name of its attribute

    def refuse(self, where: str, what: str) -> None:
        """Keep a finding."""
        self.findings.append(Finding(where, what, why=""))

    def visit_root(self, node: Any) -> None:
        """Visit a whole description: a file holds a model, something that can be fitted."""
        loader = node.get("__loader__") if isinstance(node, dict) else None
        if loader == "ObjectNode" and (name := _type_of(node)) in allowed_objects():
            module, _, kind = name.rpartition(".")
            # not every version of a library has every class
            if not hasattr(getattr(importlib.import_module(module), kind, None), "fit"):
                self.refuse("model", f"a {name}, which is no estimator")
        elif str(loader) in PARTS:
            self.refuse("model", f"a {node.get('__class__')}, which is no estimator")
        self.visit(node, "model")

    def visit(self, node: Any, where: str) -> None:
        """Visit a node and everything inside."""
        if not isinstance(node, dict) or not isinstance(node.get("__loader__"), str):
            self.findings.append(Finding(where, "something that is not an object at all"))
            return
        loader, name, content = node["__loader__"], _type_of(node), node.get("content")
        if name not in (allowed_objects() if loader == "ObjectNode" else PARTS.get(loader, ())):
            self.findings.append(Finding(where, name, loader in CODE))
            return
        self.types.add(name)
        match loader:
            case "ObjectNode":
                self._visit_object(node, where)
            case "DictNode":
                self._visit_entries(node, where, attributes=False)
            case "JsonNode":
                value = _parsed(node)
                if value is _NO_JSON:
                    self.refuse(where, "text that is no JSON")
                elif isinstance(value, dict | list):  # these have nodes of their own, which are visited
                    self.refuse(where, "a dictionary or a list that is written as a text")
            case "FunctionNode":
                if content is not None:  # a function is its name, and that is on the list
                    self.refuse(where, "a function with something in it")
            case "SliceNode":
                ends = ("start", "stop", "step")
                kinds = [type(content.get(end)) for end in ends] if isinstance(content, dict) else [dict]
                if not set(kinds) <= {int, str, type(None)}:
                    self.refuse(where, "a slice that has no ends")
            case "DTypeNode":
                self.visit(content, where)
            case "ListNode" | "TupleNode" | "SetNode":
                self._visit_sequence(content, where)
            case "NdArrayNode" | "SparseMatrixNode" | "MaskedArrayNode":
                self._visit_array(node, where)

    def _visit_sequence(self, content: Any, where: str) -> None:
        if not isinstance(content, list):
            self.refuse(where, "a sequence without entries")
            return
        for position, value in enumerate(content):
            self.visit(value, f"{where}[{position}]")

    def _visit_array(self, node: Any, where: str) -> None:
        loader, content = node["__loader__"], node.get("content")
        if loader == "MaskedArrayNode":
            if not isinstance(content, dict) or set(content) != {"data", "mask"}:
                self.refuse(where, "a masked array without values and a mask")
                return
            for part, value in content.items():
                if isinstance(value, dict) and value.get("__loader__") == "NdArrayNode":
                    self.visit(value, f"{where}.{part}")
                else:
                    self.refuse(f"{where}.{part}", "no array")
        elif loader == "NdArrayNode" and node.get("type") == "json":
            self._visit_sequence(content, where)
            self.visit(node.get("shape"), f"shape of {where}")
        elif isinstance(node.get("file"), str):
            kind = "array" if loader == "NdArrayNode" else str(node["__class__"])[:3]
            self.arrays.add((node["file"], kind))
        else:
            self.refuse(where, "an array without values")

    def _visit_object(self, node: Any, where: str) -> None:
        """Visit the attributes of an object, written as people write them: ``model.kernels``."""
        state = node.get("content")
        if state is None:
            return
        if not isinstance(state, dict) or state.get("__loader__") != "DictNode":
            self.visit(state, where)
            self.refuse(where, "an object whose state is no dictionary")
        elif _type_of(state) != "builtins.dict":
            self.findings.append(Finding(where, _type_of(state)))
        else:
            outside = self.owner, self.attribute
            self.owner = _type_of(node)
            self._visit_entries(state, where, attributes=True)
            self.owner, self.attribute = outside

    def _visit_entries(self, node: Any, where: str, attributes: bool) -> None:
        """Visit entries of a dictionary, or attributes of an object, which are one in the file."""
        content, keys = node.get("content"), node.get("key_types")
        self.visit(keys, f"{'attributes' if attributes else 'keys'} of {where}")
        if not isinstance(content, dict):
            self.refuse(where, "a dictionary without entries")
            return
        kinds = keys.get("content") if isinstance(keys, dict) else None
        if not isinstance(kinds, list) or len(kinds) != len(content):
            self.refuse(where, "a dictionary whose keys are not all of a kind that is said")
        for key in content:
            inside = f"{where}.{key}" if attributes else f"{where}[{key!r}]"
            if attributes:
                self.attribute = str(key)
                if key in MACHINE:
                    self._check_attribute(content, key, inside)
            # scikit-learn may set keys as parameters of an estimator, or hand them to a function: all are held to the
            # list but those known to be names of steps. Those of the library are names of views, columns, classes.
            elif (
                not self.owner.startswith("kernelweave.")
                and self.attribute not in KEYED_BY_STEPS
                and parameter_of(str(key)) in MACHINE
            ):
                self.refuse(
                    inside,
                    f"a value for {parameter_of(str(key))}: a file may not say what is read, written, called or "
                    "printed, nor how many processes are started, when a model is fitted; leave it out, or save "
                    "best_estimator_ of the search",
                )
            self.visit(content[key], inside)

    def _check_attribute(self, state: Any, attribute: str, where: str) -> None:
        """Refuse or reset a parameter that is a choice for the machine that loads the file."""
        value = state[attribute]
        parsed = _parsed(value)
        if attribute in PATHS:
            code = isinstance(value, dict) and value.get("__loader__") in CODE  # refused as what it is
            # of solvers, "memory" is a number of steps
            steps = type(parsed) is int and self.owner.startswith("kernelweave.solvers.")
            if parsed is not None and not code and not steps:
                self.refuse(
                    where, "set: a file may not say what is read, written or called when a model is fitted"
                )
            return
        number = parsed is None or (type(parsed) is int and abs(parsed) <= MOST_JOBS)
        if attribute == "n_jobs" and not number:
            self.refuse(where, f"not a number of jobs from -{MOST_JOBS} to {MOST_JOBS}")
        default = self.n_jobs if attribute == "n_jobs" else MACHINE[attribute]
        if parsed != default:
            state[attribute] = {
                "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
                "content": json.dumps(default), "is_json": True,
            }  # fmt: skip
            self.changed = True
