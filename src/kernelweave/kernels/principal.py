"""Leading principal components: the linear kernel on what the columns have in common."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy import sparse

from .._numerics.namespace import as_like
from ._numeric import checked_number, readable
from .approximate import Explicit
from .dotproduct import Linear

__all__ = ["Principal", "principal"]


class Principal(Explicit, registered_as="principal"):
    """The linear kernel on the leading principal components; see :func:`principal`.

    Parameters
    ----------
    n_components : int
    kernel : Linear
    axes, middle : arrays, settled by :meth:`resolve`
        Directions of the components, ``(columns, components)``, and the mean of the training samples along them.
    """

    settled = ("axes", "middle")

    def __init__(
        self,
        n_components: int = 3,
        kernel: Linear | None = None,
        axes: np.ndarray | None = None,
        middle: np.ndarray | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = Linear() if kernel is None else kernel
        self.axes = axes
        self.middle = middle

    @property
    def name(self) -> str:
        """The number of components."""
        return f"principal({readable(self.n_components)})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Principal:
        """Find the leading components of the training samples."""
        if self.axes is not None:
            return self
        wanted = int(checked_number(self.n_components, "n_components of principal", whole=True))
        kernel = self.kernel.resolve(A, shared)
        samples = kernel._clean(A)
        mean = np.asarray(samples.mean(axis=0), dtype=float).ravel()
        axes = _leading(samples, mean, wanted)
        return Principal(self.n_components, kernel, axes, mean @ axes)

    def features(self, A: Any) -> np.ndarray:
        """Return the components of the samples."""
        if self.axes is None or self.middle is None:
            raise self._unsettled()
        A = self.kernel._clean(A)
        if A.shape[1] != len(self.axes):
            raise ValueError(
                f"kernel {self.name!r} was settled on {len(self.axes)} features, got {A.shape[1]}"
            )
        return np.asarray(A @ self.axes - self.middle)

    def portable_features(self, A: Any) -> Any:
        """Return the components of the samples."""
        return A @ as_like(self.axes, A) - as_like(self.middle, A)

    def rank(self, n_columns: int) -> int:
        """Return the number of components: at most that of the columns."""
        return min(int(self.n_components), n_columns) if self.axes is None else self.axes.shape[1]


def _leading(samples: Any, mean: np.ndarray, wanted: int) -> np.ndarray:
    """Directions of largest variance, the largest first; each points to where its largest entry is positive."""
    n, columns = samples.shape
    if columns <= n:
        gram = samples.T @ samples
        gram = np.asarray(gram.todense() if sparse.issparse(gram) else gram, dtype=float)
        axes = np.linalg.eigh(gram - n * np.outer(mean, mean))[1][:, ::-1]
    else:
        centred = np.asarray(samples.todense() if sparse.issparse(samples) else samples, dtype=float) - mean
        axes = np.linalg.svd(centred, full_matrices=False)[2].T
    axes = axes[:, :wanted]
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return np.ascontiguousarray(axes * np.where(largest < 0, -1.0, 1.0))


def principal(n_components: int = 3) -> Principal:
    """Return the linear kernel on the leading principal components of the columns.

    For groups of columns that move together, such as the genes of a pathway: what they have in common is kept, what
    each does by itself is left out, and a group has few features however many columns it has.

    Parameters
    ----------
    n_components : int, default=3
        Components of the training samples that are kept; all, where there are fewer columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(100, 1))
    >>> X = common + 0.1 * rng.normal(size=(100, 20))
    >>> score = kw.principal(1).resolve(X).features(X)
    >>> score.shape, bool(abs(np.corrcoef(score[:, 0], common[:, 0])[0, 1]) > 0.99)
    ((100, 1), True)
    """
    checked_number(n_components, "n_components of principal", whole=True)
    return Principal(n_components)
