"""SimilarityClassifier: classification from similarities that need not be kernels."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._components import nearest
from .._estimating import (
    TimeShares,
    check_two_classes,
    class_columns,
    encode_classes,
    finite_decision,
    one_fit,
    weigh_classes,
    weigh_samples,
)
from ..banks import support
from ..problems import Certificate
from ..solvers import TRACE_COLUMNS, Stop
from .fits import LEARNED, METHODS, SimilarityFit, Task, fit_method
from .inputs import normalised, source_of
from .losses import make_similarity_loss

__all__ = ["SimilarityClassifier"]


class SimilarityClassifier(ClassifierMixin, BaseEstimator):
    """Learn a kernel from one or several indefinite similarities, and an SVM on it.

    ``docs/similarities.md`` says what the methods do, what is known about them, and when to use which.

    Parameters
    ----------
    similarity : "precomputed", callable, list of callables or holder, default="precomputed"
        ``"precomputed"``: X is an ``(n, n)`` matrix, a list of m of them or an ``(m, n, n)`` array in ``fit``; rows of
        similarities to the training samples, ``(n_new, n)`` or ``(m, n_new, n)``, in ``predict``.  A function of two
        samples, or several: X is samples of any kind, and each pair of training samples is asked for once, in one
        order.  ``held_similarities(stack)``: X is sample indices, which is how
        several matrices go through cross-validation; a single matrix can be sliced by it directly.
    method : str, default="eskl"
        Learned kernels: ``eskl`` (one for all similarities), ``emkl`` (one each), ``rekl`` (new eigenvalues for each),
        ``indsvm``.  Spectrum of the mean similarity: ``denoise`` (negative eigenvalues to zero), ``flip``, ``shift``.
        ``features``: a linear SVM on the similarities as features.
    loss : str, SimilarityLoss or pair of functions, default="frobenius"
        Distance to the similarities, of ``eskl``, ``emkl`` and ``rekl``: ``l1``, ``frobenius``, ``squared``, or
        ``(value, subgradient)`` of one's own, optionally with conjugate and proximal operator.
    rho : float, default=5.0
        Weight of that distance; free of dimension, .5 to 50 is a sensible range, and large values are Denoise.
    C : float, default=1.0
        Weight of the hinge loss.
    rule : {"smooth", "classical"}, default="smooth"
        What a new row of similarities becomes; see ``docs/similarities.md``.  ``features`` has but one rule.
    multi_class : {"ovr", "joint"}, default="ovr"
        More than two classes: a kernel for every class against the rest, or one for all of them.
    normalize : bool, default=True
        Scale every similarity by ``n / tr(S_+)`` of the training block.
    class_weight : dict, "balanced" or None, default=None
    fit_intercept : bool, default=True
    tol : float, default=1e-2
        Relative gap between the bounds at which to stop.
    max_iter, max_seconds : int, float or None
    solver : SimilaritySolver or None, default=None
        A solver with parameters of its own, of the method's kind.
    callback : callable or None, default=None
        Called after every iteration with a row of the trace; a true answer stops.
    verbose : int, default=0

    Attributes
    ----------
    kernel_ : array of shape (n, n), or (k, n, n) for one against the rest
        Learned kernel, the mix of several where there are several.
    kernels_ : array of shape (m, n, n), or list of k such
        For ``emkl`` and ``rekl``: the kernel of every similarity.
    weights_ : array of shape (m,) or (k, m)
        For ``emkl`` and ``rekl``: weights ``1 / gamma`` of the kernels.  Otherwise shares of the similarities in the
        kernel and in rows of new samples.
    certificate_ : Certificate
        Upper and lower bound of the optimum as ``primal`` and ``dual``.
    certificates_ : list of Certificate
    trace_ : DataFrame
        iteration, seconds, passes, primal, dual, relative_gap, active_kernels.
    dual_coef_, intercept_, support_ : arrays
    kernel_names_ : array of shape (m,)
    scales_ : array of shape (m,)
        Factor of every similarity, learnt on the training block.
    eigenvalues_ : array of shape (m, n)
        Of the scaled similarities.
    solver_, status_, n_iter_, n_passes_, classes_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.r_[rng.normal(-1, 0.7, 30), rng.normal(1, 0.7, 30)]
    >>> S = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> noise = rng.normal(size=S.shape)
    >>> S = S + 0.1 * (noise + noise.T)  # no kernel any more
    >>> y = np.repeat([0, 1], 30)
    >>> clf = SimilarityClassifier(rho=5.0).fit(S, y)
    >>> clf.certificate_.relative_gap < 1e-2
    True
    >>> bool(np.linalg.eigvalsh(clf.kernel_)[0] > -1e-9)
    True
    >>> clf.predict(S[:3]).tolist()
    [0, 0, 0]
    """

    def __init__(
        self,
        similarity: Any = "precomputed",
        *,
        method: str = "eskl",
        loss: Any = "frobenius",
        rho: float = 5.0,
        C: float = 1.0,
        rule: str = "smooth",
        multi_class: str = "ovr",
        normalize: bool = True,
        class_weight: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        solver: Any = None,
        callback: Any = None,
        verbose: int = 0,
    ) -> None:
        self.similarity = similarity
        self.method = method
        self.loss = loss
        self.rho = rho
        self.C = C
        self.rule = rule
        self.multi_class = multi_class
        self.normalize = normalize
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.solver = solver
        self.callback = callback
        self.verbose = verbose

    @one_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SimilarityClassifier:
        """Learn the kernel and the SVM.

        Parameters
        ----------
        X : similarities or samples
            As ``similarity`` says.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), optional
            Factors of C by sample.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.classes_, codes = encode_classes(y)
        weight = weigh_samples(sample_weight, codes.size)
        weight = weigh_classes(self.class_weight, self.classes_, codes, weight)
        check_two_classes(self.classes_, codes, weight)
        source = source_of(self.similarity)
        stack, names = source.train(self, X)
        if codes.size != stack.shape[1]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: the similarities have "
                f"{stack.shape[1]}, y has {codes.size}"
            )
        given = normalised(stack, names, bool(self.normalize))
        tasks = [self._task(target, weight, label) for target, label in self._targets(codes)]
        self._source, self.scales_ = source, given.factors
        self.eigenvalues_ = given.values
        self.kernel_names_ = np.array(names, dtype=object)
        stops = TimeShares(tasks[0].stop, len(tasks))
        self._keep([fit_method(self.method, given, replace(task, stop=stops())) for task in tasks], tasks)
        return self

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"unknown method {self.method!r}.{nearest(str(self.method), list(METHODS))} "
                f"Methods: {', '.join(METHODS)}."
            )
        for name in ("C", "rho", "tol", "max_seconds"):
            value = getattr(self, name)
            if value is None and name == "max_seconds":
                continue
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not (number and np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
        limit: Any = self.max_iter
        if limit is not None and not (isinstance(limit, Integral) and int(limit) >= 1):
            raise ValueError(f"max_iter must be a whole number >= 1 or None, got {limit!r}")
        for name, known in (("rule", ("smooth", "classical")), ("multi_class", ("ovr", "joint"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.method in LEARNED:
            make_similarity_loss(self.loss)

    def _targets(self, codes: np.ndarray) -> list[tuple[np.ndarray, Any]]:
        """Targets -1 and 1: one problem for two classes, one per class, or one with a column per class."""
        if self.classes_.size == 2:
            return [(np.where(codes == 1, 1.0, -1.0), self.classes_[1])]
        columns = class_columns(codes, self.classes_.size)
        # kernels that are not learned are the same for every class
        if self.multi_class == "joint" or self.method not in LEARNED:
            return [(columns, "all")]
        return list(zip(columns.T.copy(), self.classes_, strict=True))

    def _task(self, target: np.ndarray, weight: np.ndarray, label: Any) -> Task:
        shown = label.item() if isinstance(label, np.generic) else label
        return Task(
            target,
            weight,
            float(self.C),
            float(self.rho),
            self.loss,
            self.rule,
            self.fit_intercept,
            Stop(float(self.tol), self.max_iter, self.max_seconds),
            self.solver,
            self.callback,
            self.verbose,
            f"class {shown!r}: " if self.classes_.size > 2 else "",
        )

    def _keep(self, fits: list[SimilarityFit], tasks: list[Task]) -> None:
        import pandas as pd

        single = len(fits) == 1
        self._fits = fits
        mixed = [
            np.tensordot(fit.weights, fit.kernels, axes=1) if len(fit.kernels) > 1 else fit.kernels[0]
            for fit in fits
        ]
        self.kernel_ = mixed[0] if single else np.stack(mixed)
        self.__dict__.pop("kernels_", None)
        if self.method in ("emkl", "rekl"):
            self.kernels_ = fits[0].kernels if single else [fit.kernels for fit in fits]
        self.weights_ = fits[0].weights if single else np.stack([fit.weights for fit in fits])
        self.dual_coef_ = fits[0].beta if single else np.stack([fit.beta for fit in fits], axis=1)
        self.support_ = support(self.dual_coef_)
        self.certificates_ = [fit.certificate for fit in fits]
        self.certificate_ = fits[0].certificate if single else _stacked(fits)
        self.intercept_ = self.certificate_.intercept
        tables = [pd.DataFrame(fit.trace, columns=list(TRACE_COLUMNS)) for fit in fits]
        for table, label in zip(tables, self.classes_, strict=False):
            if not single:
                table.insert(0, "problem", label)
        self.trace_ = pd.concat(tables, ignore_index=True).astype({"iteration": int, "active_kernels": int})
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.n_passes_ = float(sum(fit.passes for fit in fits))
        self.status_ = next((fit.status for fit in fits if fit.status != "converged"), "converged")
        self.solver_ = self.method if self.method in LEARNED else "fixed_weights"

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values, ``(n_new,)`` for two classes, ``(n_new, k)`` for more; each row by itself."""
        check_is_fitted(self, "dual_coef_")
        rows = self.scales_[:, None, None] * self._source.rows(self, X)
        values = [fit.decision(rows) for fit in self._fits]
        return finite_decision(values[0] if len(values) == 1 else np.stack(values, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        return self.classes_[codes]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = isinstance(self.similarity, str)
        tags.input_tags.pairwise = given
        tags.input_tags.three_d_array = given
        tags.input_tags.string = not given
        return tags


def _stacked(fits: list[SimilarityFit]) -> Certificate:
    """One certificate for independent problems: their objectives add up, and so do their bounds."""
    certificates = [fit.certificate for fit in fits]
    return Certificate(
        primal=sum(certificate.primal for certificate in certificates),
        dual=sum(certificate.dual for certificate in certificates),
        dual_point=np.stack([certificate.dual_point for certificate in certificates], axis=1),
        intercept=np.array([certificate.intercept for certificate in certificates]),
    )
