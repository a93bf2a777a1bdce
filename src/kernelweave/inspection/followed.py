"""How a model of survival fits the samples that were followed: groups of risk, calibration, residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._typing import Array
from ..metrics import curves_of, kaplan_meier
from .views import paired, predicts_survival


def _followed(model: Any, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Return samples and targets in one order; raise where a model does not predict survival."""
    if not predicts_survival(model):
        raise ValueError("this is for times to an event: MKLSurvival, or a pipeline that ends in it")
    return paired(model, X, y)


def risk_groups(risk: ArrayLike, n_groups: int = 3) -> NDArray[np.intp]:
    """Return groups of equal size by risk, 0 for those with the lowest; equal risks are in one group.

    Parameters
    ----------
    risk : array of shape (n,)
        As ``MKLSurvival.predict`` gives it, best of samples that the model has not seen.
    n_groups : int, default=3

    Examples
    --------
    >>> risk_groups([0.1, 3.0, -2.0, 0.4, 1.0, -0.5]).tolist()
    [1, 2, 0, 1, 2, 0]
    """
    values = np.asarray(risk, dtype=float)
    if not (isinstance(n_groups, int | np.integer) and 1 <= n_groups <= max(values.size, 1)):
        raise ValueError(
            f"n_groups must be a whole number between 1 and the number of samples, got {n_groups!r}"
        )
    edges = np.quantile(values, np.arange(1, n_groups) / n_groups)
    return np.searchsorted(edges, values)


def calibration(
    model: Any, X: Any, y: Any, times: ArrayLike | None = None, *, n_groups: int = 5, strata: Any = None
) -> Any:
    """Compare predicted probabilities to be without event with what happened, by groups of what was predicted.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.
    X, y : samples and targets
        Best samples that the model has not seen.
    times : array of shape (k,), optional
        Horizons; by default the quartiles of the event times.
    n_groups : int, default=5
        Groups of equal size by the predicted probability, at every horizon anew.
    strata : array of shape (n,), optional
        Where the model was fitted with strata.

    Returns
    -------
    DataFrame
        ``time``, ``group``, ``samples``, ``predicted`` (mean of the group) and ``observed`` (its share without event,
        by Kaplan and Meier).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLSurvival, kernels as kw, survival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 2))
    >>> y = survival(rng.exponential(np.exp(-X[:, 0])), np.ones(90, dtype=bool))
    >>> table = calibration(MKLSurvival(kw.linear()).fit(X[:60], y[:60]), X[60:], y[60:], [0.5], n_groups=2)
    >>> table.columns.tolist(), len(table)
    (['time', 'group', 'samples', 'predicted', 'observed'], 2)
    """
    X, y = _followed(model, X, y)
    if not y["event"].any():
        raise ValueError("no sample has the event: there is nothing to calibrate by")
    quartiles = np.unique(np.quantile(y["time"][y["event"]], [0.25, 0.5, 0.75]))
    at = quartiles if times is None else np.atleast_1d(np.asarray(times, dtype=float))
    return calibrated(y, np.array([curve(at) for curve in curves_of(model, X, strata)]), at, n_groups)


def calibrated(y: NDArray[Any], survived: Array, at: Array, n_groups: int) -> Any:
    """Return the table of ``calibration`` from predicted probabilities, ``(n, k)``."""
    rows = []
    for k, horizon in enumerate(at):
        group = risk_groups(survived[:, k], n_groups)
        for number in np.unique(group):
            own = group == number
            observed, predicted = kaplan_meier(y[own])(horizon), float(survived[own, k].mean())
            rows.append((float(horizon), int(number), int(own.sum()), predicted, observed))
    return pd.DataFrame(rows, columns=["time", "group", "samples", "predicted", "observed"])


def martingale_residuals(model: Any, X: Any, y: Any, *, strata: Any = None) -> Array:
    """Return the events of every sample less those that were to be expected of it until it was last seen.

    Of the training samples of ``loss="cox"`` they are ``dual_coef_`` over C and weight, and sum to zero with their
    weights.  A trend along a covariate says that the model lacks something of it.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.
    X, y : samples and targets
    strata : array of shape (n,), optional
        Where the model was fitted with strata.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLSurvival, kernels as kw, survival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> y = survival(rng.exponential(np.exp(-X[:, 0])), np.ones(50, dtype=bool))
    >>> model = MKLSurvival(kw.linear(), tol=1e-8).fit(X, y)
    >>> bool(np.allclose(martingale_residuals(model, X, y), model.dual_coef_, atol=1e-3))
    True
    """
    X, y = _followed(model, X, y)
    curves = curves_of(model, X, strata, hazard=True)
    return y["event"] - np.array([curve(time) for curve, time in zip(curves, y["time"], strict=True)])
