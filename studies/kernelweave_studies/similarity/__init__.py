"""Kernels from indefinite similarities [KTBB10]: Tables 1, 2 and 3, a garbage similarity, and what is certified."""

from .study import STUDY

__all__ = ["STUDY"]
