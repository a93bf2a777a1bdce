"""Random Fourier features: the Gaussian kernel at low rank."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, overload

import numpy as np

from .._components import check_switch
from .._numerics.namespace import as_like, namespace
from ._algebra import Stack
from ._numeric import Number, Numbers, checked_number, family_of, readable
from .approximate import Explicit, generator
from .stationary import Gaussian

__all__ = ["RandomFourier", "random_fourier"]

#: angles from which loading compiled code pays
MANY = 20_000


class RandomFourier(Explicit, registered_as="random_fourier"):
    """Random Fourier features of a Gaussian kernel; see :func:`random_fourier`.

    Parameters
    ----------
    kernel : Gaussian
    n_features : int
        Even: every frequency gives a cosine and a sine.
    random_state : int, RandomState or None
    frequencies : array, settled by :meth:`resolve`
    """

    settled = ("frequencies",)

    def __init__(
        self,
        kernel: Gaussian,
        n_features: int = 200,
        random_state: Any = 0,
        frequencies: np.ndarray | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.random_state = random_state
        self.frequencies = frequencies

    @property
    def name(self) -> str:
        """Width and number of features."""
        inside = self.kernel.name.removeprefix("gaussian(").removesuffix(")")
        return f"random_fourier({inside}, n_features={readable(self.n_features)})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> RandomFourier:
        """Draw the frequencies, whose number depends on the columns, and settle the width."""
        if self.frequencies is not None:
            return self
        kernel = self.kernel.resolve(A, shared)
        shape = kernel._clean(A).shape[1], _checked_even(self.n_features) // 2
        frequencies = generator(self.random_state).standard_normal(shape) / kernel.settled_width
        return RandomFourier(kernel, self.n_features, self.random_state, frequencies)

    def features(self, A: Any) -> np.ndarray:
        """Return cosines and sines of the projections, scaled so that every sample has length one."""
        if self.frequencies is None:
            raise self._unsettled()
        A = self.kernel._clean(A)
        if A.shape[1] != len(self.frequencies):
            raise ValueError(
                f"kernel {self.name!r} was settled on {len(self.frequencies)} features, got {A.shape[1]}"
            )
        return _waves(A @ self.frequencies)

    def portable_features(self, A: Any) -> Any:
        """Return cosines and sines of the projections."""
        angles = A @ as_like(self.frequencies, A)
        return namespace(A).concat([angles.cos(), angles.sin()], axis=1) / angles.shape[1] ** 0.5

    def rank(self, n_columns: int) -> int:
        """Return the number of features."""
        return int(self.n_features)


def _waves(angles: np.ndarray) -> np.ndarray:
    """Cosines and sines side by side, every row of length one; compiled where there are many."""
    scale = 1.0 / np.sqrt(angles.shape[1])
    # compiled ones are reduced accurately up to 1e6
    if angles.size < MANY or np.max(np.abs(angles)) > 1e6:
        return np.hstack([np.cos(angles), np.sin(angles)]) * scale
    from .._numerics.fourier import cos_sin

    out = np.empty((angles.shape[0], 2 * angles.shape[1]))
    cos_sin(angles, scale, out)
    return out


def _checked_even(n_features: Any) -> int:
    checked_number(n_features, "n_features of random_fourier", whole=True)
    if n_features % 2:
        raise ValueError(f"n_features of random_fourier must be even (cosine and sine), got {n_features}")
    return int(n_features)


@overload
def random_fourier(
    widths: Number = ..., n_features: int = ..., random_state: Any = ..., relative: bool = ...
) -> RandomFourier: ...
@overload
def random_fourier(
    widths: Numbers, n_features: int = ..., random_state: Any = ..., relative: bool = ...
) -> Stack: ...
def random_fourier(
    widths: Number | Numbers = 1.0, n_features: int = 200, random_state: Any = 0, relative: bool = False
) -> RandomFourier | Stack:
    """Return random Fourier approximations of Gaussian kernels; widths as in :func:`gaussian`.

    Parameters
    ----------
    widths : float or sequence of float
    n_features : int
        Even; the error of an entry falls like ``1 / sqrt(n_features)``.
    random_state : int, RandomState or None
    relative : bool
        Count the widths in median distances between training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> kernel = kw.random_fourier(2.0, n_features=1000).resolve(X)
    >>> bool(abs(kernel(X) - kw.gaussian(2.0)(X)).max() < 0.2)
    True
    """
    _checked_even(n_features)
    check_switch("relative", relative)

    def make(width: float) -> RandomFourier:
        checked_number(width, "the width of a random_fourier kernel")
        return RandomFourier(Gaussian(width, relative), n_features, random_state)

    return family_of(make, widths)
