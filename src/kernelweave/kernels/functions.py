"""Kernels from functions, metrics and matrices of distances, on samples of any kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._components import nearest
from ._kernel import Kernel, Same, n_samples, subsample, take
from ._numeric import NumericKernel
from .holder import Held, as_indices


@dataclass(eq=False, repr=False)
class Function(Kernel, registered_as="function"):
    """A kernel from a function; see :func:`function`."""

    function: Callable[..., Any]
    label: Any = None
    pairwise: Any = None

    takes_objects = True
    sure = False

    @property
    def name(self) -> str:
        return self.label or name_of(self.function)

    @property
    def base_key(self) -> Hashable:
        return ("function", Same(self.function), self.pairwise), None

    def base(self, A: Any, B: Any) -> np.ndarray:
        who = f"kernel {self.name!r}"
        if by_pairs(self.function, self.pairwise, A, B):
            return evaluate_pairs(self.function, A, B, who)
        return check_returned(self.function(A, B), (n_samples(A), n_samples(B)), who, symmetric=A is B)

    def base_diag(self, A: Any) -> np.ndarray:
        if not by_pairs(self.function, self.pairwise, A, A):
            return Kernel.base_diag(self._with(pairwise=False), A)
        who = f"kernel {self.name!r}"
        return np.array([_value(self.function, row, row, who) for row in rows_of(A)], float)


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called, with the arguments that it has been given.

    >>> from functools import partial
    >>> name_of(partial(pow, exp=2))
    'pow(exp=2)'
    """
    if isinstance(function, partial):
        given = [
            *map(repr, function.args),
            *(f"{name}={value!r}" for name, value in function.keywords.items()),
        ]
        return f"{name_of(function.func)}({', '.join(given)})"
    kind = type(function)
    spelled = repr(function) if kind.__repr__ is not object.__repr__ else kind.__name__
    return str(getattr(function, "__name__", spelled))


def by_pairs(function: Callable[..., Any], pairwise: bool | None, A: Any, B: Any) -> bool:
    """Whether a function takes two samples; unless that was said, a trial tells if it makes a matrix of two sets."""
    if pairwise is not None:
        return bool(pairwise)
    try:
        left, right = take(A, [0, 0, n_samples(A) - 1]), take(B, [0, n_samples(B) - 1])
        return np.shape(function(left, right)) != (3, 2)
    except Exception:  # a function of two samples may fail on sets in any way it likes
        return True


def rows_of(A: Any) -> list[Any]:
    """Return the samples one by one: rows of an array, entries of a list."""
    if hasattr(A, "iloc"):
        A = A.to_numpy()
    if hasattr(A, "tocsr"):
        return [take(A, [i]) for i in range(n_samples(A))]
    return list(A)


def _value(function: Callable[..., Any], a: Any, b: Any, who: str) -> float:
    try:
        value = function(a, b)
    except Exception as error:
        error.add_note(
            f"{who} called its function on one pair of samples; see pairwise=False for sets of samples"
        )
        raise
    if np.ndim(value) != 0:
        raise ValueError(
            f"{who}: the function returned an array of shape {np.shape(value)} for one pair; if it "
            "takes two sets of samples and returns their matrix, say pairwise=False"
        )
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who}: the function returned {value!r}, which is not a number") from error
    if not np.isfinite(number):
        raise ValueError(f"{who}: the function returned {value!r} for a pair of samples")
    return number


def evaluate_pairs(function: Callable[..., Any], A: Any, B: Any, who: str) -> np.ndarray:
    """Return the values of a function of two samples on all pairs; each pair once when A is B."""
    left = rows_of(A)
    if A is not B:
        right = rows_of(B)
        values = [_value(function, a, b, who) for a in left for b in right]
        return np.array(values, dtype=np.float64).reshape(len(left), len(right))
    matrix = np.empty((len(left), len(left)))
    for i, a in enumerate(left):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = _value(function, a, left[j], who)
    return matrix


