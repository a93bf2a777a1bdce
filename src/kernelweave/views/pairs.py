"""Pairs of objects, a drug and a cell line, as samples: a holder that indexes like an array, and its folds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from .._components import Component
from ._tables import as_frame, row_names, unlike
from .holder import Views

Positions = NDArray[np.intp]


@dataclass(eq=False)
class Side:
    """Objects of one side of pairs, with their names where they have some.

    ``objects`` is a table of numbers, ``Views``, or a list; without kernels that look at them they are whole numbers.
    """

    objects: Any
    names: Any = None

    @classmethod
    def of(cls, objects: Any, names: Any, which: str) -> Side:
        """Read what a user gives as one side; ``which`` is what messages call it."""
        if isinstance(objects, Side):
            return objects
        module = type(objects).__module__.partition(".")[0]
        if module in ("torch", "dask"):
            raise ValueError(
                f"the {which} objects are a {type(objects).__name__} of {module}: pairs are of objects in memory; pass "
                "a NumPy array or a data frame, for example X.compute() of a collection of Dask"
            )
        if isinstance(objects, int | np.integer):
            objects = np.arange(int(objects))
        elif isinstance(objects, Mapping) and not sparse.issparse(objects):
            objects = Views(objects)
        objects = as_frame(objects)
        if isinstance(objects, Views):
            if not objects.complete:
                gone = ", ".join(f"{name!r} ({count})" for name, count in objects.lacking().items())
                raise ValueError(
                    f"some {which} objects lack a view: {gone}. Kernels of pairs are not completed: leave these "
                    "objects out, or fill the views in"
                )
            names = objects.index if names is None else names
        elif hasattr(objects, "iloc"):
            names = row_names(objects.index) if names is None else names
        dimensions = len(getattr(objects, "shape", (0,)))
        if dimensions > 2:
            raise ValueError(
                f"the {which} objects have {dimensions} dimensions: kernel matrices go to the kernels, "
                "kernels.pairs(left=stack, right=stack), and the side is then the number of objects"
            )
        if not hasattr(objects, "shape"):
            objects = list(objects)
        if names is not None:
            given = np.empty(len(names), dtype=object)
            given[:] = [name.item() if isinstance(name, np.generic) else name for name in names]
            names = given
        made = cls(objects, names)
        if names is not None:
            if len(names) != len(made):
                raise ValueError(f"{len(names)} names were given for {len(made)} {which} objects")
            if len(made.places()) < len(names):
                double = next(name for row, name in enumerate(names) if made.places()[name] != row)
                raise ValueError(f"two {which} objects are named {unlike([double])}")
        return made

    def __len__(self) -> int:
        shape = getattr(self.objects, "shape", None)
        return int(shape[0]) if shape else len(self.objects)

    def take(self, rows: Positions) -> Side:
        """Return some of the objects."""
        objects = self.objects
        if hasattr(objects, "iloc"):
            objects = objects.iloc[rows]
        elif sparse.issparse(objects):
            objects = objects.tocsr()[rows]
        elif isinstance(objects, list):
            objects = [objects[row] for row in rows]
        else:
            objects = objects[rows]
        return Side(objects, None if self.names is None else self.names[rows])

    def places(self) -> dict[Hashable, int]:
        """Return the row of every name."""
        return {} if self.names is None else {name: row for row, name in enumerate(self.names.tolist())}

    def keys(self) -> list[Hashable]:
        """Return what tells objects apart: their names, or else everything that is known of them."""
        if self.names is not None:
            return list(self.names.tolist())
        objects = self.objects
        if sparse.issparse(objects):
            rows = objects.tocsr().sorted_indices()
            parts = np.split(rows.indices, rows.indptr[1:-1]), np.split(rows.data, rows.indptr[1:-1])
            return [(i.astype(np.int64).tobytes(), d.tobytes()) for i, d in zip(*parts, strict=True)]
        if isinstance(objects, Views) or hasattr(objects, "iloc"):
            objects = np.asarray(objects)
        if isinstance(objects, np.ndarray) and objects.ndim == 2:
            if objects.dtype == object:
                return [tuple(row) for row in objects.tolist()]
            return [row.tobytes() for row in np.ascontiguousarray(objects, dtype=float) + 0.0]
        each = objects.tolist() if isinstance(objects, np.ndarray) else list(objects)
        try:
            for one in each:
                hash(one)
        except TypeError as error:
            raise ValueError(
                "objects without names are told apart by their values, and these have none that can be compared: give "
                "Pairs(..., left_names=..., right_names=...)"
            ) from error
        return each

    def positions(self, given: Any, which: str) -> Positions:
        """Return the rows that positions or names in an index stand for."""
        values = np.asarray(given)
        named = self.names is not None and any(not isinstance(name, str) for name in self.names)
        whole = values.dtype.kind in "iu" or (
            values.dtype.kind == "f" and np.array_equal(values, np.trunc(values))
        )
        if values.dtype == object:
            whole = all(isinstance(one, Integral) and not isinstance(one, bool | np.bool_) for one in values)
        if whole and not named:
            rows = values.astype(np.intp)
            wrong = rows[(rows < 0) | (rows >= len(self))]
            if wrong.size:
                raise ValueError(
                    f"the index asks for {which} object {wrong[0]}, but there are {len(self)}, counted from 0"
                )
            return rows
        if self.names is None:
            raise ValueError(
                f"the index names {which} objects ({unlike(values[:3].tolist())}), which have no names: give a table "
                f"with an index, or {which}_names="
            )
        place = self.places()
        each = values.tolist()
        unknown = list(dict.fromkeys(name for name in each if name not in place))
        if unknown:
            raise ValueError(
                f"the index names {len(unknown)} {which} objects that there are not, such as {unlike(unknown)}; they "
                f"are named {unlike(self.names)}"
            )
        return np.array([place[name] for name in each], dtype=np.intp)


class Pairs:
    """Hold two kinds of objects, and the pairs of them that are samples.

    ``X[rows]`` are fewer pairs of the same objects, as scikit-learn cuts samples, in ``train_test_split``,
    ``cross_val_score`` and ``GridSearchCV``.

    Parameters
    ----------
    left, right : table, Views, list of objects or number of objects
        Arrays, sparse matrices, pandas or polars tables, dicts of tables, lists of what kernels take.  A number stands
        for objects that are known by kernel matrices alone (``kernels.pairs(left=matrices, ...)``).  Without
        ``right`` both are of one kind: pairs of proteins.
    index : array-like of shape (n, 2), or table of two columns
        The pairs: positions of the objects, or their names.
    left_names, right_names : sequence, optional
        Names of the objects, by default the index of a table.  Objects with the same name are the same, in new data
        too; without names those of which everything is the same.

    Attributes
    ----------
    left, right : Side
        The objects; ``left.objects`` and ``left.names`` are what they were made of.
    index : array of shape (n, 2)
        Positions of the objects of every pair.
    labels : array of shape (n,)
        Values of the pairs, where ``from_grid`` read them.

    Examples
    --------
    >>> import numpy as np
    >>> X = Pairs(np.eye(3), np.eye(2), [[0, 0], [0, 1], [2, 1]])
    >>> X
    Pairs: 3 pairs of 3 left and 2 right objects, 50 % of all; 1 left object is in no pair
    >>> X[1:].left_of.tolist()
    [0, 2]
    """

    ndim = 2

    def __init__(
        self,
        left: Any,
        right: Any = None,
        index: Any = None,
        *,
        left_names: Any = None,
        right_names: Any = None,
    ) -> None:
        self.left = Side.of(left, left_names, "left")
        if right is None and right_names is not None:
            raise ValueError(
                "right_names were given without right objects: pairs of one kind have left_names alone"
            )
        same = right is None or (isinstance(right, Side) and right is left)
        self.right = self.left if same else Side.of(right, right_names, "right")
        if index is None:
            raise ValueError("index is missing: an array of shape (n, 2) of positions or names; all pairs at once are "
                             "made by Pairs.from_grid")  # fmt: skip
        index = as_frame(index)
        columns = [index.iloc[:, k] for k in range(index.shape[1])] if hasattr(index, "iloc") else None
        if columns is None:
            # of mixed types NumPy would make texts
            values = index if isinstance(index, np.ndarray) else np.array([*index], dtype=object)
            columns = list(values.T) if values.ndim == 2 else []
        if len(columns) != 2:
            raise ValueError(
                f"index must have two columns, a left and a right object, got shape {np.shape(index)}"
            )
        self.index = np.stack(
            [self.left.positions(columns[0], "left"), self.right.positions(columns[1], "right")], axis=1
        )
        self._labels: Any = None

    @classmethod
    def from_grid(
        cls, left: Any, right: Any, values: Any, *, left_names: Any = None, right_names: Any = None
    ) -> Self:
        """Return the pairs that were measured, and their values as ``labels``.

        Parameters
        ----------
        left, right, left_names, right_names :
            As for ``Pairs``.
        values : array-like or data frame of shape (left objects, right objects)
            NaN is not measured.  Where both have names, rows and columns of a data frame are found by them.

        Examples
        --------
        >>> import numpy as np
        >>> X = Pairs.from_grid(2, 2, [[1.0, np.nan], [2.0, 3.0]])
        >>> X.index.tolist(), X.labels.tolist()
        ([[0, 0], [1, 0], [1, 1]], [1.0, 2.0, 3.0])
        """
        made = cls(
            left, right, np.zeros((0, 2), dtype=np.intp), left_names=left_names, right_names=right_names
        )
        sides = (made.left, made.right)
        if hasattr(values, "iloc"):
            for axis, side in enumerate(sides):
                own = row_names(values.axes[axis])
                if side.names is not None and own is not None:
                    unknown = [name for name in side.names if name not in values.axes[axis]]
                    if unknown:
                        raise ValueError(
                            f"the table of values has no {('row', 'column')[axis]} {unlike(unknown)}"
                        )
                    values = values.reindex(list(side.names), axis=axis)
            values = values.to_numpy()
        table = np.asarray(values, dtype=float)
        if table.shape != (len(made.left), len(made.right)):
            raise ValueError(
                f"the table of values has shape {table.shape}, but there are {len(made.left)} left and "
                f"{len(made.right)} right objects"
            )
        if np.any(np.isinf(table)):
            raise ValueError("the table of values contains infinity; NaN is what was not measured")
        made.index = np.argwhere(~np.isnan(table))
        if not made.index.size:
            raise ValueError("the table of values has NaN alone: no pair was measured")
        made._labels = table[made.index[:, 0], made.index[:, 1]]
        return made

    def with_sides(self, left: Side, right: Side) -> Pairs:
        """Return the same pairs with other objects in the place of these."""
        made = type(self).__new__(type(self))
        vars(made).update(vars(self) | {"left": left, "right": right})
        return made

    @property
    def labels(self) -> NDArray[np.float64]:
        """Values of the pairs, where they were made from a grid."""
        if self._labels is None:
            raise AttributeError("labels are there where pairs are made by Pairs.from_grid")
        return np.asarray(self._labels)

    @property
    def one_kind(self) -> bool:
        """Whether both objects of a pair are of one kind."""
        return self.left is self.right

    @property
    def left_of(self) -> Positions:
        """Position of the left object of every pair: ``groups`` of splitters that leave out left objects."""
        return self.index[:, 0]

    @property
    def right_of(self) -> Positions:
        """Position of the right object of every pair."""
        return self.index[:, 1]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of pairs, and 2."""
        return len(self), 2

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, key: Any) -> Pairs:
        """Return some pairs (numbers, a mask, a slice) of the same objects."""
        if isinstance(key, tuple):  # scikit-learn cuts samples by [rows, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("pairs are cut by rows alone")
            key = key[0]
        rows = np.atleast_1d(np.arange(len(self))[key])
        made = self.with_sides(self.left, self.right)
        made.index = self.index[rows]
        made._labels = None if self._labels is None else self._labels[rows]
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.index, dtype=dtype)

    def __repr__(self) -> str:
        n, sides = len(self), (self.left, self.right)
        possible = len(self.left) * len(self.right)
        share = (
            f"{100.0 * len(np.unique(self.index, axis=0)) / possible:.2g} % of all" if possible else "of none"
        )
        if self.one_kind:
            said = f"Pairs: {n:,} pairs of {len(self.left):,} objects of one kind, {share}"
            gone = len(self.left) - np.unique(self.index).size
            return said + (f"; {gone:,} object{'s are' if gone > 1 else ' is'} in no pair" if gone else "")
        said = f"Pairs: {n:,} pairs of {len(self.left):,} left and {len(self.right):,} right objects, {share}"
        for axis, (side, which) in enumerate(zip(sides, ("left", "right"), strict=True)):
            gone = len(side) - np.unique(self.index[:, axis]).size
            said += f"; {gone:,} {which} object{'s are' if gone > 1 else ' is'} in no pair" if gone else ""
        return said

    def to_grid(self, values: Sequence[float] | np.ndarray) -> NDArray[np.float64]:
        """Return values of the pairs as a table ``(left objects, right objects)``, NaN where there is no pair.

        Of a pair that is there more than once the mean.
        """
        shape = (len(self.left), len(self.right))
        at = np.ravel_multi_index((self.left_of, self.right_of), shape)
        counts = np.bincount(at, minlength=shape[0] * shape[1])
        sums = np.bincount(at, np.asarray(values, dtype=float), minlength=counts.size)
        grid = np.full(counts.size, np.nan)
        grid[counts > 0] = sums[counts > 0] / counts[counts > 0]
        return grid.reshape(shape)

    def compact(self) -> Pairs:
        """Return the same pairs without objects that are in none; those of one kind keep all that either end has."""
        made = self.with_sides(self.left, self.right)
        if self.one_kind:
            used, places = np.unique(self.index, return_inverse=True)
            made.index = places.reshape(self.index.shape).astype(np.intp)
            made.left = made.right = self.left if used.size == len(self.left) else self.left.take(used)
            return made
        columns, sides = [], []
        for side, column in zip((self.left, self.right), self.index.T, strict=True):
            used, places = np.unique(column, return_inverse=True)
            columns.append(places.ravel().astype(np.intp))
            sides.append(side if used.size == len(side) else side.take(used))
        made.left, made.right = sides
        made.index = np.stack(columns, axis=1)
        return made


