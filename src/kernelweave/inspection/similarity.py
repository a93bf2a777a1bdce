"""Moved to ``kernelweave.similarity``; ``kernelweave.inspection`` shows it as before."""

from .._old_places import moved_to

__getattr__ = moved_to("kernelweave.similarity.diagnosis", __name__)
