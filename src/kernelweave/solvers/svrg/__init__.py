"""Multi-epoch SVRG on explicit features [APO17]: the solver, its run, and the printed algorithm beside it."""

from .solver import SVRG

__all__ = ["SVRG"]
