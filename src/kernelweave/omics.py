"""Single cells: AnnData and MuData in, predictions and the table of gene sets back into them.

Estimators take both as they are, ``fit(adata, "cell_type")``; this module has what that leaves open: another layer than
X, some modalities only, and the way back.  ``pip install kernelweave[omics]`` brings the two packages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .inspection import contributions, final_estimator, group_table
from .inspection.views import learnt_weights
from .views import Views, is_annotated, layers_of

__all__ = ["annotate", "cells"]


def cells(
    data: Any, layer: str | Mapping[str, str] | None = None, modalities: Sequence[str] | None = None
) -> Views:
    """Return a layer of AnnData, or some modalities of MuData, as views that estimators and ``GridSearchCV`` take.

    Parameters
    ----------
    data : AnnData or MuData
    layer : str or mapping from modalities to str, optional
        Layer to take in the place of X.
    modalities : sequence of str, optional
        Of MuData, by default all.

    Examples
    --------
    A stand-in for AnnData, which need not be installed for this:

    >>> import numpy as np, pandas as pd
    >>> from types import SimpleNamespace
    >>> names = pd.Index(["c1", "c2"]), pd.Index(["MYC", "TP53", "EGFR"])
    >>> data = SimpleNamespace(X=np.eye(2, 3), layers={"log": np.ones((2, 3))}, obs_names=names[0], var_names=names[1])
    >>> data.obs = pd.DataFrame(index=names[0])
    >>> cells(data, layer="log")
    Views of 2 samples: log (3 columns)
    """
    if not is_annotated(data):
        raise ValueError(f"AnnData or MuData is needed, got {type(data).__name__}")
    return Views(layers_of(data, layer, modalities), index=data.obs_names)


def annotate(
    model: Any,
    data: Any,
    *,
    layer: str | Mapping[str, str] | None = None,
    modalities: Sequence[str] | None = None,
    key: str = "kernelweave",
    table: Any = None,
) -> None:
    """Write a fitted model's results into AnnData or MuData, in place.

    ``obs`` gets ``{key}_predicted`` and, for two classes or a regression, ``{key}_decision``; with probabilities also
    ``{key}_probability``, that of the predicted class.  ``obsm["{key}_groups"]`` is what every group with weight
    adds to the cells' decision values (of several classes, to that of the predicted one).  ``uns[key]``
    has the table of groups, the kernels' weights and the certificate.  All of it can be written to a file.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.
    data : AnnData or MuData
        Training cells or new ones.
    layer, modalities
        As for :func:`cells`, where the model was fitted on such.
    key : str, default="kernelweave"
        What the results are called.
    table : DataFrame, optional
        From ``inspection.group_table``, with refits and p-values; by default one without.
    """
    import pandas as pd

    X = cells(data, layer, modalities)
    estimator = final_estimator(model)
    rows = group_table(model, X) if table is None else table
    predicted = np.asarray(model.predict(X))
    if predicted.ndim > 1:
        raise ValueError(f"obs has one column per result: the model predicts {predicted.shape[1]} targets")
    parts = contributions(model, X)
    obs: dict[str, Any] = {"predicted": predicted}
    if hasattr(model, "classes_"):
        labels = [str(label) for label in predicted]
        obs["predicted"] = pd.Categorical(labels, [str(label) for label in model.classes_])
        if parts.decision.ndim == 1:
            obs["decision"] = parts.decision
        if hasattr(model, "predict_proba"):
            # the largest is not always that of the label, which the decision values choose
            own = np.searchsorted(model.classes_, predicted)
            obs["probability"] = np.asarray(model.predict_proba(X))[np.arange(own.size), own]
    values = parts.by_view()
    if values.ndim == 3:
        column = np.searchsorted(np.asarray(parts.classes), predicted)
        values = values[np.arange(len(values)), :, column]
    used = np.flatnonzero(np.any(values != 0.0, axis=0))
    # a slash would be a folder in the file
    groups = [str(parts.view_names[g]).replace("/", "_") for g in used]
    names = [str(name) for name in estimator.kernel_names_]
    for name, cell_values in obs.items():
        data.obs[f"{key}_{name}"] = cell_values
    data.obsm[f"{key}_groups"] = pd.DataFrame(values[:, used], index=data.obs_names, columns=groups)
    data.uns[key] = {
        "groups": _writable(rows),
        "weights": _writable(pd.DataFrame({"kernel": names, "weight": learnt_weights(model)})),
        "certificate": {
            name: float(getattr(estimator.certificate_, name))
            for name in ("primal", "dual", "gap", "relative_gap")
        },
        "status": str(estimator.status_),
        "solver": str(estimator.solver_),
        "model": repr(estimator)[:2000],
    }


def _writable(table: Any) -> Any:
    """Return the table with an index and columns that files of AnnData can hold."""
    rows = table.copy()
    for name in {"group", "top_members", "kernel"} & set(rows.columns):
        rows[name] = rows[name].astype(str).astype(object)
    rows.index = rows.index.astype(str)
    return rows


__dir__ = __all__.copy  # completion shows the public names alone
