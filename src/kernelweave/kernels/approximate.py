"""Kernels of low rank: Nystroem, random Fourier features, principal components, and explicit features side by side."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.utils import check_random_state

from .._components import check_choice, check_switch
from .._numerics.namespace import as_like, namespace
from ..views import Views
from ._algebra import Stack, as_spec
from ._kernel import Kernel, KernelSpec, Schema, n_samples, readable, refuse_non_finite, take
from ._numeric import Number, Numbers, accepts, checked_number, family_of
from .columns import Wrapper
from .dotproduct import Linear
from .stationary import Gaussian

SAMPLINGS = ("uniform", "leverage")
#: with more samples than this, landmarks are chosen among a random part, and errors measured on it
MOST = 20_000
#: landmarks tried first where an error is asked for
FIRST = 32


def choose_landmarks(
    kernel: Kernel, A: Any, most: int | None, sampling: str, error: float | None, draw: np.random.RandomState
) -> np.ndarray:
    """Return sorted row numbers of ``most`` landmarks, or of the fewest that leave at most ``error`` of the trace."""
    n = n_samples(A)
    if sampling == "uniform" and error is None:
        return np.sort(draw.permutation(n)[:most])
    pool = np.sort(draw.permutation(n)[: min(n, MOST)])
    samples = A if pool.size == n else take(A, pool)
    most = pool.size if most is None else min(most, pool.size)
    if sampling == "uniform":
        order = draw.permutation(pool.size)
    else:
        scores = leverage_scores(kernel, samples, most if error is None else min(most, 8 * FIRST), draw)
        # sorting by log(u) / p draws without replacement with probabilities p (Efraimidis and Spirakis 2006)
        order = np.argsort(-np.log(draw.uniform(size=pool.size)) / np.maximum(scores, 1e-300))
    if error is None:
        return np.sort(pool[order[:most]])
    size = min(FIRST, most)
    while True:
        reached = np.flatnonzero(trace_errors(kernel, samples, order[:size]) <= error)
        if reached.size:
            return np.sort(pool[order[: reached[0] + 1]])
        if size == most:
            return np.sort(pool[order[:size]])
        size = min(2 * size, most)


def leverage_scores(kernel: Kernel, samples: Any, rank: int, draw: np.random.RandomState) -> np.ndarray:
    """Return ridge leverage scores ``diag K (K + lam I)^-1``, from a uniform sample of twice the rank.

    lam is the mean of what the best approximation of this rank leaves of the trace (Musco and Musco 2017).
    """
    n = n_samples(samples)
    pilot = np.sort(draw.permutation(n)[: min(n, 2 * rank)])
    seen = take(samples, pilot)
    matrix, diagonal = kernel(seen), kernel.diag(samples)
    trace = float(np.sum(diagonal))

    def unexplained(ridge: float) -> np.ndarray:
        factor = cho_factor(matrix + ridge * np.eye(pilot.size))
        left = np.empty(n)
        height = max(1, 2_000_000 // pilot.size)
        for top in range(0, n, height):
            rows = np.arange(top, min(n, top + height))
            across = kernel(take(samples, rows), seen)
            left[rows] = diagonal[rows] - np.einsum("ij,ij->i", across, cho_solve(factor, across.T).T)
        return left

    values = np.linalg.eigvalsh(matrix)[::-1] * (n / pilot.size)
    left = trace - float(np.sum(values[:rank]))
    if pilot.size < n:  # what the sample itself leaves is a better guess where it missed something
        left = max(left, float(np.sum(unexplained(1e-8 * trace / n))))
    lam = max(left / rank, 1e-10 * trace)
    return np.clip(unexplained(lam * pilot.size / n) / lam, 0.0, 1.0)


def trace_errors(kernel: Kernel, samples: Any, order: np.ndarray) -> np.ndarray:
    """Return the share of the trace that the first 1, 2, ... of these landmarks leave unexplained."""
    landmarks = take(samples, order)
    matrix = kernel(landmarks)
    jitter = 1e-12 * float(np.mean(np.diagonal(matrix)))
    while True:
        try:
            lower = cholesky(matrix + jitter * np.eye(order.size), lower=True)
            break
        except LinAlgError:  # landmarks that are (almost) copies of each other
            jitter *= 100.0
    explained = np.zeros(order.size)
    n = n_samples(samples)
    height = max(1, 2_000_000 // order.size)
    for top in range(0, n, height):
        across = kernel(landmarks, take(samples, np.arange(top, min(n, top + height))))
        explained += np.sum(solve_triangular(lower, across, lower=True) ** 2, axis=1)
    return 1.0 - np.cumsum(explained) / float(np.sum(kernel.diag(samples)))


#: rows from which features are written where they belong: side by side only afterwards, they would be there twice
MANY = 1000


def stack_features(kernels: Sequence[Kernel], A: Any) -> tuple[Any, np.ndarray]:
    """Return the features of all kernels as one matrix, sparse where all are, and where each kernel's columns start."""
    many = isinstance(A, np.ndarray | Views) and A.shape[0] > MANY
    made = list(_feature_parts(kernels, A[:2] if many else A))
    starts = np.cumsum([0, *(width for _, widths in made for width in widths)]).astype(np.intp)
    parts = [part for part, _ in made]
    if all(sparse.issparse(part) for part in parts):
        if many:
            parts = [part for part, _ in _feature_parts(kernels, A)]
        return parts[0] if len(parts) == 1 else sparse.hstack(parts, format="csr"), starts
    if many:
        out, top = np.empty((A.shape[0], starts[-1])), 0
        for part, widths in _feature_parts(kernels, A):
            columns = slice(top, top := top + sum(widths))
            out[:, columns] = part.toarray() if sparse.issparse(part) else part
        return out, starts
    if len(parts) == 1:
        return parts[0], starts
    return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts]), starts


