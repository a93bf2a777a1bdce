"""What the estimators share: parameters, checks, fitting, prediction."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..banks import Bank, support
from ..banks._device_decision import device_decision, prediction_device
from ..banks.bound import BoundKernels, active_kernels
from ..losses import Loss, make_loss
from ..norms import Norm, make_norm
from ..problems import MKLProblem, Point
from ..solvers import Solver, Stop, check_place, choose_solver, fitting_solvers, make_solver
from ._fitting import Fit, exact_bank, run, stack_fits, trace_table
from ._html import FitSummary
from ._inputs import Training, bind, check_options, finite_decision, new_samples, training_inputs
from ._one_fit import TimeShares

__all__ = ["BaseMKL"]


class BaseMKL(FitSummary, BaseEstimator):
    """Base of the estimators; see ``MKLClassifier`` for the parameters."""

    _task = "classification"

    def __init__(
        self,
        kernels: Any = None,
        *,
        loss: Any = "hinge",
        norm: Any = "l1",
        C: float = 1.0,
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        storage: str = "auto",
        dtype: Any = "float64",
        memory_budget: int | float | str | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        callback: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        device: Any = None,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.norm = norm
        self.C = C
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.center = center
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.storage = storage
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device

    # ---- before any work ------------------------------------------------------------------------------------

    def _components(self) -> tuple[Loss, Norm, Solver | None]:
        """Loss, norm and solver (None for auto), each checked, and checked to fit together."""
        _positive("C", self.C)
        _positive("tol", self.tol)
        if self.max_iter is not None and not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise ValueError(f"max_iter must be a whole number >= 1 or None, got {self.max_iter!r}")
        if self.max_seconds is not None:
            _positive("max_seconds", self.max_seconds)
        for name in ("fit_intercept", "center", "warm_start"):
            _truth(name, getattr(self, name))
        if self.checkpoint is not None:
            check_place(self.checkpoint)
        check_options(self.normalize, self.storage, self.dtype, self.memory_budget, self.device)
        loss, norm = self._loss(), make_norm(self.norm)
        if self._task not in loss.tasks:
            from ..losses import registry

            fitting = [name for name in registry if self._task in registry[name].tasks]
            raise ValueError(f"loss {loss!r} is not for {self._task}; losses that are: {', '.join(fitting)}")
        if isinstance(self.solver, str) and self.solver == "auto":
            self._check_auto(loss, norm)
            return loss, norm, None
        return loss, norm, make_solver(self.solver, loss, norm, bool(self.fit_intercept))

    def _check_auto(self, loss: Loss, norm: Norm) -> None:
        """Raise where no solver serves a loss and a norm, or only without an intercept."""
        if fitting_solvers(loss, norm, bool(self.fit_intercept)):
            return
        without = ", ".join(repr(name) for name in fitting_solvers(loss, norm))
        way = f"with fit_intercept=False these do: {without}" if without else "choose another loss or norm"
        raise ValueError(f"no solver fits loss={loss!r} with norm={norm.label!r} and an intercept: {way}")

    def _stop(self) -> Stop:
        return Stop(float(self.tol), self.max_iter, self.max_seconds)

    # ---- hooks of the baselines -----------------------------------------------------------------------------

    def _loss(self) -> Loss:
        """Loss to be minimised; baselines that stand for one loss say so here."""
        return make_loss(self.loss)

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        """Norm and C; baselines that pick weights or C from the data do it here."""
        return norm, float(self.C)

    def _problem_loss(self, loss: Loss, problem: int) -> Loss:
        """Loss of one problem, where it is not the same for all."""
        return loss

    # ---- the work -------------------------------------------------------------------------------------------

    def _fit(
        self, training: Training, targets: list[np.ndarray], weights: list[Any], labels: list[Any]
    ) -> None:
        """Build the bank and fit on it."""
        self._components()[1].check(len(training.names))
        bank, bound = bind(training, self, effective_n_jobs(self.n_jobs))
        self._fit_on(bank, bound, training, targets, weights, labels)

    def _fit_on(
        self,
        bank: Bank,
        bound: Any,
        training: Training,
        targets: list[np.ndarray],
        weights: list[Any],
        labels: list[Any],
    ) -> None:
        """Fit one problem a target array on one bank, and keep what prediction and inspection need."""
        loss, norm, solver = self._components()
        norm.check(bank.m)
        stops = TimeShares(self._stop(), len(targets))
        judge = exact_bank(bank, bound, self.dtype)
        starts = self._warm_starts(bank, targets)
        fits: list[Fit] = []
        costs: list[float] = []
        problems = len(targets)
        for k, (y, weight) in enumerate(zip(targets, weights, strict=True)):
            chosen, C = self._choose(bank, y, weight, norm)
            mine = self._problem_loss(loss, k)
            costs.append(C)
            # weights picked by a baseline's rule need no solver for learnt ones
            solver_used = choose_solver(mine, chosen, bank)
            if solver is not None and not solver.unmet(mine, chosen):
                solver_used = solver
            problem = MKLProblem(bank, mine, chosen, y, C, weight, self.fit_intercept)
            solve = partial(
                run,
                problem,
                solver_used,
                stops(),
                judge,
                start=starts[k],
                callback=self.callback,
                verbose=self.verbose,
                checkpoint=self._checkpoint_of(k, problems),
                label=f"class {_plain(labels[k])!r}: " if problems > 1 else "",
            )
            try:
                fits.append(solve())
            except KeyboardInterrupt:  # before there was a point, which now is made in no time
                if not fits:
                    raise
                fits.append(solve())
        self.C_ = costs[0] if len(set(costs)) == 1 else np.array(costs)
        self._keep(fits, labels, bank, bound, training, solver_used)
        self.n_passes_ = bank.passes + (judge.passes if judge is not bank else 0.0)

    def _keep(
        self, fits: list[Fit], labels: list[Any], bank: Bank, bound: Any, training: Training, solver: Solver
    ) -> None:
        one = len(fits) == 1
        self.weights_ = fits[0].weights if one else np.stack([fit.weights for fit in fits])
        self.dual_coef_ = fits[0].beta if one else np.stack([fit.beta for fit in fits], axis=1)
        self.certificate_ = fits[0].certificate if one else stack_fits(fits)
        self.certificates_ = [fit.certificate for fit in fits]
        self.intercept_ = self.certificate_.intercept
        self.loss_ = fits[0].loss
        self.__dict__.pop("lam_", None)
        if fits[0].norm.strength is not None:
            self.lam_ = fits[0].norm.strength if one else np.array([fit.norm.strength for fit in fits])
        self.trace_ = trace_table(fits, labels)
        self.n_iter_ = max(fit.solution.n_iter for fit in fits)
        statuses = [fit.status for fit in fits]
        self.status_ = statuses[0] if one else next((s for s in statuses if s != "converged"), "converged")
        self.solver_ = solver.registered_as
        self.kernel_names_ = np.array(training.names, dtype=object)
        self.support_ = support(self.dual_coef_)
        self.bank_bytes_ = bank.nbytes
        self.__dict__.pop("cluster_", None)
        if (cost := bank.cluster_cost) is not None:
            self.cluster_ = cost
        self._kind = training.kind
        self._active = active_kernels(self.weights_)
        if isinstance(bound, BoundKernels):
            self.kernels_ = bound.kernels
            self._bound, self._coef = bound.restrict(self._active, self.dual_coef_)
        else:
            self._bound, self._coef = bound, self.dual_coef_

    def _warm_starts(self, bank: Bank, targets: list[np.ndarray]) -> list[Point | None]:
        """Where to start each problem: the previous fit, if that was of the same shape in every respect."""
        afresh: list[Point | None] = [None] * len(targets)
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return afresh
        beta, weights = self.dual_coef_, self.weights_
        shape = (bank.n, len(targets)) if weights.ndim == 2 else targets[0].shape
        if beta.shape != shape or weights.shape[-1] != bank.m:
            return afresh
        if weights.ndim == 2:
            return [Point(beta[:, k], weights[k]) for k in range(len(targets))]
        return [Point(beta, weights)] if len(targets) == 1 else afresh

    def _checkpoint_of(self, k: int, problems: int) -> Any:
        if self.checkpoint is None or problems == 1:
            return self.checkpoint
        from pathlib import Path

        path = Path(self.checkpoint)
        return path.with_name(f"{path.stem}-{k}{path.suffix}")

    def _decision(self, X: Any) -> np.ndarray:
        """Decision values of new rows, ``(n_new,)`` or ``(n_new, k)``; all of them finite."""
        check_is_fitted(self, "dual_coef_")
        with np.errstate(over="ignore", invalid="ignore"):  # told in a sentence
            return finite_decision(self._raw_decision(X))

    def _raw_decision(self, X: Any) -> np.ndarray:
        new = new_samples(self, X, self._bound, self._kind)
        place = prediction_device(self.device, X, self._bound)
        if place is not None:
            weights = self.weights_[..., self._active]
            return device_decision(self._bound, new, weights, self._coef, place) + self.intercept_
        if not isinstance(self._bound, BoundKernels):
            return self._bound.decision(new, self.weights_, self._coef) + self.intercept_
        weights = self.weights_[..., self._active]
        # half precision is for storing a bank: prediction computes in single precision then
        dtype = np.float32 if str(self.dtype) in ("float16", "bfloat16") else np.dtype(self.dtype)
        return self._bound.decision(new, weights, self._coef, dtype) + self.intercept_

    def _training(self, X: Any, n_targets: int | None = None) -> Training:
        return training_inputs(self, X, self.kernels, n_targets)

    def _check_length(self, training: Training, y: np.ndarray) -> None:
        if len(y) != training.n:
            what = "precomputed kernels have" if training.kernels is None else "X has"
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {what} {training.n} samples, "
                f"y has {len(y)}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _plain(label: Any) -> Any:
    """A label as people write it: ``'a'`` rather than ``np.str_('a')``."""
    return label.item() if isinstance(label, np.generic) else label


def _positive(name: str, value: Any) -> None:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def _truth(name: str, value: Any) -> None:
    """Raise where a switch is neither on nor off: ``center='no'`` would be on."""
    if not isinstance(value, bool | np.bool_) and value not in (0, 1):
        raise ValueError(f"{name} must be True or False, got {value!r}")
