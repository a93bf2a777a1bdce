"""Moved to ``kernelweave.similarity.solvers.eskl``."""

from ..._old_places import moved_to

__getattr__ = moved_to("kernelweave.similarity.solvers.eskl", __name__)
