"""NoisyLabelMKLClassifier: when some of the labels are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ..banks import Bank
from ..crowd import METHODS as CROWD_METHODS
from ..crowd import CrowdLabels, aggregate, as_long
from ..losses import BudgetedHinge, Hinge, Loss, Squared, budget_from_noise_rate
from ..losses.corrected import CorrectedLogistic, CorrectedSquared
from ..norms import Fixed, Norm
from ._inputs import Training, bind
from ._mixtures import Mixture, kernel_groups, mixtures
from ._noise import NoiseEstimate, estimate_noise
from ._one_fit import TimeShares, one_fit
from ._ridge import leave_one_out
from .classifier import MKLClassifier

__all__ = ["NoisyLabelMKLClassifier"]

#: standard errors by which leave-one-out must prefer another mixture
BEYOND_DOUBT = 3.0
METHODS = ("auto", "stochastic", "trimmed", "ramp", "corrected")
CORRECTED = {"logistic": CorrectedLogistic, "squared": CorrectedSquared}


class NoisyLabelMKLClassifier(MKLClassifier):
    """Multiple kernel learning from labels of which some are wrong.

    Estimates how many labels are wrong and which, from leave-one-out predictions, and fits by a method that can live
    with them.  ``docs/noisy_labels.md`` says which method to use at which noise, and what none of them can do.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    method : {"auto", "stochastic", "trimmed", "ramp", "corrected"}, default="auto"
        ``auto``: squared loss on fixed, dense weights, C by closed-form leave-one-out: the most robust thing measured.
        All groups of kernels count alike (a group is the kernels that see equally many columns), unless leave-one-out
        finds another mixture better beyond doubt.
        ``stochastic``: StPMKL, the hinge loss of the worst samples under a budget.  ``trimmed``: the hinge loss of the
        best ``1 - noise_rate`` of the samples, which are chosen anew after every fit.  ``ramp``: the hinge loss cut off
        at 1.  ``corrected``: a loss whose expectation under noise is that of the clean labels.
    noise_rate : float, mapping or "estimate", default="estimate"
        Share of wrong labels in [0, 0.5); a mapping gives the share of each true class that is labelled otherwise.
    confidence : float, default=0.95
        For ``stochastic``: with what probability the bounds behind the budget hold.
    budget : float or None, default=None
        For ``stochastic``: the budget ``rho / n`` itself, instead of one from ``noise_rate`` and ``confidence``.
    exact_set : bool, default=False
        For ``stochastic``: the set of (10) in [YMJZY12] instead of its relaxation (11).
    crowd : {"majority", "dawid_skene"}, default="majority"
        How the labels of several annotators are joined, where ``fit`` gets them: the likeliest label counts, weighted
        by its probability.
    crowd_rounds : int, default=1
        With ``dawid_skene``: how often leave-one-out predictions join as one more annotator.
    loss : {"logistic", "squared"}, default="logistic"
        For ``corrected``; the other methods have a loss of their own.
    norm, C, solver, tol, fit_intercept, normalize, center, class_weight :
        As for ``MKLClassifier``; ``auto`` has its own norm and C.
    multi_class : {"ovr", "shared"}, default="ovr"
        A problem a class, or one set of kernel weights for all classes; each against the rest either way, because the
        methods for noise are those of two classes.
    max_rounds : int, default=20
        For ``trimmed`` and ``ramp``: most choices of samples.
    max_iter, max_seconds, storage, dtype, memory_budget, n_jobs, verbose :
        As for ``MKLClassifier``.

    Attributes
    ----------
    noise_rate_ : float
        Share of wrong labels that was used: as given, or estimated.
    noise_rate_interval_ : tuple of float
        Where the rate is, by the labels alone.  Where classes overlap, flips cannot be told from overlap without an
        assumption: the upper end is then a bound, and the lower end is below the estimate.
    class_noise_rates_ : array of shape (k,)
        Share of every true class that is labelled otherwise.
    label_quality_ : array of shape (n,)
        Probability that a training label is right; 1 is trusted.
    suspects_ : array of shape (n,)
        Training samples, the most suspicious label first.
    annotated_ : CrowdLabels
        What annotators agree on, where ``fit`` got several.
    picked_ : str
        What was fitted, in words.
    sample_share_ : array of shape (n,) or (n, k)
        For ``trimmed`` and ``ramp``: which samples the last fit stands on.
    objectives_ : list of float
        For ``trimmed`` and ``ramp``: the objective after every round; it never rises.
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

    # parameters of MKLClassifier that make no sense over several rounds
    warm_start, checkpoint, callback = False, None, None

    def __init__(
        self,
        kernels: Any = None,
        *,
        method: str = "auto",
        noise_rate: Any = "estimate",
        confidence: float = 0.95,
        budget: float | None = None,
        exact_set: bool = False,
        crowd: str = "majority",
        crowd_rounds: int = 1,
        loss: Any = "logistic",
        norm: Any = "l1",
        C: float = 1.0,
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        multi_class: str = "ovr",
        class_weight: Any = None,
        max_rounds: int = 20,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        storage: str = "auto",
        dtype: Any = "float64",
        memory_budget: int | float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernels,
            loss=loss,
            norm=norm,
            C=C,
            solver=solver,
            tol=tol,
            fit_intercept=fit_intercept,
            normalize=normalize,
            center=center,
            multi_class=multi_class,
            class_weight=class_weight,
            max_iter=max_iter,
            max_seconds=max_seconds,
            storage=storage,
            dtype=dtype,
            memory_budget=memory_budget,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.method = method
        self.noise_rate = noise_rate
        self.confidence = confidence
        self.budget = budget
        self.exact_set = exact_set
        self.crowd = crowd
        self.crowd_rounds = crowd_rounds
        self.max_rounds = max_rounds

    # ---- fitting --------------------------------------------------------------------------------------------

    @one_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NoisyLabelMKLClassifier:
        """Estimate the noise and fit.

        Parameters
        ----------
        X : samples
            As for ``MKLClassifier.fit``.
        y : array of shape (n,), or annotations of shape (n, annotators)
            Labels; or several annotators' labels, one column each, NaN, None or an empty text where there is none; or
            a table with the columns ``task`` (position of the sample), ``worker`` and ``label``.
        sample_weight : array of shape (n,), optional
            Factors of C by sample.

        Returns
        -------
        self
        """
        self._check_parameters()
        crowd = self._one_label(y)
        training, codes, weight = self._checked(X, y if crowd is None else crowd.labels, sample_weight)
        given = self._given_rates()
        bank, bound = bind(training, self, effective_n_jobs(self.n_jobs))
        mean = bank.combine(np.full(bank.m, 1.0 / bank.m))
        if crowd is not None and self.crowd == "dawid_skene":
            crowd, codes = self._ask_the_classifier(crowd, y, mean, weight)
        trusted = weight if crowd is None else weight * crowd.confidence
        self._keep_noise(estimate_noise(mean, codes, self.classes_.size, trusted), given)
        targets, weights, labels = self._problems(codes, trusted)
        self._losses = [
            self._loss_for(k, len(targets), y, w)
            for k, (y, w) in enumerate(zip(targets, weights, strict=True))
        ]
        if self.method == "auto":
            self._pick = self._best_mixture(bank, training, targets, trusted)
        try:
            if self.method in ("trimmed", "ramp"):
                self._fit_rounds(bank, bound, training, targets, weights, labels)
            else:
                self._fit_on(bank, bound, training, targets, weights, labels)
            self.picked_ = self._in_words()
        finally:
            for name in ("_losses", "_pick"):
                self.__dict__.pop(name, None)
        return self

    def _best_mixture(
        self, bank: Bank, training: Training, targets: list[np.ndarray], weight: np.ndarray
    ) -> tuple[Mixture, float]:
        """Groups of kernels alike, or what beats that beyond doubt; and C by leave-one-out, over all classes together.

        Noisy labels make the mixture of smallest error a lottery: choosing it freely costs more than it gains.
        """
        y = targets[0] if len(targets) == 1 else np.stack(targets, axis=1)
        choices = mixtures(kernel_groups(training.kernels, bank.m))
        found = [
            leave_one_out(bank.combine(one.weights), y, intercept=self.fit_intercept, weight=weight)
            for one in choices
        ]
        best = int(np.argmin([one.errors[one.best] for one in found]))
        usual = len(choices) - 1
        misses = [np.mean((y - one.predictions).reshape(len(y), -1) ** 2, axis=1) for one in found]
        better = (misses[usual] - misses[best])[weight > 0]
        doubt = float(np.std(better)) / np.sqrt(better.size)
        chosen = best if float(np.mean(better)) > BEYOND_DOUBT * doubt else usual
        return choices[chosen], found[chosen].C

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            from .._components import nearest

            raise ValueError(
                f"unknown method {self.method!r}.{nearest(str(self.method), list(METHODS))} "
                f"Methods: {', '.join(METHODS)}."
            )
        if self.crowd not in CROWD_METHODS:
            raise ValueError(f"crowd must be one of {', '.join(CROWD_METHODS)}, got {self.crowd!r}")
        if self.method == "corrected" and self.loss not in CORRECTED:
            raise ValueError(f"method='corrected' needs loss='logistic' or 'squared', got {self.loss!r}")
        if self.budget is not None and not 0.0 < self.budget <= 1.0:
            raise ValueError(f"budget must be in (0, 1], a share of the samples, got {self.budget!r}")
        for name, least in (("max_rounds", 1), ("crowd_rounds", 0)):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= least):
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
        if isinstance(self.noise_rate, str):
            if self.noise_rate != "estimate":
                raise ValueError(
                    f"noise_rate must be 'estimate' or a share in [0, 0.5), got {self.noise_rate!r}"
                )
        elif not isinstance(self.noise_rate, Mapping):
            _check_rate("noise_rate", self.noise_rate)

    def _one_label(self, y: Any) -> CrowdLabels | None:
        """What annotators agree on, where there are several."""
        self.__dict__.pop("annotated_", None)
        shape = np.asarray(y, dtype=object).shape
        if len(shape) != 2 or shape[1] == 1:
            return None
        self.annotated_ = aggregate(y, method=self.crowd)
        return self.annotated_

    def _ask_the_classifier(
        self, crowd: CrowdLabels, annotations: Any, mean: np.ndarray, weight: np.ndarray
    ) -> tuple[CrowdLabels, np.ndarray]:
        """Let leave-one-out predictions join as one more annotator, whose reliability is learnt like the others'."""
        import pandas as pd

        n = weight.size
        for _ in range(self.crowd_rounds):
            targets = np.where(crowd.labels[:, None] == crowd.classes, 1.0, -1.0)
            found = leave_one_out(
                mean, targets, intercept=self.fit_intercept, weight=weight * crowd.confidence
            )
            said = crowd.classes[np.argmax(found.predictions, axis=1)]
            votes = pd.DataFrame({"task": np.arange(n), "worker": "the classifier", "label": said})
            table = pd.concat([as_long(annotations), votes], ignore_index=True)
            crowd = aggregate(table, n, self.crowd)
        self.annotated_ = crowd
        self.classes_, codes = np.unique(crowd.labels, return_inverse=True)
        return crowd, codes

    def _given_rates(self) -> tuple[float, np.ndarray] | None:
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

    def _keep_noise(self, estimate: NoiseEstimate, given: tuple[float, np.ndarray] | None) -> None:
        self.noise_rate_interval_ = estimate.interval
        self.noise_rate_ = estimate.rate if given is None else given[0]
        self.class_noise_rates_ = estimate.class_rates if given is None else given[1]
        self.label_quality_ = estimate.quality
        self.suspects_ = np.argsort(estimate.quality, kind="stable")

    # ---- what each method minimises -------------------------------------------------------------------------

    def _loss(self) -> Loss:
        """A loss of the method's kind, for the checks before anything is known about the noise."""
        if self.method == "auto":
            return Squared()
        if self.method == "corrected":
            return CORRECTED[self.loss]()
        return BudgetedHinge() if self.method == "stochastic" else Hinge()

    def _loss_for(self, problem: int, problems: int, y: np.ndarray, weight: np.ndarray) -> Loss:
        """The loss of one problem, now that the noise is known."""
        if self.method == "stochastic":
            if self.budget is not None:
                return BudgetedHinge(self.budget)
            rate = min(self.noise_rate_, 0.499)
            return BudgetedHinge.from_noise_rate(len(y), rate, self.confidence, self.exact_set)
        if self.method != "corrected":
            return self._loss()
        rates = self.class_noise_rates_
        if y.ndim == 2:
            raise ValueError(
                "method='corrected' corrects one class against the rest at a time: with more than two classes use "
                "multi_class='ovr'"
            )
        if problems == 1 and rates.size == 2:
            pair = float(rates[1]), float(rates[0])
        else:  # one class against the rest: what leaves the others is shared out among all classes
            pair = float(rates[problem]), float(np.delete(rates, problem).mean() / (rates.size - 1))
        share = float(np.sum(weight * (y > 0)) / np.sum(weight))
        loss: Loss = CORRECTED[self.loss](*self._consistent(pair, share))
        loss.check()
        return loss

    def _consistent(self, pair: tuple[float, float], share: float) -> tuple[float, float]:
        """Rates that the labels allow: at least ``negative_rate`` of them are positive, ``positive_rate`` negative.

        Otherwise the corrected loss has no minimum.  Given rates that contradict the labels are refused; estimated
        ones are cut, and so that the labels keep some information.
        """
        positive, negative = pair
        if isinstance(self.noise_rate, str):
            positive, negative = min(positive, 0.9 * (1.0 - share)), min(negative, 0.9 * share)
            return min(positive, 0.45), min(negative, 0.45)
        if negative >= share or positive >= 1.0 - share:
            raise ValueError(
                f"noise_rate contradicts the labels: with a share of {negative:g} of the negative class labelled "
                f"positive and {positive:g} of the positive class labelled negative, the share of positive labels "
                f"would lie between {negative:g} and {1.0 - positive:g}, but it is {share:.3g}"
            )
        return pair

    def _problem_loss(self, loss: Loss, problem: int) -> Loss:
        return self._losses[problem]

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        if self.method == "auto":
            mixture, C = self._pick
            return Fixed(mixture.weights), C
        if self.method == "stochastic" and self.budget is None:
            factor = budget_from_noise_rate(bank.n, 0.0, self.confidence)[1]
            return norm, factor * float(self.C)
        return norm, float(self.C)

    def _in_words(self) -> str:
        if self.method == "auto":
            mixture, C = self._pick
            return f"squared loss on {mixture.name}, C = {C:.3g}, by leave-one-out"
        return f"{self.method} on norm {self.norm!r}, noise rate {self.noise_rate_:.3g}"

    # ---- samples chosen anew after every fit ----------------------------------------------------------------

    def _fit_rounds(
        self,
        bank: Bank,
        bound: Any,
        training: Training,
        targets: list[np.ndarray],
        weights: list[np.ndarray],
        labels: list[Any],
    ) -> None:
        """Alternate the choice of samples and a weighted fit; each lowers the same objective."""
        shares = [np.ones_like(weight) for weight in weights]
        self.objectives_: list[float] = []
        for turn in range(1, self.max_rounds + 1):
            self._fit_on(
                bank, bound, training, targets, [w * s for w, s in zip(weights, shares, strict=True)], labels
            )
            losses = self._training_losses(bank, targets)
            chosen = [self._chosen(loss, w) for loss, w in zip(losses, weights, strict=True)]
            left_out = sum(
                float(np.sum(w * (1.0 - s))) for w, s in zip(weights, shares, strict=True)
            )  # a sample that the ramp leaves out costs its full height
            fine = float(self.C) * left_out if self.method == "ramp" else 0.0
            self.objectives_.append(self.certificate_.primal + fine)
            same = all(np.array_equal(new, old) for new, old in zip(chosen, shares, strict=True))
            # samples of one class teach nothing: the fit on both is kept
            kept = (y[(w * s) > 0] for y, w, s in zip(targets, weights, chosen, strict=True))
            if same or turn == self.max_rounds or any(np.unique(y, axis=0).shape[0] < 2 for y in kept):
                break
            if TimeShares(self._stop(), 1).used_up:
                break
            shares = chosen
        self.sample_share_ = shares[0] if len(shares) == 1 else np.stack(shares, axis=1)

    def _training_losses(self, bank: Bank, targets: list[np.ndarray]) -> list[np.ndarray]:
        """Hinge losses of the training samples, one array a problem."""
        several = len(targets) > 1
        weights = self.weights_ if several else [self.weights_]
        betas = self.dual_coef_.T if several else [self.dual_coef_]
        shifts = self.intercept_ if several else [self.intercept_]
        out = []
        for y, d, beta, b in zip(targets, weights, betas, shifts, strict=True):
            losses = np.maximum(0.0, 1.0 - y * (bank.mix_product(d, beta) + b))
            out.append(losses if losses.ndim == 1 else losses.sum(axis=1))
        return out

    def _chosen(self, losses: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Samples to stand on: those below the ramp's height, or the best share of the weight."""
        if self.method == "ramp":
            return (losses < 1.0).astype(float)
        order = np.argsort(losses, kind="stable")
        before = np.cumsum(weight[order]) - weight[order]
        share = np.zeros_like(weight)
        limit = (1.0 - self.noise_rate_) * float(weight.sum())
        share[order] = (before < limit * (1.0 - 1e-12)).astype(float)
        return share


def _check_rate(name: str, rate: Any) -> None:
    number = isinstance(rate, int | float | np.integer | np.floating) and not isinstance(rate, bool)
    if not (number and 0.0 <= rate < 0.5):
        raise ValueError(
            f"{name} must be a share in [0, 0.5), got {rate!r}: from one half on, labels say nothing or the opposite"
        )
