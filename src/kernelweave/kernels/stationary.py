"""Kernels of a distance: Gaussian, Laplacian, Matern, rational quadratic and periodic."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, ClassVar, overload

import numpy as np
from scipy.sparse import issparse

from .._components import check_switch
from ._algebra import Stack
from ._kernel import LITTLE, readable, several, subsample
from ._numeric import (
    Number,
    Numbers,
    NumericKernel,
    accepts,
    checked_number,
    cityblock,
    euclidean,
    family_of,
    sqeuclidean,
)


@dataclass(eq=False, repr=False)
class OfDistance(NumericKernel):
    """Base of kernels of a distance: a width, counted in median distances of the training samples where ``relative``.

    ``scale`` is the median distance, once ``resolve`` has settled it.
    """

    width: Any = 1.0
    relative: Any = False
    scale: float | None = None

    decay = True
    for_tables = True
    settles_on_some = True
    settled = ("scale",)
    _varied = "width"
    _diagonal = 0.0
    #: key under which the median distance is shared
    _distance_key: ClassVar[Hashable] = ("sqeuclidean", None)
    _distance = staticmethod(euclidean)

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        return not self.relative or self.scale is not None

    @property
    def settled_width(self) -> float:
        """The width in the units of the features, a number whose square and one over it are numbers."""
        width = checked_number(self.width, f"the width of a {self.family} kernel")
        if self.relative:
            if self.scale is None:
                raise ValueError(
                    f"kernel {self.name!r} has a width relative to the training samples: settle it with "
                    "kernel.resolve(X_train) first"
                )
            width *= self.scale
        if not 1e-150 < width < 1e150:
            raise ValueError(
                f"kernel {self.name!r} has a width of {width:g}, whose square is not representable: scale the features "
                "(StandardScaler), or choose a width of their size"
            )
        return width

    @property
    def name(self) -> str:
        width = readable(self.width) + (" x median" if self.relative else "")
        others = "".join(f", {name}={readable(getattr(self, name))}" for name in self._shown)
        return f"{self.family}(width={width}{others})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> OfDistance:
        """Return the kernel with the median distance of (at most 1000 of) the samples filled in."""
        check_switch("relative", self.relative)
        if self.is_settled:
            return self
        shared = {} if shared is None else shared
        key = ("median", self._distance_key)
        if key not in shared:
            rows = self._clean(subsample(A))
            shared[key] = typical(self._distance(rows, rows))
        return self._with(scale=shared[key])

    def recentred(self, A: Any) -> OfDistance | Lowered:
        """Return the kernel less one where the samples are so near that it is hardly less than one anywhere."""
        if not self.decay:
            return self
        some = self._clean(subsample(A))
        left = -np.mean(np.expm1(-self.exponent * self._base(some, some))) if some.shape[0] else 1.0
        return Lowered(self) if left < LITTLE else self


@dataclass(eq=False, repr=False)
class Lowered(NumericKernel, passes_on="family name accepts_sparse"):
    """``exp(-exponent * base) - 1``: centred it is the kernel itself, but the one has not rounded the rest away."""

    kernel: OfDistance

    is_settled = True
    _diagonal = 0.0

    def _base(self, A: Any, B: Any) -> np.ndarray:
        base = self.kernel._base(A, B)
        base *= -self.kernel.exponent
        return np.expm1(base, out=base)


class Gaussian(OfDistance, registered_as="gaussian"):
    """``exp(-|x - x'|^2 / (2 width^2))``; see :func:`gaussian`."""

    accepts_sparse = True
    quick = True
    base_key = ("sqeuclidean", None)  # of all widths
    _base = staticmethod(sqeuclidean)

    @property
    def exponent(self) -> float:
        return 0.5 / self.settled_width**2

    def points(self, A: Any) -> np.ndarray | None:
        return None if issparse(A) else self._clean(A)


class Laplacian(OfDistance, registered_as="laplacian"):
    """``exp(-|x - x'|_1 / width)``; see :func:`laplacian`."""

    base_key = _distance_key = ("cityblock", None)  # of all widths
    _base = _distance = staticmethod(cityblock)

    @property
    def exponent(self) -> float:
        return 1.0 / self.settled_width


def typical(distances: np.ndarray) -> float:
    """Return the median over pairs; if that is zero the mean of the others; if all are zero, 1."""
    pairs = distances[np.tri(len(distances), k=-1, dtype=bool)]
    if not np.isfinite(pairs).all():
        raise ValueError("distances between samples overflow: scale the features first (StandardScaler)")
    median, middle = 0.0, pairs.size // 2
    if pairs.size:  # np.median would look for two places and for what is not finite
        pairs.partition(middle)
        other = pairs[middle] if pairs.size % 2 else pairs[:middle].max()
        median = 0.5 * float(pairs[middle] + other)
    if median > 0:
        return median
    positive = pairs[pairs > 0]  # most samples coincide on this feature: a sparse count, a dummy variable
    return float(positive.mean()) if positive.size else 1.0


def _widths(
    width: Any, relative: bool, gamma: Any, family: str, of_gamma: Callable[[float], float]
) -> Number | Numbers:
    """Return the widths, from gamma where that is given."""
    check_switch("relative", relative)
    if gamma is None:
        return width  # type: ignore[no-any-return]
    if relative or not (isinstance(width, float) and width == 1.0):
        raise ValueError(
            f"{family} takes a width or a gamma, and a gamma is in the units of the features: leave width and "
            "relative away, or gamma"
        )
    if isinstance(gamma, str):
        raise ValueError(f"gamma of a {family} kernel is a number, got {gamma!r}; see relative=True")
    every = [
        of_gamma(checked_number(one, f"gamma of a {family} kernel"))
        for one in (gamma if several(gamma) else (gamma,))
    ]
    return every if several(gamma) else every[0]


@overload
def gaussian(width: Number = ..., relative: bool = ..., *, gamma: Number | None = ...) -> Gaussian: ...
@overload
def gaussian(width: Numbers, relative: bool = ...) -> Stack: ...
@overload
def gaussian(*, gamma: Numbers) -> Stack: ...
@accepts(widths="width")
def gaussian(
    width: Number | Numbers = 1.0, relative: bool = False, *, gamma: Number | Numbers | None = None
) -> Gaussian | Stack:
    """Return Gaussian kernels ``exp(-|x - x'|^2 / (2 width^2))``.

    Parameters
    ----------
    width : float or sequence of float
        One width gives a kernel, a sequence a stack.  All widths share one matrix of distances.
    relative : bool
        Count the widths in median distances between training samples (of the columns in question, on at most
        1000 evenly spaced rows).  A zero median falls back to the mean of the non-zero distances, then to 1.
    gamma : float or sequence of float, optional
        Instead of a width, as scikit-learn has it: ``exp(-gamma |x - x'|^2)``, ``gamma = 1 / (2 width^2)``.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.gaussian(1.0)([[0.0], [1.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    >>> kw.gaussian([0.5, 1, 2], relative=True)[0].name
    'gaussian(width=0.5 x median)'
    >>> kw.gaussian(gamma=0.5).name
    'gaussian(width=1)'
    """
    widths = _widths(width, relative, gamma, "gaussian", lambda one: sqrt(0.5 / one))
    return family_of(Gaussian, widths, "the width of a gaussian kernel", relative)


@accepts(widths="width")
def laplacian(
    width: Number | Numbers = 1.0, relative: bool = False, *, gamma: Number | Numbers | None = None
) -> Any:
    """Return Laplacian kernels ``exp(-|x - x'|_1 / width)``; parameters as for :func:`gaussian`, ``gamma = 1 / width``.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.laplacian(2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(3)
    array([[0.368]])
    """
    widths = _widths(width, relative, gamma, "laplacian", lambda one: 1.0 / one)
    return family_of(Laplacian, widths, "the width of a laplacian kernel", relative)


#: smoothness of a Matern kernel: the polynomial that stands before its exponential, lowest power first
MATERN = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1.0 / 3.0)}


