"""Options of ``kernelweave fit``: which do not go together, and the estimator they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from click import UsageError

from .._components import nearest
from ._survival import check_survival, survival_estimator
from ._tables import Format
from ._views import always_view, kernel_names, views_of_objects, views_of_options


@dataclass(frozen=True)
class Options:
    """Options of ``kernelweave fit``; None where one was not given."""

    data: Path
    target: str
    views_file: Path | None = None
    views: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    kernels: str | None = None
    gram: tuple[Path, ...] = ()
    C: str | None = None
    norm: str | None = None
    norms: tuple[str, ...] = ()
    loss: str | None = None
    scoring: str | None = None
    class_weight: str | None = None
    noise_rate: str | None = None
    novelty: float | None = None
    time: str | None = None
    event: str | None = None
    event_value: str | None = None
    strata: str | None = None
    always: str | None = None
    task: str = "auto"
    drop: tuple[str, ...] = ()
    identity: str | None = None
    fold_groups: str | None = None
    folds: int = 5
    tol: float = 1e-3
    verbose: int = 0
    missing: str = "error"
    gmt: Path | None = None
    groups: Path | None = None
    min_size: int = 1
    pairs: Path | None = None
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    left_id: str | None = None
    right_id: str | None = None
    left_gram: tuple[Path, ...] = ()
    right_gram: tuple[Path, ...] = ()
    left_kernels: str | None = None
    right_kernels: str | None = None
    setting: str | None = None
    form: Format = field(default_factory=Format)

    @property
    def chooses(self) -> bool:
        """Whether C, or the norm, is chosen by cross-validation."""
        return (self.noise_rate, self.novelty) == (None, None) and (
            self.C in (None, "cv") or bool(self.norms)
        )

    @property
    def survival(self) -> bool:
        """Whether times to an event are learnt."""
        return any((self.time, self.event, self.event_value, self.strata))

    @property
    def targets(self) -> dict[str, str]:
        """Columns of what is learnt, by the options that name them."""
        given = {"--target": self.target, "--time": self.time, "--event": self.event}
        return {option: column for option, column in given.items() if column}

    @property
    def beside(self) -> dict[str, str]:
        """Other columns that are not learnt from, by the options that name them."""
        given = {"--id": self.identity, "--fold-groups": self.fold_groups, "--strata": self.strata}
        return {option: column for option, column in given.items() if column}

    @property
    def tried_norms(self) -> list[Any]:
        """The norms to choose among."""
        words = [word for text in self.norms for word in ([text] if ":" in text else text.split(","))]
        return [norm_of(word.strip(), "--norms") for word in words if word.strip()]


def check_options(options: Options) -> None:
    """Refuse, as a wrong command, options that contradict each other or that would be ignored."""
    if options.survival:
        check_survival(options)
    elif options.novelty is not None:
        _check_novelty(options, options.novelty)
    elif not options.target:
        raise UsageError("Missing option '--target'.")
    _check_columns(options)
    _check_kernels(options)
    if options.missing != "error" and not (options.views or options.views_file or options.objects):
        raise UsageError("--missing is about views: name them with --view or --views")
    if options.min_size != 1 and options.gmt is None and options.groups is None:
        raise UsageError("--min-size is about the groups of --gmt or --groups")
    if options.noise_rate is not None:
        _check_noise(options)
    if options.norm is not None and options.norms:
        raise UsageError("--norm fixes the norm and --norms chooses it: give one of them")
    if options.scoring is not None:
        from sklearn.metrics import get_scorer_names

        names = get_scorer_names()
        if not options.survival and options.scoring not in names:
            raise UsageError(
                "--scoring takes a name of scikit-learn (balanced_accuracy, roc_auc, r2, ...), got "
                f"{options.scoring!r}.{nearest(options.scoring, names)}"
            )
        if not options.chooses:
            raise UsageError(
                "--scoring says how C is chosen, but --C fixes it: remove --C, or choose a norm with --norms"
            )
    if options.C not in (None, "cv") and not number_of("--C", str(options.C)) > 0:
        raise UsageError(f"--C takes a number > 0, or 'cv', got {options.C!r}")
    if not 0 < options.tol < math.inf:
        raise UsageError(f"--tol takes a number > 0, got {options.tol:g}")
    if options.norm is not None:
        norm_of(options.norm, "--norm")
    _ = options.tried_norms
    if options.loss is not None:
        from ..losses import registry

        try:
            registry[options.loss]
        except ValueError as error:
            raise UsageError(f"--loss: {error}") from None
    if options.class_weight is not None:
        class_weights(options.class_weight)


def _check_columns(options: Options) -> None:
    """Refuse columns that are given two parts to play, and views that name one which is not learnt from."""
    roles: dict[str, str] = {}
    for option, column in options.targets.items():
        if column in roles:
            raise UsageError(f"{option} and {roles[column]} are both {column!r}: give two columns")
        roles[column] = option
    learnt = dict(roles)
    for option, column in options.beside.items():
        if column in learnt:
            raise UsageError(
                f"{option} and {learnt[column]} are both {column!r}: what is learnt is one column"
            )
        roles[column] = option
    for column in options.drop:
        if column in learnt:
            raise UsageError(
                f"--drop {column!r} is the column of {learnt[column]}: what is learnt cannot be left out"
            )
        if column in roles:
            raise UsageError(
                f"--drop {column!r} is the column of {roles[column]}, which is not learnt from anyway: remove "
                "--drop"
            )
    roles |= dict.fromkeys(options.drop, "--drop")
    always = [] if options.always is None else [always_view(options.always)]
    for view in [*views_of_options(options.views), *views_of_objects(options.objects), *always]:
        for column in view.columns:
            if column in roles:
                named = "--always" if view.always else f"--view {view.name}"
                raise UsageError(
                    f"{named} names {column!r}, the column of {roles[column]}, which is not learnt from: "
                    "leave it out of the view"
                )


def _check_kernels(options: Options) -> None:
    """Refuse two options that say what the kernels are; kernels by name go on every view."""
    given = {
        "--views": options.views_file, "--view": options.views, "--kernels": options.kernels,
        "--gram": options.gram, "--gmt": options.gmt, "--groups": options.groups,
    }  # fmt: skip
    names = [name for name, value in given.items() if value]
    if names == ["--view", "--kernels"]:
        # a preset, or the default, is for all columns
        if not named_kernels(str(options.kernels)):
            raise UsageError(
                f"--view and --kernels {options.kernels} both say what the kernels are: give one of them, or kernels "
                "by name (--kernels linear,gaussian), which every view then gets"
            )
    elif len(names) > 1:
        raise UsageError(f"{names[0]} and {names[1]} both say what the kernels are: give one of them")
    elif options.kernels is not None and not named_kernels(options.kernels) and options.objects:
        raise UsageError(
            f"--objects and --kernels {options.kernels} both say what the kernels are: give kernels by name "
            "(--kernels linear,gaussian), which the other columns then get"
        )
    if options.always and (options.gram or (options.kernels and not named_kernels(options.kernels))):
        which = "--gram" if options.gram else f"--kernels {options.kernels}"
        raise UsageError(
            f"--always and {which} both say what the kernels are: --always goes with --view, --gmt, --groups and "
            "kernels by name"
        )
    if options.objects and (other := next((n for n in names if n not in ("--view", "--kernels")), None)):
        raise UsageError(f"--objects and {other} both say what the kernels are: give one of them")


def _check_novelty(options: Options, nu: float) -> None:
    """Refuse what MKLOneClass would ignore."""
    ignored = {
        "--target": options.target, "--C": options.C, "--norms": options.norms, "--loss": options.loss,
        "--scoring": options.scoring, "--class-weight": options.class_weight, "--noise-rate": options.noise_rate,
        "--fold-groups": options.fold_groups, "--task": options.task != "auto",
    }  # fmt: skip
    if option := next((option for option, value in ignored.items() if value), None):
        remedy = "--drop its column" if option == "--target" else f"remove {option}"
        raise UsageError(
            f"--novelty and {option} do not go together: what is usual is learnt without targets and folds; {remedy}"
        )
    if not 0.0 < nu <= 1.0:
        raise UsageError(f"--novelty is a share in (0, 1], got {nu:g}")


def _check_noise(options: Options) -> None:
    """Refuse what NoisyLabelMKLClassifier would ignore."""
    ignored = {
        "--C": options.C, "--norm": options.norm, "--norms": options.norms, "--loss": options.loss,
        "--scoring": options.scoring,
    }  # fmt: skip
    if option := next((option for option, value in ignored.items() if value), None):
        raise UsageError(
            f"--noise-rate and {option} do not go together: the method for noisy labels has its own C, norm and loss, "
            f"and would not look at {option}"
        )
    if options.missing != "error":
        raise UsageError(
            "--noise-rate and --missing do not go together: complete or leave out one of the two"
        )
    if options.noise_rate != "estimate":
        rate = number_of("--noise-rate", str(options.noise_rate))
        if not 0 <= rate < 0.5:
            raise UsageError(f"--noise-rate is a share in [0, 0.5), or 'estimate', got {rate:g}")


def named_kernels(text: str) -> tuple[str, ...]:
    """Return the kernels that are given by name, separated by commas; nothing for a preset.

    >>> named_kernels("linear,rbf"), named_kernels("smkl")
    (('linear', 'gaussian'), ())
    """
    from .. import kernels as kw
    from ..kernels.papers import OTHER_WORDS

    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    known = kernel_names()
    names = tuple(OTHER_WORDS.get(word, word) for word in words)
    if names and all(name in known for name in names):
        return names
    presets = ("default", *kw.presets())
    if len(words) == 1 and words[0] in presets:
        return ()
    wrong = next((word for word, name in zip(words, names, strict=True) if name not in known), text)
    raise UsageError(
        f"--kernels takes kernels by name, separated by commas ({', '.join(known)}; rbf is gaussian, poly is "
        f"polynomial), or one of {', '.join(presets)}; got {wrong!r}.{nearest(wrong, [*known, *presets])}"
    )


def number_of(option: str, text: str) -> float:
    """Return a finite number, or refuse the command."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{option} takes a number, got {text!r}")
    return number


