"""How much the weights change when the samples do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._components import check_choice, check_whole
from .._estimating import several_fits
from .._typing import Array
from ..estimators.fitted import weight_origin
from ..exceptions import KernelWeaveWarning, warn_at_caller
from ..kernels import take
from .subsets import shuffled_folds
from .views import (
    ViewsOfKernels,
    as_shares,
    final_estimator,
    group_shares,
    kernel_families,
    kernel_groups,
    learnt_weights,
    paired,
)


@dataclass(frozen=True)
class WeightStability(ViewsOfKernels):
    """Weights of the same kernels in many fits.

    Attributes
    ----------
    weights : array of shape (r, m)
        Weights in every refit, as shares of their sum.
    reference : array of shape (m,)
        Weights of the fit on all samples, likewise.
    kernel_names, views, families : arrays of shape (m,)
    scores : array of shape (r,)
        Score of every refit on the samples it did not see; NaN where there are none.
    method : str
    level : float
        Share of the refits between ``low`` and ``high``; at 1 they are the smallest and the largest weight.
    threshold : float
        Share of the weight above which a kernel counts as selected.
    view_weights, view_reference : arrays of shape (r, v) and (v,), optional
        Weights of the views, where they are not the sums of their kernels' weights: under ``norms.Grouped``, whose
        groups are the views then.
    """

    weights: Array
    reference: Array
    kernel_names: NDArray[Any]
    views: NDArray[Any]
    families: NDArray[Any]
    scores: Array
    method: str
    level: float
    threshold: float
    view_weights: Array | None = None
    view_reference: Array | None = None

    def among(self, kernels: NDArray[np.bool_]) -> WeightStability:
        """Return the same of some kernels, their weights as shares of their own sum; of all of them itself."""
        if kernels.all() or not kernels.any():
            return self
        mixed = {name for name in self.view_names if np.ptp(kernels[self.views == name].astype(int))}
        inside = np.array([kernels[self.views == name].all() for name in self.view_names])
        own = None if mixed or self.view_weights is None or self.view_reference is None else inside
        return replace(
            self,
            weights=as_shares(self.weights[:, kernels]),
            reference=as_shares(self.reference[kernels]),
            kernel_names=self.kernel_names[kernels],
            views=self.views[kernels],
            families=self.families[kernels],
            view_weights=None if own is None else as_shares(self.view_weights[:, own]),  # type: ignore[index]
            view_reference=None if own is None else as_shares(self.view_reference[own]),  # type: ignore[index]
        )

    def kernels(self) -> Any:
        """Return a table with one row per kernel.

        ``weight`` is that of the fit on all samples; ``mean``, ``low``, ``high`` describe the refits (their range, or
        the part of it that holds the share ``level`` of them), ``selected`` is the share of refits that gave the kernel
        any weight.  Refits share most of their samples: the range is no confidence interval.
        """
        head = {"kernel": self.kernel_names, "view": self.views, "family": self.families}
        return pd.DataFrame(head | self._summary(self.reference, self.weights, self.weights > self.threshold))

    def by_view(self) -> Any:
        """Return a table with one row per view: its own weight, or its kernels' weights summed up."""
        names = self.view_names
        member = np.array([self.views == name for name in names], dtype=float)
        head = {"view": names, "kernels": member.sum(axis=1).astype(int)}
        any_kernel = (self.weights > self.threshold).astype(float) @ member.T > 0
        reference = self.reference @ member.T if self.view_reference is None else self.view_reference
        weights = self.weights @ member.T if self.view_weights is None else self.view_weights
        return pd.DataFrame(head | self._summary(reference, weights, any_kernel))

    def _summary(self, reference: Array, weights: Array, selected: Any) -> dict[str, Array]:
        tail = 50.0 * (1.0 - self.level)
        low, high = np.percentile(weights, [tail, 100.0 - tail], axis=0)
        mean, often = weights.mean(axis=0), selected.mean(axis=0)
        return {"weight": reference, "mean": mean, "low": low, "high": high, "selected": often}

    def __repr__(self) -> str:
        selected = self.weights > self.threshold
        steady, ever = int(np.sum(selected.mean(axis=0) >= 0.9)), int(np.sum(selected.any(axis=0)))
        return (
            f"WeightStability: {len(self.kernel_names)} kernels in {len(self.weights)} refits by {self.method}; "
            f"{ever} were ever selected, {steady} in at least 90 % of the refits"
        )


