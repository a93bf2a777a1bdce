"""REKL: kernels on the eigenvectors of the similarities, problem (7) of [KTBB10]."""

from __future__ import annotations

from ..problems import RestrictedKernelsProblem
from ._mirror import MirrorDescent

__all__ = ["REKL"]


class REKL(MirrorDescent, registered_as="rekl"):
    """Mirror descent on eigenvalues: m decompositions in all, then vectors; parameters as ``MirrorDescent``."""

    problem = RestrictedKernelsProblem
    summary = "new eigenvalues for every similarity, eigenvectors kept"