def _feature_parts(kernels: Sequence[Kernel], A: Any) -> Iterator[tuple[Any, list[int]]]:
    """Features of kernels one after the other, with the widths of those that a part holds.

    Runs of kernels whose features are columns of the samples are cut out in one go: one by one, thousands take minutes.
    """
    width = int(A.shape[1]) if len(getattr(A, "shape", ())) == 2 else None
    chosen = [None if width is None else kernel.feature_columns(width) for kernel in kernels]
    for plain, run in groupby(zip(kernels, chosen, strict=True), key=lambda pair: pair[1] is not None):
        if not plain:
            for kernel, _ in run:
                features = kernel.features(A)
                if features is None:
                    raise ValueError(f"kernel {kernel.name!r} has no explicit features")
                yield features, [features.shape[1]]
            continue
        found = [columns for _, columns in run if columns is not None]
        columns, samples = np.concatenate(found), A
        if isinstance(A, Views):
            samples, columns = A.select_columns(columns), np.arange(columns.size)
        if sparse.issparse(samples):
            part = sparse.csr_matrix(sparse.csc_matrix(samples)[:, columns], dtype=np.float64)
            refuse_non_finite(part.data, "features")
        else:
            part = np.ascontiguousarray(np.asarray(samples)[:, columns], dtype=np.float64)
            refuse_non_finite(part, "features")
        yield part, [columns.size for columns in found]


class Explicit(Wrapper, passes_on="_picks_columns"):
    """A kernel defined by its features: ``K = Z Z'``."""

    decay = False
    exponent = 1.0

    def base(self, A: Any, B: Any) -> np.ndarray:
        left = self.features(A)
        return left @ (left if A is B else self.features(B)).T

    def base_diag(self, A: Any) -> np.ndarray:
        Z = self.features(A)
        return np.einsum("ij,ij->i", Z, Z)

    def _check_settled(self, drawn: Any, rows: Any = None) -> None:
        """Raise where nothing was drawn yet, or rows have other columns than what was drawn."""
        if drawn is None:
            raise ValueError(
                f"kernel {self.name!r} draws from the training samples: settle it with "
                "kernel.resolve(X_train) first"
            )
        if rows is not None and rows.shape[1] != len(drawn):
            got = rows.shape[1]
            raise ValueError(f"kernel {self.name!r} was settled on {len(drawn)} features, got {got}")


class _Ranked(KernelSpec):
    """A parameter ``rank`` that is kept as ``n_landmarks``: ``rank(n_columns)`` is a method of every kernel."""

    n_landmarks: int | None

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [name for name in super()._get_param_names() if name != "rank"]

    def _parameters(self) -> dict[str, Any]:
        return super()._parameters() | {"rank": self.n_landmarks}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return super().get_params(deep=deep) | {"rank": self.n_landmarks}

    def set_params(self, **params: Any) -> Self:
        if "rank" in params:
            self.n_landmarks = params.pop("rank")
        return super().set_params(**params) if params else self


