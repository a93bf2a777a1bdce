"""From what a user passes as X to kernels and samples: one place for every kind of input."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from .._estimating import finite_decision
from .._numerics.sparse_format import check_sparse, without_duplicates
from ..banks import (
    STORAGES,
    Bank,
    BoundKernels,
    PrecomputedKernels,
    Rows,
    StreamedKernels,
    StreamingBank,
    as_stack,
    build_bank,
    check_training_stack,
    precomputed_bank,
)
from ..banks._device import device_of, on_host
from ..banks.memory import parse_bytes
from ..banks.normalise import check_normalise
from ..banks.rows import spread_rows
from ..cluster import ClusterSamples, cluster_samples
from ..kernels import Schema, as_spec, default_bank, expand_kernels, resolve_kernels
from ..kernels._helpers import n_samples
from ._on_cluster import bind_on_cluster, features_suffice, gathered
from ._on_device import bind_on_device, check_device_options

__all__ = ["Training", "bind", "check_options", "finite_decision", "new_samples", "training_inputs"]

PRECOMPUTED = "precomputed"


@dataclass
class Training:
    """Checked training input: kernels (None where matrices were given), samples, their number and what they are.

    ``kind`` is ``numbers`` (rows of them), ``rows`` (of numbers, read as they are needed), ``table`` (columns of any
    kind), ``objects`` or ``matrices``.  ``device`` and ``client`` say where the bank is to be.
    """

    kernels: Any
    samples: Any
    n: int
    names: list[str]
    kind: str = "numbers"
    device: Any = None
    client: Any = None


def training_inputs(estimator: Any, X: Any, kernels: Any, n_targets: int | None = None) -> Training:
    """Check X against the kernels and return both, ready to be bound."""
    given = cluster_samples(X)
    if given is not None:
        return _cluster_inputs(estimator, given, kernels, n_targets)
    place = device_of(getattr(estimator, "device", None), X)
    training = _host_inputs(estimator, on_host(X), kernels, n_targets)
    training.device = place
    return training


def _cluster_inputs(estimator: Any, given: ClusterSamples, kernels: Any, n_targets: int | None) -> Training:
    """Rows that stay on the cluster where their features are enough, or samples in memory, and the client."""
    if getattr(estimator, "device", None) is not None:
        raise ValueError("a device and a cluster do not go together: use device=None, or X in memory")
    if isinstance(kernels, str) and kernels == PRECOMPUTED:
        raise ValueError(
            "kernels='precomputed' takes matrices in memory, not on a cluster: there kernels are computed from samples"
        )
    rows = features_suffice(estimator, given, default_bank() if kernels is None else as_spec(kernels))
    training = _host_inputs(estimator, gathered(given) if rows is None else rows, kernels, n_targets)
    training.client = given.client
    return training


def _host_inputs(estimator: Any, X: Any, kernels: Any, n_targets: int | None) -> Training:
    if isinstance(kernels, str) and kernels == PRECOMPUTED:
        matrices = as_stack(X)
        names = [f"kernel {j}" for j in range(len(matrices))]
        check_training_stack(matrices, n_targets, names=names)
        _forget_features(estimator)
        return Training(None, matrices, matrices[0].shape[0], names, "matrices")
    spec = default_bank() if kernels is None else as_spec(kernels)
    kind = "numbers"
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


def check_options(normalize: Any, storage: Any, dtype: Any, memory_budget: Any, device: Any = None) -> None:
    """Raise where an option of the bank is not one, before anything is computed."""
    check_normalise(normalize)
    if device is not None:
        check_device_options(device, storage, dtype)
        parse_bytes(memory_budget)
        return
    if storage not in STORAGES:
        raise ValueError(f"storage must be one of {', '.join(STORAGES)}, got {storage!r}")
    try:
        known = np.dtype(dtype) in (np.float64, np.float32)
    except TypeError:
        known = False
    if not known:
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
    parse_bytes(memory_budget)


def bind(training: Training, estimator: Any, threads: int) -> tuple[Bank, Any]:
    """Build the bank of the training samples, and what prediction needs of it."""
    options = {
        "normalize": estimator.normalize,
        "center": estimator.center,
        "memory_budget": estimator.memory_budget,
        "threads": threads,
    }
    bank: Bank
    if training.client is not None:
        return bind_on_cluster(training, estimator)
    if training.kernels is None and training.device is not None:
        return bind_on_device(training, estimator, True)
    if training.kernels is None:
        bank, normaliser = precomputed_bank(training.samples, **options)
        return bank, PrecomputedKernels(bank.n, bank.m, normaliser)
    solver = estimator._components()[2]
    if training.device is not None:
        return bind_on_device(training, estimator, solver is None or solver.mixes, threads)
    samples, storage = training.samples, estimator.storage
    if training.kind == "rows":
        if storage not in ("auto", "stream"):
            raise ValueError(f"rows that are read as needed go with storage='stream', not {storage!r}")
        storage = "stream"
        samples = samples[spread_rows(training.n)]  # widths and landmarks are settled on a part that fits
    resolved = resolve_kernels(training.kernels, samples)
    if estimator.center:
        resolved = [kernel.recentred(samples) for kernel in resolved]
    bank, normaliser = build_bank(
        resolved,
        training.samples,
        storage=storage,
        dtype=estimator.dtype,
        mixing=solver is None or solver.mixes,
        **options,
    )
    if isinstance(bank, StreamingBank):
        return bank, StreamedKernels(resolved, training.samples, normaliser, bank)
    return bank, BoundKernels(resolved, training.samples, normaliser)


def new_samples(estimator: Any, X: Any, bound: Any, kind: str) -> Any:
    """Check new rows against what the estimator was fitted on."""
    X = on_host(X)
    if kind == "matrices":
        matrices = as_stack(X, "rows of new samples")
        shape = (len(matrices), *matrices[0].shape)
        if shape[0] != bound.m or shape[2] != bound.n:
            raise ValueError(
                f"precomputed rows of new samples must have shape ({bound.m}, n_new, {bound.n}): one matrix a kernel, "
                f"one column a training sample; got {shape}"
            )
        return matrices
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


def _is_table(X: Any) -> bool:
    """Whether X has columns that matter before it becomes an array of numbers: their names, or their kinds."""
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind not in "fiub"
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2


def _is_object_list(X: Any) -> bool:
    """Whether X is a sequence of things that are not rows of numbers: strings, graphs, indices."""
    if sp.issparse(X):
        return False
    if hasattr(X, "iloc") or isinstance(X, np.ndarray):
        return X.ndim == 1
    if isinstance(X, list | tuple) and len(X):
        return not _is_row(X[0]) or any(not _is_row(x) or len(x) != len(X[0]) for x in X)
    return False


def _is_row(x: Any) -> bool:
    """Whether x can be a row of numbers."""
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "fiub"
    return isinstance(x, list | tuple) and all(isinstance(value, Number) for value in x)


def _mixed(kernels: list[Any]) -> bool:
    """Whether some kernel looks at things that are not numbers."""
    return any(kernel.takes_objects for kernel in kernels)


RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a "
    "single sample; kernel matrices need kernels='precomputed'"
)


def _expand_for_objects(spec: Any, X: Any) -> list[Any]:
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


def _refuse_sparse(kernels: list[Any]) -> None:
    unfit = [k.name for k in kernels if not (k.accepts_sparse or k.takes_objects)]
    if unfit:
        raise ValueError(
            f"kernel {unfit[0]!r} does not take sparse input ({len(unfit)} of {len(kernels)} kernels do not): densify "
            "with X.toarray(), or use gaussian, linear, polynomial or cosine"
        )


def _forget_features(estimator: Any) -> None:
    """Drop what an earlier fit on rows of numbers said about the columns."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)


def _columns(estimator: Any, X: Any, reset: bool) -> Any:
    """Check number and names of the columns alone; what is in them is the kernels' business."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def _numeric(estimator: Any, X: Any, reset: bool) -> Any:
    if getattr(X, "ndim", 0) == 3:
        raise ValueError(
            f"Found array with dim 3, of shape {X.shape}: kernel matrices need kernels='precomputed', or inside "
            "cross-validation kernels=kernelweave.kernels.held(stack) with sample indices as X"
        )
    if sp.issparse(X):
        check_sparse(X)  # before any compiled code, scikit-learn's conversions included, reads its indices
    X = validate_data(
        estimator, X, accept_sparse="csr", dtype=np.float64, reset=reset, ensure_min_samples=2 if reset else 1
    )
    return without_duplicates(X) if sp.issparse(X) else X
