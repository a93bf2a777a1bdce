"""The full problem, the part of it that is being worked on, and the way between the two."""

from __future__ import annotations

import numpy as np

from ._smo_parts import BETA, DOWN, KINK, RIDGE, SLOPE, UP, add_rows, set_offsets
from .compiled import njit
from .threads import in_threads

#: entries of a copy from which several threads share it
MANY_ENTRIES = 1_000_000
#: columns in which rows are added by one thread; narrower pieces of rows are slow to read
WIDE = 2000


@njit(makes_arrays=False, nogil=True)
def _gather(gram, rows, columns, out):
    for p in range(rows.size):
        i = rows[p]
        for q in range(columns.size):
            out[p, q] = gram[i, columns[q]]


def gather(gram, keep, out):
    """Copy the rows and columns ``keep`` of a matrix to ``out``."""
    gram, height = frozen(gram), max(1, MANY_ENTRIES // max(1, keep.size))

    def run(top):
        _gather(gram, keep[top : top + height], keep, out[top : top + height])

    in_threads(run, range(0, keep.size, height))


def frozen(gram):
    """A read-only view: compiled code then sees one type, whether or not the caller's array is writable."""
    view = gram.view()
    view.flags.writeable = False
    return view


class Workspace:
    """A box QP of which a part is active.

    Shrinking copies the active part with its sub-Gram matrix, so that the rows it sweeps are short and
    contiguous. Meanwhile ``full[SLOPE]`` belongs to the coefficients ``_anchor``; only the rows of
    the variables that moved since are needed to bring it up to date.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The Gram matrix.
    linear : ndarray of shape (n,)
        The linear term.
    full : ndarray of shape (9, n)
        All variables, in the rows that :mod:`._smo_parts` names; slopes and offsets are kept up to date here.
    """

    def __init__(self, gram, linear, full):
        self.gram, self.linear, self.full = frozen(gram), linear, full
        self._anchor = np.empty_like(full[BETA])
        self._activate_all()

    def _activate_all(self):
        self.active, self.sub, self._index = self.full, self.gram, None

    @property
    def shrunk(self):
        """Whether some variables have left the active part."""
        return self._index is not None

    def shrink(self, high, low):
        """Drop the variables that cannot be chosen while ``high`` and ``low`` are the extremes."""
        a = self.active
        keep = np.flatnonzero((a[SLOPE] + a[UP] >= low) | (a[SLOPE] + a[DOWN] <= high))
        if self.shrunk:
            self.full[BETA, self._index] = a[BETA]
            self._index = self._index[keep]
        else:
            self._anchor[:] = a[BETA]
            self._index = keep
        sub = np.empty((keep.size, keep.size), dtype=self.gram.dtype)
        gather(self.sub, keep, sub)
        self.sub, self.active = frozen(sub), np.take(a, keep, axis=1)

    def restore(self):
        """Bring every variable back, with its slope."""
        if self.shrunk:
            self.full[BETA, self._index] = self.active[BETA]
            self._activate_all()
            self.follow(self.full[BETA] - self._anchor)

    def follow(self, change):
        """Bring slopes and offsets up to date after the coefficients changed by ``change``."""
        full, moved = self.full, change.nonzero()[0]
        less, n = -change[moved], full.shape[1]

        def run(first):
            add_rows(self.gram, moved, less, first, min(first + WIDE, n), full[SLOPE])

        in_threads(run, range(0, n, WIDE))
        full[SLOPE, moved] -= full[RIDGE, moved] * change[moved]
        set_offsets(full)

    def recompute(self):
        """Recompute slopes and offsets from the coefficients alone, without accumulated rounding."""
        self.restore()
        self.full[SLOPE] = self.linear
        self.follow(self.full[BETA])

    def product(self):
        """Gram matrix times coefficients."""
        return self.linear - self.full[SLOPE] - self.full[RIDGE] * self.full[BETA]

    def mass(self):
        """Sum of the coefficients' sizes, to which rounding is in proportion."""
        return float(np.abs(self.full[BETA]).sum())

    def objective(self):
        """Value of the full problem; its slopes must be up to date."""
        full = self.full
        smooth = 0.5 * full[BETA] @ (self.linear + full[SLOPE])
        return float(smooth - full[KINK] @ np.abs(full[BETA]))
