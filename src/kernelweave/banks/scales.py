"""Whether kernels suit the scales of the samples: sentences about those that cannot tell samples apart.

Three things go wrong without any error where columns are not scaled.  A kernel of a distance is nearly the identity
where its width is far below the distances: training samples are known by heart, and new ones get the intercept.  It is
nearly constant where its width is far above them, and so is a linear kernel of columns far from zero: only a very large
C makes anything of the rest.  And where one column varies a hundred times more than others, a kernel of all of them
sees this one alone.

Kernels on the same columns are evaluated together, because a grid of widths has extreme ones on purpose: they are named
only where none of them is of use.  All of it is measured on a few samples, the bank is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import Array, Index
from ..kernels import Kernel, NumericKernel, Schema, n_samples, take, view_of
from ..kernels.approximate import Explicit
from ..kernels.columns import Named, OnColumns
from ..kernels.dotproduct import Constant
from ..kernels.functions import FromDistance
from ..kernels.histogram import Chi2
from ..kernels.stationary import OfDistance, Periodic
from ..views import Views
from .streaming import Rows

#: fewer samples say nothing about a kernel
FEWEST = 20
#: samples of the first check, and of the one that has to confirm that no two samples are alike
FEW, MANY = 64, 2000
#: a kernel is nearly the identity where three samples in four have no other that is as alike as this
ALIKE = 0.05
#: a kernel is nearly constant where centring leaves less than this of its trace
LEFT = 1e-3
#: columns differ in scale where one is this many times as large as others, by deviation and by range
FACTOR = 100.0
#: and where this share of the columns, or of the views, is concerned
SHARE = 0.1
#: samples on which columns are measured
MEASURED = 200
#: groups of columns that are checked, of those that a bank has
MOST_GROUPS = 12

IDENTITY, CONSTANT, EITHER, AS_MEANT = "identity", "constant", "either", "as meant"

#: columns that kernels read, by position; None for all
Columns = tuple[int, ...] | None


def findings_of_kernels(
    kernels: Sequence[Kernel], samples: Any, center: bool = False, names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return a sentence for each way in which settled kernels do not suit the samples; none where they do.

    What is constant in kernels does not matter where they are to be centred.  ``names`` are those of the columns, where
    the samples do not have them.
    """
    if n_samples(samples) < FEWEST:
        return ()
    groups: dict[Any, list[Kernel]] = {}
    for kernel in kernels:
        if kernel.takes_indices:
            groups.setdefault("matrices", []).append(kernel)
        elif not kernel.takes_objects:  # a function of objects has no scale, and may take its time
            columns = kernel.columns
            groups.setdefault(columns if isinstance(columns, tuple) else None, []).append(kernel)
    checked = [list(groups)[k] for k in _spread(np.arange(len(groups)), MOST_GROUPS)]
    useless: dict[str, list[list[Kernel]]] = {IDENTITY: [], CONSTANT: [], EITHER: []}
    some = _SomeSamples(samples)
    for key in checked:
        kind = _kind_of_kernels(groups[key], some, None if key == "matrices" else key, center)
        if kind in useless:
            useless[kind].append(groups[key])
    sentences = [
        _sentence(kind, those, len(checked))
        for kind, those in useless.items()
        if those and len(those) >= SHARE * len(checked)
    ]
    return (*sentences, *_different_scales(kernels, some, names))


