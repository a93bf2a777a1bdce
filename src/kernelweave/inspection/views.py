"""Views of the kernels of a fitted model, and their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from .._estimating import MOVES
from .._fitted import FittedModel
from ..estimators.fitted import is_precomputed
from ..metrics import read_survival, survival
from ..views import as_views, is_views, samples_and_targets


def final_estimator(model: Any) -> Any:
    """Return the estimator with kernels: the model itself, or the last step of a pipeline.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import MKLClassifier
    >>> final_estimator(make_pipeline(StandardScaler(), MKLClassifier()))
    MKLClassifier()
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "kernels") and not hasattr(last, "kernel_names_"):
        name = type(last).__name__
        raise ValueError(f"{name} is not an estimator with kernels, nor a pipeline that ends in one")
    return last


def paired(model: Any, X: Any, y: Any, cut: bool = False) -> tuple[Any, np.ndarray]:
    """Return samples in the order of their targets, and the targets: tables of views become views.

    ``cut`` refuses matrices, which cannot be cut into samples.
    """
    if is_precomputed(final_estimator(model).kernels):
        if cut:
            raise ValueError(
                "precomputed matrices cannot be cut into parts by sample: use kernels.held(stack) with sample indices "
                "as X"
            )
        return X, as_targets(model, y)
    X, y = samples_and_targets(X, y)
    return (as_views(X) if is_views(X, len(y)) else X), as_targets(model, y)


def as_targets(model: Any, y: Any) -> np.ndarray:
    """Return targets as an array: of a model of survival as ``kernelweave.survival`` makes them."""
    targets = survival(*read_survival(y)) if predicts_survival(model) else np.asarray(y)
    if is_classifier(model) and targets.ndim > 1 and targets.shape[1] > 1:
        raise ValueError(
            f"refits are of one label, and y has {targets.shape[1]}: fit a model on one column of y, and ask about that"
        )
    return targets


def predicts_survival(model: Any) -> bool:
    """Whether targets are times to an event."""
    return getattr(final_estimator(model), "_task", "") == "survival"


