"""Decision values of held-out samples as probabilities: their scale, the log loss at it, and the calibration map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

from .._typing import Array
from ._parameters import Codes


@dataclass(frozen=True)
class Calibration:
    """Map from decision values to the probabilities of classes, learnt on values of held-out samples.

    Attributes
    ----------
    scale : float
        What decision values are multiplied by, at least 0.
    offset : float
        Of two classes, ``P(y = 1 | f) = 1 / (1 + exp(-(scale f + offset)))``; of several 0: their probabilities are the
        softmax of ``scale f``.
    samples : int
        Held-out decision values that the map was learnt on.
    """

    scale: float
    offset: float
    samples: int

    @classmethod
    def learn(cls, held_out: Sequence[tuple[Codes, Array, Array]]) -> Calibration | None:
        """Learn the map on the classes, decision values and weights of the samples that each fold held out.

        The likelihood is that of smoothed labels, so that no probability is 0 or 1 where all values are on the right
        side: of two classes by Platt's method, which gives each of n samples of a class ``(n + 1) / (n + 2)`` for its
        own; of several ``(n + 1) / (n + 2)`` with n all samples, and the rest to the others, since the scale is one
        number for all of them.  Weights count relative to their mean.  None where no sample has weight.
        """
        codes, values, weight = (np.concatenate(parts) for parts in zip(*held_out, strict=True))
        used = (weight > 0) & np.isfinite(values).reshape(len(values), -1).all(axis=1)
        codes, values, weight = codes[used], values[used], weight[used]
        if not codes.size:
            return None
        weight = weight / np.mean(weight)
        if (
            values.ndim == 2 and values.shape[1] == 2
        ):  # a function for each of two classes: their difference decides
            values = values[:, 1] - values[:, 0]
        size = float(np.max(np.abs(values))) or 1.0
        if values.ndim == 2:
            other = 1.0 / (codes.size + 2.0)
            labels = np.full(values.shape, other / (values.shape[1] - 1))
            labels[np.arange(codes.size), codes] = 1.0 - other
            return cls(best_scale(values / size, labels, weight) / size, 0.0, codes.size)
        from sklearn.calibration import _SigmoidCalibration

        found = _SigmoidCalibration().fit(values / size, codes, weight)
        if found.a_ < 0:
            return cls(-float(found.a_) / size, -float(found.b_), codes.size)
        # values that are larger for the other class say nothing: the classes are as frequent as they are
        second = float(weight @ (codes == 1))
        return cls(0.0, float(np.log((second + 1.0) / (np.sum(weight) - second + 1.0))), codes.size)

    def probabilities(self, values: Array) -> Array:
        """Return the probabilities of the classes, ``(n, k)``, at decision values ``(n,)`` or ``(n, k)``."""
        if values.ndim == 2:
            return np.asarray(softmax(self.scale * values, axis=1))
        raised = self.scale * values + self.offset
        return np.column_stack([expit(-raised), expit(raised)])


def best_scale(values: Array, labels: Array, weight: Array | None = None) -> float:
    """Return the ``s >= 0`` for which the softmax of ``s values`` has the least cross-entropy to labels, ``(n, k)``.

    Values are at most 1 in size; where no scale is too large, because all are on the right side, it is a large one.
    """

    def slope(scale: float) -> float:
        each = np.sum((softmax(scale * values, axis=1) - labels) * values, axis=1)
        return float(np.average(each, weights=weight))

    far = 1.0
    if not slope(0.0) < 0.0:
        return 0.0
    while slope(far) < 0.0 and far < 1e9:
        far *= 8.0
    return far if slope(far) <= 0.0 else float(brentq(slope, 0.0, far, xtol=1e-12, rtol=1e-12))


def scaled_log_loss(held_out: Sequence[tuple[Codes, Array]]) -> float:
    """Return the mean over folds of the log loss of decision values, times the scale that is best for all together.

    Decision values of a margin loss have no unit: the scale ``s > 0`` that minimises the mean over all samples of
    ``log(1 + exp(-s y f))``, or of the cross-entropy of the softmax of ``s f``, gives them one.

    ``held_out`` has the classes of every fold as numbers, and decision values ``(n,)`` of two classes or ``(n, k)``.

    >>> right, wrong = (np.array([0, 1]), np.array([-1.0, 1.0])), (np.array([0, 1]), np.array([1.0, -1.0]))
    >>> round(scaled_log_loss([right]), 6), round(scaled_log_loss([wrong]), 6)
    (0.0, 0.693147)
    """
    # what the other classes have above the own one: the loss of a sample is log sum exp(s * above)
    above = []
    for codes, values in held_out:
        whole = np.stack([np.zeros(len(values)), values], axis=1) if values.ndim == 1 else values
        above.append(whole - whole[np.arange(len(codes)), codes][:, None])
    pooled = np.concatenate(above)
    size = float(np.max(np.abs(pooled)))
    if not 0.0 < size < np.inf:
        return float(np.log(pooled.shape[1])) if size == 0.0 else np.inf
    # the value of the own class is zero, so that it needs no label
    best = best_scale(pooled / size, np.zeros_like(pooled))
    return float(np.mean([np.mean(logsumexp(best / size * one, axis=1)) for one in above]))
