"""Is a view needed?  Held-out decisions with its rows shuffled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from .._estimating import several_fits
from .._numerics.significance import holm
from ..kernels import take
from .explain import Contributions, contributions
from .stability import refuse_matrices
from .views import final_estimator, paired

__all__ = ["test_views", "view_p_values"]

Array = NDArray[np.float64]

#: decisions that are shuffled at once
AT_ONCE = 1_000_000


@several_fits
def view_p_values(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    n_permutations: int = 999,
    views: Any = None,
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Test for every view whether held-out decisions get worse when its rows are shuffled.

    The model is fitted on the training part of every fold and splits its decisions on the other part by view; there,
    the contributions of one view are shuffled among the samples.  Under the null hypothesis that the view has nothing
    to do with the labels and the other views, shuffled decisions are as good as the true ones.  A view that only
    repeats what another one says may have a small p-value when the model leans on it: what is tested is this model's
    use of a view.

    Parameters
    ----------
    model : estimator or pipeline
    X, y : samples and targets
    cv : int, splitter or iterable, default=5
    n_permutations : int, default=999
        The smallest p-value is ``1 / (n_permutations + 1)``.
    views : sequence or function, optional
        As for :func:`kernel_views`.
    random_state : int or RandomState, default=0
    progress : callable, optional
        Called with the number of folds done and to do.

    Returns
    -------
    DataFrame
        One row per view: ``quality`` of the held-out decisions, its mean ``shuffled``, ``p_value``, and ``p_holm``
        adjusted for the number of views.  The quality is the mean margin cut off at -1 and 1, or minus the mean squared
        error in regression.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> bank = kw.per_view({"signal": [0, 1], "noise": [2, 3]}, kw.linear())
    >>> view_p_values(MKLClassifier(bank, norm=2), X, y, n_permutations=99)["p_value"].tolist()[0]
    0.01
    """
    if not (isinstance(n_permutations, int | np.integer) and n_permutations >= 1):
        raise ValueError(f"n_permutations must be a whole number >= 1, got {n_permutations!r}")
    refuse_matrices(model)
    X, y = paired(model, X, y)
    classify = is_classifier(final_estimator(model))
    folds = list(check_cv(cv, y, classifier=classify).split(np.zeros((len(y), 1)), y))
    parts: list[tuple[Contributions, NDArray[Any]]] = []
    for done, (train, test) in enumerate(folds):
        fitted = clone(model).fit(take(X, train), y[train])
        parts.append((contributions(fitted, take(X, test), views=views), y[test]))
        if progress is not None:
            progress(done + 1, len(folds))
    return test_views(parts, int(n_permutations), check_random_state(random_state), classify)


def test_views(
    parts: list[tuple[Contributions, NDArray[Any]]], permutations: int, random: Any, classify: bool
) -> Any:
    """Shuffle every view among the held-out samples of each fold; one row per view.

    All views are shuffled by the same permutations, which every one of their tests may be.
    """
    import pandas as pd

    n = sum(len(labels) for _, labels in parts)
    names = parts[0][0].view_names
    folds = [(part.decision, part.by_view(), _judge(part, labels, classify)) for part, labels in parts]
    true = sum(float(judge(decision)) for decision, _, judge in folds) / n
    shuffled = np.zeros((len(names), permutations))
    batch = max(1, AT_ONCE // max(decision.size for decision, _, _ in folds))
    for first in range(0, permutations, batch):
        some = slice(first, min(first + batch, permutations))
        for decision, views, judge in folds:
            orders = np.array([random.permutation(len(decision)) for _ in range(some.start, some.stop)])
            for v in range(len(names)):
                contribution = views[:, v]
                used = np.any(contribution)
                shuffled[v, some] += judge(
                    decision - contribution + contribution[orders] if used else decision
                )
    shuffled /= n
    beaten = np.sum(shuffled >= true - 1e-12, axis=1)
    table = pd.DataFrame(
        {
            "view": names,
            "quality": true,
            "shuffled": shuffled.mean(axis=1),
            "p_value": (1 + beaten) / (permutations + 1),
        }
    )
    table["p_holm"] = holm(table["p_value"].to_numpy())
    return table


def _judge(part: Contributions, labels: NDArray[Any], classify: bool) -> Callable[[Array], Any]:
    """Return the sum of cut-off margins, or minus the sum of squared errors, of decisions ``(..., n[, classes])``."""
    if not classify:
        axes = tuple(range(-labels.ndim, 0))
        return lambda decision: -np.sum((decision - labels) ** 2, axis=axes)
    codes = np.searchsorted(part.classes, labels)
    if part.decision.ndim == 1:
        signs = np.where(codes == 1, 1.0, -1.0)
        return lambda decision: np.sum(np.clip(signs * decision, -1.0, 1.0), axis=-1)
    own = np.zeros(part.decision.shape, dtype=bool)
    own[np.arange(len(codes)), codes] = True

    def margins(decision: Array) -> Any:
        others = np.where(own, -np.inf, decision).max(axis=-1)
        return np.sum(np.clip(np.where(own, decision, 0.0).sum(axis=-1) - others, -1.0, 1.0), axis=-1)

    return margins
