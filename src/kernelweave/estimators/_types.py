"""What the parameters of estimators and their methods may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..kernels import KernelSpec
from ..losses import Loss
from ..norms import Norm
from ..solvers import Solver

Array: TypeAlias = NDArray[np.float64]
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
#: what a problem is called: the label of a class, mostly
Label: TypeAlias = Any
