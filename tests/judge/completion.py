"""Recompute kernels that some samples lack from ``docs/incomplete_views.md``, with NumPy alone.

A part is what samples have or lack: the kernels of one view, or one matrix.  A sample without a part gets the features
``sum_l c_l phi(x_l)`` over the training samples T that have it, with weights c of a ridge regression from the parts that
it has.  The penalties that the library chose are taken from it, and held to the grid and to the R2 that it reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .bounds import EPS, LONG, normalised, raw_kernel
from .problems import Case

#: penalties in units of the mean eigenvalue of the predictors' kernel; infinity predicts the mean
GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)


@dataclass
class Part:
    """The kernels of a part on the training samples that have it, and what new samples are normalised by."""

    members: list[int]
    rows: np.ndarray
    raw: list[np.ndarray]
    own: np.ndarray
    unsure: np.ndarray
    mean: np.ndarray

    def centred(self, cross):
        """A mean kernel between new samples and T, centred and scaled as on T."""
        means = np.mean(self.mean, axis=1)
        grand = np.mean(means)
        spread = np.mean(np.diagonal(self.mean) - 2 * means + grand)
        factor = 1 / spread if spread > 1e-12 * np.mean(np.abs(np.diagonal(self.mean))) else LONG(0)
        return (cross - np.mean(cross, axis=1)[:, None] - means[None, :] + grand) * factor


def _centre(K):
    means = np.mean(K, axis=1)
    return K - means[:, None] - means[None, :] + np.mean(means)


def _solved(A, b):
    """``A^-1 b`` with the digits of extended precision, by refining what double precision finds."""
    inverse = np.linalg.inv(np.asarray(A, dtype=float))
    x = np.asarray(inverse @ np.asarray(b, dtype=float), dtype=LONG)
    for _ in range(3):
        x = x + inverse @ np.asarray(b - A @ x, dtype=float)
    return x


class Completion:
    """Completed kernels of a case, for the training samples and for new ones."""

    def __init__(self, case: Case, learnt: Any) -> None:
        self.case, self.learnt, self.n = case, learnt, len(case.y)
        self.how = case.parameters["missing"]
        self.parts: list[Part] = []
        for v, columns in enumerate(case.views):
            rows = np.flatnonzero(case.present[:, v])
            if case.stack is not None:
                members, raw = [v], [(np.asarray(case.stack[v], dtype=LONG)[np.ix_(rows, rows)], 0.0)]
            else:
                members = [j for j, kernel in enumerate(case.kernels) if kernel.columns == columns]
                Z = case.X[rows]
                raw = [raw_kernel(case.kernels[j], Z, Z, Z) for j in members]
            own, unsure = normalised(
                [value for value, _ in raw], [abs(value) * doubt for value, doubt in raw],
                case.parameters["normalize"], case.parameters["center"],
            )  # fmt: skip
            self.parts.append(
                Part(members, rows, [value for value, _ in raw], own, unsure, np.mean(own, axis=0))
            )
        self.m = sum(len(part.members) for part in self.parts)

    def predictors(self, pattern):
        """Kernel of the training samples that a pattern predicts with: the mean of its parts' mean kernels."""
        total = np.zeros((self.n, self.n), dtype=LONG)
        for p in np.flatnonzero(pattern):
            part = self.parts[p]
            total[np.ix_(part.rows, part.rows)] += part.centred(part.mean)
        return total / max(1, np.count_nonzero(pattern))

    def errors(self, pattern, p, penalty):
        """Sum over T of the squared distances in feature space of samples from their predictions without them."""
        part = self.parts[p]
        n, K = len(part.rows), part.centred(part.mean)
        if np.isinf(penalty):
            left = np.eye(n) - 1.0 / n
        else:
            G = _centre(self.predictors(pattern)[np.ix_(part.rows, part.rows)])
            left = penalty * _solved(G + penalty * np.eye(n), np.eye(n)) - 1.0 / n
        own = np.maximum(np.diagonal(left), 1e-10)
        return float(np.sum(np.einsum("ij,jk,ki->i", left, K, left) / own**2))

    def unit(self, pattern, p) -> float:
        """Mean eigenvalue of the centred kernel that a part is predicted with."""
        rows = self.parts[p].rows
        return float(np.trace(_centre(self.predictors(pattern)[np.ix_(rows, rows)]))) / len(rows)

    def place(self, pattern) -> int | None:
        """Where the library keeps what it learnt of a pattern; None for one that it has not met."""
        found = np.flatnonzero(np.all(np.asarray(self.learnt.patterns) == pattern, axis=1))
        return int(found[0]) if found.size else None

    def penalties(self, pattern, p) -> list[float]:
        """The penalty that was learnt; of a new pattern those that lead to the least error, up to rounding."""
        if self.how == "mean":
            return [np.inf]
        place = self.place(pattern)
        if place is not None:
            return [float(self.learnt.penalties[place, p])]
        unit, nothing = self.unit(pattern, p), self.errors(pattern, p, np.inf)
        if not (len(self.parts[p].rows) > 2 and unit > 0 and nothing > 0):
            return [np.inf]
        tries = [*(level * unit for level in GRID), np.inf]
        errors = [self.errors(pattern, p, penalty) for penalty in tries]
        near = min(errors) + 1e-7 * nothing
        return [penalty for penalty, error in zip(tries, errors, strict=True) if error <= near]

    def weights(self, pattern, p, penalty, cross):
        """Weights over T of samples with a pattern; ``cross`` is the predictors' kernel with all training samples."""
        rows = self.parts[p].rows
        n = len(rows)
        if np.isinf(penalty):
            return np.full((len(cross), n), LONG(1) / n)
        G = self.predictors(pattern)[np.ix_(rows, rows)]
        means = np.mean(G, axis=1)
        new = cross[:, rows]
        new = new - np.mean(new, axis=1)[:, None] - means[None, :] + np.mean(means)
        c = _solved(_centre(G) + penalty * np.eye(n), new.T).T
        return c - np.mean(c, axis=1)[:, None] + LONG(1) / n

    def spread(self):
        """For every part the matrix P of all training samples: rows of the identity, or weights."""
        made = []
        for p, part in enumerate(self.parts):
            P = np.zeros((self.n, len(part.rows)), dtype=LONG)
            P[part.rows, np.arange(len(part.rows))] = 1
            for pattern in np.unique(self.case.present[~self.case.present[:, p]], axis=0):
                members = np.flatnonzero(np.all(self.case.present == pattern, axis=1))
                penalty = self.penalties(pattern, p)[0]
                P[members] = self.weights(pattern, p, penalty, self.predictors(pattern)[members])
            made.append(P)
        return made

    def matrices(self):
        """Completed kernels ``P K P'`` and the rounding of their entries."""
        K, unsure = np.zeros((2, self.m, self.n, self.n), dtype=LONG)
        for part, P in zip(self.parts, self.spread(), strict=True):
            for j, own, doubt in zip(part.members, part.own, part.unsure, strict=True):
                K[j] = P @ own @ P.T
                size = np.abs(P) @ np.abs(own) @ np.abs(P).T
                unsure[j] = np.abs(P) @ doubt @ np.abs(P).T + 64 * EPS * len(own) * size
        return K, unsure

    def cross(self, samples, pattern):
        """Completed kernels between training samples, seen as new ones with another pattern, and all training samples."""
        P = self.spread()
        new_kernels, predicting = {}, np.zeros((len(samples), self.n), dtype=LONG)
        for p in np.flatnonzero(pattern):
            part = self.parts[p]
            new_kernels[p] = self.normalised_rows(part, samples)
            predicting[:, part.rows] += part.centred(np.mean(new_kernels[p], axis=0))
        predicting = predicting / max(1, np.count_nonzero(pattern))
        choices = [np.zeros((self.m, len(samples), self.n), dtype=LONG)]
        for p, part in enumerate(self.parts):
            if pattern[p]:
                options = [new_kernels[p]]
            else:
                options = [
                    [self.weights(pattern, p, penalty, predicting) @ own for own in part.own]
                    for penalty in self.penalties(pattern, p)
                ]
            grown = []
            for so_far in choices:
                for option in options:
                    K = so_far.copy()
                    for j, entries in zip(part.members, option, strict=True):
                        K[j] = entries @ P[p].T
                    grown.append(K)
            choices = grown
        return choices

    def normalised_rows(self, part, samples):
        """Kernels of a part between some samples, which need not be of T, and T, normalised by what T says."""
        mode, center = self.case.parameters["normalize"], self.case.parameters["center"]
        made = []
        for j, own in zip(part.members, part.raw, strict=True):
            if self.case.stack is not None:
                cross = np.asarray(self.case.stack[j], dtype=LONG)[np.ix_(samples, part.rows)]
                diagonal = np.asarray(np.diagonal(self.case.stack[j]), dtype=LONG)[samples]
            else:
                new, T = self.case.X[samples], self.case.X[part.rows]
                cross = raw_kernel(self.case.kernels[j], new, T, T)[0]
                diagonal = np.diagonal(raw_kernel(self.case.kernels[j], new, new, T)[0])
            before = np.mean(np.abs(np.diagonal(own)))
            if center:
                means = np.mean(own, axis=1)
                diagonal = diagonal - 2 * np.mean(cross, axis=1) + np.mean(means)
                cross = cross - np.mean(cross, axis=1)[:, None] - means[None, :] + np.mean(means)
                own = _centre(own)
            if mode == "trace":
                mean = np.mean(np.diagonal(own))
                cross = cross / mean if mean > max(1e-300, 1e-12 * before if center else 0) else 0 * cross
            elif mode == "cosine":
                cross = cross / np.sqrt(np.outer(diagonal, np.diagonal(own)))
            made.append(cross)
        return np.asarray(made)

    def violations(self) -> list[str]:
        """What is wrong with the penalties and the R2 that the library reports of training patterns."""
        found = []
        for q, pattern in enumerate(np.asarray(self.learnt.patterns)):
            for p in np.flatnonzero(~pattern):
                penalty, r2 = float(self.learnt.penalties[q, p]), float(self.learnt.r2[q, p])
                if self.how == "mean" or np.isinf(penalty):
                    if not (np.isinf(penalty) and r2 == 0.0):
                        found.append(
                            f"part {p} of pattern {pattern}: penalty {penalty!r}, R2 {r2!r}, by the mean"
                        )
                    continue
                unit = self.unit(pattern, p)
                if min(abs(penalty - level * unit) for level in GRID) > 1e-7 * penalty:
                    found.append(
                        f"part {p} of pattern {pattern}: penalty {penalty!r} is not on the grid of {unit!r}"
                    )
                by_definition = 1 - self.errors(pattern, p, penalty) / self.errors(pattern, p, np.inf)
                if not abs(by_definition - r2) <= 1e-6 or not r2 > 0:
                    found.append(f"part {p} of pattern {pattern}: R2 {r2!r}, by definition {by_definition!r}")
        return found
