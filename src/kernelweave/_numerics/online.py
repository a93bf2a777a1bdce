"""Steps on single samples for (2, r)-norm MKL (OBSCURE, Pegasos, UFO), and exact ascent on the same dual.

Every kernel j has ``theta_j = sum_i a_i phi_j(x_i)`` with the same coefficients a ``(n, k)``, and ``f = sum_j c_j
theta_j`` one factor per kernel.  A step needs the sample's products ``p (m, k)`` with all theta_j: kept for all
samples, ``P (k, m, n)``, or made from ``W = theta (k, D)`` where kernels have explicit features.  True coefficients and
products are ``scalars[SIG]`` times the stored ones, so that shrinking costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from .compiled import inner, njit
from .svrg import unit_coefficient

#: kind of a loss that takes a row together; the others are those of ``_numerics.svrg``
MULTICLASS = 10
#: which rule steps follow
FIXED_STEP, STRONGLY_CONVEX, UFO = 1, 2, 3
#: places in ``scalars``
SIG, NORM, TIME, EXTRA, SUM_SIG, UPDATES = 0, 1, 2, 3, 4, 5
FAST = {"contract", "reassoc", "nsz"}
# Handing a tuple to a compiled function counts a reference to each of its arrays: what is called within a step takes
# arrays one by one, or is inlined.


class Steps(NamedTuple):
    """How steps are taken; the letters are those of [OJC10]."""

    rule: int  # ``FIXED_STEP``, ``STRONGLY_CONVEX`` or ``UFO``
    q: float  # dual exponent of the block norm
    lam: float  # weight of the regulariser beside the mean loss
    eta: float  # length of fixed steps
    radius: float  # of the ball of strongly convex ones
    cut: float  # what UFO's threshold grows by in a step


class Work(NamedTuple):
    """All but the order of the samples and their products: the last arguments of the steps, in their order."""

    share: Array  # weights of the samples in the mean loss, ``(n,)``
    coefficients: Coefficients
    norms: Norms
    steps: Steps
    loss: Any  # a ``Derivative``


class Features(NamedTuple):
    """Explicit features: rows ``Z``, block j from column ``starts[j]`` on, its products times ``scale[j]``."""

    Z: Array
    starts: np.ndarray[Any, np.dtype[np.int64]]
    scale: Array


class Coefficients(NamedTuple):
    """Stored coefficients and the sums that averages and dual points are made of, all ``(n, k)``, changed in place."""

    A: Array  # stored coefficients
    H: Array  # what ``scalars[SUM_SIG] A`` is more than the sum of the true coefficients after all steps
    window: Array  # sums of the negative gradients of the samples' losses, of which dual points are made


class Norms(NamedTuple):
    """Norms of the blocks, and what follows from them; steps change them in place."""

    sq: Array  # ``|theta_j|^2``
    factors: Array  # the factors c_j of the function
    scalars: Array  # scale, norm, number of steps and the like, at the places ``SIG`` to ``UPDATES``


@njit(cache=True)
def block_factors(sq, q, cut, c):
    """Factors ``(v_j/|theta_j|) (v_j/|v|_q)^(q-2)``, ``v_j = max(|theta_j| - cut, 0)``; return ``|v|_q``.

    In ratios to the largest norm, because q grows without bound as r falls to 1.
    """
    top = 0.0
    for j in range(sq.size):
        top = max(top, np.sqrt(max(sq[j], 0.0)) - cut)
    if top <= 0.0:
        c[:] = 0.0
        return 0.0
    total = 0.0
    for j in range(sq.size):
        v = max(np.sqrt(max(sq[j], 0.0)) - cut, 0.0) / top
        if v > 0.0:
            total += v**q
    size = total ** (1.0 / q)
    for j in range(sq.size):
        norm = np.sqrt(max(sq[j], 0.0))
        v = max(norm - cut, 0.0)
        if v > 0.0:
            c[j] = (v / norm) * (v / (top * size)) ** (q - 2.0)
        else:
            c[j] = 1.0 if q == 2.0 and cut == 0.0 else 0.0
    return top * size


@inner()
def _coefficient_row(loss, i, scores, z):
    """``-gradient`` of the loss of sample i at its scores; return its squared length."""
    k, low, high = scores.size, loss.low, loss.high
    if loss.kind == MULTICLASS:
        own = 0
        for y in range(k):
            z[y] = 0.0
            if high[i, y] > 0.0:
                own = y
        worst, best = -1, -np.inf
        for y in range(k):
            if y != own and scores[y] > best:
                worst, best = y, scores[y]
        if worst < 0 or 1.0 - scores[own] + best <= 0.0:
            return 0.0
        z[own], z[worst] = 1.0, -1.0
        return 2.0
    total, target = 0.0, loss.target
    for y in range(k):
        z[y] = unit_coefficient(loss.kind, target[i, y], loss.width, low[i, y], high[i, y], scores[y])
        total += z[y] * z[y]
    return total


@njit(cache=True, inline="always")
def _shrink(sq, scalars, factor):
    """Multiply the function by ``factor``."""
    scalars[SIG] *= factor
    scalars[NORM] *= factor
    for j in range(sq.size):
        sq[j] *= factor * factor


@njit(cache=True)
def _step(i, share, p, scores, unit, z, kii, coefficients, norms, steps, loss):
    """Take a step on sample i: move norms, scale and coefficients; return whether its coefficients change.

    ``p`` are its products; ``scores``, ``unit`` (the negative gradient of its loss) and ``z`` (what its stored
    coefficients gain) are overwritten.
    """
    sq, c, scalars = norms.sq, norms.factors, norms.scalars
    q, lam = steps.q, steps.lam
    m, k = p.shape
    scale, over = scalars[SIG], q
    if steps.rule == UFO:
        scalars[TIME] += 1.0
        # theta / (lam t), soft-thresholded: the factors are those of the last update but for the threshold, which grows
        if steps.cut > 0.0:
            scalars[NORM] = block_factors(sq, q, steps.cut * (scalars[TIME] - 1.0), c)
        scale, over = 1.0 / (lam * max(scalars[TIME] - 1.0, 1.0)), 1.0
    for y in range(k):
        total = 0.0
        for j in range(m):
            total += c[j] * p[j, y]
        scores[y] = total * scale / over
    size = _coefficient_row(loss, i, scores, unit) * share * share
    for y in range(k):
        z[y] = unit[y] * share
    if steps.rule == FIXED_STEP:
        step = steps.eta
    elif steps.rule == UFO:
        step = 1.0
    else:
        scalars[TIME] += 1.0
        length = 0.0  # of the gradient, in the dual norm
        if size > 0.0:
            top = 0.0
            for j in range(m):
                top = max(top, kii[j])
            if top > 0.0:
                total = 0.0
                for j in range(m):
                    total += (kii[j] / top) ** (0.5 * q)
                length = np.sqrt(size * top) * total ** (1.0 / q)
        d = lam * scalars[TIME] + scalars[EXTRA]
        pull = (lam * scalars[NORM] / q + length) / steps.radius
        scalars[EXTRA] += 0.5 * (np.sqrt(d * d + q * pull * pull) - d)
        d = lam * scalars[TIME] + scalars[EXTRA]
        step = q / d
        _shrink(sq, scalars, 1.0 - lam / d)
    sig = scalars[SIG]
    moved = size > 0.0
    if moved:
        for j in range(m):
            along = 0.0
            for y in range(k):
                along += z[y] * p[j, y]
            sq[j] = max(sq[j] + 2.0 * step * sig * along + step * step * size * kii[j], 0.0)
        scalars[NORM] = block_factors(sq, q, steps.cut * scalars[TIME] if steps.rule == UFO else 0.0, c)
        scalars[UPDATES] += 1.0
    if steps.rule == STRONGLY_CONVEX and scalars[NORM] > q * steps.radius:
        factor = q * steps.radius / scalars[NORM]
        _shrink(sq, scalars, factor)
        scalars[NORM] = q * steps.radius
        # the coefficients that this step adds are shrunk with the rest
        sig *= factor
        step *= factor
    if moved:
        A, H, window = coefficients
        for y in range(k):
            z[y] *= step / sig if sig > 0.0 else 0.0
            window[i, y] += unit[y]
            A[i, y] += z[y]
            H[i, y] += scalars[SUM_SIG] * z[y]
    return moved


@njit(cache=True)
def _fold(coefficients, stored, scalars):
    """Multiply the scale into what is stored, before it underflows."""
    A, H, _ = coefficients
    H -= scalars[SUM_SIG] * A
    A *= scalars[SIG]
    stored *= scalars[SIG]
    scalars[SUM_SIG] = 0.0
    scalars[SIG] = 1.0


@njit(cache=True, fastmath=FAST)
def kernel_steps(order, where, rows, P, diag, share, coefficients, norms, steps, loss):
    """Step on the samples in ``order``; ``rows[:, where[t]]`` are the kernels' rows of the t-th, ``diag`` diagonals."""
    k, m, n = P.shape
    p, scores, unit, z = np.empty((m, k)), np.empty(k), np.empty(k), np.empty(k)
    scalars = norms.scalars
    for t in range(order.size):
        i = order[t]
        for j in range(m):
            for y in range(k):
                p[j, y] = P[y, j, i]
        if _step(i, share[i], p, scores, unit, z, diag[:, i], coefficients, norms, steps, loss):
            for y in range(k):
                if z[y] != 0.0:
                    for j in range(m):
                        row, out, x = rows[j, where[t]], P[y, j], z[y]
                        for l in range(n):
                            out[l] += x * row[l]
        scalars[SUM_SIG] += scalars[SIG]
        if scalars[SIG] < 1e-8:
            _fold(coefficients, P, scalars)


