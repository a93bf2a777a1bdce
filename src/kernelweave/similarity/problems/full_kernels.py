"""Problems (4) and (6): kernels that may be any positive semi-definite matrices of their trace."""

from __future__ import annotations

from ._base import SimilarityProblem

__all__ = ["SeparateKernelsProblem", "SingleKernelProblem"]


class SingleKernelProblem(SimilarityProblem):
    """(4): one kernel near all the similarities."""

    shared = True
    allowed_kernels = "positive semidefinite kernel of trace n"


class SeparateKernelsProblem(SimilarityProblem):
    """(6): a kernel for every similarity."""

    allowed_kernels = "positive semidefinite kernels of trace n, one for every similarity,"
