"""Kernel matrices that exist already: a holder of a stack, with sample indices as samples."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics.matrices import check_semidefinite, check_symmetric
from ._algebra import Stack
from ._kernel import Kernel, KernelSpec, Same


def _frozen_stack(stack: Any) -> Any:
    """Return an array, or every matrix of a sequence, as a read-only view."""
    if not isinstance(stack, np.ndarray):
        return tuple(_frozen_stack(np.asanyarray(matrix)) for matrix in stack)
    view = stack.view()
    view.flags.writeable = False
    return view


class Held(KernelSpec):
    """A stack of kernel matrices that ``clone`` does not copy; see :func:`held`."""

    def __init__(self, stack: Any, names: Sequence[str] | None = None) -> None:
        if getattr(stack, "ndim", None) == 2:
            stack = [stack]
        self.stack = _frozen_stack(stack)
        self.names = None if names is None else tuple(map(str, names))
        if not len(self.stack):
            raise ValueError("the bank is empty: held got no matrix")
        n = self.n_samples
        for j, matrix in enumerate(self.stack):
            if matrix.shape != (n, n):
                raise ValueError(
                    "held needs square matrices of one size, an (m, n, n) array or a list of (n, n) ones: "
                    f"matrix {j} has shape {matrix.shape}, the first has {self.stack[0].shape}"
                )
            if not np.isfinite(matrix).all():
                raise ValueError(f"held: matrix {j} contains NaN or infinity")
            check_symmetric(matrix, f"held: matrix {j}")
        if self.names is not None and len(self.names) != len(self.stack):
            raise ValueError(f"held got {len(self.stack)} matrices but {len(self.names)} names")

    @property
    def n_samples(self) -> int:
        """The number of samples behind the matrices."""
        return int(np.shape(self.stack[0])[0]) if np.ndim(self.stack[0]) else 0

    def __sklearn_clone__(self) -> Held:
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # neither pickle nor deepcopy keeps arrays read-only
        self.stack = _frozen_stack(self.stack)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # the matrices are too long to print
        return f"held({len(self)} kernels of {self.n_samples} samples)"

    def __len__(self) -> int:
        return len(self.stack)

    def _plain(self) -> list[Kernel]:
        return [HeldKernel(self, j) for j in range(len(self))]

    def __getitem__(self, index: Any) -> Any:
        return Stack(tuple(self._plain()))[index]

    def on(self, columns: Any) -> KernelSpec:
        """Return the kernels with the sample indices in this column: several holders can share one X."""
        return Stack(tuple(kernel.on(columns) for kernel in self._plain()))


@dataclass(eq=False, repr=False)
class HeldKernel(Kernel):
    """One matrix of a holder."""

    holder: Held
    index: int

    family = "held"
    takes_indices = True

    @property
    def name(self) -> str:
        names = self.holder.names
        return f"held {self.index}" if names is None else names[self.index]

    @property
    def base_key(self) -> Hashable:
        return ("held", Same(self.holder), self.index), None

    def base(self, A: Any, B: Any) -> np.ndarray:
        who, n = f"kernel {self.name!r}", self.holder.n_samples
        rows = as_indices(A, n, who)
        columns = rows if A is B else as_indices(B, n, who)
        return self.holder.stack[self.index][np.ix_(rows, columns)].astype(np.float64)

    def base_diag(self, A: Any) -> np.ndarray:
        rows = as_indices(A, self.holder.n_samples, f"kernel {self.name!r}")
        return self.holder.stack[self.index][rows, rows].astype(np.float64)


def as_indices(A: Any, n: int, who: str) -> np.ndarray:
    """Return samples given as indices, shape ``(k,)`` or ``(k, 1)``, as integers within range."""
    values = np.asarray(A)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"{who} takes sample indices as X, shape (k,) or (k, 1), got shape {values.shape}: "
            "use X = np.arange(n).reshape(-1, 1)"
        )
    try:
        indices = values.astype(np.intp)
        whole = values.dtype != bool and np.array_equal(indices, values)
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise ValueError(
            f"{who} takes sample indices as X, but these are not whole numbers: {values[:3]} ..."
        )
    wrong = indices[(indices < 0) | (indices >= n)]
    if wrong.size:
        raise ValueError(f"{who} holds {n} samples, 0 to {n - 1}, but X asks for sample {wrong[0]}")
    return indices


def held(stack: Any, names: Sequence[str] | None = None) -> Held:
    """Hold kernel matrices computed elsewhere; X is then the indices of the samples.

    ``clone`` does not copy the holder: in ``GridSearchCV`` every fold reads its own block of one stack.

    Parameters
    ----------
    stack : array of shape (m, n, n), or a sequence of (n, n) matrices
    names : sequence of str or None
        Display names of the kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> holder = kw.held([np.eye(3), np.ones((3, 3))], names=["identity", "ones"])
    >>> holder[0](np.array([0, 2]))
    array([[1., 0.],
           [0., 1.]])
    """
    if isinstance(stack, Held):
        return stack
    holder = Held(stack, names)
    # here and not in the holder, which also holds distances
    for j, matrix in enumerate(holder.stack):
        check_semidefinite(matrix, f"held: matrix {j}")
    return holder