@njit(cache=True, fastmath=FAST)
def feature_steps(order, where, features, W, diag, share, coefficients, norms, steps, loss):
    """``kernel_steps`` on explicit features, whose row ``where[t]`` is the t-th sample's; ``W`` in the place of P."""
    Z, starts, scale = features
    k, m = W.shape[0], scale.size
    p, scores, unit, z = np.empty((m, k)), np.empty(k), np.empty(k), np.empty(k)
    scalars = norms.scalars
    for t in range(order.size):
        i = order[t]
        x = Z[where[t]]
        read_features(x, starts, scale, W, p)
        if _step(i, share[i], p, scores, unit, z, diag[:, i], coefficients, norms, steps, loss):
            for y in range(k):
                if z[y] != 0.0:
                    out, by = W[y], z[y]
                    for l in range(x.size):
                        out[l] += by * x[l]
        scalars[SUM_SIG] += scalars[SIG]
        if scalars[SIG] < 1e-8:
            _fold(coefficients, W, scalars)


@inner(fastmath=FAST)
def read_features(x, starts, scale, W, p):
    """Products ``p (m, k)`` of a sample with features x."""
    for j in range(scale.size):
        for y in range(W.shape[0]):
            total, w = 0.0, W[y]
            for l in range(starts[j], starts[j + 1]):
                total += x[l] * w[l]
            p[j, y] = scale[j] * total


