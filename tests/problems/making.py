"""Small problems, each as the library's object and as plain arrays beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import references as ref
from kernelweave.banks import build_bank
from kernelweave.norms import FixedParts
from kernelweave.problems import MKLProblem

#: label -> reference norm, of every registered norm that a conic solver knows (a test says so); the entropy's strength
#: depends on the problem and is settled there
NORMS = {
    "l1": ref.l1_norm,
    "lp-1.3": lambda: ref.lp_norm(1.3),
    "lp-2": lambda: ref.lp_norm(2.0),
    "lp-inf": ref.sum_norm,
    "uniform": ref.uniform_norm,
    "max": ref.max_norm,
    "entropy": lambda: ref.entropy_norm(1.0, smoothing=0.2),
}

#: norms with structure, for the five kernels of a case: run with fewer losses and solvers (test_structure.py)
STRUCTURED = {
    "elastic-weak": lambda: ref.elastic_norm(0.3, 2.0),
    "elastic-strong": lambda: ref.elastic_norm(1.5, 2.0),
    "elastic-ufo": lambda: ref.elastic_norm(0.5, 1.3),
    "elastic_net-0.2": lambda: ref.elastic_net_norm(0.2),
    "elastic_net-0.5": lambda: ref.elastic_net_norm(0.5),
    "elastic_net-0.9": lambda: ref.elastic_net_norm(0.9),
    "elastic_blocks-0.3": lambda: ref.elastic_blocks_norm(0.3),
    "grouped-1-2": lambda: ref.grouped_norm(1.0, 2.0, "aabbc"),
    "grouped-2-1": lambda: ref.grouped_norm(2.0, 1.0, "aabbc"),
    "grouped-1-4/3": lambda: ref.grouped_norm(1.0, 4 / 3, "aabbc"),
    "grouped-1.5-3": lambda: ref.grouped_norm(1.5, 3.0, "aabbc"),
    "l1-fixed": lambda: ref.with_fixed_part(ref.l1_norm(), 0.4),
    "grouped-fixed": lambda: ref.with_fixed_part(ref.grouped_norm(1.0, 2.0, "aabb"), 20.0),
}


#: optima by the conic solver, which several tests ask for of the same problem
_OPTIMA: dict[tuple[object, ...], ref.Conic] = {}


@dataclass(frozen=True)
class Case:
    """A problem twice."""

    problem: MKLProblem
    Ks: np.ndarray
    y: np.ndarray
    c: np.ndarray
    loss: ref.RefLoss
    norm: ref.RefNorm
    fit_intercept: bool

    def primal(self, beta, d) -> float:
        return ref.primal_value(self.Ks, self.y, self.c, beta, d, self.loss, self.norm, self.fit_intercept)

    def dual(self, beta) -> float:
        return ref.dual_value(self.Ks, self.y, self.c, beta, self.loss, self.norm)

    def feasible(self, beta) -> bool:
        return ref.in_dual_set(self.y, self.c, beta, self.loss, self.fit_intercept)

    def conic(self) -> ref.Conic:
        arrays = (self.Ks.tobytes(), self.y.tobytes(), self.c.tobytes(), self.y.shape)
        key = (*arrays, self.loss.label, self.norm.label, self.norm.parameter, self.fit_intercept)
        if key not in _OPTIMA:
            _OPTIMA[key] = ref.conic_optimum(
                self.Ks, self.y, self.c, self.loss, self.norm, self.fit_intercept
            )
        return _OPTIMA[key]


def make_case(
    loss: ref.RefLoss,
    norm: str,
    fit_intercept: bool,
    *,
    n: int = 24,
    m: int = 5,
    C: float = 3.0,
    seed: int = 0,
    columns: int | None = None,
    sample_weight: np.ndarray | None = None,
) -> Case:
    Ks = ref.kernel_stack(n, m, seed)
    Ks.flags.writeable = False
    y = ref.targets(n, loss.regression, seed, columns)
    weight = np.ones(y.shape) if sample_weight is None else sample_weight
    c = C * (weight if weight.ndim == y.ndim else np.repeat(weight[:, None], y.shape[1], axis=1))
    bank = build_bank(None, Ks, normalize=None)
    reference = (NORMS | STRUCTURED)[norm]()
    made = reference.make()
    if "fixed" in norm:
        made = FixedParts(made, {m - 1: reference.parameter})
    problem = MKLProblem(bank, loss.make(), made, y, C, sample_weight, fit_intercept)
    if (
        norm == "entropy"
    ):  # the reference gets the strength that the problem settled on, checked in a test of its own
        reference = ref.entropy_norm(problem.norm.lam, smoothing=0.2)
    return Case(problem, Ks, y, c, loss, reference, fit_intercept)
