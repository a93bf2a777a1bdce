"""Decisions of a fit before it reads samples, the norm as the kernels make it, and the convex problems to solve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import clone

from .._components import check_positive, check_switch, check_whole
from .._estimating import TimeShares, class_columns
from .._numerics.resources import thread_count
from .._typing import Array
from ..banks import Bank, Decision, check_missing, check_storage
from ..banks.decide import Abilities, Asked, decide
from ..banks.devices import DTYPES, device_of
from ..banks.facts import facts_of_bank
from ..banks.memory import parse_bytes
from ..banks.normalise import check_normalise
from ..kernels import view_of
from ..losses import Loss
from ..losses import registry as losses
from ..norms import FixedParts, Norm, make_norm
from ..problems import MKLProblem, Point
from ..solvers import (
    Solution,
    Solver,
    Stop,
    abilities,
    check_place,
    fitting_solvers,
    follow_path,
    make_solver,
    registry,
)
from ._parameters import Bytes, Codes, FileName, Label, NormLike, RandomSeed

if TYPE_CHECKING:
    from ._base import BaseMKL
    from ._inputs import Training


def norm_of_kernels(norm: Norm, training: Training) -> Norm:
    """Return a norm that knows the names and views of the kernels, and leaves out those that always count."""
    kernels = training.kernels or []
    given = {j: float(kernel.always) for j, kernel in enumerate(kernels) if kernel.always is not None}
    views = [view_of(kernel) for kernel in kernels] or None
    bound = (FixedParts(norm, given) if given else norm).with_names(training.names, views)
    bound.check(len(training.names))
    return bound


def refuse_fixed_parts(norm: Norm, m: int, who: str) -> None:
    """Raise where weights come from a rule that would overrule those that are given."""
    if norm.learnt(m).size < m:
        raise ValueError(
            f"{who} takes the weights of all kernels from a rule, and kernels.always(...) gives some: use "
            "MKLClassifier or MKLRegressor (norm='uniform' learns nothing either)"
        )


@dataclass(frozen=True)
class BankPlan:
    """How the bank is to be built, wherever the samples say that it goes.

    ``solver`` is the name of the one that is asked for, None where it is chosen; ``mixes`` whether it works on the
    mixed kernel, ``can`` what loss and norm let solvers do.  ``missing`` says what becomes of samples that lack a view.
    """

    normalize: str | None
    center: bool
    storage: str
    dtype: DTypeLike
    memory_budget: Bytes
    threads: int = 1
    missing: str = "error"
    solver: str | None = None
    mixes: bool = True
    can: Abilities = field(default_factory=Abilities)

    def asked(self) -> Asked:
        """Return what is asked for, as the rules take it."""
        return Asked(self.solver, self.mixes, self.storage, dtype_name(self.dtype))

    @classmethod
    def of(cls, estimator: BaseMKL) -> BankPlan:
        """Read and check the parameters of an estimator, before anything is computed."""
        storage, dtype = estimator.storage, estimator.dtype
        device, missing = estimator.device, estimator.missing
        check_switch("center", estimator.center)
        if device is not None:
            device_of(device)
        check_storage(storage, "host" if device is None else "device")
        if device is None and dtype_name(dtype) not in ("float64", "float32"):
            raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
        if dtype_name(dtype) not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)} with a device, got {dtype!r}")
        parse_bytes(estimator.memory_budget)
        if missing != "error":  # completed kernels are matrices in memory, in double precision
            check_missing(missing)
            if device is not None:
                raise ValueError(f"missing={missing!r} completes kernels in memory: use device=None")
            if storage not in ("auto", "dense"):
                raise ValueError(
                    f"missing={missing!r} keeps completed matrices: use storage='auto', not {storage!r}"
                )
            if dtype_name(dtype) != "float64":
                raise ValueError(
                    f"missing={missing!r} keeps completed kernels in double precision: use dtype='float64'"
                )
        return cls(
            check_normalise(estimator.normalize), bool(estimator.center), storage, dtype, estimator.memory_budget,
            thread_count(estimator.n_jobs), missing=missing,
        )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Loss, norm, solver, when to stop, and how the bank is kept: each checked, and checked to go together.

    ``solver`` is None where it is chosen once the bank is there (``solver="auto"``).
    """

    loss: Loss
    norm: Norm
    solver: Solver | None
    C: float
    stop: Stop
    fit_intercept: bool
    bank: BankPlan
    callback: Callable[..., object] | None = None
    verbose: int = 0
    checkpoint: FileName | None = None
    #: of solvers that were not given as objects, and of folds; None leaves them as they are
    seed: int | None = None

    @classmethod
    def of(cls, estimator: BaseMKL, loss: Loss, C: float, norm: NormLike | None = None) -> Plan:
        """Read and check the parameters of an estimator; ``loss`` and ``C`` are what it minimises.

        ``norm`` takes the place of the estimator's, where that leaves it open.
        """
        check_positive("C", C)
        check_positive("tol", estimator.tol)
        check_whole("max_iter", estimator.max_iter, or_none=True)
        check_positive("max_seconds", estimator.max_seconds, or_none=True)
        check_switch("fit_intercept", estimator.fit_intercept)
        check_switch("warm_start", estimator.warm_start)
        if estimator.checkpoint is not None:
            check_place(estimator.checkpoint)
        made, task = make_norm(estimator.norm if norm is None else norm), estimator._task
        if task not in loss.tasks:
            suited = ", ".join(name for name in losses if task in losses[name].tasks)
            raise ValueError(f"loss {loss!r} is not for {task}; losses that are: {suited}")
        seed = None if estimator.random_state is None else seed_of(estimator.random_state)
        solver = _solver(estimator.solver, loss, made, bool(estimator.fit_intercept))
        if solver is not None and seed is not None and isinstance(estimator.solver, str | type):
            solver = _seeded(solver, seed)
        bank = replace(BankPlan.of(estimator), can=abilities(loss, made))
        if solver is not None:
            bank = replace(bank, solver=solver.registered_as, mixes=solver.mixes)
        return cls(
            loss, made, solver, float(C), Stop(float(estimator.tol), estimator.max_iter, estimator.max_seconds),
            bool(estimator.fit_intercept), bank, estimator.callback, estimator.verbose, estimator.checkpoint, seed,
        )  # fmt: skip

    def with_norm(self, norm: Norm) -> Plan:
        """Return the same plan with another norm, checked to fit the loss and the solver."""
        if norm is self.norm:
            return self
        solver = _solver(self.solver or "auto", self.loss, norm, self.fit_intercept)
        return replace(
            self, norm=norm, solver=solver, bank=replace(self.bank, can=abilities(self.loss, norm))
        )

    def decision_for(self, loss: Loss, norm: Norm, bank: Bank) -> Decision:
        """Return how a bank is kept and what solves one problem on it: the solver that was named, if it serves.

        Weights that come from a rule (noise methods) need no solver for learnt ones.
        """
        can, asked = abilities(loss, norm), replace(self.bank.asked(), kept=bank.decision)
        if self.solver is not None and not self.solver.serves(loss, norm):
            asked = replace(asked, solver=None)
        return decide(facts_of_bank(bank, can), asked)

    def decision_by(self, method: str, bank: Bank) -> Decision:
        """Return how a bank is kept for a method that is no solver of convex problems."""
        return decide(facts_of_bank(bank, Abilities()), Asked(method, kept=bank.decision))

    def solver_for(self, loss: Loss, norm: Norm, bank: Bank) -> Solver:
        """Return the solver of one problem on a bank."""
        if self.solver is not None and self.solver.serves(loss, norm):
            return self.solver
        chosen = registry[self.decision_for(loss, norm, bank).solver]()
        return chosen if self.seed is None else _seeded(chosen, self.seed)


