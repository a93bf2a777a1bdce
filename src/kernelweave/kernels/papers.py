"""Ready banks: the default one, and those of the papers, by name."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from .._components import nearest
from ._algebra import Stack, per_feature, per_view
from ._kernel import Kernel, KernelSpec, Schema, registry
from .dotproduct import linear, polynomial
from .stationary import gaussian

POWERS_OF_TWO = tuple(2.0**k for k in range(-3, 7))
# the widths in the demonstration scripts of the SimpleMKL toolbox; the paper only says that there are ten
SIMPLEMKL_WIDTHS = (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)


def default_bank() -> Stack:
    """Return the bank behind ``kernels=None``: Gaussians around the median distance, and the linear kernel.

    Widths of 1/4 to 4 median distances run from nearly the identity to nearly linear in any units of the features.

    >>> len(default_bank())
    6
    """
    return gaussian((0.25, 0.5, 1.0, 2.0, 4.0), relative=True) + linear()


class _ImageBlocks(KernelSpec):
    """The bank of OBSCURE on MNIST, which makes sense for 28 x 28 images only."""

    def expand(self, schema: Schema) -> list[Kernel]:
        if schema.n_features != 784:
            raise ValueError(
                "the preset 'obscure_mnist' is for images of 28 x 28 = 784 pixels, not "
                f"{schema.n_features} features"
            )
        halves = range(14), range(14, 28)
        blocks = {}
        for row, down in zip(("top", "bottom"), halves, strict=True):
            for side, across in zip(("left", "right"), halves, strict=True):
                blocks[f"{row} {side}"] = [28 * i + j for i in down for j in across]
        return per_view(blocks, linear(), polynomial(3), gaussian(1.0, relative=True)).expand(schema)


PRESETS = {
    "smkl": "Gaussians 2^-3..2^6 and polynomials 1..3 on every single feature: 13 d kernels [XJL10, Table 2].",
    "stpmkl": "Gaussians 2^-3..2^6 on all features and on every single one: 10 (d + 1) kernels [YMJZY12, 5].",
    "simplemkl": "Ten Gaussians, polynomials 1..3 on all features and on every single one: 13 (d + 1) [RBCG08].",
    "obscure_mnist": "Linear, polynomial and Gaussian on the four 14 x 14 blocks of a 28 x 28 image: 12 [OJC10, 4.3].",
}


def presets() -> dict[str, str]:
    """Return the names of the presets with a line about each.

    >>> sorted(presets())
    ['obscure_mnist', 'simplemkl', 'smkl', 'stpmkl']
    """
    return dict(PRESETS)


#: words of other libraries
OTHER_WORDS = {
    "rbf": "gaussian", "poly": "polynomial", "squared_exponential": "gaussian", "exponential": "laplacian"
}  # fmt: skip


def by_name(name: str) -> KernelSpec:
    """Return the bank of a paper, or what the function of a kernel makes by itself: ``"rbf"``, ``"linear"``.

    Widths are counted in median distances then (``relative=True``), because nobody has chosen them.

    >>> by_name("rbf"), by_name("tanimoto")
    (Gaussian(relative=True), Tanimoto())
    """
    factories = vars(import_module(__package__))
    known: dict[str, Any] = {}
    for kernel in registry:
        parameters = signature(factories[kernel]).parameters if kernel in factories else {"": None}
        if all(one is not None and one.default is not one.empty for one in parameters.values()):
            known[kernel] = {"relative": True} if "relative" in parameters else {}
    family = OTHER_WORDS.get(name, name)
    if name not in PRESETS and family not in known:
        words = sorted({*known, *OTHER_WORDS})
        raise ValueError(
            f"unknown preset {name!r}, and no kernel is called so.{nearest(name, [*words, *PRESETS])} Kernels by name: "
            f"{', '.join(words)}. Presets: {', '.join(PRESETS)}. A kernel with parameters is an object: "
            "kernels.gaussian(1.0)."
        )
    made: KernelSpec = preset(name) if name in PRESETS else factories[family](**known[family])
    return made


def preset(name: str) -> KernelSpec:
    """Return the bank of a paper by name; :func:`presets` lists them.

    >>> from kernelweave import kernels as kw
    >>> len(kw.preset("smkl").expand(kw.Schema(33)))
    429
    """
    if name not in PRESETS:
        raise ValueError(
            f"unknown preset {name!r}.{nearest(name, list(PRESETS))} Known presets: {', '.join(PRESETS)}. "
            "A single family is an object: kernels.gaussian(1.0), kernels.linear(), ..."
        )
    if name == "smkl":
        return per_feature(gaussian(POWERS_OF_TWO), polynomial((1, 2, 3)))
    if name == "stpmkl":
        return gaussian(POWERS_OF_TWO) + per_feature(gaussian(POWERS_OF_TWO))
    if name == "simplemkl":
        families = gaussian(SIMPLEMKL_WIDTHS) + polynomial((1, 2, 3))
        return families + per_feature(families)
    return _ImageBlocks()
