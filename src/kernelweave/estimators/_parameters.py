"""Parameters of estimators: their types, kept as given, left out of the constructor where a rule fixes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from ..kernels import KernelSpec
from ..losses import Loss
from ..norms import Norm
from ..solvers import Solver
from ..views import PairKFold

Codes: TypeAlias = NDArray[np.intp]
#: arrays, sparse matrices, tables, lists of objects, kernel matrices, rows of files, tensors, collections of Dask
Samples: TypeAlias = Any
#: one number per sample, or one label: arrays, lists, columns of tables, tensors, collections of Dask
Column: TypeAlias = Any
KernelsLike: TypeAlias = (
    KernelSpec | Callable[..., float] | Sequence[KernelSpec | Callable[..., float]] | str | None
)
LossLike: TypeAlias = str | Loss | type[Loss]
NormLike: TypeAlias = float | str | Norm | type[Norm]
SolverLike: TypeAlias = str | Solver | type[Solver]
ClassWeights: TypeAlias = dict[Any, float] | str | None
#: as in scikit-learn
RandomSeed: TypeAlias = int | np.random.RandomState | None
Bytes: TypeAlias = int | float | str | None
FileName: TypeAlias = str | Path
#: called after every iteration with a row of the trace
Callback: TypeAlias = Callable[[Any], object]
#: a device of torch, or its name
Device: TypeAlias = Any
#: training and held-out samples of folds, and what they are made of, as in scikit-learn
Splits: TypeAlias = Sequence[tuple[Codes, Codes]]
FoldsLike: TypeAlias = int | str | BaseCrossValidator | PairKFold | Iterable[tuple[Codes, Codes]] | None
Scoring: TypeAlias = str | Callable[..., float] | None
#: what a problem is called: the label of a class, mostly
Label: TypeAlias = Any


Estimator = TypeVar("Estimator", bound=type)


def settled(**values: object) -> Callable[[Estimator], Estimator]:
    """Decorate an estimator that settles parameters of its parent: without effect, they leave its constructor.

    >>> from kernelweave import MeanKernelClassifier, MKLClassifier
    >>> "norm" in MKLClassifier().get_params(), "norm" in MeanKernelClassifier().get_params()
    (True, False)
    """

    def decorate(cls: Estimator) -> Estimator:
        parent = cls.__init__  # type: ignore[misc]
        whole = signature(parent)

        @wraps(parent)
        def __init__(self, *arguments, **named):  # type: ignore[no-untyped-def]
            for name in named.keys() & values.keys():
                raise TypeError(f"{cls.__name__} takes no {name!r}: it is {values[name]!r}")
            parent(self, *arguments, **named, **values)

        chosen = [part for name, part in whole.parameters.items() if name not in values]
        __init__.__signature__ = whole.replace(parameters=chosen)  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return decorate