class Nystroem(_Ranked, Explicit, registered_as="nystroem"):
    """The Nystroem approximation of a kernel, from samples and their matrix; see :func:`nystroem`."""

    settled = ("landmarks", "root")

    def __init__(
        self,
        kernel: Kernel,
        rank: int | None = 100,
        random_state: Any = 0,
        landmarks: Any = None,
        root: Any = None,
        sampling: str = "uniform",
        error: float | None = None,
    ) -> None:
        self.kernel, self.n_landmarks, self.random_state = kernel, rank, random_state
        self.landmarks, self.root, self.sampling, self.error = landmarks, root, sampling, error

    @property
    def name(self) -> str:
        size = f"rank={readable(self.n_landmarks)}" if self.error is None else f"error={readable(self.error)}"
        return f"nystroem({self.kernel.name}, {size})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Nystroem:
        if self.root is not None:
            return self
        kernel = self.kernel.resolve(A, shared)
        most = _checked_size(self.n_landmarks, self.sampling, self.error)
        draw = check_random_state(self.random_state)
        landmarks = take(A, choose_landmarks(kernel, A, most, self.sampling, self.error, draw))
        values, vectors = np.linalg.eigh(kernel(landmarks))
        # directions at rounding level would only add noise
        kept = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        return self._with(kernel=kernel, landmarks=landmarks, root=vectors[:, kept] / np.sqrt(values[kept]))

    def features(self, A: Any) -> np.ndarray:
        """Return ``K(A, landmarks) W^(-1/2)``."""
        self._check_settled(self.root)
        return self.kernel(A, self.landmarks) @ self.root

    def rank(self, n_columns: int) -> int:
        return int(self.n_landmarks or 1) if self.root is None else self.root.shape[1]


class NystroemOf(_Ranked):
    """The approximations of kernels that are only known with the features."""

    family = "nystroem"

    def __init__(
        self,
        kernels: Any,
        rank: int | None = 100,
        random_state: Any = 0,
        sampling: str = "uniform",
        error: float | None = None,
    ) -> None:
        self.kernels, self.n_landmarks, self.random_state = kernels, rank, random_state
        self.sampling, self.error = sampling, error

    def expand(self, schema: Schema) -> list[Kernel]:
        return [
            Nystroem(kernel, self.n_landmarks, self.random_state, sampling=self.sampling, error=self.error)
            for kernel in as_spec(self.kernels).expand(schema)
        ]


def _checked_size(rank: Any, sampling: Any, error: Any) -> int | None:
    """Return the number of landmarks, None where the error alone decides."""
    check_choice("sampling of nystroem", sampling, SAMPLINGS)
    if error is not None and not (checked_number(error, "the error of nystroem") < 1.0):
        raise ValueError(f"the error of nystroem is a share of the trace, below 1, got {error!r}")
    if rank is None:
        if error is None:
            raise ValueError("nystroem needs a rank, or an error to choose it by")
        return None
    return int(checked_number(rank, "the rank of nystroem", whole=True))


def nystroem(
    kernel: Any,
    rank: int | None = None,
    random_state: Any = 0,
    *,
    sampling: str = "uniform",
    error: float | None = None,
) -> Any:
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
    made = tuple(Nystroem(exact, rank, random_state, sampling=sampling, error=error) for exact in kernels)
    return made[0] if isinstance(spec, Kernel) else Stack(made)


#: angles from which loading compiled code pays
MANY_FREQUENCIES = 20_000


