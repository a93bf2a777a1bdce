"""Making kernels comparable: centring and scaling, learnt on the training samples and applied to new ones.

Centring comes first, ``K - 1 r' - r 1' + g`` with r the row means and g the grand mean of the training matrix.  Then
``trace``: ``K n / tr K`` (mean diagonal 1), or ``cosine``: ``K_ij / sqrt(K_ii K_jj)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._typing import Array, Index
from ..exceptions import KernelWeaveWarning, warn_at_caller

MODES = ("trace", "cosine", None)
NOTHING = 1e-300  # diagonals below are zero
GONE = 1e-12  # what is left of a diagonal below this share, after centring, is rounding
GONE_FEATURES = 1e-28  # likewise where features were centred, and rounded, before they were squared
FEW_LEFT = 1e-9  # below this share, centring has cost more than half of the digits
HUGE = 1e140  # diagonals above are refused: squares and sums of such entries overflow


def check_normalise(mode: str | None) -> str | None:
    """Return the mode, or raise a ValueError that lists what there is."""
    mode = None if mode == "none" else mode
    if mode not in MODES:
        raise ValueError(f"normalize must be 'trace', 'cosine' or None, got {mode!r}")
    return mode


@dataclass
class Normaliser:
    """Normalisation learnt for m kernels on n training samples.

    Attributes
    ----------
    scale : array of shape (m,)
        Factor of every kernel.
    row_means, grand_means : arrays of shape (m, n) and (m,), or None
        Of the raw training matrices, where kernels are centred.
    diagonal : array of shape (m, n), or None
        Of the centred training matrices, where they are divided by it (cosine).
    """

    mode: str | None
    center: bool
    scale: Array
    row_means: Array | None = None
    grand_means: Array | None = None
    diagonal: Array | None = None
    names: list[str] = field(default_factory=list)

    @classmethod
    def empty(cls, mode: str | None, center: bool, m: int, n: int, names: list[str]) -> Normaliser:
        """Return a normaliser for m kernels of which nothing has been learnt yet."""
        made = cls(check_normalise(mode), center, np.ones(m), names=names)
        if center:
            made.row_means, made.grand_means = np.zeros((m, n)), np.zeros(m)
        if made.mode == "cosine":
            made.diagonal = np.ones((m, n))
        return made

    def learn_traces(self, kernels: Index, means: Array) -> None:
        """Learn many kernels at once from their mean diagonals, where a factor is all there is to learn."""
        assert self.keeps_powers()
        for j in np.flatnonzero(~(np.abs(means) < HUGE)):
            self._refuse_overflow(int(kernels[j]), means[j])
        if self.mode == "trace":
            self.scale[kernels] = np.divide(1.0, means, out=np.zeros_like(means), where=means > NOTHING)

    def _refuse_overflow(self, j: int, values: Array) -> None:
        """Raise where a kernel is not finite, or so large that sums over it will not be."""
        if not np.all(np.abs(values) < HUGE):
            name = f"{self.names[j]!r}" if self.names else str(j)
            raise ValueError(
                f"kernel {name} overflows on the training samples: scale the features first (StandardScaler), or leave "
                "the kernel out"
            )

    def keeps_powers(self) -> bool:
        """Whether a kernel only gets a factor, so that families can still be stored as powers of one matrix."""
        return not self.center and self.mode != "cosine"

    def learn(
        self, j: int, diagonal: Array, row_means: Array | None = None, centred: Array | None = None
    ) -> None:
        """Learn kernel j from its raw diagonal and, for centring, its row means.

        ``centred`` is the diagonal after centring, where it is known better than by subtracting.
        """
        nothing: Any = NOTHING
        self._refuse_overflow(j, diagonal if row_means is None else diagonal + row_means)
        if self.center:
            assert row_means is not None
            assert self.row_means is not None
            assert self.grand_means is not None
            self.row_means[j] = row_means
            self.grand_means[j] = np.mean(row_means)
            if centred is None:
                # what is left of a constant is rounding
                nothing = np.maximum(NOTHING, GONE * np.abs(diagonal))
                centred = diagonal - 2.0 * row_means + self.grand_means[j]
                before, after = float(np.mean(np.abs(diagonal))), float(np.mean(centred))
                # every sample is brought to length one, those too of which little is left
                if self.mode == "cosine":
                    after = float(np.min(centred, initial=after, where=centred > GONE * np.abs(diagonal)))
                constant = float(np.ptp(diagonal)) <= 1e-14 * before and after <= GONE * before
                if not constant and not after >= FEW_LEFT * before:
                    digits = max(0, int(np.log10(max(after / before, 1e-16)) + 16))
                    warn_at_caller(
                        f"centring leaves {max(after / before, 0.0):.1g} of kernel {self.names[j]!r}, about {digits} "
                        "of its 16 digits: bring the features to mean zero first (StandardScaler)",
                        KernelWeaveWarning,
                    )
            else:
                nothing = np.maximum(NOTHING, GONE_FEATURES * np.abs(diagonal))
            diagonal = centred
        # A kernel that vanishes on the training samples (an absent term, a constant that was centred), or one of its
        # samples, says nothing: it is left at zero, for new samples too.
        if self.mode == "trace":
            mean = float(np.mean(diagonal))
            self.scale[j] = 1.0 / mean if mean > float(np.mean(nothing)) else 0.0
        elif self.mode == "cosine":
            assert self.diagonal is not None
            self.diagonal[j] = np.where(diagonal > nothing, diagonal, np.inf)

    def train_block(self, j: int, entries: Array, rows: Index, cols: Index) -> Array:
        """Normalise raw training entries (in place)."""
        if self.center:
            assert self.row_means is not None
            assert self.grand_means is not None
            entries -= self.row_means[j, rows][:, None]
            entries -= self.row_means[j, cols][None, :]
            entries += self.grand_means[j]
        if self.diagonal is not None:
            entries /= np.sqrt(self.diagonal[j, rows][:, None] * self.diagonal[j, cols][None, :])
        entries *= self.scale[j]
        return entries

    def cross_block(self, j: int, entries: Array, diagonal: Array | None, cols: Index | slice) -> Array:
        """Normalise raw entries between new rows and all training samples; return the columns asked for.

        ``diagonal`` holds ``k(x, x)`` of the new rows, needed for the cosine alone.
        """
        kept = entries[:, cols]
        if self.center:
            assert self.row_means is not None
            assert self.grand_means is not None
            means = np.mean(entries, axis=1)
            kept = kept - means[:, None] - self.row_means[j, cols][None, :] + self.grand_means[j]
            if diagonal is not None:
                nothing = np.maximum(NOTHING, GONE * np.abs(diagonal))
                diagonal = diagonal - 2.0 * means + self.grand_means[j]
                diagonal = np.where(diagonal > nothing, diagonal, np.inf)
        if self.diagonal is not None:
            assert diagonal is not None
            kept = kept / np.sqrt(np.maximum(diagonal, NOTHING)[:, None] * self.diagonal[j, cols][None, :])
        return kept * self.scale[j]

    def restrict(self, kernels: Index) -> Normaliser:
        """Keep some kernels only."""
        learnt = (self.row_means, self.grand_means, self.diagonal)
        means, grand, diagonal = (None if values is None else values[kernels] for values in learnt)
        names = [self.names[j] for j in kernels] if self.names else []
        return Normaliser(self.mode, self.center, self.scale[kernels], means, grand, diagonal, names)
