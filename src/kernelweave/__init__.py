"""Multiple kernel learning with a proof of how close to optimal a fit is.

>>> from kernelweave import MKLClassifier, kernels as kw
>>> bank = kw.gaussian(width=[0.5, 1.0, 2.0]) + kw.linear()
>>> MKLClassifier(bank, norm="l1", C=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5], [2.5]])
array([0, 1])
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors, which do not run ``__getattr__``
    from . import (
        banks,
        crowd,
        displays,
        distributed,
        estimators,
        evidence,
        exceptions,
        inspection,
        kernels,
        losses,
        metrics,
        norms,
        omics,
        persistence,
        problems,
        report,
        similarity,
        solvers,
        views,
    )
    from .estimators import (
        AlignmentClassifier,
        BestKernelClassifier,
        DenoiseSpectrum,
        FlipSpectrum,
        KernelFeatures,
        LPBetaClassifier,
        MeanKernelClassifier,
        MeanKernelRidgeClassifier,
        MeanKernelRidgeRegressor,
        MKLClassifier,
        MKLClassifierCV,
        MKLOneClass,
        MKLRegressor,
        MKLRegressorCV,
        MKLSurvival,
        MKLSurvivalCV,
        NoisyLabelMKLClassifier,
        ShiftSpectrum,
        SimilarityClassifier,
        SimilarityFeatures,
        SquareSpectrum,
        held_similarities,
        mkl_path,
    )
    from .metrics import survival
    from .views import PairKFold, Pairs, Views, ViewScaler

__version__ = "0.3.0"

__all__ = [
    "AlignmentClassifier", "BestKernelClassifier", "DenoiseSpectrum", "FlipSpectrum", "KernelFeatures",
    "LPBetaClassifier", "MKLClassifier", "MKLClassifierCV", "MKLOneClass", "MKLRegressor", "MKLRegressorCV",
    "MKLSurvival", "MKLSurvivalCV", "MeanKernelClassifier", "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor", "NoisyLabelMKLClassifier", "PairKFold", "Pairs", "ShiftSpectrum",
    "SimilarityClassifier", "SimilarityFeatures", "SquareSpectrum", "ViewScaler", "Views", "__version__",
    "banks", "crowd", "displays", "distributed", "estimators", "evidence", "exceptions", "held_similarities",
    "inspection", "kernels", "losses", "metrics", "mkl_path", "norms", "omics", "persistence", "problems",
    "report", "similarity", "solvers", "survival", "views",
]  # fmt: skip


if not TYPE_CHECKING:  # a checker that sees this takes every name for one of ours

    def __getattr__(name: str) -> Any:
        # everything is imported on first use, so that `import kernelweave` costs nothing
        if name in __all__:
            if find_spec(f"kernelweave.{name}") is not None:
                return import_module(f"kernelweave.{name}")
            of_views = dict.fromkeys(("PairKFold", "Pairs", "Views", "ViewScaler"), "views")
            home = (of_views | {"survival": "metrics"}).get(name, "estimators")
            return getattr(import_module(f"kernelweave.{home}"), name)
        if name in ("Denoise", "Flip", "Shift", "Square"):  # names of earlier versions
            return getattr(import_module("kernelweave.similarity"), name)
        raise AttributeError(f"module 'kernelweave' has no attribute {name!r}")


__dir__ = __all__.copy  # completion shows the public names alone