def check_returned(values: Any, shape: tuple[int, int], who: str, symmetric: bool = False) -> np.ndarray:
    """Return a user's matrix as a fresh float64 array, or say what is wrong with it."""
    try:
        matrix = np.array(values, dtype=np.float64)  # a copy: the function may keep its own
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who}: the function returned something that is no matrix of numbers") from error
    if matrix.shape != shape:
        raise ValueError(f"{who}: the function returned shape {matrix.shape} where {shape} was expected")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"{who}: the function returned {matrix[i, j]} for samples {i} and {j}")
    if symmetric and matrix.size:
        skew = np.abs(matrix - matrix.T)
        if skew.max() > 1e-6 * np.abs(matrix).max():
            i, j = np.unravel_index(skew.argmax(), shape)
            raise ValueError(
                f"{who} is not symmetric: {matrix[i, j]:g} for samples {i} and {j}, "
                f"but {matrix[j, i]:g} for {j} and {i}"
            )
        matrix = 0.5 * (matrix + matrix.T)  # rounding apart, to the bit
    return matrix


def function(f: Callable[..., Any], name: str | None = None, pairwise: bool | None = None) -> Function:
    """Return a kernel from a function, of ``sklearn.metrics.pairwise`` or ``sklearn.gaussian_process`` for example.

    Parameters
    ----------
    f : callable
        ``f(a, b) -> float`` on two samples, or ``f(A, B) -> matrix`` on two sets of samples.  It should be symmetric
        and positive semidefinite; of ``f(a, b)`` and ``f(b, a)`` only one is evaluated on the training samples.
    name : str or None
        A display name; by default that of the function.
    pairwise : bool or None
        Whether it takes two samples or (False) two sets; by default a small trial decides.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> def common_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> kw.function(common_letters)(["weave", "wave"])
    array([[4., 4.],
           [4., 4.]])
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> kw.function(rbf_kernel)([[0.0], [1.0]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    if isinstance(f, Kernel) or not callable(f):
        raise ValueError(f"function needs a plain callable, got {f!r}")
    return Function(f, name, pairwise)


# these take parameters from whichever samples they are shown: new samples would get another metric
DATA_DEPENDENT = ("mahalanobis", "seuclidean")
#: metrics of negative type: exp(-d / scale) is positive semi-definite whatever the samples
SURE_METRICS = {"euclidean", "l2", "sqeuclidean", "manhattan", "cityblock", "l1", "hamming", "jaccard"}


@dataclass(eq=False, repr=False)
class FromDistance(NumericKernel, registered_as="from_distance"):
    """``exp(-d / mean d)``; see :func:`from_distance`."""

    distance: Any  # a matrix of distances is in a ``Held``
    label: Any = None
    pairwise: Any = None
    scale: float | None = None  # the mean distance, once ``resolve`` has settled it

    decay = True
    settled = ("scale",)

    @property
    def sure(self) -> bool:  # type: ignore[override]
        """Only for distances known to give kernels: exp(-d) of most others is indefinite for some samples."""
        return isinstance(self.distance, str) and self.distance in SURE_METRICS

    @property
    def takes_objects(self) -> bool:  # type: ignore[override]
        return not isinstance(self.distance, (str, Held))

    @property
    def takes_indices(self) -> bool:  # type: ignore[override]
        return isinstance(self.distance, Held)

    @property
    def name(self) -> str:
        distance = self.distance if isinstance(self.distance, str) else name_of(self.distance)
        return self.label or f"from_distance({'matrix' if self.takes_indices else distance})"

    @property
    def exponent(self) -> float:
        if self.scale is None:
            raise ValueError(
                f"kernel {self.name!r} divides by the mean distance of the training samples: settle it with "
                "kernel.resolve(X_train) first"
            )
        return 1.0 / self.scale

    @property
    def base_key(self) -> Hashable:
        distance = self.distance if isinstance(self.distance, str) else Same(self.distance)
        return ("distance", distance, self.pairwise), None

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> FromDistance:
        """Return the kernel with the mean distance over pairs of (at most 1000 of) the samples filled in."""
        if self.scale is not None:
            return self
        shared = {} if shared is None else shared
        key = ("mean", self.base_key)
        if key not in shared:
            # a matrix is there already; anything else may be slow
            chosen = A if isinstance(self.distance, Held) else subsample(A)
            distances = self.base(chosen, chosen)
            n = len(distances)
            shared[key] = float(distances.sum() / (n * (n - 1))) if n > 1 else 0.0
        return self._with(scale=shared[key] or 1.0)

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the distances, checked: finite, not negative, and on one set symmetric, zero to itself."""
        who = f"kernel {self.name!r}"
        if isinstance(self.distance, str):
            distances = super().base(A, B)
        elif isinstance(self.distance, Held):
            rows, columns = (as_indices(samples, self.distance.n_samples, who) for samples in (A, B))
            distances = self.distance.stack[0][np.ix_(rows, columns)]
        else:
            pairs = by_pairs(self.distance, self.pairwise, A, B)
            distances = evaluate_pairs(self.distance, A, B, who) if pairs else self.distance(A, B)
        return as_distances(distances, (n_samples(A), n_samples(B)), A is B, who)

    def base_diag(self, A: Any) -> np.ndarray:
        return np.zeros(n_samples(A))

    def _base(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        from sklearn.metrics import pairwise_distances  # slow to import, and rarely needed

        return pairwise_distances(A, None if A is B else B, metric=self.distance)


def as_distances(values: Any, shape: tuple[int, int], same: bool, who: str) -> np.ndarray:
    """Return a matrix of distances after checking that it is one."""
    distances = check_returned(values, shape, who, symmetric=same)
    if not distances.size:
        return distances
    largest = distances.max()
    if distances.min() < -1e-8 * abs(largest):
        raise ValueError(f"{who}: a distance is negative, {distances.min():g}")
    np.maximum(distances, 0.0, out=distances)
    if same:
        if distances.diagonal().max() > 1e-6 * largest:
            i = int(distances.diagonal().argmax())
            raise ValueError(f"{who}: the distance of sample {i} to itself is {distances[i, i]:g}, not zero")
        np.fill_diagonal(distances, 0.0)
    return distances


def from_distance(distance: Any, name: str | None = None, pairwise: bool | None = None) -> FromDistance:
    """Return the kernel ``exp(-d / mean d)`` of a distance; the mean is over the training pairs.

    It is positive semidefinite for distances of negative type (Euclidean, cityblock, the square roots of many
    others), not for every distance.

    Parameters
    ----------
    distance : str, callable or square matrix
        A metric of ``sklearn.metrics.pairwise_distances``; a function of two samples or of two sets of
        samples; or the matrix of all distances, with sample indices as X.
    name : str or None
    pairwise : bool or None
        Whether a function takes two samples or (False) two sets; by default a small trial decides.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> def length(a, b):
    ...     return abs(len(a) - len(b))
    >>> words = ["a", "bb", "dddd"]
    >>> kw.from_distance(length).resolve(words)(words).round(3)
    array([[1.   , 0.607, 0.223],
           [0.607, 1.   , 0.368],
           [0.223, 0.368, 1.   ]])
    """
    if isinstance(distance, str):
        from sklearn.metrics.pairwise import distance_metrics, pairwise_distances

        if distance == "precomputed":
            raise ValueError("give the matrix itself: from_distance(matrix), with sample indices as X")
        if distance in DATA_DEPENDENT:
            raise ValueError(
                f"the metric {distance!r} depends on the samples it is shown: scale the features first and use "
                "'euclidean'"
            )
        try:
            pairwise_distances(np.eye(2), metric=distance)
        except ValueError as error:
            raise ValueError(
                f"unknown metric {distance!r}.{nearest(distance, list(distance_metrics()))} Known are those of "
                "sklearn.metrics.pairwise_distances."
            ) from error
        return FromDistance(distance, name)
    if callable(distance):
        return FromDistance(distance, name, pairwise)
    matrix = np.asarray(distance)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            "from_distance needs a metric's name, a function or a square matrix of distances, got "
            f"{type(distance).__name__} of shape {matrix.shape}"
        )
    return FromDistance(Held(as_distances(matrix, matrix.shape, True, "from_distance(matrix)")), name)
