"""Banks: m kernels bound to n samples."""

from ._base import Array, Bank, Index, support
from .bound import BoundKernels, PrecomputedKernels
from .build import STORAGES, build_bank
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
    "Array",
    "ArrayRows",
    "ArrowRows",
    "Bank",
    "BoundKernels",
    "Chain",
    "CompositeBank",
    "FeatureBank",
    "Index",
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
    "check_training_stack",
    "find_chains",
    "packed_offsets",
    "precomputed_bank",
    "support",
]
