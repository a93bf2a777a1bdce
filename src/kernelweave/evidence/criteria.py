"""Three criteria by which kernel weights are judged, each with its gradient and a Gauss-Newton or Fisher Hessian.

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

import numpy as np
from numpy.typing import NDArray

from .design import Array, Design, Points
from .spectrum import Spectrum

__all__ = ["Criterion", "Folds", "LeaveOneOut", "Look", "Reml", "log_likelihood"]

Index = NDArray[np.intp]
TINY = float(np.finfo(float).tiny)


@dataclass
class Look:
    """What a criterion says of t targets, each at its own weights.

    Attributes
    ----------
    value : array of shape (t,)
    gradient : array of shape (t, m)
        Of the logarithm of the value.
    hessian : array of shape (t, m, m)
        Positive semidefinite, relative to the value.
    coef : array of shape (n, t)
        ``a = V y``.
    missed : array of shape (t,)
        Sum of the squared errors of held-out samples: each by itself, or by folds.
    """

    value: Array
    gradient: Array
    hessian: Array
    coef: Array
    missed: Array

    @classmethod
    def empty(cls, n: int, m: int, t: int) -> Look:
        """Return one to be filled in."""
        return cls(np.empty(t), np.empty((t, m)), np.empty((t, m, m)), np.empty((n, t)), np.empty(t))

    def put(self, at: Index, other: Look) -> None:
        """Fill in some targets."""
        self.value[at], self.gradient[at], self.hessian[at] = other.value, other.gradient, other.hessian
        self.coef[:, at], self.missed[at] = other.coef, other.missed


class Criterion(ABC):
    """How kernel weights are judged; smaller is better."""

    name: str
    #: what an unneeded kernel gains by chance is about this over n: less does not count
    chance: float = 4.0

    @abstractmethod
    def scan(self, spectrum: Spectrum, factor: float) -> Array:
        """Values ``(t,)`` at a multiple of one mixture whose spectrum is known."""

    @abstractmethod
    def look(self, points: Points, Y: Array, members: Sequence[Index]) -> Look:
        """Judge targets, ``members[p]`` of them at point p; every column of Y belongs to one point."""


class Reml(Criterion):
    """Restricted maximum likelihood of ``y ~ N(b, s^2 G)``, the variance s^2 and the intercept profiled out."""

    name = "reml"

    def scan(self, spectrum: Spectrum, factor: float) -> Array:
        freedom = spectrum.design.freedom
        log_det = float(np.sum(np.log1p(factor * spectrum.values)))
        forms = np.maximum(spectrum.forms(factor), TINY)
        return np.asarray(np.exp(log_det / freedom + np.log(forms / freedom)))

    def look(self, points: Points, Y: Array, members: Sequence[Index]) -> Look:
        design = points.design
        out = Look.empty(design.n, design.m, Y.shape[1])
        log_det, where = points.log_det(), _point_of(members, Y.shape[1])
        for p, at in enumerate(members):
            out.coef[:, at] = points.solve(p, Y[:, at])
        products = design.times(out.coef)
        q = np.maximum(np.sum(Y * out.coef, axis=0), TINY)
        shares = np.einsum("jit,it->tj", products, out.coef) / q[:, None]
        for p, at in enumerate(members):
            halves = points.half_solve(p, products[:, :, at].transpose(1, 0, 2).reshape(design.n, -1))
            halves = halves.reshape(design.n, design.m, at.size).transpose(2, 1, 0)
            out.hessian[at] = halves @ halves.transpose(0, 2, 1) / q[at, None, None]
        out.hessian -= shares[:, :, None] * shares[:, None, :]
        inverse = points.invert()
        traces = inverse.reshape(len(inverse), -1) @ design.folded
        out.gradient[:] = traces[where] / design.freedom - shares
        out.value[:] = np.exp(log_det[where] / design.freedom + np.log(q / design.freedom))
        leverage = np.diagonal(inverse, axis1=1, axis2=2) - design.direction**2
        out.missed[:] = np.sum((out.coef / np.maximum(leverage, TINY)[where].T) ** 2, axis=0)
        return out


class LeaveOneOut(Criterion):
    """Mean squared error of samples that are left out one at a time."""

    name = "loo"

    def scan(self, spectrum: Spectrum, factor: float) -> Array:
        errors = spectrum.solved(factor) / np.maximum(spectrum.leverage(factor), TINY)[:, None]
        return np.asarray(np.mean(errors**2, axis=0))

    def look(self, points: Points, Y: Array, members: Sequence[Index]) -> Look:
        design = points.design
        out = Look.empty(design.n, design.m, Y.shape[1])
        for inverse, at in zip(points.invert(), members, strict=True):
            V = _symmetric(inverse)
            leverage = np.maximum(np.diagonal(V) - design.direction**2, TINY)[:, None]
            a = V @ Y[:, at]
            e = a / leverage
            # derivatives of the errors, (m, n, t)
            J = -(V @ design.times(a))
            for j in range(design.m):
                J[j] += e * np.einsum("il,il->i", V @ design.kernels[j], V)[:, None]
            out.put(at, _of_errors(a, e, J / leverage))
        return out


class Folds(Criterion):
    """Mean squared error of folds that are left out one at a time.

    Parameters
    ----------
    folds : list of arrays
        Positions of the samples of each fold, disjoint.
    """

    name = "folds"

    def __init__(self, folds: Sequence[Index]) -> None:
        self.folds = [np.asarray(fold) for fold in folds]

    def scan(self, spectrum: Spectrum, factor: float) -> Array:
        a = spectrum.solved(factor)
        total = np.zeros(a.shape[1])
        for fold in self.folds:
            total += np.sum(_solved(spectrum.block(factor, fold), a[fold]) ** 2, axis=0)
        return np.asarray(total / self._held)

    @property
    def _held(self) -> int:
        return sum(fold.size for fold in self.folds)

    def look(self, points: Points, Y: Array, members: Sequence[Index]) -> Look:
        design = points.design
        out = Look.empty(design.n, design.m, Y.shape[1])
        for inverse, at in zip(points.invert(), members, strict=True):
            V = _symmetric(inverse)
            M = V - np.multiply.outer(design.direction, design.direction)
            a = V @ Y[:, at]
            errors, slopes = [], []
            for fold in self.folds:
                block = M[np.ix_(fold, fold)]
                e = _solved(block, a[fold])
                without = a - M[:, fold] @ e  # the coefficients of a fit without the fold
                turned = V[fold] @ design.times(without)
                slope = _solved(block, turned.transpose(1, 0, 2).reshape(fold.size, -1))
                errors.append(e)
                slopes.append(-slope.reshape(fold.size, design.m, -1).transpose(1, 0, 2))
            out.put(at, _of_errors(a, np.concatenate(errors), np.concatenate(slopes, axis=1)))
        return out


def _of_errors(a: Array, e: Array, J: Array) -> Look:
    """Value and derivatives of a mean square, from errors ``(h, t)`` and their derivatives ``(m, h, t)``."""
    missed = np.sum(e**2, axis=0)
    total = np.maximum(missed, TINY)
    gradient = 2.0 * np.einsum("jit,it->tj", J, e) / total[:, None]
    rows = J.transpose(2, 0, 1)
    hessian = 2.0 * (rows @ rows.transpose(0, 2, 1)) / total[:, None, None]
    return Look(missed / len(e), gradient, hessian, a, missed)


def _solved(block: Array, B: Array) -> Array:
    """``block^-1 B`` of a part of M, which is singular where the rest has no say in the intercept."""
    return np.asarray(np.linalg.solve(block, B))


def _symmetric(upper: Array) -> Array:
    """The matrix whose upper triangle is given."""
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def _point_of(members: Sequence[Index], t: int) -> Index:
    """Point of every target."""
    where = np.empty(t, dtype=np.intp)
    for p, at in enumerate(members):
        where[at] = p
    return where


def log_likelihood(design: Design, weights: Array, Y: Array) -> Array:
    """Largest log-likelihood over the noise's variance, of targets ``(n, t)`` at the same weights ``(m,)``.

    With an intercept it is the restricted one, up to a constant of the samples' weights alone; without one it is the
    log marginal likelihood of a Gaussian process with noise.
    """
    points = Points(design, weights[None])
    everyone = [np.arange(Y.shape[1])]
    value = Reml().look(points, design.targets(Y), everyone).value
    return np.asarray(-0.5 * design.freedom * (np.log(2.0 * np.pi) + 1.0 + np.log(value)))
