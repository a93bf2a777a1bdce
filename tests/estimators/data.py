"""The bank that ``by_hand.raw_stack`` writes out, as the library's kernels."""

from __future__ import annotations

from kernelweave import kernels as kw


def bank():
    return (
        kw.gaussian([0.25, 0.5, 1.0, 2.0])
        + kw.linear()
        + kw.polynomial(2).on([0, 1])
        + kw.per_feature(kw.laplacian(1.0))
    )


def spectrum(a: str, b: str, k: int = 2) -> float:
    """Number of pairs of equal substrings of length k."""
    left = [a[i : i + k] for i in range(len(a) - k + 1)]
    right = [b[i : i + k] for i in range(len(b) - k + 1)]
    return float(sum(left.count(part) * right.count(part) for part in set(left) & set(right)))
