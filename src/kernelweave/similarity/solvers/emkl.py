"""EMKL: a kernel for every similarity, problem (6) of [KTBB10]."""

from __future__ import annotations

from ..problems import SeparateKernelsProblem
from ._mirror import MirrorDescent

__all__ = ["EMKL"]


class EMKL(MirrorDescent, registered_as="emkl"):
    """Mirror descent on m kernels, one SVM and m decompositions an iteration; parameters as ``MirrorDescent``."""

    problem = SeparateKernelsProblem
    summary = "a kernel for every similarity, all of them used alike"
