"""The best point of a run so far, and the table of its iterations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..problems import Certificate, MKLProblem, Point

__all__ = ["TRACE_COLUMNS", "Best", "without_caches"]

TRACE_COLUMNS = ("iteration", "seconds", "passes", "primal", "dual", "relative_gap", "active_kernels")

#: share of the objective by which the function that is zero has to be better
NOTICEABLE = 1e-6
#: share of the gap that an iteration has to close, not to be idle
PROGRESS = 1e-2


class Best:
    """Best primal and best dual so far, each from its own point, and a table with one row per iteration."""

    def __init__(self, keeps_last: bool = False) -> None:
        self.keeps_last = keeps_last
        self.point: Point | None = None
        self.certificate: Certificate | None = None
        self.trace: list[tuple[float, ...]] = []
        #: iterations since the bounds came noticeably closer
        self.idle = 0

    @property
    def gap(self) -> float:
        """Relative gap between the best bounds; infinite before there are any."""
        return self.certificate.relative_gap if self.certificate is not None else np.inf

    @property
    def two_passes(self) -> float:
        """Seconds of two passes over the bank, or less: by the iteration that took the least for its passes."""
        steps = np.diff(np.array(self.trace)[:, 1:3], axis=0, prepend=0.0)
        read = steps[:, 1] > 0
        return 2.0 * float(np.min(steps[read, 0] / steps[read, 1])) if np.any(read) else 0.0

    @property
    def row(self) -> dict[str, float]:
        """Last row of the table, by the names of its columns."""
        return dict(zip(TRACE_COLUMNS, self.trace[-1], strict=True))

    def improve(self, point: Point, judged: Certificate) -> None:
        """Take a last point without a row of its own."""
        assert self.certificate is not None
        # coefficients shared by all kernels are what predicts: blocks with their own give way to them
        wanted = self.point is not None and self.point.blocks is not None and point.blocks is None
        if judged.primal < self.certificate.primal or wanted or self.keeps_last:
            self.point, self.certificate = point, judged.with_dual_of(self.certificate)
        else:
            self.certificate = self.certificate.with_dual_of(judged)

    def no_worse_than_zero(self, problem: MKLProblem) -> None:
        """Take the function that is zero where it is better than anything found: then digits are gone."""
        if self.certificate is None or not hasattr(problem, "at_zero"):  # another judge
            return
        point, judged = problem.at_zero
        # not for rounding alone: coefficients that cost as much may prove a better bound
        if not self.certificate.primal - judged.primal <= NOTICEABLE * abs(judged.primal):
            self.point, self.certificate = point, judged.with_dual_of(self.certificate)

    def share_coefficients(self, problem: MKLProblem) -> None:
        """Exchange blocks with coefficients of their own, where a fit was cut short, for what can predict."""
        if self.point is not None and self.certificate is not None and self.point.blocks is not None:
            self.point = without_caches(self.point)
            self.certificate = problem.certificate(self.point).with_dual_of(self.certificate)

    def take(self, point: Point, judged: Certificate, iteration: int, seconds: float, passes: float) -> None:
        """Take the point of an iteration, and add its row to the table."""
        if self.certificate is None:
            self.point, self.certificate = point, judged
        else:
            self.improve(point, judged)
        active = int(np.count_nonzero(point.weights))
        now = self.certificate
        assert now is not None
        left = self.trace[-1][3] - self.trace[-1][4] if self.trace else np.inf
        # bounds that cross are rounding, and closer ones no progress
        self.idle = 0 if 0.0 <= now.gap < (1.0 - PROGRESS) * left else self.idle + 1
        self.trace.append((iteration, seconds, passes, now.primal, now.dual, now.relative_gap, active))


def without_caches(point: Point) -> Point:
    """Return the bare point, so that a certificate of it is computed from the bank alone."""
    return replace(
        point, quad=None, decision=None, dual_beta=None, dual_quad=None, blocks=None, cuts_bound=None
    )
