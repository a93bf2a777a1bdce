"""A progress bar in decades of the gap, or one line per iteration."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Progress"]


class Progress:
    """Shows how far the relative gap has come on its way to the tolerance.

    Parameters
    ----------
    verbose : int
        0 nothing, 1 a bar, 2 one line per iteration.
    """

    def __init__(self, verbose: int, tol: float, label: str) -> None:
        self.verbose = int(verbose)
        self.goal = max(-math.log10(tol), 1e-9) if 0 < tol < 1 else 1.0
        self.label = label
        self.bar: Any = None

    def show(self, row: dict[str, float]) -> None:
        """Take one row of the trace."""
        if self.verbose == 1:
            if self.bar is None:
                from tqdm.auto import tqdm

                shape = "{desc} |{bar}| {unit} [{elapsed}]"
                self.bar = tqdm(total=self.goal, desc=self.label, bar_format=shape, leave=True)
            gap = max(row["relative_gap"], 1e-16)
            self.bar.n = min(self.goal, max(0.0, -math.log10(gap)))
            # in the place of the unit, because tqdm puts a comma before its own postfix
            self.bar.unit = f"gap {gap:.1e}, {row['passes']:.1f} passes, {row['active_kernels']:.0f} kernels"
            self.bar.refresh()
        elif self.verbose >= 2:
            print(
                f"{self.label} {row['iteration']:5.0f}  {row['seconds']:8.3f} s  {row['passes']:8.2f} passes  "
                f"primal {row['primal']:.8g}  dual {row['dual']:.8g}  gap {row['relative_gap']:.2e}  "
                f"{row['active_kernels']:.0f} kernels"
            )

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.close()
