"""Pictures of a fit, in scikit-learn's manner: arrays in, ``from_estimator``, ``plot``.

matplotlib is imported when something is drawn, not before.
"""

from .convergence import ConvergenceDisplay
from .groups import GroupsDisplay
from .kernel_matrix import KernelMatrixDisplay
from .noise import NoiseDisplay
from .path import PathDisplay
from .shapley import ShapleyDisplay
from .spectrum import SpectrumDisplay
from .variance import VarianceDisplay
from .weights import WeightsDisplay

__all__ = [
    "ConvergenceDisplay",
    "GroupsDisplay",
    "KernelMatrixDisplay",
    "NoiseDisplay",
    "PathDisplay",
    "ShapleyDisplay",
    "SpectrumDisplay",
    "VarianceDisplay",
    "WeightsDisplay",
]
