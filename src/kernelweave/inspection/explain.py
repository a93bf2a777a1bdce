"""Why a sample is decided as it is: what every kernel and every view adds to its decision value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..banks import BoundKernels, PrecomputedKernels, StreamedKernels
from ..estimators._inputs import new_samples
from ..kernels._features import stack_features
from .views import final_estimator, kernel_views, transformed

__all__ = ["Contributions", "contributions", "feature_weights"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contributions:
    """What the kernels add to the decision values of some samples.

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

    @property
    def view_names(self) -> list[str]:
        """Views, in the order of their kernels."""
        return list(dict.fromkeys(self.views.tolist()))

    def by_view(self) -> Array:
        """Return the contributions summed over the kernels of each view, ``(n_new, views[, k])``."""
        return np.stack([self.values[:, self.views == name].sum(axis=1) for name in self.view_names], axis=1)

    def table(self, sample: int, *, class_: Any = None) -> Any:
        """Return what each kernel adds to one sample's decision value, the largest first.

        Parameters
        ----------
        sample : int
            Row of the samples that were explained.
        class_ : label, optional
            Whose decision value, where every class has one; by default that of the predicted class.
        """
        import pandas as pd

        values = self.values[sample]
        if values.ndim == 2:
            column = int(np.argmax(self.decision[sample]))
            if class_ is not None:
                if class_ not in list(self.classes):
                    raise ValueError(f"unknown class {class_!r}: there are {list(self.classes)}")
                column = list(self.classes).index(class_)
            values = values[:, column]
        table = pd.DataFrame({"kernel": self.kernel_names, "view": self.views, "contribution": values})
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
    check_is_fitted(estimator, "dual_coef_")
    bound = getattr(estimator, "_bound", None)
    if bound is None:
        raise ValueError(f"the decisions of {type(estimator).__name__} are no sum over kernels")
    new = new_samples(estimator, transformed(model, X), bound, estimator._kind)
    values = _by_kernel(estimator, bound, new)
    classes = getattr(estimator, "classes_", None)
    if values.ndim == 3 and classes is not None and len(classes) == 2:
        # two classes with a function each: what tells them apart is the difference
        values, offset = values[:, :, 1] - values[:, :, 0], estimator.intercept_[1] - estimator.intercept_[0]
    else:
        offset = estimator.intercept_
    return Contributions(
        values, offset, np.asarray(estimator.kernel_names_, dtype=object), kernel_views(model, views), classes
    )


def _by_kernel(estimator: Any, bound: Any, new: Any) -> Array:
    weights, coef = estimator.weights_, estimator._coef
    m = weights.shape[-1]
    out: Array | None = None
    for position, j in enumerate(estimator._active):
        if isinstance(bound, PrecomputedKernels):
            alone = np.zeros_like(weights)
            alone[..., j] = weights[..., j]
            values = bound.decision(new, alone, coef)
        else:
            single = _alone(bound, position, new)
            values = single.decision(new, weights[..., [j]], coef)
        if out is None:
            out = np.zeros((values.shape[0], m, *values.shape[1:]))
        out[:, j] = values
    if out is None:
        from ..kernels._helpers import n_samples

        rows = new[0].shape[0] if isinstance(bound, PrecomputedKernels) else n_samples(new)
        out = np.zeros((rows, m, *coef.shape[1:]))
    return out


def _alone(bound: Any, position: int, new: Any) -> BoundKernels:
    """Return one of the kernels that are kept, alone."""
    kernel, normaliser = bound.kernels[position], bound.normaliser.restrict(np.array([position]))
    if isinstance(bound, StreamedKernels):
        _, starts = stack_features(bound.kernels, new[:1])
        assert bound.direction is not None
        part = bound.direction[starts[position] : starts[position + 1]]
        return StreamedKernels([kernel], None, normaliser, None, part)
    return BoundKernels([kernel], bound.samples, normaliser)


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
    import pandas as pd

    estimator = final_estimator(model)
    check_is_fitted(estimator, "dual_coef_")
    bound = getattr(estimator, "_bound", None)
    if type(bound) is not BoundKernels:
        raise ValueError("feature weights need a model that was fitted on rows of numbers in memory")
    if bound.normaliser.mode == "cosine":
        raise ValueError(
            "normalize='cosine' divides by the length of a row: its linear kernels are not linear"
        )
    names, views = _feature_names(model, estimator), kernel_views(model)
    tables = []
    for position, j in enumerate(estimator._active):
        kernel = bound.kernels[position]
        columns = kernel.linear_columns(len(names))
        if columns is None:
            continue
        used = bound.samples[:, columns]
        values = np.asarray(used.toarray() if hasattr(used, "tocsr") else used, dtype=float)
        if bound.normaliser.center:
            values = values - values.mean(axis=0)
        scale = estimator.weights_[..., j] * bound.normaliser.scale[position]
        w = values.T @ estimator._coef * scale
        weights = {"weight": w} if w.ndim == 1 else {
            f"weight of {label}": w[:, k] for k, label in enumerate(estimator.classes_)
        }  # fmt: skip
        head = {"kernel": estimator.kernel_names_[j], "view": views[j]}
        tables.append(pd.DataFrame(head | {"feature": [names[c] for c in columns]} | weights))
    if not tables:
        raise ValueError("no linear kernel of this model has any weight")
    return pd.concat(tables, ignore_index=True)


def _feature_names(model: Any, estimator: Any) -> list[str]:
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        try:
            return [str(name) for name in model[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):
            pass
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    return [f"feature {j}" for j in range(estimator.n_features_in_)]
