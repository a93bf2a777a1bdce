"""Decisions of a fit before it looks at samples, the norm as the kernels make it, and the convex problems to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._typing import Array
from ..kernels import view_of
from ..norms import FixedParts, Norm

if TYPE_CHECKING:
    from ._inputs import Training
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import clone

from .._components import check_switch
from .._numerics.resources import thread_count
from ..banks import Bank, check_missing, check_storage
from ..banks.devices import DTYPES, device_of
from ..banks.memory import parse_bytes
from ..banks.normalise import check_normalise
from ..losses import Loss
from ..losses import registry as losses
from ..norms import make_norm
from ..solvers import (
    ON_SUMS,
    Solver,
    Stop,
    check_place,
    choose_solver,
    fitting_solvers,
    make_solver,
    registry,
)
from ._parameters import Bytes, Device, FileName, NormLike, RandomSeed

if TYPE_CHECKING:
    from ._base import BaseMKL
from collections.abc import Iterator, Mapping

from .._estimating import TimeShares, class_columns
from ..problems import MKLProblem, Point
from ..solvers import Solution, follow_path
from ._parameters import Codes, Label

# ------------------------------------------------------------------------------------------------------------
# The norm as the kernels of a fit make it: groups by name or view, and kernels whose weight is given.


def norm_of_kernels(norm: Norm, training: Training) -> Norm:
    """Return a norm that knows the names and views of the kernels, and leaves out those that always count."""
    kernels = training.kernels or []
    given = {j: float(kernel.always) for j, kernel in enumerate(kernels) if kernel.always is not None}
    views = [view_of(kernel) for kernel in kernels] or None
    bound = (FixedParts(norm, given) if given else norm).with_names(training.names, views)
    bound.check(len(training.names))
    return bound


def plan_for_kernels(plan: Plan, training: Training) -> Plan:
    """Return the plan with its norm bound to the kernels, checked to fit the solver."""
    norm = norm_of_kernels(plan.norm, training)
    return plan if norm is plan.norm else plan.with_norm(norm)


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

    ``mixing`` says whether the solver works on the mixed kernel, and ``features_suffice`` whether all that the fit
    needs are explicit features, of kernels that have them; ``blocks_suffice`` that a solver that is still to be chosen
    can work on blocks of them, where the samples are many; ``subsets_suffice`` that it can work on the mixed kernel of
    some of the samples, where that of all does not fit.  ``missing`` says what becomes of samples that lack a view.
    """

    normalize: str | None
    center: bool
    storage: str
    dtype: DTypeLike
    memory_budget: Bytes
    threads: int = 1
    mixing: bool = True
    features_suffice: bool = False
    missing: str = "error"
    blocks_suffice: bool = False
    subsets_suffice: bool = False

    @classmethod
    def checked(
        cls,
        normalize: str | None,
        center: bool,
        storage: str,
        dtype: DTypeLike,
        memory_budget: Bytes,
        n_jobs: int | None = None,
        device: Device = None,
        missing: str = "error",
    ) -> BankPlan:
        """Return the plan, or raise where an option is not one, before anything is computed."""
        check_switch("center", center)
        if device is not None:
            device_of(device)
        check_storage(storage, "host" if device is None else "device")
        if device is None and dtype_name(dtype) not in ("float64", "float32"):
            raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
        if dtype_name(dtype) not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)} with a device, got {dtype!r}")
        parse_bytes(memory_budget)
        if check_missing(missing) != "error":
            _check_completion(missing, storage, dtype, device)
        return cls(
            check_normalise(normalize),
            bool(center),
            storage,
            dtype,
            memory_budget,
            thread_count(n_jobs),
            missing=missing,
        )

    def served_by(self, solver: Solver | None, loss: Loss, norm: Norm) -> BankPlan:
        """Return the plan of a bank for a solver; one that is left open works on sums where features suffice."""
        if solver is not None:
            return replace(self, mixing=solver.mixes, features_suffice=not solver.mixes)
        return replace(
            self,
            features_suffice=any(registry[name].serves(loss, norm) for name in ON_SUMS),
            blocks_suffice=registry["block_descent"].serves(loss, norm),
            subsets_suffice=registry["working_set"].serves(loss, norm),
        )


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
        if estimator.max_iter is not None and not (
            isinstance(estimator.max_iter, Integral) and estimator.max_iter >= 1
        ):
            raise ValueError(f"max_iter must be a whole number >= 1 or None, got {estimator.max_iter!r}")
        if estimator.max_seconds is not None:
            check_positive("max_seconds", estimator.max_seconds)
        check_switch("fit_intercept", estimator.fit_intercept)
        check_switch("warm_start", estimator.warm_start)
        if estimator.checkpoint is not None:
            check_place(estimator.checkpoint)
        made, task = make_norm(estimator.norm if norm is None else norm), estimator._task
        if task not in loss.tasks:
            suited = ", ".join(name for name in losses if task in losses[name].tasks)
            raise ValueError(f"loss {loss!r} is not for {task}; losses that are: {suited}")
        seed = seed_of(estimator.random_state)
        solver = _solver(estimator.solver, loss, made, bool(estimator.fit_intercept))
        if isinstance(estimator.solver, str | type):
            solver = _seeded(solver, seed)
        return cls(
            loss,
            made,
            solver,
            float(C),
            Stop(float(estimator.tol), estimator.max_iter, estimator.max_seconds),
            bool(estimator.fit_intercept),
            estimator._bank_plan().served_by(solver, loss, made),
            estimator.callback,
            estimator.verbose,
            estimator.checkpoint,
            seed,
        )

    def with_norm(self, norm: Norm) -> Plan:
        """Return the same plan with another norm, checked to fit the loss and the solver."""
        solver = "auto" if self.solver is None else self.solver
        return replace(self, norm=norm, solver=_solver(solver, self.loss, norm, self.fit_intercept))

    def solver_for(self, loss: Loss, norm: Norm, bank: Bank) -> Solver:
        """Return the solver of one problem: the one that was named, or what ``auto`` stands for on this bank.

        Weights that come from a rule (noise methods) need no solver for learnt ones.
        """
        if self.solver is not None and self.solver.serves(loss, norm):
            return self.solver
        chosen = _seeded(choose_solver(loss, norm, bank), self.seed)
        assert chosen is not None
        return chosen

    def checkpoint_of(self, problem: int, problems: int) -> FileName | None:
        """Return the file of one problem: numbered where there are several."""
        from pathlib import Path

        if self.checkpoint is None or problems == 1:
            return self.checkpoint
        path = Path(self.checkpoint)
        return path.with_name(f"{path.stem}-{problem}{path.suffix}")


