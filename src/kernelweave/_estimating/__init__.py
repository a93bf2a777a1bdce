"""Parts of every estimator, in whichever subpackage: targets and weights, one call of ``fit``, finite decisions."""

from .findings import PlainState, clearly_ahead, constant_prediction, end_of_grid, undecided, warn_of_findings
from .one_fit import TimeShares, one_call, one_fit, restore_on_error, several_fits
from .targets import (
    check_two_classes,
    checked_targets,
    class_columns,
    encode_classes,
    finite_decision,
    weigh_classes,
    weigh_samples,
)

__all__ = [
    "PlainState",
    "TimeShares",
    "check_two_classes",
    "checked_targets",
    "class_columns",
    "clearly_ahead",
    "constant_prediction",
    "encode_classes",
    "end_of_grid",
    "finite_decision",
    "one_call",
    "one_fit",
    "restore_on_error",
    "several_fits",
    "undecided",
    "warn_of_findings",
    "weigh_classes",
    "weigh_samples",
]
