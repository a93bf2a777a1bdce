"""Warnings and errors that kernelweave raises beside the built-in ones; docs/troubleshooting.md says what to do."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata

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


def explained(error: BaseException, *args: object) -> None:
    """Make an error that the documentation has a section for: its traceback ends with where that is."""
    BaseException.__init__(error, *args)
    error.add_note(whereabouts(type(error)))


class MemoryBudgetError(MemoryError, ValueError):
    """A request cannot be met within the memory budget; the message says by how much and what to do."""

    __init__ = explained


class NotFiniteError(ValueError, FloatingPointError):
    """Numbers that came out NaN or infinite, where a model or a prediction was asked for."""

    __init__ = explained


class CertificateError(ValueError):
    """A lower bound above the objective, beyond rounding: a loss or a norm whose parts do not belong together."""

    __init__ = explained


#: modules that stand between the library and the line that called it
BETWEEN = ("kernelweave.", "sklearn.", "joblib.", "numba.", "contextlib")


#: kinds of warnings that were issued in this process
_issued: set[type[Warning]] = set()


def whereabouts(kind: type[BaseException]) -> str:
    """Return where a kind of warning or error is explained; at the address that pyproject.toml has, if any."""
    address = ""
    with suppress(PackageNotFoundError):  # the package is not installed, but found in a folder
        for line in metadata("kernelweave").get_all("Project-URL") or []:
            if line.startswith("Documentation, "):
                address = f" ({line.partition(', ')[2]})"
    return f"See {kind.__name__} in 'Troubleshooting' of the documentation{address}."


def warn_at_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the first line above that is neither of this library nor of what calls it (``BETWEEN``).

    The first of each kind of ours says where it is explained.
    """
    if category not in _issued and issubclass(category, KernelWeaveWarning):
        _issued.add(category)
        message = f"{message.rstrip('.')}. {whereabouts(category)}"
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(BETWEEN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


__dir__ = __all__.copy  # completion shows the public names alone