@several_fits
def weight_stability(
    model: Any,
    X: Any,
    y: Any,
    *,
    method: str = "folds",
    n_refits: int = 25,
    n_folds: int = 5,
    views: Any = None,
    level: float = 1.0,
    threshold: float = 1e-3,
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> WeightStability:
    """Refit a model on parts of the samples and see which kernels keep their weight.

    With correlated kernels a sparse norm picks one of several that would do, and which one is a matter of chance: look
    at the views rather than at single kernels, and do not publish a weight without its range over the refits.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted on X and y, or not (then it is fitted first, on a copy).
    X, y : samples and targets
        Not precomputed matrices: use ``kernels.held(stack)`` with sample indices as X for those.
    method : {"folds", "bootstrap"}, default="folds"
        Repeated (stratified) folds: each refit leaves one fold out.  Or samples drawn with replacement.
    n_refits : int, default=25
    n_folds : int, default=5
        For ``folds``.
    views : sequence or function, optional
        As for :func:`kernel_views`; by default the groups of the norm, where it has any.
    level : float, default=1.0
        Share of the refits between ``low`` and ``high``; 1 is their whole range.
    threshold : float, default=1e-3
        Share of the total weight above which a kernel counts as selected.
    random_state : int or RandomState, default=0
    progress : callable, optional
        Called with the number of refits done and to do.

    Returns
    -------
    WeightStability

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.gaussian([1.0, 2.0]))
    >>> stability = weight_stability(MKLClassifier(bank), X, y, n_refits=5)
    >>> stability
    WeightStability: 4 kernels in 5 refits by folds; 2 were ever selected, 2 in at least 90 % of the refits
    >>> stability.by_view()["selected"].tolist()
    [1.0, 1.0]
    """
    check_choice("method", method, ("folds", "bootstrap"))
    check_whole("n_refits", n_refits, 2)
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, got {level!r}")
    X, y = paired(model, X, y, cut=True)
    whole = model if hasattr(final_estimator(model), "weights_") else clone(model).fit(X, y)
    origin = weight_origin(final_estimator(whole))
    if origin.nothing:
        warn_at_caller(
            f"{origin.sentence} That refits agree on them says nothing about the kernels: a norm that learns weights "
            "(norm='l1', a number p) is what stability is asked of.",
            KernelWeaveWarning,
        )
    reference, of_kernel = learnt_weights(whole), kernel_groups(whole, views)
    refitted, by_view, scores = [], [], []
    splits = list(_splits(method, n_refits, n_folds, y, is_classifier(model), random_state))
    for done, (train, test) in enumerate(splits):
        other = clone(model).fit(take(X, train), y[train])
        shares = learnt_weights(other)
        if shares.shape != reference.shape:
            raise ValueError(
                f"a refit has {shares.size} kernels, the whole fit {reference.size}: the number of kernels must not "
                "depend on the samples"
            )
        refitted.append(shares)
        by_view.append(group_shares(other, of_kernel))
        scores.append(other.score(take(X, test), y[test]) if test.size else np.nan)
        if progress is not None:
            progress(done + 1, len(splits))
    return WeightStability(
        np.stack(refitted), reference, np.asarray(final_estimator(whole).kernel_names_, dtype=object),
        of_kernel, kernel_families(whole), np.array(scores), method, level, threshold,
        np.stack(by_view), group_shares(whole, of_kernel),
    )  # fmt: skip


def _splits(
    method: str, n_refits: int, n_folds: int, y: NDArray[Any], stratify: bool, random_state: Any
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    if method == "folds":
        yield from islice(shuffled_folds(y, stratify, n_folds, random_state, n_refits), n_refits)
        return
    n, random = _num_samples(y), check_random_state(random_state)
    if y.dtype.names:  # times to an event
        y, stratify = y["event"], True
    groups = [np.flatnonzero(y == label) for label in np.unique(y)] if stratify else [np.arange(n)]
    for _ in range(n_refits):
        # within classes, so that no class is ever lost
        train = np.concatenate([random.choice(group, group.size) for group in groups])
        yield np.sort(train), np.setdiff1d(np.arange(n), train)
