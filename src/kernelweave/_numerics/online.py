"""Steps on single samples for (2, r)-norm MKL: OBSCURE, Pegasos and UFO, and exact ascent on the same dual.

Every kernel j has ``theta_j = sum_i a_i phi_j(x_i)`` with the same coefficients a ``(n, k)``; only the norms differ, so
``f = sum_j c_j theta_j`` with one factor per kernel.  A step needs the sample's products with all theta_j,
``p (m, k)``.  They are kept for all samples, ``P (k, m, n)``, or made from ``W = theta (k, D)`` where kernels have
explicit features.

True coefficients and products are ``scalars[SIG]`` times the stored ones, so that shrinking costs nothing.
"""

from __future__ import annotations

import numpy as np

from .compiled import njit
from .svrg import unit_coefficient

__all__ = [
    "FIXED_STEP", "MULTICLASS", "STRONGLY_CONVEX", "UFO", "ascend_features", "ascend_kernel", "block_factors",
    "features_epoch", "kernel_epoch",
]  # fmt: skip

#: kind of a loss that judges a row together; the others are those of ``_numerics.svrg``
MULTICLASS = 10
#: which rule steps follow
FIXED_STEP, STRONGLY_CONVEX, UFO = 1, 2, 3
#: places in ``scalars``
SIG, NORM, TIME, EXTRA, SUM_SIG, UPDATES = 0, 1, 2, 3, 4, 5
FAST = {"contract", "reassoc", "nsz"}


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


@njit(cache=True)
def _coefficient_row(kind, target, width, low, high, scores, z):
    """``-gradient`` of a sample's loss at its scores; return its squared length."""
    k = scores.size
    if kind == MULTICLASS:
        own = 0
        for y in range(k):
            z[y] = 0.0
            if high[y] > 0.0:
                own = y
        worst, best = -1, -np.inf
        for y in range(k):
            if y != own and scores[y] > best:
                worst, best = y, scores[y]
        if worst < 0 or 1.0 - scores[own] + best <= 0.0:
            return 0.0
        z[own], z[worst] = 1.0, -1.0
        return 2.0
    total = 0.0
    for y in range(k):
        z[y] = unit_coefficient(kind, target[y], width, low[y], high[y], scores[y])
        total += z[y] * z[y]
    return total


@njit(cache=True)
def _decide(
    p, kii, sq, c, scalars, rule, q, lam, eta, radius, cut, share, kind, target, width, low, high, scores, unit, z
):  # fmt: skip
    """One step on a sample: move the norms and the scale; return whether its coefficients change.

    ``unit`` is the negative gradient of its loss, ``z`` what the stored coefficients gain.
    """
    m, k = p.shape
    sig = scalars[SIG]
    scale = sig
    if rule == UFO:
        scalars[TIME] += 1.0
        # theta / (lam t), soft-thresholded: the factors are those of the last update but for the threshold, which grows
        if cut > 0.0:
            scalars[NORM] = block_factors(sq, q, cut * (scalars[TIME] - 1.0), c)
        scale = 1.0 / (lam * max(scalars[TIME] - 1.0, 1.0))
    for y in range(k):
        total = 0.0
        for j in range(m):
            total += c[j] * p[j, y]
        scores[y] = total * scale / (q if rule != UFO else 1.0)
    size = _coefficient_row(kind, target, width, low, high, scores, unit) * share * share
    for y in range(k):
        z[y] = unit[y] * share
    if rule == FIXED_STEP:
        step = eta
    elif rule == UFO:
        step = 1.0
    else:
        scalars[TIME] += 1.0
        zq = 0.0
        if size > 0.0:
            top = 0.0
            for j in range(m):
                top = max(top, kii[j])
            if top > 0.0:
                total = 0.0
                for j in range(m):
                    total += (kii[j] / top) ** (0.5 * q)
                zq = np.sqrt(size * top) * total ** (1.0 / q)
        d = lam * scalars[TIME] + scalars[EXTRA]
        pull = (lam * scalars[NORM] / q + zq) / radius
        scalars[EXTRA] += 0.5 * (np.sqrt(d * d + q * pull * pull) - d)
        step = q / (lam * scalars[TIME] + scalars[EXTRA])
        rho = 1.0 - lam / (lam * scalars[TIME] + scalars[EXTRA])
        scalars[SIG] *= rho
        scalars[NORM] *= rho
        for j in range(m):
            sq[j] *= rho * rho
        sig = scalars[SIG]
    moved = size > 0.0
    if moved:
        for j in range(m):
            along = 0.0
            for y in range(k):
                along += z[y] * p[j, y]
            sq[j] = max(sq[j] + 2.0 * step * sig * along + step * step * size * kii[j], 0.0)
        scalars[NORM] = block_factors(sq, q, cut * scalars[TIME] if rule == UFO else 0.0, c)
        scalars[UPDATES] += 1.0
    if rule == STRONGLY_CONVEX and scalars[NORM] > q * radius:
        shrink = q * radius / scalars[NORM]
        for j in range(m):
            sq[j] *= shrink * shrink
        scalars[SIG] *= shrink
        scalars[NORM] = q * radius
        # the coefficients that this step adds are shrunk with the rest
        sig *= shrink
        step *= shrink
    if moved:
        for y in range(k):
            z[y] *= step / sig if sig > 0.0 else 0.0
    return moved


