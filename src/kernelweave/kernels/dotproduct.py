"""Kernels of an inner product: linear, polynomial, cosine and sigmoid; and the constant kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import Any, overload

import numpy as np
from scipy import sparse

from .._numerics.namespace import as_like
from ._algebra import Stack
from ._kernel import LITTLE, Kernel, n_samples, readable
from ._numeric import Number, Numbers, NumericKernel, accepts, checked_number, family_of, inner, row_norms


class _OfProducts(NumericKernel):
    """A function of the inner products of the samples."""

    accepts_sparse = True

    def _base(self, A: Any, B: Any) -> np.ndarray:
        return self._of_products(inner(A, B))

    def _base_diag(self, A: Any) -> np.ndarray:
        return self._of_products(row_norms(A))

    def _of_products(self, products: np.ndarray) -> np.ndarray:
        """Return the base from the inner products, which may be overwritten."""
        return products


@dataclass(eq=False, repr=False)
class Linear(_OfProducts, registered_as="linear"):
    """``x.x'``, of samples counted from ``origin`` (None is zero); see :func:`linear`."""

    origin: Any = None

    for_tables = True

    @property
    def base_key(self) -> Hashable:
        return ("inner" if self.origin is None else ("inner", tuple(self.origin))), None

    def _clean(self, A: Any) -> Any:
        A = super()._clean(A)
        return A if self.origin is None else A - np.asarray(self.origin, dtype=float)

    def recentred(self, A: Any) -> Linear:
        """Return the linear kernel around the mean of the samples: centring makes the two one."""
        if self.origin is not None or sparse.issparse(A):  # a mean has no zeros to keep
            return self
        return Linear(super()._clean(A).mean(axis=0))

    def features(self, A: Any) -> Any:
        return self._clean(A)

    def portable_features(self, A: Any) -> Any:
        return A if self.origin is None else A - as_like(self.origin, A)

    def feature_columns(self, n_columns: int) -> np.ndarray | None:
        return np.arange(n_columns) if self.origin is None else None

    def linear_columns(self, n_columns: int) -> np.ndarray:
        return np.arange(n_columns)

    def rank(self, n_columns: int) -> int:
        return n_columns


class Cosine(NumericKernel, registered_as="cosine"):
    """``x.x' / (|x| |x'|)``; see :func:`cosine`."""

    accepts_sparse = True
    for_tables = True
    base_key = ("cosine", None)

    def _base(self, A: Any, B: Any) -> np.ndarray:
        left = self.features(A)
        return inner(left, left if A is B else self.features(B))

    def _base_diag(self, A: Any) -> np.ndarray:
        return row_norms(self.features(A))

    def features(self, A: Any) -> Any:
        """Return the samples scaled to length one; zero rows stay zero."""
        A = self._clean(A)
        # dividing by the largest entry first keeps the squares of tiny and of huge entries representable
        is_sparse = sparse.issparse(A)
        largest = abs(A).max(axis=1).toarray().ravel() if is_sparse else abs(A).max(axis=1, initial=0)
        A = _scaled(A, 1.0 / np.where(largest > 0, largest, 1.0))
        lengths = np.sqrt(row_norms(A))
        return _scaled(A, 1.0 / np.where(lengths > 0, lengths, 1.0))

    def rank(self, n_columns: int) -> int:
        return n_columns


def _scaled(A: Any, factors: np.ndarray) -> Any:
    return sparse.csr_matrix(A.multiply(factors[:, None])) if sparse.issparse(A) else A * factors[:, None]


