"""What a solver of a similarity problem is: a solver, but not for an ``MKLProblem``."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._components import Registry
from ...solvers import Solver
from ..problems import SimilarityProblem

__all__ = ["SimilaritySolver", "similarity_solvers"]


similarity_solvers: Registry[SimilaritySolver] = Registry(
    "similarity solver", "kernelweave.similarity.solvers"
)


class SimilaritySolver(Solver):
    """An iterative method for one of the similarity problems; the contract is that of ``Solver``."""

    components = similarity_solvers
    #: the class of problems it solves
    problem: ClassVar[type[SimilarityProblem]] = SimilarityProblem
    default_max_iter: ClassVar[int] = 300

    def init(self, problem: Any, start: Any, tol: float) -> Any:
        """Return the first state."""
        raise NotImplementedError

    def step(self, problem: Any, state: Any) -> Any:
        """Return the next state."""
        raise NotImplementedError