@njit(cache=True)
def _enter(i, unit, z, A, H, window, scalars):
    """Note a change of a sample's coefficients: in A, for the average, and in what the dual point is made of."""
    for y in range(z.size):
        window[i, y] += unit[y]
        A[i, y] += z[y]
        H[i, y] += scalars[SUM_SIG] * z[y]


@njit(cache=True)
def _fold(A, H, stored, scalars):
    """Multiply the scale into what is stored, before it underflows."""
    H -= scalars[SUM_SIG] * A
    A *= scalars[SIG]
    stored *= scalars[SIG]
    scalars[SUM_SIG] = 0.0
    scalars[SIG] = 1.0


@njit(cache=True, fastmath=FAST)
def kernel_epoch(
    order, where, rows, P, diag, A, H, window, sq, c, scalars, rule, q, lam, eta, radius, cut,
    share, kind, target, width, low, high,
):  # fmt: skip
    """Step on the samples in ``order``; ``rows[:, where[t]]`` are the kernels' rows of the t-th."""
    k, m, n = P.shape
    p, z, scores, unit = np.empty((m, k)), np.empty(k), np.empty(k), np.empty(k)
    for t in range(order.size):
        i = order[t]
        for j in range(m):
            for y in range(k):
                p[j, y] = P[y, j, i]
        moved = _decide(p, diag[:, i], sq, c, scalars, rule, q, lam, eta, radius, cut, share[i], kind, target[i],
                        width, low[i], high[i], scores, unit, z)  # fmt: skip
        if moved:
            _enter(i, unit, z, A, H, window, scalars)
            for y in range(k):
                if z[y] != 0.0:
                    for j in range(m):
                        row, out, x = rows[j, where[t]], P[y, j], z[y]
                        for l in range(n):
                            out[l] += x * row[l]
        scalars[SUM_SIG] += scalars[SIG]
        if scalars[SIG] < 1e-8:
            _fold(A, H, P, scalars)


@njit(cache=True, fastmath=FAST)
def features_epoch(
    order, where, Z, starts, scale, W, diag, A, H, window, sq, c, scalars, rule, q, lam, eta, radius, cut,
    share, kind, target, width, low, high,
):  # fmt: skip
    """``kernel_epoch`` on explicit features: ``Z[where[t]]`` are the t-th sample's, block j from ``starts[j]``."""
    k, m = W.shape[0], scale.size
    p, z, scores, unit = np.empty((m, k)), np.empty(k), np.empty(k), np.empty(k)
    for t in range(order.size):
        i = order[t]
        x = Z[where[t]]
        _read_features(x, starts, scale, W, p)
        moved = _decide(p, diag[:, i], sq, c, scalars, rule, q, lam, eta, radius, cut, share[i], kind, target[i],
                        width, low[i], high[i], scores, unit, z)  # fmt: skip
        if moved:
            _enter(i, unit, z, A, H, window, scalars)
            for y in range(k):
                if z[y] != 0.0:
                    out, by = W[y], z[y]
                    for l in range(x.size):
                        out[l] += by * x[l]
        scalars[SUM_SIG] += scalars[SIG]
        if scalars[SIG] < 1e-8:
            _fold(A, H, W, scalars)


