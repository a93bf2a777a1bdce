"""The contract of a norm: how the block norms ``t_j = |f_j|`` are charged, and which weights that means.

Every norm here can be read in two ways.  On the blocks: the regulariser is ``Omega(t)^2 / 2``.  On the weights:
``min over d of 1/2 sum_j t_j^2 / d_j + penalty(d)`` over a convex set of weights (the maximum norm is the exception: a
maximum over d).  With ``s_j = beta' K_j beta`` the dual pays ``conjugate(s) = max over d of d's/2 - penalty(d)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._components import Component, Registry
from .._numerics.quadratic import Boundary
from .._typing import Array

registry: Registry[Norm] = Registry("norm", "kernelweave.norms")


def p_norm(values: Array, p: float) -> float:
    """``|v|_p`` of ``v >= 0``; powers are of shares of the largest entry, so that none overflows."""
    top = float(np.max(values, initial=0.0))
    return top * float(np.sum((values / top) ** p)) ** (1.0 / p) if top > 0 else 0.0


class Lowest(NamedTuple):
    """A lower bound of a model of J over the weights, and weights that attain it; None where there was no time."""

    bound: float
    weights: Array | None


class Norm(Component):
    """A norm on the block norms, seen from the weights."""

    components = registry
    #: weights come from minimising a convex function of them (l1, lp, entropy)
    convex_in_weights: ClassVar[bool] = True
    #: nothing is learnt: the weights are given
    fixed: ClassVar[bool] = False
    #: the best weights for given blocks have a closed form in which no block is lost, so alternation converges
    analytic: ClassVar[bool] = False
    #: share of the gap that a closed-form update of the weights leaves near the optimum, about; 1 where there is none
    update_rate: float = 1.0
    #: the weights live on the simplex and nothing else is charged
    simplex: ClassVar[bool] = False
    #: the weights are described by ``boundary``, nothing else is charged, and the maximiser in the conjugate may
    #: be one of many: models of J are minimised on the set itself
    constrained: ClassVar[bool] = False
    #: the weights are a choice among subsets: only many cuts together prove a point best (``lowest_of_cuts``)
    combinatorial: ClassVar[bool] = False
    #: ``conjugate`` has a Lipschitz gradient in the coefficients, so gradient methods on the dual apply
    smooth_conjugate: ClassVar[bool] = False
    #: ``half_square`` has a gradient away from zero blocks and a finite one there
    smooth_on_blocks: ClassVar[bool] = False
    #: exponent of the norm on the blocks, ``half_square(t) = |t|_r^2 / 2`` but for an l1 term; None where it has none
    r: float | None = None
    #: factor of the sum of the block norms, where that is charged beside the square
    l1_term: float | None = None
    #: whether ``prox``, ``project`` and ``boundary`` are defined
    has_prox: ClassVar[bool] = False
    has_projection: ClassVar[bool] = False
    has_boundary: ClassVar[bool] = False
    #: number that was settled on the data and that the objective cannot be recomputed without; mostly none
    strength: float | None = None
    #: names of groups of kernels, where the norm has them
    group_names: tuple[str, ...] = ()

    #: texts of ``label``, ``allowed_weights`` and ``weights_rule``; ``{0.mix}`` is the norm's parameter mix
    label_text: ClassVar[str] = "{0.registered_as}"
    allowed_text: ClassVar[str] = "weights that the norm {0.label} allows"
    rule_text: ClassVar[str] = "they were given"

    @property
    def label(self) -> str:
        """Short name for tables and messages."""
        return self.label_text.format(self)

    @property
    def allowed_weights(self) -> str:
        """Describe the weights that the lower bound holds for, as it is read behind "no".

        Empty where there is no minimum over weights: they are given (``fixed``), or follow from the function.
        """
        return self.allowed_text.format(self)

    @property
    def weights_rule(self) -> str:
        """Say where the weights come from if they are not minimised over (no ``allowed_weights``)."""
        return "" if self.allowed_weights else self.rule_text

    @property
    def learnt_norm(self) -> Norm:
        """Norm of the weights that are learnt: itself, but for a norm that holds some weights fixed."""
        return self

    def learnt(self, m: int) -> NDArray[np.intp]:
        """Numbers of the kernels whose weights are learnt."""
        return np.arange(m)

    def check(self, m: int) -> None:
        """Raise ValueError where a parameter is out of range for m kernels."""

    def group_weights(self, weights: Array) -> Array:
        """Weights of the groups, in the order of ``group_names``."""
        raise NotImplementedError

    def kernel_groups(self, m: int) -> list[str | None]:
        """Name of every kernel's group; None for a kernel in no group."""
        return [None] * m

    def with_names(
        self, names: Sequence[str], views: Sequence[str] | None, held: Collection[int] = ()
    ) -> Norm:
        """Return a norm that knows what the kernels are called, and the view of each; None for bare matrices.

        The kernels in ``held`` are not its own: their weights are given.
        """
        return self

    def for_kernels(self, m: int) -> Norm:
        """Return a norm whose parameters that depend on the number of kernels are fixed."""
        return self

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        """Return the norm of some kernels where the others have no weight."""
        return self

    def settle(self, mean_kernel_value: Callable[[], float]) -> Norm:
        """Return a norm whose data-dependent parameters are fixed; the value is computed only if asked for."""
        return self

    def boundary(self, place: Array) -> Boundary:
        """Convex functions that are <= 0 on the set alone, at positive weights and what ``inside`` puts behind them."""
        raise NotImplementedError

    def inside(self, weights: Array) -> Array:
        """A point strictly inside near positive weights; numbers that help to describe the set follow the weights."""
        return 0.9 * self.scaled(weights)

    def lowest_of_cuts(
        self, gains: Array, quads: Array, whole: bool = True, gap: float = 1e-6, seconds: float = np.inf
    ) -> Lowest:
        """Minimise ``max_i gains_i - d'quads_i / 2`` over the weights of a combinatorial norm.

        Without ``whole`` over their convex hull; a bound that is left at ``gap`` or after ``seconds`` is valid, too.
        """
        raise NotImplementedError

    def half_square(self, t: Array) -> float:
        """``Omega(t)^2 / 2`` of block norms ``t >= 0``."""
        raise NotImplementedError

    def regulariser(self, t: Array, weights: Array) -> float:
        """Return ``half_square(t)``, or a bound from above that the weights at hand make cheaper."""
        return self.half_square(t)

    def block_gradient(self, t: Array) -> Array:
        """Gradient of ``half_square`` in t."""
        raise NotImplementedError

    @property
    def has_block_step(self) -> bool:
        """Whether a block has a best length by itself: none can be zero together that leave zero together alone."""
        return self.l1_term is not None or (self.r is not None and 1.0 <= self.r <= 2.0)

    def penalty(self, weights: Array) -> float:
        """Return the cost of the weights themselves."""
        return 0.0

    def conjugate(self, s: Array) -> float:
        """``max over d of d's/2 - penalty(d)``: what the dual pays; ``weights`` have to attain it exactly."""
        best = self.weights(s)
        return 0.5 * float(best @ s) - self.penalty(best)

    def weights(self, s: Array) -> Array:
        """Weights that attain the conjugate (for l1 one vertex of many)."""
        raise NotImplementedError

    def weights_of_blocks(self, t: Array) -> Array:
        """Weights that attain ``half_square(t)``."""
        raise NotImplementedError

    def start(self, m: int) -> Array:
        """Equal weights in the set."""
        return self.scaled(np.ones(m))

    def scaled(self, weights: Array) -> Array:
        """Weights in the set with the same proportions, for a start that was found under another norm."""
        return weights.copy()

    def project(self, weights: Array) -> Array:
        """Nearest weights in the set."""
        raise NotImplementedError

    def prox(self, t: Array, mu: float) -> Array:
        """``argmin over x of |x - t|^2 / 2 + mu half_square(x)`` for ``t >= 0``."""
        raise NotImplementedError
