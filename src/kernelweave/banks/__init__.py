"""Banks: m kernels bound to n samples."""

from .._typing import Array, Index
from ._base import Bank, support
from .bound import BoundKernels, KernelFunction, PrecomputedKernels, PredictingKernels, Term
from .build import (
    as_stack,
    build_bank,
    check_kernels,
    check_training_stack,
    learn_blockwise,
    precomputed_bank,
)
from .completion import CompletedKernels, Completion, check_missing, completed_bank, completed_matrices
from .decide import Decision
from .lazy import LazyBank
from .lowrank import FeatureBank, LowRankBank
from .memory import STORAGES, check_storage
from .normalise import Normaliser
from .power import Chain, PowerBank, find_chains, packed_offsets
from .streaming import ArrayRows, ArrowRows, ParquetRows, Rows, StreamedKernels, StreamingBank, as_rows
from .views import AmongSamples, ByColumns, CompositeBank, Recentred, Rescaled, Selection

__all__ = [
    "STORAGES", "AmongSamples", "Array", "ArrayRows", "ArrowRows", "Bank", "BoundKernels", "ByColumns",
    "Chain", "CompletedKernels", "Completion", "CompositeBank", "Decision", "FeatureBank", "Index", "KernelFunction",
    "LazyBank", "LowRankBank", "Normaliser", "ParquetRows", "PowerBank", "PrecomputedKernels",
    "PredictingKernels", "Recentred", "Rescaled", "Rows", "Selection", "StreamedKernels", "StreamingBank",
    "Term", "as_rows", "as_stack", "build_bank", "check_kernels", "check_missing", "check_storage",
    "check_training_stack", "completed_bank", "completed_matrices", "find_chains", "learn_blockwise",
    "packed_offsets", "precomputed_bank", "support",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
