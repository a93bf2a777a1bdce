"""Banks: m kernels bound to n samples."""

from ._base import Bank, support
from .bound import BoundKernels, PrecomputedKernels
from .build import STORAGES, build_bank
from .composite import CompositeBank
from .lazy import LazyBank
from .lowrank import LowRankBank
from .normalise import Normaliser
from .power import Chain, PowerBank, find_chains, packed_offsets
from .precomputed import as_stack, check_training_stack, precomputed_bank
from .views import Recentred, Rescaled, Selection

__all__ = [
    "STORAGES",
    "Bank",
    "BoundKernels",
    "Chain",
    "CompositeBank",
    "LazyBank",
    "LowRankBank",
    "Normaliser",
    "PowerBank",
    "PrecomputedKernels",
    "Recentred",
    "Rescaled",
    "Selection",
    "as_stack",
    "build_bank",
    "check_training_stack",
    "find_chains",
    "packed_offsets",
    "precomputed_bank",
    "support",
]
