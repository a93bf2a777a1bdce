"""OBSCURE [OJC10]: multiclass (2, p)-norm MKL, online then batch; its rivals, its theorems, MNIST.

The paper prints figures and few numbers.  Oxford flowers and Caltech-101 come as kernels that are not available: mfeat,
ten classes in six views, is in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..datasets import load_mfeat, load_mnist
from ..study import Key, Part, Study, at_hand, not_at_hand
from . import convergence, features, grid, kernels, mnist, preselection, scaling, sizes, theory

AWAY = "Oxford flowers and Caltech-101: their kernels are not available; mfeat's six views stand in for them"


def _mfeat(name: str) -> Any:
    return load_mfeat(download=False)


def _mnist(name: str) -> Any:
    return load_mnist()


def _part(name: str, title: str, module: Any, load: Callable[[str], Any], repeats: int) -> Part:
    """Return a part that runs where its data are at hand."""
    data = "mfeat" if load is _mfeat else "mnist"

    def keys(repeats: int) -> Sequence[Key]:
        return module.keys(repeats) if at_hand(load, [data]) else []

    def missing() -> list[str]:
        return [*([AWAY] if load is _mfeat else []), *not_at_hand(load, [data])]

    return Part.of(module, name, title, keys=keys, repeats=repeats, quick_repeats=1, missing=missing)


def _mnist_part(
    name: str, title: str, keys: Callable[[int], list[Key]], report: Any, settings: Any, sizes: Sequence[int],
    work: Any = mnist.work,
) -> Part:  # fmt: skip
    """A part whose repeats are sizes, from the smallest on; even that takes minutes."""
    return Part(
        name, title, settings, lambda repeats: keys(repeats) if at_hand(_mnist, ["mnist"]) else [], work,
        report, repeats=len(sizes), quick_repeats=0, missing=lambda: not_at_hand(_mnist, ["mnist"]),
    )  # fmt: skip


STUDY = Study(
    "obscure",
    "Online-Batch Strongly Convex Multi Kernel Learning",
    (
        _part(
            "convergence", "Figure 1: objective and error over time, and the rivals", convergence, _mfeat, 5
        ),
        _part("mfeat_grid", "Figure 2, left: the paper's p and C", grid, _mfeat, 5),
        _part("kernels", "Figure 2, middle: number of kernels", kernels, _mfeat, 5),
        _part("sizes", "Figure 3 and 2, right: all methods against training size", sizes, _mfeat, 5),
        _part("preselection", "Kernels preselected by leave-one-out", preselection, _mfeat, 10),
        _part("theorems", "Theorems 1 and 2 along runs", theory, _mfeat, 3),
        _mnist_part(
            "mnist", "Figure 4: MNIST", mnist.small_keys, mnist.report, mnist.SMALL_SETTINGS, mnist.SIZES
        ),
        _mnist_part(
            "mnist_large",
            "MNIST, 20,000 and 60,000",
            mnist.large_keys,
            mnist.large_report,
            mnist.SETTINGS,
            mnist.LARGE,
        ),
        _mnist_part(
            "mnist_features",
            "Figure 4 for large n: OBSCURE on explicit features",
            features.keys,
            features.report,
            features.SETTINGS,
            features.SIZES,
            features.work,
        ),
        _part("scaling", "Time of an epoch against n", scaling, _mnist, 2),
    ),
)
