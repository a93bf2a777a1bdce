"""What is worth saying about who lacks what: refusals, and warnings where missing views carry a risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numerics.significance import holm
from ..exceptions import KernelWeaveWarning, warn_at_caller
from .holder import Views

__all__ = ["MissingRates", "Presence", "pattern_table", "refuse_missing", "warn_of_classes"]

#: warnings need a difference of shares at least this large, with a p-value at most that small
LEAST_DIFFERENCE = 0.15
LARGEST_P = 1e-3
#: new samples below this number say nothing about a change
FEW = 20


@dataclass
class Presence:
    """Who has what, of anything that samples have or lack as a whole; ``Views`` say the same of themselves.

    Parameters
    ----------
    names : sequence of str
    present : bool array of shape (n, number of names)
    """

    names: Sequence[str]
    present: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.present)


def refuse_missing(views: Views, completes: bool = True, fitted: bool = False) -> None:
    """Raise where a sample lacks a view, naming the view, how many lack it and what to write.

    ``completes`` says whether the estimator has a parameter ``missing``, ``fitted`` that the samples are new ones.
    """
    lacking = views.lacking()
    if not lacking:
        return
    name, count = max(lacking.items(), key=lambda item: item[1])
    others = f" ({len(lacking)} views are missing for some)" if len(lacking) > 1 else ""
    said = f"view {name!r} is missing for {count} of {len(views)} samples{others}: "
    if not completes:
        raise ValueError(
            said
            + "this estimator needs all views of every sample; leave out the view or these samples, or take "
            "MKLClassifier or MKLRegressor with missing='predict'"
        )
    ways = "missing='predict' to complete it from the views that are there, or missing='mean' to put its mean there"
    if fitted:
        raise ValueError(
            said + f"fit the model with {ways}; where all new samples lack it, fit without it "
            "(inspection.drop_view)"
        )
    raise ValueError(said + f"write {ways}; or leave out the view or these samples")


def warn_of_classes(views: Views | Presence, codes: NDArray[np.intp], classes: Any) -> None:
    """Warn where a view is missing more often in one class than in another: the pattern itself would be learnt."""
    shares = []
    p_values = []
    sizes = np.bincount(codes, minlength=len(classes))
    there = sizes > 0
    for k in range(len(views.names)):
        gone = np.bincount(codes, ~views.present[:, k], minlength=len(classes))[there]
        shares.append(gone / sizes[there])
        p_values.append(_p_value(gone, sizes[there]))
    for k, p_value in enumerate(holm(np.array(p_values))):
        if p_value <= LARGEST_P and np.ptp(shares[k]) >= LEAST_DIFFERENCE:
            labels = np.asarray(classes)[there]
            most, least = labels[np.argmax(shares[k])], labels[np.argmin(shares[k])]
            warn_at_caller(
                f"view {views.names[k]!r} is missing for {100 * shares[k].max():.0f} % of class {_plain(most)!r} and "
                f"{100 * shares[k].min():.0f} % of class {_plain(least)!r}: if new samples are not missing in the same "
                "way, accuracy on samples like these says little about them",
                KernelWeaveWarning,
            )


@dataclass
class MissingRates:
    """How many of the training samples lacked each view.

    Parameters
    ----------
    names : list of str
    missing : int array of shape (number of views,)
    n : int
    """

    names: list[str]
    missing: NDArray[np.intp]
    n: int

    @classmethod
    def of(cls, views: Views | Presence) -> MissingRates:
        """Count on the training samples."""
        return cls(list(views.names), np.count_nonzero(~views.present, axis=0), len(views))

    def warn_of_change(self, new: Views | Presence) -> None:
        """Warn where new samples lack views far more often than the training samples did."""
        if len(new) < FEW:
            return
        gone = np.count_nonzero(~new.present, axis=0)
        before = [int(self.missing[self.names.index(name)]) for name in new.names]
        p_values = [
            _p_value(np.array(pair), np.array([self.n, len(new)])) for pair in zip(before, gone, strict=True)
        ]
        for k, p_value in enumerate(holm(np.array(p_values))):
            then, now = before[k] / self.n, gone[k] / len(new)
            if gone[k] == len(new):
                advice = (
                    "a model refitted without it is the better way, "
                    f"inspection.drop_view(model, X, y, {new.names[k]!r}).model with the training samples X, y"
                )
                said = f"none of the {len(new)} new samples has view {new.names[k]!r}"
            elif p_value <= LARGEST_P and now - then >= LEAST_DIFFERENCE:
                advice = "its accuracy in training says little about these samples"
                said = (
                    f"view {new.names[k]!r} is missing for {100 * now:.0f} % of the new samples and was missing for "
                    f"{100 * then:.0f} % of the training samples"
                )
            else:
                continue
            warn_at_caller(f"{said}: {advice}", KernelWeaveWarning)


def pattern_table(views: Views) -> Any:
    """Return every pattern of views with its number of samples, the most frequent first.

    Returns
    -------
    DataFrame
        One column of truth values for each view, and ``samples``.
    """
    import pandas as pd

    patterns, counts = np.unique(views.present, axis=0, return_counts=True)
    table = pd.DataFrame(patterns, columns=list(views.names)).assign(samples=counts)
    return table.sort_values("samples", ascending=False, kind="stable", ignore_index=True)


def _p_value(missing: NDArray[Any], sizes: NDArray[Any]) -> float:
    """P-value of the hypothesis that all groups lack a view equally often."""
    from scipy.stats import chi2_contingency

    table = np.stack([missing, sizes - missing]).astype(float)
    if np.any(table.sum(axis=1) == 0) or table.shape[1] < 2:
        return 1.0
    return float(chi2_contingency(table).pvalue)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
