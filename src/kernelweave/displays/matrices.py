"""Pictures of kernel matrices and of spectra of similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._components import nearest
from ..estimators.fitted import function_of, samples_for
from ..inspection import final_estimator, indefiniteness
from ..inspection.views import paired, transformed
from .colours import ACCENT, INK, Display, axes_to_draw_on


class KernelMatrixDisplay(Display):
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
        last = final_estimator(estimator)
        check_is_fitted(last, "weights_")
        function = function_of(last)
        terms = {int(term.index[0]): term for term in function.each()}
        if function.completion is not None or any(t.kernels.samples is None for t in terms.values()):
            raise ValueError(
                "from_estimator needs kernels that are computed from samples: draw matrices themselves; completed "
                "ones (missing=...) are not kept"
            )
        if last.weights_.ndim != 1:
            raise ValueError("every class has a mixture of its own: draw one kernel, with kernel=...")
        names = [str(name) for name in last.kernel_names_]
        if isinstance(kernel, str):
            if kernel not in names:
                raise ValueError(f"there is no kernel {kernel!r}.{nearest(kernel, names)}")
            kernel = names.index(kernel)
        if kernel is not None and kernel not in terms:
            raise ValueError(f"kernel {names[kernel]!r} has no weight: its normalisation was not kept")
        samples = samples_for(last, transformed(estimator, X if y is None else paired(estimator, X, y)[0]))
        mixture: Any = 0
        for j in terms if kernel is None else [int(kernel)]:
            bound = terms[j].kernels
            compute, learnt = bound.kernels[0], bound.normaliser
            matrix = compute(samples)  # normalised as was learnt on the training samples
            if learnt.center:
                assert learnt.grand_means is not None
                means = compute(samples, bound.samples).mean(axis=1)
                matrix = matrix - means[:, None] - means[None, :] + learnt.grand_means[0]
            if learnt.mode == "cosine":
                root = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
                matrix = matrix / np.outer(root, root)
            else:
                matrix = matrix * learnt.scale[0]
            mixture = mixture + (1.0 if kernel is not None else float(last.weights_[j])) * matrix
        name = "learnt mixture" if kernel is None else names[int(kernel)]
        return cls(mixture, y, name=name).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, colorbar: bool = True, **kwargs: Any) -> KernelMatrixDisplay:
        """Draw the matrix, dark where samples are alike.

        Parameters
        ----------
        ax : matplotlib axes, optional
        colorbar : bool, default=True
        **kwargs
            For ``Axes.imshow``.
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
            ax.set(xlabel="sample", ylabel="sample")
        if colorbar:
            ax.figure.colorbar(self.image_, ax=ax, label="kernel value")
        return self._drawn_on(ax, title=self.name or "Kernel matrix")


class SpectrumDisplay(Display):
    """Eigenvalues before and after, from the largest to the smallest.

    Parameters
    ----------
    before : array of shape (n,)
        Eigenvalues of the similarity.
    after : array of shape (n,), optional
        Eigenvalues of the kernel.
    label : str, optional
        What the kernel is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> SpectrumDisplay([2.0, -1.0, 0.5]).negative_share.__round__(3)
    0.286
    """

    def __init__(self, before: Any, after: Any = None, *, label: str = "kernel") -> None:
        self.before = np.sort(np.asarray(before, dtype=float))[::-1]
        self.after = None if after is None else np.sort(np.asarray(after, dtype=float))[::-1]
        self.label = label
        for values in (self.before, self.after):
            if values is not None and (values.ndim != 1 or values.size == 0):
                raise ValueError(f"a spectrum is a vector of eigenvalues, got shape {values.shape}")

    @property
    def negative_share(self) -> float:
        """Share of the negative eigenvalues in the spectrum before."""
        return float(-self.before[self.before < 0].sum() / max(float(np.abs(self.before).sum()), 1e-300))

    @classmethod
    def from_similarity(cls, similarity: Any, *, ax: Any = None, **kwargs: Any) -> SpectrumDisplay:
        """Draw the spectrum of one similarity matrix."""
        return cls(indefiniteness(similarity).eigenvalues).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, which: int = 0, problem: int = 0, ax: Any = None, **kwargs: Any
    ) -> SpectrumDisplay:
        """Draw a similarity and the kernel learned from it.

        Parameters
        ----------
        estimator : SimilarityClassifier, or a transformer of a spectrum such as DenoiseSpectrum
            Fitted.
        which : int, default=0
            Which similarity, where there are several.
        problem : int, default=0
            Which class, where each has a kernel of its own.
        ax, **kwargs
            As for ``plot``.
        """
        check_is_fitted(estimator, "kernel_")
        before = np.atleast_2d(estimator.eigenvalues_)[which]
        kernel = getattr(estimator, "kernels_", None)
        if kernel is None:
            kernel = estimator.kernel_
            kernel = kernel[problem] if kernel.ndim == 3 else kernel
        else:
            kernel = (kernel[problem] if isinstance(kernel, list) else kernel)[which]
        label = getattr(estimator, "method", getattr(estimator, "kind", ""))
        return cls(before, np.linalg.eigvalsh(kernel), label=f"kernel ({label})").plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> SpectrumDisplay:
        """Draw both spectra.

        Parameters
        ----------
        ax : matplotlib axes, optional
        **kwargs
            For ``Axes.plot``.
        """
        ax = axes_to_draw_on(ax, (7.0, 3.6))
        rank = np.arange(1, self.before.size + 1)
        # a few eigenvalues dwarf the others: the axis is linear near zero and logarithmic beyond
        small = float(np.median(np.abs(self.before[self.before != 0.0]))) if np.any(self.before) else 1.0
        ax.set_yscale("symlog", linthresh=small or 1.0)
        style = {"color": INK, "lw": 1.8, **kwargs}
        self.lines_ = ax.plot(rank, self.before, label="similarity", **style)
        if self.after is not None:
            style = {**style, "color": ACCENT, "ls": "--"}
            self.lines_ += ax.plot(np.arange(1, self.after.size + 1), self.after, label=self.label, **style)
        negative = self.before < 0
        if negative.any():
            ax.fill_between(rank[negative], self.before[negative], 0.0, color=INK, alpha=0.15, lw=0)
        ax.axhline(0.0, color="0.4", lw=0.8)
        ax.legend(frameon=False)
        title = (
            f"{int(negative.sum())} of {self.before.size} eigenvalues are negative, "
            f"{100 * self.negative_share:.2g} % of the spectrum"
        )
        return self._drawn_on(ax, "y", title=title, xlabel="rank of the eigenvalue", ylabel="eigenvalue")
