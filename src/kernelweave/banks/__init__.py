"""Banks: m kernels bound to n samples."""

from ._base import Bank, support
from .bound import BoundKernels, PrecomputedKernels
from .build import STORAGES, build_bank
from .completed import CompletedKernels, completed_bank, completed_matrices
from .completion import Completion, check_missing
from .composite import CompositeBank
from .lazy import LazyBank
from .lowrank import FeatureBank, LowRankBank
from .normalise import Normaliser
from .power import Chain, PowerBank, find_chains, packed_offsets
from .precomputed import as_stack, check_training_stack, precomputed_bank
from .rows import ArrayRows, ArrowRows, ParquetRows, Rows, as_rows
from .streaming import StreamedKernels, StreamingBank
from .views import Recentred, Rescaled, Selection

__all__ = [
    "STORAGES",
    "ArrayRows",
    "ArrowRows",
    "Bank",
    "BoundKernels",
    "Chain",
    "CompletedKernels",
    "Completion",
    "CompositeBank",
    "FeatureBank",
    "LazyBank",
    "LowRankBank",
    "Normaliser",
    "ParquetRows",
    "PowerBank",
    "PrecomputedKernels",
    "Recentred",
    "Rescaled",
    "Rows",
    "Selection",
    "StreamedKernels",
    "StreamingBank",
    "as_rows",
    "as_stack",
    "build_bank",
    "check_missing",
    "check_training_stack",
    "completed_bank",
    "completed_matrices",
    "find_chains",
    "packed_offsets",
    "precomputed_bank",
    "support",
]
