"""Learning from a stream: ``partial_fit``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, column_or_1d

from .._estimating import restore_on_error
from .._typing import Array
from ..banks import KernelFunction
from ..kernels import n_samples
from ..solvers.online import Obscure, Stream
from ._base import BaseMKL
from ._bind import scale_findings
from ._inputs import Training, new_samples
from ._parameters import Codes, Column, Samples
from ._plan import Plan, Task, class_tasks, plan_for_kernels


def _learns_online(estimator: BaseMKL) -> bool:
    if estimator.solver == "obscure" or isinstance(estimator.solver, Obscure):
        return True
    raise AttributeError("partial_fit needs solver='obscure', whose first stage learns from a stream")


class LearnsOnline(BaseMKL):
    """``partial_fit`` for classifiers whose solver has an online stage."""

    classes_: NDArray[Any]
    multi_class: str

    def _sample_weights(self, sample_weight: Column, codes: Codes) -> Array:
        raise NotImplementedError

    @available_if(_learns_online)
    @restore_on_error
    def partial_fit(
        self, X: Samples, y: Column, classes: Column = None, sample_weight: Column = None
    ) -> Self:
        """Learn from one more batch by OBSCURE's online stage (``solver="obscure"`` only).

        Every sample is visited once, in its order, and only those that changed the function are kept.  Widths that
        depend on the samples and the normalisation are settled on the first batch.  There is no certificate: what was
        not kept cannot be judged.  ``fit`` begins afresh.

        Parameters
        ----------
        X, y : samples and labels of the batch
        classes : array-like, optional
            All labels that will ever come; needed at the first call.
        sample_weight : array of shape (n,), optional
            Factors of the steps by sample.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from kernelweave import MKLClassifier, kernels as kw, norms
        >>> X, y = load_digits(return_X_y=True)
        >>> bank, norm = kw.gaussian([10.0, 20.0]), norms.Block(1.25)
        >>> clf = MKLClassifier(bank, norm=norm, solver="obscure", fit_intercept=False)
        >>> for first in range(0, 1500, 300):
        ...     clf = clf.partial_fit(X[first : first + 300], y[first : first + 300], classes=range(10))
        >>> clf.score(X[1500:], y[1500:]) > 0.9
        True
        """
        X, y = self._joined(X, y)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        stream: Stream | None = vars(self).get("_stream")
        self._check_classes(y, classes, first=stream is None)
        codes: Codes = np.searchsorted(self.classes_, y)  # type: ignore[assignment]
        plan = self._plan(self.classes_.size)
        if plan.bank.missing != "error":
            raise ValueError(
                "partial_fit completes no views: use missing='error', or fit all samples at once"
            )
        if self.center or self.normalize == "cosine" or self.kernels == "precomputed":
            raise ValueError(
                "partial_fit needs kernels it can evaluate, center=False and normalize='trace' or None"
            )
        tasks = class_tasks(
            codes, self._sample_weights(sample_weight, codes), self.classes_, self.multi_class == "ovr", plan
        )
        if len(tasks) > 1:
            raise ValueError("partial_fit learns all classes together: use multi_class='joint' or 'shared'")
        task = tasks[0]
        if stream is None:
            training = self._training(X, plan.bank, len(y))
            stream, batch = self._begin(training, task, plan), training.samples
        else:
            batch = new_samples(self, X, self._kind)
            if n_samples(batch) != len(y):
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: {n_samples(batch)} and {len(y)}"
                )
        self.n_updates_ = stream.learn(batch, task.y, task.weight, task.loss)
        self._keep_stream(stream, task.y.ndim)
        return self

    def _check_classes(self, y: NDArray[Any], classes: Column, first: bool) -> None:
        """Settle the classes at the first call, and see that no other label comes."""
        if first:
            if classes is None:
                raise ValueError("classes must be given at the first call of partial_fit: all labels to come")
            self.classes_ = np.unique(np.asarray(classes))
            if self.classes_.size < 2:
                raise ValueError(f"classification needs at least two classes, got {self.classes_}")
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes differ from those of the first call of partial_fit, {self.classes_}")
        unseen = np.setdiff1d(y, self.classes_)
        if unseen.size:
            raise ValueError(
                f"y has labels {unseen.tolist()} that were not among the classes of the first call of partial_fit, "
                f"{self.classes_.tolist()}"
            )

    def _begin(self, training: Training, task: Task, plan: Plan) -> Stream:
        """Settle kernels and their normalisation on the first batch."""
        m = len(training.names)
        plan_for_kernels(
            plan, training
        )  # raises where a kernel has a given weight, which online steps do not know
        task.norm.check(m)
        assert isinstance(plan.solver, Obscure)
        assert training.kernels is not None
        self._kind, self.kernel_names_ = training.kind, np.array(training.names, dtype=object)
        stream = Stream.begin(
            training.kernels, training.samples, self.normalize, task.norm.for_kernels(m), plan.solver.eta,
            1 if task.y.ndim == 1 else task.y.shape[1],
        )  # fmt: skip
        self.kernels_ = stream.bound.kernels
        self._keep_norms([task.norm], m)
        self.solver_: str | None = plan.solver.registered_as
        self.status_, self.intercept_ = "streaming", 0.0
        self.findings_ = scale_findings(
            training, stream.bound, plan.bank
        )  # what was not kept cannot be judged
        return stream

    def _keep_stream(self, stream: Stream, columns: int) -> None:
        """Keep the function that the stream makes up so far."""
        self._stream = stream
        self.weights_ = stream.weights
        coef = stream.coef / stream.q
        self.dual_coef_ = coef if columns == 2 else coef[:, 0]
        self.support_ = np.arange(stream.coef.shape[0])
        self._function = KernelFunction.mixture(stream.bound, self.weights_, self.dual_coef_, self.intercept_)
