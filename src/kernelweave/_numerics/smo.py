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
    free_variables,
    run_free,
    run_pairs,
    set_offsets,
)
from .stopping import Pieces, out_of_time

# ------------------------------------------------------------------------------------------------------------
# Input checks and feasible starting points for the SMO engine.


def as_gram(K):
    """``K`` as a C-contiguous square float32 or float64 matrix, without a copy where possible."""
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix, got shape {K.shape}")
    if K.dtype not in (np.float32, np.float64):
        K = K.astype(np.float64)
    if K.flags.c_contiguous:
        return K
    return K.T if K.flags.f_contiguous else np.ascontiguousarray(K)


def as_vector(name, value, n):
    """``value`` (None: zeros) as a new float64 vector of length ``n``."""
    if value is None:
        return np.zeros(n)
    value = np.asarray(value, dtype=np.float64)
    if value.ndim > 1 or (value.ndim == 1 and value.size != n):
        raise ValueError(f"{name} must have length {n}, got shape {value.shape}")
    return value.copy() if value.ndim else np.full(n, value)


def check_terms(linear, lower, upper, ridge, kink):
    """Refuse boxes without the origin and terms that are not concave or not finite."""
    # methods and not functions of numpy, here and below: on small problems these lines are half of the time
    if not ((lower <= 0.0).all() and (upper >= 0.0).all()):
        raise ValueError("bounds must satisfy lower <= 0 <= upper")
    if not ((ridge >= 0.0).all() and (kink >= 0.0).all()):
        raise ValueError("ridge and kink must not be negative")
    if not all(np.isfinite(term).all() for term in (linear, ridge, kink)):
        raise ValueError("linear, ridge and kink must be finite")


def feasible_start(beta, lower, upper, equality):
    """A feasible point near ``beta``; the origin if there is nothing to start from."""
    if beta is None or not np.isfinite(beta).all():
        return np.zeros(lower.size)
    start = np.minimum(np.maximum(beta, lower), upper)
    if equality:
        _balance(start, lower, upper)
        remove_drift(start, lower, upper)
        if not _balanced(start):
            start[:] = 0.0
    return start


def _balanced(beta, rounding=1e-12):
    return abs(beta.sum()) <= rounding * np.abs(beta).sum()


def _balance(beta, lower, upper):
    """Pull the heavier sign towards zero until the sum vanishes: free variables first, then all.

    Pulling towards zero never leaves the box; sparing the variables at their bounds keeps what a warm
    start is worth.
    """
    if _balanced(beta):
        return
    free = (beta > lower) & (beta < upper)
    for candidates in (free, np.full(beta.size, True)):
        excess = beta.sum()
        heavy = candidates & (beta * excess > 0.0)
        weight = np.abs(beta[heavy]).sum()
        if weight > 0.0:
            beta[heavy] *= max(0.0, 1.0 - abs(excess) / weight)


def remove_drift(beta, lower, upper):
    """Let one variable absorb what rounding has left of the sum."""
    if _balanced(beta, 1e-15):
        return
    drift = beta.sum()
    room = beta - lower if drift > 0.0 else upper - beta
    free = (beta > lower) & (beta < upper) & (beta != 0.0)
    if free.any():
        room = np.where(free, room, 0.0)
    elif _balanced(beta):
        return  # not worth taking a variable off its bound for
    k = int(np.argmax(room))
    beta[k] = min(max(beta[k] - drift, lower[k]), upper[k])


# ------------------------------------------------------------------------------------------------------------
# The full problem, the part of it that is being worked on, and the way between the two.


#: entries of a copy from which several threads share it
MANY_ENTRIES = 1_000_000
#: columns in which rows are added by one thread; narrower pieces of rows are slow to read
WIDE = 2000


@njit(makes_arrays=False, nogil=True)
def _gather(gram, rows, columns, out):
    for p in range(rows.size):
        i = rows[p]
        for q in range(columns.size):
            out[p, q] = gram[i, columns[q]]


