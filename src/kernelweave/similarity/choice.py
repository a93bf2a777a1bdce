"""Which kernel to make of similarities, and what a new row becomes: chosen by cross-validation on the training block.

The candidates are solved in closed form but for one SVM each, so that comparing all of them costs a few
eigendecompositions per fold.  Every fold does what a user would: it scales, decomposes and fits on the similarities of
its training samples alone, and predicts the others from their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._numerics.deadline import out_of_time
from .fits import Task, fit_method
from .inputs import normalised

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CANDIDATES", "Choice", "choose_method"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

#: kernel and rule; the first one is taken unless another is ahead by more than half a standard error
CANDIDATES = (
    ("denoise", "classical"),
    ("features", "classical"),
    ("flip", "classical"),
    ("denoise", "smooth"),
    ("flip", "smooth"),
)
FOLDS = 5
#: repetitions of the folds with other samples together: fewer samples have noisier errors
SAMPLES, MOST_ROUNDS = 400, 4
DOUBT = 0.5
#: more samples than this are not looked at, which bounds the seconds
MOST = 1200


@dataclass(frozen=True)
class Choice:
    """What was chosen, and the errors it was chosen by.

    Attributes
    ----------
    method, rule : str
    table : DataFrame
        method, rule, fold, ``error`` (share of the held-out weight that was predicted wrong) and ``margin``.
    """

    method: str
    rule: str
    table: pd.DataFrame


def choose_method(
    stack: Array,
    names: list[str],
    codes: Codes,
    task: Task,
    scale: bool,
    rules: tuple[str, ...],
    random: np.random.RandomState,
) -> Choice:
    """Compare the candidates on folds of the training samples.

    Parameters
    ----------
    stack : array of shape (m, n, n)
        Symmetric similarities, as given.
    names : list of m str
    codes : array of shape (n,)
        Classes as numbers.
    task : Task
        Targets, weights and costs of all samples; classes together.
    scale : bool
        Whether similarities are scaled.
    rules : tuple of str
        To choose among.
    random : RandomState
        For the folds.
    """
    import pandas as pd

    candidates = [pair for pair in CANDIDATES if pair[1] in rules or pair[0] == "features"]

    rows: list[dict[str, object]] = []
    for fold, (train, test) in enumerate(_folds(codes, task.weight, random)):
        if rows and out_of_time():
            break
        given = normalised(stack[:, train][:, :, train], names, scale)
        new = given.factors[:, None, None] * stack[:, test][:, :, train]
        part = replace(task, y=task.y[train], weight=task.weight[train], callback=None, verbose=0)
        for method, rule in candidates:
            fit = fit_method(method, given, replace(part, rule=rule))
            error, margin = _judged(fit.decision(new), codes[test], task.weight[test])
            rows.append({"method": method, "rule": rule, "fold": fold, "error": error, "margin": margin})
    if not rows:  # too few samples for folds
        return Choice(*candidates[0], pd.DataFrame(columns=["method", "rule", "fold", "error", "margin"]))
    table = pd.DataFrame(rows)
    return Choice(*_safest(table, candidates), table)


def _safest(table: pd.DataFrame, candidates: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the pair with the least mean error, or the first one where that is hardly worse: the folds are few."""
    errors = table.pivot(index="fold", columns=["method", "rule"], values="error")
    means = errors.mean()
    best = min(candidates, key=lambda pair: (means[pair], candidates.index(pair)))
    lead = errors[candidates[0]] - errors[best]
    deviation = float(lead.std(ddof=1)) / np.sqrt(len(lead)) if len(lead) > 1 else 0.0
    return candidates[0] if lead.mean() <= DOUBT * deviation else best


def _folds(codes: Codes, weight: Array, random: np.random.RandomState) -> list[tuple[Codes, Codes]]:
    """Return stratified folds of samples with weight; none where a class has a single one."""
    from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

    used = np.flatnonzero(weight > 0)
    if used.size > MOST:
        used = np.sort(train_test_split(used, train_size=MOST, stratify=codes[used], random_state=random)[0])
    counts = np.unique(codes[used], return_counts=True)[1]
    folds = min(FOLDS, int(counts.min()))
    if folds < 2:
        return []
    rounds = int(np.clip(round(SAMPLES / used.size), 1, MOST_ROUNDS))
    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=rounds, random_state=random)
    return [(used[train], used[test]) for train, test in splitter.split(used, codes[used])]


def _judged(values: Array, codes: Codes, weight: Array) -> tuple[float, float]:
    """Weighted share of errors, and the mean margin cut off at -1 and 1, which is less of a step."""
    if values.ndim == 1:
        margins = np.where(codes == 1, values, -values)
    else:
        rows = np.arange(codes.size)
        others = values.copy()
        others[rows, codes] = -np.inf
        margins = values[rows, codes] - others.max(axis=1)
    total = float(weight.sum())
    return float(weight @ (margins <= 0)) / total, float(weight @ np.clip(margins, -1.0, 1.0)) / total
