"""Two models of the same targets, refitted on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._estimating import several_fits
from .._typing import Array
from ..displays.colours import ACCENT, INK, tidy
from ..inspection import final_estimator
from ..inspection.views import as_targets, group_shares, kernel_groups, predicts_survival
from ..kernels import take
from ..persistence import cleared
from ._html import WIDTH, document, drawn, figure, number, table
from ._refits import Measure, measured
from .folds import fitted_on, folds_of
from .survival import targets_for


@dataclass(frozen=True)
class Comparison:
    """Hold what refits of two models on the same folds found; ``compare_models`` makes it, and has an example.

    Attributes
    ----------
    names : tuple of two str
    measures : DataFrame
        A row for each measure: the means of both models, their difference, and its p-value (Nadeau and Bengio 2003).
    views : DataFrame
        A row for each view: its weight in both models, and its smallest and largest weight in the refits.
    alike : float
        Share of held-out samples for which both predict the same; NaN for numbers.
    scores : array of shape (2, folds)
        The first measure on every fold.
    models : tuple of the two models
    """

    names: tuple[str, str]
    measures: Any
    views: Any
    alike: float
    scores: Array
    models: tuple[Any, Any]

    def page(self, title: str) -> str:
        """Return one HTML page."""
        first, second = self.names
        kind = self.measures.index[0]

        def draw(ax: Any) -> None:
            for a, b in self.scores.T:
                ax.plot([a, b], [0, 1], "-", color=ACCENT if b < a else INK, alpha=0.5, linewidth=1.2)
            for row, scores in enumerate(self.scores):
                ax.plot(scores, [row] * len(scores), "|", color=INK, markersize=9)
                ax.plot([scores.mean()], [row], "o", color=INK, markersize=7)
            ax.set_yticks([0, 1], self.names)
            ax.set_ylim(1.4, -0.4)
            ax.set_xlabel(f"{kind} on held-out folds")
            tidy(ax, "x")

        what = f"Lines: {kind} of both models on each fold; the table above has the means"
        picture = drawn(draw, (WIDTH, 2.2), what, "folds")
        alike = ""
        if not np.isnan(self.alike):
            alike = f" Both predict the same for {100 * self.alike:.1f} % of the samples."
        rows = [
            [name, *map(float, row)]
            for name, row in zip(self.measures.index, self.measures.to_numpy(), strict=True)
        ]
        weights = [
            [str(view), *((row[k], shown) for k, shown in enumerate(_weights(row)))]
            for view, row in zip(self.views.index, self.views.to_numpy(), strict=True)
        ]
        of = [final_estimator(model) for model in self.models]
        settings = [
            ["model", *(type(one).__name__ for one in of)],
            [
                "kernels",
                *(f"{np.count_nonzero(one.weights_)} of {len(one.kernel_names_)} with weight" for one in of),
            ],
            ["norm", *(str(one.norm_name_) for one in of)],
            ["C", *(f"{float(np.mean(one.C_)):.4g}" for one in of)],
            ["proved, from the optimum at most", *(f"{one.certificate_.percent} %" for one in of)],
        ]
        body = (
            f'<h2 id="accuracy">Which is better</h2><p>{escape(self.sentence())}{alike}</p>'
            + table(["on held-out folds", first, second, "difference", "p"], rows, "Means over the folds")
            + figure(picture, "A line is a fold.")
            + '<h2 id="views">What they stand on</h2>'
            + table(["view", first, "in refits", second, "in refits"], weights, "Weights of the views")
            + '<h2 id="settings">What they are</h2>'
            + table(["", first, second], settings, "Settings")
        )
        return document(
            title, body, f'<h1>{escape(title)}</h1><p class="quiet">Two models on the same folds</p>'
        )

    def sentence(self) -> str:
        """Say which of the two is better, as far as the folds tell."""
        row = self.measures.iloc[0]
        first, second = self.names
        values = f"{row.name} {number(row.iloc[0])} and {number(row.iloc[1])}, p = {number(row['p'])}"
        if not row["p"] < 0.05:
            return f"On held-out folds {first} and {second} cannot be told apart ({values})."
        better, other = (second, first) if row["difference"] > 0 else (first, second)
        return f"On held-out folds {better} is better than {other} ({values})."


def _weights(row: Any) -> list[str]:
    """Write the weight of a view and its range, of one model and of the other."""
    parts = [
        ("–", "") if np.isnan(weight) else (number(weight), f"{number(least)} – {number(most)}")
        for weight, least, most in (row[:3], row[3:])
    ]
    return [text for part in parts for text in part]


@several_fits
def compare_models(
    models: Mapping[str, tuple[Any, Any]],
    y: Any,
    *,
    n_folds: int = 5,
    n_repeats: int = 2,
    groups: Any = None,
    strata: Any = None,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Refit two models on the same folds: which predicts better, and what each stands on.

    Parameters
    ----------
    models : dict of two names with pairs (fitted estimator or pipeline, samples of its fit)
    y : targets of both
    n_folds, n_repeats, groups, strata, random_state, progress
        As for ``make_report``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear())
    >>> found = compare_models({"sparse": (MKLClassifier(bank).fit(X, y), X),
    ...     "dense": (MKLClassifier(bank, norm=2).fit(X, y), X)}, y, n_folds=2, n_repeats=1)
    >>> found.views.index.tolist()
    ['sepal', 'petal']
    """
    if len(models) != 2:
        raise ValueError(f"two models are compared, got {len(models)}")
    (first, second), fitted = models, tuple(model for model, _ in models.values())
    y = as_targets(fitted[0], y)
    if y.ndim != 1:
        raise ValueError(
            "models are compared on classes or numbers, one for each sample: give one column of targets"
        )
    kinds = {
        "survival" if predicts_survival(model) else is_classifier(final_estimator(model)) for model in fitted
    }
    if len(kinds) != 1:
        raise ValueError(
            f"{first!r} and {second!r} learn classes, numbers or times to an event, and not both the same: their "
            "predictions are not alike"
        )
    targets = targets_for(fitted[0], y, strata)
    classify, measures = targets.classify, targets.measures
    splits = folds_of(y, classify, n_folds, n_repeats, random_state, groups)
    scores: list[dict[str, list[float]]] = [{kind.name: [] for kind in measures} for _ in fitted]
    views = [kernel_groups(model) for model in fitted]
    weights: list[list[Array]] = [[], []]
    same, templates = [], [cleared(model, machine=True) for model in fitted]
    for place, (train, test) in enumerate(splits):
        of_train = None if groups is None else np.asarray(groups)[train]
        said: list[NDArray[Any]] = []
        for k, (_, X) in enumerate(models.values()):
            given = targets.beside(train)
            model = fitted_on(templates[k], take(X, train), y[train], of_train, classify, n_folds, **given)
            predicted, values = targets.predicted(model, take(X, test), test)
            said.append(predicted)
            for kind in measures:
                scores[k][kind.name].append(kind.of(y[test], said[k], values))
            weights[k].append(group_shares(model, views[k]))
            if progress is not None:
                progress(2 * place + k + 1, 2 * len(splits))
        same.append(float(np.mean(said[0] == said[1])) if classify else np.nan)
    rows = {kind.name: _paired(kind, scores, splits) for kind in measures}
    table_of = pd.DataFrame.from_dict(rows, orient="index", columns=[first, second, "difference", "p"])
    sides = []
    for k, name in enumerate((first, second)):
        of_refits = np.stack(weights[k])
        columns = {name: group_shares(fitted[k], views[k]), f"{name}, least": of_refits.min(axis=0)}
        columns[f"{name}, most"] = of_refits.max(axis=0)
        sides.append(pd.DataFrame(columns, index=list(dict.fromkeys(map(str, views[k])))))
    together = pd.concat(sides, axis=1)  # NaN where a model does not have a view
    by_fold = np.array([one[measures[0].name] for one in scores])
    return Comparison((first, second), table_of, together, float(np.mean(same)), by_fold, fitted)  # type: ignore[arg-type]


def _paired(kind: Measure, scores: list[dict[str, list[float]]], splits: Any) -> list[float]:
    """Return the means of a measure for both models, their difference and its p-value."""
    sizes, share = (
        np.array([len(test) for _, test in splits], dtype=float),
        len(splits[0][1]) / len(splits[0][0]),
    )
    ours, theirs = (np.array(one[kind.name]) for one in scores)
    first = measured(ours, sizes, share, None, kind.most, None)
    second = measured(theirs, sizes, share, ours, kind.most, None)
    return [first.mean, second.mean, second.mean - first.mean, second.p_value]
