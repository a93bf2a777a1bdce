"""OBSCURE [OJC10]: multiclass (2, p)-norm MKL, online then batch; its rivals, its theorems, MNIST."""

from .study import STUDY

__all__ = ["STUDY"]
