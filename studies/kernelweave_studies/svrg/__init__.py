"""SVRG for lp-norm MKL [APO17]: passes, robustness, Table 1 as measured exponents, and two of its claims."""

from .study import STUDY

__all__ = ["STUDY"]
