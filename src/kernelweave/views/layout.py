"""Views as a fitted model knows them: how new samples are brought to it, and which samples lack which view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._components import nearest
from .._numerics.significance import holm
from ..exceptions import KernelWeaveWarning, warn_at_caller
from ._tables import is_table, unlike
from .holder import Views, as_views, is_views


@dataclass
class ViewLayout:
    """Names, widths and names of the columns of some views; ``sparse`` says which are sparse matrices.

    Parameters
    ----------
    names : list of str
    widths : list of int
    columns : list of (list of str or None)
    sparse : list of bool
    """

    names: list[str]
    widths: list[int]
    columns: list[list[str] | None]
    sparse: list[bool]

    @classmethod
    def of(cls, views: Views) -> ViewLayout:
        """Read the layout off the training samples."""
        return cls(
            list(views.names),
            [int(block.shape[1]) for block in views.blocks],
            [None if columns is None else list(columns) for columns in views.columns],
            [bool(sparse.issparse(block)) for block in views.blocks],
        )

    def bring(self, X: Any) -> Views:
        """Return new samples as the same views in the same order; a view that X does not have is absent.

        Columns are found by their names where both sides have them, else by their places.
        """
        if isinstance(X, list | tuple):
            if len(X) != len(self.names):
                raise ValueError(
                    f"got a list of {len(X)} views for a model of {len(self.names)}: give a dict, so that it is "
                    f"clear which are missing ({', '.join(self.names)})"
                )
            X = dict(zip(self.names, X, strict=True))
        new = as_views(X)
        unknown = [name for name in new.names if name not in self.names]
        if unknown:
            raise ValueError(
                f"the model knows no view {unknown[0]!r}.{nearest(unknown[0], self.names)} Its views are "
                f"{', '.join(self.names)}"
            )
        blocks, columns = [], []
        present = np.zeros((len(new), len(self.names)), dtype=bool)
        for k, name in enumerate(self.names):
            known = self.columns[k]
            columns.append(None if known is None else tuple(known))
            if name not in new:
                shape = (len(new), self.widths[k])
                # one NaN that stands for all of them
                nothing = np.broadcast_to(np.float64(np.nan), shape)
                blocks.append(sparse.csr_matrix(shape) if self.sparse[k] else nothing)
                continue
            at = new.position(name)
            present[:, k] = new.present[:, at]
            block, theirs = new.blocks[at], new.columns[at]
            if known is not None and theirs is not None and list(theirs) != known:
                place = {column: j for j, column in enumerate(theirs)}
                gone = [column for column in known if column not in place]
                if gone:
                    raise ValueError(
                        f"view {name!r} has no column {unlike(gone)}, which the model was fitted on "
                        f"({len(gone)} of {len(known)} are missing)"
                    )
                block = block[:, [place[column] for column in known]]
            elif block.shape[1] != self.widths[k]:
                raise ValueError(
                    f"view {name!r} has {block.shape[1]} columns, but the model was fitted on {self.widths[k]}"
                )
            elif self.sparse[k] and not sparse.issparse(block):
                block = sparse.csr_matrix(np.where(np.isnan(block), 0.0, block))
            blocks.append(block)
        return new._with(
            names=tuple(self.names), blocks=tuple(blocks), columns=tuple(columns), present=present,
            matched={name: new.matched.get(name, 0) for name in self.names},
        )  # fmt: skip


@dataclass
class KnownViews:
    """Views of the training samples, remembered.

    Parameters
    ----------
    layout : ViewLayout
    groups : dict from names to lists of columns, or None
        Where the views are columns of one table: which.
    missing : {"error", "mean", "predict"}
        How the model was fitted.
    rates : MissingRates
    used : list of str
        Views that some kernel looks at; the others need not be there.
    objects : bool
        Whether a table of which the views are columns holds other things than numbers.
    """

    layout: ViewLayout
    groups: dict[str, list[int]] | None
    missing: str
    rates: MissingRates
    used: list[str]
    objects: bool = False

    @classmethod
    def of(
        cls,
        views: Views,
        missing: str,
        used: Sequence[str],
        groups: Mapping[str, Any] | None = None,
        objects: bool = False,
    ) -> KnownViews:
        """Remember the views of training samples."""
        cut = None if groups is None else {name: list(columns) for name, columns in groups.items()}
        return cls(ViewLayout.of(views), cut, missing, MissingRates.of(views), list(used), objects)

    def samples(self, X: Any) -> Any:
        """Return new samples as the kernels take them; views that are missing are refused or marked."""
        views = self.bring(X)
        looked_at = views.only(self.used)
        looked_at.check_values()
        if self.missing == "error":
            refuse_missing(looked_at, fitted=True)
            return views.table()
        self.rates.warn_of_change(looked_at)
        return views

    def bring(self, X: Any) -> Views:
        """Return new samples as views, from whatever holds them."""
        if self.groups is not None:
            return Views.of_table(X, self.groups)
        if is_views(X) or (isinstance(X, list | tuple) and len(X) and all(map(is_table, X))):
            return self.layout.bring(X)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2 or shape[1] != sum(self.layout.widths):
            raise ValueError(
                f"X must be a dict of views ({', '.join(self.layout.names)}), or one table with their "
                f"{sum(self.layout.widths)} columns in this order"
            )
        starts = [sum(self.layout.widths[:k]) for k in range(len(self.layout.names) + 1)]
        cut = {name: range(starts[k], starts[k + 1]) for k, name in enumerate(self.layout.names)}
        made = Views.of_table(X, cut)
        made.order = None
        return self.layout.bring(made)


#: warnings need a difference of shares at least this large, with a p-value at most that small
LEAST_DIFFERENCE = 0.15
LARGEST_P = 1e-3
#: new samples below this number say nothing about a change
FEW = 20


@dataclass
class Presence:
    """Which samples have which part, of anything that samples have or lack as a whole, as ``Views`` say it.

    Parameters
    ----------
    names : sequence of str
    present : bool array of shape (n, number of names)
    """

    names: Sequence[str]
    present: NDArray[np.bool_]


def refuse_missing(views: Views, completes: bool = True, fitted: bool = False) -> None:
    """Raise where a sample lacks a view, naming the view, how many lack it and what to write.

    ``completes`` says whether the estimator has a parameter ``missing``, ``fitted`` that the samples are new ones.
    """
    lacking = views.lacking()
    if not lacking:
        return
    name, count = max(lacking.items(), key=lambda item: item[1])
    others = f" ({len(lacking)} views are missing for some)" if len(lacking) > 1 else ""
    ways = "missing='predict' to complete it from the views that are there, or missing='mean' to put its mean there"
    advice = f"write {ways}; or leave out the view or these samples"
    if fitted:
        without = "where all new samples lack it, fit without it (inspection.drop_view)"
        advice = f"fit the model with {ways}; {without}"
    if not completes:
        other = "take MKLClassifier or MKLRegressor with missing='predict'"
        advice = (
            f"this estimator needs all views of every sample; leave out the view or these samples, or {other}"
        )
    raise ValueError(f"view {name!r} is missing for {count} of {len(views)} samples{others}: {advice}")


def warn_of_classes(views: Views | Presence, codes: NDArray[np.intp], classes: Any) -> None:
    """Warn where a view is missing more often in one class than in another: the pattern itself would be learnt."""
    shares, p_values = [], []
    sizes = np.bincount(codes, minlength=len(classes))
    there = sizes > 0
    for k in range(len(views.names)):
        gone = np.bincount(codes, ~views.present[:, k], minlength=len(classes))[there]
        shares.append(gone / sizes[there])
        p_values.append(_p_value(gone, sizes[there]))
    for k, p_value in enumerate(holm(np.array(p_values))):
        if p_value <= LARGEST_P and np.ptp(shares[k]) >= LEAST_DIFFERENCE:
            labels = np.asarray(classes)[there]
            extremes = labels[np.argmax(shares[k])], labels[np.argmin(shares[k])]
            most, least = (label.item() if isinstance(label, np.generic) else label for label in extremes)
            warn_at_caller(
                f"view {views.names[k]!r} is missing for {100 * shares[k].max():.0f} % of class {most!r} and "
                f"{100 * shares[k].min():.0f} % of class {least!r}: if new samples are not missing in the same "
                "way, accuracy on samples like these says little about them",
                KernelWeaveWarning,
            )


@dataclass
class MissingRates:
    """How many of the n training samples lacked each view.

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
        return cls(list(views.names), np.count_nonzero(~views.present, axis=0), len(views.present))

    def warn_of_change(self, new: Views | Presence) -> None:
        """Warn where new samples lack views far more often than the training samples did."""
        n = len(new.present)
        if n < FEW:
            return
        gone = np.count_nonzero(~new.present, axis=0)
        before = [int(self.missing[self.names.index(name)]) for name in new.names]
        pairs = np.column_stack([before, gone])
        p_values = [_p_value(pair, np.array([self.n, n])) for pair in pairs]
        for k, p_value in enumerate(holm(np.array(p_values))):
            then, now = before[k] / self.n, gone[k] / n
            if gone[k] == n:
                advice = (
                    "a model refitted without it is the better way, "
                    f"inspection.drop_view(model, X, y, {new.names[k]!r}).model with the training samples X, y"
                )
                said = f"none of the {n} new samples has view {new.names[k]!r}"
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
