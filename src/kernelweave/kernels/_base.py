"""The contract of this room in one place: what a kernel is, what expands to kernels, and how."""

from ._algebra import Stack, as_spec, expand_kernels, resolve_kernels
from ._kernel import KERNELS, Kernel, KernelSpec, Schema
from ._numeric import NumericKernel

__all__ = [
    "KERNELS",
    "Kernel",
    "KernelSpec",
    "NumericKernel",
    "Schema",
    "Stack",
    "as_spec",
    "expand_kernels",
    "resolve_kernels",
]
