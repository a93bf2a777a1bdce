"""Weights of kernels of pairs as a table of both sides' kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..estimators.fitted import FittedModel
from ..kernels.pairwise import PairKernel, factors_of
from .views import as_shares, final_estimator


def pair_table(model: Any, *, margins: bool = False) -> pd.DataFrame:
    """Return the weights of kernels of pairs, left kernels by right kernels, as shares of their sum.

    Rows answer which descriptors of the left objects matter, columns those of the right objects.  ``constant`` is what
    an object adds whatever its partner is, ``identity`` what is learnt of single objects by heart: a new object has
    nothing of that.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted on ``Pairs``; where several problems have weights of their own, their means are shown.
    margins : bool, default=False
        Whether a row and a column ``"all"`` hold the sums.

    Returns
    -------
    DataFrame
        NaN where two kernels have no product in the bank.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressor, Pairs, inspection, kernels as kw
    >>> rng = np.random.default_rng(0)
    >>> drugs, cells = rng.normal(size=(12, 2)), rng.normal(size=(10, 2))
    >>> X = Pairs.from_grid(drugs, cells, drugs @ cells.T)
    >>> bank = kw.pairs(left=kw.linear() + kw.gaussian(0.5), right=kw.linear(), main=False, identity=False)
    >>> inspection.pair_table(MKLRegressor(bank).fit(X, X.labels))["linear"].round(1).to_dict()
    {'linear': 1.0, 'gaussian(width=0.5)': 0.0}
    """
    fitted = FittedModel.of(final_estimator(model))
    kernels = [kernel for kernel in fitted.kernels or () if isinstance(kernel, PairKernel)]
    if not kernels:
        raise ValueError(
            "pair_table is for models that were fitted on Pairs, with kernels.pairs(left=..., right=...)"
        )
    shares = as_shares(np.atleast_2d(fitted.weights)).mean(axis=0)
    lefts, rights, terms = factors_of(kernels)
    grid = np.full((len(lefts), len(rights)), np.nan)
    grid[terms[:, 0], terms[:, 1]] = shares
    table = pd.DataFrame(
        grid,
        index=pd.Index([kernel.name for kernel in lefts], name="left"),
        columns=pd.Index([kernel.name for kernel in rights], name="right"),
    )
    if margins:
        table["all"] = table.sum(axis=1)
        table.loc["all"] = table.sum(axis=0)
    return table
