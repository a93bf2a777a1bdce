"""How strongly a learned kernel is held near the similarities, scaled to the matrix; and whether new rows follow it."""

from __future__ import annotations

import numpy as np

from .fits import Task, fit_method
from .inputs import Normalised
from .losses import SimilarityLoss, SquaredLoss, make_similarity_loss

__all__ = ["poor_rule", "scaled_rho"]

#: how far the SVM may move a kernel, relative to its size
MOVE = 0.1
#: errors among training rows beyond those of the fitted kernel, as a share of the samples, that are a finding
WORSE = 0.1


def scaled_rho(method: str, given: Normalised, task: Task) -> float:
    """Return the weight of the distance at which the SVM moves the kernel by about a tenth of its size.

    With K the denoised mean similarity and b the coefficients of an SVM on it, the SVM's value falls by ``|b b'| / 2``
    per unit of movement along ``D = b b' / |b b'|``, and a movement of size t costs
    ``cost(t) = sum_i [L(X_i + t D) + L(X_i - t D)] / 2 - L(X_i)``, ``X_i = K - S_i``, quadratic in t where L is smooth.
    The two balance at ``rho = t |b b'| / (4 cost(t))``; t is a tenth of ``|K|``.  For the Frobenius loss of a strongly
    indefinite similarity that grows with the negative part, whose size makes the loss flat.
    """
    loss: SimilarityLoss = SquaredLoss() if method == "indsvm" else make_similarity_loss(task.loss)
    svm = fit_method("denoise", given, task)
    K = svm.kernels[0]
    b = svm.beta.reshape(K.shape[0], -1)
    pull = b @ b.T
    force = float(np.linalg.norm(pull))
    if force == 0.0:
        return 1.0
    D = pull / force
    t = MOVE * float(np.linalg.norm(K))
    cost = slope = 0.0
    for S in given.stack:
        X = K - S
        cost += 0.5 * (loss.value(X + t * D) + loss.value(X - t * D)) - loss.value(X)
        slope += float(np.linalg.norm(loss.subgradient(X)))
    # where the loss is straight along D nothing but its slope holds the kernel
    cost = max(cost, 1e-3 * t * slope, np.finfo(float).tiny)
    # classes that share a kernel share its charge: the fit multiplies rho with their number
    return 0.25 * t * force / (cost * b.shape[1])


def poor_rule(method: str, rule: str, by_kernel: int, by_rows: int, n: int) -> str | None:
    """Return a sentence where training rows are predicted far worse than by the fitted kernel.

    A row of a training sample is what a row of a new sample looks like at best.

    >>> poor_rule("eskl", "smooth", 3, 5, 100) is None
    True
    >>> poor_rule("eskl", "smooth", 3, 33, 100)[:66]
    'Rows of training samples are predicted with 33 of 100 errors where'
    """
    if by_rows - by_kernel <= WORSE * n:
        return None
    others = [f"rule={other!r}" for other in ("classical", "smooth") if other != rule]
    ways = [*others, "method='features'", "method='auto'"] + (["a larger rho"] if method == "eskl" else [])
    return (
        f"Rows of training samples are predicted with {by_rows} of {n} errors where the fitted kernel makes "
        f"{by_kernel}: new rows do not follow the kernel of method={method!r} with rule={rule!r}, and new samples will "
        f"fare no better. Try {', '.join(ways[:-1])} or {ways[-1]}."
    )
