"""Compiled functions of many numbers at once: exponentials of distances, mixed or multiplied; cosines and sines.

The exponential is written out, because the one of the C library is called entry by entry and keeps a loop from being
vectorised.  A family of kernels ``exp(-rate_k d)`` is a list of *links*: a link with a positive rate is an exponential
of the distances, one without is the link before it squared so many times, as in ``passes``.  A row is worked on in
pieces that stay in the first-level cache, and within a piece all families add to the same mixture.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .compiled import UNCOUNTED, inner, intrinsic, ir, njit, overload, types
from .passes import copy_vector, fourth, mix_three

#: entries of a row that are worked on at a time; the functions below are given arrays for them
PIECE = 1024

_LOG2_E = math.log2(math.e)
# log 2 in two parts, the first with so few digits that its product with an exponent is exact
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
#: adding it rounds to whole numbers, which are then in the low bits
_ROUND, _ROUND_32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
#: below, the result is zero: the next numbers have no exponent of their own
_LOWEST, _LOWEST_32 = -708.0, np.float32(-87.0)
_ONE_32 = np.float32(1.0)
_NONE_32 = np.float32(0.0)
_LOG2_E_32 = np.float32(_LOG2_E)
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14))
_F2, _F3, _F4, _F5, _F6, _F7, _F8, _F9, _F10, _F11, _F12, _F13 = _FACTORIALS[2:]
_G2, _G3, _G4, _G5, _G6, _G7 = (np.float32(value) for value in _FACTORIALS[2:8])

# No "reassoc": it would undo the rounding by a large number.
_EXACT = {"contract", "nsz"}
_OPTIONS: Any = {"nogil": True, "fastmath": _EXACT, **UNCOUNTED}


@intrinsic
def _two_to(typingctx, rounded):
    """``2^k`` for the whole number k that adding ``_ROUND`` has left in the low bits of a number."""
    width, digits, bias = (64, 52, 1023) if rounded == types.float64 else (32, 23, 127)

    def codegen(context, builder, signature, args):
        whole = ir.IntType(width)
        bits = builder.shl(builder.bitcast(args[0], whole), ir.Constant(whole, digits))
        return builder.bitcast(builder.add(bits, ir.Constant(whole, bias << digits)), args[0].type)

    return rounded(rounded), codegen


def _decay(distances, rate, out):
    """``out = exp(-rate distances)``, in the precision of ``out``."""
    raise NotImplementedError


@overload(_decay, jit_options=_OPTIONS)
def _decay_in_its_precision(distances, rate, out):
    def double(distances, rate, out):
        for j in range(out.size):
            x = -rate * distances[j]
            rounded = x * _LOG2_E + _ROUND
            k = rounded - _ROUND
            r = (x - k * _LN2_HIGH) - k * _LN2_LOW
            # pairs of terms: a chain of fourteen products would wait for itself
            s = r * r
            low = (1.0 + r) + s * (_F2 + r * _F3)
            middle = (_F4 + r * _F5) + s * (_F6 + r * _F7)
            high = (_F8 + r * _F9) + s * (_F10 + r * _F11) + (s * s) * (_F12 + r * _F13)
            s = s * s
            value = (low + s * (middle + s * high)) * _two_to(rounded)
            out[j] = 0.0 if x <= _LOWEST else value

    def single(distances, rate, out):
        for j in range(out.size):
            x = np.float32(-rate * distances[j])
            rounded = x * _LOG2_E_32 + _ROUND_32
            k = rounded - _ROUND_32
            r = (x - k * _LN2_HIGH_32) - k * _LN2_LOW_32
            s = r * r
            low = (_ONE_32 + r) + s * (_G2 + r * _G3)
            value = (low + s * s * ((_G4 + r * _G5) + s * (_G6 + r * _G7))) * _two_to(rounded)
            out[j] = _NONE_32 if x <= _LOWEST_32 else value

    return single if out.dtype == types.float32 else double


@inner(nogil=True)
def _add_squares(x, known, further, distances):
    """Squared differences to one column, the first or a ``further`` one, which adds to those before."""
    if further:
        for j in range(distances.size):
            difference = x - known[j]
            distances[j] += difference * difference
    else:
        for j in range(distances.size):
            difference = x - known[j]
            distances[j] = difference * difference


@inner(nogil=True, inline="always")
def _next_link(distances, rate, squarings, least, power):
    """Make ``power`` the next kernel of its family: an exponential of the distances, or the one before squared."""
    if rate > 0.0:
        _decay(distances, rate, power)
    left = squarings
    while left >= 2:
        for j in range(power.size):
            power[j] = fourth(power[j], least)
        left -= 2
    if left == 1:
        for j in range(power.size):
            power[j] = power[j] * power[j]


@njit(makes_arrays=False, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_decays(
    new, table, columns, given, rates, squarings, weights, links, least, coef, work, powers, out, mixed
):
    """Add families of exponentials, times coefficients, to ``out``; or the families themselves to ``mixed``.

    Family f has the links ``links[f] .. links[f + 1] - 1``.  Gaussians on few columns compare the columns ``columns[f]
    .. columns[f + 1] - 1`` of the rows of ``new`` with the same rows of ``table``, which has a column per training
    sample; a family without columns takes its distances from ``given``.  ``coef`` has a row per column of ``out``;
    where it has none, the mixture goes to ``mixed``, ``(rows, n)``.  ``weights``, ``least``, ``coef``, ``powers`` and
    ``mixed`` have the precision of the exponentials; distances are always in double precision.  Of entries smaller than
    ``least`` the fourth power of ``least`` is taken, which is next to zero.
    """
    n = table.shape[1]
    kept = coef.shape[0] == 0
    for i in range(out.shape[0]):
        for start in range(0, n, PIECE):
            stop = min(start + PIECE, n)
            distances, power = work[: stop - start], powers[0, : stop - start]
            target = mixed[i, start:stop] if kept else powers[1, : stop - start]
            if not kept:
                for j in range(target.size):
                    target[j] = least - least
            for f in range(columns.size - 1):
                if columns[f] == columns[f + 1]:
                    copy_vector(given[i, start:stop], distances)
                for c in range(columns[f], columns[f + 1]):
                    _add_squares(new[i, c], table[c, start:stop], c > columns[f], distances)
                k, end = links[f], links[f + 1]
                while k < end:
                    # three links at once that are each the fourth power of the one before
                    three = k + 3 <= end and rates[k] + rates[k + 1] + rates[k + 2] <= 0.0
                    if three and squarings[k] == 2 and squarings[k + 1] == 2 and squarings[k + 2] == 2:
                        mix_three(power, weights[k], weights[k + 1], weights[k + 2], target)
                        k += 3
                        continue
                    _next_link(distances, rates[k], squarings[k], least, power)
                    w = weights[k]
                    for j in range(power.size):
                        target[j] += w * power[j]
                    k += 1
            for r in range(coef.shape[0]):
                total, factors = 0.0, coef[r, start:stop]
                for j in range(target.size):
                    total += target[j] * factors[j]
                out[i, r] += total


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot_with(power, factors):
    """Sum over a piece in its own precision, of which each lane adds up few terms."""
    total = power[0] - power[0]
    for j in range(power.size):
        total += power[j] * factors[j]
    return total


@njit(makes_arrays=False, nogil=True)
def decay_products(new, table, columns, rates, squarings, links, least, coef, work, power, out):
    """Add the products of every kernel by itself with coefficients to ``out``, ``(rows, links, columns of coef)``."""
    for i in range(out.shape[0]):
        for start in range(0, table.shape[1], PIECE):
            stop = min(start + PIECE, table.shape[1])
            distances, entries = work[: stop - start], power[: stop - start]
            for f in range(columns.size - 1):
                for c in range(columns[f], columns[f + 1]):
                    _add_squares(new[i, c], table[c, start:stop], c > columns[f], distances)
                for k in range(links[f], links[f + 1]):
                    _next_link(distances, rates[k], squarings[k], least, entries)
                    for t in range(coef.shape[0]):
                        out[i, k, t] += _dot_with(entries, coef[t, start:stop])


@njit(makes_arrays=False, nogil=True)
def fill_decays(table, columns, links, rates, views, families, rows, offsets, work, store):
    """Store ``exp(-rates[k] d)`` for the links k of some families: rows ``rows[0] .. rows[1] - 1`` of their triangles.

    The distances d of family f are those in the columns ``columns[f] .. columns[f + 1] - 1`` of the samples, which are
    rows of ``table`` here; entry (i, j) of link k goes to ``store[views[k], offsets[i] + j]``.
    """
    for f in families:
        for i in range(rows[0], rows[1]):
            for start in range(0, i + 1, PIECE):
                stop = min(start + PIECE, i + 1)
                distances = work[: stop - start]
                for c in range(columns[f], columns[f + 1]):
                    _add_squares(table[c, i], table[c, start:stop], c > columns[f], distances)
                for k in range(links[f], links[f + 1]):
                    _decay(distances, rates[k], store[views[k], offsets[i] + start : offsets[i] + stop])


# pi / 2 in three parts, the first two of 24 bits, so that their products with whole numbers are exact (Cody and Waite)
_P1 = 2 * 7.85398125648498535156e-1
_P2 = 2 * 3.77489470793079817668e-8
_P3 = 2 * 2.69515142907905952645e-15


@njit(cache=True, fastmath={"contract"}, error_model="numpy", nogil=True)
def _row(angles, scale, cosines, sines):
    """One row, without a branch, so that it is vectorised; polynomials on [-pi/4, pi/4] from the Cephes library."""
    for j in range(angles.size):
        x = angles[j]
        k = np.floor(x * 0.6366197723675814 + 0.5)  # nearest multiple of pi / 2
        r = ((x - k * _P1) - k * _P2) - k * _P3
        z = r * r
        s = (1.58962301576546568060e-10 * z - 2.50507477628578072866e-8) * z + 2.75573136213857245213e-6
        s = (s * z - 1.98412698295895385996e-4) * z + 8.33333333332211858878e-3
        s = r + r * z * (s * z - 1.66666666666666307295e-1)
        c = (-1.13585365213876817300e-11 * z + 2.08757008419747316778e-9) * z - 2.75573141792967388112e-7
        c = (c * z + 2.48015872888517045348e-5) * z - 1.38888888888730564116e-3
        c = 1.0 - 0.5 * z + z * z * (c * z + 4.16666666666665929218e-2)
        half = np.floor(0.5 * k)
        odd = k - 2.0 * half  # in an odd quarter cosine and sine change places
        sign = 1.0 - 2.0 * (half - 2.0 * np.floor(0.5 * half))
        sines[j] = scale * sign * ((1.0 - odd) * s + odd * c)
        cosines[j] = scale * sign * (1.0 - 2.0 * odd) * ((1.0 - odd) * c + odd * s)


@njit(cache=True, nogil=True)
def cos_sin(angles, scale, out):
    """Write ``scale * cos`` and ``scale * sin`` of angles below 1e6, ``(n, D)``, side by side into ``out (n, 2 D)``."""
    width = angles.shape[1]
    for i in range(angles.shape[0]):
        _row(angles[i], scale, out[i, :width], out[i, width:])