# Exact ascent, row by row, on the same dual.


class OnlineRows(NamedTuple):
    """The dual variables and what they may do."""

    beta: Array  # coefficients ``(n, k)``; every row sums to zero
    s: Array  # ``beta' K_j beta``
    own: np.ndarray[Any, np.dtype[np.intp]]  # class of every row
    bound: Array  # upper bounds of the coefficients there; the others are at most 0
    q: float  # dual exponent of the block norm
    share: float  # gap of a row at which it is left alone


class _Buffers(NamedTuple):
    """Arrays for the work on one row: products, what coefficients change by, scores; and per kernel."""

    p: Array
    change: Array
    scores: Array
    factors: Array
    b: Array
    trial: Array


@inner()
def _pair_length(s, b, kii, gain, slope_low, most, q, trial, d):
    """Length, at most ``most``, of a move along which the slope falls from ``slope_low`` to 0; ``gain``: the loss's."""
    low, high, first = 0.0, most, slope_low
    slope_high = 0.0
    for attempt in range(60):
        if attempt == 0:
            x = most
        else:
            # regula falsi with the middle every other time: the slope falls along the move
            secant = low + (high - low) * slope_low / (slope_low - slope_high)
            x = 0.5 * (low + high) if attempt % 3 == 0 else secant
        for j in range(s.size):
            trial[j] = max(s[j] + 2.0 * x * b[j] + 2.0 * x * x * kii[j], 0.0)
        block_factors(trial, q, 0.0, d)
        slope = gain
        for j in range(s.size):
            slope -= d[j] * (b[j] + 2.0 * x * kii[j])
        if attempt == 0:
            if slope >= 0.0:
                return most
            slope_high = slope
            continue
        if slope > 0.0:
            low, slope_low = x, slope
        else:
            high, slope_high = x, slope
        if slope_low - slope_high <= 1e-12 * first or high - low <= 1e-14 * most:
            break
    return low


