"""Sequential minimal optimisation of a concave quadratic over a box, on a Gram matrix.

The variables ``a`` are the columns of a matrix with the rows BETA, SLOPE (of the smooth part), UP and DOWN (offsets),
LOWER and UPPER, KINK, RIDGE, and CURVATURE (the Gram diagonal plus the ridge).

A variable's two one-sided slopes are ``slope + up`` and ``slope + down``, where ``up`` and ``down`` hold 0, the kink
with its sign, or ``+-CLOSED`` for a direction that a bound closes. The sweeps over all variables then have no branch,
and only the variables that moved have their offsets rewritten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiled import inner, intrinsic, ir, njit, types
from .resources import in_threads
from .stopping import Pieces, out_of_time

# The rows of the matrix that holds the variables. One matrix and not nine vectors in a tuple: compiled code counts
# references for each member of a tuple it passes on, which costs more than a short sweep.
BETA, SLOPE, UP, DOWN, LOWER, UPPER, KINK, RIDGE, CURVATURE = range(9)

RUNNING, CONVERGED, STALLED, SHRINKABLE = 0, 1, 2, 3
CLOSED = 1e300  # finite, because an infinity with an index in its low bits would be a nan
FLOOR = 1e-12
CHECK = 64  # steps between two counts of the variables that could leave

# Of fastmath only what leaves comparisons with huge values, and the identity of two equal sums, alone.
FAST = {"contract", "nsz", "arcp"}

_i64 = ir.IntType(64)
_INDEX_BITS = (1 << 20) - 1  # a Gram matrix with more rows would take 8 TB

#: entries of a copy from which several threads share it
MANY_ENTRIES = 1_000_000
#: columns in which rows are added by one thread; narrower pieces of rows are slow to read
WIDE = 2000

_PATIENCE = 1.5  # price of copying one entry of a sub-Gram matrix, in swept variables (measured)
_SWEEP = 5.0  # price of one step, in multiply-adds per variable (measured; the division dominates)
_PERIOD = 32.0  # steps per variable before the first attempt of conjugate gradients
_STRETCH = 200_000  # steps after which the objective must have risen
_MAX_STALLS = 3
_FEW = 100  # variables of which it does not pay to set any aside
_FEWEST = 2048  # steps on few variables that are done before anything else would be compiled, or loaded


class BoxQP(NamedTuple):
    """Solution of a box QP."""

    beta: np.ndarray  # coefficients, within their bounds exactly
    product: np.ndarray  # ``K @ beta``
    intercept: float  # multiplier of the equality, 0 without it: decision values are ``product + intercept``
    iterations: int  # two-variable steps taken
    violation: float  # largest violation of the optimality conditions, in units of the gradient
    converged: bool  # whether ``violation`` is within the tolerance


def solve_box_qp(
    K,
    linear,
    lower,
    upper,
    *,
    ridge=None,
    kink=None,
    equality=True,
    tol=1e-3,
    max_iter=-1,
    fewest=256,
    beta=None,
    product=None,
):
    """Maximise a concave quadratic over a box by sequential minimal optimisation.

    Solves ::

        max   linear @ beta - kink @ |beta| - beta @ K @ beta / 2 - ridge @ beta**2 / 2
        s.t.  lower <= beta <= upper   and, with ``equality``,   sum(beta) = 0

    which is the dual of kernel machines with hinge-like and insensitive losses: with ``linear = y`` and a box between 0
    and ``c * y`` it is the support vector classifier (libsvm's coefficients times the labels), a ridge turns the hinge
    into its squared or Huber variant, a kink of ``epsilon`` in the box ``[-c, c]`` is support vector regression.

    Two variables are moved at a time, chosen by second-order information (R.-E. Fan, P.-H. Chen, C.-J. Lin, JMLR 6,
    2005). Variables stuck at a bound are set aside, with the others' sub-Gram matrix copied to contiguous memory, and
    conjugate gradients on the free variables take over where two-variable steps stop paying. Neither changes the
    answer: convergence is always decided on the full problem.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric positive semi-definite Gram matrix, float64 or float32. Only read; sums are in float64.
    linear, lower, upper : ndarray of shape (n,) or float
        Linear term and bounds, ``lower <= 0 <= upper``; infinite where ridge or Gram matrix keep the problem bounded.
    ridge, kink : ndarray of shape (n,) or float, optional
        Non-negative diagonal quadratic term and weight of the absolute value.
    equality : bool, default=True
        Whether the coefficients must sum to zero, that is, whether there is an intercept.
    tol : float, default=1e-3
        Largest accepted violation of the optimality conditions, in units of the gradient (libsvm's).
    max_iter : int, default=-1
        Most two-variable steps; -1 for ``max(10_000_000, 100 * n)``.
    fewest : int, default=256
        Two-variable steps that come before conjugate gradients however few variables there are.
    beta : ndarray of shape (n,), optional
        Start; it is moved into the box and onto the equality as need be.
    product : ndarray of shape (n,), optional
        ``K @ beta``, to save its computation. Not checked.

    Examples
    --------
    >>> x, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fit = solve_box_qp(np.outer(x, x), y, np.minimum(0.0, 9.0 * y), np.maximum(0.0, 9.0 * y))
    >>> np.round(fit.product + fit.intercept, 6)
    array([-2., -1.,  1.,  2.])
    """
    work = Workspace(K, linear, lower, upper, ridge, kink, equality, beta, product)
    work.follow(work.full[BETA] - work.anchor)
    run, full = (run_pairs if equality else run_free), work.full
    n = full.shape[1]
    most = max(10_000_000, 100 * n) if max_iter < 0 else int(max_iter)
    tol, mass = float(tol), work.mass
    # fresh and checked are the iterations at the last recomputation, and at the last comparison of the objective
    iterations = fresh = checked = stalls = 0
    best, period, stepped, gained, pieces = -np.inf, _PERIOD, 0.0, 0.0, Pieces()
    while n and not out_of_time():
        size = work.active.shape[1]
        planned = int(max(period * size - stepped / (_SWEEP * size), fewest))
        fitting = pieces.next() / (_SWEEP * size)
        budget = int(min(planned, _STRETCH, most - iterations, max(fitting, 1.0)))
        patience = _PATIENCE if stalls == 0 else 0.0
        steps, status, high, low, gain = run(work.sub, work.active, tol, budget, patience)
        iterations += steps
        stepped += _SWEEP * steps * size
        gained += gain
        pieces.done(_SWEEP * steps * size)
        if status == SHRINKABLE:
            work.shrink(high, low)
            continue
        unfinished = status == RUNNING and iterations < most
        if not unfinished:
            stalls += status == STALLED
            if work.index is not None:
                work.restore()
                continue
            # slopes are rounded after many updates, and where they began with much larger coefficients
            rounded = iterations - fresh > 20 * n or mass > 10.0 * np.abs(full[BETA]).sum()
            settled = status == RUNNING or (status == CONVERGED and not rounded)
            if settled or stalls > _MAX_STALLS or iterations == fresh:
                break
            work.recompute()
            fresh, mass = iterations, np.abs(full[BETA]).sum()
        if iterations - checked >= max(_STRETCH, 20 * n):
            # exact steps would have raised the objective: a tolerance below the rounding of the slopes shows here
            work.recompute()
            fresh, mass = iterations, np.abs(full[BETA]).sum()
            smooth = 0.5 * full[BETA] @ (work.linear + full[SLOPE])
            value = float(smooth - full[KINK] @ np.abs(full[BETA]))
            if not value > best:
                break
            checked, best = iterations, value
        if unfinished and steps == planned:
            size = work.active.shape[1]
            indices, vectors = np.empty(size, dtype=np.int64), np.zeros((3, size))
            allowance = min(0.5 * stepped, pieces.next())  # half as much again as the steps took
            gain, spent = ascend_free(work.sub, work.active, equality, 0.1 * tol, allowance, indices, vectors)
            period = max(period / 2.0, 1.0) if gain * stepped > gained * spent else period * 4.0
            stepped = gained = 0.0
            pieces.done(spent)
    if work.index is not None:
        work.restore()
    if iterations - fresh > 20 * n or mass > 10.0 * np.abs(full[BETA]).sum():
        work.recompute()
    if equality:
        before = full[BETA].copy()
        remove_drift(full[BETA], full[LOWER], full[UPPER])
        work.follow(full[BETA] - before)
    return _result(work, run(work.sub, full, tol, 0, 0.0), equality, iterations)


def _result(work, measured, equality, iterations):
    """The solution, from its variables and what a run of no steps has ``measured`` at it."""
    full, (_, status, high, low, _) = work.full, measured
    intercept, b = 0.0, full[BETA]
    if equality:  # mean slope of the free variables, or the middle of the interval that the others leave
        smooth = (b != 0.0) | (full[KINK] == 0.0)
        free = ((full[LOWER] < b) & (b < full[UPPER]) & smooth).nonzero()[0]
        ends = [end for end in (high, low) if abs(end) < 0.1 * CLOSED]
        if free.size:
            intercept = float((full[SLOPE, free] + full[UP, free]).sum()) / free.size
        elif ends:
            intercept = float(np.mean(ends))
    product = work.linear - full[SLOPE] - full[RIDGE] * b
    violation = max(0.0, high - low if equality else high)
    converged = status == CONVERGED and bool(np.isfinite(product).all())
    return BoxQP(b.copy(), product, intercept, iterations, violation, converged)


def solve_few(K, linear, lower, upper, tol, max_iter):
    """Return the coefficients of ``solve_box_qp`` with the equality, from zero; no argument is checked.

    Around the few hundred steps that thirty variables take, its preparations would be most of the time: they are left
    out for few variables, unless the steps turn out to be many.
    """
    n = linear.size
    beta = None
    if n <= _FEW:
        full = np.zeros((CURVATURE + 1, n))
        full[SLOPE], full[LOWER], full[UPPER], full[CURVATURE] = linear, lower, upper, K.diagonal()
        set_offsets(full)
        gram = K.view()
        gram.flags.writeable = False
        steps, status, *_ = run_pairs(gram, full, tol, _FEWEST, 0.0)
        beta = full[BETA]
        if status == CONVERGED and steps <= 20 * n:  # more would have added up to rounding
            return beta
    return solve_box_qp(K, linear, lower, upper, tol=tol, max_iter=max_iter, fewest=_FEWEST, beta=beta).beta


class Workspace:
    """A box QP of which a part is active.

    Shrinking copies the active part with its sub-Gram matrix, so that the rows it sweeps are short and contiguous.
    Meanwhile ``full[SLOPE]`` belongs to the coefficients ``anchor``; only the rows of the variables that moved since
    are needed to bring it up to date.  ``full`` are all variables.
    """

    def __init__(self, K, linear, lower, upper, ridge, kink, equality, beta, product):
        gram = np.asarray(K)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
            raise ValueError(f"K must be a square matrix, got shape {gram.shape}")
        if gram.dtype not in (np.float32, np.float64):
            gram = gram.astype(np.float64)
        if not gram.flags.c_contiguous:
            gram = gram.T if gram.flags.f_contiguous else np.ascontiguousarray(gram)
        n = gram.shape[0]
        given = {"linear": linear, "lower": lower, "upper": upper, "ridge": ridge, "kink": kink}
        linear, lower, upper, ridge, kink = (_as_vector(name, value, n) for name, value in given.items())
        # methods and not functions of numpy, here and below: on small problems these lines are half of the time
        if not ((lower <= 0.0).all() and (upper >= 0.0).all()):
            raise ValueError("bounds must satisfy lower <= 0 <= upper")
        if not ((ridge >= 0.0).all() and (kink >= 0.0).all()):
            raise ValueError("ridge and kink must not be negative")
        if not all(np.isfinite(term).all() for term in (linear, ridge, kink)):
            raise ValueError("linear, ridge and kink must be finite")
        slope, known = linear.copy(), np.zeros(n)
        if beta is not None:
            beta = _as_vector("beta", beta, n)
            if product is not None and np.isfinite(beta).all():
                slope -= _as_vector("product", product, n) + ridge * beta
                known = beta
        full = np.zeros((CURVATURE + 1, n))
        full[BETA], full[SLOPE] = feasible_start(beta, lower, upper, equality), slope
        full[LOWER], full[UPPER], full[KINK], full[RIDGE] = lower, upper, kink, ridge
        full[CURVATURE] = gram.diagonal() + ridge
        # read-only: compiled code then sees one type, whether or not the caller's array is writable
        self.gram, self.linear, self.full = gram.view(), linear, full
        self.gram.flags.writeable = False
        self.active, self.sub, self.index = full, self.gram, None
        self.anchor = known
        #: sizes of the coefficients that the slopes were computed for, to which their rounding is in proportion
        self.mass = max(np.abs(known).sum(), np.abs(full[BETA]).sum())

    def shrink(self, high, low):
        """Drop the variables that cannot be chosen while ``high`` and ``low`` are the extremes."""
        a = self.active
        keep = np.flatnonzero((a[SLOPE] + a[UP] >= low) | (a[SLOPE] + a[DOWN] <= high))
        if self.index is not None:
            self.full[BETA, self.index] = a[BETA]
            self.index = self.index[keep]
        else:
            self.anchor[:] = a[BETA]
            self.index = keep
        self.sub, self.active = gather(self.sub, keep), np.take(a, keep, axis=1)
        self.sub.flags.writeable = False

    def restore(self):
        """Bring every variable back, with its slope, after some were set aside."""
        self.full[BETA, self.index] = self.active[BETA]
        self.active, self.sub, self.index = self.full, self.gram, None
        self.follow(self.full[BETA] - self.anchor)

    def follow(self, change):
        """Bring slopes and offsets up to date after the coefficients changed by ``change``."""
        full, moved = self.full, change.nonzero()[0]
        less, n = -change[moved], full.shape[1]
        if n <= WIDE:
            add_rows(self.gram, moved, less, 0, n, full[SLOPE])
        else:

            def run(first):
                add_rows(self.gram, moved, less, first, min(first + WIDE, n), full[SLOPE])

            in_threads(run, range(0, n, WIDE))
        full[SLOPE, moved] -= full[RIDGE, moved] * change[moved]
        set_offsets(full)

    def recompute(self):
        """Recompute slopes and offsets from the coefficients alone, without accumulated rounding."""
        if self.index is not None:
            self.restore()
        self.full[SLOPE] = self.linear
        self.follow(self.full[BETA])


@njit(makes_arrays=False, nogil=True)
def _gather(gram, rows, columns, out):
    for p in range(rows.size):
        i = rows[p]
        for q in range(columns.size):
            out[p, q] = gram[i, columns[q]]


def gather(gram, keep):
    """Return the rows and columns ``keep`` of a matrix."""
    gram, out = gram.view(), np.empty((keep.size, keep.size), dtype=gram.dtype)
    gram.flags.writeable = False
    height = max(1, MANY_ENTRIES // max(1, keep.size))

    def run(top):
        _gather(gram, keep[top : top + height], keep, out[top : top + height])

    in_threads(run, range(0, keep.size, height))
    return out


def _as_vector(name, value, n):
    """``value`` (None: zeros) as a new float64 vector of length ``n``."""
    if value is None:
        return np.zeros(n)
    value = np.asarray(value, dtype=np.float64)
    if value.ndim > 1 or (value.ndim == 1 and value.size != n):
        raise ValueError(f"{name} must have length {n}, got shape {value.shape}")
    return value.copy() if value.ndim else np.full(n, value)


def feasible_start(beta, lower, upper, equality):
    """A feasible point near ``beta``; the origin if there is nothing to start from.

    The heavier sign is pulled towards zero until the sum vanishes, which never leaves the box: free variables first,
    because sparing those at their bounds keeps what a warm start is worth.
    """
    if beta is None or not np.isfinite(beta).all():
        return np.zeros(lower.size)
    start = np.minimum(np.maximum(beta, lower), upper)
    if not equality:
        return start
    if abs(start.sum()) > 1e-12 * np.abs(start).sum():
        free = (start > lower) & (start < upper)
        for candidates in (free, np.full(start.size, True)):
            excess = start.sum()
            heavy = candidates & (start * excess > 0.0)
            weight = np.abs(start[heavy]).sum()
            if weight > 0.0:
                start[heavy] *= max(0.0, 1.0 - abs(excess) / weight)
    remove_drift(start, lower, upper)
    return start if abs(start.sum()) <= 1e-12 * np.abs(start).sum() else np.zeros(lower.size)


def remove_drift(beta, lower, upper):
    """Let one variable absorb what rounding has left of the sum."""
    drift, mass = beta.sum(), np.abs(beta).sum()
    if abs(drift) <= 1e-15 * mass:
        return
    room = beta - lower if drift > 0.0 else upper - beta
    free = (beta > lower) & (beta < upper) & (beta != 0.0)
    if free.any():
        room = np.where(free, room, 0.0)
    elif abs(drift) <= 1e-12 * mass:
        return  # not worth taking a variable off its bound for
    k = int(np.argmax(room))
    beta[k] = min(max(beta[k] - drift, lower[k]), upper[k])


# Compiled steps: pairs under the equality constraint, then two variables that need not balance.


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


@inner(nogil=True, fastmath=FAST)
def _pair_sweep(slope, up, down, gram, i, j, step_i, step_j):
    """Subtract both rows; find the extreme slopes and the index of the highest, in the same pass."""
    high, low, tagged = -np.inf, np.inf, -np.inf
    for k in range(slope.size):
        value = slope[k] - (step_i * gram[i, k] + step_j * gram[j, k])
        slope[k] = value
        rising = value + up[k]
        high = larger(high, rising)
        tagged = larger(tagged, tag(rising, k))
        low = smaller(low, value + down[k])
    return high, low, untag(tagged)


@inner(nogil=True, fastmath=FAST)
def _pair_partner(slope, down, curvature, gram, i, reference):
    """Second-order partner of ``i``: the variable with which the unclipped step gains most."""
    curvature_i, tagged = curvature[i], 0.0
    for k in range(slope.size):
        gap = larger(reference - (slope[k] + down[k]), 0.0)
        bend = larger(curvature_i + curvature[k] - 2.0 * gram[i, k], FLOOR)
        tagged = larger(tagged, tag(gap * gap / bend, k))
    return untag(tagged)


@njit(makes_arrays=False, nogil=True)
def run_pairs(gram, a, tol, budget, patience):
    """Take up to ``budget`` steps that keep the sum of the coefficients.

    Returns the number of steps, a status, the largest up-slope, the smallest down-slope and the gain.
    The status is SHRINKABLE once the sweeps over variables that could have left have cost as much as
    copying the others would: ``patience`` is that copy's price per entry (0: never).
    """
    beta, slope, up, down, curvature = a[BETA], a[SLOPE], a[UP], a[DOWN], a[CURVATURE]
    gain, wasted, step_i, step_j = 0.0, 0.0, 0.0, 0.0
    i = j = np.int64(0)
    high, low = np.inf, -np.inf
    for done in range(budget + 1):
        high, low, i = _pair_sweep(slope, up, down, gram, i, j, step_i, step_j)
        if not high - low > tol:
            return done, CONVERGED, high, low, gain
        if done == budget:
            break
        if patience > 0.0 and done % CHECK == CHECK - 1:
            kept = count_kept(slope, up, down, high, low)
            wasted += CHECK * float(slope.size - kept)
            if wasted > patience * kept * kept:
                return done, SHRINKABLE, high, low, gain
        if slope[i] + up[i] != high:  # rare: a tag cannot tell two slopes 2e-10 apart
            for k in range(slope.size):
                if slope[k] + up[k] == high:
                    i = np.int64(k)
                    break
        j = _pair_partner(slope, down, curvature, gram, i, slope[i] + up[i])
        # i moves up and j down, by the same amount
        old_i, old_j = beta[i], beta[j]
        end_i, end_j = end_of(a, i, 1.0), end_of(a, j, -1.0)
        gap = slope[i] + up[i] - slope[j] - down[j]
        bend = max(curvature[i] + curvature[j] - 2.0 * gram[i, j], FLOOR)
        room_i, room_j = end_i - old_i, old_j - end_j
        step = min(max(gap, 0.0) / bend, room_i, room_j)
        # An end is set, not added up to: a variable at a bound is at it exactly.
        beta[i] = end_i if step == room_i else min(old_i + step, end_i)
        beta[j] = end_j if step == room_j else max(old_j - step, end_j)
        step_i, step_j = beta[i] - old_i, beta[j] - old_j
        if step_i == 0.0 and step_j == 0.0:
            return done, STALLED, high, low, gain
        gain += step * (gap - 0.5 * step * bend)
        settle(a, i, step_i)
        settle(a, j, step_j)
    return budget, RUNNING, high, low, gain


@inner(nogil=True, fastmath=FAST)
def _free_sweep(slope, up, down, gram, i, j, step_i, step_j):
    """Subtract both rows; find the largest violation and its index in the same pass."""
    worst, tagged = -np.inf, -np.inf
    for k in range(slope.size):
        value = slope[k] - (step_i * gram[i, k] + step_j * gram[j, k])
        slope[k] = value
        violation = larger(value + up[k], -(value + down[k]))
        worst = larger(worst, violation)
        tagged = larger(tagged, tag(violation, k))
    return worst, untag(tagged)


@inner(nogil=True, fastmath=FAST)
def _free_partner(slope, up, down, curvature, gram, i, slope_i):
    """The variable that adds most to the step of ``i`` alone, and whether any does.

    When ``i`` has moved to its optimum, ``rest`` is the slope that ``k`` is left with, and the joint step
    gains half its square over the Schur complement ``bend`` more.
    """
    scale = 1.0 / max(curvature[i], FLOOR)
    pull, tagged = scale * slope_i, 0.0
    for k in range(slope.size):
        q = gram[i, k]
        rest = slope[k] - pull * q
        excess = larger(larger(rest + up[k], -(rest + down[k])), 0.0)
        bend = larger(curvature[k] - scale * q * q, FLOOR)
        tagged = larger(tagged, tag(excess * excess / bend, k))
    return untag(tagged), tagged > 1e-280


@inner(nogil=True)
def _piece(a, k, rising):
    """The interval around variable ``k`` on which its slope is smooth, and that slope."""
    b, kink = a[BETA, k], a[KINK, k]
    if kink == 0.0:
        return a[LOWER, k] - b, a[UPPER, k] - b, a[SLOPE, k]
    if b > 0.0 or (b == 0.0 and rising):
        return -b, a[UPPER, k] - b, a[SLOPE, k] - kink
    return a[LOWER, k] - b, -b, a[SLOPE, k] + kink


@inner(nogil=True)
def _clip(value, low, high):
    return min(max(value, low), high)


@inner(nogil=True)
def _rectangle(slope_i, slope_j, q_ii, q_jj, q_ij, low_i, high_i, low_j, high_j):
    """Maximise a concave quadratic of two steps over a rectangle: inside, or on the best edge."""
    q_ii, q_jj = max(q_ii, FLOOR), max(q_jj, FLOOR)
    determinant = q_ii * q_jj - q_ij * q_ij
    if determinant > FLOOR * q_ii * q_jj:
        x = (q_jj * slope_i - q_ij * slope_j) / determinant
        y = (q_ii * slope_j - q_ij * slope_i) / determinant
        gain = 0.5 * (slope_i * x + slope_j * y)
        if gain > 0.0 and low_i <= x <= high_i and low_j <= y <= high_j:
            return x, y, gain
    best_x, best_y, best = 0.0, 0.0, 0.0
    for edge in range(6):
        if edge < 2:
            x = low_i if edge == 0 else high_i
            y = _clip((slope_j - q_ij * x) / q_jj, low_j, high_j)
        elif edge < 4:
            y = low_j if edge == 2 else high_j
            x = _clip((slope_i - q_ij * y) / q_ii, low_i, high_i)
        elif edge == 4:
            x, y = _clip(slope_i / q_ii, low_i, high_i), 0.0
        else:
            x, y = 0.0, _clip(slope_j / q_jj, low_j, high_j)
        if np.isfinite(x) and np.isfinite(y):
            gain = x * (slope_i - 0.5 * q_ii * x) + y * (slope_j - 0.5 * q_jj * y) - q_ij * x * y
            if gain > best:
                best_x, best_y, best = x, y, gain
    return best_x, best_y, best


@inner(nogil=True)
def _move(a, k, step, low, high):
    """Move variable ``k`` by ``step`` in ``[low, high]``; at an end it lands on its bound exactly."""
    old = a[BETA, k]
    if step == high:
        new = a[UPPER, k] if old + high > 0.0 or a[KINK, k] == 0.0 else 0.0
    elif step == low:
        new = a[LOWER, k] if old + low < 0.0 or a[KINK, k] == 0.0 else 0.0
    else:
        new = _clip(old + step, a[LOWER, k], a[UPPER, k])
    a[BETA, k] = new
    return new - old


@njit(makes_arrays=False, nogil=True)
def run_free(gram, a, tol, budget, patience):
    """Take up to ``budget`` steps, each on two variables that need not balance.

    As ``run_pairs``, with the largest violation in place of the largest up-slope and its
    negative in place of the smallest down-slope.
    """
    slope, up, down, curvature = a[SLOPE], a[UP], a[DOWN], a[CURVATURE]
    gain, wasted = 0.0, 0.0
    i = np.int64(0)  # not a literal, for which the sweep would be compiled once more
    worst, i = _free_sweep(slope, up, down, gram, i, i, gain, gain)
    for done in range(budget):
        if not worst > tol:
            return done, CONVERGED, worst, -worst, gain
        if patience > 0.0 and done % CHECK == CHECK - 1:
            kept = count_kept(slope, up, down, worst, -worst)
            wasted += CHECK * float(slope.size - kept)
            if wasted > patience * kept * kept:
                return done, SHRINKABLE, worst, -worst, gain
        slope_i = slope[i] + up[i] if slope[i] + up[i] > 0.0 else slope[i] + down[i]
        # Closed for the search: a variable is no partner of its own.
        keep_up, keep_down = up[i], down[i]
        up[i], down[i] = -CLOSED, CLOSED
        j, paired = _free_partner(slope, up, down, curvature, gram, i, slope_i)
        up[i], down[i] = keep_up, keep_down
        low_i, high_i, smooth_i = _piece(a, i, slope_i > 0.0)
        if paired:
            # In double precision even on a float32 matrix: the determinant is a small difference.
            q_ii, q_jj, q_ij = curvature[i], curvature[j], np.float64(gram[i, j])
            rising = q_ii * (slope[j] + up[j]) - q_ij * slope_i > 0.0
            low_j, high_j, smooth_j = _piece(a, j, rising)
            x, y, won = _rectangle(smooth_i, smooth_j, q_ii, q_jj, q_ij, low_i, high_i, low_j, high_j)
            step_i, step_j = _move(a, i, x, low_i, high_i), _move(a, j, y, low_j, high_j)
        else:
            bend = max(curvature[i], FLOOR)
            x = _clip(smooth_i / bend, low_i, high_i)
            step_i, step_j, won = _move(a, i, x, low_i, high_i), 0.0, x * (smooth_i - 0.5 * bend * x)
        if step_i == 0.0 and step_j == 0.0:
            return done, STALLED, worst, -worst, gain
        gain += won
        settle(a, i, step_i)
        if paired:
            settle(a, j, step_j)
        worst, i = _free_sweep(slope, up, down, gram, i, j, step_i, step_j)
    return budget, RUNNING if worst > tol else CONVERGED, worst, -worst, gain


# Conjugate gradients on the free variables: the way out of SMO's slow end game.
#
# On an ill-conditioned Gram matrix two-variable steps zigzag for millions of iterations once the right variables are
# free. There the problem is a linear system, which conjugate gradients solve in about as many steps as the matrix has
# distinct eigenvalues. A step that meets a bound ends there, and the search starts again without the variable that met
# it; the objective never falls.


@inner(nogil=True, fastmath={"reassoc", "contract"})
def _dot(x, y):
    total = 0.0
    for f in range(x.size):
        total += x[f] * y[f]
    return total


@inner(nogil=True, fastmath=FAST)
def _subtract(slope, product, step):
    for k in range(slope.size):
        slope[k] -= step * product[k]


# What is used in one place is inlined before it is compiled, which takes half as long as compiling it twice.


@inner(nogil=True, inline="always")
def _list_free(a, free):
    """Put the indices strictly between bounds and off their kink at the beginning of ``free``; return how many."""
    count = 0
    for k in range(a.shape[1]):
        b = a[BETA, k]
        if a[LOWER, k] < b < a[UPPER, k] and (b != 0.0 or a[KINK, k] == 0.0):
            free[count] = k
            count += 1
    return count


@inner(nogil=True, inline="always")
def _move_along(a, free, direction, product, step, ended):
    """Move along ``direction``; the free variable ``ended`` (or -1) lands on its end exactly."""
    _subtract(a[SLOPE], product, step)
    for f in range(free.size):
        k, d = free[f], direction[f]
        end = end_of(a, k, d)
        new = a[BETA, k] + step * d
        a[BETA, k] = end if f == ended else (min(new, end) if d > 0.0 else max(new, end))
        a[SLOPE, k] -= step * a[RIDGE, k] * d
        set_offset(a, k)


@njit(makes_arrays=False, nogil=True)
def ascend_free(gram, a, equality, tol, budget, indices, vectors):
    """Ascend over the free variables until their slopes agree within ``tol`` or ``budget`` is spent.

    Returns the gain and the work in multiply-adds, the unit of ``budget``. ``indices`` and the three ``vectors``, of
    which the second is zero, are overwritten.
    """
    product = vectors[0]
    gain, work, before, ended = 0.0, 0.0, 0.0, 0
    free = indices
    while True:
        if ended >= 0:  # the search begins, or begins again
            free, before = indices[: _list_free(a, indices)], 0.0
            if free.size < 2:
                break
        # slopes of the free variables, projected on the equality
        direction, residual = vectors[1, : free.size], vectors[2, : free.size]
        mean = 0.0
        for f in range(free.size):
            residual[f] = a[SLOPE, free[f]] + a[UP, free[f]]
            mean += residual[f]
        mean = mean / free.size if equality else 0.0
        largest, norm = 0.0, 0.0
        for f in range(free.size):
            residual[f] -= mean
            largest = max(largest, abs(residual[f]))
            norm += residual[f] * residual[f]
        if not (largest > tol and work < budget):
            break
        # The next conjugate direction, centred once more: residuals are small differences of slopes, so their sum
        # vanishes in units of the slopes' rounding only; over a long step that would show in the coefficients' sum.
        momentum, total = norm / before if before > 0.0 else 0.0, 0.0
        for f in range(free.size):
            direction[f] = direction[f] * momentum + residual[f]
            total += direction[f]
        if equality:
            mean = total / free.size
            for f in range(free.size):
                direction[f] -= mean
        for k in range(product.size):
            product[k] = 0.0
        add_rows(gram, free, direction, np.int64(0), product.size, product)
        work += float(free.size) * a.shape[1]
        along = _dot(residual, direction)
        if not along > 0.0:
            break
        # its curvature, how far it can be followed, and which free variable ends it
        bend, room, first = 0.0, np.inf, -1
        for f in range(free.size):
            k = free[f]
            bend += direction[f] * (product[k] + a[RIDGE, k] * direction[f])
            if direction[f] != 0.0:
                reach = (end_of(a, k, direction[f]) - a[BETA, k]) / direction[f]
                if reach < room:
                    room, first = reach, f
        step = along / bend if bend > 0.0 else np.inf
        ended = first if step >= room else -1
        step = min(step, room)
        if not step < np.inf:
            break
        gain += step * (along - 0.5 * step * bend)
        _move_along(a, free, direction, product, step, ended)
        before = norm
    return gain, work
