"""Checks of a model file before anything in it is built: the list of what it may hold, and its parameters."""

from __future__ import annotations

import importlib
import io
import json
import pkgutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ._file import Archive

# ------------------------------------------------------------------------------------------------------------
# Which module a class of this library is in today, whatever module a file says.
#
# A file names classes by module and name. Modules are regrouped between versions, names of classes are not:
# no two classes that a file may hold have the same name, so that the name alone says which one is meant.


def update_names(description: Any) -> bool:
    """Write today's modules into a description, in place; return whether one was different.

    Nothing is judged here: what a name may be is for the audit, which sees today's names.
    """
    today = {name.rpartition(".")[2]: name.rpartition(".")[0] for name in allowed_objects() if _is_own(name)}
    changed, remaining = False, [description]
    while remaining:  # without recursion: how deep a description is has not been looked at yet
        node = remaining.pop()
        if isinstance(node, dict):
            module, kind = node.get("__module__"), node.get("__class__")
            if isinstance(module, str) and isinstance(kind, str) and _is_own(module):
                now = today.get(kind, module)
                changed |= now != module
                node["__module__"] = now
            remaining += node.values()
        elif isinstance(node, list):
            remaining += node
    return changed


def _is_own(name: str) -> bool:
    """Whether a class or module is one of this library's."""
    return name.startswith("kernelweave.")


def rewritten(archive: Archive, member: str, value: Any) -> bytes:
    """Return the archive with one member replaced by ``value`` as JSON."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:  # read once, at once: not worth packing
        for name in archive.members:
            file.writestr(name, json.dumps(value) if name == member else archive.read(name))
    return buffer.getvalue()


# ------------------------------------------------------------------------------------------------------------
# The exact list of what a model file may hold.


#: subpackages whose components (kernels, losses, norms, solvers) are parameters of a model
SUBPACKAGES = ("views", "kernels", "losses", "norms", "solvers", "estimators", "similarity")
#: what an estimator keeps beside components
KEPT = (
    "kernelweave.banks.bound.BoundKernels",
    "kernelweave.banks.bound.PrecomputedKernels",
    "kernelweave.banks.completion.CompletedKernels",
    "kernelweave.banks.completion.Completion",
    "kernelweave.banks.bound.KernelFunction",
    "kernelweave.banks.bound.Term",
    "kernelweave.banks.normalise.Normaliser",
    "kernelweave.banks.views.MatrixPart",
    "kernelweave.banks.views.MeanScale",
    "kernelweave.banks.views.SampledPart",
    "kernelweave.banks.streaming.StreamedKernels",
    "kernelweave.cluster.workers.ClusterCost",
    "kernelweave.crowd.CrowdLabels",
    "kernelweave.estimators._evidence.Spread",
    "kernelweave._estimating.findings.SavedTable",
    "kernelweave.persistence._state.SavedCurve",
    "kernelweave.problems.certificate.Certificate",
    "kernelweave.views.holder.Views",
    "kernelweave.views.layout.KnownViews",
    "kernelweave.views.layout.ViewLayout",
    "kernelweave.views.layout.MissingRates",
    "kernelweave.similarity.fits.SimilarityFit",
    "kernelweave.similarity.inputs.FunctionSource",
    "kernelweave.similarity.inputs.HeldSource",
    "kernelweave.similarity.inputs.Source",
    "kernelweave.similarity.problems.DualPoint",
    "kernelweave.similarity.problems.SimilarityCertificate",
    "kernelweave.solvers.online.Stream",
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
    for name in SUBPACKAGES:
        package = importlib.import_module(f"kernelweave.{name}")
        names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
        for name in names:
            module = importlib.import_module(name)
            for what in vars(module).values():
                own = isinstance(what, type) and what.__module__ == name
                if own and (issubclass(what, Component) or hasattr(what, "fit")):
                    allowed.add(f"{name}.{what.__qualname__}")
    return allowed


# ------------------------------------------------------------------------------------------------------------
# Parameters of estimators that reach beyond the model: files they read and write, functions they call,
# processes.
#
# They say how a fit was run, not what was learnt.  In a file from somebody else they would be orders to the
# machine that refits the model: a ``memory`` is a folder of pickles to be loaded, a ``checkpoint`` a file to
# be written over.  A search sets parameters by name, so a key of its grid (``"model__checkpoint"``) is held
# to the same list as an attribute.


#: never in a model file
PATHS = frozenset(("memory", "checkpoint", "callback"))
#: what else is somebody's choice for their own machine, with the value that leaves it to this one
MACHINE: dict[str, Any] = {
    **dict.fromkeys(PATHS),
    "n_jobs": None,
    "pre_dispatch": "2*n_jobs",
    "memory_budget": None,
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
    steps = name == "memory" and type(value) is int
    same = isinstance(value, bool | int | str) and value == MACHINE[name]
    return value is MACHINE[name] or same or steps


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
        what = (
            f"the function {self.what}" if self.code else f"a {self.what}, which is not on the list of types"
        )
        return (
            f"{self.where} is {what}, and a model file holds data, no code. Replace it by a component of the library, "
            "or use pickle between programs that trust each other"
        )


@dataclass
class Audit:
    """Contents of a description: things that may not be there, types, and the names and formats of its arrays.

    ``changed`` says whether choices for another machine were replaced in the description.
    """

    findings: list[Finding] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    arrays: set[tuple[str, str]] = field(default_factory=set)
    changed: bool = False


def audit(description: Any, n_jobs: int | None = None) -> Audit:
    """Return everything in the description that is not on the list, with the way to it.

    The same function judges what is about to be saved and what is about to be loaded, and it does not rely on what
    ``skops`` trusts: a node is fine only if its kind and its type are both listed.  It looks at every node once.

    Numbers of jobs, memory budgets and verbosity are choices for the machine of whoever wrote the file: in the
    description, in place, they become what leaves the choice to this machine, and numbers of jobs become ``n_jobs``.
    """
    too_deep = Finding("model", f"nested in more than {MOST_LEVELS} levels", why="")
    if _levels(description) > MOST_LEVELS:
        return Audit([too_deep])
    result = Audit()
    try:
        result.findings += _contradictions(description)
        if not result.findings:  # only then is the description no larger than it looks
            result.findings += [
                *_root(description),
                *_NodeWalk(allowed_parts(), result, n_jobs).nodes(description, "model"),
            ]
    except RecursionError:  # whoever calls is deep in calls already
        return Audit([too_deep])
    return result


def _levels(value: Any) -> int:
    """How deeply dictionaries and lists are nested, found without recursion."""
    deepest, open_values = 0, [(value, 1)]
    while open_values:
        here, level = open_values.pop()
        deepest = max(deepest, level)
        if level > MOST_LEVELS:
            break
        inside = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        open_values += [(part, level + 1) for part in inside if isinstance(part, dict | list)]
    return deepest


def _contradictions(description: Any) -> list[Finding]:
    """Find numbers of objects that stand at two different descriptions.

    ``skops`` builds an object at the first place of its number and takes it again at the others, whatever these say.
    ``save`` writes the whole description at every place, so equal numbers have equal descriptions, but for numbers and
    names of files inside them, and a model is no larger than its text.  Anything else could hide one object behind
    another, or unfold a short text without end.
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


