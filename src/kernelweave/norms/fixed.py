"""Weights that are given: all of them, or those of some kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Array
from ._base import Lowest, Norm


class Fixed(Norm):
    """The weights are given and stay: a plain SVM on ``sum_j d_j K_j``; ``Omega^2 = sum_j |f_j|^2 / d_j``.

    Parameters
    ----------
    given : array-like of shape (m,)
        Non-negative weights, not all zero.
    """

    fixed = True
    convex_in_weights = False
    smooth_conjugate = True
    smooth_on_blocks = True
    has_prox = has_projection = True
    label_text = "fixed"
    allowed_text = ""

    def __init__(self, given: Any) -> None:
        self.given = given

    def check(self, m: int) -> None:
        d = np.asarray(self.given, dtype=float)
        if d.shape != (m,):
            raise ValueError(f"Fixed has {d.size} weights for a bank of {m} kernels")
        if not (np.all(np.isfinite(d)) and np.all(d >= 0) and np.any(d > 0)):
            raise ValueError("Fixed needs finite weights >= 0, at least one of them positive")

    def _weights(self, m: int) -> Array:
        return np.asarray(self.given, dtype=float)

    def half_square(self, t: Array) -> float:
        d, used = self._weights(t.size), t > 0
        return float(np.inf) if np.any(d[used] == 0) else 0.5 * float(np.sum(t[used] ** 2 / d[used]))

    def block_gradient(self, t: Array) -> Array:
        d = self._weights(t.size)
        return np.divide(t, d, out=np.zeros_like(t), where=d > 0)

    def weights(self, s: Array) -> Array:
        return self._weights(s.size).copy()

    weights_of_blocks = scaled = project = weights  # type: ignore[assignment]

    def prox(self, t: Array, mu: float) -> Array:
        d = self._weights(t.size)
        return t * d / (d + mu)

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        return Fixed(self._weights(0)[kernels])


class TwoStep(Fixed):
    """Weights ``u_i v_j`` of pairs with which ridge regression is that of one side after the other, and near ones."""

    label_text = "two-step"
    rule_text = "they are those of two-step ridge regression"


class Uniform(Fixed, registered_as="uniform"):
    """The mean kernel: weights 1/m, nothing learnt."""

    label_text = "uniform"
    rule_text = "all kernels have the same one"

    def __init__(self) -> None:
        pass

    def check(self, m: int) -> None:
        """Any number of kernels has a mean."""

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        return self

    def _weights(self, m: int) -> Array:
        return np.full(m, 1.0 / m)


class FixedParts(Norm):
    """A norm on some kernels; the others have given weights and take no part in the choice.

    Estimators make this norm where the bank says ``kernels.always(...)``.  With ``f_0`` the part of a kernel of weight
    tau the objective is ``1/2 Omega(others)^2 + 1/2 |f_0|^2 / tau``, and the dual pays ``tau/2 beta'K_0 beta``
    (notation (20)).

    Parameters
    ----------
    norm : Norm
        Of the kernels whose weights are learnt, in the order of the bank.
    given : mapping from int to float
        Weights, > 0, by the number of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.norms import L1
    >>> norm = FixedParts(L1(), {0: 5.0})
    >>> norm.weights(np.array([9.0, 1.0, 4.0]))
    array([5., 0., 1.])
    """

    def __init__(self, norm: Norm, given: Mapping[int, float]) -> None:
        self.norm = norm
        self.given = given

    @property
    def label(self) -> str:
        return f"{self.norm.label} + {len(self.given)} fixed"

    @property
    def weights_rule(self) -> str:
        return "they were given" if self.norm.fixed else self.norm.weights_rule

    def check(self, m: int) -> None:
        for j, weight in self.given.items():
            if not 0 <= j < m:
                raise ValueError(f"FixedParts gives kernel {j} a weight, but there are {m}, counted from 0")
            if not (np.isfinite(weight) and weight > 0):
                raise ValueError(f"a kernel that always counts needs a finite weight > 0, got {weight!r}")
        if len(self.given) >= m:
            raise ValueError(
                "every kernel has a fixed weight and nothing is left to learn: leave one out, or use "
                "kernelweave.norms.Fixed(weights)"
            )
        self.norm.check(m - len(self.given))

    def with_names(
        self, names: Sequence[str], views: Sequence[str] | None, held: Collection[int] = ()
    ) -> Norm:
        return FixedParts(self.norm.with_names(names, views, tuple(self.given)), self.given)

    def group_weights(self, weights: Array) -> Array:
        return self.norm.group_weights(weights[self.learnt(weights.size)])

    def kernel_groups(self, m: int) -> list[str | None]:
        groups: list[str | None] = [None] * m
        for j, group in zip(self.learnt(m), self.norm.kernel_groups(m - len(self.given)), strict=True):
            groups[j] = group
        return groups

    def for_kernels(self, m: int) -> Norm:
        return FixedParts(self.norm.for_kernels(m - len(self.given)), self.given)

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        given = {i: self.given[int(j)] for i, j in enumerate(kernels) if int(j) in self.given}
        if len(given) == len(kernels):
            return Fixed(np.array(list(given.values())))
        # the norm counts its kernels without those that are given
        own = [int(j) - sum(held < j for held in self.given) for j in kernels if int(j) not in self.given]
        norm = self.norm.restricted(np.array(own, dtype=np.intp))
        return FixedParts(norm, given) if given else norm

    def settle(self, mean_kernel_value: Callable[[], float]) -> Norm:
        return FixedParts(self.norm.settle(mean_kernel_value), self.given)

    def learnt(self, m: int) -> NDArray[np.intp]:
        return np.array([j for j in range(m) if j not in self.given], dtype=np.intp)

    def _joined(self, learnt: Array, held: Any) -> Array:
        out = np.empty(learnt.size + len(self.given))
        out[self.learnt(out.size)] = learnt
        out[list(self.given)] = held
        return out

    def _parts(self, values: Array) -> tuple[Array, Array, Array]:
        """Values of the kernels that are learnt, of the others, and the weights of those."""
        weights = np.array(list(self.given.values()), dtype=float)
        return values[..., self.learnt(values.shape[-1])], values[..., list(self.given)], weights

    def half_square(self, t: Array) -> float:
        learnt, held, weights = self._parts(t)
        return self.norm.half_square(learnt) + 0.5 * float(np.sum(held**2 / weights))

    def regulariser(self, t: Array, weights: Array) -> float:
        learnt, held, given = self._parts(t)
        own = self.norm.regulariser(learnt, weights[self.learnt(t.size)])
        return own + 0.5 * float(np.sum(held**2 / given))

    def block_gradient(self, t: Array) -> Array:
        learnt, held, weights = self._parts(t)
        return self._joined(self.norm.block_gradient(learnt), held / weights)

    def penalty(self, weights: Array) -> float:
        return self.norm.penalty(weights[self.learnt(weights.size)])

    def conjugate(self, s: Array) -> float:
        learnt, held, weights = self._parts(s)
        return self.norm.conjugate(learnt) + 0.5 * float(weights @ held)

    def weights(self, s: Array) -> Array:
        learnt, _, weights = self._parts(s)
        return self._joined(self.norm.weights(learnt), weights)

    def weights_of_blocks(self, t: Array) -> Array:
        learnt, _, weights = self._parts(t)
        return self._joined(self.norm.weights_of_blocks(learnt), weights)

    def lowest_of_cuts(
        self, gains: Array, quads: Array, whole: bool = True, gap: float = 1e-6, seconds: float = np.inf
    ) -> Lowest:
        learnt, held, weights = self._parts(quads)
        bound, best = self.norm.lowest_of_cuts(gains - 0.5 * held @ weights, learnt, whole, gap, seconds)
        return Lowest(bound, None if best is None else self._joined(best, weights))

    def start(self, m: int) -> Array:
        return self._joined(self.norm.start(m - len(self.given)), list(self.given.values()))

    def scaled(self, weights: Array) -> Array:
        learnt, _, given = self._parts(weights)
        whole = learnt if np.any(learnt > 0) else self.norm.start(learnt.size)
        return self._joined(self.norm.scaled(whole), given)

    def project(self, weights: Array) -> Array:
        learnt, _, given = self._parts(weights)
        return self._joined(self.norm.project(learnt), given)

    def prox(self, t: Array, mu: float) -> Array:
        learnt, held, weights = self._parts(t)
        return self._joined(self.norm.prox(learnt, mu), held * weights / (weights + mu))


for _name in (
    "convex_in_weights", "fixed", "analytic", "update_rate", "smooth_conjugate", "smooth_on_blocks", "has_prox",
    "has_projection", "combinatorial", "strength", "allowed_weights", "group_names", "learnt_norm",
):  # fmt: skip
    # what it can do is what its norm can
    setattr(FixedParts, _name, property(attrgetter(f"norm.{_name}")))
