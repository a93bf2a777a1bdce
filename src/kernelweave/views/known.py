"""What a fitted model knows of its views: how new samples become what its kernels take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._tables import is_table
from .holder import Views, is_views
from .layout import ViewLayout
from .missingness import MissingRates, refuse_missing

__all__ = ["KnownViews"]


@dataclass
class KnownViews:
    """Views of the training samples, remembered.

    Parameters
    ----------
    layout : ViewLayout
    groups : dict from names to lists of columns, or None
        Where the views are columns of one table: which.
    missing : {"error", "mean", "predict"}
        How the model was fitted.
    rates : MissingRates
    used : list of str
        Views that some kernel looks at; the others need not be there.
    """

    layout: ViewLayout
    groups: dict[str, list[int]] | None
    missing: str
    rates: MissingRates
    used: list[str]

    @classmethod
    def of(
        cls, views: Views, missing: str, used: Sequence[str], groups: Mapping[str, Any] | None = None
    ) -> KnownViews:
        """Remember the views of training samples."""
        cut = None if groups is None else {name: list(columns) for name, columns in groups.items()}
        return cls(ViewLayout.of(views), cut, missing, MissingRates.of(views), list(used))

    def samples(self, X: Any) -> Any:
        """Return new samples as the kernels take them; views that are missing are refused or marked."""
        views = self.bring(X)
        looked_at = views.only(self.used)
        looked_at.check_values()
        if self.missing == "error":
            refuse_missing(looked_at, fitted=True)
            return views.table()
        self.rates.warn_of_change(looked_at)
        return views

    def bring(self, X: Any) -> Views:
        """Return new samples as views, from whatever holds them."""
        if self.groups is not None:
            return Views.of_table(X, self.groups)
        if is_views(X) or (isinstance(X, list | tuple) and len(X) and all(map(is_table, X))):
            return self.layout.bring(X)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2 or shape[1] != sum(self.layout.widths):
            raise ValueError(
                f"X must be a dict of views ({', '.join(self.layout.names)}), or one table with their "
                f"{sum(self.layout.widths)} columns in this order"
            )
        starts = [sum(self.layout.widths[:k]) for k in range(len(self.layout.names) + 1)]
        cut = {name: range(starts[k], starts[k + 1]) for k, name in enumerate(self.layout.names)}
        made = Views.of_table(X, cut)
        made.order = None
        return self.layout.bring(made)
