"""Kernels of low rank in the place of exact ones: the Nystroem approximation."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ._algebra import Stack, as_spec
from ._helpers import n_samples, take
from ._kernel import Kernel, KernelSpec, Schema
from ._numeric import checked_number, readable
from .columns import Wrapper

__all__ = ["Explicit", "Nystroem", "NystroemOf", "generator", "nystroem"]


class Explicit(Wrapper):
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


class Nystroem(Explicit, registered_as="nystroem"):
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
        drawn = np.sort(generator(self.random_state).permutation(n)[: min(most, n)])
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


def generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that a ``random_state`` stands for."""
    from sklearn.utils import check_random_state

    return check_random_state(random_state)


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
