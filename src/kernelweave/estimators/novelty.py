"""MKLOneClass: novelty detection on a learnt combination of kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import OutlierMixin

from .._components import store_parameters
from .._estimating import one_fit, weigh_samples
from .._fitted import FittedModel
from .._typing import Array
from ..banks.devices import device_of
from ..cluster import in_memory, lazily
from ..losses import Loss, OneClass, make_loss
from ._base import BaseMKL
from ._bind import Bound
from ._inputs import Training, training_inputs
from ._parameters import Bytes, Callback, Column, Device, FileName, KernelsLike, NormLike, Samples, SolverLike
from ._plan import Plan, Task, norm_of_kernels

#: offset, as a share of the mean diagonal of the mixed kernel, below which no function tells samples from the origin
NOTHING = 1e-6
#: relative error of decision values that are summed in another order
ROUNDING = 1e-12


class MKLOneClass(OutlierMixin, BaseMKL):
    """Learn what is usual, and the combination of kernels it stands on, with a certificate of optimality.

    The one-class SVM (Schoelkopf et al. 2001) with kernel weights: the function f and the offset rho that minimise
    ``1/2 Omega(|f_1|, ..., |f_m|)^2 + sum_i w_i (rho - f(x_i))_+ / (nu sum w) - rho``.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    nu : float, default=0.5
        Share of the training samples (of their weight) that may be called outliers, in (0, 1]; at least as large a
        share has coefficients.
    norm : float, str or Norm, default="uniform"
        As for ``MKLClassifier``.  There are no labels to say which kernels are good: learnt weights go to those kernels
        whose samples are the most alike and the largest, of which wide Gaussians and constants are extreme
        (docs/novelty.md).  By default nothing is learnt.
    normalize, missing, solver, tol, max_iter, max_seconds, warm_start, checkpoint, callback, verbose, \
storage, dtype, memory_budget, n_jobs, device :
        As for ``MKLClassifier``.  Kernels are not centred, since the function tells samples from the origin.

    Attributes
    ----------
    offset_ : float
        rho: ``decision_function = score_samples - offset_``.
    weights_, kernel_names_, dual_coef_, certificate_, trace_, n_passes_, n_iter_, solver_, status_, decision_, C_ :
        As for ``MKLClassifier``.  Coefficients sum to one, as those of scikit-learn's ``OneClassSVM`` do over
        ``nu n_samples``; ``intercept_`` is ``-offset_`` and ``C_`` is ``1 / (nu sum w)``.  The optimum is negative.
    findings_ : tuple of str
        As for ``MKLClassifier``; that no function tells the samples from the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLOneClass, kernels as kw
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = MKLOneClass(kw.gaussian([1.0, 2.0], relative=True), nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    array([ 1, -1])
    """

    _task = "novelty"
    fits_subsets = False  # there are no targets to compare subsets by
    # what other estimators have as parameters
    loss = OneClass
    fit_intercept = False
    center = False

    nu: float
    offset_: float

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        norm: NormLike = "uniform",
        nu: float = 0.5,
        normalize: str | None = "trace",
        missing: str = "error",
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
        device: Device = None,
    ) -> None:
        store_parameters(self, locals())

    def _loss(self, n_classes: int) -> Loss:
        return make_loss(OneClass(self.nu))

    @one_fit
    def fit(self, X: Samples, y: object = None, sample_weight: Column = None) -> Self:
        """Learn what is usual.

        Parameters
        ----------
        X : samples
            As for ``MKLClassifier.fit``.
        y : ignored
        sample_weight : array of shape (n,), optional
            How much each sample counts.

        Returns
        -------
        self
        """
        self._fit(*self._prepared(X, None, sample_weight))
        return self

    def _prepared(self, X: Samples, y: Column, sample_weight: Column) -> tuple[Training, Plan, list[Task]]:
        plan = self._plan()
        device_of(self.device, X)
        training = training_inputs(self, X, plan.bank)
        weight = weigh_samples(in_memory(sample_weight), training.n)
        if not np.any(weight > 0):
            raise ValueError("all sample weights are zero")
        plan = plan.with_norm(norm_of_kernels(plan.norm, training))
        C = 1.0 / (self.nu * float(np.sum(weight)))
        return training, plan, [Task(np.ones(training.n), weight, "samples", plan.loss, plan.norm, C)]

    def _intercept_of(
        self, intercept: float | Array, tasks: list[Task], values: list[Array]
    ) -> float | Array:
        loss = tasks[0].loss
        assert isinstance(loss, OneClass)
        f = values[0]
        # a sample on the offset is not to fall below it by how sums of predictions are rounded
        self.offset_ = loss.offset(f, tasks[0].C * tasks[0].weight) - ROUNDING * float(np.max(np.abs(f)))
        return -self.offset_

    def _solve(self, bound: Bound, plan: Plan, tasks: list[Task]) -> FittedModel:
        fitted = super()._solve(bound, plan, tasks)
        if self.offset_ > NOTHING * float(np.mean(fitted.weights @ bound.bank.diag())):
            return fitted
        finding = (
            "No function tells the samples from the origin: with these kernels it lies among them, and all scores are "
            "next to nothing. Take kernels with positive values, such as Gaussians, or columns that are not centred."
        )
        return replace(fitted, findings=(*fitted.findings, finding))

    @lazily
    def decision_function(self, X: Samples) -> Array:
        """Return ``score_samples(X) - offset_``: below zero where samples are called outliers."""
        return self._decision(X)

    @lazily
    def score_samples(self, X: Samples) -> Array:
        """Return how usual samples are: the learnt function without its offset."""
        return self._decision(X) + self.offset_

    @lazily
    def predict(self, X: Samples) -> NDArray[np.int_]:
        """Return 1 for samples that are like those of the fit, and -1 for others."""
        return np.where(self._decision(X) >= 0.0, 1, -1)
