"""Kernels of a distance: Gaussian and Laplacian."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, overload

import numpy as np
from scipy.sparse import issparse

from .._components import check_switch
from ._algebra import Stack
from ._distances import cityblock, sqeuclidean
from ._helpers import take
from ._kernel import LITTLE
from ._numeric import Number, Numbers, NumericKernel, checked_number, family_of, readable, subsample

__all__ = ["Gaussian", "Laplacian", "Lowered", "OfDistance", "gaussian", "laplacian"]


class OfDistance(NumericKernel):
    """What kernels of a distance share: a width, perhaps in units of the median training distance.

    Parameters
    ----------
    width : float
    relative : bool
        Whether the width counts median distances of the training samples.
    scale : float or None
        The median distance, once :meth:`resolve` has settled it; None before, and 1 unless ``relative``.
    """

    decay = True
    for_tables = True

    settled = ("scale",)

    def __init__(self, width: float = 1.0, relative: bool = False, scale: float | None = None) -> None:
        self.width = width
        self.relative = relative
        self.scale = scale

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """Whether the width is known in the units of the features."""
        return not self.relative or self.scale is not None

    @property
    def settled_width(self) -> float:
        """The width in the units of the features."""
        width = checked_number(self.width, f"the width of a {self.family} kernel")
        if not self.relative:
            return self._representable(width)
        if self.scale is None:
            raise ValueError(
                f"kernel {self.name!r} has a width relative to the training samples: settle it with "
                "kernel.resolve(X_train) first"
            )
        return self._representable(width * self.scale)

    def _representable(self, width: float) -> float:
        """Return a width whose square, and one over it, are numbers."""
        if not 1e-150 < width < 1e150:
            raise ValueError(
                f"kernel {self.name!r} has a width of {width:g}, whose square is not representable: scale the features "
                "(StandardScaler), or choose a width of their size"
            )
        return width

    @property
    def name(self) -> str:
        """Family and width, the latter as the user gave it."""
        return f"{self.family}(width={readable(self.width)}{' x median' if self.relative else ''})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> OfDistance:
        """Return the kernel with the median distance of (at most 1000 of) the samples filled in."""
        check_switch("relative", self.relative)
        if self.is_settled:
            return self
        shared = {} if shared is None else shared
        key = ("median", self._distance_key)
        if key not in shared:
            shared[key] = typical(self._distance(self._clean(take(A, subsample(A)))))
        return type(self)(**{**self.get_params(deep=False), "scale": shared[key]})

    def recentred(self, A: Any) -> OfDistance | Lowered:
        """Return the kernel less one where the samples are so near that it is hardly less than one anywhere."""
        if not self.decay:
            return self
        some = self._clean(take(A, subsample(A)))
        left = -np.mean(np.expm1(-self.exponent * self._base(some, some))) if some.shape[0] else 1.0
        return Lowered(self) if left < LITTLE else self

    @property
    def _distance_key(self) -> Hashable:
        """A key under which the median distance may be shared."""
        return self.base_key

    def _distance(self, A: Any) -> np.ndarray:
        return self._base(A, A)

    def _base_diag(self, A: Any) -> np.ndarray:
        return np.zeros(A.shape[0])


class Lowered(NumericKernel):
    """``exp(-exponent * base) - 1``: centred it is the kernel itself, but the one has not rounded the rest away.

    By itself it is not positive semidefinite.

    Parameters
    ----------
    kernel : OfDistance
        Settled.
    """

    is_settled = True

    def __init__(self, kernel: OfDistance) -> None:
        self.kernel = kernel

    @property
    def family(self) -> str:  # type: ignore[override]
        """The family of the kernel."""
        return self.kernel.family

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.kernel.name

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        """Whether the kernel takes sparse samples."""
        return self.kernel.accepts_sparse

    def _base(self, A: Any, B: Any) -> np.ndarray:
        base = self.kernel._base(A, B)
        base *= -self.kernel.exponent
        return np.expm1(base, out=base)

    def _base_diag(self, A: Any) -> np.ndarray:
        return np.zeros(A.shape[0])


class Gaussian(OfDistance, registered_as="gaussian"):
    """``exp(-|x - x'|^2 / (2 width^2))``; see :func:`gaussian`."""

    accepts_sparse = True
    quick = True

    @property
    def exponent(self) -> float:
        """``1 / (2 width^2)``."""
        return 0.5 / self.settled_width**2

    @property
    def base_key(self) -> Hashable:
        """All widths share the squared distances."""
        return "sqeuclidean", None

    def points(self, A: Any) -> np.ndarray | None:
        """Return the samples themselves, unless they are sparse."""
        return None if issparse(A) else self._clean(A)

    def _base(self, A: Any, B: Any) -> np.ndarray:
        return sqeuclidean(A, B)

    def _distance(self, A: Any) -> np.ndarray:
        return np.sqrt(sqeuclidean(A, A))


class Laplacian(OfDistance, registered_as="laplacian"):
    """``exp(-|x - x'|_1 / width)``; see :func:`laplacian`."""

    @property
    def exponent(self) -> float:
        """``1 / width``."""
        return 1.0 / self.settled_width

    @property
    def base_key(self) -> Hashable:
        """All widths share the distances."""
        return "cityblock", None

    def _base(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return cityblock(A, B)


def typical(distances: np.ndarray) -> float:
    """Return the median over pairs; if that is zero the mean of the others; if all are zero, 1."""
    pairs = distances[np.tri(len(distances), k=-1, dtype=bool)]
    if not np.isfinite(pairs).all():
        raise ValueError("distances between samples overflow: scale the features first (StandardScaler)")
    median = float(np.median(pairs)) if pairs.size else 0.0
    if median > 0:
        return median
    positive = pairs[pairs > 0]  # most samples coincide on this feature: a sparse count, a dummy variable
    return float(positive.mean()) if positive.size else 1.0


@overload
def gaussian(widths: Number = ..., relative: bool = ...) -> Gaussian: ...
@overload
def gaussian(widths: Numbers, relative: bool = ...) -> Stack: ...
def gaussian(widths: Number | Numbers = 1.0, relative: bool = False) -> Gaussian | Stack:
    """Return Gaussian kernels ``exp(-|x - x'|^2 / (2 width^2))``.

    Parameters
    ----------
    widths : float or sequence of float
        One width gives a kernel, a sequence a stack.  All widths share one matrix of distances.
    relative : bool
        Count the widths in median distances between training samples (of the columns in question, on at most
        1000 evenly spaced rows).  A zero median falls back to the mean of the non-zero distances, then to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> kw.gaussian(1.0)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    >>> kw.gaussian([0.5, 1, 2], relative=True)[0].name
    'gaussian(width=0.5 x median)'
    """

    check_switch("relative", relative)

    def make(width: float) -> Gaussian:
        checked_number(width, "the width of a gaussian kernel")
        return Gaussian(width, relative)

    return family_of(make, widths)


@overload
def laplacian(widths: Number = ..., relative: bool = ...) -> Laplacian: ...
@overload
def laplacian(widths: Numbers, relative: bool = ...) -> Stack: ...
def laplacian(widths: Number | Numbers = 1.0, relative: bool = False) -> Laplacian | Stack:
    """Return Laplacian kernels ``exp(-|x - x'|_1 / width)``; parameters as for :func:`gaussian`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> kw.laplacian(2.0)(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])).round(3)
    array([[0.368]])
    """

    check_switch("relative", relative)

    def make(width: float) -> Laplacian:
        checked_number(width, "the width of a laplacian kernel")
        return Laplacian(width, relative)

    return family_of(make, widths)
