"""Door to what every room with estimators does where a ``fit`` raises."""

from .._estimating import unchanged_where_it_raises

__all__ = ["unchanged_where_it_raises"]