@dataclass(frozen=True)
class KnownSides:
    """Columns of the objects that a model was fitted on: their number and names, of the left and right side."""

    widths: tuple[int | None, ...]
    columns: tuple[Any, ...]
    one_kind: bool

    @classmethod
    def of(cls, X: Pairs) -> KnownSides:
        """Read them off pairs."""
        sides = [side.objects for side in (X.left, X.right)]
        return cls(tuple(map(_width, sides)), tuple(map(_columns, sides)), X.one_kind)

    def check(self, X: Pairs) -> None:
        """Raise where new pairs are of other objects."""
        new = KnownSides.of(X)
        if new.one_kind != self.one_kind:
            own, known = ("one kind" if kind.one_kind else "two kinds" for kind in (new, self))
            raise ValueError(f"X has pairs of {own}, and the model was fitted on pairs of {known}")
        for k, which in enumerate(("left", "right")):
            width, expected = new.widths[k], self.widths[k]
            if width != expected:
                raise ValueError(
                    f"the {which} objects of X have {width} columns, but the model was fitted on {expected}"
                )
            names, others = self.columns[k], new.columns[k]
            if names is not None and others is not None and names != others:
                gone = [name for name in names if name not in others]
                how = f"there is no {unlike(gone)}" if gone else "they are in another order"
                raise ValueError(f"the columns of the {which} objects are not those of the fit: {how}")


