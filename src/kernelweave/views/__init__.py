"""Views: several tables of the same samples, some of which may be missing for some samples."""

from .by_names import join_on
from .columns import ViewColumns
from .holder import Views, as_views, is_views
from .known import KnownViews
from .layout import ViewLayout
from .missingness import MissingRates, Presence, pattern_table, refuse_missing, warn_of_classes
from .scaler import ViewScaler

__all__ = [
    "KnownViews",
    "MissingRates",
    "Presence",
    "ViewColumns",
    "ViewLayout",
    "ViewScaler",
    "Views",
    "as_views",
    "is_views",
    "join_on",
    "pattern_table",
    "refuse_missing",
    "warn_of_classes",
]
