"""Warnings and errors that kernelweave raises beside the built-in ones; docs/troubleshooting.md says what to do."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CertificateError", "DegenerateModelWarning", "GridEndWarning", "KernelWeaveConvergenceWarning",
    "KernelWeaveWarning", "MemoryBudgetError", "NotFiniteError", "ScaleWarning", "warn_at_caller",
]  # fmt: skip


class KernelWeaveWarning(UserWarning):
    """Base of every warning that the library itself issues."""


class KernelWeaveConvergenceWarning(KernelWeaveWarning, ConvergenceWarning):
    """A fit stopped before its certificate reached the tolerance; the best point was kept."""


class DegenerateModelWarning(KernelWeaveWarning):
    """A fit is optimal and may be of no use: it predicts one class for nearly everything, say; see ``findings_``."""


class ScaleWarning(DegenerateModelWarning):
    """Kernels do not suit the scales of the samples: nearly the identity, nearly constant, or of few columns alone."""


class GridEndWarning(KernelWeaveWarning):
    """C was chosen at an end of the values tried, where the scores still rise: a value beyond may be better."""


class MemoryBudgetError(MemoryError, ValueError):
    """A request cannot be met within the memory budget; the message says by how much and what to do."""


class NotFiniteError(ValueError, FloatingPointError):
    """Numbers that came out NaN or infinite, where a model or a prediction was asked for."""


class CertificateError(ValueError):
    """A lower bound above the objective, beyond rounding: a loss or a norm whose parts do not belong together."""


#: modules that stand between the library and the line that called it
BETWEEN = ("kernelweave.", "sklearn.", "joblib.", "numba.", "contextlib")


def warn_at_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the first line above that is neither of this library nor of what calls it (``BETWEEN``)."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(BETWEEN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


__dir__ = __all__.copy  # completion shows the public names alone
