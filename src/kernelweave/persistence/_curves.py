"""Curves of SciPy inside a model (those of SplineTransformer) as plain arrays, and back.

Versions of SciPy keep them in different ways, up to a reference to the module that their arrays belong to; knots,
coefficients and degree are the same in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["SavedCurve", "is_curve"]


def is_curve(what: Any) -> bool:
    """Whether this is a ``scipy.interpolate.BSpline``; SciPy is not imported to find out."""
    return type(what).__name__ == "BSpline" and type(what).__module__.startswith("scipy.interpolate")


class SavedCurve:
    """Knots, coefficients and degree of a B-spline along the first axis."""

    def __init__(self, knots: Any, coefficients: Any, degree: int, extrapolate: bool | str) -> None:
        self.knots, self.coefficients = knots, coefficients
        self.degree, self.extrapolate = degree, extrapolate

    @classmethod
    def of(cls, spline: Any) -> SavedCurve:
        """Take a spline apart."""
        if spline.axis != 0:
            raise ValueError("a spline along another axis than the first")
        extrapolate = spline.extrapolate
        kept = extrapolate if isinstance(extrapolate, str) else bool(extrapolate)
        return cls(np.asarray(spline.t), np.asarray(spline.c), int(spline.k), kept)

    def spline(self) -> Any:
        """Put the spline together again.

        Compiled code follows the knots: there must be as many coefficients as they ask for.
        """
        from scipy.interpolate import BSpline

        t, c, k = self.knots, self.coefficients, self.degree
        arrays = all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in (t, c))
        if not arrays or t.ndim != 1 or c.ndim < 1 or type(k) is not int or not 0 <= k <= 100:
            raise ValueError("a spline of the model is none")
        if not c.shape[0] == t.size - k - 1 >= k + 1:
            raise ValueError("a spline of the model has other coefficients than knots")
        if not (np.all(np.isfinite(t)) and np.all(np.diff(t) >= 0)):
            raise ValueError("the knots of a spline of the model are not in order")
        if not (isinstance(self.extrapolate, bool) or self.extrapolate == "periodic"):
            raise ValueError("a spline of the model goes on in no known way")
        return BSpline(t, c, k, extrapolate=self.extrapolate)
