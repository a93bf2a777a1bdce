"""Door to what holds for a call of ``fit`` as a whole, in every room with estimators."""

from .._estimating import TimeShares, one_call, one_fit

__all__ = ["TimeShares", "one_call", "one_fit"]