@dataclass(eq=False, repr=False)
class RandomFourier(Explicit, registered_as="random_fourier"):
    """Random Fourier features of a Gaussian kernel, a cosine and a sine of each of the ``frequencies`` that ``resolve``
    draws; see :func:`random_fourier`."""

    kernel: Gaussian
    n_features: Any = 200
    random_state: Any = 0
    frequencies: Any = None

    settled = ("frequencies",)

    @property
    def name(self) -> str:
        width = self.kernel.name.removeprefix("gaussian(").removesuffix(")")
        return f"random_fourier({width}, n_features={readable(self.n_features)})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> RandomFourier:
        """Draw the frequencies, whose number depends on the columns, and settle the width."""
        if self.frequencies is not None:
            return self
        kernel = self.kernel.resolve(A, shared)
        # one row tells how many columns there are; all rows are looked at where features are made of them
        shape = kernel._clean(A[:1]).shape[1], _checked_even(self.n_features) // 2
        frequencies = check_random_state(self.random_state).standard_normal(shape) / kernel.settled_width
        return self._with(kernel=kernel, frequencies=frequencies)

    def features(self, A: Any) -> np.ndarray:
        """Return cosines and sines of the projections, scaled so that every sample has length one."""
        A = self.kernel._clean(A)
        self._check_settled(self.frequencies, A)
        angles = A @ self.frequencies
        scale = 1.0 / np.sqrt(angles.shape[1])
        # compiled ones are reduced accurately up to 1e6
        if angles.size < MANY_FREQUENCIES or np.max(np.abs(angles)) > 1e6:
            return np.hstack([np.cos(angles), np.sin(angles)]) * scale
        from .._numerics.exponentials import cos_sin

        out = np.empty((angles.shape[0], 2 * angles.shape[1]))
        cos_sin(angles, scale, out)
        return out

    def portable_features(self, A: Any) -> Any:
        angles = A @ as_like(self.frequencies, A)
        return namespace(A).concat([angles.cos(), angles.sin()], axis=1) / angles.shape[1] ** 0.5

    def rank(self, n_columns: int) -> int:
        return int(self.n_features)


def _checked_even(n_features: Any) -> int:
    checked_number(n_features, "n_features of random_fourier", whole=True)
    if n_features % 2:
        raise ValueError(f"n_features of random_fourier must be even (cosine and sine), got {n_features}")
    return int(n_features)


@accepts(widths="width")
def random_fourier(
    width: Number | Numbers = 1.0, n_features: int = 200, random_state: Any = 0, relative: bool = False
) -> Any:
    """Return random Fourier approximations of Gaussian kernels.

    Parameters
    ----------
    width, relative
        As for :func:`gaussian`.
    n_features : int
        Even; the error of an entry falls like ``1 / sqrt(n_features)``.
    random_state : int, RandomState or None

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
    exact = family_of(Gaussian, width, "the width of a random_fourier kernel", relative)
    if isinstance(exact, Gaussian):
        return RandomFourier(exact, n_features, random_state)
    return Stack(tuple(RandomFourier(kernel, n_features, random_state) for kernel in exact.parts))


class Principal(Explicit, registered_as="principal"):
    """The linear kernel on the leading principal components; see :func:`principal`.

    ``resolve`` settles ``axes``, the directions ``(columns, components)``, and ``middle``, their training mean.
    """

    settled = ("axes", "middle")

    def __init__(
        self, n_components: int = 3, kernel: Linear | None = None, axes: Any = None, middle: Any = None
    ) -> None:
        self.n_components = n_components
        self.kernel = Linear() if kernel is None else kernel
        self.axes = axes
        self.middle = middle

    @property
    def name(self) -> str:
        return f"principal({readable(self.n_components)})"

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Principal:
        """Find the directions of largest variance of the training samples, the largest first."""
        if self.axes is not None:
            return self
        wanted = int(checked_number(self.n_components, "n_components of principal", whole=True))
        kernel = self.kernel.resolve(A, shared)
        samples = kernel._clean(A)
        mean = np.asarray(samples.mean(axis=0), dtype=float).ravel()
        n, columns = samples.shape
        if columns <= n:
            gram = samples.T @ samples
            gram = np.asarray(gram.todense() if sparse.issparse(gram) else gram, dtype=float)
            axes = np.linalg.eigh(gram - n * np.outer(mean, mean))[1][:, ::-1]
        else:
            dense = samples.todense() if sparse.issparse(samples) else samples
            axes = np.linalg.svd(np.asarray(dense, dtype=float) - mean, full_matrices=False)[2].T
        axes = axes[:, :wanted]
        # each points to where its largest entry is positive
        largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
        axes = np.ascontiguousarray(axes * np.where(largest < 0, -1.0, 1.0))
        return self._with(kernel=kernel, axes=axes, middle=mean @ axes)

    def features(self, A: Any) -> np.ndarray:
        A = self.kernel._clean(A)
        self._check_settled(self.axes, A)
        return np.asarray(A @ self.axes - self.middle)

    def portable_features(self, A: Any) -> Any:
        return A @ as_like(self.axes, A) - as_like(self.middle, A)

    def rank(self, n_columns: int) -> int:
        return min(int(self.n_components), n_columns) if self.axes is None else self.axes.shape[1]


def principal(n_components: int = 3) -> Principal:
    """Return the linear kernel on the leading principal components of the columns.

    For groups of columns that move together, such as the genes of a pathway: what they have in common is kept.

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
