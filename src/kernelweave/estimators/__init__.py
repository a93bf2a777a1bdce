"""scikit-learn faces."""

from .baselines import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
)
from .classifier import MKLClassifier
from .cv import MKLClassifierCV
from .noisy import NoisyLabelMKLClassifier
from .path import MKLPath, mkl_path
from .regressor import MKLRegressor

__all__ = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLPath",
    "MKLRegressor",
    "MeanKernelClassifier",
    "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor",
    "NoisyLabelMKLClassifier",
    "mkl_path",
]
