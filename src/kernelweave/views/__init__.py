"""Views: several tables of the same samples, some of which may be missing for some samples."""

from ._tables import as_frame
from .columns import ViewColumns
from .holder import Views, as_views, is_views
from .known import KnownViews, join_on
from .layout import ViewLayout
from .missingness import MissingRates, pattern_table, refuse_missing, warn_of_classes
from .scaler import ViewScaler

__all__ = [
    "KnownViews",
    "MissingRates",
    "ViewColumns",
    "ViewLayout",
    "ViewScaler",
    "Views",
    "as_frame",
    "as_views",
    "is_views",
    "join_on",
    "pattern_table",
    "refuse_missing",
    "warn_of_classes",
]
