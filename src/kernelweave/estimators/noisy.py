"""NoisyLabelMKLClassifier: when some of the labels are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from .._components import check_choice, check_switch, check_whole, is_number, nearest, store_parameters
from .._estimating import TimeShares, one_fit, warn_of_findings
from .._fitted import FittedModel, set_optional
from .._typing import Array
from ..crowd import METHODS as CROWD_METHODS
from ..crowd import CrowdLabels, aggregate, as_long, disagreement
from ..losses import BudgetedHinge, Hinge, Loss, Squared, budget_from_noise_rate
from ..norms import Fixed
from ._bind import Bound, bind
from ._noise import (
    CORRECTED,
    TRUSTED,
    NoiseEstimate,
    calibrated,
    confident_joint,
    corrected_loss,
    dense_mixture,
    estimate_noise,
    mixtures,
    suspected,
)
from ._parameters import (
    Bytes,
    ClassWeights,
    Codes,
    Column,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    Samples,
    SolverLike,
)
from ._plan import Plan, Task, refuse_fixed_parts
from .baselines import leave_one_out
from .classifier import Labelled, MKLClassifier

METHODS = ("auto", "confident", "stochastic", "trimmed", "ramp", "corrected")


class NoisyLabelMKLClassifier(MKLClassifier):
    """Multiple kernel learning from labels of which some are wrong.

    Estimates how many labels are wrong and which, from leave-one-out predictions (and the disagreement of annotators),
    and fits by a robust method.  ``docs/noisy_labels.md`` says which one to use when, and what none of them can do.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    method : {"auto", "confident", "stochastic", "trimmed", "ramp", "corrected"}, default="auto"
        ``auto``: squared loss on fixed, dense weights, C by closed-form leave-one-out: the most robust method measured.
        All groups of kernels (those that see equally many columns) count alike, unless leave-one-out finds another
        mixture better beyond doubt.  ``confident``: the hinge loss, with suspected labels at a part of their weight or
        none: those that leave-one-out predictions contradict with confidence (the confident joint of Northcutt et al.
        2021).  ``stochastic``: StPMKL, the hinge loss of the worst samples under a budget.  ``trimmed``: the hinge loss
        of the best ``1 - noise_rate`` of the samples, chosen again after every fit.  ``ramp``: the hinge loss cut off
        at 1.  ``corrected``: a loss whose expectation under noise is that of the clean labels.
    noise_rate : float, mapping or "estimate", default="estimate"
        Share of wrong labels in [0, 0.5); a mapping gives the share of each true class that is labelled otherwise.
    suspect_weight : float, optional
        For ``auto`` and ``confident``: how much suspected labels still count; 0 leaves them out, 1 is no filter, which
        is the default of ``auto``; that of ``confident`` is 0.5.  ``auto`` does not filter where predictions contradict
        more than a third of all labels.  At most half of the labels of a class are suspected, none of a class of fewer
        than five samples, and no larger share of all than ``noise_rate``, where that is a number.
    confidence : float, default=0.95
        For ``stochastic``: with what probability the bounds behind the budget hold.
    budget : float or None, default=None
        For ``stochastic``: the budget ``rho / n`` itself, instead of one from ``noise_rate`` and ``confidence``.
    exact_set : bool, default=False
        For ``stochastic``: the set of (10) in [YMJZY12] instead of its relaxation (11).
    crowd : {"majority", "dawid_skene"}, default="majority"
        How the labels of several annotators are joined: the likeliest label counts, weighted by its probability.
    crowd_rounds : int, default=1
        With ``dawid_skene``: how often leave-one-out predictions join as one more annotator.
    loss : {"logistic", "squared"}, default="logistic"
        For ``corrected``; the other methods have a loss of their own.
    norm, C, fit_intercept, normalize, center, missing, class_weight :
        As for ``MKLClassifier``; ``auto`` has its own norm and C.  Views are completed before anything is said of the
        labels, and without them.
    multi_class : {"ovr", "shared"}, default="ovr"
        One problem per class, or one set of kernel weights for all classes; each against the rest either way, because
        the methods for noise are those of two classes.
    max_rounds : int, default=20
        For ``trimmed`` and ``ramp``: most choices of samples.
    solver, tol, max_iter, max_seconds, verbose, random_state, storage, dtype, memory_budget, n_jobs :
        As for ``MKLClassifier``.

    Attributes
    ----------
    noise_rate_ : float
        Share of wrong labels that was used: as given, or estimated.
    noise_rate_interval_ : tuple of float
        Where the rate is: by the disagreement of annotators, else by the labels under an assumption they cannot test.
    noise_rate_basis_ : str
        What the estimate and the interval rest on, in words; among ``findings_`` where the rate was estimated.
    class_noise_rates_ : array of shape (k,)
        Share of every true class that is labelled otherwise.
    label_quality_ : array of shape (n,)
        Probability that a training label is right; 1 is trusted.
    suspects_ : array of shape (n,)
        Training samples, the most suspicious label first.
    annotated_ : CrowdLabels
        What annotators agree on, where ``fit`` got several.
    confident_joint_ : array of shape (k, k)
        Where suspected labels count less: share of the samples with a label (row) that belong to a class (column), by
        predictions that are confident; what is off the diagonal is a second estimate of the wrong labels.
    picked_ : str
        What was fitted, in words.
    sample_share_ : array of shape (n,) or (n, k)
        How much each sample counts; for ``trimmed`` and ``ramp`` which samples the last fit stands on.
    objectives_ : list of float
        For ``trimmed`` and ``ramp``: the objective after every round; it never rises.
    decision_ : Decision
        As for ``MKLClassifier``.
    certificate_ : Certificate
        Of the convex problem that was solved last; for ``trimmed`` and ``ramp`` that is the inner one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> rng = np.random.default_rng(0)
    >>> noisy = np.where(rng.random(y.size) < 0.2, 1 - y, y)
    >>> clf = NoisyLabelMKLClassifier().fit(scale(X), noisy)
    >>> bool(abs(clf.noise_rate_ - 0.2) < 0.05)
    True
    >>> bool((noisy != y)[clf.suspects_[:50]].mean() > 0.9)  # where to look for wrong labels first
    True
    """

    method: str
    noise_rate: float | Mapping[Any, float] | str
    suspect_weight: float | None
    confidence: float
    budget: float | None
    exact_set: bool
    crowd: str
    crowd_rounds: int
    max_rounds: int

    fits_subsets = False
    _takes_labels = False

    @property
    def _weights_rule(self) -> str:  # type: ignore[override]
        return "the method for wrong labels takes a fixed mixture of them" if self.method == "auto" else ""

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        method: str = "auto",
        noise_rate: float | Mapping[Any, float] | str = "estimate",
        suspect_weight: float | None = None,
        confidence: float = 0.95,
        budget: float | None = None,
        exact_set: bool = False,
        crowd: str = "majority",
        crowd_rounds: int = 1,
        loss: LossLike = "logistic",
        norm: NormLike = "l1",
        C: float = 1.0,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        missing: str = "error",
        multi_class: str = "ovr",
        class_weight: ClassWeights = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        max_rounds: int = 20,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        verbose: int = 0,
        random_state: RandomSeed = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None) -> Self:
        """Estimate the noise and fit.

        Parameters
        ----------
        X, sample_weight :
            As for ``MKLClassifier.fit``.
        y : array of shape (n,), or annotations of shape (n, annotators)
            Labels; or several annotators' labels, one column each, NaN, None or an empty text where there is none; or
            a table with the columns ``task`` (position of the sample), ``worker`` and ``label``.

        Returns
        -------
        self
        """
        self._check_parameters()
        crowd = rates_of_crowd = None
        for name in ("annotated_", "sample_share_", "objectives_", "confident_joint_"):
            set_optional(self, name, None)
        shape = np.asarray(y, dtype=object).shape
        if len(shape) == 2 and shape[1] > 1:  # several annotators
            crowd = self.annotated_ = aggregate(y, method=self.crowd)
        labelled = self._checked(X, y if crowd is None else crowd.labels, sample_weight)
        given = self._given_rates()
        bound = bind(labelled.training, labelled.plan.bank)
        bank, kernels = bound.bank, labelled.training.kernels
        mean = bank.combine(np.full(bank.m, 1.0 / bank.m))
        if crowd is not None:
            if self.crowd == "dawid_skene":
                crowd, codes = self._with_votes_of_classifier(crowd, y, mean, labelled.weight)
                labelled = replace(labelled, codes=codes, classes=self.classes_)
            labelled = replace(labelled, weight=labelled.weight * crowd.confidence)
            rates_of_crowd = disagreement(y, crowd.labels)
            if rates_of_crowd is not None and not np.array_equal(crowd.classes, self.classes_):
                known = rates_of_crowd.class_rates[np.isin(crowd.classes, self.classes_)]
                rates_of_crowd = replace(rates_of_crowd, class_rates=known)
        estimate = estimate_noise(mean, labelled.codes, self.classes_.size, labelled.weight, rates_of_crowd)
        self.noise_rate_interval_, self.noise_rate_basis_ = estimate.interval, estimate.basis
        self.noise_rate_, self.class_noise_rates_ = given or (estimate.rate, estimate.class_rates)
        self.label_quality_ = estimate.quality
        self.suspects_ = np.argsort(estimate.quality, kind="stable")
        shares, how_suspects_count = self._filtered(estimate, labelled, bound, given)
        if shares is not None:
            self.sample_share_ = shares
            labelled = replace(labelled, weight=labelled.weight * shares)
        tasks = labelled.tasks()
        self.picked_ = f"{self.method} on norm {self.norm!r}, noise rate {self.noise_rate_:.3g}"
        if self.method == "auto":
            refuse_fixed_parts(tasks[0].norm, bank.m, "this method for wrong labels")
            name, weights, left_out = dense_mixture(tasks, bank, kernels, bool(self.fit_intercept))
            tasks = [replace(task, norm=Fixed(weights), C=left_out.C) for task in tasks]
            self.picked_ = f"squared loss on {name}, C = {left_out.C:.3g}, by leave-one-out"
            self.picked_ += f"; {how_suspects_count}" if how_suspects_count else ""
        elif self.method == "confident":
            self.picked_ = f"hinge loss on norm {self.norm!r}; {how_suspects_count}"
        elif self.method == "stochastic" and self.budget is not None:
            tasks = [replace(task, loss=BudgetedHinge(self.budget)) for task in tasks]
        elif self.method == "stochastic":
            rate = min(self.noise_rate_, 0.499)
            loss = BudgetedHinge.from_noise_rate(bank.n, rate, self.confidence, self.exact_set)
            factor = budget_from_noise_rate(bank.n, 0.0, self.confidence)[1]
            tasks = [replace(task, loss=loss, C=factor * task.C) for task in tasks]
        elif self.method == "corrected":
            rates = self.class_noise_rates_, given is not None
            tasks = [
                replace(task, loss=corrected_loss(str(self.loss), k, task, *rates))
                for k, task in enumerate(tasks)
            ]
        solve = self._fit_rounds if self.method in ("trimmed", "ramp") else self._solve
        fitted = solve(bound, labelled.plan, tasks)
        warn_of_findings(fitted.findings)
        basis = (self.noise_rate_basis_,) if given is None else ()
        replace(fitted, findings=(*bound.findings, *fitted.findings, *basis)).write(self)
        return self

    def _loss(self, n_classes: int) -> Loss:
        if self.method == "corrected":
            return CORRECTED[str(self.loss)]()
        return {"auto": Squared, "stochastic": BudgetedHinge}.get(self.method, Hinge)()

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"unknown method {self.method!r}.{nearest(str(self.method), list(METHODS))} "
                f"Methods: {', '.join(METHODS)}."
            )
        check_choice("crowd", self.crowd, CROWD_METHODS)
        if self.method == "corrected" and self.loss not in CORRECTED:
            raise ValueError(f"method='corrected' needs loss='logistic' or 'squared', got {self.loss!r}")
        if self.budget is not None and not 0.0 < self.budget <= 1.0:
            raise ValueError(f"budget must be in (0, 1], a share of the samples, got {self.budget!r}")
        count = 1.0 if self.suspect_weight is None else self.suspect_weight
        if not (is_number(count) and 0.0 <= count <= 1.0):
            raise ValueError(
                f"suspect_weight must be a share in [0, 1]: 0 leaves suspected labels out, 1 is no filter; got "
                f"{self.suspect_weight!r}"
            )
        check_switch("exact_set", self.exact_set)
        check_whole("max_rounds", self.max_rounds)
        check_whole("crowd_rounds", self.crowd_rounds, 0)
        if isinstance(self.noise_rate, str):
            if self.noise_rate != "estimate":
                raise ValueError(
                    f"noise_rate must be 'estimate' or a share in [0, 0.5), got {self.noise_rate!r}"
                )
        elif not isinstance(self.noise_rate, Mapping):
            _check_rate("noise_rate", self.noise_rate)

    def _with_votes_of_classifier(
        self, crowd: CrowdLabels, annotations: Column, mean: Array, weight: Array
    ) -> tuple[CrowdLabels, Codes]:
        """Let leave-one-out predictions join as one more annotator, whose reliability is learnt like the others'."""
        import pandas as pd

        n = weight.size
        for _ in range(self.crowd_rounds):
            targets = np.where(crowd.labels[:, None] == crowd.classes, 1.0, -1.0)
            left_out = leave_one_out(
                mean, targets, intercept=self.fit_intercept, weight=weight * crowd.confidence
            )
            said = crowd.classes[np.argmax(left_out.predictions, axis=1)]
            votes = pd.DataFrame({"task": np.arange(n), "worker": "the classifier", "label": said})
            table = pd.concat([as_long(annotations), votes], ignore_index=True)
            crowd = aggregate(table, n, self.crowd)
        self.annotated_ = crowd
        self.classes_, codes = np.unique(crowd.labels, return_inverse=True)
        return crowd, codes

    def _given_rates(self) -> tuple[float, Array] | None:
        """Rate and class rates as given, None where they are to be estimated."""
        if isinstance(self.noise_rate, str):
            return None
        if not isinstance(self.noise_rate, Mapping):
            rate = float(self.noise_rate)
            return rate, np.full(self.classes_.size, rate)
        unknown = [label for label in self.noise_rate if label not in set(self.classes_.tolist())]
        if unknown:
            raise ValueError(
                f"noise_rate names the class {unknown[0]!r}, which y does not have: its classes are "
                f"{self.classes_.tolist()}"
            )
        rates = np.zeros(self.classes_.size)
        for k, label in enumerate(self.classes_.tolist()):
            rates[k] = self.noise_rate.get(label, 0.0)
            _check_rate(f"noise_rate of class {label!r}", rates[k])
        return float(rates.mean()), rates

    def _filtered(
        self, estimate: NoiseEstimate, labelled: Labelled, bound: Bound, given: tuple[float, Array] | None
    ) -> tuple[Array | None, str]:
        """Return how much every sample counts, None where all count alike, and what becomes of suspected labels.

        Suspected are labels that leave-one-out predictions on the mixture that ``auto`` takes contradict with
        confidence.  Where more than a third of all labels are contradicted, ``auto`` does not trust predictions.
        """
        count = self.suspect_weight
        if count is None:
            count = 0.5 if self.method == "confident" else 1.0
        if not (self.method == "confident" or (self.method == "auto" and count != 1)):
            return None, ""
        codes, counted = labelled.codes, labelled.weight > 0
        probabilities, contradicted = estimate.probabilities, estimate.contradicted
        kernels = labelled.training.kernels
        if len(mixtures(kernels, bound.bank.m)) > 1:  # else that is the mean kernel
            _, _, left_out = dense_mixture(labelled.tasks(), bound.bank, kernels, bool(self.fit_intercept))
            scores = left_out.predictions
            scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
            probabilities = calibrated(scores, codes)
            contradicted = float(np.mean((np.argmax(scores, axis=1) != codes)[counted]))
        self.confident_joint_, likely = confident_joint(probabilities, codes, counted)
        if self.method == "auto" and contradicted > TRUSTED:
            words = f"all labels count alike, because predictions contradict {contradicted:.0%} of them"
            return np.ones(codes.size), words
        suspects = suspected(probabilities, likely, codes, counted, None if given is None else given[0])
        number = int(np.count_nonzero(suspects))
        words = f"{number} suspected labels " + ("left out" if count == 0 else f"count {count:g}")
        return np.where(suspects, count, 1.0), words if count != 1 else "all labels count alike"

    def _fit_rounds(self, bound: Bound, plan: Plan, tasks: list[Task]) -> FittedModel:
        """Alternate the choice of samples and a weighted fit; each lowers the same objective.

        ``ramp`` keeps samples whose hinge loss is below 1, ``trimmed`` the best share ``1 - noise_rate``.
        """
        shares = [np.ones_like(task.weight) for task in tasks]
        self.objectives_: list[float] = []
        for turn in range(1, self.max_rounds + 1):
            kept = [
                replace(t, weight=t.weight * share, given=("with the samples that were chosen last",))
                for t, share in zip(tasks, shares, strict=True)
            ]
            fitted = self._solve(bound, plan, kept)
            points: Any = [(fitted.weights, fitted.dual_coef, fitted.intercept)]
            if len(tasks) > 1:
                points = zip(fitted.weights, fitted.dual_coef.T, np.asarray(fitted.intercept), strict=True)
            chosen, left_out = [], 0.0
            for task, (d, beta, b), share in zip(tasks, points, shares, strict=True):
                losses = np.maximum(0.0, 1.0 - task.y * (bound.bank.mix_product(d, beta) + b))
                losses = losses if losses.ndim == 1 else losses.sum(axis=1)
                if self.method == "ramp":
                    chosen.append((losses < 1.0).astype(float))
                    # a sample that the ramp leaves out costs its full height
                    left_out += float(np.sum(task.weight * (1.0 - share)))
                else:
                    order = np.argsort(losses, kind="stable")
                    before = np.cumsum(task.weight[order]) - task.weight[order]
                    limit = (1.0 - self.noise_rate_) * float(task.weight.sum())
                    best = np.zeros_like(task.weight)
                    best[order] = (before < limit * (1.0 - 1e-12)).astype(float)
                    chosen.append(best)
            assert fitted.certificate is not None
            self.objectives_.append(fitted.certificate.primal + float(self.C) * left_out)
            same = all(np.array_equal(new, old) for new, old in zip(chosen, shares, strict=True))
            # samples of one class teach nothing: the fit on both is kept
            next_targets = [t.y[(t.weight * share) > 0] for t, share in zip(tasks, chosen, strict=True)]
            poor = any(np.unique(y, axis=0).shape[0] < 2 for y in next_targets)
            if same or turn == self.max_rounds or poor or TimeShares(plan.stop, 1).used_up:
                break
            shares = chosen
        self.sample_share_ = shares[0] if len(shares) == 1 else np.stack(shares, axis=1)
        return fitted


def _check_rate(name: str, rate: Any) -> None:
    if not (is_number(rate) and 0.0 <= rate < 0.5):
        raise ValueError(
            f"{name} must be a share in [0, 0.5), got {rate!r}: from one half on, labels say nothing or the opposite"
        )
