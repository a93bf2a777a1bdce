"""From what a user passes as X to kernels and samples: one place for every kind of input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..banks import (
    Bank,
    BoundKernels,
    PrecomputedKernels,
    as_stack,
    build_bank,
    check_training_stack,
    precomputed_bank,
)
from ..kernels import Schema, as_spec, default_bank, expand_kernels, resolve_kernels
from ..kernels._helpers import n_samples

__all__ = ["Training", "bind", "new_samples", "training_inputs"]

PRECOMPUTED = "precomputed"


@dataclass
class Training:
    """Checked training input: kernels (None where matrices were given), samples and their number."""

    kernels: Any
    samples: Any
    n: int
    names: list[str]


def training_inputs(estimator: Any, X: Any, kernels: Any, n_targets: int | None = None) -> Training:
    """Check X against the kernels and return both, ready to be bound."""
    if isinstance(kernels, str) and kernels == PRECOMPUTED:
        matrices = as_stack(X)
        names = [f"kernel {j}" for j in range(len(matrices))]
        check_training_stack(matrices, n_targets, names=names)
        return Training(None, matrices, matrices[0].shape[0], names)
    spec = default_bank() if kernels is None else as_spec(kernels)
    if _is_table(X):
        expanded = expand_kernels(spec, Schema.of(X))
        if not _mixed(expanded):
            X = _numeric(estimator, X, expanded, reset=True)
    elif _is_object_list(X):
        expanded = expand_kernels(spec, Schema(None, None))
        _refuse_numeric(expanded, X)
    else:
        X = _numeric(estimator, X, [], reset=True)
        expanded = expand_kernels(spec, Schema.of(X))
    return Training(expanded, X, n_samples(X), [kernel.name for kernel in expanded])


def bind(training: Training, estimator: Any, threads: int) -> tuple[Bank, Any]:
    """Build the bank of the training samples, and what prediction needs of it."""
    options = {
        "normalize": estimator.normalize,
        "center": estimator.center,
        "memory_budget": estimator.memory_budget,
        "threads": threads,
    }
    bank: Bank
    if training.kernels is None:
        bank, normaliser = precomputed_bank(training.samples, **options)
        return bank, PrecomputedKernels(bank.n, bank.m, normaliser)
    resolved = resolve_kernels(training.kernels, training.samples)
    bank, normaliser = build_bank(
        resolved, training.samples, storage=estimator.storage, dtype=estimator.dtype, **options
    )
    return bank, BoundKernels(resolved, training.samples, normaliser)


def new_samples(estimator: Any, X: Any, bound: Any) -> Any:
    """Check new rows against what the estimator was fitted on."""
    if isinstance(bound, PrecomputedKernels):
        matrices = as_stack(X, "rows of new samples")
        shape = (len(matrices), *matrices[0].shape)
        if shape[0] != bound.m or shape[2] != bound.n:
            raise ValueError(
                f"precomputed rows of new samples must have shape ({bound.m}, n_new, {bound.n}): one matrix a kernel, "
                f"one column a training sample; got {shape}"
            )
        return matrices
    if not hasattr(estimator, "n_features_in_"):  # fitted on objects or on a mixed table
        return X
    return _numeric(estimator, X, bound.kernels, reset=False)


def _is_table(X: Any) -> bool:
    """Whether X is a data frame (its column names matter before it becomes an array)."""
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2


def _is_object_list(X: Any) -> bool:
    """Whether X is a sequence of things that are not rows of numbers: strings, graphs, indices."""
    if sp.issparse(X):
        return False
    if hasattr(X, "iloc"):
        return getattr(X, "ndim", 0) == 1
    if isinstance(X, np.ndarray):
        return X.ndim == 1
    if isinstance(X, list | tuple) and len(X):
        first = X[0]
        return isinstance(first, str | bytes) or not (hasattr(first, "__len__") or np.isscalar(first))
    return False


def _mixed(kernels: list[Any]) -> bool:
    """Whether some kernel looks at things that are not numbers."""
    return any(kernel.takes_objects for kernel in kernels)


def _refuse_numeric(kernels: list[Any], X: Any) -> None:
    unfit = [k.name for k in kernels if not (k.takes_objects or k.takes_indices)]
    if unfit:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X has one dimension, but kernel {unfit[0]!r} works on rows of "
            "numbers. Reshape your data either using array.reshape(-1, 1) if it has a single feature or "
            "array.reshape(1, -1) if it is a single sample"
        )


def _numeric(estimator: Any, X: Any, kernels: list[Any], reset: bool) -> Any:
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=np.float64, reset=reset, ensure_min_samples=2 if reset else 1
    )
