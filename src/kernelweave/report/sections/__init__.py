"""Sections of the page: each is a function of the subject that returns HTML, or nothing where nothing is to say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._refits import Subject
from .accuracy import (
    accuracy_section,
    calibration_section,
    confusion_section,
    labels_section,
    missing_section,
    residuals_section,
)
from .fit import choice_section, convergence_section, findings_section, settings_section, summary_section
from .sensitivity import sensitivity_section, subsets_section
from .weights import features_section, groups_section, views_section

__all__ = ["SECTIONS"]

#: in the order of the page
SECTIONS: Sequence[Callable[[Subject], str]] = (
    findings_section,
    summary_section,
    views_section,
    groups_section,
    features_section,
    sensitivity_section,
    subsets_section,
    accuracy_section,
    confusion_section,
    calibration_section,
    residuals_section,
    choice_section,
    missing_section,
    labels_section,
    convergence_section,
    settings_section,
)
