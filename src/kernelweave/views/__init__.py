"""Views: several tables of the same samples, some of which may be missing for some samples."""

from ._tables import as_frame, is_annotated, is_modality, is_row, layers_of
from .holder import Views, as_views, is_views, samples_and_targets
from .layout import (
    KnownViews,
    MissingRates,
    Presence,
    ViewLayout,
    pattern_table,
    refuse_missing,
    warn_of_classes,
)
from .pairs import PairKFold, Pairs
from .preparation import PairColumns, ViewColumns, ViewScaler

__all__ = [
    "KnownViews", "MissingRates", "PairColumns", "PairKFold", "Pairs", "Presence", "ViewColumns", "ViewLayout",
    "ViewScaler", "Views", "as_frame", "as_views", "is_annotated", "is_modality", "is_row", "is_views",
    "layers_of", "pattern_table", "refuse_missing",
    "samples_and_targets", "warn_of_classes",
]  # fmt: skip

__dir__ = __all__.copy  # completion shows the public names alone