def findings_of_matrices(matrices: Sequence[Array], center: bool = False) -> tuple[str, ...]:
    """Return a sentence where none of the given kernel matrices tells samples apart."""
    kinds: set[str] = set()
    for j in np.roll(np.arange(len(matrices)), -(len(matrices) // 2)).tolist():
        matrix, diagonal = matrices[j], np.diagonal(matrices[j])
        rows = np.flatnonzero(np.isfinite(diagonal))  # a sample may lack the matrix
        if rows.size < FEWEST:
            continue
        few = _spread(rows, FEW)

        def more(others: Index, matrix: Array = matrix, few: Index = few) -> tuple[Array, Array]:
            entries = np.asarray(matrix[np.ix_(few, others)], dtype=float)
            return entries, np.diagonal(matrix)[others].astype(float)

        kind = _nearly(more(few)[0], more, few, rows, center, given=True)
        if kind is None:
            return ()
        kinds.add(kind)
    kinds.discard(AS_MEANT)
    return (_sentence(EITHER if len(kinds) > 1 else kinds.pop(), [], 1),) if kinds else ()


def _nearly(
    block: Array,
    more: Callable[[Index], tuple[Array, Array]],
    few: Index,
    rows: Index,
    center: bool,
    local: bool = True,
    given: bool = False,
) -> str | None:
    """Return what a kernel nearly is: the identity, constant, or None where it tells samples apart.

    ``block`` holds the entries of a few samples, ``more`` gives those with others, and the diagonal of these.
    ``local`` says that a kernel far from all other samples says nothing there, which inner products in many dimensions
    still do.  Matrices that are ``given`` and *exactly* one of the two are as they were meant.
    """
    trace = float(np.diagonal(block).mean())
    if not (np.isfinite(block).all() and trace > 0):
        return AS_MEANT  # not of a scale: refused elsewhere, or nothing at all
    if 1.0 - float(block.mean()) / trace < LEFT:
        return AS_MEANT if center or (given and np.ptp(block) == 0) else CONSTANT
    if not local:
        return None
    lengths = np.sqrt(np.maximum(np.diagonal(block), 0.0))
    for others in (few, _spread(rows, MANY)):  # neighbours may be among those that were not checked
        alike, theirs = np.abs(block), lengths
        if others is not few:
            entries, diagonal = more(others)
            alike, theirs = np.abs(entries), np.sqrt(np.maximum(diagonal, 0.0))
        alike[few[:, None] == others] = 0.0
        nearest = np.max(alike / np.maximum(np.outer(lengths, theirs), np.finfo(float).tiny), axis=1)
        if float(np.quantile(nearest, 0.75)) >= ALIKE:
            return None
    return AS_MEANT if given and not nearest.any() else IDENTITY


def _kind_of_kernels(group: list[Kernel], some: _SomeSamples, columns: Columns, center: bool) -> str | None:
    """Return what all kernels of some columns nearly are, None where one of them is of use."""
    rows, few, part = some.rows(columns, FEW)
    given = group[0].takes_indices
    if few.size < FEWEST:
        return None
    table = _numbers(part, columns) if not given and len(getattr(part, "shape", ())) == 2 else None
    if sp.issparse(table):
        varies = bool(np.any(_spreads(table)[1] > 0))
    else:  # columns that are no numbers are taken to vary
        varies = table is None or bool(np.any(table != table[:1]))
    if not varies:  # columns that are constant have no scale
        return None
    kinds: set[str] = set()
    # the middle of a grid first: one kernel of use is enough
    for kernel in [*group[len(group) // 2 :], *group[: len(group) // 2]]:
        leaves = [leaf for leaf, _ in _leaves(kernel)]
        if all(isinstance(leaf, Constant) for leaf in leaves):
            continue
        local = given or any(isinstance(leaf, (OfDistance, FromDistance, Chi2)) for leaf in leaves)
        exact = _exact(kernel) if local else kernel

        def more(others: Index, exact: Kernel = exact) -> tuple[Array, Array]:
            right = take(some.samples, others)
            return exact(part, right), exact.diag(right)

        kind = _nearly(exact(part), more, few, rows, center, local, given)
        if kind is None:
            return None
        kinds.add(kind)
    kinds.discard(AS_MEANT)
    return EITHER if len(kinds) > 1 else next(iter(kinds), None)


def _leaves(kernel: Kernel, columns: Columns = None) -> Iterator[tuple[Kernel, Columns]]:
    """Yield the kernels that a kernel is made of, each with the columns that it reads."""
    if isinstance(kernel, OnColumns) and isinstance(kernel.columns, tuple):
        columns = kernel.columns
    inside = [*(getattr(kernel, "kernels", None) or ()), *filter(None, [getattr(kernel, "kernel", None)])]
    if not inside:
        yield kernel, columns
    for one in inside:
        yield from _leaves(one, columns)


def _exact(kernel: Kernel) -> Kernel:
    """Return what an approximation stands for: its own error is not to be mistaken for likeness."""
    if isinstance(kernel, OnColumns):
        inside = _exact(kernel.kernel)
        if inside is kernel.kernel:
            return kernel
        return OnColumns(inside, kernel.columns, kernel.label, kernel.single)
    if isinstance(kernel, (Named, Explicit)) and isinstance(getattr(kernel, "kernel", None), Kernel):
        return _exact(kernel.kernel)
    return kernel


def _mixed_columns(kernels: Sequence[Kernel], width: int) -> list[Columns]:
    """Return some groups of columns that kernels add up; histograms and periods have units of their own."""
    groups: dict[Columns, None] = {}
    for leaf, columns in (found for kernel in kernels for found in _leaves(kernel)):
        own_unit = isinstance(leaf, Periodic) or getattr(leaf, "needs_nonnegative", False)
        numeric = isinstance(leaf, (NumericKernel, Explicit))
        if numeric and not (own_unit or leaf.takes_objects or leaf.takes_indices):
            groups[columns] = None
    mixed = [columns for columns in groups if (width if columns is None else len(columns)) > 1]
    return [mixed[k] for k in _spread(np.arange(len(mixed)), MOST_GROUPS)]


def _different_scales(
    kernels: Sequence[Kernel], some: _SomeSamples, names: Sequence[str] | None = None
) -> list[str]:
    """Return a sentence where kernels mix columns of very different scales."""
    shape: tuple[int, ...] = getattr(some.samples, "shape", ())
    if len(shape) != 2:
        return []
    mixed = _mixed_columns(kernels, shape[1])
    if names is None:
        names = (
            some.samples.names if isinstance(some.samples, Rows) else Schema.of(some.samples).feature_names
        )
    found = []
    for columns in mixed:
        _, rows, part = some.rows(columns, MEASURED)
        table = _numbers(part, columns)
        if rows.size < FEWEST or table is None:
            continue
        deviation, extent = _spreads(table)
        varying = np.flatnonzero(extent > 0)
        if varying.size < 2:
            continue
        top = varying[np.argmax(deviation[varying])]
        small = varying[
            (FACTOR * deviation[varying] < deviation[top]) & (FACTOR * extent[varying] < extent[top])
        ]
        if small.size and small.size >= SHARE * varying.size:
            positions = np.arange(shape[1]) if columns is None else np.asarray(columns)
            least = small[np.argmin(deviation[small])]
            ends = []
            for j in (top, least):
                name = f"column {positions[j]}" if names is None else repr(str(names[positions[j]]))
                ends.append(f"{name} ({deviation[j]:.3g})")
            found.append((float(deviation[top] / deviation[least]), *ends, small.size, varying.size))
    if not found or len(found) < SHARE * len(mixed):
        return []
    factor, largest, smallest, few, all_of_them = max(found)
    likewise = (
        f" ({len(found)} of {len(mixed)} groups of columns looked at are like that)" if len(mixed) > 1 else ""
    )
    return [
        f"Columns under one kernel have standard deviations from {smallest} to {largest}, a factor of {factor:,.0f}: "
        f"{few} of {all_of_them} columns hardly count, because they vary less than a hundredth as much as the "
        f"largest{likewise}. Bring the columns to one scale before the fit, make_pipeline(StandardScaler(), model); "
        "relative=True alone does not help, because the large columns make up the median distance."
    ]


def _numbers(part: Any, columns: Columns) -> Any:
    """Return some columns as an array or a sparse matrix of numbers; None where they are something else."""
    if isinstance(part, Views):
        table = part.select_columns(np.arange(part.shape[1]) if columns is None else columns)
    elif hasattr(part, "iloc"):
        table = (part if columns is None else part.iloc[:, list(columns)]).to_numpy()
    else:
        table = part if columns is None else part[:, list(columns)]
    if getattr(table, "ndim", 0) != 2 or table.dtype.kind not in "fiub":
        return None
    return table


def _spreads(table: Any) -> tuple[Array, Array]:
    """Standard deviations and ranges of columns."""
    if sp.issparse(table):
        csc = sp.csc_matrix(table, dtype=float)
        means = np.asarray(csc.mean(axis=0)).ravel()
        squares = np.asarray(csc.multiply(csc).mean(axis=0)).ravel()
        extent = (csc.max(axis=0).toarray() - csc.min(axis=0).toarray()).ravel()
        return np.sqrt(np.maximum(squares - means**2, 0.0)), extent
    values = np.asarray(table, dtype=float)
    return values.std(axis=0), np.ptp(values, axis=0)


@dataclass
class _SomeSamples:
    """Some of the samples, evenly spaced; each choice is cut out once."""

    samples: Any
    cut: dict[bytes, Any] = field(default_factory=dict)

    def rows(self, columns: Columns, most: int) -> tuple[Index, Index, Any]:
        """Return the samples that have all views of some columns, at most so many of them, and these cut out."""
        samples, having = self.samples, np.arange(n_samples(self.samples))
        if isinstance(samples, Views) and not samples.complete:
            views = samples.view_of(np.arange(samples.shape[1]) if columns is None else columns)
            having = np.flatnonzero(samples.present[:, np.unique(views[views >= 0])].all(axis=1))
        chosen = _spread(having, most)
        key = chosen.tobytes()
        if key not in self.cut:
            self.cut[key] = take(samples, chosen)
        return having, chosen, self.cut[key]


def _spread(rows: Index, most: int) -> Index:
    """Return at most so many of the rows, evenly spaced: nothing is drawn."""
    return rows if rows.size <= most else rows[np.linspace(0, rows.size - 1, most).astype(np.intp)]


def _sentence(kind: str, groups: list[list[Kernel]], of: int) -> str:
    """Say what kernels are, on which columns, and what to do."""
    given = not groups or all(group[0].takes_indices for group in groups)
    places = [view_of(group[0]) for group in groups[:3]]
    if given:
        which = "Every kernel matrix is"
    elif of == 1:
        which = "Every kernel is"
    else:
        more = f" and {len(groups) - 3} more" if len(groups) > 3 else ""
        which = f"Every kernel on {', '.join(places)}{more} ({len(groups)} of {of} groups of columns looked at) is"
    relative = [
        leaf.relative
        for group in groups
        for kernel in group
        for leaf, _ in _leaves(kernel)
        if isinstance(leaf, OfDistance)
    ]
    if kind == IDENTITY:
        width = "larger"
        said = (
            f"{which} nearly the identity on these samples: three in four have no other that is more than {ALIKE:g} "
            "alike, so that training samples are known by heart and new ones get little but the intercept."
        )
    elif kind == CONSTANT:
        width = "smaller"
        said = (
            f"{which} nearly constant on these samples: centring leaves less than {LEFT:g} of it, so that only a very "
            "large C tells samples apart."
        )
    else:
        width = "other"
        said = (
            f"{which} either nearly the identity on these samples (three in four have no other that is more than "
            f"{ALIKE:g} alike) or nearly constant (centring leaves less than {LEFT:g} of it): none of them is of use."
        )
    if given:
        return f"{said} Compute the matrices from scaled columns (StandardScaler), or with {width} widths."
    if relative and all(relative):
        return f"{said} Take {width} widths."
    remedy = "Scale the columns before the fit, make_pipeline(StandardScaler(), model)"
    if relative:
        remedy += ", or count widths in median distances, relative=True"
    return f"{said} {remedy}."