@njit(cache=True)
def _ascend_row(i, buffers, kii, rows):
    """Pairwise exact ascent within row i; norms, products and coefficients move along; return whether any did."""
    p, change, scores, d, b = buffers.p, buffers.change, buffers.scores, buffers.factors, buffers.b
    s, q, beta, own, bound = rows.s, rows.q, rows.beta[i], rows.own[i], rows.bound[i]
    m, k = p.shape
    change[:] = 0.0
    moved = False
    for _ in range(3 * k):
        block_factors(s, q, 0.0, d)
        top, under, along = 0, -1, 0.0
        for y in range(k):
            total = 0.0 if y == own else 1.0
            for j in range(m):
                total += d[j] * p[j, y]
            scores[y] = total
            along += beta[y] * total
            if total > scores[top]:
                top = y
            upper = bound if y == own else 0.0
            if beta[y] < upper and (under < 0 or total < scores[under]):
                under = y
        gap = bound * (scores[top] - scores[own]) + along
        if gap <= rows.share or under < 0 or scores[top] - scores[under] <= 0.0:
            break
        gain = (1.0 if under == own else 0.0) - (1.0 if top == own else 0.0)
        for j in range(m):
            b[j] = p[j, under] - p[j, top]
        most = (bound if under == own else 0.0) - beta[under]
        length = _pair_length(s, b, kii, gain, scores[top] - scores[under], most, q, buffers.trial, d)
        if length <= 0.0:
            break
        for j in range(m):
            s[j] = max(s[j] + 2.0 * length * b[j] + 2.0 * length * length * kii[j], 0.0)
            p[j, under] += length * kii[j]
            p[j, top] -= length * kii[j]
        full = length >= most
        beta[under] = (bound if under == own else 0.0) if full else beta[under] + length
        beta[top] -= length
        change[under] += length
        change[top] -= length
        moved = True
    return moved


@njit(cache=True, fastmath=FAST)
def ascend_kernel(order, where, kernels, P, diag, rows):
    """Exact ascent on the rows in ``order``, the t-th of which is ``kernels[:, where[t]]``; return how many moved."""
    k, m, n = P.shape
    buffers = _Buffers(np.empty((m, k)), np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m))
    p, change = buffers.p, buffers.change
    updates = 0
    for t in range(order.size):
        i = order[t]
        if rows.bound[i] <= 0.0:
            continue
        for j in range(m):
            for y in range(k):
                p[j, y] = P[y, j, i]
        if _ascend_row(i, buffers, diag[:, i], rows):
            updates += 1
            for y in range(k):
                if change[y] != 0.0:
                    for j in range(m):
                        row, out, x = kernels[j, where[t]], P[y, j], change[y]
                        for l in range(n):
                            out[l] += x * row[l]
    return updates


@njit(cache=True, fastmath=FAST)
def ascend_features(order, where, features, W, diag, rows):
    """``ascend_kernel`` on explicit features."""
    Z, starts, scale = features
    k, m = W.shape[0], scale.size
    buffers = _Buffers(np.empty((m, k)), np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m))
    change = buffers.change
    updates = 0
    for t in range(order.size):
        i = order[t]
        if rows.bound[i] <= 0.0:
            continue
        x = Z[where[t]]
        read_features(x, starts, scale, W, buffers.p)
        if _ascend_row(i, buffers, diag[:, i], rows):
            updates += 1
            for y in range(k):
                if change[y] != 0.0:
                    out, by = W[y], change[y]
                    for l in range(x.size):
                        out[l] += by * x[l]
    return updates
