"""One table with columns by view, prepared view by view on the samples that have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ._tables import missing_entries
from .holder import Views

__all__ = ["ViewColumns"]


class ViewColumns(TransformerMixin, BaseEstimator):
    """Make views of one table: a transformer for each, learnt on the samples that have a value in one of its columns.

    What ``ColumnTransformer`` is to single columns: other samples lack the view, whatever the transformer would put in
    the place of missing values.

    Parameters
    ----------
    views : list of (name, transformer, columns)
        Transformers that give dense numbers; columns by name.

    Attributes
    ----------
    transformers_ : dict from the name of a view to its fitted transformer
    """

    def __init__(self, views: Sequence[tuple[str, Any, Sequence[str]]] = ()) -> None:
        self.views = views

    def fit(self, X: Any, y: Any = None) -> ViewColumns:
        """Learn every view's transformer on the samples that have the view.

        Parameters
        ----------
        X : DataFrame
        y : ignored

        Returns
        -------
        self
        """
        self.transformers_ = {}
        for name, transformer, columns in self.views:
            part = X[list(columns)]
            here = _has_some(part)
            if not here.any():
                raise ValueError(f"no sample has view {name!r}: leave it out")
            self.transformers_[name] = clone(transformer).fit(part[here])
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Views:
        """Return the views; rows of samples that lack one are NaN.

        Parameters
        ----------
        X : DataFrame

        Returns
        -------
        Views
        """
        check_is_fitted(self, "transformers_")
        blocks: dict[str, np.ndarray] = {}
        for name, _, columns in self.views:
            part = X[list(columns)]
            here = _has_some(part)
            transformer = self.transformers_[name]
            width = len(transformer.get_feature_names_out())
            block = np.full((len(part), width), np.nan)
            if here.any():
                block[here] = transformer.transform(part[here])
            blocks[name] = block
        return Views(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of all views in order."""
        names = [list(self.transformers_[name].get_feature_names_out()) for name, _, _ in self.views]
        return np.array([name for view in names for name in view], dtype=object)


def _has_some(part: Any) -> np.ndarray:
    """Samples with at least one value."""
    return np.asarray(~missing_entries(part.to_numpy(dtype=object)).all(axis=1))
