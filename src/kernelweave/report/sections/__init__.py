"""Sections of the page, one module each: ``section(subject)`` returns HTML, or nothing where nothing is to say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._subject import Subject
from . import (
    accuracy,
    calibration,
    choice,
    confusion,
    convergence,
    features,
    findings,
    groups,
    labels,
    missing,
    residuals,
    sensitivity,
    settings,
    subsets,
    summary,
    views,
)

__all__ = ["SECTIONS"]

#: in the order of the page
SECTIONS: Sequence[Callable[[Subject], str]] = (
    findings.section,
    summary.section,
    views.section,
    groups.section,
    features.section,
    sensitivity.section,
    subsets.section,
    accuracy.section,
    confusion.section,
    calibration.section,
    residuals.section,
    choice.section,
    missing.section,
    labels.section,
    convergence.section,
    settings.section,
)