class _OfEuclidean(OfDistance):
    """A kernel of the Euclidean distance whose widths do not share a base: the base is the kernel itself."""

    decay = False
    accepts_sparse = True
    for_tables = False  # the command line's few words have no place for nu and alpha
    _diagonal = 1.0


@dataclass(eq=False, repr=False)
class Matern(_OfEuclidean, registered_as="matern"):
    """A function that can be differentiated ``nu - 1/2`` times; see :func:`matern`."""

    nu: float = 1.5

    _shown = ("nu",)

    def _base(self, A: Any, B: Any) -> np.ndarray:
        factors = _polynomial(self.nu)
        distance = euclidean(A, B)
        distance *= sqrt(2.0 * self.nu) / self.settled_width
        before = np.polynomial.polynomial.polyval(distance, factors)
        np.negative(distance, out=distance)
        np.exp(distance, out=distance)
        distance *= before
        return distance


@dataclass(eq=False, repr=False)
class RationalQuadratic(_OfEuclidean, registered_as="rational_quadratic"):
    """A mixture of Gaussians of all widths around one; see :func:`rational_quadratic`."""

    alpha: float = 1.0

    _shown = ("alpha",)

    def _base(self, A: Any, B: Any) -> np.ndarray:
        alpha = checked_number(self.alpha, "alpha of a rational quadratic kernel")
        values = sqeuclidean(A, B)
        values /= 2.0 * alpha * self.settled_width**2
        values += 1.0
        return np.power(values, -alpha, out=values)


