"""Reading what models of earlier versions kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..banks import KernelFunction, PrecomputedKernels, Term

__all__ = ["function_of_parts"]


def function_of_parts(state: dict[str, Any]) -> KernelFunction:
    """Return the function of a model of 0.1.0, taking the parts it kept out of its state.

    It had the kernels with weight and the coefficients on their support as attributes of their own; LP-beta one such
    pair per kernel.
    """
    bound, weights = state.pop("_bound"), np.asarray(state["weights_"])
    active, coef = state.pop("_active", None), state.pop("_coef", None)
    parts = state.pop("_parts", None)
    if parts is None:
        parts = [(np.asarray(active), bound, coef)]
    terms = []
    for index, kernels, beta in parts:
        index = np.atleast_1d(index)
        if isinstance(kernels, PrecomputedKernels):  # was kept whole
            kernels = kernels.restrict(index, beta)[0]
        terms.append(Term(kernels, index, weights[..., index], beta))
    return KernelFunction(terms, state["intercept_"], weights.shape[-1])