@njit(cache=True, fastmath=FAST)
def _read_features(x, starts, scale, W, p):
    for j in range(scale.size):
        for y in range(W.shape[0]):
            total, w = 0.0, W[y]
            for l in range(starts[j], starts[j + 1]):
                total += x[l] * w[l]
            p[j, y] = scale[j] * total


@njit(cache=True)
def _pair_length(s, b, kii, gain, slope_low, most, q, trial, d):
    """Best length of a move between two classes: where the slope of the dual falls to zero, at most ``most``.

    ``slope_low`` is the slope at zero, ``gain`` the loss's part of every slope.
    """
    low, high, first = 0.0, most, slope_low
    slope_high = 0.0
    for attempt in range(60):
        if attempt == 0:
            x = most
        else:
            # regula falsi with the middle every other time: the slope falls along the move
            x = (
                0.5 * (low + high)
                if attempt % 3 == 0
                else low + (high - low) * slope_low / (slope_low - slope_high)
            )
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
def _ascend_row(p, kii, s, beta, own, bound, q, share, d, b, trial, scores, change):
    """Pairwise exact ascent within one row; norms, products and coefficients move along; return whether any did."""
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
        if gap <= share or under < 0 or scores[top] - scores[under] <= 0.0:
            break
        gain = (1.0 if under == own else 0.0) - (1.0 if top == own else 0.0)
        for j in range(m):
            b[j] = p[j, under] - p[j, top]
        most = (bound if under == own else 0.0) - beta[under]
        length = _pair_length(s, b, kii, gain, scores[top] - scores[under], most, q, trial, d)
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
def ascend_kernel(order, where, rows, P, diag, beta, s, own, bound, q, share):
    """Exact ascent on the rows in ``order``; return how many moved."""
    k, m, n = P.shape
    p, change, scores = np.empty((m, k)), np.empty(k), np.empty(k)
    d, b, trial = np.empty(m), np.empty(m), np.empty(m)
    updates = 0
    for t in range(order.size):
        i = order[t]
        if bound[i] <= 0.0:
            continue
        for j in range(m):
            for y in range(k):
                p[j, y] = P[y, j, i]
        if _ascend_row(p, diag[:, i], s, beta[i], own[i], bound[i], q, share, d, b, trial, scores, change):
            updates += 1
            for y in range(k):
                if change[y] != 0.0:
                    for j in range(m):
                        row, out, x = rows[j, where[t]], P[y, j], change[y]
                        for l in range(n):
                            out[l] += x * row[l]
    return updates


@njit(cache=True, fastmath=FAST)
def ascend_features(order, where, Z, starts, scale, W, diag, beta, s, own, bound, q, share):
    """``ascend_kernel`` on explicit features."""
    k, m = W.shape[0], scale.size
    p, change, scores = np.empty((m, k)), np.empty(k), np.empty(k)
    d, b, trial = np.empty(m), np.empty(m), np.empty(m)
    updates = 0
    for t in range(order.size):
        i = order[t]
        if bound[i] <= 0.0:
            continue
        x = Z[where[t]]
        _read_features(x, starts, scale, W, p)
        if _ascend_row(p, diag[:, i], s, beta[i], own[i], bound[i], q, share, d, b, trial, scores, change):
            updates += 1
            for y in range(k):
                if change[y] != 0.0:
                    out, by = W[y], change[y]
                    for l in range(x.size):
                        out[l] += by * x[l]
    return updates
