"""Input checks and feasible starting points for the SMO engine."""

from __future__ import annotations

import numpy as np


def as_gram(K):
    """``K`` as a C-contiguous square float32 or float64 matrix, without a copy where possible."""
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix, got shape {K.shape}")
    if K.dtype not in (np.float32, np.float64):
        K = K.astype(np.float64)
    if K.flags.c_contiguous:
        return K
    return K.T if K.flags.f_contiguous else np.ascontiguousarray(K)


def as_vector(name, value, n):
    """``value`` (None: zeros) as a new float64 vector of length ``n``."""
    if value is None:
        return np.zeros(n)
    value = np.asarray(value, dtype=np.float64)
    if value.ndim > 1 or (value.ndim == 1 and value.size != n):
        raise ValueError(f"{name} must have length {n}, got shape {value.shape}")
    return value.copy() if value.ndim else np.full(n, value)


def check_terms(linear, lower, upper, ridge, kink):
    """Refuse boxes without the origin and terms that are not concave or not finite."""
    # methods and not functions of numpy, here and below: on small problems these lines are half of the time
    if not ((lower <= 0.0).all() and (upper >= 0.0).all()):
        raise ValueError("bounds must satisfy lower <= 0 <= upper")
    if not ((ridge >= 0.0).all() and (kink >= 0.0).all()):
        raise ValueError("ridge and kink must not be negative")
    if not all(np.isfinite(term).all() for term in (linear, ridge, kink)):
        raise ValueError("linear, ridge and kink must be finite")


def feasible_start(beta, lower, upper, equality):
    """A feasible point near ``beta``; the origin if there is nothing to start from."""
    if beta is None or not np.isfinite(beta).all():
        return np.zeros(lower.size)
    start = np.minimum(np.maximum(beta, lower), upper)
    if equality:
        _balance(start, lower, upper)
        remove_drift(start, lower, upper)
        if not _balanced(start):
            start[:] = 0.0
    return start


def _balanced(beta, rounding=1e-12):
    return abs(beta.sum()) <= rounding * np.abs(beta).sum()


def _balance(beta, lower, upper):
    """Pull the heavier sign towards zero until the sum vanishes: free variables first, then all.

    Pulling towards zero never leaves the box; sparing the variables at their bounds keeps what a warm
    start is worth.
    """
    if _balanced(beta):
        return
    free = (beta > lower) & (beta < upper)
    for candidates in (free, np.full(beta.size, True)):
        excess = beta.sum()
        heavy = candidates & (beta * excess > 0.0)
        weight = np.abs(beta[heavy]).sum()
        if weight > 0.0:
            beta[heavy] *= max(0.0, 1.0 - abs(excess) / weight)


def remove_drift(beta, lower, upper):
    """Let one variable absorb what rounding has left of the sum."""
    if _balanced(beta, 1e-15):
        return
    drift = beta.sum()
    room = beta - lower if drift > 0.0 else upper - beta
    free = (beta > lower) & (beta < upper) & (beta != 0.0)
    if free.any():
        room = np.where(free, room, 0.0)
    elif _balanced(beta):
        return  # not worth taking a variable off its bound for
    k = int(np.argmax(room))
    beta[k] = min(max(beta[k] - drift, lower[k]), upper[k])
