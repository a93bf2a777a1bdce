"""Banks: m kernels bound to n samples."""

from .._typing import Array, Index
from ._base import Bank, Storage, support
from .bound import BoundKernels, KernelFunction, MatrixRows, Term
from .build import as_stack, build_bank, check_kernels, check_training_stack, learn_blockwise
from .completion import Completion, check_missing, completed_bank
from .decide import Decision
from .gram import Gram, SideBySide
from .lazy import Computed
from .lowrank import FeatureMatrix, Features, FeatureStorage
from .memory import STORAGES, check_storage
from .normalise import Normaliser
from .power import Chain, Powers, find_chains, packed_offsets
from .streaming import ArrayRows, ArrowRows, FeatureStream, ParquetRows, Rows, as_rows

__all__ = [
    "STORAGES", "Array", "ArrayRows", "ArrowRows", "Bank", "BoundKernels", "Chain",
    "Completion", "Computed", "Decision", "FeatureMatrix", "FeatureStorage", "FeatureStream",
    "Features", "Gram", "Index", "KernelFunction", "MatrixRows", "Normaliser", "ParquetRows", "Powers",
    "Rows", "SideBySide", "Storage",
    "Term", "as_rows", "as_stack", "build_bank", "check_kernels", "check_missing", "check_storage",
    "check_training_stack", "completed_bank", "find_chains", "learn_blockwise",
    "packed_offsets", "support",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
