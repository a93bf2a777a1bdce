"""One row per group of columns: its weight, its share of the variance, how sure these are, and its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._components import check_whole
from .._typing import Array
from ..views import Views, as_views, is_views, samples_and_targets
from .explain import contributions, feature_names
from .importance import view_p_values
from .stability import weight_stability
from .views import final_estimator, kernel_views, learnt_weights, transformed


def group_table(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    n_refits: int = 0,
    n_permutations: int = 0,
    top: int = 5,
    views: Any = None,
    random_state: Any = 0,
) -> Any:
    """Return a table with one row per group of columns (view, gene set), the heaviest first.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.
    X : samples
        By which the decision's variance is split; the training samples, or new ones.
    y : targets, optional
        For refits and permutations, which need X and y of the training.
    n_refits : int, default=0
        Refits on folds that count how often a group is selected (:func:`weight_stability`); 0 for none.
    n_permutations : int, default=0
        Permutations of every group's rows behind its p-value (:func:`view_p_values`); 0 for none.  The smallest
        adjusted p-value is the number of groups over ``n_permutations + 1``: 50 groups take 999 to reach 0.05.
    top : int, default=5
        Members of a group that are named.
    views : sequence or function, optional
        As for :func:`kernel_views`.
    random_state : int or RandomState, default=0

    Returns
    -------
    DataFrame
        ``group``; ``weight``, the share of its kernels; ``variance``, its share of the variance of the decision values,
        ``cov(f_g, f) / var(f)``, which add up to one (and can be negative); ``selected``, the share of refits that gave
        it weight; ``p_value`` and ``p_holm``; ``size``, its columns, and ``kernels``; ``top_members``, the columns that
        are most correlated with what the group adds to the decisions.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> bank = kw.from_groups({"signal": [0, 1, 2], "noise": [3, 4, 5]}, kw.linear())
    >>> table = group_table(MKLClassifier(bank, loss="logistic").fit(X, y), X)
    >>> table["group"].tolist(), table["top_members"][0].split(", ")[2]
    (['signal', 'noise'], 'feature 2')
    """
    estimator = final_estimator(model)
    check_is_fitted(estimator, "kernel_names_")
    for name, number in (("n_refits", n_refits), ("n_permutations", n_permutations), ("top", top)):
        check_whole(name, number, 0)
    if y is None and (n_refits or n_permutations):
        raise ValueError("refits and permutations need y: group_table(model, X, y, ...)")
    X, y = samples_and_targets(X, y)
    X = as_views(X) if is_views(X) else X
    parts = contributions(model, X, views=views)
    of_kernel = kernel_views(model, views)
    names = parts.view_names
    weights = learnt_weights(model)
    by_view = parts.by_view()
    total = by_view.sum(axis=1)
    centred = total - total.mean(axis=0)
    whole = float(np.sum(centred**2))
    each = (by_view - by_view.mean(axis=0)).reshape(*by_view.shape[:2], -1)
    along = np.einsum("igk,ik->g", each, centred.reshape(len(centred), -1))
    # columns of every group, in order; all of them where a kernel of it is on none
    everyone = range(int(getattr(estimator, "n_features_in_", 0)))
    settled = getattr(estimator, "kernels_", None)
    columns: list[list[int]] = [[] for _ in names]
    if settled is not None:
        for found, name in zip(columns, names, strict=True):
            of_group = [getattr(settled[j], "columns", None) for j in np.flatnonzero(of_kernel == name)]
            found += sorted({c for mine in of_group for c in (everyone if mine is None else mine)})
    table = pd.DataFrame(
        {
            "group": names,
            "weight": [float(weights[of_kernel == name].sum()) for name in names],
            "variance": np.zeros(len(names)) if whole == 0.0 else along / whole,
            "kernels": [int(np.sum(of_kernel == name)) for name in names],
            "size": [len(found) for found in columns],
            "top_members": _members(model, transformed(model, X), each, columns, top),
        }
    )
    how = {"views": views, "random_state": random_state}
    if n_refits:
        refits = weight_stability(model, X, y, n_refits=n_refits, **how).by_view().set_index("view")
        table.insert(3, "selected", refits["selected"].reindex(names).to_numpy())
    if n_permutations:
        tested = view_p_values(model, X, y, n_permutations=n_permutations, **how).set_index("view")
        for place, column in enumerate(("p_value", "p_holm"), start=4 if n_refits else 3):
            table.insert(place, column, tested[column].reindex(names).to_numpy())
    return table.sort_values("weight", ascending=False, kind="stable").reset_index(drop=True)


def _members(model: Any, samples: Any, parts: Array, columns: list[list[int]], top: int) -> list[str]:
    """Names of the columns that go most with what their group adds, ``(n, groups, functions)`` without its mean."""
    estimator = final_estimator(model)
    # the names that the groups came with, else those of the table
    names: Any = getattr(getattr(estimator, "kernels", None), "columns", None)
    if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
        names = feature_names(model, estimator)
    said = []
    for g, mine in enumerate(columns):
        f = parts[:, g]
        if not mine or not np.any(f) or len(getattr(samples, "shape", ())) != 2:
            said.append("")
            continue
        if hasattr(samples, "iloc"):
            values = samples.iloc[:, mine].to_numpy(dtype=float)
        else:
            part = samples.select_columns(mine) if isinstance(samples, Views) else samples[:, mine]
            values = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float)
        values = values - values.mean(axis=0)
        length = np.sqrt(np.sum(values**2, axis=0))
        # the squared multiple of one column: over several functions, their explained squares added up
        explained = np.sum((values.T @ f) ** 2, axis=1)
        explained = np.divide(explained, length**2, out=np.zeros_like(length), where=length > 0)
        order = np.argsort(-explained, kind="stable")[:top]
        said.append(", ".join(names[mine[k]] for k in order if explained[k] > 0))
    return said
