"""One thread for every program: what a ratio between two programs means otherwise depends on the machine's cores."""

from __future__ import annotations

import os
import sys

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
ONE = dict.fromkeys(VARIABLES, "1")


def pin() -> None:
    """Start this program again with one thread where it has more; a BLAS reads the variables when it is loaded."""
    if all(os.environ.get(name) == "1" for name in VARIABLES):
        return
    sys.stdout.flush()
    os.environ.update(ONE)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
