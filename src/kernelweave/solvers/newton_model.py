"""Quadratic models of J and their minimisation over the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .._numerics.quadratic import minimise_on_set, solve_qp
from .._typing import Array, Index
from ..norms import Norm
from ..problems import Oracle, Root
from .cutting_planes import lowest_on_simplex

#: kernels that a model starts from, and how many of them whatever their weights are
WORKING_SET, STEEPEST = 400, 20
#: slopes of a model, relative to those of J at its centre, that are zero
INSIDE = 1e-6


class Cut(NamedTuple):
    """A linearisation of J: ``J(d) >= gain - d'quad / 2``, from the coefficients beta."""

    gain: float
    quad: Array
    beta: Array


class Proposal(NamedTuple):
    """Where a model is lowest, and what it promises.

    ``decrease`` is the fall of J that it predicts.  ``beta``, where several cuts meet at the minimiser, combines their
    coefficients by the multipliers: a point of the dual set whose value is at least ``bound`` (Jensen).  Where J is
    polyhedral no single inner solution certifies the optimum, but such a combination does.
    """

    weights: Array
    decrease: float
    beta: Array | None = None
    bound: float = -np.inf


class CutModel:
    """``max over cuts + (z - d)'(bend A'A + damping I)(z - d) / 2`` on a set of weights.

    The cut at the centre is always in the model.  Other cuts enter only where they lie above the model's value at its
    minimiser: near a smooth optimum the curvature already accounts for them, and counting both would shorten the
    Newton steps.  Weights that the norm holds fixed take no part: the model is one of the others.
    """

    def __init__(
        self, centre: Oracle, cuts: list[Cut], norm: Norm, bend: float = 1.0, damping: float = 0.0
    ) -> None:
        self.norm = norm.learnt_norm
        self.learnt = norm.learnt(centre.weights.size)
        held = centre.weights.copy()
        held[self.learnt] = 0.0
        self.held = held
        self.cuts = cuts
        self.d = centre.weights[self.learnt]
        self.bend = bend
        known = centre.root if bend > 0.0 else None
        self.root = Root([], self.d.size) if known is None else known.among(self.learnt)
        self.gains = np.array([cut.gain - 0.5 * float(held @ cut.quad) for cut in cuts])
        # a quadratic form below zero is rounding, and would say that no weight at all is best
        self.slopes = -0.5 * np.array([np.maximum(cut.quad[self.learnt], 0.0) for cut in cuts])
        # the value at the centre, from its own coefficients
        quad = np.maximum(centre.quad[self.learnt], 0.0)
        self.centre_slope = -0.5 * quad
        self.centre_gain = centre.inner.dual + float(0.5 * quad @ self.d)
        self.centre_beta = centre.inner.beta
        # a trace of damping makes the minimiser unique where kernels coincide
        self.damping = damping + 1e-9 * float(np.mean(quad))

    def minimise(self) -> Proposal:
        """Minimise the model; see ``Proposal``."""
        rows = np.zeros((1, self.d.size)) + self.centre_slope
        gains = np.array([self.centre_gain])
        included: list[int] = []
        z, multipliers, value = self.d, np.ones(1), 0.0
        for _ in range(30):
            z, multipliers = self._minimise_with(rows, gains)
            shift = z - self.d
            value = float(np.max(gains + rows @ z)) + self._bent(shift)
            heights = self.gains + self.slopes @ z
            scale = 1e-9 * abs(value)
            above = [k for k in np.argsort(-heights) if heights[k] > value + scale and k not in included][:5]
            if not above:
                break
            included += [int(k) for k in above]
            rows = np.vstack([rows, self.slopes[above]])
            gains = np.concatenate([gains, self.gains[above]])
        decrease = float(self.centre_gain + self.centre_slope @ self.d) - value
        weights = self.held.copy()
        weights[self.learnt] = z
        if not included:
            return Proposal(weights, decrease)
        multipliers = multipliers[: gains.size]
        betas = [self.centre_beta, *(self.cuts[k].beta for k in included)][: multipliers.size]
        used = slice(multipliers.size)
        return Proposal(weights, decrease, *self._combined(multipliers, gains[used], rows[used], betas))

    def _combined(
        self, multipliers: Array, gains: Array, slopes: Array, betas: list[Array]
    ) -> tuple[Array, float]:
        """Coefficients of several cuts in these shares, and the bound that they attain (Jensen)."""
        beta = np.asarray(
            sum(share * beta for share, beta in zip(multipliers, betas, strict=True) if share > 0)
        )
        return beta, float(multipliers @ gains) - self.norm.conjugate(-2.0 * (multipliers @ slopes))

    def bound(self) -> tuple[Array | None, float]:
        """Coefficients that combine those of the cuts to the best bound there is, and the bound; None: not known."""
        return None, -np.inf

    def _bent(self, shift: Array) -> float:
        """How much higher the model is than its cuts, so far from the centre."""
        curved = self.root.times(shift)
        return 0.5 * self.bend * float(curved @ curved) + 0.5 * self.damping * float(shift @ shift)

    def _gradient(self, shift: Array, rows: Array, multipliers: Array) -> Array:
        """Slopes of the model there, with the cuts in these shares."""
        curved = self.bend * self.root.transposed(self.root.times(shift))
        return rows.T @ multipliers + curved + self.damping * shift

    def _expanded(self, working: NDArray[np.intp], shift: Array) -> tuple[Array, Array]:
        """Hessian on a working set, and the slopes that the curvature adds there."""
        root = self.root.columns(working)
        hessian = self.bend * (root.T @ root)
        hessian.flat[:: working.size + 1] += self.damping
        return hessian, self.bend * (root.T @ self.root.times(shift)) + self.damping * shift[working]

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        """Minimise with these cuts; return the weights that are learnt and the multipliers of the cuts."""
        raise NotImplementedError


