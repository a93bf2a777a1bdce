"""What a model remembers of the views it was fitted on, and how new samples are brought to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ._tables import unlike
from .holder import Views, as_views

__all__ = ["ViewLayout"]


@dataclass
class ViewLayout:
    """Names, widths and names of the columns of some views; ``sparse`` says which are sparse matrices.

    Parameters
    ----------
    names : list of str
    widths : list of int
    columns : list of (list of str or None)
    sparse : list of bool
    """

    names: list[str]
    widths: list[int]
    columns: list[list[str] | None]
    sparse: list[bool]

    @classmethod
    def of(cls, views: Views) -> ViewLayout:
        """Read the layout off the training samples."""
        return cls(
            list(views.names),
            [int(block.shape[1]) for block in views.blocks],
            [None if columns is None else list(columns) for columns in views.columns],
            [bool(sparse.issparse(block)) for block in views.blocks],
        )

    def bring(self, X: Any) -> Views:
        """Return new samples as the same views in the same order; a view that X does not have is absent.

        Columns are found by their names where both sides have them, else by their places.
        """
        new = self._by_place(X) if isinstance(X, list | tuple) else as_views(X)
        unknown = [name for name in new.names if name not in self.names]
        if unknown:
            from .._components import nearest

            raise ValueError(
                f"the model knows no view {unknown[0]!r}.{nearest(unknown[0], self.names)} Its views are "
                f"{', '.join(self.names)}"
            )
        blocks, columns = [], []
        present = np.zeros((len(new), len(self.names)), dtype=bool)
        for k, name in enumerate(self.names):
            columns.append(None if self.columns[k] is None else tuple(self.columns[k] or ()))
            if name not in new:
                blocks.append(self._nothing(k, len(new)))
                continue
            present[:, k] = new.present[:, new.position(name)]
            blocks.append(self._block(k, new))
        return new._with(
            names=tuple(self.names), blocks=tuple(blocks), columns=tuple(columns), present=present,
            matched={name: new.matched.get(name, 0) for name in self.names},
        )  # fmt: skip

    def _by_place(self, tables: list[Any] | tuple[Any, ...]) -> Views:
        if len(tables) != len(self.names):
            raise ValueError(
                f"got a list of {len(tables)} views for a model of {len(self.names)}: give a dict, so that it is "
                f"clear which are missing ({', '.join(self.names)})"
            )
        return Views(dict(zip(self.names, tables, strict=True)))

    def _block(self, k: int, new: Views) -> Any:
        name, known = self.names[k], self.columns[k]
        block, theirs = new[name], new.columns[new.position(name)]
        if known is not None and theirs is not None and list(theirs) != known:
            place = {column: j for j, column in enumerate(theirs)}
            gone = [column for column in known if column not in place]
            if gone:
                raise ValueError(
                    f"view {name!r} has no column {unlike(gone)}, which the model was fitted on "
                    f"({len(gone)} of {len(known)} are missing)"
                )
            return block[:, [place[column] for column in known]]
        if block.shape[1] != self.widths[k]:
            raise ValueError(
                f"view {name!r} has {block.shape[1]} columns, but the model was fitted on {self.widths[k]}"
            )
        if self.sparse[k] and not sparse.issparse(block):
            return sparse.csr_matrix(np.where(np.isnan(block), 0.0, block))
        return block

    def _nothing(self, k: int, n: int) -> Any:
        shape = (n, self.widths[k])
        # one NaN that stands for all of them
        return sparse.csr_matrix(shape) if self.sparse[k] else np.broadcast_to(np.float64(np.nan), shape)
