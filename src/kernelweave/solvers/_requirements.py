"""What a solver may need of a loss and a norm: the test, and how to say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import losses, norms
from ..losses import Loss
from ..norms import Norm
from ._derivatives import has_block_steps, has_bounded_steps, has_simple_derivative

__all__ = ["REQUIREMENTS", "Requirement"]


class Requirement(NamedTuple):
    """A property of the loss or of the norm; who has it is asked of the registry, not written down."""

    of: str  # "loss" or "norm"
    about: str
    test: Callable[[Any], bool]
    also: str = ""  # what has the property and no name

    def met(self, loss: Loss, norm: Norm) -> bool:
        """Return whether the combination has the property."""
        return self.test(loss if self.of == "loss" else norm)

    def __str__(self) -> str:
        """Say what is needed, with the names that have it: ``a smooth loss (logistic, squared)``."""
        registry: Any = losses.registry if self.of == "loss" else norms.registry
        names = [name for name in registry if self.test(registry[name]())]
        others = [self.also] if self.also else []
        if not self.about:
            return " or ".join([f"{self.of}={name!r}" for name in names] + others)
        return f"{self.about} ({', '.join(names + others)})"


def _leaves_samples_out(loss: Loss) -> bool:
    """Whether zero is a corner of the dual, sample by sample: an end of its bounds, or a kink."""
    if loss.joint:
        return loss.smoothness is None
    quadratic = loss.quadratic_dual(np.ones(1))
    if quadratic is None or type(loss).dual_budget is not Loss.dual_budget:
        return False
    return quadratic.kink > 0.0 or bool(quadratic.lower[0] == 0.0)


REQUIREMENTS = {
    "simplex": Requirement("norm", "", lambda norm: norm.simplex),
    "convex weights": Requirement(
        "norm", "a norm that is convex in the weights", lambda norm: norm.convex_in_weights
    ),
    "projection": Requirement(
        "norm",
        "a norm whose weights can be projected",
        lambda norm: norm.convex_in_weights and norm.has_projection,
    ),
    "analytic weights": Requirement("norm", "a norm with closed-form weights", lambda norm: norm.analytic),
    "fixed weights": Requirement("norm", "", lambda norm: norm.fixed, "kernelweave.norms.Fixed(weights)"),
    "quadratic dual": Requirement(
        "loss", "a loss whose dual is quadratic without a kink", lambda loss: loss.has_quadratic_dual
    ),
    "smooth dual": Requirement(
        "norm",
        "a norm whose dual is smooth, or can be made so",
        lambda norm: norm.smooth_conjugate or norm.simplex,
    ),
    "saddle form": Requirement("loss", "a loss whose dual is linear", lambda loss: loss.has_saddle_form),
    "prox": Requirement(
        "norm",
        "a norm with a proximal operator",
        lambda norm: norm.has_prox and (norm.convex_in_weights or norm.fixed),
    ),
    "smooth loss": Requirement("loss", "a smooth loss", lambda loss: loss.smoothness is not None),
    "simple derivative": Requirement(
        "loss", "a smooth loss whose derivative is compiled", has_simple_derivative
    ),
    "block loss": Requirement(
        "loss", "a smooth loss whose derivative is compiled, or a softmax", has_block_steps
    ),
    "block exponent": Requirement(
        "norm",
        "a (2, r) block norm with 1 <= r <= 2",
        lambda norm: norm.r is not None and 1.0 <= norm.r <= 2.0 and norm.l1_term is None,
        "a number p >= 1",
    ),
    "block step": Requirement(
        "norm",
        "a norm with an exact step on one block",
        lambda norm: norm.has_block_step,
        "a number p >= 1, kernelweave.norms.Grouped(outer, inner) with outer > 1",
    ),
    "joint loss": Requirement(
        "loss",
        "a loss with corners that judges several classes together",
        lambda loss: loss.joint and loss.smoothness is None,
    ),
    "stepwise loss": Requirement("loss", "a loss with a simple, bounded gradient", has_bounded_steps),
    "block norm": Requirement(
        "norm",
        "a (2, r) block norm with r > 1",
        lambda norm: norm.smooth_on_blocks and norm.r is not None and 1.0 < norm.r <= 2.0,
        "kernelweave.norms.Block(r), a number p > 1",
    ),
    "elastic norm": Requirement(
        "norm",
        "a norm with an l1 term",
        lambda norm: norm.l1_term is not None,
        "kernelweave.norms.Elastic(alpha, r)",
    ),
    "choice of subsets": Requirement("norm", "", lambda norm: norm.combinatorial),
    "sparse dual": Requirement(
        "loss", "a loss that leaves samples without coefficients", _leaves_samples_out
    ),
    "convex or fixed weights": Requirement(
        "norm",
        "a norm that is convex in the weights, or fixed ones",
        lambda norm: norm.fixed or norm.convex_in_weights,
    ),
    "smooth norm": Requirement("norm", "a norm with a gradient", lambda norm: norm.smooth_on_blocks),
}
