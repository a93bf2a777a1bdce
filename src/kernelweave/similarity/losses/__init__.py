"""Convex losses of the difference between a kernel and a similarity: one file each, with a registry of their own."""

from __future__ import annotations

from typing import Any

from ._base import SimilarityLoss, similarity_losses
from .squared import SquaredLoss
from .user import UserLoss

__all__ = ["SimilarityLoss", "SquaredLoss", "UserLoss", "make_similarity_loss", "similarity_losses"]


def make_similarity_loss(loss: Any) -> SimilarityLoss:
    """Return a loss from a name, an instance, or a pair of functions (value, subgradient).

    >>> make_similarity_loss("frobenius")
    FrobeniusLoss()
    """
    if isinstance(loss, tuple | list):
        if not (2 <= len(loss) <= 4 and callable(loss[0]) and callable(loss[1])):
            raise ValueError(
                "a similarity loss of your own is a pair of functions (value, subgradient), optionally followed by "
                f"the conjugate and the proximal operator; got {loss!r}"
            )
        return UserLoss(*loss)
    if callable(loss) and not isinstance(loss, type | SimilarityLoss):
        raise ValueError(f"a similarity loss needs two functions (value, subgradient), got only {loss!r}")
    return similarity_losses.make(loss, SimilarityLoss)  # type: ignore[type-abstract]
