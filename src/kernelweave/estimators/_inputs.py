"""From what a user passes as X to kernels and samples: one place for every kind of input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Number

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._numerics.sparse_format import check_sparse, without_duplicates
from ..banks import Rows, as_stack, check_training_stack
from ..banks.devices import device_of, on_host
from ..cluster import ClusterSamples, cluster_samples
from ..kernels import Kernel, KernelSpec, Schema, as_spec, default_bank, expand_kernels, n_samples
from ..views import MissingRates, Presence, Views, as_frame, is_views
from ._on_cluster import features_suffice, gathered
from ._plan import BankPlan
from ._types import Device, KernelsLike, Samples
from ._view_inputs import cut_into_views, expand_on_views, matrices_with_gaps

__all__ = ["Training", "is_precomputed", "new_samples", "training_inputs"]

PRECOMPUTED = "precomputed"


@dataclass(frozen=True)
class Training:
    """Checked training input: kernels (None where matrices were given), samples, their number and what they are.

    ``kind`` is ``numbers`` (rows of them), ``rows`` (of numbers, read as they are needed), ``table`` (columns of any
    kind), ``views``, ``objects`` or ``matrices``.  ``device`` and ``client`` say where the bank is to be, ``columns``
    what the columns of a table are called.
    """

    kernels: list[Kernel] | None
    samples: Samples
    n: int
    names: list[str]
    kind: str = "numbers"
    device: Device = None
    client: object = None
    columns: Sequence[str] | None = None

    def presence(self) -> Presence | Views:
        """Return who has which view, or which matrix; for samples that may lack some."""
        return (
            matrices_with_gaps(self.samples, "precomputed kernels")
            if self.kind == "matrices"
            else self.samples
        )

    @property
    def width(self) -> int:
        """Columns of the samples; 1 where they have none."""
        shape: tuple[int, ...] = getattr(self.samples, "shape", ())
        return int(shape[1]) if len(shape) == 2 else 1


def training_inputs(
    estimator: BaseEstimator,
    X: Samples,
    kernels: KernelsLike,
    plan: BankPlan,
    n_targets: int | None = None,
    device: Device = None,
) -> Training:
    """Check X against the kernels and return both, ready to be bound."""
    for name in ("_views", "_matrix_rates"):
        vars(estimator).pop(name, None)
    given = cluster_samples(X)
    if given is not None:
        return _cluster_inputs(estimator, given, kernels, plan, n_targets, device)
    place = device_of(device, X)
    if place is not None and plan.missing != "error":
        raise ValueError(f"missing={plan.missing!r} completes kernels in memory: pass X as an array of NumPy")
    training = _host_inputs(estimator, on_host(X), kernels, n_targets, plan.missing)
    return replace(training, device=place, columns=vars(estimator).get("feature_names_in_"))


def _cluster_inputs(
    estimator: BaseEstimator,
    given: ClusterSamples,
    kernels: KernelsLike,
    plan: BankPlan,
    n_targets: int | None,
    device: Device,
) -> Training:
    """Rows that stay on the cluster where their features are enough, or samples in memory, and the client."""
    if device is not None:
        raise ValueError("a device and a cluster do not go together: use device=None, or X in memory")
    if is_precomputed(kernels):
        raise ValueError(
            "kernels='precomputed' takes matrices in memory, not on a cluster: there kernels are computed from samples"
        )
    if plan.missing != "error":
        raise ValueError(
            f"missing={plan.missing!r} completes kernels in memory, not on a cluster: gather X first"
        )
    rows = features_suffice(plan, given, default_bank() if kernels is None else as_spec(kernels))
    training = _host_inputs(estimator, gathered(given) if rows is None else rows, kernels, n_targets)
    return replace(training, client=given.client)


def is_precomputed(kernels: KernelsLike) -> bool:
    """Whether X is to be kernel matrices."""
    return isinstance(kernels, str) and kernels == PRECOMPUTED


def _host_inputs(
    estimator: BaseEstimator, X: Samples, kernels: KernelsLike, n_targets: int | None, missing: str = "error"
) -> Training:
    if is_precomputed(kernels):
        matrices = as_stack(X, gaps=missing != "error")
        names = [f"kernel {j}" for j in range(len(matrices))]
        if missing != "error":
            estimator._matrix_rates = MissingRates.of(matrices_with_gaps(matrices, "precomputed kernels"))
        check_training_stack(matrices, n_targets, names=names)
        _forget_features(estimator)
        return Training(None, matrices, matrices[0].shape[0], names, "matrices")
    spec, X = default_bank() if kernels is None else as_spec(kernels), as_frame(X)
    kind = "numbers"
    if is_views(X, n_targets):
        expanded, X = expand_on_views(estimator, X, spec, missing)
        return Training(expanded, X, n_samples(X), [kernel.name for kernel in expanded], "views")
    if missing != "error":
        return _table_with_gaps(estimator, X, spec, missing)
    if isinstance(X, Rows):
        kind = "rows"
        _forget_features(estimator)
        estimator.n_features_in_ = X.shape[1]
        if X.table:
            estimator.feature_names_in_ = np.array(X.names, dtype=object)
        expanded = expand_kernels(spec, Schema.of(X))
    elif _is_table(X):
        expanded = expand_kernels(spec, Schema.of(X))
        kind = "table" if _mixed(expanded) else "numbers"
        X = _columns(estimator, X, reset=True) if kind == "table" else _numeric(estimator, X, reset=True)
    elif _is_object_list(X):
        kind = "objects"
        expanded = _expand_for_objects(spec, X)
        _forget_features(estimator)
    else:
        X = _numeric(estimator, X, reset=True)
        expanded = expand_kernels(spec, Schema.of(X))
    if sp.issparse(X):
        _refuse_sparse(expanded)
    return Training(expanded, X, n_samples(X), [kernel.name for kernel in expanded], kind)


def _table_with_gaps(estimator: BaseEstimator, X: Samples, spec: KernelSpec, missing: str) -> Training:
    """One table of numbers, cut into the views that the kernels look at."""
    if isinstance(X, Rows) or _is_object_list(X):
        raise ValueError(f"missing={missing!r} needs views: a dict of tables, or one table in memory")
    schema = Schema.of(X)
    X = _numeric(estimator, X, reset=True, gaps=True)
    expanded = expand_kernels(spec, schema if schema.n_features is not None else Schema.of(X))
    views = cut_into_views(estimator, X, expanded, missing)
    return Training(expanded, views, len(views), [kernel.name for kernel in expanded], "views")


def new_samples(estimator: BaseEstimator, X: Samples, kind: str) -> Samples:
    """Check new rows against what an estimator was fitted on."""
    X = on_host(X)
    if kind == "views":
        known = estimator._views
        return known.samples(X if known.groups is None else _numeric(estimator, X, reset=False, gaps=True))
    if kind == "matrices":
        rates: MissingRates | None = vars(estimator).get("_matrix_rates")
        matrices = as_stack(X, "rows of new samples", rates is not None)
        if rates is not None:
            rates.warn_of_change(matrices_with_gaps(matrices, "rows of new samples"))
        expected = (len(estimator.kernel_names_), len(estimator.dual_coef_))
        shape = (len(matrices), *matrices[0].shape)
        if (shape[0], shape[2]) != expected:
            raise ValueError(
                f"precomputed rows of new samples must have shape ({expected[0]}, n_new, {expected[1]}): one matrix "
                f"a kernel, one column a training sample; got {shape}"
            )
        return matrices
    X = as_frame(X)
    if isinstance(X, Rows):
        if kind != "rows" or X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                f"{getattr(estimator, 'n_features_in_', 'no rows that are read as needed')}"
            )
        return X
    if kind == "table":
        return _columns(estimator, X, reset=False)
    return X if kind == "objects" else _numeric(estimator, X, reset=False)


def _is_table(X: Samples) -> bool:
    """Whether X has columns that matter before it becomes an array of numbers: their names, or their kinds."""
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind not in "fiub"
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2


def _is_object_list(X: Samples) -> bool:
    """Whether X is a sequence of things that are not rows of numbers: strings, graphs, indices."""
    if sp.issparse(X):
        return False
    if hasattr(X, "iloc") or isinstance(X, np.ndarray):
        return X.ndim == 1
    if isinstance(X, list | tuple) and len(X):
        return not _is_row(X[0]) or any(not _is_row(x) or len(x) != len(X[0]) for x in X)
    return False


def _is_row(x: object) -> bool:
    """Whether x can be a row of numbers."""
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "fiub"
    return isinstance(x, list | tuple) and all(isinstance(value, Number) for value in x)


def _mixed(kernels: list[Kernel]) -> bool:
    """Whether some kernel looks at things that are not numbers."""
    return any(kernel.takes_objects for kernel in kernels)


RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a "
    "single sample; kernel matrices need kernels='precomputed'"
)


def _expand_for_objects(spec: KernelSpec, X: Samples) -> list[Kernel]:
    """Expand kernels for a sequence of single things, or say that they need rows of numbers."""
    try:
        kernels = expand_kernels(spec, Schema(None, None))
    except ValueError as error:
        if isinstance(next(iter(X), None), Number | np.generic | np.ndarray):
            raise ValueError(f"Expected 2D array, got 1D array instead: {error}. {RESHAPE}") from error
        raise
    unfit = [k.name for k in kernels if not (k.takes_objects or k.takes_indices)]
    if unfit:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X is a sequence of single things, but kernel {unfit[0]!r} works "
            f"on rows of numbers. {RESHAPE}"
        )
    return kernels


def _refuse_sparse(kernels: list[Kernel]) -> None:
    unfit = [k.name for k in kernels if not (k.accepts_sparse or k.takes_objects)]
    if unfit:
        raise ValueError(
            f"kernel {unfit[0]!r} does not take sparse input ({len(unfit)} of {len(kernels)} kernels do not): densify "
            "with X.toarray(), or use gaussian, linear, polynomial or cosine"
        )


def _forget_features(estimator: BaseEstimator) -> None:
    """Drop what an earlier fit on rows of numbers said about the columns."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)


def _columns(estimator: BaseEstimator, X: Samples, reset: bool) -> Samples:
    """Check number and names of the columns alone; what is in them is the kernels' business."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def _numeric(estimator: BaseEstimator, X: Samples, reset: bool, gaps: bool = False) -> Samples:
    """Check a table of numbers; ``gaps`` lets NaN pass."""
    if getattr(X, "ndim", 0) == 3:
        raise ValueError(
            f"Found array with dim 3, of shape {X.shape}: kernel matrices need kernels='precomputed', or inside "
            "cross-validation kernels=kernelweave.kernels.held(stack) with sample indices as X"
        )
    if sp.issparse(X):
        check_sparse(X)  # before any compiled code, scikit-learn's conversions included, reads its indices
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=np.float64,
        reset=reset,
        ensure_min_samples=2 if reset else 1,
        ensure_all_finite="allow-nan" if gaps else True,
    )
    return without_duplicates(X) if sp.issparse(X) else X
