"""SimilarityClassifier: classification from similarities that need not be kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._components import (
    ParametersInGroups,
    check_choice,
    check_positive,
    check_switch,
    check_whole,
    fill_in_parameters,
    nearest,
    store_parameters,
)
from .._estimating import (
    PlainState,
    TimeShares,
    check_two_classes,
    class_columns,
    codes_of,
    constant_prediction,
    encode_classes,
    finite_decision,
    one_fit,
    warn_of_findings,
    weigh_samples,
)
from .._fitted import ATTRIBUTES, FittedModel, set_optional, side_by_side
from ..solvers import Stop
from .fits import (
    LEARNED,
    METHODS,
    SimilarityFit,
    SimilarityTask,
    choose_method,
    fit_method,
    poor_rule,
    scaled_rho,
)
from .inputs import Normalised, normalised, source_of
from .losses import make_similarity_loss

#: parameters that mean something for learned kernels alone, and their defaults
LEARNED_ONLY: dict[str, Any] = {"loss": "frobenius", "rho": "auto", "solver": None}


class SimilarityClassifier(ClassifierMixin, ParametersInGroups, PlainState, BaseEstimator):
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
    method : str, default="auto"
        ``auto``: ``denoise``, ``flip`` or ``features``, whichever has the smallest error in cross-validation on the
        training block; ``method_`` and ``rule_`` say which, ``comparison_`` why.
        Learned kernels: ``eskl`` (one for all similarities), ``emkl`` (one each), ``rekl`` (new eigenvalues for each),
        ``indsvm``.  Spectrum of the mean similarity: ``denoise`` (negative eigenvalues to zero), ``flip``, ``shift``.
        ``features``: a linear SVM on the similarities as features.
    loss : str, SimilarityLoss or pair of functions, default="frobenius"
        Distance to the similarities, of ``eskl``, ``emkl`` and ``rekl``: ``l1``, ``frobenius``, ``squared``, or
        ``(value, subgradient)`` of one's own, optionally with conjugate and proximal operator.
    rho : float or "auto", default="auto"
        Weight of that distance; large values are ``DenoiseSpectrum``.  ``auto`` is scaled to the matrix: the SVM may
        then move the kernel by about a tenth of its size (``rho_``; ``docs/similarities.md`` has the formula).
    C : float, default=1.0
        Weight of the hinge loss.
    rule : {"auto", "smooth", "classical"}, default="auto"
        What a new row of similarities becomes; see ``docs/similarities.md``.  ``auto`` is chosen together with the
        method where that is ``auto``, and ``smooth`` otherwise.  ``features`` has but one rule.
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
    random_state : int, RandomState or None, default=0
        For the folds of ``method="auto"``.

    Attributes
    ----------
    method_, rule_ : str
        What was fitted, and what new rows become.
    comparison_ : DataFrame
        For ``method="auto"``: method, rule, fold and error of everything that was compared.
    rho_ : float or array of shape (k,)
        For learned kernels: the weight that was used.
    findings_ : tuple of str
        What to know before any figure, also issued as warnings: that training rows are predicted far worse than by the
        fitted kernel, or that one class is predicted for nearly everything.
    kernel_ : array of shape (n, n), or (k, n, n) for one against the rest
        Learned kernel, the mix of several where there are several.
    kernels_ : array of shape (m, n, n), or list of k such
        For ``emkl`` and ``rekl``: the kernel of every similarity.
    weights_ : array of shape (m,) or (k, m)
        For ``emkl`` and ``rekl``: weights ``1 / gamma`` of the kernels.  Otherwise shares of the similarities in the
        kernel and in rows of new samples.
    learnt_kernels_ : array of shape (m,)
        Whether the kernels, and with them their weights, were learnt.
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
    >>> SimilarityClassifier().fit(S, y).score(S, y) > 0.9
    True
    >>> clf = SimilarityClassifier(method="eskl").fit(S, y)
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
        method: str = "auto",
        loss: Any = "frobenius",
        rho: float | str = "auto",
        C: float = 1.0,
        rule: str = "auto",
        fit_intercept: bool = True,
        normalize: bool = True,
        multi_class: str = "ovr",
        class_weight: Any = None,
        solver: Any = None,
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        store_parameters(self, locals())

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
        weight = weigh_samples(sample_weight, codes.size, self.class_weight, self.classes_, codes)
        check_two_classes(self.classes_, codes, weight)
        source = source_of(self.similarity)
        stack, names = source.train(self, X)
        if codes.size != stack.shape[1]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: the similarities have "
                f"{stack.shape[1]}, y has {codes.size}"
            )
        self._source = source
        for name in ("comparison_", "rho_"):
            set_optional(self, name, None)
        several = self.classes_.size > 2
        targets = class_columns(codes, self.classes_.size) if several else np.where(codes == 1, 1.0, -1.0)
        self.method_, self.rule_ = self.method, "smooth" if self.rule == "auto" else self.rule
        rho = 1.0 if isinstance(self.rho, str) else float(self.rho)  # "auto" is scaled below
        stop = Stop(float(self.tol), self.max_iter, self.max_seconds)
        task = SimilarityTask(
            targets, weight, float(self.C), rho, self.loss, self.rule_, self.fit_intercept, stop, self.solver,
            self.callback, self.verbose, "class 'all': " if several else "",
        )  # fmt: skip
        if self.method == "auto":
            rules = ("smooth", "classical") if self.rule == "auto" else (self.rule,)
            self.method_, self.rule_, self.comparison_ = choose_method(
                stack, names, codes, task, bool(self.normalize), rules, check_random_state(self.random_state)
            )
            task = replace(task, rule=self.rule_)
        given = normalised(stack, names, bool(self.normalize))
        self.scales_, self.eigenvalues_ = given.factors, given.values
        tasks = self._tasks(task, given)
        stops = TimeShares(stop, len(tasks))
        fits = [fit_method(self.method_, given, replace(task, stop=stops())) for task in tasks]
        findings = self._findings(fits, given, codes, weight > 0)
        warn_of_findings(findings)
        self._keep(fits, tasks, names, findings)
        return self

    def _keep(
        self,
        fits: list[SimilarityFit],
        tasks: list[SimilarityTask],
        names: list[str],
        findings: tuple[str, ...],
    ) -> None:
        """Keep what was fitted, and what similarities alone have."""
        single, learned = len(fits) == 1, self.method_ in LEARNED
        known = side_by_side(fits, ["all"] if single else list(self.classes_))
        kernels = None
        if self.method_ in ("emkl", "rekl"):
            kernels = fits[0].kernels if single else [fit.kernels for fit in fits]
        FittedModel(
            **known, **_origin(self.method_, known["weights"]), kernel_names=np.array(names, dtype=object),
            kernels=kernels, solver=self.method_ if learned else "fixed_weights",
            n_passes=float(sum(fit.passes for fit in fits)), findings=findings,
        ).write(self)  # fmt: skip
        self._fits = fits
        self.kernel_ = fits[0].kernel if single else np.stack([fit.kernel for fit in fits])
        if learned:
            self.rho_ = tasks[0].rho if single else np.array([task.rho for task in tasks])

    def _tasks(self, task: SimilarityTask, given: Normalised) -> list[SimilarityTask]:
        """Return a task for every class that learns kernels of its own, at the rho that the similarities ask for."""
        if self.method_ not in LEARNED:  # the kernels are the same for every class
            return [task]
        tasks = [task]
        if task.y.ndim == 2 and self.multi_class == "ovr":
            each = zip(task.y.T.copy(), self.classes_.tolist(), strict=True)
            tasks = [replace(task, y=target, label=f"class {label!r}: ") for target, label in each]
        if self.rho == "auto":
            tasks = [replace(task, rho=scaled_rho(self.method_, given, task)) for task in tasks]
        return tasks

    def _findings(
        self, fits: list[SimilarityFit], given: Normalised, codes: np.ndarray, counted: np.ndarray
    ) -> tuple[str, ...]:
        """Return what the predictions of the training rows that count say about the fit."""
        by_kernel = _side_by_side([fit.kernel @ fit.beta + fit.certificate.intercept for fit in fits])
        by_rows = codes_of(_side_by_side([fit.decision(given.stack) for fit in fits]))
        wrong = int(np.count_nonzero((codes_of(by_kernel) != codes)[counted]))
        wrong_by_rows = int(np.count_nonzero((by_rows != codes)[counted]))
        sentences = [
            poor_rule(self.method_, self.rule_, wrong, wrong_by_rows, int(np.count_nonzero(counted))),
            constant_prediction(by_rows, codes, self.classes_, counted),
        ]
        return tuple(sentence for sentence in sentences if sentence is not None)

    def _check_parameters(self) -> None:
        known = ("auto", *METHODS)
        if self.method not in known:
            raise ValueError(
                f"unknown method {self.method!r}.{nearest(str(self.method), list(known))} "
                f"Methods: {', '.join(known)}."
            )
        for name in ("normalize", "fit_intercept"):
            check_switch(name, getattr(self, name))
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_positive("max_seconds", self.max_seconds, or_none=True)
        check_whole("max_iter", self.max_iter, or_none=True)
        if not isinstance(self.rho, str):
            check_positive("rho", self.rho)
        elif self.rho != "auto":
            raise ValueError(f"rho must be 'auto' or a finite number > 0, got {self.rho!r}")
        check_choice("rule", self.rule, ("auto", "smooth", "classical"))
        check_choice("multi_class", self.multi_class, ("ovr", "joint"))
        if self.method in ("auto", *LEARNED):
            make_similarity_loss(self.loss)
        given = [name for name, default in LEARNED_ONLY.items() if getattr(self, name) != default]
        if self.method == "auto" and given:
            raise ValueError(
                f"{given[0]} is for learned kernels, and method='auto' tries none of them: say which, for instance "
                f"method='eskl', or leave {given[0]} at its default"
            )

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values, ``(n_new,)`` for two classes, ``(n_new, k)`` for more; each row by itself."""
        check_is_fitted(self, "dual_coef_")
        rows = self.scales_[:, None, None] * self._source.rows(self, X)
        return finite_decision(_side_by_side([fit.decision(rows) for fit in self._fits]))

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        values = self.decision_function(X)
        return self.classes_[codes_of(values)]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read models of 0.2.0 too, which did not note which weights were learnt."""
        super().__setstate__(state)
        fill_in_parameters(self)
        if "dual_coef_" in state:
            origin = _origin(self.method_, self.weights_)
            self.__dict__.update({ATTRIBUTES[name]: value for name, value in origin.items()})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = isinstance(self.similarity, str)
        tags.input_tags.pairwise = tags.input_tags.three_d_array = given
        tags.input_tags.string = not given
        return tags


def _origin(method: str, weights: np.ndarray) -> dict[str, Any]:
    """Say whether the kernels were learnt; where they were not, all similarities count alike."""
    learnt = method in LEARNED
    return {
        "norm_name": f"none (method {method})",
        "learnt_kernels": np.full(weights.shape[-1], learnt),
        "weights_rule": "" if learnt else "all similarities count alike",
    }


def _side_by_side(values: list[np.ndarray]) -> np.ndarray:
    """Decision values of one problem, or of one per class."""
    return values[0] if len(values) == 1 else np.stack(values, axis=1)
