"""Banks: m kernels bound to n samples."""

from ._base import Array, Bank, Index, support
from .bound import BoundKernels, PrecomputedKernels
from .build import build_bank, check_kernels, learn_blockwise
from .completed import CompletedKernels, completed_bank, completed_matrices
from .completion import Completion, check_missing
from .composite import CompositeBank
from .function import KernelFunction, PredictingKernels, Term
from .lazy import LazyBank
from .lowrank import FeatureBank, LowRankBank
from .normalise import Normaliser
from .power import Chain, PowerBank, find_chains, packed_offsets
from .precomputed import as_stack, check_training_stack, precomputed_bank
from .rows import ArrayRows, ArrowRows, ParquetRows, Rows, as_rows
from .storages import STORAGES, check_storage
from .streaming import StreamedKernels, StreamingBank
from .views import AmongSamples, ByColumns, Recentred, Rescaled, Selection

__all__ = [
    "STORAGES",
    "AmongSamples",
    "Array",
    "ArrayRows",
    "ArrowRows",
    "Bank",
    "BoundKernels",
    "ByColumns",
    "Chain",
    "CompletedKernels",
    "Completion",
    "CompositeBank",
    "FeatureBank",
    "Index",
    "KernelFunction",
    "LazyBank",
    "LowRankBank",
    "Normaliser",
    "ParquetRows",
    "PowerBank",
    "PrecomputedKernels",
    "PredictingKernels",
    "Recentred",
    "Rescaled",
    "Rows",
    "Selection",
    "StreamedKernels",
    "StreamingBank",
    "Term",
    "as_rows",
    "as_stack",
    "build_bank",
    "check_kernels",
    "check_missing",
    "check_storage",
    "check_training_stack",
    "completed_bank",
    "completed_matrices",
    "find_chains",
    "learn_blockwise",
    "packed_offsets",
    "precomputed_bank",
    "support",
]