def gather(gram, keep, out):
    """Copy the rows and columns ``keep`` of a matrix to ``out``."""
    gram, height = frozen(gram), max(1, MANY_ENTRIES // max(1, keep.size))

    def run(top):
        _gather(gram, keep[top : top + height], keep, out[top : top + height])

    in_threads(run, range(0, keep.size, height))


def frozen(gram):
    """A read-only view: compiled code then sees one type, whether or not the caller's array is writable."""
    view = gram.view()
    view.flags.writeable = False
    return view


class Workspace:
    """A box QP of which a part is active.

    Shrinking copies the active part with its sub-Gram matrix, so that the rows it sweeps are short and
    contiguous. Meanwhile ``full[SLOPE]`` belongs to the coefficients ``_anchor``; only the rows of
    the variables that moved since are needed to bring it up to date.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The Gram matrix.
    linear : ndarray of shape (n,)
        The linear term.
    full : ndarray of shape (9, n)
        All variables, in the rows that :mod:`._smo_parts` names; slopes and offsets are kept up to date here.
    """

    def __init__(self, gram, linear, full):
        self.gram, self.linear, self.full = frozen(gram), linear, full
        self._anchor = np.empty_like(full[BETA])
        self._activate_all()

    def _activate_all(self):
        self.active, self.sub, self._index = self.full, self.gram, None

    @property
    def shrunk(self):
        """Whether some variables have left the active part."""
        return self._index is not None

    def shrink(self, high, low):
        """Drop the variables that cannot be chosen while ``high`` and ``low`` are the extremes."""
        a = self.active
        keep = np.flatnonzero((a[SLOPE] + a[UP] >= low) | (a[SLOPE] + a[DOWN] <= high))
        if self.shrunk:
            self.full[BETA, self._index] = a[BETA]
            self._index = self._index[keep]
        else:
            self._anchor[:] = a[BETA]
            self._index = keep
        sub = np.empty((keep.size, keep.size), dtype=self.gram.dtype)
        gather(self.sub, keep, sub)
        self.sub, self.active = frozen(sub), np.take(a, keep, axis=1)

    def restore(self):
        """Bring every variable back, with its slope."""
        if self.shrunk:
            self.full[BETA, self._index] = self.active[BETA]
            self._activate_all()
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

    def product(self):
        """Gram matrix times coefficients."""
        return self.linear - self.full[SLOPE] - self.full[RIDGE] * self.full[BETA]

    def mass(self):
        """Sum of the coefficients' sizes, to which rounding is in proportion."""
        return float(np.abs(self.full[BETA]).sum())

    def objective(self):
        """Value of the full problem; its slopes must be up to date."""
        full = self.full
        smooth = 0.5 * full[BETA] @ (self.linear + full[SLOPE])
        return float(smooth - full[KINK] @ np.abs(full[BETA]))


_PATIENCE = 1.5  # price of copying one entry of a sub-Gram matrix, in swept variables (measured)
_SWEEP = 5.0  # price of one step, in multiply-adds per variable (measured; the division dominates)
_STRETCH = 200_000  # steps after which the objective must have risen
_MAX_STALLS = 3
_FEW = 100  # variables of which it does not pay to set any aside
_FEWEST = 2048  # steps on few variables that are done before anything else would be compiled, or loaded


class BoxQP(NamedTuple):
    """Solution of a box QP.

    Attributes
    ----------
    beta : ndarray of shape (n,)
        Coefficients, within their bounds exactly.
    product : ndarray of shape (n,)
        ``K @ beta``.
    intercept : float
        Multiplier of the equality: decision values are ``product + intercept``. 0 without the equality.
    iterations : int
        Two-variable steps taken.
    violation : float
        Largest violation of the optimality conditions, in units of the gradient.
    converged : bool
        Whether ``violation`` is within the tolerance.
    """

    beta: np.ndarray
    product: np.ndarray
    intercept: float
    iterations: int
    violation: float
    converged: bool


class _Pace:
    """Decides when to leave two-variable steps for conjugate gradients, by what each gained for its work."""

    def __init__(self, fewest):
        self.period, self.fewest = 32.0, fewest
        self._gain = self._work = 0.0

    def steps(self, size):
        """Steps to take before the next attempt, on ``size`` active variables."""
        return int(max(self.period * size - self._work / (_SWEEP * size), self.fewest))

    def stepped(self, steps, size, gain):
        """Record ``steps`` two-variable steps."""
        self._work += _SWEEP * steps * size
        self._gain += gain

    @property
    def allowance(self):
        """Work an attempt may take: at most half as much again as went before it."""
        return 0.5 * self._work

    def attempted(self, gain, work):
        """Record an attempt; one that gained less for its work than the steps did puts off the next."""
        better = gain * self._work > self._gain * work
        self.period = max(self.period / 2.0, 1.0) if better else self.period * 4.0
        self._gain = self._work = 0.0


class _Solver:
    """One solution in progress."""

    def __init__(self, work, equality, tol, max_iter, mass, fewest):
        self.work, self.equality, self.tol, self.max_iter = work, equality, tol, max_iter
        self.fewest = fewest  # two-variable steps between attempts of conjugate gradients
        self.iterations = 0
        self._run = run_pairs if equality else run_free
        self._fresh = 0  # iterations when the slopes were last free of accumulated rounding
        self._mass = mass  # of the coefficients that the slopes were computed for
        self._stalls = 0
        self._checked, self._best = 0, -np.inf  # iterations and objective at the last look for progress

    def solve(self):
        """Iterate until the full problem has converged or nothing more can be gained."""
        pace, work = _Pace(self.fewest), self.work
        pieces = Pieces()
        while not out_of_time():
            size = work.active.shape[1]
            planned = pace.steps(size)
            fitting = pieces.next() / (_SWEEP * max(size, 1))
            budget = int(min(planned, _STRETCH, self.max_iter - self.iterations, max(fitting, 1.0)))
            patience = _PATIENCE if self._stalls == 0 else 0.0
            steps, status, high, low, gain = self._run(work.sub, work.active, self.tol, budget, patience)
            self.iterations += steps
            pace.stepped(steps, size, gain)
            pieces.done(_SWEEP * steps * size)
            if status == SHRINKABLE:
                work.shrink(high, low)
            elif status == RUNNING and self.iterations < self.max_iter:
                if self._without_progress():
                    return
                if steps == planned:
                    goal, allowance = 0.1 * self.tol, min(pace.allowance, pieces.next())
                    gain, spent = ascend_free(work.sub, work.active, self.equality, goal, allowance)
                    pace.attempted(gain, spent)
                    pieces.done(spent)
            elif work.shrunk:
                self._stalls += status == STALLED
                work.restore()
            elif self._settled(status):
                return
        work.restore()

    def _settled(self, status):
        """Whether to stop on the full problem; if rounding may have decided, remove it and go on."""
        self._stalls += status == STALLED
        if status == RUNNING or self._stalls > _MAX_STALLS or self.iterations == self._fresh:
            return True
        if status == CONVERGED and not self._rounded():
            return True
        self._refresh()
        return self._without_progress()

    def _rounded(self):
        """Whether the running slopes may be worse than a sum over the support would be.

        They are after many updates, and when they started from much larger coefficients.
        """
        many = self.iterations - self._fresh > 20 * self.work.full.shape[1]
        return many or self._mass > 10.0 * self.work.mass()

    def _refresh(self):
        self.work.recompute()
        self._fresh, self._mass = self.iterations, self.work.mass()

    def _without_progress(self):
        """Whether a long stretch has not raised the objective, which exact steps would have done.

        That is how a tolerance below the rounding of the slopes shows.
        """
        if self.iterations - self._checked < max(_STRETCH, 20 * self.work.full.shape[1]):
            return False
        self._refresh()
        best, value = self._best, self.work.objective()
        self._checked, self._best = self.iterations, max(best, value)
        return not value > best

    def result(self):
        """Remove the last rounding, and measure what has been reached."""
        work, full = self.work, self.work.full
        if self._rounded():
            self._refresh()
        if self.equality:
            before = full[BETA].copy()
            remove_drift(full[BETA], full[LOWER], full[UPPER])
            work.follow(full[BETA] - before)
        _, status, high, low, _ = self._run(work.sub, full, self.tol, 0, 0.0)
        product = work.product()
        violation = max(0.0, high - low if self.equality else high)
        intercept = _intercept(full, high, low) if self.equality else 0.0
        converged = status == CONVERGED and bool(np.isfinite(product).all())
        return BoxQP(full[BETA].copy(), product, intercept, self.iterations, violation, converged)


def _intercept(full, high, low):
    """Mean slope of the free variables, or the middle of the interval that the others leave."""
    free = free_variables(full)
    if free.size:
        return float((full[SLOPE, free] + full[UP, free]).sum()) / free.size
    ends = [end for end in (high, low) if abs(end) < 0.1 * CLOSED]
    return float(np.mean(ends)) if ends else 0.0


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

    which is the dual of kernel machines with hinge-like and insensitive losses: with ``linear = y`` and a
    box between 0 and ``c * y`` it is the support vector classifier (libsvm's coefficients times the
    labels), a ridge turns the hinge into its squared or Huber variant, a kink of ``epsilon`` in the box
    ``[-c, c]`` is support vector regression.

    Two variables are moved at a time, chosen by second-order information [1]_. Variables stuck at a bound
    are set aside, with the others' sub-Gram matrix copied to contiguous memory, and conjugate gradients on
    the free variables take over where two-variable steps stop paying. Neither changes the answer:
    convergence is always decided on the full problem.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric positive semi-definite Gram matrix, float64 or float32. Only read; sums are in float64.
    linear, lower, upper : ndarray of shape (n,) or float
        Linear term and bounds, ``lower <= 0 <= upper``. A bound may be infinite where the ridge (or the
        Gram matrix) keeps the problem bounded.
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

    Returns
    -------
    BoxQP
        The solution, with ``K @ beta`` and the intercept.

    References
    ----------
    .. [1] R.-E. Fan, P.-H. Chen, C.-J. Lin. Working set selection using second order information for
       training support vector machines. JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fit = solve_box_qp(np.outer(x, x), y, np.minimum(0.0, 9.0 * y), np.maximum(0.0, 9.0 * y))
    >>> np.round(fit.product + fit.intercept, 6)
    array([-2., -1.,  1.,  2.])
    """
    K = as_gram(K)
    n = K.shape[0]
    given = {"linear": linear, "lower": lower, "upper": upper, "ridge": ridge, "kink": kink}
    terms = [as_vector(name, value, n) for name, value in given.items()]
    check_terms(*terms)
    work, mass = _workspace(K, *terms, equality, beta, product)
    limit = max(10_000_000, 100 * n) if max_iter < 0 else int(max_iter)
    solver = _Solver(work, equality, float(tol), limit, mass, fewest)
    if n:
        solver.solve()
    return solver.result()


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
        steps, status, *_ = run_pairs(frozen(K), full, tol, _FEWEST, 0.0)
        beta = full[BETA]
        if status == CONVERGED and steps <= 20 * n:  # more would have added up to rounding
            return beta
    return solve_box_qp(K, linear, lower, upper, tol=tol, max_iter=max_iter, fewest=_FEWEST, beta=beta).beta


def _workspace(K, linear, lower, upper, ridge, kink, equality, beta, product):
    """The problem at its starting point, and the mass of the coefficients its slopes come from."""
    n = linear.size
    given = None if beta is None else as_vector("beta", beta, n)
    start = feasible_start(given, lower, upper, equality)
    slope, known = linear.copy(), np.zeros(n)
    if given is not None and product is not None and np.isfinite(given).all():
        slope -= as_vector("product", product, n) + ridge * given
        known = given
    full = np.zeros((CURVATURE + 1, n))
    full[BETA], full[SLOPE], full[LOWER], full[UPPER] = start, slope, lower, upper
    full[KINK], full[RIDGE], full[CURVATURE] = kink, ridge, K.diagonal() + ridge
    work = Workspace(K, linear, full)
    work.follow(start - known)
    return work, max(np.abs(known).sum(), work.mass())
