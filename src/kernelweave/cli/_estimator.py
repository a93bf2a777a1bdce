"""From options to an estimator that is not fitted yet."""

from __future__ import annotations

from typing import Any

from ._options import Options, class_weights, norm_of, number_of

__all__ = ["estimator_for"]


def estimator_for(kernels: Any, task: str, options: Options, y: Any, groups: Any) -> Any:
    """Return the estimator that the options ask for; what does not go with the targets is a ValueError."""
    if options.noise_rate is not None:
        return _for_noise(kernels, task, options, y)
    settings: dict[str, Any] = {"tol": options.tol, "verbose": options.verbose, "missing": options.missing}
    if options.norm is not None:
        settings["norm"] = norm_of(options.norm, "--norm")
    if options.loss is not None:
        settings["loss"] = options.loss
    if options.class_weight is not None:
        settings["class_weight"] = _class_weight(options.class_weight, task, y)
    if options.chooses:
        if options.scoring is not None:
            _check_scorer(options.scoring, task, y)
        settings |= {
            "cv": _splitter(y, task, options, groups),
            "scoring": options.scoring,
            "norms": options.tried_norms or None,
        }
        if options.C not in (None, "cv"):
            settings["Cs"] = [number_of("--C", str(options.C))]
        return _with_folds(kernels, task, settings)
    from .. import MKLClassifier, MKLRegressor

    settings["C"] = number_of("--C", str(options.C))
    return (MKLRegressor if task == "regression" else MKLClassifier)(kernels, **settings)


def _with_folds(kernels: Any, task: str, settings: dict[str, Any]) -> Any:
    from .. import MKLClassifierCV, MKLRegressorCV

    if task == "classification":
        return MKLClassifierCV(kernels, **settings)
    return MKLRegressorCV(kernels, center=False, **settings)


def _for_noise(kernels: Any, task: str, options: Options, y: Any) -> Any:
    from .. import NoisyLabelMKLClassifier

    if task == "regression":
        raise ValueError("--noise-rate is about wrong labels: the target here is a number")
    rate: Any = options.noise_rate
    settings: dict[str, Any] = {"tol": options.tol, "verbose": options.verbose}
    if options.class_weight is not None:
        settings["class_weight"] = _class_weight(options.class_weight, task, y)
    return NoisyLabelMKLClassifier(
        kernels, noise_rate=rate if rate == "estimate" else number_of("--noise-rate", rate), **settings
    )


def _class_weight(text: str, task: str, y: Any) -> Any:
    """Return class weights with the labels as the targets have them."""
    import numpy as np

    if task == "regression":
        raise ValueError("--class-weight is about classes: the target here is a number")
    weights = class_weights(text)
    if isinstance(weights, str):
        return weights
    labels = {str(label): label for label in np.unique(y).tolist()}
    unknown = [label for label in weights if label not in labels]
    if unknown:
        raise ValueError(
            f"--class-weight names a class {unknown[0]!r}, but the target has {', '.join(labels)}"
        )
    return {labels[label]: weight for label, weight in weights.items()}


def _check_scorer(name: str, task: str, y: Any) -> None:
    """Raise where a score cannot be computed on such targets at all, before any fit."""
    import warnings

    import numpy as np
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.metrics import get_scorer

    nothing = np.zeros((len(y), 1))
    guess: Any = DummyClassifier() if task == "classification" else DummyRegressor()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            get_scorer(name)(guess.fit(nothing, y), nothing, y)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"--scoring {name} does not go with this target ({task}): {error}") from None


def _splitter(y: Any, task: str, options: Options, groups: Any) -> Any:
    """Return the folds of the search: whole groups where there are any, classes in equal shares."""
    import numpy as np

    classify = task == "classification"
    if groups is not None:
        from ..report.folds import group_folds, most_folds

        return group_folds(most_folds(y, groups, options.folds, classify), classify)
    if not classify:
        if len(y) < 2:
            raise ValueError("--C cv needs at least two rows: give a number")
        return min(options.folds, len(y))
    rarest = int(np.unique(y, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError(
            "--C cv needs at least two rows of every class: leave the rare class out, or give a number"
        )
    return min(options.folds, rarest)
