"""MKLRegressor: multiple kernel learning as a scikit-learn regressor."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._estimating import checked_targets, one_fit, weigh_samples
from ..banks.devices import on_host
from ..cluster import in_memory, lazily
from ._base import BaseMKL
from ._deviation import Spread, deviations
from ._inputs import Training, new_samples
from ._parameters import keep_parameters
from ._plan import Plan
from ._structure import plan_for_kernels
from ._tasks import Task
from ._types import (
    Array,
    Bytes,
    Callback,
    Column,
    Device,
    FileName,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    Samples,
    SolverLike,
)

__all__ = ["MULTI_OUTPUT", "MKLRegressor"]

MULTI_OUTPUT = ("shared", "each")


class MKLRegressor(RegressorMixin, BaseMKL):
    """Learn a regression function and the combination of kernels it stands on, with a certificate of optimality.

    Parameters
    ----------
    kernels : kernels, "precomputed", preset name or None, default=None
        As for ``MKLClassifier``.
    loss : str or Loss, default="squared"
        ``squared`` or ``epsilon_insensitive`` (``losses.EpsilonInsensitive(epsilon)`` for another tube).
    multi_output : {"shared", "each"}, default="shared"
        What is learnt for several targets ``(n, t)``: one set of kernel weights for all, in one convex problem, the sum
        of the targets' objectives; or one problem and one set of weights per target.  Shared weights listen most to
        the targets that vary most: bring them to one scale (``TransformedTargetRegressor(transformer=
        StandardScaler())``) unless their units are the same.  With the squared loss the cost of shared weights does not
        grow with the number of targets beyond n.
    norm, C, solver, tol, fit_intercept, normalize, center, max_iter, max_seconds, storage, dtype, memory_budget, \
warm_start, checkpoint, callback, n_jobs, verbose, device, missing :
        As for ``MKLClassifier``.

    Attributes
    ----------
    weights_, kernel_names_, dual_coef_, intercept_, certificate_, trace_, n_passes_, n_iter_, solver_, status_ :
        As for ``MKLClassifier``; for t targets ``dual_coef_`` is ``(n, t)``, ``intercept_`` ``(t,)`` and ``weights_``
        ``(m,)`` where shared, ``(t, m)`` where each target has its own.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave import MKLRegressor, kernels as kw
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = MKLRegressor(kw.per_feature(kw.gaussian(widths=[0.02, 0.05, 0.1])), norm=1.5, C=0.1).fit(X, y)
    >>> reg.certificate_.relative_gap <= 1e-3
    True
    """

    _task = "regression"

    multi_output: str

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "squared",
        norm: NormLike = "l1",
        C: float = 1.0,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        device: Device = None,
        missing: str = "error",
        multi_output: str = "shared",
        random_state: RandomSeed = None,
    ) -> None:
        keep_parameters(self, locals())

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None) -> Self:
        """Learn kernel weights and coefficients.

        Parameters
        ----------
        X : samples
            As for ``MKLClassifier.fit``.
        y : array of shape (n,) or (n, t), or str
            Targets, or the column of AnnData's ``obs`` that has them;
            with ``multi_output="each"`` an entry of several may be missing (NaN).
        sample_weight : array of shape (n,), optional
            Factors of C by sample.

        Returns
        -------
        self
        """
        training, plan, tasks = self._prepared(X, y, sample_weight)
        self._fit(training, plan, tasks)
        self._keep_spread(tasks, plan)
        return self

    def _prepared(self, X: Samples, y: Column, sample_weight: Column) -> tuple[Training, Plan, list[Task]]:
        """Check parameters and input; return samples, plan and what there is to solve."""
        plan = self._plan()
        X, y = self._joined(X, y)
        y = self._targets(y)
        training = self._training(X, plan.bank, len(y))
        weight = weigh_samples(in_memory(sample_weight), training.n)
        if not np.any(weight > 0):
            raise ValueError("all sample weights are zero")
        plan = plan_for_kernels(plan, training)
        return training, plan, self._tasks(y, weight, plan)

    def _keep_spread(self, tasks: list[Task], plan: Plan) -> None:
        """Keep what standard deviations of predictions need, where the loss has a Gaussian noise to it."""
        spread, weight = None, tasks[0].weight
        if plan.loss.least_squares and all(np.array_equal(task.weight, weight) for task in tasks):
            table = np.column_stack([task.y for task in tasks])
            C = np.broadcast_to(np.asarray(self.C_, dtype=float), (table.shape[1],))
            beta = self.dual_coef_.reshape(len(table), -1)
            spread = Spread.of(table, beta, C, weight, plan.fit_intercept)
        self._keep_where_there("_spread", spread)

    def _targets(self, y: Column) -> Array:
        """Return checked targets, ``(n,)`` or ``(n, t)``; a single column is one target, with a warning."""
        if self.multi_output not in MULTI_OUTPUT:
            raise ValueError(
                f"multi_output must be one of {', '.join(MULTI_OUTPUT)}, got {self.multi_output!r}"
            )
        return checked_targets(on_host(in_memory(y)), missing=self.multi_output == "each")

    def _tasks(self, y: Array, weight: Array, plan: Plan) -> list[Task]:
        """Return one task for targets that share their weights, else one per target."""
        if y.ndim == 1 or self.multi_output == "shared":
            return [Task(y, weight, "y", plan.loss, plan.norm, plan.C)]
        known = np.isfinite(y)
        return [
            Task(
                np.where(known[:, k], y[:, k], 0.0),
                weight * known[:, k],
                k,
                plan.loss,
                plan.norm,
                plan.C,
                of="target",
            )
            for k in range(y.shape[1])
        ]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    @lazily
    def _predictions(self, X: Samples) -> Array:
        return self._decision(X)

    def predict(self, X: Samples, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return predicted values.

        Parameters
        ----------
        X : samples
            As for ``fit``.
        return_std : bool, default=False
            Whether to return standard deviations of new observations too, for the squared loss: those of a Gaussian
            process with the learnt kernel, intercept and noise.  That the kernel was learnt is not in them.

        Returns
        -------
        array of shape (n_new,) or (n_new, t), or two of them
        """
        if not return_std:
            return self._predictions(X)
        check_is_fitted(self, "dual_coef_")
        if not hasattr(self, "_spread"):
            raise ValueError(
                "return_std=True needs loss='squared', targets without missing entries and no nuisance kernels"
            )
        values = self._decision(X)
        spread = deviations(self._function, self._spread, new_samples(self, X, self._kind))
        return values, spread.reshape(values.shape)

    def score(self, X: Samples, y: Column, sample_weight: Column = None) -> float:
        """Return R2, the mean over several targets.

        Parameters
        ----------
        X : samples
            As for ``fit``: views with names are brought into the order of y.
        y : array of shape (n,) or (n, t)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        return float(super().score(*self._joined(X, y), sample_weight))
