"""Input of ``SimilarityClassifier`` as matrices: given, computed from objects, or held; checked and made comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ..exceptions import KernelWeaveWarning, warn_at_caller
from ..kernels import Kernel
from ..kernels.functions import evaluate_pairs, name_of
from ..kernels.holder import Held, as_indices

#: relative asymmetry below which the two halves are the same up to rounding
ROUNDING = 1e-6


def asymmetry(matrix: np.ndarray) -> float:
    """``|S - S'|_F / |S + S'|_F``: 0 for a symmetric matrix, 1 where the halves share nothing on average.

    >>> asymmetry(np.array([[1.0, 2.0], [0.0, 1.0]])).__round__(3)
    0.707
    """
    size = float(np.linalg.norm(matrix + matrix.T))
    return float(np.linalg.norm(matrix - matrix.T)) / max(size, np.finfo(float).tiny)


def as_similarities(X: Any, what: str = "similarities") -> np.ndarray:
    """Return one matrix, a list of them or an array of three dimensions as ``(m, rows, columns)``.

    >>> as_similarities(np.eye(3)).shape
    (1, 3, 3)
    """
    try:
        stack = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        shapes = [np.shape(matrix) for matrix in X] if isinstance(X, Sequence) else "no array"
        raise ValueError(f"{what} must be matrices of numbers and of one shape, got {shapes}") from error
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3 or stack.size == 0:
        raise ValueError(f"{what} must be one matrix, a list of matrices or (m, rows, n), got {np.shape(X)}")
    if not np.isfinite(stack).all():
        worst = int(np.argmax(~np.isfinite(stack).all(axis=(1, 2))))
        raise ValueError(f"{what}: matrix {worst} contains NaN or infinity")
    return stack


def symmetrised(stack: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return ``(S + S') / 2`` of square matrices, with a warning where that changes more than rounding."""
    if stack.shape[1] != stack.shape[2]:
        raise ValueError(
            f"similarities of the training samples must be square, (n, n) or (m, n, n), got {stack.shape[-2:]}"
        )
    for name, S in zip(names, stack, strict=True):
        if (skew := asymmetry(S)) > ROUNDING:
            warn_at_caller(
                f"{name} is not symmetric: |S - S'| is {100 * skew:.2g} % of |S + S'|. (S + S') / 2 is used",
                KernelWeaveWarning,
            )
    return 0.5 * (stack + stack.transpose(0, 2, 1))


def positive_scale(values: np.ndarray, name: str) -> float:
    """``n / tr(S_+)`` from the eigenvalues: the factor that gives the positive part a mean diagonal of one."""
    positive = float(np.sum(values[values > 0]))
    size = float(np.max(np.abs(values)))
    if size == 0.0:
        raise ValueError(f"{name} is zero: it says nothing about any sample")
    if positive <= 1e-12 * size * values.size:
        raise ValueError(
            f"{name} has no positive eigenvalue (largest {values.max():.3g}): it looks like a dissimilarity; pass "
            "its negative, or exp(-distance)"
        )
    return values.size / positive


def similarity_names(names: Sequence[str] | None, m: int) -> list[str]:
    """Return the given names of m similarities, or numbers where there are none."""
    labels = [f"similarity {j}" for j in range(m)] if names is None else list(map(str, names))
    if len(labels) != m:
        raise ValueError(f"{m} similarities but {len(labels)} names")
    return labels


def held_similarities(stack: Any, names: Sequence[str] | None = None) -> Held:
    """Hold similarity matrices that ``clone`` does not copy; X is then the indices of the samples.

    What ``kernels.held`` is for kernels, without asking that the matrices be positive semi-definite.

    Parameters
    ----------
    stack : array of shape (n, n) or (m, n, n), or a list of (n, n)
    names : sequence of m str, optional

    Examples
    --------
    >>> import numpy as np
    >>> held_similarities(np.array([[0.0, 1.0], [1.0, 0.0]]))
    held(1 kernels of 2 samples)
    """
    matrices = as_similarities(stack)
    labels = similarity_names(names, len(matrices))
    return Held(symmetrised(matrices, labels), labels)


