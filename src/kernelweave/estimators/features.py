"""KernelFeatures: explicit features of kernels as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._components import ParametersInGroups, store_parameters
from .._estimating import restore_on_error
from ..banks import FeatureMatrix, Features, Normaliser
from ..banks.normalise import check_normalise
from ..kernels import resolve_kernels, stack_features
from ..kernels.approximate import Nystroem
from ._inputs import new_samples, training_inputs
from ._parameters import Column, KernelsLike, Samples
from ._plan import BankPlan


class KernelFeatures(ParametersInGroups, TransformerMixin, BaseEstimator):
    """Map samples to features whose inner products are the kernels, block by block.

    Linear, polynomial and random Fourier kernels have features of their own, exact ones; others are approximated
    through landmarks (Nystroem).  Linear kernels of sparse samples stay sparse.

    Parameters
    ----------
    kernels : kernels or None, default=None
        As for ``MKLClassifier``.
    rank : int or None, default=100
        Landmarks for every kernel without features; None with an ``error``.
    error : float or None, default=None
        Share of a kernel's trace that may be lost: as few landmarks (at most ``rank``) are used as that takes.
    sampling : {"uniform", "leverage"}, default="uniform"
        How landmarks are drawn.
    normalize : {"trace", None}, default="trace"
        Whether every kernel is scaled to a mean diagonal of one on the training samples.
    random_state : int, default=0

    Attributes
    ----------
    kernels_ : list of Kernel
        Settled, each with features.
    kernel_names_ : array of shape (m,)
    starts_ : array of shape (m + 1,)
        The features of kernel j are the columns ``starts_[j]`` to ``starts_[j + 1]``.
    scale_ : array of shape (m,)
        Factors of the kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import KernelFeatures, kernels as kw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> features = KernelFeatures(kw.gaussian(width=[2.0, 8.0]) + kw.linear(), rank=50)
    >>> model = make_pipeline(StandardScaler(), features, LogisticRegression(max_iter=1000)).fit(X, y)
    >>> model[1].starts_.tolist()
    [0, 50, 100, 130]
    """

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        rank: int | None = 100,
        error: float | None = None,
        sampling: str = "uniform",
        normalize: str | None = "trace",
        random_state: int = 0,
    ) -> None:
        store_parameters(self, locals())

    @restore_on_error
    def fit(self, X: Samples, y: Column = None) -> KernelFeatures:
        """Settle kernels, landmarks and factors on the training samples; y is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Samples, y: Column = None) -> Samples:
        """Return the features of the training samples."""
        if check_normalise(self.normalize) == "cosine":
            raise ValueError("normalize of KernelFeatures must be 'trace' or None, got 'cosine'")
        plan = BankPlan(self.normalize, False, "auto", "float64", None)
        training = training_inputs(self, X, plan)
        if training.kernels is None:
            raise ValueError("KernelFeatures needs kernels of samples, not precomputed matrices")
        options: dict[str, Any] = {"sampling": self.sampling, "error": self.error}
        kernels = [
            Nystroem(kernel, self.rank, self.random_state, **options)
            if kernel.rank(training.width) is None
            else kernel
            for kernel in training.kernels
        ]
        self.kernels_ = resolve_kernels(kernels, training.samples)
        features, self.starts_ = stack_features(self.kernels_, training.samples)
        self.kernel_names_ = np.array(training.names, dtype=object)
        self._kind = training.kind
        m = self.starts_.size - 1
        normaliser = Normaliser.empty(self.normalize, False, m, features.shape[0], [])
        squares = features.multiply(features) if sp.issparse(features) else features**2
        sums = np.append(np.asarray(squares.sum(axis=0), dtype=float).ravel(), 0.0)
        means = np.add.reduceat(sums, self.starts_[:-1]) * (np.diff(self.starts_) > 0) / features.shape[0]
        normaliser.learn_traces(np.arange(m), means)
        self.scale_ = normaliser.scale
        return self._scaled(features)

    def transform(self, X: Samples) -> Samples:
        """Return the features of samples, ``(n, R)``: dense, or CSR where every part is sparse."""
        check_is_fitted(self, "kernels_")
        features, _ = stack_features(self.kernels_, new_samples(self, X, self._kind))
        return self._scaled(features)

    def bank(self, X: Samples) -> Features:
        """Return the bank of these features on samples: what ``problems.MKLProblem`` takes."""
        return Features(FeatureMatrix(self.transform(X), self.starts_))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name of every column: its kernel, and a number within it."""
        check_is_fitted(self, "kernels_")
        ranks = np.diff(self.starts_)
        names = [
            f"{name}: {k}" for name, rank in zip(self.kernel_names_, ranks, strict=True) for k in range(rank)
        ]
        return np.array(names, dtype=object)

    def _scaled(self, features: Samples) -> Samples:
        factors = np.sqrt(np.repeat(self.scale_, np.diff(self.starts_)))
        if sp.issparse(features):
            return sp.csr_matrix(features.multiply(factors))
        return features * factors

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
