"""StPMKL [YMJZY12]: accuracy against noise, convergence, the equivalence with l1-MKL, noise rates, crowd labels."""

from .study import STUDY

__all__ = ["STUDY"]
