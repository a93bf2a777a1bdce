"""Labels from several annotators: one label per sample, and how far to trust it.

Majority votes are counted here; Dawid and Skene's model, which also learns how reliable every annotator is, comes from
crowd-kit (``pip install kernelweave[crowd]``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._components import check_choice
from ._typing import Array
from .exceptions import KernelWeaveWarning, warn_at_caller

__all__ = ["CrowdLabels", "CrowdRate", "aggregate", "as_long", "disagreement"]


# The one-coin model of Dawid and Skene: every annotator w is right with a probability a_w of its own and otherwise
# names one of the other classes at random, whatever the others say; rounds of expectation and maximisation give the a_w
# and the probability of every class.  Annotators who err together agree too much: for the upper end each counts half.

Codes = NDArray[np.intp]

ROUNDS = 50
#: votes added to those of every annotator, as reliable as all together
PRIOR_VOTES = 4.0
#: normal quantile of both ends
QUANTILE = 2.0
#: how much a vote counts where annotators may err together
TOGETHER = 0.5


@dataclass(frozen=True)
class CrowdRate:
    """Rate of wrong labels estimated from the votes of annotators.

    Attributes
    ----------
    rate : float
        Share of the labels that are wrong.
    interval : tuple of float
        From independent errors to errors that half of the annotators share.
    class_rates : array of shape (k,)
        Share of each true class that is labelled otherwise.
    single : float
        Share of wrong votes of one annotator; never below half of the disagreement of two.
    pairs : int
        Samples with at least two votes, which all of this rests on.
    """

    rate: float
    interval: tuple[float, float]
    class_rates: Array
    single: float
    pairs: int


def single_error(disagreement: float, k: int) -> float:
    """Return the error of one annotator from how often two of them disagree.

    Independent errors that fall on the other k - 1 classes alike disagree with probability ``2 e - e^2 k / (k - 1)``.

    >>> round(single_error(2 * 0.1 * 0.9, 2), 6)
    0.1
    """
    most = (k - 1) / k
    return most * (1.0 - float(np.sqrt(max(1.0 - disagreement / most, 0.0))))


def _posterior(tasks: Codes, votes: Codes, weight: Array, n: int, k: int) -> Array:
    """Probabilities of the classes, all of them alike before any vote."""
    scores = np.zeros((n, k))
    np.add.at(scores, (tasks, votes), weight)
    scores -= scores.max(axis=1, keepdims=True)
    likely = np.exp(scores)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


METHODS = ("majority", "dawid_skene")


@dataclass(frozen=True)
class CrowdLabels:
    """Labels on which annotators agree, and how far to trust them.

    Attributes
    ----------
    labels : array of shape (n,)
        The likeliest label of every sample.
    confidence : array of shape (n,)
        Its probability: a share of votes, or Dawid and Skene's posterior.
    classes : array of shape (k,)
    probabilities : array of shape (n, k)
        Of every class.
    """

    labels: np.ndarray
    confidence: np.ndarray
    classes: np.ndarray
    probabilities: np.ndarray


def as_long(annotations: Any) -> Any:
    """Return annotations as a table with the columns ``task``, ``worker`` and ``label``.

    Parameters
    ----------
    annotations : array of shape (n, annotators) or data frame
        One column an annotator, with NaN, None or an empty text where an annotator gave no label; or a table that has
        the three columns already, ``task`` being the position of the sample.

    Examples
    --------
    >>> as_long([["a", "b"], ["b", None]])
       task  worker label
    0     0       0     a
    1     0       1     b
    2     1       0     b
    """
    import pandas as pd

    if isinstance(annotations, pd.DataFrame) and {"task", "worker", "label"} <= set(annotations.columns):
        table = annotations[["task", "worker", "label"]].dropna(subset=["label"]).reset_index(drop=True)
        if not pd.api.types.is_integer_dtype(table["task"]):
            raise ValueError("annotations: the column 'task' must hold positions of samples, 0 to n - 1")
        return table
    wide = pd.DataFrame(annotations)
    if wide.ndim != 2 or wide.shape[1] < 1:
        raise ValueError("annotations must have one row per sample and one column per annotator")
    stacked = wide.set_axis(range(wide.shape[1]), axis=1).reset_index(drop=True)
    table = stacked.reset_index(names="task").melt(id_vars="task", var_name="worker", value_name="label")
    given = table["label"].notna() & (table["label"].astype(str).str.strip() != "")
    table = table[given].sort_values(["task", "worker"], kind="stable").reset_index(drop=True)
    table["worker"] = table["worker"].astype(int)
    labels = table["label"].infer_objects()
    # numbers next to gaps come as floats: 1.0 is the class 1
    if pd.api.types.is_float_dtype(labels) and (labels == labels.round()).all():
        labels = labels.astype(int)
    known = np.unique(labels) if pd.api.types.is_integer_dtype(labels) else np.array([])
    # many programs write -1 for "no label"
    if known.size > 2 and known[0] == -1 and known[1] >= 0:
        share = float(np.mean(labels == -1))
        warn_at_caller(
            f'-1 is taken for a class, as {share:.0%} of the annotations have it; where it means "no label", use NaN: '
            "np.where(annotations == -1, np.nan, annotations)",
            KernelWeaveWarning,
        )
    return table.assign(label=labels)


def disagreement(annotations: Any, labels: Any) -> CrowdRate | None:
    """Estimate how many labels made of annotations are wrong, from how often annotators contradict each other.

    Parameters
    ----------
    annotations : array of shape (n, annotators) or data frame
        See :func:`as_long`.
    labels : array of shape (n,)
        What was made of them, for example ``aggregate(annotations).labels``.

    Returns
    -------
    CrowdRate or None
        None where no sample has two annotations.

    Examples
    --------
    >>> votes = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> round(disagreement(votes, ["a", "b", "a", "b"]).single, 2)
    0.21
    """
    table = as_long(annotations)
    given = np.asarray(labels)
    classes, votes = np.unique(table["label"].to_numpy(), return_inverse=True)
    unknown = np.setdiff1d(given, classes)
    if unknown.size:
        wrong = unknown.tolist()[0]
        raise ValueError(f"no annotator ever gave the label {wrong!r}: give labels made of the annotations")
    workers = np.unique(table["worker"].to_numpy(), return_inverse=True)[1]
    tasks, n, k = table["task"].to_numpy(), given.size, classes.size
    _check_tasks(tasks, n)
    counts = np.zeros((n, k))
    np.add.at(counts, (tasks, votes), 1.0)
    each = counts.sum(axis=1)
    several = each >= 2
    pairs = int(np.count_nonzero(several))
    if not pairs or k < 2:
        return None
    alike = np.sum(counts * (counts - 1.0), axis=1)[several] / (each * (each - 1.0))[several]
    single = single_error(1.0 - float(alike.mean()), k)
    # how reliable every annotator is, and from that how much a vote speaks for its class
    right = np.full(int(workers.max()) + 1, 1.0 - single)
    per_worker = np.bincount(workers, minlength=right.size)
    posterior = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    for turn in range(ROUNDS):
        hits = np.bincount(workers, weights=posterior[tasks, votes], minlength=right.size)
        common = hits.sum() / per_worker.sum()
        before, right = right, (hits + PRIOR_VOTES * common) / (per_worker + PRIOR_VOTES)
        kept = np.clip(right, 1e-3, 1.0 - 1e-3)
        weight = np.log(kept * (k - 1) / (1.0 - kept))[workers]
        if turn and np.max(np.abs(right - before)) < 1e-6:
            break
        posterior = _posterior(tasks, votes, weight, n, k)
    own = np.arange(n), np.searchsorted(classes, given)
    apart, together = (_posterior(tasks, votes, strength * weight, n, k) for strength in (1.0, TOGETHER))
    wrong, wrong_together = 1.0 - apart[own], 1.0 - together[own]
    rate = float(wrong.mean())
    # the pairs decide how well the reliabilities are known, all samples how many labels happen to be wrong
    deviation = float(np.sqrt(max(rate * (1.0 - rate), 1.0 / pairs) / pairs))
    low = max(rate - QUANTILE * deviation, 0.0)
    high = min(max(float(wrong_together.mean()), rate) + QUANTILE * deviation, 1.0)
    named = np.zeros((n, k), dtype=bool)
    named[own] = True
    class_rates = np.sum(apart * ~named, axis=0) / np.maximum(apart.sum(axis=0), 1e-12)
    return CrowdRate(rate, (low, high), np.clip(class_rates, 0.0, 1.0), single, pairs)


def aggregate(annotations: Any, n_samples: int | None = None, method: str = "majority") -> CrowdLabels:
    """Turn several annotators' labels into one label per sample with a confidence.

    Parameters
    ----------
    annotations : array of shape (n, annotators) or data frame
        See :func:`as_long`.
    n_samples : int, optional
        How many samples there are; needed for a table where the last ones could be missing.
    method : {"majority", "dawid_skene"}, default="majority"
        Count votes, ties shared; or model every annotator's errors (needs crowd-kit).

    Examples
    --------
    >>> found = aggregate([["a", "a", "b"], ["b", None, "b"]])
    >>> found.labels.tolist(), found.confidence.round(2).tolist()
    (['a', 'b'], [0.67, 1.0])
    """
    check_choice("method", method, METHODS)
    table = as_long(annotations)
    if n_samples is None:
        in_rows = "task" not in getattr(annotations, "columns", ())
        n_samples = np.shape(annotations)[0] if in_rows else table["task"].max() + 1
    n = int(n_samples)
    _check_tasks(table["task"].to_numpy(), n)
    classes, codes = np.unique(table["label"].to_numpy(), return_inverse=True)
    if method == "majority":
        votes = np.zeros((n, classes.size))
        np.add.at(votes, (table["task"].to_numpy(), codes), 1.0)
        probabilities = votes / votes.sum(axis=1, keepdims=True)
    else:
        try:
            from crowdkit.aggregation import DawidSkene
        except ImportError as error:
            raise ImportError(
                "method='dawid_skene' needs crowd-kit: pip install 'kernelweave[crowd]', or use method='majority'"
            ) from error
        shares = DawidSkene(n_iter=100).fit_predict_proba(table.assign(label=codes))
        shares = shares.reindex(index=range(n), columns=range(classes.size)).fillna(0.0)
        probabilities = np.asarray(shares, dtype=float)
    best = np.argmax(probabilities, axis=1)
    return CrowdLabels(classes[best], probabilities[np.arange(n), best], classes, probabilities)


def _check_tasks(tasks: np.ndarray, n: int) -> None:
    if tasks.size and (tasks.min() < 0 or tasks.max() >= n):
        raise ValueError(
            f"annotations name sample {int(tasks.max())}, but there are {n} samples (0 to {n - 1})"
        )
    without = np.setdiff1d(np.arange(n), tasks)
    if without.size:
        listed = ", ".join(map(str, without[:5])) + (", ..." if without.size > 5 else "")
        raise ValueError(
            f"annotations give no label for {without.size} of {n} samples ({listed}): leave those samples out"
        )


__dir__ = __all__.copy  # completion shows the public names alone
