"""Kernels: parameters, never data.

``+`` puts kernels side by side in a bank, ``summed`` adds them inside one kernel, ``*`` multiplies them
entry by entry, ``.on(columns)`` restricts them.

>>> from kernelweave import kernels as kw
>>> bank = kw.gaussian([0.5, 1, 2]) + kw.linear().on(0)
>>> [kernel.name for kernel in bank]
['gaussian(width=0.5)', 'gaussian(width=1)', 'gaussian(width=2)', 'linear on feature 0']
"""

from __future__ import annotations

from .._numerics.matrices import clip_spectrum, flip_spectrum, shift_spectrum
from ._algebra import Chosen, Stack, as_spec, expand_kernels, per_feature, per_view, resolve_kernels
from ._kernel import Kernel, KernelSpec, Schema, n_samples, registry, take
from ._numeric import NumericKernel
from .approximate import nystroem, principal, random_fourier, stack_features
from .columns import column_groups, view_of
from .columns import describe as describe_columns
from .combined import always, summed
from .dotproduct import constant, cosine, linear, polynomial, sigmoid
from .functions import from_distance, function
from .graphs import from_grakel, shortest_path, weisfeiler_lehman
from .groups import from_gmt, from_groups
from .histogram import additive_chi2, chi2, intersection, tanimoto
from .holder import held
from .molecules import descriptors, fingerprint
from .pairwise import pairs
from .papers import default_bank, preset, presets
from .sequences import alignment, spectrum, weighted_degree
from .stationary import gaussian, laplacian, matern, periodic, rational_quadratic

__all__ = [
    "Chosen", "Kernel", "KernelSpec", "NumericKernel", "Schema", "Stack", "additive_chi2", "alignment",
    "always", "as_spec", "chi2", "clip_spectrum", "column_groups", "constant", "cosine", "default_bank",
    "describe_columns", "descriptors", "expand_kernels", "fingerprint", "flip_spectrum", "from_distance",
    "from_gmt", "from_grakel", "from_groups", "function", "gaussian", "held", "intersection", "laplacian",
    "linear", "matern", "n_samples", "nystroem", "pairs", "per_feature", "per_view", "periodic",
    "polynomial", "preset", "presets", "principal", "random_fourier", "rational_quadratic", "registry",
    "resolve_kernels", "shift_spectrum", "shortest_path", "sigmoid", "spectrum", "stack_features", "summed",
    "take", "tanimoto", "view_of", "weighted_degree", "weisfeiler_lehman",
]  # fmt: skip

__dir__ = __all__.copy  # completion shows the public names alone
