"""Preparing views one by one on the samples that have them, inside pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._components import check_switch
from ._tables import absent_rows
from .holder import Views, as_views, samples_and_targets
from .layout import ViewLayout
from .pairs import Pairs, Side


class ViewColumns(TransformerMixin, BaseEstimator):
    """Make views of one table: a transformer for each, learnt on the samples that have a value in one of its columns.

    Other samples lack the view, whatever the transformer would put in the place of missing values.

    Parameters
    ----------
    views : list of (name, transformer, columns)
        Transformers that give dense numbers, or ``"passthrough"`` for objects; columns by name.

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
            here = ~absent_rows(part.to_numpy(dtype=object))
            if not here.any():
                raise ValueError(f"no sample has view {name!r}: leave it out")
            objects = isinstance(transformer, str)
            self.transformers_[name] = transformer if objects else clone(transformer).fit(part[here])
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
            here = ~absent_rows(part.to_numpy(dtype=object))
            transformer = self.transformers_[name]
            if isinstance(transformer, str):
                blocks[name] = part.to_numpy(dtype=object)
                continue
            width = len(transformer.get_feature_names_out())
            block = np.full((len(part), width), np.nan)
            if here.any():
                block[here] = transformer.transform(part[here])
            blocks[name] = block
        return Views(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of all views in order."""
        names = [
            columns
            if isinstance(transformer, str)
            else list(self.transformers_[name].get_feature_names_out())
            for name, transformer, columns in self.views
        ]
        return np.array([name for view in names for name in view], dtype=object)


class PairColumns(TransformerMixin, BaseEstimator):
    """Make views of the objects of both sides of pairs, learnt on all objects there are, those without pairs included.

    Parameters
    ----------
    left, right : list of (name, transformer, columns), or None
        As for ``ViewColumns``; None leaves the objects of a side as they are.

    Attributes
    ----------
    columns_ : pair of ``ViewColumns`` or None
        What was learnt of the left and of the right objects.
    known_ : pair of sides
        The objects of the fit as they are passed on, with their names: new pairs of them need no table.
    """

    def __init__(self, left: Any = None, right: Any = None) -> None:
        self.left = left
        self.right = right

    def fit(self, X: Pairs, y: Any = None) -> PairColumns:
        """Learn the transformers of both sides.

        Parameters
        ----------
        X : Pairs
        y : ignored

        Returns
        -------
        self
        """
        sides = ((X.left, self.left), (X.right, self.right))
        self.columns_ = tuple(
            None if views is None else ViewColumns(views).fit(side.objects) for side, views in sides
        )
        passed = self.transform(X)
        self.known_ = (passed.left, passed.right)
        return self

    def transform(self, X: Pairs) -> Pairs:
        """Return the same pairs of views.

        Parameters
        ----------
        X : Pairs

        Returns
        -------
        Pairs
        """
        check_is_fitted(self, "columns_")
        left, right = (
            side if columns is None else Side.of(columns.transform(side.objects), side.names, which)
            for side, columns, which in zip((X.left, X.right), self.columns_, ("left", "right"), strict=True)
        )
        return X.with_sides(left, left if X.one_kind else right)


class ViewScaler(TransformerMixin, BaseEstimator):
    """Bring the columns of every view to mean zero and variance one, learnt on the samples that have the view.

    Rows of samples that lack a view are left alone; single NaN inside a view are not counted.  Sparse views are scaled
    without centring, which would fill them; views of objects are passed on.

    Parameters
    ----------
    equal_views : bool, default=False
        Whether columns are divided by the square root of their number as well, so that every view has the same total
        variance however many columns it has.

    Attributes
    ----------
    means_, scales_ : dict from the name of a view to an array

    Examples
    --------
    >>> import numpy as np
    >>> X = {"a": np.array([[1.0], [3.0], [np.nan]]), "b": np.array([[0.0, 2.0], [4.0, 2.0], [2.0, 2.0]])}
    >>> ViewScaler().fit_transform(X)["a"].ravel()
    array([-1.,  1., nan])
    """

    def __init__(self, equal_views: bool = False) -> None:
        self.equal_views = equal_views

    def fit(self, X: Any, y: Any = None) -> ViewScaler:
        """Learn means and standard deviations.

        Parameters
        ----------
        X : Views, mapping or list of tables
        y : ignored

        Returns
        -------
        self
        """
        check_switch("equal_views", self.equal_views)
        views = as_views(X)
        self._layout = ViewLayout.of(views)
        self.means_, self.scales_ = {}, {}
        for k, (name, block) in enumerate(views.items()):
            values, width = block[np.flatnonzero(views.present[:, k])], block.shape[1]
            mean, spread = np.zeros(width), np.ones(width)
            if block.dtype != object and values.shape[0]:
                if sparse.issparse(values):
                    middle = np.asarray(values.mean(axis=0)).ravel()
                    square = np.asarray(values.multiply(values).mean(axis=0)).ravel()
                    variance = np.maximum(square - middle**2, 0.0)
                else:
                    known = ~np.isnan(values)
                    count = np.maximum(known.sum(axis=0), 1)
                    mean = np.where(known, values, 0.0).sum(axis=0) / count
                    variance = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / count
                spread = np.sqrt(variance)
                # constant columns have a spread of one
                spread = np.where(spread <= 10.0 * np.finfo(float).eps * np.abs(mean), 1.0, spread)
            self.means_[name] = mean
            self.scales_[name] = spread * np.sqrt(width) if self.equal_views else spread
        self.n_features_in_ = views.shape[1]
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn, and return the same views scaled, in the order of y where both have names.

        Parameters
        ----------
        X : Views, mapping or list of tables
        y : targets, optional

        Returns
        -------
        Views
        """
        if y is not None:
            X = samples_and_targets(X, y)[0]
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        """Return the views scaled.

        Parameters
        ----------
        X : Views, mapping or list of tables

        Returns
        -------
        Views
        """
        check_is_fitted(self, "means_")
        views = self._layout.bring(X)
        blocks = []
        for name, block in views.items():
            if sparse.issparse(block):
                blocks.append(sparse.csr_matrix(block @ sparse.diags(1.0 / self.scales_[name])))
            elif block.dtype == object:
                blocks.append(block)
            else:
                blocks.append((block - self.means_[name]) / self.scales_[name])
        return views.with_blocks(blocks)
