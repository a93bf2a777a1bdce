"""Shapley values of views: how much each moves a decision away from the average one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .explain import Contributions, contributions

__all__ = ["ShapleyValues", "shapley_values"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ShapleyValues:
    """What every view moves decisions by, from the mean decision of the background.

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
        known = list(range(values.shape[1])) if self.classes is None else list(self.classes)
        column = int(np.argmax(self.decision[sample]))
        if class_ is not None:
            if class_ not in known:
                raise ValueError(f"unknown class {class_!r}: there are {known}")
            column = known.index(class_)
        return values[:, column], float(np.asarray(base)[column]), known[column]

    def table(self, sample: int, *, class_: Any = None) -> Any:
        """Return the views of one sample, the largest value first, with the class that each speaks for or against.

        Parameters
        ----------
        sample : int
            Row of the samples that were explained.
        class_ : label, optional
            Whose decision value, where every class has one; by default that of the predicted class.
        """
        import pandas as pd

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
    model : estimator or pipeline
        Fitted; as for :func:`contributions`.
    X : samples
        As for its ``predict``.
    background : samples, optional
        What decisions are compared with, best the training samples; X itself by default.
    views : sequence or function, optional
        As for :func:`kernel_views`.  Kernels that look at several views at once are a view of their own.

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
    return _of(parts, against)


def _of(parts: Contributions, background: Contributions) -> ShapleyValues:
    mean = background.by_view().mean(axis=0)
    return ShapleyValues(
        parts.by_view() - mean, mean.sum(axis=0) + parts.intercept, parts.view_names, parts.classes
    )
