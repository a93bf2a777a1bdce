"""scikit-learn faces."""

from .baselines import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
)
from .classifier import MKLClassifier
from .path import MKLClassifierCV, MKLPath, mkl_path
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
    "mkl_path",
]