@dataclass(eq=False, repr=False)
class Periodic(NumericKernel, registered_as="periodic"):
    """``exp(-2 sum_j sin^2(pi (x_j - x'_j) / period) / width^2)``; see :func:`periodic`."""

    period: Any = 1.0
    width: float = 1.0

    decay = True
    _varied = "period"
    _diagonal = 0.0
    _shown = ("period", "width")

    @property
    def exponent(self) -> float:
        return 2.0 / checked_number(self.width, "the width of a periodic kernel") ** 2

    @property
    def base_key(self) -> Hashable:
        return ("periodic", float(self.period)), None

    def _base(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        # sin^2(t / 2) is a quarter of the squared distance between two points of the circle at the angle t
        turn = 2.0 * pi / checked_number(self.period, "the period of a periodic kernel")
        angles = [A * turn] if A is B else [A * turn, B * turn]
        circles = [np.hstack([np.cos(each), np.sin(each)]) for each in angles]
        squared = sqeuclidean(circles[0], circles[-1])
        squared *= 0.25
        return squared


def _polynomial(nu: float) -> tuple[float, ...]:
    if nu not in MATERN:
        raise ValueError(
            f"nu of a matern kernel is 0.5, 1.5 or 2.5, got {nu!r}; a function smoother than these is a matter of "
            "gaussian(...), the limit of large nu"
        )
    return MATERN[nu]


@accepts(widths="width")
def matern(width: Number | Numbers = 1.0, nu: float = 1.5, relative: bool = False) -> Any:
    """Return Matern kernels of the Euclidean distance, rougher than Gaussians.

    Parameters
    ----------
    width, relative
        As for :func:`gaussian`; scikit-learn calls a width ``length_scale``.
    nu : {0.5, 1.5, 2.5}
        Smoothness: 0.5 is ``exp(-distance / width)``, 1.5 gives functions with one derivative, 2.5 with two.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.matern(1.0)([[0.0], [1.0]]).round(3)
    array([[1.   , 0.483],
           [0.483, 1.   ]])
    """
    _polynomial(nu)
    return family_of(Matern, width, "the width of a matern kernel", relative, None, nu)


@accepts(widths="width")
def rational_quadratic(width: Number | Numbers = 1.0, alpha: float = 1.0, relative: bool = False) -> Any:
    """Return rational quadratic kernels ``(1 + |x - x'|^2 / (2 alpha width^2)) ** -alpha``.

    Parameters
    ----------
    width, relative
        As for :func:`gaussian`.
    alpha : float
        How narrow the mixture of Gaussians is; large values approach the Gaussian of that width.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.rational_quadratic(1.0)([[0.0], [2.0]]).round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    """
    checked_number(alpha, "alpha of a rational quadratic kernel")
    return family_of(
        RationalQuadratic, width, "the width of a rational quadratic kernel", relative, None, alpha
    )


@accepts(periods="period")
def periodic(period: Number | Numbers = 1.0, width: float = 1.0) -> Any:
    """Return periodic kernels ``exp(-2 sum_j sin^2(pi (x_j - x'_j) / period) / width^2)``.

    On one column that is scikit-learn's ``ExpSineSquared``.  On several it is the product over the columns, which is
    positive semidefinite; a sine of the Euclidean distance is not.

    Parameters
    ----------
    period : float or sequence of float
        After which the samples are the same again: 24 for hours of the day, 7 for days of the week.
    width : float
        How fast the similarity falls within a period.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.periodic(24.0).on("hour").name
    'periodic(period=24, width=1) on hour'
    >>> kw.periodic(24.0)([[1.0]], [[25.0], [13.0]]).round(3)
    array([[1.   , 0.135]])
    """
    checked_number(width, "the width of a periodic kernel")
    return family_of(Periodic, period, "the period of a periodic kernel", width)
