"""skops, imported without what it does not need."""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = ["import_skops"]

#: skops walks through every folder of scikit-learn to list its estimators, and imports these on the way: with torch
#: and dask installed that takes longer than everything else in a prediction
DOORS = {
    "torch": "sklearn.externals.array_api_compat.torch",
    "dask": "sklearn.externals.array_api_compat.dask",
    "cupy": "sklearn.externals.array_api_compat.cupy",
}


def import_skops() -> ModuleType:
    """Return ``skops.io``; importing it imports neither torch nor dask."""
    # where the package is there already, its door costs nothing and may be in use
    closed = [
        door for package, door in DOORS.items() if package not in sys.modules and door not in sys.modules
    ]
    for door in closed:
        sys.modules[door] = None  # type: ignore[assignment]  # an ImportError, which the walk passes over
    try:
        import skops.io
    finally:
        for door in closed:
            del sys.modules[door]
    return skops.io
