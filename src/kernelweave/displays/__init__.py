"""Pictures of a fit, in scikit-learn's manner: arrays in, ``from_estimator``, ``plot``.

Every method that draws does so on ``ax``, or in a new figure, and returns the display, which keeps ``ax_`` and
``figure_``.  matplotlib is imported when something is drawn, not before.
"""

from .convergence import ConvergenceDisplay
from .explanation import NoiseDisplay, ShapleyDisplay, VarianceDisplay
from .matrices import KernelMatrixDisplay, SpectrumDisplay
from .survival import CalibrationDisplay, SurvivalDisplay
from .weights import GroupsDisplay, PathDisplay, WeightsDisplay

__all__ = [
    "CalibrationDisplay", "ConvergenceDisplay", "GroupsDisplay", "KernelMatrixDisplay", "NoiseDisplay", "PathDisplay",
    "ShapleyDisplay", "SpectrumDisplay", "SurvivalDisplay", "VarianceDisplay", "WeightsDisplay",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
