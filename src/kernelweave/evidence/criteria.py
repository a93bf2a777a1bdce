"""Criteria by which kernel weights are chosen, with gradients and Hessians, and all scales of one mixture at once.

``a = V y`` are the coefficients, ``q = y'a``.  All three are positive and fall with the noise; derivatives are relative
to the value, in the weights themselves.

- REML: ``L = exp{[log|G| + f log(q/f)] / f}``, f the dimensions that the intercept leaves;
- leave-one-out: the mean of ``e_i^2``, ``e_i = a_i / M_ii``;
- folds: the mean of ``e_B^2`` over folds B, ``e_B = M_BB^-1 a_B``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics.namespace import cast, namespace, to_numpy
from .._typing import Array, Index
from .design import Design, Stored
from .points import Points

TINY = float(np.finfo(float).tiny)


@dataclass
class Look:
    """Values of a criterion for t targets, each at its own weights."""

    value: Array
    gradient: Array  # of the logarithm of the value, ``(t, m)``
    hessian: Array  # positive semidefinite, relative to the value, ``(t, m, m)``
    coef: Stored  # ``a = V y``, ``(n, t)``, where the kernels of the design are
    missed: Array  # sum of the squared errors of held-out samples: each by itself, or by folds

    @classmethod
    def empty(cls, design: Design, t: int) -> Look:
        """Return one to be filled in."""
        m = design.m
        return cls(
            np.empty(t), np.empty((t, m)), np.empty((t, m, m)), design.store(np.empty((design.n, t))), np.empty(t)
        )  # fmt: skip

    def put(self, at: Index | slice, other: Look) -> None:
        """Fill in some targets."""
        self.value[at], self.gradient[at], self.hessian[at] = other.value, other.gradient, other.hessian
        self.coef[:, at], self.missed[at] = other.coef, other.missed

    def some(self, at: Index) -> Look:
        """Return the values for some of the targets."""
        return Look(self.value[at], self.gradient[at], self.hessian[at], self.coef[:, at], self.missed[at])


class Criterion(ABC):
    """How kernel weights are evaluated; smaller is better."""

    name: str
    #: whether inverses in single precision are too coarse for it
    precise: bool = False

    @abstractmethod
    def scan(self, spectrum: Spectrum, factors: Array) -> Array:
        """Values ``(factors, t)`` at multiples of one mixture whose spectrum is known."""

    @abstractmethod
    def look(self, points: Points, Y: Stored) -> Look:
        """Evaluate targets ``(n, t)``, in the order of their points."""


class Reml(Criterion):
    """Restricted maximum likelihood of ``y ~ N(b, s^2 G)``, the variance s^2 and the intercept profiled out."""

    name = "reml"

    def scan(self, spectrum: Spectrum, factors: Array) -> Array:
        freedom, scaled = spectrum.design.freedom, np.multiply.outer(factors, spectrum.values)
        log_det = np.sum(np.log1p(scaled), axis=1)
        shrunk = spectrum.design.store(1.0 / (1.0 + scaled))
        forms = np.maximum(to_numpy(shrunk @ spectrum.rotated**2), TINY)
        return np.asarray(np.exp(log_det[:, None] / freedom + np.log(forms / freedom)))

    def look(self, points: Points, Y: Stored) -> Look:
        design, where = points.design, points.where
        coef, products = points.solve(Y)
        q = np.maximum(to_numpy((Y * coef).sum(0)), TINY)
        shares = to_numpy((products * coef).sum(1)).T / q[:, None]
        hessian = _gram(products, points.apply(products)) / q[:, None, None]
        hessian -= shares[:, :, None] * shares[:, None, :]
        # tr(M K_j) of every point
        traces = points.inverse.reshape(len(points.counts), -1) @ points.flat.T
        gradient = np.asarray(to_numpy(traces), dtype=float)[where] / design.freedom - shares
        value = np.exp(points.log_det[where] / design.freedom + np.log(q / design.freedom))
        leverage = design.store(np.maximum(points.leverage(), TINY).T)[:, where]
        return Look(value, gradient, hessian, coef, to_numpy(((coef / leverage) ** 2).sum(0)))


class LeaveOneOut(Criterion):
    """Mean squared error of samples that are left out one at a time."""

    name = "loo"

    def scan(self, spectrum: Spectrum, factors: Array) -> Array:
        values = []
        for factor in factors:
            shrunk = spectrum.shrunk(factor)
            leverage = np.maximum(to_numpy(spectrum.vectors**2 @ shrunk), TINY)
            coef = spectrum.vectors @ (shrunk[:, None] * spectrum.rotated)
            errors = coef / spectrum.design.store(leverage)[:, None]
            values.append(to_numpy((errors**2).mean(0)))
        return np.stack(values)

    def look(self, points: Points, Y: Stored) -> Look:
        design = points.design
        out = Look.empty(design, Y.shape[1])
        coef, products = points.solve(Y)
        turned = points.apply(products)
        leverages = np.maximum(points.leverage(), TINY)
        kernels = points.flat.reshape(design.kernels.shape)
        for p in range(len(points.counts)):
            at, M = points.members(p), points.inverse[p]
            leverage = design.store(leverages[p])[:, None]
            a = coef[:, at]
            e = a / leverage
            # derivatives of the errors, (m, n, t)
            J = -turned[:, :, at]
            for j in range(design.m):
                J[j] += e * cast(((M @ kernels[j]) * M).sum(1), e.dtype)[:, None]
            out.put(at, _of_errors(a, e, J / leverage))
        return out


class Folds(Criterion):
    """Mean squared error of ``folds``, disjoint positions of samples, that are left out one at a time."""

    name = "folds"
    precise = True  # blocks of M are inverted once more

    def __init__(self, folds: Sequence[Index]) -> None:
        self.folds = [np.asarray(fold) for fold in folds]

    def scan(self, spectrum: Spectrum, factors: Array) -> Array:
        values = []
        for factor in factors:
            shrunk = spectrum.shrunk(factor)
            a = spectrum.vectors @ (shrunk[:, None] * spectrum.rotated)
            missed = []
            for fold in self._places(a):
                part = spectrum.vectors[fold]
                missed.append((_solved((part * shrunk) @ part.T, a[fold]) ** 2).sum(0))
            values.append(to_numpy(sum(missed)) / sum(fold.size for fold in self.folds))
        return np.stack(values)

    def _places(self, like: Stored) -> list[Any]:
        """Folds as indices of the library of an array."""
        if isinstance(like, np.ndarray):
            return list(self.folds)
        return [namespace(like).asarray(fold, device=like.device) for fold in self.folds]

    def look(self, points: Points, Y: Stored) -> Look:
        design = points.design
        out = Look.empty(design, Y.shape[1])
        folds = self._places(Y)
        for p in range(len(points.counts)):
            at, M = points.members(p), cast(points.inverse[p], design.kernels.dtype)
            a = M @ Y[:, at]
            errors, slopes = [], []
            for fold in folds:
                block = M[fold][:, fold]
                e = _solved(block, a[fold])
                without = a - M[:, fold] @ e  # the coefficients of a fit without the fold
                turned = M[fold] @ design.times(without)
                slope = _solved(block, turned.swapaxes(0, 1).reshape(len(fold), -1))
                errors.append(e)
                slopes.append(-slope.reshape(len(fold), design.m, -1).swapaxes(0, 1))
            xp = namespace(Y)
            out.put(at, _of_errors(a, xp.concatenate(errors, axis=0), xp.concatenate(slopes, axis=1)))
        return out


def _gram(A: Stored, B: Stored) -> Array:
    """``sum_i A_jit B_kit``, ``(t, m, m)``, which is known to be symmetric in j and k."""
    m, _, t = A.shape
    out = np.empty((t, m, m))
    for j in range(m):
        for k in range(j, m):
            out[:, j, k] = out[:, k, j] = to_numpy((A[j] * B[k]).sum(0))
    return out


def _of_errors(a: Stored, e: Stored, J: Stored) -> Look:
    """Value and derivatives of a mean square, from errors ``(h, t)`` and their derivatives ``(m, h, t)``."""
    missed = to_numpy((e**2).sum(0))
    total = np.maximum(missed, TINY)
    gradient = 2.0 * to_numpy((J * e).sum(1)).T / total[:, None]
    hessian = 2.0 * _gram(J, J) / total[:, None, None]
    return Look(missed / len(e), gradient, hessian, a, missed)


def _solved(block: Stored, B: Stored) -> Stored:
    """``block^-1 B`` of a part of M, rows and columns brought to one size: they differ like the samples' weights."""
    places = np.arange(len(block))
    diagonal = block[places, places]
    unit = namespace(block).where(diagonal > 0, diagonal, 1.0) ** -0.5
    scaled = unit[:, None] * block * unit
    return unit[:, None] * namespace(block).linalg.solve(scaled, unit[:, None] * B)