def transformed(model: Any, X: Any) -> Any:
    """Return the samples as the last step of a pipeline sees them."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model.steps) > 1 else X


def kernel_views(model: Any, views: Sequence[str] | Callable[[str], str] | None = None) -> np.ndarray:
    """Return the view of every kernel of a fitted model.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.
    views : sequence of m str, or function of a kernel's name, optional
        What you call them; by default the label of the columns that a kernel is on (the name given to ``per_view``,
        the feature of ``per_feature``).  Kernels without columns are one view, "all features"; products over several
        columns are "several views"; a matrix is a view of its own.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear())
    >>> kernel_views(MKLClassifier(bank).fit(X, y)).tolist()
    ['sepal', 'petal']
    """
    fitted = FittedModel.of(final_estimator(model))
    names = [str(name) for name in fitted.kernel_names]
    if views is not None:
        made = [views(name) for name in names] if callable(views) else [str(view) for view in views]
        if len(made) != len(names):
            raise ValueError(f"{len(made)} views were given for {len(names)} kernels")
        return np.array(made, dtype=object)
    return np.array(fitted.views, dtype=object)


def kernel_groups(model: Any, views: Sequence[str] | Callable[[str], str] | None = None) -> np.ndarray:
    """Return the group of every kernel under a norm with groups; with any other norm its view, as ``kernel_views``."""
    groups = FittedModel.of(final_estimator(model)).kernel_groups
    return kernel_views(model, views) if groups is None or views is not None else np.asarray(groups)


def group_shares(model: Any, of_kernel: np.ndarray) -> np.ndarray:
    """Return the weights of groups of kernels as shares of their sum, in the order of their first kernels.

    A group of the model's norm has the weight that the norm gives it (``view_weights_``), another the sum of its
    kernels' weights.
    """
    fitted = FittedModel.of(final_estimator(model))
    weights, known = np.atleast_2d(fitted.weights), fitted.kernel_groups
    own = fitted.view_weights or {} if known is not None and np.array_equal(known, of_kernel) else {}
    columns = [
        np.broadcast_to(own[name], len(weights)) if name in own else weights[:, of_kernel == name].sum(axis=1)
        for name in dict.fromkeys(of_kernel.tolist())
    ]
    return as_shares(np.stack(columns, axis=1)).mean(axis=0)


def as_shares(weights: np.ndarray) -> np.ndarray:
    """Return weights as shares of their sum over the last axis; zeros remain zeros."""
    totals = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)


class ViewsOfKernels:
    """A table over kernels, whose ``views`` are those of the kernels."""

    views: np.ndarray

    @property
    def view_names(self) -> list[str]:
        """Views, in the order of their kernels."""
        return list(dict.fromkeys(self.views.tolist()))


def kernel_families(model: Any) -> np.ndarray:
    """Return the family of every kernel (gaussian, linear, ...) of a fitted model."""
    fitted = FittedModel.of(final_estimator(model))
    if not isinstance(fitted.kernels, list):
        return np.array(["matrix"] * len(fitted.kernel_names), dtype=object)
    return np.array([kernel.family for kernel in fitted.kernels], dtype=object)


def learnt_weights(model: Any) -> np.ndarray:
    """Return the weights as shares of their sum, ``(m,)``; the mean over classes where each has its own."""
    return as_shares(np.atleast_2d(FittedModel.of(final_estimator(model)).weights)).mean(axis=0)


@dataclass(frozen=True)
class TiedViews:
    """Weights of views at the choices of C and norm that the cross-validated scores do not tell from the one made.

    Attributes
    ----------
    choices : DataFrame
        ``norm``, ``C``, ``score``, ``tie`` of each, as in ``ties_``.
    names : list of str
        The views; without those of which no weight was learnt, unless none was.
    shares : array of shape (choices, views)
        Their learnt weights as shares of their sum, of fits on all samples.
    """

    choices: Any
    names: list[str]
    shares: np.ndarray

    @property
    def leader(self) -> str | None:
        """The view with the most weight at all of the choices; None where there is none."""
        second, first = np.sort(self.shares, axis=1)[:, -2:].T
        tops = set(np.argmax(self.shares, axis=1).tolist())
        return self.names[tops.pop()] if len(tops) == 1 and np.all(first > second + 1e-9) else None

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The smallest and the largest share of every view."""
        ends = zip(self.shares.min(axis=0).tolist(), self.shares.max(axis=0).tolist(), strict=True)
        return dict(zip(self.names, ends, strict=True))

    @property
    def settled(self) -> bool:
        """Whether the same view has the most weight throughout, and no share changes by more than a tenth."""
        return self.leader is not None and bool(np.all(np.ptp(self.shares, axis=0) <= MOVES))

    @property
    def of_what(self) -> str:
        """Say in words what the scores leave open: ``"7 choices of C"``."""
        several = self.choices["norm"].nunique() > 1
        return f"{len(self.choices)} choices of C{' and norm' if several else ''}"


def tied_views(model: Any) -> TiedViews | None:
    """Return the weights of views at choices of C and norm that cross-validation does not tell from the one made.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted; one that chose C by cross-validation (``MKLClassifierCV``, ``MKLRegressorCV``).

    Returns
    -------
    TiedViews or None
        None where C was not chosen, where no other choice does as well, for several targets, and where there is a
        single view.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifierCV, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear())
    >>> tied = tied_views(MKLClassifierCV(bank).fit(X, y))
    >>> tied.of_what, tied.leader
    ('4 choices of C', 'petal')
    """
    estimator = final_estimator(model)
    weights, choices = getattr(estimator, "tied_weights_", None), getattr(estimator, "ties_", None)
    if weights is None or choices is None or len(choices) < 2 or "target" in choices:
        return None
    groups = np.array([str(group) for group in kernel_groups(model)], dtype=object)
    learnt = np.asarray(FittedModel.of(estimator).learnt_kernels, dtype=bool)
    learnt = learnt if learnt.any() else ~learnt
    names = list(dict.fromkeys(groups[learnt].tolist()))
    if len(names) < 2:
        return None
    own = np.where(learnt, np.asarray(weights), 0.0)
    return TiedViews(
        choices, names, as_shares(np.stack([own[:, groups == name].sum(axis=1) for name in names], axis=1))
    )
