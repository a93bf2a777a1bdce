"""From the labels and weights that a user passes to codes and targets, and from decision values to labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from ..exceptions import NotFiniteError


def encode_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check class labels; return the classes in order, and the index of every sample's class among them.

    >>> encode_classes(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def weigh_samples(sample_weight: Any, n: int) -> np.ndarray:
    """Return one factor of C per sample, finite and not negative; 1 where none is given."""
    shell = np.empty((n, 0))
    return _check_sample_weight(sample_weight, shell, dtype=np.float64, ensure_non_negative=True)


def weigh_classes(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Multiply the weight of every sample with the factor of its class.

    ``class_weight="balanced"`` gives all classes the same total weight, the weights of their samples included; a class
    without weight is not there.

    >>> weigh_classes("balanced", np.array([0, 1]), np.array([0, 1, 1]), np.array([1.0, 1.0, 3.0]))
    array([2.5  , 0.625, 1.875])
    """
    if class_weight is None:
        return weight
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=weight, minlength=classes.size)
        there = totals > 0
        factors = np.zeros(classes.size)
        factors[there] = totals.sum() / (np.count_nonzero(there) * totals[there])
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
        if not (np.all(np.isfinite(factors)) and np.all(factors >= 0)):
            raise ValueError(f"class weights must be finite and >= 0, got {class_weight!r}")
    return weight * factors[codes]


def check_two_classes(classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> None:
    """Raise where fewer than two classes have samples of positive weight."""
    present = np.unique(codes[weight > 0])
    if present.size < 2:
        only = "all with a positive weight are" if classes.size > 1 else "y has only one class:"
        raise ValueError(f"classification needs at least two classes, {only} {classes[present]}")


def class_columns(codes: np.ndarray, k: int) -> np.ndarray:
    """Return targets of shape (n, k): 1 in the column of the sample's class, -1 in the others.

    >>> class_columns(np.array([0, 2]), 3)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]])
    """
    return np.where(codes[:, None] == np.arange(k), 1.0, -1.0)


def checked_targets(y: Any, missing: bool = False) -> np.ndarray:
    """Return the targets of a regression as numbers, ``(n,)`` or ``(n, t)``; ``missing`` allows NaN among several.

    A table of one column is one target, with scikit-learn's warning.

    >>> checked_targets([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    allowed = {"ensure_2d": False, "ensure_min_features": 0, "ensure_all_finite": "allow-nan"}
    targets = check_array(y, dtype=np.float64, input_name="y", **allowed)
    if targets.ndim == 2 and targets.shape[1] == 0:
        raise ValueError(f"y has no targets: its shape is {targets.shape}")
    several = targets.ndim == 2 and targets.shape[1] > 1
    if not (several and missing):
        assert_all_finite(targets, input_name="y")
    if not several:
        return column_or_1d(targets, warn=True)
    unknown = np.flatnonzero(np.all(np.isnan(targets), axis=0))
    if unknown.size:
        raise ValueError(
            f"target {unknown[0]} has no value at all ({unknown.size} such): leave them out of y"
        )
    return targets


def finite_decision(values: np.ndarray) -> np.ndarray:
    """Return decision values, or raise where one is not a number: no label may be made of it."""
    if isinstance(values, np.ndarray) and not np.all(np.isfinite(values)):
        row = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
        raise NotFiniteError(
            f"the decision value of row {row} is not finite: its kernel values overflow, or it contains NaN; bring new "
            "samples to the scale of the training samples, and impute what is missing"
        )
    return values
