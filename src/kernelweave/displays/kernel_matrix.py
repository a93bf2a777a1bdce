"""What the samples look like to a kernel."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..banks import PredictingKernels
from ._style import ACCENT, axes_to_draw_on

__all__ = ["KernelMatrixDisplay"]


class KernelMatrixDisplay:
    """A kernel matrix with its samples sorted by label.

    Parameters
    ----------
    matrix : array of shape (n, n)
    labels : array of shape (n,), optional
        Classes to sort by; lines part them.
    name : str, optional
        For the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    image_ : matplotlib image
    order : array of shape (n,)
        Samples in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> KernelMatrixDisplay(np.eye(4), labels=[1, 0, 1, 0]).order.tolist()
    [1, 3, 0, 2]
    """

    def __init__(self, matrix: Any, labels: Any = None, *, name: str | None = None) -> None:
        self.matrix = np.asarray(matrix, dtype=float)
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise ValueError(f"a kernel matrix is square, got shape {self.matrix.shape}")
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and len(self.labels) != len(self.matrix):
            raise ValueError(f"{len(self.labels)} labels do not go with {len(self.matrix)} samples")
        self.name = name
        everyone = np.arange(len(self.matrix))
        self.order = everyone if self.labels is None else np.argsort(self.labels, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        kernel: int | str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> KernelMatrixDisplay:
        """Draw the mixture that an estimator learnt, or one of its kernels, on some samples.

        Parameters
        ----------
        estimator : MKLClassifier or MKLRegressor, or a pipeline that ends in one
            Fitted on samples, not on matrices; with one set of weights.
        X : samples
        y : array of shape (n,), optional
            Labels to sort by.
        kernel : int or str, optional
            Position or name of a kernel with weight; by default the mixture of all.
        ax, **kwargs
            As for ``plot``.
        """
        from ..estimators.fitted import function_of, samples_for
        from ..inspection import final_estimator
        from ..inspection.views import paired, transformed

        last = final_estimator(estimator)
        check_is_fitted(last, "weights_")
        terms = {int(term.index[0]): term for term in function_of(last).each()}
        if any(term.kernels.samples is None for term in terms.values()):
            raise ValueError(
                "from_estimator needs kernels that are computed from samples: draw matrices themselves; completed "
                "ones (missing=...) are not kept"
            )
        if last.weights_.ndim != 1:
            raise ValueError("every class has a mixture of its own: draw one kernel, with kernel=...")
        names = [str(name) for name in last.kernel_names_]
        chosen = list(terms) if kernel is None else [_position(kernel, names, terms)]
        samples = samples_for(last, transformed(estimator, X if y is None else paired(estimator, X, y)[0]))
        matrix = sum(
            (1.0 if kernel is not None else float(last.weights_[j])) * normalised(terms[j].kernels, samples)
            for j in chosen
        )
        name = "learnt mixture" if kernel is None else names[chosen[0]]
        return cls(matrix, y, name=name).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, colorbar: bool = True, **kwargs: Any) -> KernelMatrixDisplay:
        """Draw the matrix, dark where samples are alike.

        Parameters
        ----------
        ax : matplotlib axes, optional
        colorbar : bool, default=True
        **kwargs
            For ``Axes.imshow``.

        Returns
        -------
        self
        """
        ax = axes_to_draw_on(ax, (5.2, 4.4))
        shown = self.matrix[np.ix_(self.order, self.order)]
        self.image_ = ax.imshow(shown, **{"cmap": "Greys", "interpolation": "nearest", **kwargs})
        if self.labels is not None:
            classes, counts = np.unique(self.labels, return_counts=True)
            ends = np.cumsum(counts)
            for end in ends[:-1] - 0.5:
                ax.axhline(end, color=ACCENT, linewidth=1.2)
                ax.axvline(end, color=ACCENT, linewidth=1.2)
            middles = ends - counts / 2.0 - 0.5
            ax.set_yticks(middles, [str(c) for c in classes])
            ax.set_xticks(middles, [str(c) for c in classes])
            ax.tick_params(length=0)
            if sum(len(str(c)) for c in classes) > 40:
                ax.tick_params(axis="x", labelrotation=45)
        else:
            ax.set_xlabel("sample")
            ax.set_ylabel("sample")
        if colorbar:
            ax.figure.colorbar(self.image_, ax=ax, label="kernel value")
        ax.set_title(self.name or "Kernel matrix")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _position(kernel: int | str, names: list[str], active: Container[int]) -> int:
    if isinstance(kernel, str):
        if kernel not in names:
            from .._components import nearest

            raise ValueError(f"there is no kernel {kernel!r}.{nearest(kernel, names)}")
        kernel = names.index(kernel)
    if kernel not in active:
        raise ValueError(f"kernel {names[kernel]!r} has no weight: its normalisation was not kept")
    return int(kernel)


def normalised(bound: PredictingKernels, samples: Any) -> Any:
    """Return a kernel among some samples, normalised as the training samples taught."""
    kernel, learnt = bound.kernels[0], bound.normaliser
    matrix = kernel(samples)
    if learnt.center:
        assert learnt.grand_means is not None
        means = kernel(samples, bound.samples).mean(axis=1)
        matrix = matrix - means[:, None] - means[None, :] + learnt.grand_means[0]
    if learnt.mode == "cosine":
        root = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
        return matrix / np.outer(root, root)
    return matrix * learnt.scale[0]
