"""Kernels of low rank in the place of exact ones: Nystroem and random Fourier features."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ._algebra import Stack, as_spec
from ._helpers import n_samples, take
from ._kernel import Kernel, KernelSpec, Schema
from ._numeric import checked_number, family_of, readable
from .columns import Wrapper
from .stationary import Gaussian

__all__ = ["Nystroem", "NystroemOf", "RandomFourier", "nystroem", "random_fourier"]


class _Explicit(Wrapper):
    """A kernel defined by its features: ``K = Z Z'``."""

    decay = False
    exponent = 1.0

    @property
    def family(self) -> str:  # type: ignore[override]
        """The approximation's own family."""
        return str(self.registered_as)

    @property
    def _picks_columns(self) -> bool:
        return self.kernel._picks_columns

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the inner products of the features."""
        left = self.features(A)
        return left @ (left if A is B else self.features(B)).T

    def base_diag(self, A: Any) -> np.ndarray:
        """Return the squared lengths of the features."""
        Z = self.features(A)
        return np.einsum("ij,ij->i", Z, Z)

    def _unsettled(self) -> ValueError:
        return ValueError(
            f"kernel {self.name!r} draws from the training samples: settle it with "
            "kernel.resolve(X_train) first"
        )


class Nystroem(_Explicit, registered_as="nystroem"):
    """The Nystroem approximation of a kernel; see :func:`nystroem`.

    Parameters
    ----------
    kernel : Kernel
    n_landmarks : int
    random_state : int, RandomState or None
    landmarks, root : settled by :meth:`resolve`
        The drawn samples, and the inverse square root of their kernel matrix.
    """

    def __init__(
        self,
        kernel: Kernel,
        n_landmarks: int = 100,
        random_state: Any = 0,
        landmarks: Any = None,
        root: np.ndarray | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.landmarks = landmarks
        self.root = root

    @property
    def name(self) -> str:
        """The name of the kernel inside, and the rank asked for."""
        return f"nystroem({self.kernel.name}, rank={readable(self.n_landmarks)})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Nystroem:
        """Draw the landmarks and settle the kernel inside."""
        if self.root is not None:
            return self
        kernel = self.kernel.resolve(A, shared)
        n = n_samples(A)
        most = int(checked_number(self.n_landmarks, "the rank of nystroem", whole=True))
        drawn = np.sort(_generator(self.random_state).permutation(n)[: min(most, n)])
        landmarks = take(A, drawn)
        values, vectors = np.linalg.eigh(kernel(landmarks))
        # directions at rounding level would only add noise
        kept = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        root = vectors[:, kept] / np.sqrt(values[kept])
        return Nystroem(kernel, self.n_landmarks, self.random_state, landmarks, root)

    def features(self, A: Any) -> np.ndarray:
        """Return ``K(A, landmarks) W^(-1/2)``."""
        if self.root is None:
            raise self._unsettled()
        return self.kernel(A, self.landmarks) @ self.root

    def rank(self, n_columns: int) -> int:
        """Return the number of features; before they are drawn, the number asked for."""
        return int(self.n_landmarks) if self.root is None else self.root.shape[1]

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the approximation of the kernel with its columns as positions."""
        (kernel,) = self.kernel.expand(schema)
        return [Nystroem(kernel, self.n_landmarks, self.random_state, self.landmarks, self.root)]


class NystroemOf(KernelSpec):
    """The approximations of kernels that are only known with the features."""

    def __init__(self, kernels: Any, n_landmarks: int = 100, random_state: Any = 0) -> None:
        self.kernels = kernels
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return one approximation for each kernel."""
        kernels = as_spec(self.kernels).expand(schema)
        return [Nystroem(kernel, self.n_landmarks, self.random_state) for kernel in kernels]


class RandomFourier(_Explicit, registered_as="random_fourier"):
    """Random Fourier features of a Gaussian kernel; see :func:`random_fourier`.

    Parameters
    ----------
    kernel : Gaussian
    n_features : int
        Even: every frequency gives a cosine and a sine.
    random_state : int, RandomState or None
    frequencies : array, settled by :meth:`resolve`
    """

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
        frequencies = _generator(self.random_state).standard_normal(shape) / kernel.settled_width
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
        angles = A @ self.frequencies
        return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(angles.shape[1])

    def rank(self, n_columns: int) -> int:
        """Return the number of features."""
        return int(self.n_features)


def _generator(random_state: Any) -> np.random.RandomState:
    from sklearn.utils import check_random_state

    return check_random_state(random_state)


def _checked_even(n_features: Any) -> int:
    checked_number(n_features, "n_features of random_fourier", whole=True)
    if n_features % 2:
        raise ValueError(f"n_features of random_fourier must be even (cosine and sine), got {n_features}")
    return int(n_features)


def nystroem(kernel: Any, rank: int = 100, random_state: Any = 0) -> Any:
    """Return low-rank approximations of kernels through some of the training samples.

    Parameters
    ----------
    kernel : Kernel or Stack
    rank : int
        The number of landmarks; as many as there are training samples make it exact on those.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> X = np.linspace(0, 1, 50).reshape(-1, 1)
    >>> exact = kw.gaussian(1.0)
    >>> quick = kw.nystroem(exact, rank=10).resolve(X)
    >>> bool(abs(quick(X) - exact(X)).max() < 1e-6)
    True
    """
    checked_number(rank, "the rank of nystroem", whole=True)
    spec = as_spec(kernel)
    kernels = spec._plain()
    if kernels is None:
        return NystroemOf(spec, rank, random_state)
    approximations = tuple(Nystroem(one, rank, random_state) for one in kernels)
    return approximations[0] if isinstance(spec, Kernel) else Stack(approximations)


def random_fourier(
    widths: Any = 1.0, n_features: int = 200, random_state: Any = 0, relative: bool = False
) -> Any:
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

    def make(width: float) -> RandomFourier:
        checked_number(width, "the width of a random_fourier kernel")
        return RandomFourier(Gaussian(width, relative), n_features, random_state)

    return family_of(make, widths)
