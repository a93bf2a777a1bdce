"""What a report is about: the one argument of every section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ..inspection import TiedViews, tied_views
from ._refits import Refits

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """A fitted model, its samples, and what refits on folds gave.

    Attributes
    ----------
    model : estimator or pipeline
        Fitted on X and y.
    estimator : estimator
        The one with kernels: the last step of a pipeline.
    X, y : samples and targets
    names : list of str
        What the samples are called.
    refits : Refits
    note : mapping
        Settings of the command line.
    seed : int
    groups : array or None
        Groups of samples that were kept together in folds.
    """

    model: Any
    estimator: Any
    X: Any
    y: NDArray[Any]
    names: Sequence[str]
    refits: Refits
    note: Mapping[str, Any]
    seed: int
    groups: NDArray[Any] | None = None

    @cached_property
    def ties(self) -> TiedViews | None:
        """Weights of views at choices of C and norm that the scores do not tell from the one made, if there are any."""
        return tied_views(self.model)
