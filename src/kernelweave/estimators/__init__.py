"""Estimators in scikit-learn's terms: classifiers, regressors, baselines, paths over C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .baselines import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
)
from .classifier import MKLClassifier
from .cv import MKLClassifierCV, MKLPath, mkl_path
from .features import KernelFeatures
from .lp_beta import LPBetaClassifier
from .noisy import NoisyLabelMKLClassifier
from .novelty import MKLOneClass
from .regressor import MKLRegressor, MKLRegressorCV
from .survival import MKLSurvival, MKLSurvivalCV

if TYPE_CHECKING:
    from ..similarity import (
        DenoiseSpectrum,
        FlipSpectrum,
        ShiftSpectrum,
        SimilarityClassifier,
        SimilarityFeatures,
        SquareSpectrum,
        held_similarities,
    )

__all__ = [
    "AlignmentClassifier", "BestKernelClassifier", "DenoiseSpectrum", "FlipSpectrum", "KernelFeatures",
    "LPBetaClassifier", "MKLClassifier", "MKLClassifierCV", "MKLOneClass", "MKLPath", "MKLRegressor",
    "MKLRegressorCV", "MKLSurvival", "MKLSurvivalCV", "MeanKernelClassifier", "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor", "NoisyLabelMKLClassifier", "ShiftSpectrum", "SimilarityClassifier",
    "SimilarityFeatures", "SquareSpectrum", "held_similarities", "mkl_path",
]  # fmt: skip


if not TYPE_CHECKING:  # a checker that sees this takes every name for one of ours

    def __getattr__(name: str) -> Any:
        # similarities are imported when somebody uses them
        if name in __all__ or name in ("Denoise", "Flip", "Shift", "Square"):  # names of earlier versions
            from .. import similarity

            return getattr(similarity, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = __all__.copy  # completion shows the public names alone
