"""MKLClassifier: multiple kernel learning as a scikit-learn classifier."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array

from .._components import check_choice, store_parameters
from .._estimating import (
    available_where,
    check_two_classes,
    class_columns,
    codes_of,
    constant_prediction,
    encode_classes,
    one_column,
    one_fit,
    restore_on_error,
    weigh_samples,
)
from .._fitted import FittedModel, origin_of_weights, set_optional
from .._typing import Array
from ..banks import KernelFunction
from ..banks.devices import device_of, on_host
from ..cluster import in_memory, lazily
from ..kernels import n_samples
from ..losses import Loss, make_loss
from ..losses import registry as losses
from ..solvers.online import Obscure, Stream
from ..views import warn_of_classes
from ._base import BaseMKL
from ._bind import scale_findings
from ._inputs import Training, new_samples, training_inputs
from ._parameters import (
    Bytes,
    Callback,
    ClassWeights,
    Codes,
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
from ._plan import Plan, Task, class_tasks, norm_of_kernels

MULTI_CLASS = ("joint", "shared", "ovr")


def _has_probabilities(estimator: MKLClassifier) -> bool:
    # what was fitted decides, whatever the parameters say now
    fitted = vars(estimator).get("loss_")
    calibrated = estimator.probability if fitted is None else hasattr(estimator, "calibration_")
    if calibrated or (fitted or estimator._loss(n_classes=2)).has_probabilities:
        return True
    raise AttributeError(
        "predict_proba needs loss='logistic' or 'ordinal', or MKLClassifierCV(probability=True), whose folds calibrate "
        "any loss; or wrap the classifier in sklearn.calibration.CalibratedClassifierCV"
    )


def _learns_online(estimator: MKLClassifier) -> bool:
    if estimator.solver == "obscure" or isinstance(estimator.solver, Obscure):
        return True
    raise AttributeError("partial_fit needs solver='obscure', whose first stage learns from a stream")


@dataclass(frozen=True)
class Labelled:
    """Checked input of a classification: samples, the plan, classes as numbers and the weights of the samples."""

    training: Training
    plan: Plan
    codes: Codes
    weight: Array
    classes: NDArray[Any]
    each: bool

    def tasks(self) -> list[Task]:
        """Return what there is to solve."""
        return class_tasks(self.codes, self.weight, self.classes, self.each, self.plan)

    @property
    def several_labels(self) -> bool:
        """Whether samples have any number of labels, instead of one class."""
        return self.codes.ndim == 2


class MKLClassifier(ClassifierMixin, BaseMKL):
    """Learn a classifier and the combination of kernels it stands on, with a certificate of optimality.

    Minimises ``1/2 Omega(|f_1|, ..., |f_m|)^2 + C sum_i loss(y_i, f(x_i))`` over ``f = sum_j f_j + b``.

    Parameters
    ----------
    kernels : kernels, str, list or None, default=None
        What to mix: kernels joined by ``+``, families such as ``kernels.per_feature(...)``, functions, names such as
        ``"rbf"`` and ``"linear"`` or of a preset, a list of these.  None is ``kernels.default_bank()``.
        ``"precomputed"``: X is an (m, n, n) array or a list of matrices in ``fit`` and (m, n_new, n) in ``predict``;
        inside cross-validation use ``kernels.held(stack)`` with sample indices as X.
    loss : str or Loss, default="hinge"
        ``hinge``, ``squared_hinge``, ``huber_hinge``, ``logistic`` or ``squared``; ``ordinal`` for classes in the order
        of their labels; ``multiclass_hinge`` or ``multinomial`` by name makes two classes a joint problem as well.
    norm : float, str or Norm, default="l1"
        How many kernels are left: ``"l1"`` keeps few; a number p > 1 (``"l2"`` is 2) keeps all, the more alike the
        larger it is; try 1.5 to 4.  ``"uniform"`` is the mean kernel, ``"entropy"`` in between, ``"max"`` the least
        sparse.  For structure in the weights: ``norms.ElasticNet``, ``norms.Elastic``, ``norms.Grouped`` (groups of
        kernels), ``norms.AtMost(k)`` (the best k kernels, proved).
    C : float, default=1.0
        Weight of the loss, > 0.  A larger C fits the training data more closely; try 0.01 to 1000.
    fit_intercept : bool, default=True
        Whether f has a free constant.
    normalize : {"trace", "cosine", None}, default="trace"
        How kernels are made comparable; learnt on the training samples.
    center : bool, default=False
        Whether the mean of the training samples is taken off in feature space first.
    missing : {"error", "mean", "predict"}, default="error"
        What becomes of samples that lack a whole view (a row of NaN, no row, or no table at all): refused, or completed
        in feature space by the mean of the samples that have it, or by what the views at hand predict
        (docs/incomplete_views.md).  Views are those of a dict of tables, or the groups of columns that kernels are on.
    multi_class : {"joint", "shared", "ovr"}, default="joint"
        How more than two classes are handled.  ``joint``: one problem and one set of kernel weights; the hinge becomes
        the multiclass hinge of Crammer and Singer, the logistic loss the multinomial one (softmax), other losses are
        added up over the classes, each against the rest.  ``shared``: losses added up for these two as well.  ``ovr``:
        one problem per class, with kernel weights of its own.  Of several labels ``ovr`` learns each by itself, the
        others all with one set of weights.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; ``"balanced"`` makes rare classes count as much as frequent ones.
    solver : str or Solver, default="auto"
        Name of a solver; ``solver_`` says what ``auto`` picked.
    tol : float, default=1e-3
        Relative duality gap at which to stop.  Smaller is slower and more exact; 1e-2 to explore, 1e-6 to compare.
    max_iter, max_seconds : int, float or None
        Limits, of every problem's iterations (None is the solver's) and of the seconds of the whole fit; the best point
        is kept and a warning says that the tolerance was not reached.
    warm_start : bool, default=False
        Start from the previous fit where it has the same samples and kernels.
    checkpoint : path or None, default=None
        NPZ file that is replaced as the fit goes on, and from which a killed fit resumes.
    callback : callable or None, default=None
        Called after every iteration with a row of the trace; a true answer stops.
    verbose : int, default=0
        1 shows a progress bar, 2 a line an iteration.
    random_state : int, RandomState or None, default=None
        For solvers that draw, given by name (an object keeps its own), and for the folds of ``BestKernelClassifier``.
    storage : {"auto", "family", "dense", "lowrank", "lazy", "stream"}, default="auto"
        How the bank keeps its kernels; ``stream`` computes explicit features block by block in every pass.
    dtype : {"float64", "float32"}, default="float64"
        Storage of the bank, and kernel values in prediction: ``"float32"`` takes half the memory.  Distances, sums over
        samples in the fit, coefficients and the certificate are always in double precision.
    memory_budget : int, str or None, default=None
        Bytes the bank may take (``"2GB"``); None is half of what the process may use.
    n_jobs : int or None, default=None
        Threads for sweeps over the bank; -1 takes all cores.  The answer does not depend on it.
    device : {"cuda", "cpu", "mps"} or None, default=None
        Where torch keeps the bank and solves; None is NumPy, unless X is a torch tensor.  There ``dtype`` may also be
        ``"float16"`` or ``"bfloat16"``, and ``storage`` is ``auto``, ``dense`` or ``lazy``.

    Attributes
    ----------
    weights_ : array of shape (m,) or (k, m)
        Kernel weights, of the normalised kernels.
    kernel_names_ : array of shape (m,)
        Names of the kernels.
    dual_coef_ : array of shape (n,) or (n, k)
        Signed coefficients, zero off the support: ``decision = sum_j weights_[j] K_j dual_coef_ + intercept_``.
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, dual_point`` of the final point.
    certificates_ : list of Certificate
        One per problem, where classes are fitted one against the rest.
    loss_ : Loss
        The loss that was minimised: of several classes it may be another than ``loss`` names.
    learnt_kernels_ : array of shape (m,)
        Which kernels have a weight that was learnt; that of the others was given (``norm="uniform"``, ``norms.Fixed``,
        ``kernels.always``) or set by a rule, which ``weights_rule_`` says in words.
    C_ : float or array of shape (k,)
        Weight of the loss that was taken; an array where the problems have different ones.
    kernels_ : list of Kernel
        The kernels, with everything settled that depends on the samples.
    norm_name_ : str
        The norm that was fitted, by its label.
    lam_ : float or array of shape (k,)
        With ``norm="entropy"``: the strength of the entropy term, as settled on the data.
    view_weights_ : dict
        Where kernels are on several views (``inspection.kernel_views``): the sum of every view's weights, by name; with
        ``norms.Grouped`` the weight that the norm gives every group.  Arrays of shape (k,) where problems have their
        own.
    kernel_groups_ : array of shape (m,)
        With ``norms.Grouped``: the group of every kernel.
    trace_ : DataFrame
        iteration, seconds, passes, primal, dual, relative_gap, active_kernels.
    n_passes_, n_iter_ : float, int
        Passes over the bank and iterations.
    bank_bytes_ : int
        What the bank took.
    cluster_ : ClusterCost
        On a cluster: rounds and bytes.
    solver_, status_ : str
        What was run; and ``"converged"`` where every certificate's ``relative_gap <= tol``, else why it stopped before.
    calibration_ : Calibration
        Of ``MKLClassifierCV``: the map from decision values to probabilities.
    loo_predictions_ : array
        Of ``MKLRegressor``, where it was asked for.
    decision_ : Decision
        Which solver, what it worked on (``representation``, ``storage``, ``place``, ``dtype``, ``bytes``), and why, in
        one sentence: ``reason``, which is also what ``str`` gives.  The rules are in docs/choosing.md.
    view_predictability_ : dict
        With ``missing``: leave-one-out R2 of every view's features from the other views.
    missing_patterns_ : DataFrame
        With ``missing``: patterns of views among the training samples, and how well what each lacks is predicted.
    coef_ : array of shape (1, p) or (k, p)
        Where all kernels with weight are linear: the weights of the columns.
    findings_ : tuple of str
        What to know before any figure, each a warning as well: that kernels do not suit the scales of the columns
        (docs/kernels.md), that one class is predicted for nearly everything.
    thresholds_ : array of shape (k - 1,)
        With ``loss="ordinal"``: between each class and the next, on the scale of the learnt function.
    multilabel_ : bool
        True where y was a table of labels; ``classes_`` are then the numbers of its columns.
    classes_, support_, n_features_in_ : as in scikit-learn

    See Also
    --------
    MKLClassifierCV : Chooses C, and if wanted the norm, by cross-validation.
    MeanKernelClassifier : Equal weights on the same kernels, the method to compare with.
    NoisyLabelMKLClassifier : For labels of which some are wrong.
    SimilarityClassifier : For similarities that are no kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = kw.gaussian(width=[1.0, 2.0, 4.0, 8.0]) + kw.per_feature(kw.gaussian(width=[0.5, 1.0, 2.0]))
    >>> clf = MKLClassifier(bank).fit(scale(X), y)
    >>> clf.certificate_.relative_gap < 1e-3
    True
    >>> int((clf.weights_ > 0).sum()) < 30
    True
    """

    multi_class: str
    class_weight: ClassWeights
    classes_: NDArray[Any]
    #: whether y may be a table of labels, or classes in an order
    _takes_labels = True
    # not every estimator has folds
    probability: bool = False

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "hinge",
        norm: NormLike = "l1",
        C: float = 1.0,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        missing: str = "error",
        multi_class: str = "joint",
        class_weight: ClassWeights = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        random_state: RandomSeed = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
        device: Device = None,
    ) -> None:
        store_parameters(self, locals())

    def _loss(self, n_classes: int) -> Loss:
        loss = make_loss(self.loss)
        if (loss.joint or loss.ordered) and self.multi_class != "joint":
            raise ValueError(
                f"loss {loss!r} judges all classes together: use multi_class='joint', or "
                f"loss={'logistic' if loss.has_curvature else 'hinge'!r}"
            )
        if loss.ordered and not self._takes_labels:
            raise ValueError(
                f"loss {loss!r} is for MKLClassifier and MKLClassifierCV, not {type(self).__name__}"
            )
        if loss.ordered and n_classes == 2:  # with one threshold, which is the intercept
            return make_loss("logistic")
        return loss.of_several_classes() if n_classes > 2 and self.multi_class == "joint" else loss

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None) -> Self:
        """Learn kernel weights and coefficients.

        Parameters
        ----------
        X : samples
            Array, sparse matrix, data frame, list of objects, sample indices or kernel matrices, as ``kernels`` asks;
            a dict or list of tables, or ``Views``, of which kernels find their view by name; AnnData or MuData.
        y : array of shape (n,) or (n, k), or str
            Class labels; with AnnData and MuData also the column of ``obs`` that has them.  A table of zeros and ones
            is k labels, of which a sample has any number.
        sample_weight : array of shape (n,), optional
            Factors of C by sample.

        Returns
        -------
        self
        """
        labelled = self._checked(X, y, sample_weight)
        self._fit(labelled.training, labelled.plan, labelled.tasks())
        return self

    @available_where(_learns_online)
    @restore_on_error
    def partial_fit(
        self, X: Samples, y: Column, classes: Column = None, sample_weight: Column = None
    ) -> Self:
        """Learn from one more batch by OBSCURE's online stage (``solver="obscure"`` only).

        Every sample is visited once, in its order, and only those that changed the function are kept.  Widths that
        depend on the samples and the normalisation are settled on the first batch.  There is no certificate: samples
        that were not kept cannot be counted.  ``fit`` begins afresh.

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
        y = one_column(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
        fitted = FittedModel.of(self) if "_stream" in vars(self) else None
        if fitted is None:
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
        weight = weigh_samples(in_memory(sample_weight), codes.size, self.class_weight, self.classes_, codes)
        tasks = class_tasks(codes, weight, self.classes_, self.multi_class == "ovr", plan)
        if len(tasks) > 1:
            raise ValueError("partial_fit learns all classes together: use multi_class='joint' or 'shared'")
        task = tasks[0]
        if fitted is None:  # kernels and their normalisation are settled on the first batch
            training = training_inputs(self, X, plan.bank, len(y))
            batch, m = training.samples, len(training.names)
            # raises where a kernel has a given weight, which online steps do not know
            plan.with_norm(norm_of_kernels(plan.norm, training))
            task.norm.check(m)
            assert isinstance(plan.solver, Obscure)
            assert training.kernels is not None
            stream = Stream.begin(
                training.kernels, batch, self.normalize, task.norm.for_kernels(m), plan.solver.eta,
                1 if task.y.ndim == 1 else task.y.shape[1],
            )  # fmt: skip
            fitted = FittedModel(
                stream.weights, stream.coef, 0.0, np.array(training.names, dtype=object),
                **origin_of_weights([task.norm], m), findings=scale_findings(training, stream.bound.kernels, plan.bank),
                kernels=stream.bound.kernels, status="streaming", solver=plan.solver.registered_as,
                kind=training.kind, stream=stream,
            )  # fmt: skip
        else:
            batch = new_samples(self, X, fitted.kind)
            if n_samples(batch) != len(y):
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: {n_samples(batch)} and {len(y)}"
                )
        known = fitted.stream
        assert known is not None
        self.n_updates_ = known.learn(batch, task.y, task.weight, task.loss)
        weights, coef = known.weights, known.coef / known.q
        coef = coef if task.y.ndim == 2 else coef[:, 0]
        function = KernelFunction.mixture(known.bound, weights, coef, 0.0)
        replace(fitted, weights=weights, dual_coef=coef, function=function).write(self)
        return self

    def _findings_of(self, tasks: list[Task], values: list[Array]) -> tuple[str, ...]:
        targets = [task.y for task in tasks]
        if hasattr(self, "multilabel_"):
            return ()
        if tasks[0].loss.ordered:
            targets = [class_columns(targets[0].astype(np.intp), self.classes_.size)]
        codes, predicted = (
            codes_of(one[0] if len(tasks) == 1 else np.stack(one, axis=1)) for one in (targets, values)
        )
        counted = np.any([task.weight > 0 for task in tasks], axis=0)
        sentence = constant_prediction(predicted, codes, self.classes_, counted)
        return () if sentence is None else (sentence,)

    def _prepared(self, X: Samples, y: Column, sample_weight: Column) -> tuple[Training, Plan, list[Task]]:
        labelled = self._checked(X, y, sample_weight)
        return labelled.training, labelled.plan, labelled.tasks()

    def _checked(self, X: Samples, y: Column, sample_weight: Column) -> Labelled:
        """Check parameters and input, before any work."""
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        device_of(self.device, X, y)
        X, y = self._joined(X, y)
        y, codes = on_host(in_memory(y)), None
        if (
            y is not None
            and self._takes_labels
            and type_of_target(y, input_name="y") == "multilabel-indicator"
        ):
            codes = self._labels(y)
            self.classes_ = np.arange(codes.shape[1])
        set_optional(self, "multilabel_", None if codes is None else True)
        if codes is None:
            self.classes_, codes = encode_classes(y)
        plan = self._plan(self.classes_.size if codes.ndim == 1 else 2)
        training = training_inputs(self, X, plan.bank, len(codes))
        if plan.bank.missing != "error" and codes.ndim == 1:
            warn_of_classes(training.presence(), codes, self.classes_)
        weight = weigh_samples(in_memory(sample_weight), len(codes), self.class_weight, self.classes_, codes)
        if codes.ndim == 1:
            check_two_classes(self.classes_, codes, weight)
        elif not np.any(weight > 0):
            raise ValueError("all sample weights are zero")
        plan = plan.with_norm(norm_of_kernels(plan.norm, training))
        return Labelled(training, plan, codes, weight, self.classes_, self.multi_class == "ovr")

    def _labels(self, y: Any) -> Codes:
        """Check a table of several labels; return it as zeros and ones."""
        table = check_array(y, accept_sparse=True, dtype=None, input_name="y", ensure_min_features=2)
        if self.class_weight is not None:
            raise ValueError(
                "class_weight goes with one class per sample, not with several labels: leave it out"
            )
        loss = make_loss(self.loss)
        if loss.joint or loss.ordered:
            raise ValueError(
                f"loss {loss!r} is for one class per sample: for several labels take 'hinge' or 'logistic'"
            )
        codes: Codes = np.asarray(table.toarray() if hasattr(table, "toarray") else table).astype(np.intp)
        return codes

    def _scores(self, X: Samples) -> Array:
        """Return the values of the functions, or what ordered classes have in their place."""
        values, thresholds = self._decision(X), vars(self).get("thresholds_")
        return values if thresholds is None else self.loss_.class_scores(values, thresholds)

    @lazily
    def decision_function(self, X: Samples) -> Array:
        """Return decision values: ``(n_new,)`` for two classes, ``(n_new, k)`` for more, or for k labels.

        With ``loss="ordinal"`` they are the logarithms of the probabilities.
        """
        values = self._scores(X)
        # two classes under a joint loss have a function each; what tells them apart is the difference
        two = self.classes_.size == 2 and values.ndim == 2 and not hasattr(self, "multilabel_")
        return values[:, 1] - values[:, 0] if two else values

    @lazily
    def predict(self, X: Samples) -> NDArray[Any]:
        """Return the predicted classes, or a table of zeros and ones where there are several labels."""
        values = self.decision_function(X)
        if hasattr(self, "multilabel_"):
            return (values > 0).astype(np.intp)
        return self.classes_[codes_of(values)]

    def score(self, X: Samples, y: Column, sample_weight: Column = None) -> float:
        """Return the mean accuracy; views with names are brought into the order of y."""
        return float(super().score(*self._joined(X, y), sample_weight))

    @available_where(_has_probabilities)
    @lazily
    def predict_proba(self, X: Samples) -> Array:
        """Return class probabilities: calibrated on folds, or those of the logistic and the ordinal loss.

        With several classes the logistic loss has the softmax, or one against the rest, normalised.  Of several labels
        each has its own probability.
        """
        # what was fitted decides, and not what the parameters say now
        calibration, labels = FittedModel.of(self).calibration, hasattr(self, "multilabel_")
        values = self._scores(X) if calibration is None else self.decision_function(X)
        if not labels:
            return np.asarray((self.loss_ if calibration is None else calibration).probabilities(values))
        each = [self.loss_] * values.shape[1] if calibration is None else calibration
        return np.column_stack([one.probabilities(f)[:, 1] for one, f in zip(each, values.T, strict=True)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        with suppress(ValueError, AttributeError):  # of a loss that is none
            loss = losses[self.loss] if isinstance(self.loss, str) else self.loss
            tags.classifier_tags.multi_label = self._takes_labels and not (loss.joint or loss.ordered)
        return tags
