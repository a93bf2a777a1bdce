"""Similarities that are no kernels: learning kernels from them, classifying by them, measuring how indefinite they are.

It is above the solvers and below the estimators, which show its estimators beside their own.  Its losses, problems and
solvers are of its own kind and have registries of their own; the loop, the SVM and the hinge are shared.
"""

from .classifier import SimilarityClassifier
from .diagnosis import Agreement, Indefiniteness, agreement, indefiniteness
from .inputs import held_similarities
from .losses import SimilarityLoss, UserLoss, make_similarity_loss, similarity_losses
from .problems import (
    DualPoint,
    IndefiniteSVMProblem,
    RestrictedKernelsProblem,
    SeparateKernelsProblem,
    SimilarityCertificate,
    SimilarityPoint,
    SimilarityProblem,
    SingleKernelProblem,
)
from .solvers import SimilaritySolver, similarity_solvers
from .transformers import DenoiseSpectrum, FlipSpectrum, ShiftSpectrum, SimilarityFeatures, SquareSpectrum

#: their names in earlier versions
Denoise, Flip, Shift, Square = DenoiseSpectrum, FlipSpectrum, ShiftSpectrum, SquareSpectrum

__all__ = [
    "Agreement", "DenoiseSpectrum", "DualPoint", "FlipSpectrum", "IndefiniteSVMProblem", "Indefiniteness",
    "RestrictedKernelsProblem", "SeparateKernelsProblem", "ShiftSpectrum", "SimilarityCertificate",
    "SimilarityClassifier", "SimilarityFeatures", "SimilarityLoss", "SimilarityPoint", "SimilarityProblem",
    "SimilaritySolver", "SingleKernelProblem", "SquareSpectrum", "UserLoss", "agreement", "held_similarities",
    "indefiniteness", "make_similarity_loss", "similarity_losses", "similarity_solvers",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
