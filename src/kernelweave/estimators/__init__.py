"""scikit-learn faces."""

from ..similarity import (
    Denoise,
    Flip,
    Shift,
    SimilarityClassifier,
    SimilarityFeatures,
    Square,
    held_similarities,
)
from .baselines import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
)
from .classifier import MKLClassifier
from .cv import MKLClassifierCV
from .features import KernelFeatures
from .lp_beta import LPBetaClassifier
from .noisy import NoisyLabelMKLClassifier
from .path import MKLPath, mkl_path
from .regressor import MKLRegressor
from .regressor_cv import MKLRegressorCV

__all__ = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "Denoise",
    "Flip",
    "KernelFeatures",
    "LPBetaClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLPath",
    "MKLRegressor",
    "MKLRegressorCV",
    "MeanKernelClassifier",
    "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor",
    "NoisyLabelMKLClassifier",
    "Shift",
    "SimilarityClassifier",
    "SimilarityFeatures",
    "Square",
    "held_similarities",
    "mkl_path",
]
