"""Some of the kernels of a bank, by name: what a model keeps that was refitted on a part of its kernels."""

from __future__ import annotations

from typing import Any

from ._algebra import expand_kernels, spec_parts
from ._kernel import Kernel, KernelSpec, Schema

__all__ = ["Chosen"]


class Chosen(KernelSpec):
    """The kernels of a bank that have these names, in the bank's order.

    Parts of the bank that ask for a view or column that is not there are left out, as long as no kernel that is wanted
    is among them: a model without proteins can be fitted to tables without proteins.

    Parameters
    ----------
    bank : KernelSpec
    names : tuple of str
    """

    def __init__(self, bank: Any, names: tuple[str, ...]) -> None:
        self.bank = bank
        self.names = names

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the kernels that are wanted, each on the columns it finds."""
        kernels: list[Kernel] = []
        refused: ValueError | None = None
        for part in spec_parts(self.bank):
            try:
                kernels += expand_kernels(part, schema)
            except ValueError as error:
                refused = refused or error
        wanted = [kernel for kernel in kernels if kernel.name in self.names]
        lacking = [name for name in self.names if name not in {kernel.name for kernel in wanted}]
        if not lacking:
            return wanted
        raise ValueError(
            f"the samples have no view or columns for kernel {lacking[0]!r}, which the model needs"
        ) from refused
