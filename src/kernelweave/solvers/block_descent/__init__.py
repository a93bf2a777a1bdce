"""Block descent on explicit features: sparse multiple kernel learning without a matrix of n x n."""

from .solver import BlockDescent

__all__ = ["BlockDescent"]
