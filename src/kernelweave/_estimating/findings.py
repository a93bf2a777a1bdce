"""What a reader must know before any figure of a fit: plain sentences, kept as ``findings_``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..exceptions import DegenerateModelWarning, warn_at_caller

__all__ = ["constant_prediction", "end_of_grid", "warn_of_findings"]

#: share of the samples of all other classes that a model may miss before it says one class for nearly everything
MISSED = 0.9
#: fewer samples of the other classes than this prove nothing
FEWEST = 3


def constant_prediction(
    predicted: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    counted: np.ndarray,
    where: str = "training",
) -> str | None:
    """Return a sentence where one class is predicted for nearly everything, None where a model tells classes apart.

    That is so where at least nine in ten of the samples of all other classes are predicted as this one.  A rare class
    that is found makes no finding, however rare it is.

    Parameters
    ----------
    predicted, codes : arrays of shape (n,)
        Predicted and true classes as positions in ``classes``.
    classes : array of shape (k,)
    counted : array of shape (n,), bool
        Samples that count.
    where : str
        Which samples these are, for the sentence.

    Examples
    --------
    >>> codes = np.repeat([0, 1], [30, 10])
    >>> everything = np.ones(40, dtype=bool)
    >>> said = constant_prediction(np.zeros(40, dtype=int), codes, np.array(["benign", "malignant"]), everything)
    >>> print(said[:67])
    The model predicts class 'benign' for 40 of 40 training samples, th
    >>> constant_prediction(codes, codes, np.array([0, 1]), everything) is None
    True
    """
    predicted, codes = predicted[counted], codes[counted]
    if not codes.size:
        return None
    top = int(np.argmax(np.bincount(predicted, minlength=classes.size)))
    others = codes != top
    told_apart = int(np.count_nonzero(predicted[others] != top))
    if np.count_nonzero(others) < FEWEST or told_apart > (1.0 - MISSED) * np.count_nonzero(others):
        return None
    label = classes[top].item() if isinstance(classes[top], np.generic) else classes[top]
    return (
        f"The model predicts class {label!r} for {np.count_nonzero(predicted == top)} of {predicted.size} {where} "
        f"samples, though {np.count_nonzero(others)} of them are of another class ({told_apart} of these are "
        f"recognised): it is hardly better than always answering {label!r}. Try a larger C, class_weight='balanced', "
        "scoring='balanced_accuracy' in a search, or other kernels."
    )


def end_of_grid(C: float, Cs: Sequence[float] | np.ndarray, of: str = "") -> str | None:
    """Return a sentence where C was chosen at an end of the values that were tried.

    >>> print(end_of_grid(0.01, [0.01, 1.0, 100.0]))
    C = 0.01 was chosen at the lower end of the values tried (0.01 to 100): a smaller one may be better; widen Cs.
    >>> end_of_grid(1.0, [0.01, 1.0, 100.0]) is None
    True
    """
    values = np.unique(np.asarray(Cs, dtype=float))
    if values.size < 2 or values[0] < C < values[-1]:
        return None
    lower = values[0] >= C
    return (
        f"C = {C:g} was chosen{of} at the {'lower' if lower else 'upper'} end of the values tried ({values[0]:g} to "
        f"{values[-1]:g}): a {'smaller' if lower else 'larger'} one may be better; widen Cs."
    )


def warn_of_findings(findings: Sequence[str]) -> None:
    """Issue a warning of each at the line that called ``fit``."""
    for sentence in findings:
        warn_at_caller(sentence, DegenerateModelWarning)