def _solver(solver: object, loss: Loss, norm: Norm, fit_intercept: bool) -> Solver | None:
    """Return a solver that fits, None for ``auto``; raise where none does."""
    if not (isinstance(solver, str) and solver == "auto"):
        return make_solver(solver, loss, norm, fit_intercept)
    # newton, with an intercept or without, serves most norms: the others are asked where it does not
    if not (registry["newton"].serves(loss, norm) or fitting_solvers(loss, norm, fit_intercept)):
        without = ", ".join(repr(name) for name in fitting_solvers(loss, norm))
        way = f"with fit_intercept=False these do: {without}" if without else "choose another loss or norm"
        raise ValueError(f"no solver fits loss={loss!r} with norm={norm.label!r} and an intercept: {way}")
    return None


def seed_of(random_state: RandomSeed) -> int:
    """Return the seed that a ``random_state`` other than None stands for."""
    if isinstance(random_state, Integral | int) and not isinstance(random_state, bool):
        seed = int(random_state)
        if 0 <= seed < 2**32:
            return seed
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state must be None, a whole number in [0, 2**32) or a RandomState, got {random_state!r}"
    )


def _seeded(solver: Solver, seed: int) -> Solver:
    """Return a solver that draws with this seed, where it draws at all."""
    if "random_state" not in solver.get_params(deep=False):
        return solver
    seeded: Solver = clone(solver).set_params(random_state=seed)
    return seeded


