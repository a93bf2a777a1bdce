"""Multiple kernel learning with a proof of how close to optimal a fit is.

>>> from kernelweave import MKLClassifier, kernels as kw
>>> bank = kw.gaussian(widths=[0.5, 1.0, 2.0]) + kw.linear()
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
        Denoise,
        Flip,
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
        NoisyLabelMKLClassifier,
        Shift,
        SimilarityClassifier,
        SimilarityFeatures,
        Square,
        held_similarities,
        mkl_path,
    )
    from .views import Views, ViewScaler

__version__ = "0.3.0"

__all__ = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "Denoise",
    "Flip",
    "KernelFeatures",
    "LPBetaClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
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
    "ViewScaler",
    "Views",
    "__version__",
    "banks",
    "crowd",
    "displays",
    "distributed",
    "estimators",
    "evidence",
    "exceptions",
    "held_similarities",
    "inspection",
    "kernels",
    "losses",
    "mkl_path",
    "norms",
    "omics",
    "persistence",
    "problems",
    "report",
    "similarity",
    "solvers",
    "views",
]


if not TYPE_CHECKING:  # a checker that sees this takes every name for one of ours

    def __getattr__(name: str) -> Any:
        # everything is imported on first use, so that `import kernelweave` costs nothing
        if name in __all__:
            if find_spec(f"kernelweave.{name}") is not None:
                return import_module(f"kernelweave.{name}")
            home = "views" if name in ("Views", "ViewScaler") else "estimators"
            return getattr(import_module(f"kernelweave.{home}"), name)
        raise AttributeError(f"module 'kernelweave' has no attribute {name!r}")


__dir__ = __all__.copy  # completion shows the public names alone
