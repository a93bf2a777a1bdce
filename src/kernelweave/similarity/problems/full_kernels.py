"""Problems (4) and (6): kernels that may be any positive semi-definite matrices of their trace."""

from __future__ import annotations

from ._base import SimilarityProblem

__all__ = ["SeparateKernelsProblem", "SingleKernelProblem"]


class SingleKernelProblem(SimilarityProblem):
    """(4): one kernel near all the similarities."""

    shared = True


class SeparateKernelsProblem(SimilarityProblem):
    """(6): a kernel for every similarity."""
