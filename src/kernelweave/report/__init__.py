"""One self-contained HTML page about a fit: no network, light and dark, nothing to install for its reader."""

from ._compare import Comparison, compare_models
from ._make import make_report

__all__ = ["Comparison", "compare_models", "make_report"]
__dir__ = __all__.copy  # completion shows the public names alone
