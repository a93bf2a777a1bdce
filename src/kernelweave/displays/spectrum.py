"""The spectrum of a similarity, and of the kernel that was made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._style import ACCENT, INK, axes_to_draw_on, tidy

__all__ = ["SpectrumDisplay"]


class SpectrumDisplay:
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
        from ..similarity import indefiniteness

        return cls(indefiniteness(similarity).eigenvalues).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, which: int = 0, problem: int = 0, ax: Any = None, **kwargs: Any
    ) -> SpectrumDisplay:
        """Draw a similarity and the kernel learned from it.

        Parameters
        ----------
        estimator : SimilarityClassifier, Denoise, Flip, Shift or Square
            Fitted.
        which : int, default=0
            Which similarity, where there are several.
        problem : int, default=0
            Which class, where each has a kernel of its own.
        ax : matplotlib axes, optional
        **kwargs
            For the lines.
        """
        check_is_fitted(estimator, "kernel_")
        before = np.atleast_2d(estimator.eigenvalues_)[which]
        kernel = getattr(estimator, "kernels_", None)
        if kernel is None:
            kernel = estimator.kernel_
            kernel = kernel[problem] if kernel.ndim == 3 else kernel
        else:
            kernel = (kernel[problem] if isinstance(kernel, list) else kernel)[which]
        label = getattr(estimator, "method", type(estimator).__name__.lower())
        return cls(before, np.linalg.eigvalsh(kernel), label=f"kernel ({label})").plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> SpectrumDisplay:
        """Draw both spectra.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        self
        """
        ax = axes_to_draw_on(ax, (7.0, 3.6))
        rank = np.arange(1, self.before.size + 1)
        # a few eigenvalues dwarf the others: the axis is linear near zero and logarithmic beyond
        small = float(np.median(np.abs(self.before[self.before != 0.0]))) if np.any(self.before) else 1.0
        ax.set_yscale("symlog", linthresh=small or 1.0)
        looks = {"color": INK, "lw": 1.8, **kwargs}
        self.lines_ = ax.plot(rank, self.before, label="similarity", **looks)
        if self.after is not None:
            looks = {**looks, "color": ACCENT, "ls": "--"}
            self.lines_ += ax.plot(np.arange(1, self.after.size + 1), self.after, label=self.label, **looks)
        negative = self.before < 0
        if negative.any():
            ax.fill_between(rank[negative], self.before[negative], 0.0, color=INK, alpha=0.15, lw=0)
        ax.axhline(0.0, color="0.4", lw=0.8)
        ax.set_xlabel("rank of the eigenvalue")
        ax.set_ylabel("eigenvalue")
        ax.set_title(
            f"{int(negative.sum())} of {self.before.size} eigenvalues are negative, "
            f"{100 * self.negative_share:.2g} % of the spectrum"
        )
        ax.legend(frameon=False)
        tidy(ax, "y")
        self.ax_, self.figure_ = ax, ax.figure
        return self
