"""The objective that all problems share, and the judge that bounds it from both sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...losses import Hinge
from ...norms import Maximum
from ...problems import FixedSolution, solve_fixed
from ...problems.certificate import Array
from ..losses import SimilarityLoss, make_similarity_loss
from ..points import DualPoint, SimilarityCertificate, SimilarityPoint
from ._variables import KernelVariables

__all__ = ["SimilarityProblem"]


class SimilarityProblem(KernelVariables):
    """Objective and bounds, which the four problems share; the subclasses say where the kernels live.

    Parameters
    ----------
    similarities : array of shape (m, n, n)
        Symmetric matrices, of comparable size.
    y : array of shape (n,) or (n, k)
        Labels -1 and 1; columns are several classes that share their kernels.
    C, rho : float
        Weights of the hinge loss and of the distance to the similarities.
    loss : str, SimilarityLoss or pair of functions
        ``l1``, ``frobenius``, ``squared``, or one's own.
    trace : float, optional
        tau, n by default.
    sample_weight : array of shape (n,), optional
    fit_intercept : bool
    """

    def __init__(
        self,
        similarities: Array,
        y: Array,
        C: float = 1.0,
        rho: float = 5.0,
        loss: Any = "frobenius",
        trace: float | None = None,
        sample_weight: Array | None = None,
        fit_intercept: bool = True,
    ) -> None:
        super().__init__(similarities, trace)
        self.y = np.asarray(y, dtype=float)
        weight = np.ones(self.y.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.c = float(C) * (weight if self.y.ndim == 1 else np.repeat(weight[:, None], self.y.shape[1], 1))
        self.rho = float(rho)
        self.loss: SimilarityLoss = make_similarity_loss(loss)
        self.fit_intercept = fit_intercept
        self.hinge, self.norm = Hinge(), Maximum()
        #: sweeps over the similarities and SVMs so far
        self.passes, self.svms = 0.0, 0

    # ---- the pieces of the objective ---------------------------------------------------------------------------

    def multipliers(self, kernels: Array) -> Array:
        """``Z_i``: subgradients of the losses at the kernels."""
        self.passes += 1.0
        return np.stack([self.loss.subgradient(X) for X in self.residuals(kernels)])

    def losses(self, kernels: Array) -> Array:
        """``L(K - S_i)``, for every i."""
        return np.array([self.loss.value(X) for X in self.residuals(kernels)])

    def gradient(self, multipliers: Array, beta: Array, shares: Array) -> Array:
        """Gradient in the kernels, (8), and (12) with the rho that it lacks."""
        return self.rho * self.pull(multipliers) + self.slope(beta, shares)

    def quad(self, products: Array, beta: Array) -> Array:
        """``q_i = beta' K_i beta``."""
        return np.sum(products * beta, axis=tuple(range(1, products.ndim)))

    def svm(
        self, kernels: Array, weights: Array, target: float, start: FixedSolution | None = None
    ) -> FixedSolution:
        """SVM on the mixed kernel, to a relative gap."""
        self.svms += 1
        K = self.mixed(kernels, weights)
        return solve_fixed(K, self.hinge, self.y, self.c, self.fit_intercept, target, start)

    def better_weights(self, kernels: Array, beta: Array) -> Array:
        """``1 / gamma`` with ``gamma ~ sqrt(q)``: (10) in closed form."""
        return self.norm.weights(self.quad(self.products(kernels, beta), beta))

    @property
    def scope(self) -> str:
        """Kernels and functions that the lower bound is for, in words."""
        functions = "no function" if self.y.ndim == 1 else f"no {self.y.shape[1]} functions"
        return f"at this rho, no {self.allowed_kernels} and {functions} on {'it' if self.shared else 'them'}"

    # ---- the judge ---------------------------------------------------------------------------------------------

    def primal(self, kernels: Array, beta: Array, weights: Array) -> tuple[float, Any]:
        """Objective at kernels, for the function of these coefficients, and its best intercept."""
        products = self.products(kernels, beta)
        blocks = weights * np.sqrt(np.maximum(self.quad(products, beta), 0.0))
        f = np.tensordot(weights, products, axes=1)
        b: Any = self.hinge.best_intercept(self.y, f, self.c) if self.fit_intercept else np.zeros(f.shape[1:])
        value = self.norm.half_square(blocks) + self.hinge.total(self.y, f + b, self.c)
        return value + self.rho * float(self.losses(kernels).sum()), b

    def bound(self, dual: DualPoint) -> float:
        """Lower bound of the optimum: LB in the text of this package, at a point that is first repaired."""
        beta = self.repair(dual.beta)
        shares = dual.shares / max(1.0, float(dual.shares.sum()))
        Z, conjugates = self._conjugates(dual)
        inner = float(np.sum(Z * self.targets)) + sum(conjugates)
        smallest = self.extremes(self.gradient(Z, beta, shares))[0]
        return self.gain(beta) - self.rho * inner + self.trace * float(smallest.sum())

    def certificate(self, point: Any) -> SimilarityCertificate:
        """Bounds from any feasible kernels and any dual points."""
        primal, intercept = self.primal(point.kernels, point.beta, point.weights)
        duals = point.duals or (self._free_bound(point),)
        values = [self.bound(dual) for dual in duals]
        best = int(np.argmax(values))
        if values[best] > primal + 1e-6 * max(abs(primal), abs(values[best])):
            raise ValueError(
                f"the lower bound {values[best]:.6g} is above the objective {primal:.6g}: the similarity loss is not "
                "convex, or its subgradient or conjugate is wrong"
            )
        return SimilarityCertificate(
            primal,
            values[best],
            self.repair(duals[best].beta),
            intercept,
            scope=self.scope,
            witness=duals[best],
        )

    def gain(self, beta: Array) -> float:
        """``1'a``."""
        return self.hinge.gain(self.y, beta, self.c)

    def repair(self, beta: Array) -> Array:
        """Nearest coefficients in the dual set."""
        return self.hinge.project(self.y, beta, self.c, self.fit_intercept)

    def _conjugates(self, dual: DualPoint) -> tuple[Array, list[float]]:
        """Multipliers and ``L*`` of them: from the conjugate, or by Fenchel's equality at kernels."""
        if dual.multipliers is not None:
            values = [self.loss.conjugate(Z) for Z in dual.multipliers]
            if None not in values:
                return dual.multipliers, [float(v) for v in values if v is not None]
        if dual.kernels is None:
            raise ValueError("a bound needs kernels where the loss has no conjugate")
        X = self.residuals(dual.kernels)
        Z = self.multipliers(dual.kernels)
        return Z, [float(np.sum(z * x)) - self.loss.value(x) for z, x in zip(Z, X, strict=True)]

    def _free_bound(self, point: SimilarityPoint) -> DualPoint:
        """Nothing was proposed: all zero, which costs nothing; or the point's own where zero has no known conjugate."""
        zeros = np.zeros_like(self.targets)
        if self.loss.conjugate(zeros[0]) is not None:
            return DualPoint(np.zeros_like(self.y), np.full(self.k, 1.0 / self.k), zeros)
        return DualPoint(point.beta, 1.0 / point.weights, kernels=point.kernels)
