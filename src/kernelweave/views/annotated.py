"""Annotated matrices as views: AnnData (one view) and MuData (one view per modality), told by what they offer.

Neither package is imported: whatever has ``obs``, ``obs_names`` and ``X`` with ``var_names``, or ``mod``, will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._components import nearest
from ..exceptions import KernelWeaveWarning, warn_at_caller

__all__ = ["Layer", "annotated_target", "is_annotated", "is_modality", "layers_of"]

#: what a view of X itself is called; one of a layer has the layer's name
MATRIX = "X"
#: whole numbers up to more than this are counts that nobody has put on another scale
COUNTS = 100.0


def is_modality(what: Any) -> bool:
    """Whether something is one annotated matrix: an AnnData."""
    offers = all(hasattr(what, name) for name in ("obs_names", "var_names", "layers", "X", "obs"))
    # MuData offers all that for its modalities together; a table may have columns of these names
    return offers and not hasattr(what, "mod") and not hasattr(what, "iloc")


def is_annotated(what: Any) -> bool:
    """Whether something is an AnnData or a MuData."""
    several = all(hasattr(what, name) for name in ("mod", "obs", "obs_names")) and not hasattr(what, "iloc")
    return several or is_modality(what)


@dataclass(frozen=True)
class Layer:
    """One matrix of an AnnData, with the names of its cells and genes.

    Parameters
    ----------
    data : AnnData
    name : str or None
        Of the layer; None is X.
    """

    data: Any
    name: str | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and genes."""
        return len(self.data.obs_names), len(self.data.var_names)

    def read(self, view: str) -> tuple[Any, tuple[str, ...], np.ndarray]:
        """Return the values (sparse ones as they are), the names of the columns and those of the cells."""
        for what, names, repair in (
            ("columns", self.data.var_names, "var_names_make_unique"),
            ("cells", self.data.obs_names, "obs_names_make_unique"),
        ):
            if not names.is_unique:
                twice = names[names.duplicated()][0]
                raise ValueError(f"view {view!r} has two {what} named {twice!r}: call .{repair}() first")
        values = self._values(view)
        _warn_of_counts(values, view)
        return values, tuple(map(str, self.data.var_names)), np.asarray(self.data.obs_names)

    def _values(self, view: str) -> Any:
        if self.name is None:
            values = self.data.X
            if values is None:
                raise ValueError(f"view {view!r} has no X: choose a layer, {_listed(self.data.layers)}")
        else:
            if self.name not in self.data.layers:
                raise ValueError(
                    f"there is no layer {self.name!r}.{nearest(self.name, list(self.data.layers))} Layers: "
                    f"{_listed(self.data.layers)}"
                )
            values = self.data.layers[self.name]
        # matrices in a file that is open: all of it, rows as they are
        values = values.to_memory() if hasattr(values, "to_memory") else values
        return sparse.csr_matrix(values) if sparse.issparse(values) else values


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "of which there are none"


def _warn_of_counts(values: Any, view: str) -> None:
    """Warn of raw counts: the few genes with the most of them would be all that a kernel sees."""
    entries = values.data if sparse.issparse(values) else np.asarray(values)
    if entries.size == 0 or entries.dtype.kind not in "fiu":
        return
    largest = float(np.max(entries))
    if not COUNTS < largest < np.inf or float(np.min(entries)) < 0.0:
        return
    if np.array_equal(entries, np.round(entries)):
        warn_at_caller(
            f"view {view!r} holds raw counts (up to {largest:.0f}): a few columns with many counts decide then. Divide "
            "by the cells' totals and take logarithms (scanpy: normalize_total, log1p), or choose a layer with such "
            "values: omics.cells(data, layer=...)",
            KernelWeaveWarning,
        )


def layers_of(
    data: Any, layer: str | Mapping[str, str] | None = None, modalities: Any = None
) -> dict[str, Layer]:
    """Return the matrices of an AnnData or a MuData by the name of their view."""
    if is_modality(data):
        if modalities is not None or isinstance(layer, Mapping):
            raise ValueError("modalities are those of MuData: an AnnData has X and layers")
        return {MATRIX if layer is None else str(layer): Layer(data, layer)}
    known = list(data.mod)
    chosen = known if modalities is None else [str(name) for name in modalities]
    chosen_layers = dict(layer) if isinstance(layer, Mapping) else dict.fromkeys(chosen, layer)
    for name in [*chosen, *chosen_layers]:
        if name not in known:
            raise ValueError(
                f"there is no modality {name!r}.{nearest(name, known)} Modalities: {_listed(known)}"
            )
    return {name: Layer(data.mod[name], chosen_layers.get(name)) for name in chosen}


def annotated_target(data: Any, name: str) -> Any:
    """Return a column of ``obs`` as a target, or say what is wrong with it; classes of one cell are told."""
    columns = [str(column) for column in data.obs.columns]
    if name not in columns:
        raise ValueError(
            f".obs has no column {name!r}.{nearest(name, columns)} Its columns are {_listed(columns)}"
        )
    column = data.obs[name]
    gone = int(column.isna().sum())
    if gone:
        raise ValueError(
            f"{gone} of {len(column)} cells have no {name!r}: leave them out, data[data.obs[{name!r}].notna()]"
        )
    if column.dtype.kind in "fc":
        return column.astype(float)
    # strings of any kind and categories alike
    labels = column.astype(column.cat.categories.dtype) if hasattr(column, "cat") else column
    counts = labels.value_counts()
    alone = counts.index[counts == 1]
    if 0 < len(alone) < len(labels):
        warn_at_caller(
            f"classes of {name!r} with one cell only: {_listed(alone[:5])}{', ...' * (len(alone) > 5)}. Nothing can be "
            "learnt or checked from one: leave them out, or merge them with others",
            KernelWeaveWarning,
        )
    return labels.astype(object) if labels.dtype.kind not in "iub" else labels
