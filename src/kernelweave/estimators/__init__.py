"""scikit-learn faces."""

from .baselines import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
)
from .classifier import MKLClassifier
from .regressor import MKLRegressor

__all__ = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "MKLClassifier",
    "MKLRegressor",
    "MeanKernelClassifier",
    "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor",
]