@dataclass(eq=False, repr=False)
class _OfDegree(_OfProducts):
    """Base of a polynomial and of the same around an origin: parameters, and the monomials."""

    degree: Any = 2
    coef0: float = 1.0
    gamma: float = 1.0

    family = "polynomial"
    _varied = "degree"

    @property
    def name(self) -> str:
        """Degree, and the other parameters where they are not 1."""
        others = {"coef0": self.coef0, "gamma": self.gamma}
        extra = "".join(f", {name}={readable(value)}" for name, value in others.items() if value != 1)
        return f"polynomial(degree={readable(self.degree)}{extra})"

    def _checked(self) -> tuple[float, float]:
        gamma = checked_number(self.gamma, "gamma of a polynomial kernel")
        return gamma, checked_number(self.coef0, "coef0 of a polynomial kernel", strict=False)

    def _checked_degree(self) -> int:
        return int(checked_number(self.degree, "the degree of a polynomial kernel", whole=True))

    def features(self, A: Any) -> Any:
        """Return all monomials of the degree in the features and the constant, with multinomial weights."""
        A = self._clean(A)
        degree, (gamma, coef0) = self._checked_degree(), self._checked()
        constant = np.full((A.shape[0], int(coef0 > 0)), sqrt(coef0))
        if degree == 1 and sparse.issparse(A):
            return sparse.hstack([A * sqrt(gamma), sparse.csr_matrix(constant)], format="csr")
        A = A.toarray() if sparse.issparse(A) else A
        variables = np.hstack([A * sqrt(gamma), constant])
        if degree == 1:
            return variables
        columns = list(combinations_with_replacement(range(variables.shape[1]), degree))
        monomials = np.empty((len(variables), len(columns)))
        for j, chosen in enumerate(columns):
            repeats = prod(factorial(chosen.count(i)) for i in set(chosen))
            monomials[:, j] = variables[:, chosen].prod(axis=1) * sqrt(factorial(degree) / repeats)
        return monomials

    def rank(self, n_columns: int) -> int:
        degree = self._checked_degree()
        return comb(n_columns + int(self.coef0 > 0) + degree - 1, degree)


