"""Sequential minimal optimisation of a concave quadratic over a box, on a Gram matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiled import njit
from .resources import in_threads
from .smo_steps import (
    BETA,
    CLOSED,
    CONVERGED,
    CURVATURE,
    DOWN,
    KINK,
    LOWER,
    RIDGE,
    RUNNING,
    SHRINKABLE,
    SLOPE,
    STALLED,
    UP,
    UPPER,
    add_rows,
    ascend_free,
    run_free,
    run_pairs,
    set_offsets,
)
from .stopping import Pieces, out_of_time

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
    work = Workspace(gram, linear, full)
    work.follow(full[BETA] - known)
    mass = max(np.abs(known).sum(), np.abs(full[BETA]).sum())
    limit = max(10_000_000, 100 * n) if max_iter < 0 else int(max_iter)
    return _solve(work, equality, float(tol), limit, mass, fewest)


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


def _solve(work, equality, tol, max_iter, mass, fewest):
    """Iterate until the full problem has converged or nothing more can be gained; return what has been reached.

    ``mass`` is the sum of the sizes of the coefficients that the slopes were computed for, to which their rounding is
    in proportion.  Conjugate gradients follow ``period`` steps per variable, sooner or later by what they have gained.
    """
    run, full = (run_pairs if equality else run_free), work.full
    n = full.shape[1]
    # fresh and checked are the iterations at the last recomputation, and at the last comparison of the objective
    iterations = fresh = checked = stalls = 0
    best, period, stepped, gained, pieces = -np.inf, _PERIOD, 0.0, 0.0, Pieces()
    while n and not out_of_time():
        size = work.active.shape[1]
        planned = int(max(period * size - stepped / (_SWEEP * size), fewest))
        fitting = pieces.next() / (_SWEEP * size)
        budget = int(min(planned, _STRETCH, max_iter - iterations, max(fitting, 1.0)))
        patience = _PATIENCE if stalls == 0 else 0.0
        steps, status, high, low, gain = run(work.sub, work.active, tol, budget, patience)
        iterations += steps
        stepped += _SWEEP * steps * size
        gained += gain
        pieces.done(_SWEEP * steps * size)
        if status == SHRINKABLE:
            work.shrink(high, low)
            continue
        unfinished = status == RUNNING and iterations < max_iter
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
    work.restore()
    if iterations - fresh > 20 * n or mass > 10.0 * np.abs(full[BETA]).sum():
        work.recompute()
    if equality:
        before = full[BETA].copy()
        remove_drift(full[BETA], full[LOWER], full[UPPER])
        work.follow(full[BETA] - before)
    return _result(full, work.linear, run(work.sub, full, tol, 0, 0.0), equality, iterations)


def _result(full, linear, measured, equality, iterations):
    """The solution, from its variables and what a run of no steps has ``measured`` at it."""
    _, status, high, low, _ = measured
    intercept = 0.0
    if equality:  # mean slope of the free variables, or the middle of the interval that the others leave
        b = full[BETA]
        smooth = (b != 0.0) | (full[KINK] == 0.0)
        free = ((full[LOWER] < b) & (b < full[UPPER]) & smooth).nonzero()[0]
        ends = [end for end in (high, low) if abs(end) < 0.1 * CLOSED]
        if free.size:
            intercept = float((full[SLOPE, free] + full[UP, free]).sum()) / free.size
        elif ends:
            intercept = float(np.mean(ends))
    product = linear - full[SLOPE] - full[RIDGE] * full[BETA]
    violation = max(0.0, high - low if equality else high)
    converged = status == CONVERGED and bool(np.isfinite(product).all())
    return BoxQP(full[BETA].copy(), product, intercept, iterations, violation, converged)


class Workspace:
    """A box QP of which a part is active.

    Shrinking copies the active part with its sub-Gram matrix, so that the rows it sweeps are short and contiguous.
    Meanwhile ``full[SLOPE]`` belongs to the coefficients ``_anchor``; only the rows of the variables that moved since
    are needed to bring it up to date.  The rows of ``full (9, n)`` are those that ``smo_steps`` names.
    """

    def __init__(self, gram, linear, full):
        # read-only: compiled code then sees one type, whether or not the caller's array is writable
        self.gram, self.linear, self.full = gram.view(), linear, full
        self.gram.flags.writeable = False
        self.active, self.sub, self.index = full, self.gram, None
        self._anchor = np.empty_like(full[BETA])

    def shrink(self, high, low):
        """Drop the variables that cannot be chosen while ``high`` and ``low`` are the extremes."""
        a = self.active
        keep = np.flatnonzero((a[SLOPE] + a[UP] >= low) | (a[SLOPE] + a[DOWN] <= high))
        if self.index is not None:
            self.full[BETA, self.index] = a[BETA]
            self.index = self.index[keep]
        else:
            self._anchor[:] = a[BETA]
            self.index = keep
        self.sub, self.active = gather(self.sub, keep), np.take(a, keep, axis=1)
        self.sub.flags.writeable = False

    def restore(self):
        """Bring every variable back, with its slope."""
        if self.index is not None:
            self.full[BETA, self.index] = self.active[BETA]
            self.active, self.sub, self.index = self.full, self.gram, None
            self.follow(self.full[BETA] - self._anchor)

    def follow(self, change):
        """Bring slopes and offsets up to date after the coefficients changed by ``change``."""
        full, moved = self.full, change.nonzero()[0]
        less, n = -change[moved], full.shape[1]

        def run(first):
            add_rows(self.gram, moved, less, first, min(first + WIDE, n), full[SLOPE])

        in_threads(run, range(0, n, WIDE))
        full[SLOPE, moved] -= full[RIDGE, moved] * change[moved]
        set_offsets(full)

    def recompute(self):
        """Recompute slopes and offsets from the coefficients alone, without accumulated rounding."""
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
