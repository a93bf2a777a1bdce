"""What the two elastic nets have in common: a share of the l1 part."""

from __future__ import annotations

from ._base import Norm, is_number

__all__ = ["MixedNorm"]


class MixedNorm(Norm):
    """A norm between l1 (``mix -> 1``) and a dense one (``mix -> 0``)."""

    analytic = True
    smooth_conjugate = True
    constrained = True
    #: how to ask for the norm at ``mix = 0``
    at_zero: str

    def __init__(self, mix: float = 0.5) -> None:
        self.mix = mix

    def check(self, m: int) -> None:
        if not (is_number(self.mix) and 0.0 < self.mix < 1.0):
            raise ValueError(
                f"{type(self).__name__} needs 0 < mix < 1, got {self.mix!r}; "
                f"mix = 1 is norm='l1', mix = 0 is {self.at_zero}"
            )