def _check_completion(missing: str, storage: str, dtype: DTypeLike, device: Device) -> None:
    """Raise where completed kernels cannot be kept as asked: they are matrices in memory, in double precision."""
    if device is not None:
        raise ValueError(f"missing={missing!r} completes kernels in memory: use device=None")
    if storage not in ("auto", "dense"):
        raise ValueError(f"missing={missing!r} keeps completed matrices: use storage='auto', not {storage!r}")
    if dtype_name(dtype) != "float64":
        raise ValueError(
            f"missing={missing!r} keeps completed kernels in double precision: use dtype='float64'"
        )


def _solver(solver: object, loss: Loss, norm: Norm, fit_intercept: bool) -> Solver | None:
    """Return a solver that fits, None for ``auto``; raise where none does."""
    if not (isinstance(solver, str) and solver == "auto"):
        return make_solver(solver, loss, norm, fit_intercept)
    if not fitting_solvers(loss, norm, fit_intercept):
        without = ", ".join(repr(name) for name in fitting_solvers(loss, norm))
        way = f"with fit_intercept=False these do: {without}" if without else "choose another loss or norm"
        raise ValueError(f"no solver fits loss={loss!r} with norm={norm.label!r} and an intercept: {way}")
    return None


def seed_of(random_state: RandomSeed) -> int | None:
    """Return the seed that a ``random_state`` stands for; None where it is left open."""
    if random_state is None:
        return None
    if isinstance(random_state, Integral | int) and not isinstance(random_state, bool):
        seed = int(random_state)
        if 0 <= seed < 2**32:
            return seed
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state must be None, a whole number in [0, 2**32) or a RandomState, got {random_state!r}"
    )


def _seeded(solver: Solver | None, seed: int | None) -> Solver | None:
    """Return a solver that draws with this seed, where it draws at all."""
    if solver is None or seed is None or "random_state" not in solver.get_params(deep=False):
        return solver
    return clone(solver).set_params(random_state=seed)


def dtype_name(dtype: DTypeLike) -> str:
    """Return a type by its name, nothing where it is none; ``bfloat16`` is one that NumPy has not."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    try:
        return str(np.dtype(dtype))
    except TypeError:
        return ""


def check_positive(name: str, value: object) -> None:
    """Raise where a parameter is not a finite number above zero."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and value > 0):  # type: ignore[operator, call-overload]
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


# ------------------------------------------------------------------------------------------------------------
# The convex problems that a fit consists of.


@dataclass(frozen=True)
class Task:
    """One convex problem, before it meets a bank.

    Attributes
    ----------
    y : array of shape (n,) or (n, k)
        Targets.
    weight : array of shape (n,)
        Factors of C by sample.
    label : object
        What the problem is called in messages and tables.
    loss, norm, C :
        What is minimised.
    start : Point or None
        Where to begin.
    of : str
        What the label is the name of.
    given : tuple of str
        What was chosen before the problem was posed, in words: its certificate says so.
    """

    y: Array
    weight: Array
    label: Label
    loss: Loss
    norm: Norm
    C: float
    start: Point | None = None
    of: str = "class"
    given: tuple[str, ...] = ()

    def problem(self, bank: Bank, fit_intercept: bool) -> MKLProblem:
        """Return the problem on a bank."""
        return MKLProblem(bank, self.loss, self.norm, self.y, self.C, self.weight, fit_intercept, self.given)


def class_tasks(codes: Codes, weight: Array, classes: Array, each: bool, plan: Plan) -> list[Task]:
    """Tasks of a classification: one where there are two classes or all are learnt together, else one per class."""

    def task(y: Array, label: Label) -> Task:
        return Task(y, weight, label, plan.loss, plan.norm, plan.C)

    if classes.size == 2 and not plan.loss.joint:
        return [task(np.where(codes == 1, 1.0, -1.0), classes[1])]
    columns = class_columns(codes, classes.size)
    if not each:
        return [task(columns, "all")]
    return [task(column, label) for column, label in zip(columns.T.copy(), classes, strict=True)]


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
        bank,
        task.loss,
        task.norm,
        plan.solver_for(task.loss, task.norm, bank),
        task.y,
        list(Cs),
        stops,
        sample_weight=task.weight,
        fit_intercept=plan.fit_intercept,
        callback=plan.callback,
        verbose=plan.verbose,
        known=known,
    )
