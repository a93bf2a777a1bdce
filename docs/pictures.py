"""Draw the pictures of "What is multiple kernel learning?" into ``docs/images``: ``python docs/pictures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier
from kernelweave import kernels as kw

__all__ = ["VIEWS", "draw"]

IMAGES = Path(__file__).parent / "images"
#: columns of scikit-learn's table of 178 wines of three growers; the last view is random numbers
VIEWS = {
    "phenols": [5, 6, 7, 8],
    "colour": [9, 10, 11],
    "acid and minerals": [1, 2, 3, 4],
    "random numbers": [13, 14, 15, 16],
}
INK, MAP = "#4a7fb0", "Blues"


def _table(ax: plt.Axes, values: np.ndarray, title: str) -> None:
    ax.imshow(values, aspect="auto", cmap="Greys", vmin=-3, vmax=3, interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[], xlabel="columns", ylabel="178 wines")


def _similarities(ax: plt.Axes, matrix: np.ndarray, title: str, ends: np.ndarray) -> None:
    ax.imshow(matrix, cmap=MAP, vmin=0, vmax=1)
    for end in ends[:-1]:
        ax.axhline(end - 0.5, color="black", lw=0.6)
        ax.axvline(end - 0.5, color="black", lw=0.6)
    ax.set(title=title, xticks=[], yticks=[])


def _save(figure: plt.Figure, name: str) -> None:
    """Write a picture in 48 colours, a fraction of the size."""
    figure.savefig(IMAGES / name, dpi=110)
    Image.open(IMAGES / name).convert("RGB").quantize(48).save(IMAGES / name, optimize=True)


def draw() -> None:
    """Write ``what_is_a_kernel.png`` and ``what_is_mkl.png``."""
    X, y = load_wine(return_X_y=True)  # sorted by grower
    X = np.hstack([scale(X), np.random.default_rng(0).normal(size=(len(y), 4))])
    ends = np.cumsum(np.bincount(y))
    kernel = kw.gaussian(1.0, relative=True)
    bank = kw.per_view(VIEWS, kernel)
    matrices = [one(X) for one in kw.resolve_kernels(bank.expand(kw.Schema(X.shape[1])), X)]

    figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), width_ratios=[1, 1.6], layout="constrained")
    _table(axes[0], X[:, VIEWS["phenols"]], "what was measured: phenols")
    _similarities(axes[1], matrices[0], "a kernel: how alike two wines are", ends)
    axes[1].set(ylabel="wine", xlabel="wine (dark: alike; lines: three growers)")
    _save(figure, "what_is_a_kernel.png")

    model = MKLClassifier(bank, C=1.0).fit(X, y)
    weights = [model.view_weights_[view] for view in VIEWS]
    figure, axes = plt.subplots(2, 5, figsize=(11, 4), height_ratios=[3, 1], layout="constrained")
    for j, view in enumerate(VIEWS):
        _similarities(axes[0, j], matrices[j], view, ends)
        axes[1, j].barh([0], [weights[j]], color=INK)
        axes[1, j].text(min(weights[j], 0.7) + 0.03, 0, f"{weights[j]:.2f}", va="center")
        axes[1, j].set(xlim=(0, 1), ylim=(-1, 1), yticks=[], xticks=[0, 1])
    axes[1, 0].set_ylabel("weight")
    mixture = sum(weight * matrix for weight, matrix in zip(weights, matrices, strict=True))
    _similarities(axes[0, 4], mixture, "weighted sum of the four", ends)
    axes[1, 4].axis("off")
    _save(figure, "what_is_mkl.png")
    print({view: round(float(weight), 2) for view, weight in zip(VIEWS, weights, strict=True)})


if __name__ == "__main__":
    draw()
