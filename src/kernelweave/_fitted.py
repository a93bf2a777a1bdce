"""What a fit leaves behind: one dataclass that every estimator writes, and everything that asks about a fit reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._typing import Array
from .banks import Decision, KernelFunction, support
from .kernels import Kernel, view_of
from .losses import Loss
from .norms import Norm
from .problems import Certificate, joined
from .solvers import TRACE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from .solvers.online import Stream


@dataclass(frozen=True)
class FittedModel:
    """What a fit leaves behind; ``write`` makes attributes of it, under the names that users read, ``of`` reads them.

    A field ``x`` is the attribute ``x_``, which ``MKLClassifier`` documents, or ``_x`` for what is no result
    (``PRIVATE``).  What a fit does not have is None, and no attribute.
    """

    weights: Array
    dual_coef: Array
    intercept: float | Array
    kernel_names: NDArray[np.object_]
    #: under what weights were fitted, which of them were learnt, and the rule of those that were not
    norm_name: str
    learnt_kernels: NDArray[np.bool_]
    weights_rule: str
    #: what to know before any figure
    findings: tuple[str, ...] = ()
    #: settled kernels; similarities have a matrix for each
    kernels: list[Kernel] | Any = None
    #: under a norm with groups: their weights, and the group of every kernel; see ``weights_of_views``
    view_weights: dict[str, float | Array] | None = None
    kernel_groups: NDArray[np.object_] | None = None
    lam: float | Array | None = None
    C: float | Array | None = None
    loss: Loss | None = None
    #: between ordered classes, on the scale of the function
    thresholds: Array | None = None
    certificate: Certificate | None = None
    certificates: list[Certificate] | None = None
    status: str | None = None
    solver: str | None = None
    n_iter: int | None = None
    n_passes: float | None = None
    trace: pd.DataFrame | None = None
    #: how the kernels were kept, what solved the problems, and why
    decision: Decision | None = None
    #: from decision values to probabilities, where held-out samples have said how
    calibration: Any = None
    #: of the training samples, each by the others, where that was asked for
    loo_predictions: Array | None = None
    bank_bytes: int | None = None
    cluster: Any = None
    view_predictability: Any = None
    missing_patterns: Any = None
    #: what predicts, of which kind its samples are, and what its standard deviations and its next batch need
    function: KernelFunction | None = None
    kind: Any = None
    spread: Any = None
    #: of survival: cumulative hazards at a decision value of zero
    baseline: Any = None
    stream: Stream | None = None

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Read a fitted estimator; raise where it is not fitted."""
        check_is_fitted(estimator, "dual_coef_")
        known = vars(estimator)
        return cls(**{name: known.get(attribute) for name, attribute in ATTRIBUTES.items()})

    def write(self, estimator: BaseEstimator) -> None:
        """Make attributes of an estimator; those of an earlier fit that this one does not have are forgotten."""
        estimator.support_ = support(self.dual_coef.reshape(len(self.dual_coef), -1))
        known = vars(estimator)
        for name, attribute in ATTRIBUTES.items():
            known.pop(attribute, None)
            if (value := getattr(self, name)) is not None:
                known[attribute] = value

    @property
    def views(self) -> list[str]:
        """View of every kernel; matrices that were given are views of their own."""
        kernels = self.kernels if isinstance(self.kernels, list) else []
        views = [view_of(kernel) for kernel in kernels if isinstance(kernel, Kernel)]
        return views or [str(name) for name in self.kernel_names]

    @property
    def weights_of_views(self) -> dict[str, float | Array] | None:
        """Sums of the weights of every view, arrays where problems have their own; None where there is one view."""
        places: dict[str, int] = {}
        of_kernel = [places.setdefault(view, len(places)) for view in self.views]
        sums = np.stack([np.bincount(of_kernel, row) for row in np.atleast_2d(self.weights)], axis=1)
        each = sums if self.weights.ndim == 2 else sums[:, 0].tolist()
        return dict(zip(places, each, strict=True)) if len(places) > 1 else None


PRIVATE = ("function", "kind", "spread", "stream", "baseline")
#: fields and the attributes that they are
ATTRIBUTES = {
    one.name: f"_{one.name}" if one.name in PRIVATE else f"{one.name}_" for one in fields(FittedModel)
}


def set_optional(estimator: BaseEstimator, name: str, value: object) -> None:
    """Set an attribute that not every fit has; an earlier fit's is forgotten."""
    vars(estimator).pop(name, None)
    if value is not None:
        vars(estimator)[name] = value


def side_by_side(solved: Sequence[Any], labels: Sequence[object]) -> dict[str, Any]:
    """Return what a model has of the problems that were solved for it: of one its numbers, of several a row each.

    ``solved`` have ``weights``, ``beta``, ``certificate``, ``status``, ``n_iter`` and ``trace``, whatever solved them.
    """
    import pandas as pd

    first, certificates, tables = solved[0], [one.certificate for one in solved], []
    weights, dual_coef, certificate = first.weights, first.beta, first.certificate
    if len(solved) > 1:  # objectives of independent problems add up, and so do their bounds
        weights = np.stack([one.weights for one in solved])
        dual_coef = np.stack([one.beta for one in solved], axis=1)
        certificate = joined(certificates)
    for one, label in zip(solved, labels, strict=True):
        rows = np.array(one.trace, dtype=float).reshape(-1, len(TRACE_COLUMNS))
        table = pd.DataFrame(rows, columns=list(TRACE_COLUMNS))
        tables.append(table.astype({"iteration": int, "active_kernels": int}))
        if len(solved) > 1:
            tables[-1].insert(0, "problem", label)
    return {
        "weights": weights,
        "dual_coef": dual_coef,
        "intercept": certificate.intercept,
        "certificate": certificate,
        "certificates": certificates,
        "status": next((one.status for one in solved if one.status != "converged"), "converged"),
        "n_iter": max(one.n_iter for one in solved),
        "trace": tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True),
    }


def origin_of_weights(norms: Iterable[Norm], m: int, rule: str = "") -> dict[str, Any]:
    """Return under what norms m weights were fitted, which were learnt, and where none was the ``rule`` they follow."""
    norms = list(norms)
    learnt = np.zeros(m, dtype=bool)
    for norm in norms:
        if norm.allowed_weights:
            learnt[norm.learnt(m)] = True
    if learnt.any():
        rule = ""
    elif not rule:
        rule = "; ".join(dict.fromkeys(norm.weights_rule for norm in norms if norm.weights_rule))
    label = ", ".join(dict.fromkeys(norm.label for norm in norms))
    return {"norm_name": label, "learnt_kernels": learnt, "weights_rule": rule}
