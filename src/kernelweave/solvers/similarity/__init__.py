"""Moved to ``kernelweave.similarity.solvers``."""

from ..._old_places import moved_to

__getattr__ = moved_to("kernelweave.similarity.solvers", __name__)