def dtype_name(dtype: DTypeLike) -> str:
    """Return a type by its name, nothing where it is none; ``bfloat16`` is one that NumPy has not."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    try:
        return str(np.dtype(dtype))
    except TypeError:
        return ""


@dataclass(frozen=True)
class Task:
    """One convex problem, before it meets a bank: what is minimised for targets ``(n,)`` or ``(n, k)``."""

    y: Array
    #: factors of C by sample
    weight: Array
    #: what the problem is called in messages and tables, and what that is the name of (``of``)
    label: Label
    loss: Loss
    norm: Norm
    C: float
    start: Point | None = None
    of: str = "class"
    #: factors of C that are no weights of samples: exposures, by which held-out samples count too
    exposure: Array | None = None
    #: what was chosen before the problem was posed, in words: its certificate says so
    given: tuple[str, ...] = ()

    def problem(self, bank: Bank, fit_intercept: bool) -> MKLProblem:
        """Return the problem on a bank."""
        return MKLProblem(bank, self.loss, self.norm, self.y, self.C, self.factors, fit_intercept, self.given)

    @property
    def factors(self) -> Array:
        """Factors of C by sample, exposures included."""
        return self.weight if self.exposure is None else self.weight * self.exposure


def class_tasks(codes: Codes, weight: Array, classes: Array, each: bool, plan: Plan) -> list[Task]:
    """Tasks of a classification: one where there are two classes or all are learnt together, else one per class.

    Of several labels ``codes`` are a table of zeros and ones, and the tasks those of its columns.
    """
    if codes.ndim == 2:
        signs = np.where(codes > 0, 1.0, -1.0)
        columns_of = list(zip(signs.T.copy(), classes, strict=True)) if each else [(signs, "all")]
        return [Task(y, weight, label, plan.loss, plan.norm, plan.C, of="label") for y, label in columns_of]
    if plan.loss.ordered:
        return [Task(codes.astype(float), weight, "all", plan.loss, plan.norm, plan.C)]
    if classes.size == 2 and not plan.loss.joint:
        targets: list[tuple[Array, Label]] = [(np.where(codes == 1, 1.0, -1.0), classes[1])]
    else:
        columns = class_columns(codes, classes.size)
        targets = list(zip(columns.T.copy(), classes, strict=True)) if each else [(columns, "all")]
    return [Task(y, weight, label, plan.loss, plan.norm, plan.C) for y, label in targets]


def path_of(
    task: Task,
    bank: Bank,
    plan: Plan,
    Cs: Array,
    stops: TimeShares,
    known: Mapping[float, Array] | None = None,
) -> Iterator[tuple[float, MKLProblem, Solution]]:
    """Follow a task over values of C, smallest first; ``known``: weights to begin with, by C."""
    return follow_path(
        bank, task.loss, task.norm, plan.solver_for(task.loss, task.norm, bank), task.y, list(Cs), stops,
        sample_weight=task.factors, fit_intercept=plan.fit_intercept, callback=plan.callback, verbose=plan.verbose,
        known=known,
    )  # fmt: skip
