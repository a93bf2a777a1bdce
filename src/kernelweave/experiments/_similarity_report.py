"""Tables of the similarity study, from its rows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ._study import Report

__all__ = ["garbage", "proteins", "single"]


def single(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Tables 1 and 2."""
    return []


proteins = garbage = single
