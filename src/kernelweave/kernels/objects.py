"""Kernels on objects that are compared by their parts: words of sequences, substructures, labels of graphs.

A part is known by a number of 64 bits, its *code*.  Those of the training samples are the columns of sparse explicit
features; of new samples other parts only count in the length, so that kernel values against training samples are those
of the definition.
"""

from __future__ import annotations

from collections.abc import Hashable
from operator import is_
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from .._components import check_choice
from .._numerics.matrices import row_products
from ._kernel import Kernel, n_samples, readable
from ._numeric import checked_number, family_of, row_norms

#: of every part of every object the object's number, the part's code, and how much it counts
Parts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
COMPARISONS = ("cosine", "product", "tanimoto")
#: parts of the training samples beyond which they are to be hashed: a model file has eight bytes for each
MOST_PARTS = 1 << 23
#: training samples that were counted when a kernel was settled, for the first that asks for them: the bank
_JUST_COUNTED: WeakKeyDictionary[Kernel, tuple[list[Any], Any]] = WeakKeyDictionary()
#: rows named in a message
MOST_NAMED = 5


def mixed(codes: Any) -> np.ndarray:
    """Return codes whose bits all depend on all bits of these (the finaliser of SplitMix64).

    Different codes stay different.  Sums and products of mixed codes, wrapped at 64 bits, are the codes of what is put
    together: among N parts two are taken for one with a probability of about ``N^2 / 2^65``.
    """
    z = np.atleast_1d(np.asarray(codes, dtype=np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class Counted:
    """Samples as their features, which kernel values are computed from: rows of Z, and how large each sample is."""

    def __init__(self, Z: Any, sizes: np.ndarray, by_column: Any = None) -> None:
        self.Z, self.sizes, self._by_column = Z, sizes, by_column

    @property
    def shape(self) -> tuple[int]:
        """The number of samples."""
        return (int(self.Z.shape[0]),)

    def __getitem__(self, rows: Any) -> Counted:
        top = int(rows[0]) if len(rows) else 0
        if not np.array_equal(rows, np.arange(top, top + len(rows))):
            return Counted(self.Z[rows], self.sizes[rows])
        # a bank asks for rows and all before them, which need no copy; columns of the first rows begin all columns
        ends = self.Z.indptr[top : top + len(rows) + 1]
        part = slice(ends[0], ends[-1])
        shape = len(rows), self.Z.shape[1]
        Z = sparse.csr_matrix((self.Z.data[part], self.Z.indices[part], ends - ends[0]), shape=shape)
        return Counted(Z, self.sizes[rows], None if top else self._by_column)

    @property
    def by_column(self) -> Any:
        """Z in columns, of these rows and perhaps of more below."""
        if self._by_column is None:
            self._by_column = self.Z.tocsc()
        return self._by_column


class OfObjects(Kernel):
    """Base of kernels on objects, of which a subclass says what is wrong with one."""

    takes_objects = True
    takes_numbers = False
    #: what a sample is, for messages
    _objects: ClassVar[str] = "texts"
    _kind: ClassVar[type] = str

    def check_parameters(self) -> None:
        """Raise where a parameter cannot be what it is."""

    def _problem(self, what: Any) -> str | None:
        """Return why something is not an object that the kernel takes, None where it is one."""
        raise NotImplementedError

    def check_samples(self, A: Any, where: str = "", rows: np.ndarray | None = None) -> None:
        """Raise where samples are no objects for this kernel, with their rows; ``where`` names the column."""
        objects = entries(A, f"kernel {self.name!r}")
        bad = []
        for i, what in enumerate(objects):
            if what is None or (isinstance(what, float) and what != what):
                why: str | None = "there is none"
            elif isinstance(what, self._kind):
                why = self._problem(what)
            else:
                why = f"{type(what).__name__} {readable(what)[:30]}"
            if why:
                bad.append(f"row {i if rows is None else rows[i]}: {why}")
        if bad:
            more = f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
            raise ValueError(
                f"kernel {self.name!r}{where} takes {self._objects}, and {len(bad)} of {len(objects)} samples are "
                f"none: {'; '.join(bad[:MOST_NAMED])}{more}. Correct these or leave them out; a view that samples lack "
                "as a whole is completed with missing='predict'"
            )

    def _checked(self, A: Any) -> list[Any]:
        self.check_parameters()
        self.check_samples(A)
        return entries(A)


class PartsKernel(OfObjects):
    """Base of kernels that count parts of objects: a subclass names them (``_parts``).

    ``vocabulary`` are the sorted codes of the parts that the training samples have, once ``resolve`` has settled it.
    """

    compare: str
    n_features: int | None
    # no parameter, and nothing that tells two kernels apart: values do not depend on which parts are known
    vocabulary: Any = None

    def check_parameters(self) -> None:
        """Raise where a parameter cannot be what it is."""
        check_choice("compare", self.compare, COMPARISONS)
        if self.n_features is not None:
            checked_number(self.n_features, f"n_features of kernel {self.name!r}", whole=True)

    def _parts(self, objects: list[Any]) -> Parts:
        """Return the parts of objects."""
        raise NotImplementedError

    def _settled(self, objects: list[Any]) -> Any:
        """Return the kernel with what it has to know of training samples before their parts are counted."""
        return self

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Any:
        """Return the kernel that knows the parts of the training samples."""
        if self.vocabulary is not None:
            return self
        objects = self._checked(A)
        made = self._settled(objects)
        counted = counts, parts, _ = made._count(objects)
        if parts.size > MOST_PARTS:
            raise ValueError(
                f"kernel {self.name!r} finds {parts.size} different parts in the training samples, more than "
                f"{MOST_PARTS}: fold them into fewer columns, n_features=2**18 for example, or count smaller parts"
            )
        nonzeros = None if self.compare == "tanimoto" else counts.nnz / max(1, len(objects))
        made = made._with(vocabulary=parts, nonzeros=nonzeros)
        _JUST_COUNTED[made] = objects, counted
        return made

    def _count(self, objects: list[Any]) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return how often each object has each part, the codes of the parts, and the sizes of the objects."""
        owners, codes, values = self._parts(objects)
        codes = np.asarray(codes, dtype=np.uint64)
        if self.n_features is not None:
            codes = mixed(codes) % np.uint64(self.n_features)
        parts, columns = np.unique(codes, return_inverse=True)
        shape = len(objects), max(parts.size, 1)
        entries = sparse.coo_matrix((np.asarray(values, dtype=float), (owners, columns)), shape=shape)
        counts = entries.tocsc().tocsr()  # in order by counting: sorting takes longer
        if self.compare != "tanimoto":
            return counts, parts, np.sqrt(row_norms(counts))
        # min(a, b) of two counts is an inner product of ones: one for the first, one for the second, and so on
        times = counts.data.astype(np.intp)
        among = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        owners = np.repeat(np.repeat(np.arange(len(objects)), np.diff(counts.indptr)), times)
        codes = mixed(np.repeat(parts[counts.indices], times) + mixed(among))
        parts, columns = np.unique(codes, return_inverse=True)
        shape = len(objects), max(parts.size, 1)
        ones = sparse.csr_matrix((np.ones(columns.size), (owners, columns)), shape=shape)
        return ones, parts, np.bincount(owners, minlength=len(objects)).astype(float)

    def counted(self, A: Any) -> Counted:
        """Return samples as their features; they may be that already."""
        if isinstance(A, Counted):
            return A
        if self.vocabulary is None:
            raise ValueError(
                f"kernel {self.name!r} counts parts that the training samples have: settle it with "
                "kernel.resolve(X_train) first"
            )
        objects = entries(A, f"kernel {self.name!r}")
        known, counted = _JUST_COUNTED.pop(self, ([], None))
        if counted is None or len(known) != len(objects) or not all(map(is_, known, objects)):
            counted = self._count(self._checked(A))
        counts, parts, sizes = counted
        if self.compare == "cosine":
            scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
            counts.data *= np.repeat(scale, np.diff(counts.indptr))
        # from the columns of these samples to those of the training samples
        at = np.minimum(np.searchsorted(self.vocabulary, parts), max(len(self.vocabulary) - 1, 0))
        found = self.vocabulary[at] == parts if len(self.vocabulary) else np.zeros(parts.size, dtype=bool)
        there = found[counts.indices] if parts.size else np.zeros(0, dtype=bool)
        ends = np.concatenate([[0], np.cumsum(there)])[counts.indptr]
        made = counts.data[there], at[counts.indices[there]], ends
        return Counted(sparse.csr_matrix(made, shape=(len(sizes), len(self.vocabulary))), sizes)

    def prepare(self, A: Any) -> tuple[Kernel, Any]:
        prepared = self.counted(A)
        _ = prepared.by_column  # before threads share it
        return self, prepared

    def base(self, A: Any, B: Any) -> np.ndarray:
        if self.vocabulary is None:  # of all samples there are
            made = self.resolve([*entries(A), *([] if A is B else entries(B))])
            return np.asarray(made.base(A, B))
        left = self.counted(A)
        right = left if A is B else self.counted(B)
        products = row_products(left.Z, right.Z, right.by_column)
        if self.compare != "tanimoto":
            return products
        either = np.add.outer(left.sizes, right.sizes) - products
        # two empty samples are equal
        return np.divide(products, either, out=np.ones_like(either), where=either > 0)

    def base_diag(self, A: Any) -> np.ndarray:
        if self.compare == "tanimoto":
            return np.ones(n_samples(A))
        return row_norms((self.resolve(A) if self.vocabulary is None else self).counted(A).Z)

    def features(self, A: Any) -> Any:
        return None if self.compare == "tanimoto" else self.counted(A).Z

    def rank(self, n_columns: int) -> int | None:
        return None if self.vocabulary is None or self.compare == "tanimoto" else len(self.vocabulary)


def entries(A: Any, who: str = "a kernel on objects") -> list[Any]:
    """Return samples as a list of objects: a list, a column, or a table of one column."""
    shape: tuple[int, ...] = getattr(A, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        A = A.iloc[:, 0] if hasattr(A, "iloc") else A[:, 0]
    elif len(shape) == 2:
        raise ValueError(
            f"{who} takes one column of objects, and there are {shape[1]} columns: say which, with .on('sequence') for "
            "example"
        )
    return list(A)


def checked_family(make: Any, values: Any, what: str, *others: Any, strict: bool = True) -> Any:
    """Return a kernel for one whole number, or a stack for a sequence, after looking at the parameters of each."""
    made = family_of(make, values, what, *others, whole=True, strict=strict)
    for kernel in [made] if isinstance(made, Kernel) else made:
        kernel.check_parameters()
    return made


def joined(found: list[tuple[Any, Any, Any]]) -> Parts:
    """Return parts in one array each; a count may be one number for all."""
    counts = [np.broadcast_to(count, code.shape) for _, code, count in found]
    owners, codes = ([np.zeros(0, dtype=np.uint64), *(part[place] for part in found)] for place in (0, 1))
    return np.concatenate(owners).astype(np.intp), np.concatenate(codes), np.concatenate([[], *counts])
