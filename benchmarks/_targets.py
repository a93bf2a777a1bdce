"""Targets and whether they were reached: printed as lines that ``run.py`` collects."""

from __future__ import annotations

from kernelweave.experiments._targets import Target, Targets

__all__ = ["Target", "Targets"]
