"""Targets and whether they were reached: printed as lines that ``run.py`` collects."""

from __future__ import annotations

from kernelweave_studies.tables import Target, Targets

__all__ = ["Target", "Targets"]
