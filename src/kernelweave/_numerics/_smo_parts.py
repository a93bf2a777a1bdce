"""What the compiled loops of the SMO engine share: the packed variables and the vectorisable argmax.

The variables ``a`` are the columns of a matrix with the rows BETA, SLOPE (of the smooth part), UP and DOWN
(offsets), LOWER and UPPER, KINK, RIDGE, and CURVATURE (the Gram diagonal plus the ridge).

A variable's two one-sided slopes are ``slope + up`` and ``slope + down``, where ``up`` and ``down`` hold 0,
the kink with its sign, or ``+-CLOSED`` for a direction that a bound closes. The sweeps over all variables
then have no branch, and only the variables that moved have their offsets rewritten.
"""

from __future__ import annotations

from .compiled import inner, intrinsic, ir, njit, types

# The rows of the matrix that holds the variables. One matrix and not nine vectors in a tuple: compiled
# code counts references for each member of a tuple it passes on, which costs more than a short sweep.
BETA, SLOPE, UP, DOWN, LOWER, UPPER, KINK, RIDGE, CURVATURE = range(9)

RUNNING, CONVERGED, STALLED, SHRINKABLE = 0, 1, 2, 3
CLOSED = 1e300  # finite, because an infinity with an index in its low bits would be a nan
FLOOR = 1e-12
CHECK = 64  # steps between two counts of the variables that could leave

# Of fastmath only what leaves comparisons with huge values, and the identity of two equal sums, alone.
FAST = {"contract", "nsz", "arcp"}

_i64 = ir.IntType(64)
_INDEX_BITS = (1 << 20) - 1  # a Gram matrix with more rows would take 8 TB


def _extremum(name):
    """A two-argument LLVM extremum: unlike Python's ``min`` and ``max``, reductions by it vectorise."""

    @intrinsic
    def pick(typingctx, a, b):
        def codegen(context, builder, signature, args):
            kind = args[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), codegen

    return pick


larger = _extremum("llvm.maxnum")
smaller = _extremum("llvm.minnum")


@intrinsic
def tag(typingctx, value, index):
    """``value`` with ``index`` in its low mantissa bits (a relative change below 3e-10).

    The maximum of tagged values carries its own index, so that an argmax vectorises as a maximum does.
    """

    def codegen(context, builder, signature, args):
        bits = builder.and_(builder.bitcast(args[0], _i64), ir.Constant(_i64, ~_INDEX_BITS))
        return builder.bitcast(builder.or_(bits, args[1]), ir.DoubleType())

    return types.float64(types.float64, types.int64), codegen


@intrinsic
def untag(typingctx, value):
    """The index in the low bits of ``value``."""

    def codegen(context, builder, signature, args):
        return builder.and_(builder.bitcast(args[0], _i64), ir.Constant(_i64, _INDEX_BITS))

    return types.int64(types.float64), codegen


@inner(nogil=True)
def set_offset(a, k):
    """Rewrite the offsets of variable ``k`` after it moved."""
    b = a[BETA, k]
    if b >= a[UPPER, k]:
        a[UP, k] = -CLOSED
    else:
        a[UP, k] = a[KINK, k] if b < 0.0 else -a[KINK, k]
    if b <= a[LOWER, k]:
        a[DOWN, k] = CLOSED
    else:
        a[DOWN, k] = -a[KINK, k] if b > 0.0 else a[KINK, k]


@njit(makes_arrays=False, nogil=True)
def set_offsets(a):
    """Rewrite the offsets of every variable."""
    for k in range(a.shape[1]):
        set_offset(a, k)


@inner(nogil=True)
def settle(a, k, step):
    """Account for a step of variable ``k`` in what does not involve the Gram matrix."""
    a[SLOPE, k] -= a[RIDGE, k] * step
    set_offset(a, k)


@inner(nogil=True)
def end_of(a, k, direction):
    """Where variable ``k`` must stop when it moves up (1.0) or down (-1.0): its bound, or a kink before it.

    The direction is a number, since a function is compiled once for True and once more for False.
    """
    b = a[BETA, k]
    if direction > 0.0:
        return 0.0 if (b < 0.0 and a[KINK, k] > 0.0) else a[UPPER, k]
    return 0.0 if (b > 0.0 and a[KINK, k] > 0.0) else a[LOWER, k]


@inner(nogil=True, fastmath=FAST)
def count_kept(slope, up, down, high, low):
    """How many variables could still be chosen, were ``high`` and ``low`` to stay the extremes."""
    kept = 0
    for k in range(slope.size):
        if slope[k] + up[k] >= low or slope[k] + down[k] <= high:
            kept += 1
    return kept


@njit(makes_arrays=False, nogil=True, fastmath=FAST)
def add_rows(gram, rows, weights, first, last, out):
    """``out += weights @ gram[rows]`` in columns ``first`` to ``last``; doubles, whatever the storage of ``gram``."""
    paired = rows.size - rows.size % 2
    for r in range(0, paired, 2):
        i, j, weight_i, weight_j = rows[r], rows[r + 1], weights[r], weights[r + 1]
        for k in range(first, last):
            out[k] += weight_i * gram[i, k] + weight_j * gram[j, k]
    if paired < rows.size:
        i, weight_i = rows[paired], weights[paired]
        for k in range(first, last):
            out[k] += weight_i * gram[i, k]
