"""Why a sample is decided as it is: what kernels and views add to its decision value, and Shapley values of views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._typing import Array
from ..estimators.fitted import function_of, samples_for, weights_of_columns
from .views import ViewsOfKernels, final_estimator, kernel_views, transformed


@dataclass(frozen=True)
class Contributions(ViewsOfKernels):
    """Parts that the kernels add to the decision values of some samples.

    Attributes
    ----------
    values : array of shape (n_new, m) or (n_new, m, k)
        One column per kernel; they and the intercept add up to the decision values.
    intercept : float or array of shape (k,)
    kernel_names, views : arrays of shape (m,)
    classes : array or None
        Of the last axis, where there is one.
    """

    values: Array
    intercept: Any
    kernel_names: NDArray[Any]
    views: NDArray[Any]
    classes: Any = None
    #: -1 where values are log times, so that larger ones mean later
    sooner: float = 1.0

    def __repr__(self) -> str:
        used = int(np.any(self.values != 0, axis=tuple(k for k in range(self.values.ndim) if k != 1)).sum())
        return (
            f"Contributions: the decision values of {len(self.values)} samples as sums over {used} kernels of "
            f"{len(self.view_names)} views, and an intercept"
        )

    @property
    def decision(self) -> Array:
        """Decision values, the sum of everything."""
        return np.asarray(self.values.sum(axis=1) + self.intercept)

    def by_view(self) -> Array:
        """Return the contributions summed over the kernels of each view, ``(n_new, views[, k])``."""
        return np.stack([self.values[:, self.views == name].sum(axis=1) for name in self.view_names], axis=1)

    def table(self, sample: int, *, class_: Any = None) -> Any:
        """Return what each kernel adds to one sample's decision value, the largest first, and which class that is for.

        Of two classes the one that a contribution speaks for: the second where it is positive, else the first.  Of more
        the class whose decision value this is, which a negative contribution speaks against.

        Parameters
        ----------
        sample : int
            Row of the samples that were explained.
        class_ : label, optional
            Whose decision value, where every class has one; by default that of the predicted class.
        """
        values = self.values[sample]
        two = values.ndim == 1 and self.classes is not None and len(self.classes) == 2
        label = np.where(values >= 0, self.classes[1], self.classes[0]) if two else None
        if values.ndim == 2:
            column, name = _class_column(self, sample, class_)
            values, label = values[:, column], None if self.classes is None else name
        table = pd.DataFrame({"kernel": self.kernel_names, "view": self.views, "contribution": values})
        if label is not None:
            table["class"] = label
        order = np.argsort(-np.abs(values), kind="stable")
        return table.iloc[order[values[order] != 0]].reset_index(drop=True)


def contributions(model: Any, X: Any, *, views: Any = None) -> Contributions:
    """Split the decision values of samples into what each kernel adds.

    The decision function is a sum over kernels, ``f(x) = sum_j d_j sum_i beta_i k_j(x_i, x) + b``, so the split is
    exact.  A contribution says what the model did with a view; that the view is needed is another question
    (:func:`view_p_values`).

    Parameters
    ----------
    model : estimator or pipeline
        Fitted; any estimator with kernels but ``SimilarityClassifier``.
    X : samples
        As for its ``predict``.
    views : sequence or function, optional
        As for :func:`kernel_views`.

    Returns
    -------
    Contributions

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = kw.per_view({"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}, kw.gaussian(3.0))
    >>> clf = MKLClassifier(bank).fit(scale(X), y)
    >>> parts = contributions(clf, scale(X)[:5])
    >>> bool(np.allclose(parts.decision, clf.decision_function(scale(X)[:5])))
    True
    >>> parts.by_view().shape
    (5, 3)
    """
    estimator = final_estimator(model)
    function = function_of(estimator)
    values = function.by_kernel(samples_for(estimator, transformed(model, X)))
    classes = getattr(estimator, "classes_", None)
    labels = hasattr(estimator, "multilabel_")
    if values.ndim == 3 and classes is not None and len(classes) == 2 and not labels:
        # two classes with a function each: what tells them apart is the difference
        values, offset = values[:, :, 1] - values[:, :, 0], estimator.intercept_[1] - estimator.intercept_[0]
    else:
        offset = estimator.intercept_
    sooner = 1.0 if getattr(getattr(estimator, "loss_", None), "proportional", True) else -1.0
    names = np.asarray(estimator.kernel_names_, dtype=object)
    return Contributions(values, offset, names, kernel_views(model, views), classes, sooner)


def feature_weights(model: Any) -> Any:
    """Return the weights of the features in a model's linear kernels.

    A linear kernel is ``<x, x'>`` on its columns, so it adds ``<w, x>`` plus a constant to a decision value, with
    ``w = d_j s_j sum_i beta_i x_i`` (``s_j`` the factor of the normalisation).  Features that several linear kernels
    look at have a row for each; kernels that are not linear have none.  In a pipeline the features are those that its
    last step gets: standardised, if it standardises.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.

    Returns
    -------
    DataFrame
        ``kernel``, ``view``, ``feature``, ``weight``; with several functions (classes) a column ``weight of ...`` each.
        The largest weight in absolute value first, of any class where there are several.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> clf = MKLClassifier(kw.linear() + kw.gaussian(5.0), norm=2).fit(X / X.std(), y)
    >>> feature_weights(clf).columns.tolist()
    ['kernel', 'view', 'feature', 'weight']
    """
    estimator = final_estimator(model)
    terms = list(function_of(estimator).each())
    if any(getattr(term.kernels.samples, "ndim", 0) != 2 for term in terms):
        raise ValueError("feature weights need a model that was fitted on rows of numbers in memory")
    if any(term.kernels.normaliser.mode == "cosine" for term in terms):
        raise ValueError(
            "normalize='cosine' divides by the length of a row: its linear kernels are not linear"
        )
    names, views = feature_names(model, estimator), kernel_views(model)
    tables = []
    for term in terms:
        j = int(term.index[0])
        columns = term.kernels.kernels[0].linear_columns(len(names))
        if columns is None:
            continue
        w = weights_of_columns(term, columns)
        weights = {"weight": w} if w.ndim == 1 else {
            f"weight of {label}": w[:, k] for k, label in enumerate(estimator.classes_)
        }  # fmt: skip
        head = {"kernel": estimator.kernel_names_[j], "view": views[j]}
        tables.append(pd.DataFrame(head | {"feature": [names[c] for c in columns]} | weights))
    if not tables:
        raise ValueError("no linear kernel of this model has any weight")
    table = pd.concat(tables, ignore_index=True)
    size = table.iloc[:, 3:].abs().max(axis=1).to_numpy()
    return table.iloc[np.argsort(-size, kind="stable")].reset_index(drop=True)


def feature_names(model: Any, estimator: Any) -> list[str]:
    """Return the names of the columns that the last step of a model gets."""
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        try:
            return [str(name) for name in model[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):
            pass
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError(
            "the samples are pairs of objects: inspection.pair_table has the weights of their kernels"
        )
    return [f"feature {j}" for j in range(estimator.n_features_in_)]


def _class_column(found: Contributions | ShapleyValues, sample: int, class_: Any) -> tuple[int, Any]:
    """Return the column of a class among several decision values, by default of the largest, and what it is called."""
    known = list(range(found.values.shape[-1])) if found.classes is None else list(found.classes)
    if class_ is not None and class_ not in known:
        raise ValueError(f"unknown class {class_!r}: there are {known}")
    column = int(np.argmax(found.decision[sample])) if class_ is None else known.index(class_)
    return column, known[column]


@dataclass(frozen=True)
class ShapleyValues:
    """Shapley values: how far every view moves decisions, from the mean decision of the background.

    Attributes
    ----------
    values : array of shape (n_new, views) or (n_new, views, k)
        ``base`` and they add up to the decision values.
    base : float or array of shape (k,)
        Mean decision value of the background.
    view_names : list of str
    classes : array or None
        Two classes have one decision value, which speaks for the second where it is positive.
    """

    values: Array
    base: Any
    view_names: list[str]
    classes: Any = None

    @property
    def decision(self) -> Array:
        """Decision values, the sum of everything."""
        return np.asarray(self.values.sum(axis=1) + self.base)

    def of(self, sample: int, class_: Any = None) -> tuple[Array, float, Any]:
        """Return values, base and class of one sample's decision: of the predicted class unless another is named."""
        values, base = self.values[sample], self.base
        if values.ndim == 1:
            if class_ is not None:
                raise ValueError("there is one decision value for all classes: leave class_ out")
            return values, float(base), None if self.classes is None else self.classes[1]
        column, label = _class_column(self, sample, class_)
        return values[:, column], float(np.asarray(base)[column]), label

    def table(self, sample: int, *, class_: Any = None) -> Any:
        """Return the views of one sample, the largest value first, with the class that each speaks for or against.

        The parameters are those of :meth:`Contributions.table`.
        """
        values, _, label = self.of(sample, class_)
        table = pd.DataFrame({"view": self.view_names, "value": values})
        if label is not None:
            table["class"] = label
            if self.values.ndim == 2 and len(self.classes) == 2:
                table["class"] = np.where(values >= 0, self.classes[1], self.classes[0])
        return table.iloc[np.argsort(-np.abs(values), kind="stable")].reset_index(drop=True)


def shapley_values(model: Any, X: Any, background: Any = None, *, views: Any = None) -> ShapleyValues:
    """Return the exact Shapley values of views for the decisions on samples.

    A coalition of views is worth the mean decision when the views in it are those of the sample and all others are
    those of a background sample.  The decision function is a sum over views, ``f(x) = sum_v f_v(x) + b``, so what a
    view adds does not depend on which others are known, and its value is ``f_v(x)`` minus the mean of ``f_v`` over the
    background: exact, without drawing coalitions.

    Parameters
    ----------
    model, X, views
        As for :func:`contributions`.  Kernels on several views at once are a view of their own.
    background : samples, optional
        What decisions are compared with, best the training samples; X itself by default.

    Returns
    -------
    ShapleyValues

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.gaussian(1.0))
    >>> clf = MKLClassifier(bank, norm=2).fit(X, y == 2)
    >>> shares = shapley_values(clf, X[:3], X)
    >>> bool(np.allclose(shares.decision, clf.decision_function(X[:3])))
    True
    >>> shares.table(0)["view"].tolist()
    ['petal', 'sepal']
    """
    parts = contributions(model, X, views=views)
    against = parts if background is None else contributions(model, background, views=views)
    mean = against.by_view().mean(axis=0)
    base = mean.sum(axis=0) + parts.intercept
    return ShapleyValues(parts.by_view() - mean, base, parts.view_names, parts.classes)
