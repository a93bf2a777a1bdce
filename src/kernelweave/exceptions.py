"""Warnings and errors that kernelweave raises beside the built-in ones."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CertificateError",
    "DegenerateModelWarning",
    "GridEndWarning",
    "KernelWeaveConvergenceWarning",
    "KernelWeaveWarning",
    "MemoryBudgetError",
    "NotFiniteError",
]


class KernelWeaveWarning(UserWarning):
    """Base of every warning that the library itself issues."""


class KernelWeaveConvergenceWarning(KernelWeaveWarning, ConvergenceWarning):
    """A fit stopped before its certificate reached the tolerance; the best point was kept."""


class DegenerateModelWarning(KernelWeaveWarning):
    """A fit is optimal and of no use: it predicts one class for nearly everything."""


class GridEndWarning(KernelWeaveWarning):
    """C was chosen at an end of the values tried, where the scores still rise: a value beyond may be better."""


class MemoryBudgetError(MemoryError, ValueError):
    """A request cannot be met within the memory budget; the message says by how much and what to do."""


class NotFiniteError(ValueError, FloatingPointError):
    """Numbers that came out NaN or infinite, where a model or a prediction was asked for."""


class CertificateError(ValueError):
    """A lower bound above the objective, beyond rounding: a loss or a norm whose parts do not belong together."""