class SimplexModel(CutModel):
    """The model on the simplex, minimised on a working set of kernels."""

    working: NDArray[np.intp] | None = None

    def bound(self) -> tuple[Array | None, float]:
        scale = float(np.max(np.abs(self.slopes))) or 1.0  # dimensionless, for the tolerances' sake
        if not np.isfinite(scale + float(np.sum(self.gains))):
            return super().bound()
        try:
            _, _, shares = lowest_on_simplex((self.gains - self.gains[0]) / scale, self.slopes / scale)
        except FloatingPointError:  # the cuts are too far apart in size
            return super().bound()
        return self._combined(shares, self.gains, self.slopes, [cut.beta for cut in self.cuts])

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        if self.working is None:
            self.working = self._first_working_set()
        z, multipliers, self.working = self._on_working_sets(rows, gains, self.working)
        return z, multipliers

    def _first_working_set(self) -> NDArray[np.intp]:
        """The kernels in use and the steepest others; of very many in use (a uniform start) only the steepest."""
        if self.d.size <= STEEPEST:
            return np.arange(self.d.size)
        in_use = np.flatnonzero(self.d)
        steepest = np.argsort(self.centre_slope)
        if in_use.size > WORKING_SET:
            return np.sort(steepest[:WORKING_SET])
        return np.union1d(in_use, steepest[:STEEPEST])

    def _on_working_sets(
        self, rows: Array, gains: Array, working: NDArray[np.intp]
    ) -> tuple[Array, Array, NDArray[np.intp]]:
        """Solve on a working set, add the kernels that would lower the model, repeat."""
        z, multipliers = self.d, np.ones(1)
        entered = np.zeros(self.d.size, dtype=np.intp)  # how often
        for _ in range(50):
            z, multipliers = self._solve(rows, gains, working)
            gradient = self._gradient(z - self.d, rows, multipliers)
            price = float(gradient @ z)  # the multiplier of the sum, as z'(gradient - price) = 0
            reduced = gradient - price
            reduced[working] = 0.0
            slack = 1e-9 * float(np.max(np.abs(self.centre_slope)))
            entering = np.flatnonzero(reduced < -slack)
            if entering.size == 0:
                return z, multipliers, working
            best = entering[np.argsort(reduced[entering])[:40]]
            # kernels that stayed at zero leave, so that the set stays small; those that came back do not leave again,
            # or the last digits would send them in and out for ever
            stay = working[(z[working] > 0) | (entered[working] > 1)]
            entered[best] += 1
            working = np.union1d(stay, best)
        return z, multipliers, working

    def _solve(self, rows: Array, gains: Array, working: NDArray[np.intp]) -> tuple[Array, Array]:
        """Minimise on the working set; return all weights and the multipliers of the cuts."""
        # the model is expanded around weights on the working set; d itself may have others
        origin = np.zeros(self.d.size)
        origin[working] = self.d[working] if np.any(self.d[working] > 0) else 1.0
        origin /= np.sum(origin)
        scale = float(np.max(np.abs(self.centre_slope))) or 1.0  # dimensionless, for the tolerances' sake
        hessian, pull = self._expanded(working, origin - self.d)
        solve = self._solve_one_cut if gains.size == 1 else self._solve_cuts
        part, multipliers = solve(
            hessian / scale, pull / scale, rows[:, working] / scale, gains / scale, origin[working]
        )
        z = np.zeros(self.d.size)
        z[working] = part / np.sum(part)
        return z, multipliers

    def _solve_one_cut(
        self, hessian: Array, pull: Array, rows: Array, gains: Array, origin: Array
    ) -> tuple[Array, Array]:
        """A box QP in ``z - origin``, whose entries sum to zero: the SVM engine solves it, with exact zeros."""
        from .._numerics.smo import solve_few

        shift = solve_few(hessian, -rows[0] - pull, -origin, np.maximum(1.0 - origin, 0.0), 1e-10, 200_000)
        return without_traces(origin + shift, hessian, 1e-12), np.ones(1)

    def _solve_cuts(
        self, hessian: Array, pull: Array, rows: Array, gains: Array, origin: Array
    ) -> tuple[Array, Array]:
        """A QP in the weights and the height of the cuts, by an interior point method.

        Each weight is counted in a unit of its own where kernels differ by powers of ten, and their weights with them.
        """
        w, k = origin.size, gains.size
        unit = _units(origin, hessian)
        P = np.zeros((w + 1, w + 1))
        P[:w, :w] = hessian * np.outer(unit, unit)
        q = np.append(unit * (pull - hessian @ origin), 1.0)
        G = np.zeros((w + k, w + 1))
        G[:w, :w] = -np.eye(w)
        G[w:, :w] = rows * unit
        G[w:, w] = -1.0
        h = np.concatenate([np.zeros(w), gains[0] - gains])
        A = np.append(unit, 0.0)[None, :]
        x, multipliers = solve_qp(P, q, G, h, A, np.ones(1))
        # complementarity tells the zeros: there the multiplier is the larger of the two
        z = np.where((x[:w] > multipliers[:w]) & (x[:w] > 1e-10), unit * x[:w], 0.0)
        return z, multipliers[w:] / max(float(np.sum(multipliers[w:])), 1e-300)


