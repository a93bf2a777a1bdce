"""Sections of the page: each is a function of the subject that returns HTML, or nothing where nothing is to say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import pairs
from .._refits import Subject
from . import accuracy, advice, fit, sensitivity, survival, weights

__all__ = ["PAIR_SECTIONS", "SECTIONS"]

#: in the order of the page
SECTIONS: Sequence[Callable[[Subject], str]] = (
    fit.findings_section, fit.summary_section, advice.next_section,
    weights.views_section, weights.groups_section, weights.features_section,
    sensitivity.sensitivity_section, sensitivity.subsets_section,
    accuracy.accuracy_section, accuracy.confusion_section, accuracy.calibration_section, accuracy.residuals_section,
    survival.survival_section, fit.choice_section, accuracy.missing_section, accuracy.labels_section,
    fit.convergence_section, fit.settings_section,
)  # fmt: skip
#: of pairs of objects
PAIR_SECTIONS: Sequence[Callable[[Subject], str]] = (
    fit.findings_section, fit.summary_section, advice.next_section, pairs.expected_section, pairs.measured_section,
    pairs.sides_section, accuracy.accuracy_section, accuracy.confusion_section, accuracy.calibration_section,
    accuracy.residuals_section, fit.choice_section, accuracy.labels_section, fit.convergence_section,
    fit.settings_section,
)  # fmt: skip
