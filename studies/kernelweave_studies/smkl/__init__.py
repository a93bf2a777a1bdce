"""SMKL [XJL10]: the toy figure, Table 2 (UCI), Table 3 (text), what the table hangs on, and convergence."""

from .study import STUDY

__all__ = ["STUDY"]
