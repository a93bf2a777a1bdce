"""Similarities made kernels, as scikit-learn transformers: before ``SVC(kernel="precomputed")`` in a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._components import check_choice, check_switch
from .._estimating import restore_on_error
from .._numerics.matrices import EIGENVALUES
from .inputs import positive_scale, symmetrised

#: what the classical rule multiplies the row's coordinates on the eigenvectors with
ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "denoise": lambda values: (values > 0).astype(float),
    "flip": np.sign,
    "shift": np.ones_like,
    "square": lambda values: values,
}


# A new row of similarities becomes a row of the learned kernel from that row and the training block alone.  ``smooth``:
# ``k(x) = K (K + nu I)^-1 s(x)``, ``nu = tr(K) / n``, which minimises ``|k - s|^2 + nu k'K^+ k``: a row near the
# similarities that a positive semi-definite bordered matrix could have.  ``classical``: what the literature does with a
# spectrum, ``V_+ V_+' s`` where negative eigenvalues are dropped, ``V sign(L) V' s`` where they are flipped, ``s``
# where all are raised.  Either is linear in the row, so a decision is ``s(x)' w + b`` and w is all that is kept.


def classical(values: np.ndarray, vectors: np.ndarray, kind: str, beta: np.ndarray) -> np.ndarray:
    """Return w with ``s'w = k(x)'beta``."""
    factors = ROWS[kind](values)
    coordinates = vectors.T @ beta
    return vectors @ (factors.reshape(-1, *[1] * (beta.ndim - 1)) * coordinates)


def smooth(kernel: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return ``w = (K + nu I)^-1 K beta``."""
    from scipy.linalg import cho_factor, cho_solve

    n = kernel.shape[0]
    nu = float(np.trace(kernel)) / n
    lifted = kernel + nu * np.eye(n)
    return cho_solve(cho_factor(lifted, lower=True, check_finite=False), kernel @ beta, check_finite=False)


class _Pairwise(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer of similarities to the training samples."""

    normalize: bool

    def _decomposed(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Set ``scale_``; return eigenvalues, scaled, and eigenvectors."""
        check_switch("normalize", self.normalize)
        X = validate_data(self, X, dtype=np.float64)
        values, vectors = np.linalg.eigh(symmetrised(X[None], ["the similarity"])[0])
        scale = positive_scale(values, "the similarity")  # which refuses spectra without a positive part
        self.scale_ = scale if self.normalize else 1.0
        return self.scale_ * values, vectors

    def transform(self, X: Any) -> np.ndarray:
        """Return scaled rows of similarities, ``(n_new, n)``."""
        check_is_fitted(self, "scale_")
        return self.scale_ * validate_data(self, X, dtype=np.float64, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


class _Spectrum(_Pairwise):
    """A similarity with new eigenvalues.

    ``fit_transform(S)`` is the kernel of the training samples; ``transform(rows)`` turns rows of similarities to them
    into rows of the kernel, each from itself and the training block alone.

    Parameters
    ----------
    rule : {"smooth", "classical"}, default="smooth"
        ``smooth``: ``K (K + nu I)^-1 s``, ``nu = tr(K) / n``.  ``classical``: what the change of the eigenvalues means
        for a row, where it means something.
    normalize : bool, default=True
        Scale by ``n / tr(S_+)``, learnt on the training block.

    Attributes
    ----------
    kernel_ : array of shape (n, n)
    eigenvalues_ : array of shape (n,)
        Of the similarity, scaled.
    scale_ : float
    """

    kind: ClassVar[str] = ""

    def __init__(self, rule: str = "smooth", normalize: bool = True) -> None:
        self.rule = rule
        self.normalize = normalize

    @restore_on_error
    def fit(self, X: Any, y: Any = None) -> _Spectrum:
        """Learn from an ``(n, n)`` similarity; y is not used."""
        check_choice("rule", self.rule, ("smooth", "classical"))
        values, vectors = self._decomposed(X)
        self.eigenvalues_ = values
        self.kernel_ = (vectors * EIGENVALUES[self.kind](values)) @ vectors.T
        eye, smoothed = np.eye(values.size), self.rule == "smooth"
        self._rows = smooth(self.kernel_, eye) if smoothed else classical(values, vectors, self.kind, eye)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Return the kernel of the training samples."""
        return self.fit(X, y).kernel_

    def transform(self, X: Any) -> np.ndarray:
        """Return rows of the kernel from rows of similarities, ``(n_new, n)``."""
        return super().transform(X) @ self._rows


class DenoiseSpectrum(_Spectrum):
    """Negative eigenvalues become zero: the nearest kernel; see ``rule`` for rows of new samples.

    Parameters
    ----------
    rule : {"smooth", "classical"}, default="smooth"
        ``classical`` is ``V_+ V_+' s``.
    normalize : bool, default=True

    Examples
    --------
    >>> import numpy as np
    >>> DenoiseSpectrum(normalize=False).fit_transform(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    kind = "denoise"


class FlipSpectrum(_Spectrum):
    """Negative eigenvalues change sign; ``classical`` is ``V sign(L) V' s``.

    >>> FlipSpectrum(normalize=False).fit_transform(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[1., 0.],
           [0., 1.]])
    """

    kind = "flip"


class ShiftSpectrum(_Spectrum):
    """All eigenvalues are raised until none is negative: only the diagonal changes, and ``classical`` is ``s`` itself.

    >>> ShiftSpectrum(normalize=False).fit_transform(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[1., 1.],
           [1., 1.]])
    """

    kind = "shift"


class SquareSpectrum(_Spectrum):
    """Eigenvalues are squared, ``S S``: a linear kernel on similarities as features; ``classical`` is ``S s``.

    >>> SquareSpectrum(normalize=False).fit_transform(np.array([[0.0, 2.0], [2.0, 0.0]])).round(3)
    array([[4., 0.],
           [0., 4.]])
    """

    kind = "square"


#: their names in earlier versions
Denoise, Flip, Shift, Square = DenoiseSpectrum, FlipSpectrum, ShiftSpectrum, SquareSpectrum


class SimilarityFeatures(_Pairwise):
    """Similarities to the training samples as features, scaled, for linear models and anything else.

    Parameters
    ----------
    normalize : bool, default=True
        Scale by ``n / tr(S_+)``, learnt on the training block.

    Examples
    --------
    >>> import numpy as np
    >>> SimilarityFeatures().fit_transform(np.array([[2.0, 0.0], [0.0, 2.0]]))
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, normalize: bool = True) -> None:
        self.normalize = normalize

    @restore_on_error
    def fit(self, X: Any, y: Any = None) -> SimilarityFeatures:
        """Learn the scale from an ``(n, n)`` similarity."""
        self._decomposed(X)
        return self