class Source:
    """Similarities given as matrices: X is them."""

    def train(self, estimator: Any, X: Any) -> tuple[np.ndarray, list[str]]:
        """Return the stack of the training samples and the names."""
        if _is_one_matrix(X):
            X = validate_data(estimator, X, dtype=np.float64, ensure_min_samples=2)
        else:
            for name in ("n_features_in_", "feature_names_in_"):
                vars(estimator).pop(name, None)
        stack = as_similarities(X)
        self.shape = stack.shape
        names = similarity_names(None, len(stack))
        return symmetrised(stack, names), names

    def rows(self, estimator: Any, X: Any) -> np.ndarray:
        """Return the similarities of new samples to the training samples, ``(m, n_new, n)``."""
        if _is_one_matrix(X) and self.shape[0] == 1:
            X = validate_data(estimator, X, dtype=np.float64, reset=False)
        stack = as_similarities(X, "rows of new samples")
        m, _, n = self.shape
        if stack.shape[0] != m or stack.shape[2] != n:
            raise ValueError(
                f"rows of new samples must have shape ({m}, n_new, {n}): one matrix per similarity, one column per "
                f"training sample; got {stack.shape}"
            )
        return stack


@dataclass(eq=False)
class HeldSource(Source):
    """Similarities in a holder: X is indices of samples."""

    holder: Held

    def train(self, estimator: Any, X: Any) -> tuple[np.ndarray, list[str]]:
        self.samples = as_indices(X, self.holder.n_samples, "the holder of similarities")
        names = similarity_names(self.holder.names or None, len(self.holder))
        if np.ndim(X) == 2:
            estimator.n_features_in_ = 1
        return self.rows(estimator, X), names

    def rows(self, estimator: Any, X: Any) -> np.ndarray:
        where = np.ix_(as_indices(X, self.holder.n_samples, "the holder of similarities"), self.samples)
        return np.stack([np.asarray(matrix[where], dtype=float) for matrix in self.holder.stack])


@dataclass(eq=False)
class FunctionSource(Source):
    """Similarities computed by functions of two samples: X is samples of any kind."""

    functions: list[Any]

    def train(self, estimator: Any, X: Any) -> tuple[np.ndarray, list[str]]:
        self.samples = X
        names = [f.name if isinstance(f, Kernel) else name_of(f) for f in self.functions]
        return self.rows(estimator, X), names

    def rows(self, estimator: Any, X: Any) -> np.ndarray:
        matrices = [
            np.asarray(f(X, self.samples), dtype=float)
            if isinstance(f, Kernel)
            else evaluate_pairs(f, X, self.samples, f"similarity {name_of(f)!r}")
            for f in self.functions
        ]
        return np.stack(matrices)


def _is_one_matrix(X: Any) -> bool:
    """Whether X is a single matrix (or no matrix at all, which scikit-learn's messages are for)."""
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
        return False
    return getattr(X, "ndim", 2) != 3


def source_of(similarity: Any) -> Source:
    """Return where the similarities come from."""
    if isinstance(similarity, str):
        if similarity == "precomputed":
            return Source()
    elif isinstance(similarity, Held):
        return HeldSource(similarity)
    elif callable(similarity):
        return FunctionSource([similarity])
    elif isinstance(similarity, list | tuple) and similarity and all(map(callable, similarity)):
        return FunctionSource(list(similarity))
    raise ValueError(
        "similarity must be 'precomputed', a function of two samples, a list of functions or "
        f"held_similarities(...), got {similarity!r}"
    )


@dataclass
class Normalised:
    """Similarities of comparable size, ``S_i n / tr((S_i)_+)``; the factors, learnt on the training block alone."""

    stack: np.ndarray
    factors: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


def normalised(stack: np.ndarray, names: Sequence[str], scale: bool = True) -> Normalised:
    """Decompose every similarity, and scale it unless ``scale`` is false."""
    spectra = [np.linalg.eigh(S) for S in stack]
    values, vectors = (np.stack(parts) for parts in zip(*spectra, strict=True))
    factors = np.array([positive_scale(own, name) for own, name in zip(values, names, strict=True)])
    if not scale:
        factors = np.ones_like(factors)
    return Normalised(factors[:, None, None] * stack, factors, factors[:, None] * values, vectors)