def log_likelihood(design: Design, weights: Array, Y: Array) -> Array:
    """Largest log-likelihood over the noise's variance, of targets ``(n, t)`` at the same weights ``(m,)``.

    With an intercept it is the restricted one, up to a constant of the samples' weights alone; without one it is the
    log marginal likelihood of a Gaussian process with noise.
    """
    points = Points(design, weights[None], np.array([Y.shape[1]]))
    value = Reml().look(points, design.store(design.targets(Y))).value
    return np.asarray(-0.5 * design.freedom * (np.log(2.0 * np.pi) + 1.0 + np.log(value)))


class Spectrum:
    """Eigenvalues and vectors of ``sum_j w_j K_j``, with targets in their coordinates.

    ``V`` at a factor r is ``(I + r sum_j w_j K_j)^-1``.  The direction of the intercept is none of the vectors.
    """

    def __init__(self, design: Design, weights: Array, Y: Stored) -> None:
        self.design = design
        mixed = (design.store(weights[None]) @ design.flat).reshape(1, design.n, design.n)
        eigh = namespace(mixed).linalg.eigh
        if np.any(design.direction):
            k = design.pivot
            others = np.delete(np.arange(design.n), k)
            values, vectors = eigh(design.reflected(mixed)[0][others][:, others])
            # back to the samples, by the other columns of the reflection
            u = design.store(design.direction)
            along = u[others] @ vectors
            self.vectors = design.store(np.empty((design.n, design.n - 1)))
            self.vectors[others] = vectors - u[others][:, None] * along / (1.0 + u[k])
            self.vectors[k] = -along
        else:
            values, self.vectors = eigh(mixed[0])
        self.values = np.maximum(to_numpy(values), 0.0)
        self.rotated = self.vectors.T @ Y

    def shrunk(self, factor: float) -> Stored:
        """Eigenvalues of V at a factor."""
        return self.design.store(1.0 / (1.0 + factor * self.values))