class Polynomial(_OfDegree, registered_as="polynomial"):
    """``(gamma x.x' + coef0) ** degree``; see :func:`polynomial`."""

    for_tables = True

    @property
    def exponent(self) -> float:
        return float(self._checked_degree())

    @property
    def base_key(self) -> Hashable:
        return ("polynomial", float(self.coef0), float(self.gamma)), None

    def recentred(self, A: Any) -> Polynomial | PolynomialAround:
        """Return the polynomial around the mean of the samples, where centring leaves next to nothing of it."""
        if sparse.issparse(A):  # a mean has no zeros to keep
            return self
        A = self._clean(A)
        around = PolynomialAround(self.degree, self.coef0, self.gamma, A.mean(axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            left, whole = (float(np.mean(kernel.diag(A))) for kernel in (around, self))
        return around if left < LITTLE * whole else self

    def _of_products(self, products: np.ndarray) -> np.ndarray:
        gamma, coef0 = self._checked()
        products *= gamma
        products += coef0
        return products


@dataclass(eq=False, repr=False)
class PolynomialAround(_OfDegree):
    """``k(x, x') - k(x, o) - k(o, x') + k(o, o)`` of a polynomial k and an origin o: centred it is k itself.

    With ``p = k(x, o)^(1/degree)``, likewise ``p'`` and ``P`` of ``(o, x')`` and ``(o, o)``, ``z = x - o``, and
    ``g = p + p' - P + gamma z.z'`` the base of k, differences of powers are ``u^d - v^d = (u - v) S_d(u, v)`` with
    ``S_d = sum_i u^i v^(d-1-i)``: numbers as large as the origin are multiplied, and never subtracted.
    """

    origin: Any = None

    is_settled = True

    def _clean(self, A: Any) -> Any:
        A = super()._clean(A)
        return A.toarray() if sparse.issparse(A) else A

    def _parts(self, A: Any) -> tuple[np.ndarray, np.ndarray, float]:
        """Return ``z``, ``p - P`` and ``P``."""
        gamma, coef0 = self._checked()
        origin = np.asarray(self.origin, dtype=float)
        z = A - origin
        return z, gamma * (z @ origin), gamma * float(origin @ origin) + coef0

    def _base(self, A: Any, B: Any) -> np.ndarray:
        z, left, whole = self._parts(A)
        other, right, _ = (z, left, whole) if A is B else self._parts(B)
        entries = self._difference(float(self.gamma) * inner(z, other), left[:, None], right[None, :], whole)
        return 0.5 * (entries + entries.T) if A is B else entries

    def _base_diag(self, A: Any) -> np.ndarray:
        z, left, whole = self._parts(A)
        return self._difference(float(self.gamma) * row_norms(z), left, left, whole)

    def _difference(self, s: np.ndarray, left: np.ndarray, right: np.ndarray, whole: float) -> np.ndarray:
        """Return ``g^d - p^d - p'^d + P^d`` for ``g = P + left + right + s``."""
        d = self._checked_degree()

        def powers(u: Any, v: Any, count: int) -> Any:
            return sum((u**i * v ** (count - 1 - i) for i in range(count)), start=0.0)

        p, other = whole + left, whole + right
        g = whole + (left + right + s)
        # S_d(g, p) - S_d(p', P), power by power
        rest: Any = 0.0
        for i in range(d):
            j = d - 1 - i
            rest = rest + g**i * left * powers(p, whole, j) + whole**j * (left + s) * powers(g, other, i)
        return np.asarray(s * powers(g, p, d) + right * rest)

    def features(self, A: Any) -> Any:
        return super().features(A) - super().features(np.asarray(self.origin, dtype=float)[None, :])


@dataclass(eq=False, repr=False)
class Sigmoid(_OfProducts, registered_as="sigmoid"):
    """``tanh(gamma x.x' + coef0)``; see :func:`sigmoid`."""

    gamma: Any = 1.0
    coef0: float = 0.0

    sure = False
    _varied = "gamma"
    _shown = ("gamma", "coef0")

    def _of_products(self, products: np.ndarray) -> np.ndarray:
        products *= checked_number(self.gamma, "gamma of a sigmoid kernel")
        products += checked_number(self.coef0, "coef0 of a sigmoid kernel", low=-np.inf)
        return np.tanh(products, out=products)


def linear() -> Linear:
    """Return the linear kernel ``x.x'``.

    >>> linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """
    return Linear()


def cosine() -> Cosine:
    """Return the cosine kernel: the linear kernel of rows scaled to length one, zero for zero rows.

    >>> cosine()([[1.0, 0.0]], [[3.0, 4.0]]).round(3)
    array([[0.6]])
    """
    return Cosine()


@overload
def polynomial(degree: Number, coef0: float = ..., gamma: float = ...) -> Polynomial: ...
@overload
def polynomial(degree: Numbers = ..., coef0: float = ..., gamma: float = ...) -> Stack: ...
@accepts(degrees="degree")
def polynomial(
    degree: Number | Numbers = (1, 2, 3), coef0: float = 1.0, gamma: float = 1.0
) -> Polynomial | Stack:
    """Return polynomial kernels ``(gamma x.x' + coef0) ** degree``.

    Parameters
    ----------
    degree : int or sequence of int
        One degree gives a kernel, a sequence a stack.  All degrees share one matrix of inner products.
    coef0 : float, at least 0
        Zero makes the polynomial homogeneous; a negative number would not be positive semidefinite.
    gamma : float

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.polynomial(2)([[1.0, 2.0]])
    array([[36.]])
    >>> len(kw.polynomial())
    3
    """
    checked_number(coef0, "coef0 of a polynomial kernel", strict=False)
    checked_number(gamma, "gamma of a polynomial kernel")
    return family_of(Polynomial, degree, "the degree of a polynomial kernel", coef0, gamma, whole=True)


@accepts(gammas="gamma")
def sigmoid(gamma: Number | Numbers = 1.0, coef0: float = 0.0) -> Any:
    """Return sigmoid kernels ``tanh(gamma x.x' + coef0)``, which are **not** positive semidefinite in general.

    A training matrix with negative eigenvalues is refused; :class:`SimilarityClassifier` takes any similarities.

    Parameters
    ----------
    gamma : float or sequence of float
        One gives a kernel, a sequence a stack.
    coef0 : float
        Any number; a negative one makes the matrix indefinite almost surely.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.sigmoid(0.5)([[1.0, 1.0]]).round(3)
    array([[0.762]])
    """
    checked_number(coef0, "coef0 of a sigmoid kernel", low=-np.inf)
    return family_of(Sigmoid, gamma, "gamma of a sigmoid kernel", coef0)


@dataclass(eq=False, repr=False)
class Constant(Kernel, registered_as="constant"):
    """The same number for every pair; see :func:`constant`."""

    value: float = 1.0

    accepts_sparse = True

    @property
    def name(self) -> str:
        return "constant" if self.value == 1 else f"constant({readable(self.value)})"

    def _checked(self) -> float:
        return checked_number(self.value, "the value of a constant kernel", strict=False)

    def base(self, A: Any, B: Any) -> np.ndarray:
        return np.full((n_samples(A), n_samples(B)), self._checked())

    def base_diag(self, A: Any) -> np.ndarray:
        return np.full(n_samples(A), self._checked())

    def features(self, A: Any) -> np.ndarray:
        return np.full((n_samples(A), 1), sqrt(self._checked()))

    def rank(self, n_columns: int) -> int:
        return 1


def constant(value: float = 1.0) -> Constant:
    """Return the kernel that is the same number for every pair: a penalised intercept.

    >>> constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """
    checked_number(value, "the value of a constant kernel", strict=False)
    return Constant(value)