def norm_of(text: str, option: str) -> Any:
    """Return a number, a name, or a norm where parameters follow the name."""
    from ..norms import make_norm, norm_from_text

    try:
        if ":" in text:
            return norm_from_text(text)
        try:
            norm: Any = float(text)
        except ValueError:
            norm = text
        make_norm(norm)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
    return norm


def class_weights(text: str, y: Any = None) -> Any:
    """Return ``balanced``, or a weight for every class that is named, with the labels as the targets have them.

    >>> class_weights("balanced"), class_weights("sick=3,well=1")
    ('balanced', {'sick': 3.0, 'well': 1.0})
    """
    if text == "balanced":
        return text
    weights = {}
    for part in text.split(","):
        label, equals, value = part.rpartition("=")
        if not (equals and label.strip()):
            raise UsageError(
                f"--class-weight takes 'balanced' or CLASS=WEIGHT,CLASS=WEIGHT,..., got {text!r}"
            )
        weights[label.strip()] = number_of("--class-weight", value)
        if weights[label.strip()] <= 0:
            raise UsageError(f"--class-weight takes weights > 0, got {part.strip()!r}")
    labels = {label: label for label in weights}
    if y is not None:
        labels = {str(label): label for label in np.unique(y).tolist()}
    unknown = [label for label in weights if label not in labels]
    if unknown:
        raise ValueError(
            f"--class-weight names a class {unknown[0]!r}, but the target has {', '.join(labels)}"
        )
    return {labels[label]: weight for label, weight in weights.items()}


