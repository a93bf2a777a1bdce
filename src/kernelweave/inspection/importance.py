"""How important views are: refits, permutations of held-out rows, and the choice of C and of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from .._components import check_whole
from .._estimating import several_fits
from .._numerics.significance import holm
from .._typing import Array
from ..estimators.subsets import SubsetFits
from ..kernels import take
from ..metrics import concordance
from .explain import Contributions, contributions
from .subsets import compare_subsets, shuffled_folds, views_of_kernels
from .views import final_estimator, paired, predicts_survival, transformed

#: kinds of kernels of which each is left out once
MOST_KINDS = 12


@dataclass(frozen=True)
class ViewImportance:
    """Weights of views, what becomes of them under other choices, and what the model is worth without each.

    Attributes
    ----------
    table : DataFrame
        One row per view: ``weight`` (share of the sum), ``low_C`` and ``high_C`` (least and most along ``along_C``),
        ``low_bank`` and ``high_bank`` (along ``banks``), ``score`` and ``without`` (held-out accuracy, or R2, with all
        views and without this one), ``p_drop`` (of that difference), ``p_value`` and ``p_holm`` (held-out decisions
        with the view shuffled).
    along_C : DataFrame
        ``C`` and one column of weights per view.
    banks : DataFrame
        ``left_out``, the kind of kernel that was, and one column of weights per view; empty where all views have
        kernels of one kind only.
    """

    table: Any
    along_C: Any
    banks: Any

    def __str__(self) -> str:
        lines = []
        for row in self.table.to_dict("records"):
            line = f"{row['view']}: weight {row['weight']:.2f} ({row['low_C']:.2f} to {row['high_C']:.2f} along C"
            if len(self.banks):
                line += f", {row['low_bank']:.2f} to {row['high_bank']:.2f} with other kernels"
            line += ")"
            if np.isfinite(row["without"]):
                line += f"; score {row['score']:.3f}, without it {row['without']:.3f}"
                line += f" (p = {row['p_drop']:.2g})"
            lines.append(f"{line}; shuffled p = {row['p_value']:.2g}")
        return "\n".join(lines)


@several_fits
def view_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    factors: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
    n_folds: int = 5,
    n_permutations: int = 199,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ViewImportance:
    """Ask four questions about every view of a fitted model, and answer them side by side.

    How much weight has it?  Would it have as much with another C, or without some of the kernels?  How much worse is
    the model without it?  Are held-out decisions worse when the view is shuffled?  A view with a large weight whose
    loss costs nothing repeats another one; a weight that comes and goes with C is no finding.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted; one mixture of kernels (any ``MKLClassifier``, ``MKLClassifierCV``, ``MKLRegressor`` or baseline).
    X, y : samples and targets
        Those of the fit.
    factors : sequence of float, default=(0.1, 0.3, 1.0, 3.0, 10.0)
        Of the model's C.
    n_folds : int, default=5
        For the scores with and without each view, and for the shuffled decisions.
    n_permutations : int, default=199
    random_state : int, default=0
    progress : callable, optional
        Called with the number of steps done and to do.

    Returns
    -------
    ViewImportance

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> bank = kw.per_view({"signal": [0, 1], "noise": [2, 3]}, kw.linear(), kw.gaussian(1.0))
    >>> answer = view_importance(MKLClassifier(bank, norm=2).fit(X, y), X, y, n_permutations=49)
    >>> answer.table["p_value"].tolist()[0]
    0.02
    >>> answer.banks["left_out"].tolist()
    ['linear', 'gaussian(width=1)']
    """
    if not (len(factors) and all(np.isfinite(factor) and factor > 0 for factor in factors)):
        raise ValueError(f"factors must be finite numbers > 0, got {factors!r}")
    X, y = paired(model, X, y, cut=True)
    of_kernel, names = views_of_kernels(model)
    estimator = final_estimator(model)
    fits = SubsetFits(estimator, transformed(model, X), y)
    # kernels of every kind (name without the view) that can be left out while every view keeps a kernel
    kind_of = np.array([str(name).rsplit(" on ", 1)[0] for name in estimator.kernel_names_], dtype=object)
    kinds = {
        kind: np.flatnonzero(kind_of != kind)
        for kind in list(dict.fromkeys(kind_of.tolist()))[:MOST_KINDS]
        if set(of_kernel[kind_of != kind].tolist()) == set(names)
    }
    ordered = sorted(set(factors) | {1.0})
    steps, done = len(ordered) + len(kinds) + 2, 0

    def shares(kernels: NDArray[np.intp], factor: float) -> Array:
        nonlocal done
        weights = np.zeros(of_kernel.size)
        weights[kernels] = fits.weights(kernels, factor)
        done += 1
        if progress is not None:
            progress(done, steps)
        total = max(float(weights.sum()), np.finfo(float).tiny)
        return np.array([weights[of_kernel == name].sum() for name in names]) / total

    everything = np.arange(of_kernel.size)
    along_C = np.array([shares(everything, factor) for factor in ordered])
    banks = np.array([shares(kept, 1.0) for kept in kinds.values()]).reshape(-1, len(names))
    weight = along_C[ordered.index(1.0)]
    folds = list(shuffled_folds(y, is_classifier(estimator), n_folds, random_state))
    if len(names) == 1:  # nothing is left without the only view
        scores = [(float(fits.scores([everything], folds)[0].mean()), np.nan, np.nan)]
    else:
        without = [np.flatnonzero(of_kernel != name) for name in names]
        scores = compare_subsets(fits, everything, without, folds)
    if progress is not None:
        progress(steps - 1, steps)
    how: Any = {"cv": folds, "n_permutations": n_permutations, "random_state": random_state}
    tested = view_p_values(model, X, y, **how).set_index("view").loc[names]
    if progress is not None:
        progress(steps, steps)
    table = pd.DataFrame({"view": names, "weight": weight})
    for what, shares_of in (("C", along_C), ("bank", np.vstack([banks, weight]))):
        table[f"low_{what}"], table[f"high_{what}"] = shares_of.min(axis=0), shares_of.max(axis=0)
    table[["score", "without", "p_drop"]] = scores
    table[["p_value", "p_holm"]] = tested[["p_value", "p_holm"]].to_numpy()
    at_C = pd.DataFrame(along_C, columns=names)
    at_C.insert(0, "C", np.array(ordered) * float(np.mean(estimator.C_)))
    without_kind = pd.DataFrame(banks, columns=names)
    without_kind.insert(0, "left_out", list(kinds))
    return ViewImportance(table, at_C, without_kind)


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
        adjusted for the number of views.  The quality is the mean margin cut off at -1 and 1, minus the mean squared
        error in regression, and Harrell's concordance (the mean over the folds) of times to an event.

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
    check_whole("n_permutations", n_permutations)
    X, y = paired(model, X, y, cut=True)
    classify = is_classifier(final_estimator(model))
    if predicts_survival(model):
        folds = list(check_cv(cv, y["event"], classifier=True).split(np.zeros((len(y), 1)), y["event"]))
    else:
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
    n = sum(len(labels) for _, labels in parts)
    names = parts[0][0].view_names
    folds = []
    for part, labels in parts:
        own = labels
        if classify:
            codes = np.searchsorted(part.classes, labels)
            own = np.where(codes == 1, 1.0, -1.0)
            if part.decision.ndim > 1:
                own = codes[:, None] == np.arange(part.decision.shape[1])
        # larger values of what is shuffled are to mean sooner
        folds.append((part.sooner * part.decision, part.sooner * part.by_view(), own))
    true = sum(float(_quality(decision, own, classify)) for decision, _, own in folds) / n
    shuffled = np.zeros((len(names), permutations))
    batch = max(1, AT_ONCE // max(decision.size for decision, _, _ in folds))
    for first in range(0, permutations, batch):
        some = slice(first, min(first + batch, permutations))
        for decision, views, own in folds:
            orders = np.array([random.permutation(len(decision)) for _ in range(some.start, some.stop)])
            for v in range(len(names)):
                contribution = views[:, v]
                used = np.any(contribution)
                moved = decision - contribution + contribution[orders] if used else decision
                shuffled[v, some] += _quality(moved, own, classify)
    shuffled /= n
    beaten = np.sum(shuffled >= true - 1e-12, axis=1)
    p = (1 + beaten) / (permutations + 1)
    return pd.DataFrame(
        {"view": names, "quality": true, "shuffled": shuffled.mean(axis=1), "p_value": p, "p_holm": holm(p)}
    )


def _quality(decision: Array, own: Array, classify: bool) -> Any:
    """Sum of margins cut off at -1 and 1, or minus the sum of squared errors, of decisions ``(..., n[, classes])``.

    Of times to an event their number times the concordance.
    """
    if own.dtype.names:
        each = [concordance(own, risk) for risk in decision.reshape(-1, own.size)]
        return own.size * np.reshape(each, decision.shape[:-1])
    if not classify:
        return -np.sum((decision - own) ** 2, axis=tuple(range(-own.ndim, 0)))
    if own.ndim == 1:
        return np.sum(np.clip(own * decision, -1.0, 1.0), axis=-1)
    others = np.where(own, -np.inf, decision).max(axis=-1)
    return np.sum(np.clip(np.where(own, decision, 0.0).sum(axis=-1) - others, -1.0, 1.0), axis=-1)