def _units(weights: Array, hessian: Array) -> Array:
    """Sizes in which weights are counted: one, but for kernels so large that a tiny weight bends the model."""
    bend = np.sqrt(np.maximum(np.diagonal(hessian), 0.0))
    own = np.where(weights > 0, weights, 1.0 / np.maximum(bend, 1.0))
    return np.where(bend > 1e4, np.minimum(own, 1.0), 1.0)


def without_traces(weights: Array, hessian: Array, least: float) -> Array:
    """Weights with those at zero that are below the precision of the model and bend it by nothing.

    A kernel of size 1e12 does its work with a weight of 1e-12, and its curvature tells that from a trace.
    """
    bends = weights**2 * np.diagonal(hessian) > 1e-9
    return np.where((weights > least) | ((weights > 0) & bends), weights, 0.0)


def minimise_smooth_model(norm: Norm, quad: Array, root: Array, d: Array) -> Array | None:
    """Minimise ``-s'(z - d)/2 + |A (z - d)|^2 / 2 + penalty(z)`` over the weights of a norm whose maximiser is unique.

    Dualising the quadratic leaves the norm's own conjugate:
    ``max over w of -|w|^2/2 - w'A d - conjugate(s - 2 A'w)``, and the minimiser is ``weights(s - 2 A'w)``.  None where
    the model has its minimum inside the set, at a slope of zero that tells nothing of the weights.
    """
    if root.shape[0] == 0:
        return norm.weights(quad)
    # w lives in the range of A: the thinner of the two sides is used
    offset = root @ d
    # in units of the offset, which is what w is compared with: the tolerances are absolute
    unit = float(np.sqrt(offset @ offset)) or 1.0

    def negative(x: Array) -> tuple[float, Array]:
        w = unit * x
        tilted = quad - 2.0 * (root.T @ w)
        z = norm.weights(tilted)
        value = 0.5 * float(w @ w) + float(w @ offset) + norm.conjugate(tilted)
        return value / unit**2, (w + offset - root @ z) / unit

    result = minimize(negative, np.zeros(root.shape[0]), jac=True, method="L-BFGS-B",
                     options={"maxiter": 500, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
    tilted = quad - 2.0 * unit * (root.T @ result.x)
    if norm.learnt_norm.has_boundary and np.max(tilted) <= INSIDE * np.max(quad):
        return None
    return norm.weights(tilted)


#: weights below this share of the multiplier that holds them up are zero, as far as a barrier can tell
TRACE = 1e-2
#: kernels beyond which a working set is taken, and how often the set is asked for its steepest point to fill it
ALL, ASKED = 60, 6
#: what the model may be above its minimum on the whole set, as a share of its largest slope, and of what it falls by
SLACK, SHARE = 1e-7, 0.1
#: fall of the model, as a share of its height, after which no more kernels are asked for: that far from the optimum the
#: next model will know better, and a mixture of fewer kernels is read in less
FAR = 0.1


class SetModel(CutModel):
    """The model on a norm's own set of weights, minimised from the inside on a working set of kernels."""

    working: Index | None = None

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        if self.working is None:
            self.working = self._first_working_set()
        for _ in range(30):
            z, multipliers = self._on(self.working, rows, gains)
            # the steepest points of the whole set tell which kernels are missing
            gradient = self._gradient(z - self.d, rows, multipliers)
            fall = np.maximum(-2.0 * gradient, 0.0)
            above = float(gradient @ z) + self.norm.conjugate(fall)
            missing = np.setdiff1d(self._steepest(fall), self.working)
            if missing.size == 0 or self._enough(z, above, rows, gains):
                break
            self.working = np.union1d(self.working, missing)
        return z, multipliers

    def _enough(self, z: Array, above: float, rows: Array, gains: Array) -> bool:
        """Whether weights at which the model is so much above its minimum are worth a look at J."""
        height = float(np.max(gains + rows @ self.d))
        fall = height - float(np.max(gains + rows @ z)) - self._bent(z - self.d)
        steepest = float(np.max(np.abs(self.centre_slope)))
        return above <= max(SLACK * steepest, SHARE * fall) or fall > FAR * abs(height)

    def _first_working_set(self) -> Index:
        """All of few kernels; of many the steepest, and those in use unless they are as many (a uniform start)."""
        if self.d.size <= ALL:
            return np.arange(self.d.size)
        in_use = np.flatnonzero(self.d)
        steepest = self._steepest(-2.0 * self.centre_slope)
        return np.union1d(in_use, steepest) if in_use.size < self.d.size else steepest

    def _steepest(self, fall: Array) -> Index:
        """Kernels of the steepest point of the set, of the steepest without those, and so on."""
        left = fall.copy()
        for _ in range(ASKED):
            left[self.norm.weights(left) > 0] = 0.0
            if np.count_nonzero(left) <= max(left.size - ALL, 0):  # enough for once
                break
        return np.flatnonzero((left == 0.0) & (fall > 0))

    def _on(self, working: Index, rows: Array, gains: Array) -> tuple[Array, Array]:
        """Minimise on a working set; return all weights and the multipliers of the cuts."""
        norm, m = self.norm.restricted(working), working.size
        scale = float(np.max(np.abs(self.centre_slope))) or 1.0  # dimensionless, for the tolerances' sake
        here = self.d[working]
        near = norm.scaled(here) if np.any(here > 0) else norm.start(m)
        start = norm.inside(0.5 * near + 0.5 * norm.start(m))
        hessian = np.zeros((start.size, start.size))
        linear, slopes = np.zeros(start.size), np.zeros((gains.size, start.size))
        curved, pull = self._expanded(working, self.d)
        hessian[:m, :m], linear[:m] = curved / scale, -pull / scale
        slopes[:, :m] = rows[:, working] / scale
        place, bounds, multipliers = minimise_on_set(
            hessian, linear, slopes, (gains - gains[0]) / scale, norm.boundary, start
        )
        # complementarity tells the zeros: there the multiplier is the larger of the two, by far
        part = np.where(place[:m] > TRACE * bounds[:m], place[:m], 0.0)
        z = np.zeros(self.d.size)
        z[working] = norm.scaled(part if np.any(part > 0) else place[:m])
        return z, multipliers / max(float(np.sum(multipliers)), np.finfo(float).tiny)