def _width(objects: Any) -> int | None:
    shape: Any = getattr(objects, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _columns(objects: Any) -> tuple[str, ...] | None:
    """Names of the columns of a table, where all have one."""
    if isinstance(objects, Views):
        return objects.feature_names
    columns = getattr(objects, "columns", None)
    return None if columns is None or not all(isinstance(c, str) for c in columns) else tuple(columns)


#: what is new in a pair that is to be predicted
SETTINGS = ("pairs", "left", "right", "both")


class PairKFold(Component):
    """Folds of pairs in the setting of use: new pairs of known objects, new left or right objects, or both new.

    Parameters
    ----------
    n_splits : int, default=5
    setting : {"pairs", "left", "right", "both"}, default="pairs"
        What of a test pair no training pair has.  With ``"both"`` a fold of left objects meets a fold of right objects;
        training pairs have neither, and the pairs with one known object are in neither part (``left_out``).
    random_state : int, RandomState or None, default=None
        Shuffles pairs or objects; None always in the same way.

    Notes
    -----
    A pair is in the test part at most once.  Of pairs of one kind, training pairs of ``"left"``, ``"right"`` and
    ``"both"`` touch no object of the fold; test pairs have one such object on that end alone, or two.

    Examples
    --------
    >>> import numpy as np
    >>> X = Pairs.from_grid(6, 4, np.ones((6, 4)))
    >>> train, test = next(PairKFold(3, setting="left").split(X))
    >>> np.intersect1d(X.left_of[train], X.left_of[test]).size, test.size
    (0, 8)
    """

    def __init__(self, n_splits: int = 5, *, setting: str = "pairs", random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.setting = setting
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return int(self.n_splits)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Positions, Positions]]:
        """Yield positions of training and test pairs."""
        if not isinstance(X, Pairs):
            raise ValueError(
                f"PairKFold splits Pairs, got {type(X).__name__}: make X = Pairs(left, right, index)"
            )
        if self.setting not in SETTINGS:
            raise ValueError(f"setting must be one of {', '.join(SETTINGS)}, got {self.setting!r}")
        k = self.n_splits
        if not (isinstance(k, int | np.integer) and k >= 2):
            raise ValueError(f"n_splits must be a whole number >= 2, got {k!r}")
        rng = check_random_state(0 if self.random_state is None else self.random_state)
        left, right = self._fold_of(X, rng)
        for fold in range(k):
            here, there = left == fold, right == fold
            test = here & there
            train = ~here & ~there
            if X.one_kind and self.setting in ("left", "right"):
                test = here & ~there if self.setting == "left" else there & ~here
            if not test.any() or not train.any():
                raise ValueError(
                    f"fold {fold} of setting={self.setting!r} has {np.count_nonzero(test)} test and "
                    f"{np.count_nonzero(train)} training pairs: take fewer folds, or another random_state"
                )
            yield np.flatnonzero(train), np.flatnonzero(test)

    def left_out(self, X: Any) -> NDArray[np.intp]:
        """Return how many pairs are in neither part of each fold."""
        return np.array([len(X) - train.size - test.size for train, test in self.split(X)], dtype=np.intp)

    def _fold_of(self, X: Pairs, rng: np.random.RandomState) -> tuple[Positions, Positions]:
        """Return the fold of both ends of every pair; where an end does not matter it is that of the other."""

        def dealt(column: np.ndarray, what: str) -> Positions:
            objects, at = np.unique(column, return_inverse=True)
            if objects.size < self.n_splits:
                raise ValueError(f"{self.n_splits} folds of {objects.size} {what}: take fewer folds")
            folds = np.arange(objects.size) % self.n_splits
            return np.asarray(rng.permutation(folds)[at.ravel()])

        if self.setting == "pairs":  # pairs that are there several times stay together
            same = dealt(np.asarray(np.ravel_multi_index(X.index.T, (len(X.left), len(X.right)))), "pairs")
            return same, same
        if X.one_kind:
            both = dealt(X.index.ravel(), "objects").reshape(X.index.shape)
            return both[:, 0], both[:, 1]
        left = dealt(X.left_of, "left objects") if self.setting != "right" else None
        right = dealt(X.right_of, "right objects") if self.setting != "left" else None
        return (right if left is None else left), (left if right is None else right)  # type: ignore[return-value]
