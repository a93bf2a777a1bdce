"""Learning kernels from similarities that are no kernels: problems (2), (4), (6) and (7) of [KTBB10] with
certificates.

Variables are kernels ``K`` (positive semi-definite, of trace tau) that stay near the similarities and serve an SVM:

    (4)  min over K of      omega(K) + rho sum_i L(K - S_i)                      one kernel for all similarities
    (6)  min over K_i of    Omega(K_1..K_m) + rho sum_i L(K_i - S_i)             one per similarity
    (7)  the same with every K_i on the eigenvectors of its S_i
    (2)  (4) without the trace                                                   IndSVM

omega is the SVM's value and ``Omega = max over a, gamma on the simplex of 1'a - 1/2 sum_i b'K_i b / gamma_i`` (10): MKL
with the block norm (2, inf), which is ``norms.Maximum``, and with one kernel the SVM again.  So (4) is (6) with one
kernel that has m losses, and everything below is written once.

Every problem is a saddle point, ``max over beta, gamma`` and, by the conjugate ``L(X) = max over Z of <Z, X> - L*(Z)``,
over multipliers ``Z_i``.  The kernels then enter linearly, and minimising over them is an eigenvalue:

    LB(beta, gamma, Z) = 1'a - rho sum_i (<Z_i, S_i> + L*(Z_i)) + tau sum_i lmin(rho Z_i - beta beta' / (2 gamma_i))

holds below the optimum for *any* beta in the dual set, gamma in the simplex and Z.  At ``Z_i = L'(K - S_i)`` this is
the one-point bound of the kernel K, at averages it is Fenchel-Jensen, at the kernel that is best for a fixed beta it is
the partial dual, the tight one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._numerics.matrices import clip_spectrum
from .._numerics.projections import project_simplex
from .._typing import Array
from ..losses import Hinge
from ..norms import Maximum
from ..problems import FixedSolution, solve_fixed
from ..problems.certificate import Certificate, Point
from .losses import SimilarityLoss, make_similarity_loss


@dataclass(frozen=True)
class DualPoint:
    """Point of a lower bound: coefficients, shares gamma, and multipliers, or kernels to take them from."""

    beta: Array
    shares: Array
    multipliers: Array | None = None
    kernels: Array | None = None


@dataclass(frozen=True)
class SimilarityPoint(Point):
    """Coefficients, weights ``1 / gamma`` of the kernels, the kernels, and points for the lower bound.

    ``kernels`` is ``(k, n, n)`` with k = 1 or m, for (7) the ``(m, n)`` eigenvalues.
    """

    kernels: Array = None  # type: ignore[assignment]
    duals: tuple[DualPoint, ...] = ()


@dataclass(frozen=True, repr=False)
class SimilarityCertificate(Certificate):
    """A certificate whose lower bound is recomputed from ``witness`` by ``problem.bound(witness)``."""

    witness: DualPoint | None = None

    def with_dual_of(self, other: Certificate) -> Certificate:
        """Return this primal value with the better of the two dual bounds."""
        if other.dual > self.dual and isinstance(other, SimilarityCertificate):
            return replace(self, dual=other.dual, dual_point=other.dual_point, witness=other.witness)
        return self


#: share of the identity in every kernel of (6) and (7): F is not Lipschitz where a gamma may vanish
FLOOR = 1e-6


def entropic_vector(logs: np.ndarray, total: float) -> np.ndarray:
    """``total * softmax(logs)``."""
    weights = np.exp(logs - np.max(logs))
    return weights * (total / np.sum(weights))


class SimilarityProblem:
    """Objective and bounds, which the four problems share; kernels that are no matrices redefine how they are used.

    Parameters
    ----------
    similarities : array of shape (m, n, n), or (n, n) for one
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

    #: one kernel with all the losses, or one per similarity
    shared: ClassVar[bool] = False
    #: the kernels that are minimised over, as they are read behind "no"
    allowed_kernels: ClassVar[str]
    #: dimensions of the array of kernels
    kernel_ndim: ClassVar[int] = 3

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
        stack = np.asarray(similarities, dtype=float)
        stack = stack[None] if stack.ndim == 2 else stack
        self.similarities = 0.5 * (stack + stack.transpose(0, 2, 1))
        #: matrices (or eigenvalues) to which the losses measure the distance
        self.targets = self.similarities
        #: numbers of similarities and of samples, and of kernels
        self.m, self.n = int(stack.shape[0]), int(stack.shape[1])
        self.k = 1 if self.shared else self.m
        self.trace = float(self.n if trace is None else trace)
        self.y = np.asarray(y, dtype=float)
        weight = np.ones(self.y.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.c = float(C) * (weight if self.y.ndim == 1 else np.repeat(weight[:, None], self.y.shape[1], 1))
        self.rho = float(rho)
        self.loss: SimilarityLoss = make_similarity_loss(loss)
        self.fit_intercept = fit_intercept
        self.hinge, self.norm = Hinge(), Maximum()
        #: sweeps over the similarities, SVMs and eigendecompositions so far
        self.passes, self.svms, self.decompositions = 0.0, 0, 0

    def residuals(self, kernels: Array) -> Array:
        """``K - S_i``, for every i; for (7) ``mu_i - lambda_i`` where the loss is one of eigenvalues."""
        return (kernels if kernels.ndim == self.targets.ndim else self.matrices(kernels)) - self.targets

    def pull(self, multipliers: Array) -> Array:
        """Add up what the multipliers ask of every kernel."""
        return multipliers.sum(axis=0, keepdims=True) if self.shared else multipliers

    def copies(self, weights: Array) -> Array:
        """Sum of one weight a similarity over the similarities of every kernel, to be multiplied with kernels."""
        total = np.array([weights.sum()]) if self.shared else weights
        return total.reshape(-1, *[1] * (self.kernel_ndim - 1))

    def products(self, kernels: Array, beta: Array) -> Array:
        """``K_i beta``."""
        return np.stack([K @ beta for K in kernels])

    def mixed(self, kernels: Array, weights: Array) -> Array:
        """Return the matrix ``sum_i weights_i K_i``, which an SVM sees."""
        return np.tensordot(weights, kernels, axes=1)

    def matrices(self, kernels: Array) -> Array:
        """Return the kernels as ``(k, n, n)``."""
        return kernels

    def slope(self, beta: Array, shares: Array) -> Array:
        """Derivative of Omega in the kernels, ``-beta beta' / (2 gamma_i)``."""
        columns = beta.reshape(self.n, -1)
        return np.asarray(-0.5 * (columns @ columns.T)) / shares[:, None, None]

    def extremes(self, gradient: Array) -> tuple[Array, Array]:
        """Smallest and largest eigenvalue of every gradient."""
        self.decompositions += self.k
        values: Array = np.asarray(np.linalg.eigvalsh(gradient), dtype=np.float64)
        return values[:, 0], values[:, -1]

    def project(self, kernels: Array) -> Array:
        """Nearest positive semi-definite matrices of trace tau: their eigenvalues are projected on a simplex."""
        self.decompositions += self.k
        nearest = []
        for K in kernels:
            values, vectors = np.linalg.eigh(K)
            moved = project_simplex(values, self.trace)
            kept = moved > 0
            nearest.append((vectors[:, kept] * moved[kept]) @ vectors[:, kept].T)
        return np.stack(nearest)

    def from_logs(self, logs: Array) -> Array:
        """``tau exp(B_i) / tr exp(B_i)``, with a floor where there are several kernels."""
        self.decompositions += self.k
        spectra = [np.linalg.eigh(B) for B in logs]
        kernels = np.stack([(V * entropic_vector(values, self.trace)) @ V.T for values, V in spectra])
        if not self.shared:
            kernels *= 1.0 - FLOOR
            kernels += FLOOR * self.trace / self.n * np.eye(self.n)
        return kernels

    def first_logs(self, uniform: bool = False) -> Array:
        """``log(.95 Proj(mean S) + .05 (tau/n) I)``, or of the identity."""
        if uniform:
            return np.zeros((self.k, self.n, self.n))
        logs = []
        for S in self.pull(self.targets) / self.copies(np.ones(self.m)):
            values, vectors = np.linalg.eigh(S)
            start = 0.95 * project_simplex(values, self.trace) + 0.05 * self.trace / self.n
            logs.append((vectors * np.log(start)) @ vectors.T)
        self.decompositions += self.k
        return np.stack(logs)

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

    def primal(self, kernels: Array, beta: Array, weights: Array) -> tuple[float, Any]:
        """Objective at kernels, for the function of these coefficients, and its best intercept."""
        products = self.products(kernels, beta)
        blocks = weights * np.sqrt(np.maximum(self.quad(products, beta), 0.0))
        f = np.tensordot(weights, products, axes=1)
        b: Any = self.hinge.best_intercept(self.y, f, self.c) if self.fit_intercept else np.zeros(f.shape[1:])
        value = self.norm.half_square(blocks) + self.hinge.total(self.y, f + b, self.c)
        return value + self.rho * float(self.losses(kernels).sum()), b

    def bound(self, dual: DualPoint) -> float:
        """Lower bound of the optimum: LB in the text of this module, at a point that is first repaired."""
        beta = self.repair(dual.beta)
        shares = dual.shares / max(1.0, float(dual.shares.sum()))
        Z, conjugates = dual.multipliers, []
        if Z is not None:
            conjugates = [value for value in map(self.loss.conjugate, Z) if value is not None]
        if Z is None or len(conjugates) < len(Z):  # Fenchel's equality at kernels
            if dual.kernels is None:
                raise ValueError("a bound needs kernels where the loss has no conjugate")
            X = self.residuals(dual.kernels)
            Z = self.multipliers(dual.kernels)
            conjugates = [float(np.sum(z * x)) - self.loss.value(x) for z, x in zip(Z, X, strict=True)]
        inner = float(np.sum(Z * self.targets)) + sum(conjugates)
        smallest = self.extremes(self.gradient(Z, beta, shares))[0]
        return self.hinge.gain(self.y, beta, self.c) - self.rho * inner + self.trace * float(smallest.sum())

    def certificate(self, point: Any) -> SimilarityCertificate:
        """Bounds from any feasible kernels and any dual points."""
        primal, intercept = self.primal(point.kernels, point.beta, point.weights)
        duals = point.duals
        if not duals:  # zero, which costs nothing, or the point's own where zero has no known conjugate
            zeros = np.zeros_like(self.targets)
            if self.loss.conjugate(zeros[0]) is not None:
                duals = (DualPoint(np.zeros_like(self.y), np.full(self.k, 1.0 / self.k), zeros),)
            else:
                duals = (DualPoint(point.beta, 1.0 / point.weights, kernels=point.kernels),)
        values = [self.bound(dual) for dual in duals]
        best = int(np.argmax(values))
        if values[best] > primal + 1e-6 * max(abs(primal), abs(values[best])):
            raise ValueError(
                f"the lower bound {values[best]:.6g} is above the objective {primal:.6g}: the similarity loss is not "
                "convex, or its subgradient or conjugate is wrong"
            )
        functions = "no function" if self.y.ndim == 1 else f"no {self.y.shape[1]} functions"
        scope = f"at this rho, no {self.allowed_kernels} and {functions} on {'it' if self.shared else 'them'}"
        beta, witness = self.repair(duals[best].beta), duals[best]
        return SimilarityCertificate(primal, values[best], beta, intercept, scope=scope, witness=witness)

    def repair(self, beta: Array) -> Array:
        """Nearest coefficients in the dual set."""
        return self.hinge.project(self.y, beta, self.c, self.fit_intercept)


class SingleKernelProblem(SimilarityProblem):
    """(4): one kernel near all the similarities."""

    shared = True
    allowed_kernels = "positive semidefinite kernel of trace n"


class SeparateKernelsProblem(SimilarityProblem):
    """(6): a kernel for every similarity."""

    allowed_kernels = "positive semidefinite kernels of trace n, one for every similarity,"


class RestrictedKernelsProblem(SimilarityProblem):
    """(7), summed to n: kernels are the eigenvalues mu_i on the eigenvectors of S_i.

    Losses of the eigenvalues are losses of vectors; the others need the matrices, but no decomposition.
    """

    allowed_kernels = "kernels of trace n on the eigenvectors of the similarities"
    kernel_ndim = 2

    def __init__(self, similarities: Array, y: Array, **parameters: Any) -> None:
        super().__init__(similarities, y, **parameters)
        self.decompositions += self.m
        spectra = zip(*(np.linalg.eigh(S) for S in self.similarities), strict=True)
        self.values, self.vectors = (np.stack(parts) for parts in spectra)
        if self.loss.spectral:
            self.targets = self.values

    def pull(self, multipliers: Array) -> Array:
        """Return the part of the multipliers on the eigenvectors."""
        if multipliers.ndim == 2:
            return multipliers
        return np.stack([np.sum(V * (Z @ V), axis=0) for V, Z in zip(self.vectors, multipliers, strict=True)])

    def products(self, kernels: Array, beta: Array) -> Array:
        columns = beta.reshape(self.n, -1)
        products = [V @ (mu[:, None] * (V.T @ columns)) for V, mu in zip(self.vectors, kernels, strict=True)]
        return np.stack([product.reshape(beta.shape) for product in products])

    def mixed(self, kernels: Array, weights: Array) -> Array:
        total = np.zeros((self.n, self.n))
        for V, mu, w in zip(self.vectors, kernels, weights, strict=True):
            root = V * np.sqrt(w * mu)
            total += root @ root.T
        return total

    def matrices(self, kernels: Array) -> Array:
        return np.stack([(V * mu) @ V.T for V, mu in zip(self.vectors, kernels, strict=True)])

    def slope(self, beta: Array, shares: Array) -> Array:
        columns = beta.reshape(self.n, -1)
        squares = np.stack([np.sum((V.T @ columns) ** 2, axis=1) for V in self.vectors])
        return -0.5 * squares / shares[:, None]

    def extremes(self, gradient: Array) -> tuple[Array, Array]:
        return gradient.min(axis=1), gradient.max(axis=1)

    def project(self, kernels: Array) -> Array:
        return np.stack([project_simplex(mu, self.trace) for mu in kernels])

    def from_logs(self, logs: Array) -> Array:
        kernels = np.stack([entropic_vector(B, self.trace) for B in logs])
        return (1.0 - FLOOR) * kernels + FLOOR * self.trace / self.n

    def first_logs(self, uniform: bool = False) -> Array:
        if uniform:
            return np.zeros((self.m, self.n))
        return np.log(0.95 * self.project(self.values) + 0.05 * self.trace / self.n)


class IndefiniteSVMProblem(SingleKernelProblem):
    """(2), IndSVM: the squared loss, and kernels of any trace.

    The loss is ``(1/n) |X|_F^2``, so that rho means the same as in (4).
    """

    allowed_kernels = "positive semidefinite kernel"

    def __init__(self, similarities: Array, y: Array, **parameters: Any) -> None:
        super().__init__(similarities, y, **{**parameters, "loss": "squared"})

    def project(self, kernels: Array) -> Array:
        self.decompositions += 1
        return clip_spectrum(kernels[0])[None]

    def bound(self, dual: DualPoint) -> float:
        """Value at the kernel that is best for these coefficients, (3): a minimum over all kernels, hence a bound."""
        beta = self.repair(dual.beta)
        weight = self.rho * self.m / self.n
        slope = self.slope(beta, np.ones(1))
        K = self.project(self.similarities.mean(axis=0)[None] - slope / (2.0 * weight))
        gain = self.hinge.gain(self.y, beta, self.c) + float(np.sum(slope * K))
        return gain + self.rho * float(self.losses(K).sum())
