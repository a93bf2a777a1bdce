"""Views: several tables of the same samples, some of which may be missing for some samples."""

from .holder import Views, as_views, is_views
from .layout import ViewLayout
from .scaler import ViewScaler

__all__ = ["ViewLayout", "ViewScaler", "Views", "as_views", "is_views"]