def _root(node: Any) -> Iterator[Finding]:
    """A file holds a model: something that can be fitted."""
    if isinstance(node, dict) and node.get("__loader__") == "ObjectNode":
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if name in allowed_parts()["ObjectNode"] and not is_estimator(name):
            yield Finding("model", f"a {name}, which is no estimator", why="")
    elif isinstance(node, dict) and f"{node.get('__loader__')}" in allowed_parts():
        yield Finding("model", f"a {node.get('__class__')}, which is no estimator", why="")


class _NodeWalk:
    """Visits the nodes of a description, notes types and arrays, and yields what may not be there."""

    def __init__(self, allowed: dict[str, frozenset[str]], result: Audit, n_jobs: int | None) -> None:
        self.allowed, self.result, self.n_jobs = allowed, result, n_jobs
        #: class of the object, and name of its attribute, that the walk is in
        self.owner = self.attribute = ""

    def nodes(self, node: Any, where: str) -> Iterator[Finding]:
        if not isinstance(node, dict) or not isinstance(node.get("__loader__"), str):
            yield Finding(where, "something that is not an object at all")
            return
        kind, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
        if name not in self.allowed.get(kind, frozenset()):
            yield Finding(where, name, kind in CODE)
            return
        self.result.types.add(name)
        yield from getattr(self, f"_{kind.removesuffix('Node').lower()}")(node, where)

    def _json(self, node: Any, where: str) -> Iterator[Finding]:
        value = _parsed(node)
        if value is _NO_JSON:
            yield Finding(where, "text that is no JSON", why="")
        elif isinstance(value, dict | list):  # these have nodes of their own, which are looked into
            yield Finding(where, "a dictionary or a list that is written as a text", why="")

    def _type(self, node: Any, where: str) -> Iterator[Finding]:
        return iter(())

    def _function(self, node: Any, where: str) -> Iterator[Finding]:
        """A function is its name, and that is on the list."""
        if node.get("content") is not None:
            yield Finding(where, "a function with something in it", why="")

    def _maskedarray(self, node: Any, where: str) -> Iterator[Finding]:
        content = node.get("content")
        if not isinstance(content, dict) or set(content) != {"data", "mask"}:
            yield Finding(where, "a masked array without values and a mask", why="")
            return
        for part, value in content.items():
            if not isinstance(value, dict) or value.get("__loader__") != "NdArrayNode":
                yield Finding(f"{where}.{part}", "no array", why="")
            else:
                yield from self.nodes(value, f"{where}.{part}")

    def _slice(self, node: Any, where: str) -> Iterator[Finding]:
        content = node.get("content")
        if not isinstance(content, dict) or any(
            type(content.get(end)) not in (int, str, type(None)) for end in ("start", "stop", "step")
        ):
            yield Finding(where, "a slice that has no ends", why="")

    def _dict(self, node: Any, where: str, attributes: bool = False) -> Iterator[Finding]:
        """Entries of a dictionary, or attributes of an object, which are one in the file."""
        content, keys = node.get("content"), node.get("key_types")
        yield from self.nodes(keys, f"{'attributes' if attributes else 'keys'} of {where}")
        if not isinstance(content, dict):
            yield Finding(where, "a dictionary without entries", why="")
            return
        kinds = keys.get("content") if isinstance(keys, dict) else None
        if not isinstance(kinds, list) or len(kinds) != len(content):
            yield Finding(where, "a dictionary whose keys are not all of a kind that is said", why="")
        for key in content:
            inside = f"{where}.{key}" if attributes else f"{where}[{key!r}]"
            if attributes:
                self.attribute = str(key)
                yield from self._power(content, str(key), inside)
            else:
                yield from self._key(str(key), inside)
            yield from self.nodes(content[key], inside)

    def _object(self, node: Any, where: str) -> Iterator[Finding]:
        """Attributes of an object, written as people write them: ``model.kernels``."""
        content = node.get("content")
        if content is None:
            return
        name = f"{content.get('__module__')}.{content.get('__class__')}" if isinstance(content, dict) else ""
        if not isinstance(content, dict) or content.get("__loader__") != "DictNode":
            yield from self.nodes(content, where)
            yield Finding(where, "an object whose state is no dictionary", why="")
        elif name != "builtins.dict":
            yield Finding(where, name)
        else:
            outside = self.owner, self.attribute
            self.owner = f"{node.get('__module__')}.{node.get('__class__')}"
            yield from self._dict(content, where, attributes=True)
            self.owner, self.attribute = outside

    def _power(self, state: Any, attribute: str, where: str) -> Iterator[Finding]:
        """Parameters with power over the machine that loads the file: see ``_powers``."""
        if attribute not in MACHINE:
            return
        value = state[attribute]
        parsed = _parsed(value)
        if attribute in PATHS:
            code = isinstance(value, dict) and value.get("__loader__") in CODE  # refused as what it is
            # of solvers, "memory" is a number of steps
            steps = type(parsed) is int and self.owner.startswith("kernelweave.solvers.")
            if parsed is not None and not code and not steps:
                yield Finding(
                    where,
                    "set: a file may not say what is read, written or called when a model is fitted",
                    why="",
                )
            return
        number = parsed is None or (type(parsed) is int and abs(parsed) <= MOST_JOBS)
        if attribute == "n_jobs" and not number:
            yield Finding(where, f"not a number of jobs from -{MOST_JOBS} to {MOST_JOBS}", why="")
        default = self.n_jobs if attribute == "n_jobs" else MACHINE[attribute]
        if parsed != default:
            state[attribute] = {
                "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
                "content": json.dumps(default), "is_json": True,
            }  # fmt: skip
            self.result.changed = True

    def _key(self, key: str, where: str) -> Iterator[Finding]:
        """Keys that scikit-learn may set as parameters of an estimator, or hand to a function, by their name.

        Which dictionaries of its classes it does that with is not for a list here: all keys are held to it but those
        that are known to be names of steps.  Keys in objects of the library are names of views, columns and classes.
        """
        applied = not self.owner.startswith("kernelweave.") and self.attribute not in KEYED_BY_STEPS
        if applied and parameter_of(key) in MACHINE:
            yield Finding(
                where,
                f"a value for {parameter_of(key)}: a file may not say what is read, written, called or printed, nor "
                "how many processes are started, when a model is fitted; leave it out, or save best_estimator_ of "
                "the search",
                why="",
            )

    def _several(self, node: Any, where: str) -> Iterator[Finding]:
        content = node.get("content")
        if not isinstance(content, list):
            yield Finding(where, "a sequence without entries", why="")
            return
        for position, value in enumerate(content):
            yield from self.nodes(value, f"{where}[{position}]")

    _list = _tuple = _set = _several

    def _ndarray(self, node: Any, where: str) -> Iterator[Finding]:
        if node.get("type") == "json":
            yield from self._several(node, where)
            yield from self.nodes(node.get("shape"), f"shape of {where}")
        else:
            yield from self._file(node, where, "array")

    def _sparsematrix(self, node: Any, where: str) -> Iterator[Finding]:
        yield from self._file(node, where, str(node["__class__"])[:3])

    def _file(self, node: Any, where: str, kind: str) -> Iterator[Finding]:
        if isinstance(node.get("file"), str):
            self.result.arrays.add((node["file"], kind))
        else:
            yield Finding(where, "an array without values", why="")

    def _dtype(self, node: Any, where: str) -> Iterator[Finding]:
        yield from self.nodes(node.get("content"), where)


_NO_JSON = object()


def _parsed(node: Any) -> Any:
    """Return the value of a node that holds JSON, or a mark that it holds none."""
    if not isinstance(node, dict) or node.get("__loader__") != "JsonNode":
        return _NO_JSON
    try:
        return json.loads(node.get("content"))  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return _NO_JSON
