"""Kernels of low rank in the place of exact ones: the Nystroem approximation."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self, overload

import numpy as np

from ._algebra import Stack, as_spec
from ._helpers import take
from ._kernel import Kernel, KernelSpec, Schema
from ._landmarks import SAMPLINGS, choose_landmarks
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


class _Ranked(KernelSpec):
    """A parameter ``rank`` that is kept as ``n_landmarks``: ``rank(n_columns)`` is a method of every kernel."""

    n_landmarks: int | None

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [name for name in super()._get_param_names() if name != "rank"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""
        return super().get_params(deep=deep) | {"rank": self.n_landmarks}

    def set_params(self, **params: Any) -> Self:
        """Set parameters."""
        if "rank" in params:
            self.n_landmarks = params.pop("rank")
        return super().set_params(**params) if params else self


class Nystroem(_Ranked, Explicit, registered_as="nystroem"):
    """The Nystroem approximation of a kernel; see :func:`nystroem`.

    Parameters
    ----------
    kernel : Kernel
    rank : int or None
    random_state : int, RandomState or None
    landmarks, root : settled by :meth:`resolve`
        The drawn samples, and the inverse square root of their kernel matrix.
    sampling : {"uniform", "leverage"}
    error : float or None
    """

    settled = ("landmarks", "root")

    def __init__(
        self,
        kernel: Kernel,
        rank: int | None = 100,
        random_state: Any = 0,
        landmarks: Any = None,
        root: np.ndarray | None = None,
        sampling: str = "uniform",
        error: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = rank
        self.random_state = random_state
        self.landmarks = landmarks
        self.root = root
        self.sampling = sampling
        self.error = error

    def _like(self, kernel: Kernel, landmarks: Any = None, root: np.ndarray | None = None) -> Nystroem:
        return Nystroem(
            kernel, self.n_landmarks, self.random_state, landmarks, root, self.sampling, self.error
        )

    @property
    def name(self) -> str:
        """The name of the kernel inside, and the rank or the error asked for."""
        size = f"rank={readable(self.n_landmarks)}" if self.error is None else f"error={readable(self.error)}"
        return f"nystroem({self.kernel.name}, {size})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Nystroem:
        """Draw the landmarks and settle the kernel inside."""
        if self.root is not None:
            return self
        kernel = self.kernel.resolve(A, shared)
        most = _checked_size(self.n_landmarks, self.sampling, self.error)
        drawn = choose_landmarks(kernel, A, most, self.sampling, self.error, generator(self.random_state))
        landmarks = take(A, drawn)
        values, vectors = np.linalg.eigh(kernel(landmarks))
        # directions at rounding level would only add noise
        kept = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        root = vectors[:, kept] / np.sqrt(values[kept])
        return self._like(kernel, landmarks, root)

    def features(self, A: Any) -> np.ndarray:
        """Return ``K(A, landmarks) W^(-1/2)``."""
        if self.root is None:
            raise self._unsettled()
        return self.kernel(A, self.landmarks) @ self.root

    def rank(self, n_columns: int) -> int:
        """Return the number of features; before they are drawn, the number asked for."""
        return int(self.n_landmarks or 1) if self.root is None else self.root.shape[1]

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the approximation of the kernel with its columns as positions."""
        (kernel,) = self.kernel.expand(schema)
        return [self._like(kernel, self.landmarks, self.root)]


class NystroemOf(_Ranked):
    """The approximations of kernels that are only known with the features."""

    def __init__(
        self,
        kernels: Any,
        rank: int | None = 100,
        random_state: Any = 0,
        sampling: str = "uniform",
        error: float | None = None,
    ) -> None:
        self.kernels = kernels
        self.n_landmarks = rank
        self.random_state = random_state
        self.sampling = sampling
        self.error = error

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return one approximation for each kernel."""
        kernels = as_spec(self.kernels).expand(schema)
        options: dict[str, Any] = {"sampling": self.sampling, "error": self.error}
        return [Nystroem(kernel, self.n_landmarks, self.random_state, **options) for kernel in kernels]


def generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that a ``random_state`` stands for."""
    from sklearn.utils import check_random_state

    return check_random_state(random_state)


def _checked_size(rank: Any, sampling: Any, error: Any) -> int | None:
    """Return the number of landmarks, None where the error alone decides."""
    if sampling not in SAMPLINGS:
        raise ValueError(f"sampling of nystroem must be 'uniform' or 'leverage', got {sampling!r}")
    if error is not None and not (checked_number(error, "the error of nystroem") < 1.0):
        raise ValueError(f"the error of nystroem is a share of the trace, below 1, got {error!r}")
    if rank is None:
        if error is None:
            raise ValueError("nystroem needs a rank, or an error to choose it by")
        return None
    return int(checked_number(rank, "the rank of nystroem", whole=True))


@overload
def nystroem(
    kernel: Kernel,
    rank: int | None = ...,
    random_state: Any = ...,
    *,
    sampling: str = ...,
    error: float | None = ...,
) -> Nystroem: ...
@overload
def nystroem(
    kernel: Any,
    rank: int | None = ...,
    random_state: Any = ...,
    *,
    sampling: str = ...,
    error: float | None = ...,
) -> KernelSpec: ...
def nystroem(
    kernel: Any,
    rank: int | None = None,
    random_state: Any = 0,
    *,
    sampling: str = "uniform",
    error: float | None = None,
) -> KernelSpec:
    """Return low-rank approximations of kernels through some of the training samples.

    Parameters
    ----------
    kernel : Kernel or Stack
    rank : int, optional
        The number of landmarks; as many as there are training samples make it exact on those.  100 by default; with an
        ``error`` the most that may be used, by default all samples.
    random_state : int, RandomState or None
    sampling : {"uniform", "leverage"}
        How landmarks are drawn: all samples alike, or by approximate ridge leverage scores, which finds the rare
        directions with fewer landmarks.
    error : float, optional
        The share of the trace that may be lost: as few landmarks are used as that takes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> X = np.linspace(0, 1, 50).reshape(-1, 1)
    >>> exact = kw.gaussian(1.0)
    >>> quick = kw.nystroem(exact, rank=10).resolve(X)
    >>> bool(abs(quick(X) - exact(X)).max() < 1e-6)
    True
    >>> kw.nystroem(exact, error=1e-3).resolve(X).rank(1) < 5
    True
    """
    if rank is None and error is None:
        rank = 100
    _checked_size(rank, sampling, error)
    spec = as_spec(kernel)
    kernels = spec._plain()
    if kernels is None:
        return NystroemOf(spec, rank, random_state, sampling, error)
    approximations = tuple(
        Nystroem(exact, rank, random_state, sampling=sampling, error=error) for exact in kernels
    )
    return approximations[0] if isinstance(spec, Kernel) else Stack(approximations)