def estimator_for(kernels: Any, task: str, options: Options, y: Any, groups: Any) -> Any:
    """Return the estimator that the options ask for; what does not go with the targets is a ValueError."""
    import kernelweave as kw

    classify = task == "classification"
    settings: dict[str, Any] = {"tol": options.tol, "verbose": options.verbose}
    if options.novelty is not None:
        if options.norm is not None:
            settings["norm"] = norm_of(options.norm, "--norm")
        return kw.MKLOneClass(kernels, nu=options.novelty, missing=options.missing, **settings)
    if options.survival:
        settings |= {"missing": options.missing}
        settings |= {} if options.norm is None else {"norm": norm_of(options.norm, "--norm")}
        settings |= {} if options.loss is None else {"loss": options.loss}
        return survival_estimator(kernels, options, y, groups, settings)
    if options.noise_rate is not None and not classify:
        raise ValueError("--noise-rate is about wrong labels: the target here is a number")
    if options.norm is not None:
        settings["norm"] = norm_of(options.norm, "--norm")
    if options.loss is not None:
        settings["loss"] = options.loss
    if options.class_weight is not None and not classify:
        raise ValueError("--class-weight is about classes: the target here is a number")
    if options.class_weight is not None:
        settings["class_weight"] = class_weights(options.class_weight, y)
    if options.noise_rate is not None:
        rate: Any = options.noise_rate
        rate = rate if rate == "estimate" else number_of("--noise-rate", rate)
        return kw.NoisyLabelMKLClassifier(kernels, noise_rate=rate, **settings)
    settings["missing"] = options.missing
    fixed = None if options.C in (None, "cv") else number_of("--C", str(options.C))
    if not options.chooses:
        settings["C"] = fixed
        return (kw.MKLClassifier if classify else kw.MKLRegressor)(kernels, **settings)
    settings |= {"cv": _splitter(y, classify, options.folds, groups), "scoring": options.scoring}
    settings["norms"] = options.tried_norms or None
    if fixed is not None:
        settings["Cs"] = [fixed]
    if classify:
        return kw.MKLClassifierCV(kernels, **settings)
    return kw.MKLRegressorCV(kernels, center=False, **settings)


def score_of_guessing(options: Options, task: str, y: Any) -> float:
    """Return what the most frequent class, or the mean, scores; where a score cannot be computed at all, raise."""
    import warnings

    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.metrics import get_scorer

    nothing = np.zeros((len(y), 1))
    name, guess = options.scoring, DummyClassifier() if task == "classification" else DummyRegressor()
    if name is None:
        return float(guess.fit(nothing, y).score(nothing, y))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(get_scorer(name)(guess.fit(nothing, y), nothing, y))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"--scoring {name} does not go with this target ({task}): {error}") from None


def _splitter(y: Any, classify: bool, folds: int, groups: Any) -> Any:
    """Return the folds of the search: whole groups where there are any, classes in equal shares."""
    if groups is not None:
        from ..report.folds import group_folds, most_folds

        return group_folds(most_folds(y, groups, folds, classify), classify)
    fewest = int(np.unique(y, return_counts=True)[1].min()) if classify else len(y)
    if fewest < 2:
        more = " of every class: leave the rare class out, or" if classify else ":"
        raise ValueError(f"--C cv needs at least two rows{more} give a number")
    return min(folds, fewest)
