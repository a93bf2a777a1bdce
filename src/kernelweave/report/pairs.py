"""Pairs of objects on the page: what may be expected of new objects, what was measured, weights of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from .._typing import Array
from ..displays.colours import INK, shorten, tidy
from ..kernels.pairwise import factors_of
from ..views import PairKFold, Pairs
from ..views.pairs import SETTINGS
from ._html import WIDTH, drawn, figure, number, percent, table

if TYPE_CHECKING:
    from ._refits import Subject

#: rounds in which means of left and of right objects are taken by turns
TURNS = 10
#: folds of the settings that the page is not about, and most folds of a side where both are new
FOLDS, BLOCKS = 4, 4
#: objects of a side that are drawn
MOST_DRAWN = 150


class ObjectMeans(RegressorMixin, BaseEstimator):
    """Predict pairs by the mean of all targets and what their objects, as far as known, add to it on average."""

    def fit(self, X: Pairs, y: Any) -> ObjectMeans:
        """Take means of left and of right objects by turns."""
        rest = np.asarray(y, dtype=float)
        self.mean_, self.effects_ = float(rest.mean()), [np.zeros(len(X.left)), np.zeros(len(X.right))]
        rest = rest - self.mean_
        for _ in range(TURNS):
            for effects, column in zip(self.effects_, X.index.T, strict=True):
                rest = rest + effects[column]
                counts = np.maximum(np.bincount(column, minlength=len(effects)), 1)
                effects[:] = np.bincount(column, rest, minlength=len(effects)) / counts
                rest = rest - effects[column]
        return self

    def predict(self, X: Pairs) -> Array:
        """Add up the mean and both objects; one without training pairs adds nothing."""
        return np.asarray(self.mean_ + self.effects_[0][X.left_of] + self.effects_[1][X.right_of])


class ObjectShares(ClassifierMixin, BaseEstimator):
    """Predict the class whose share :class:`ObjectMeans` predicts to be the largest."""

    def fit(self, X: Pairs, y: Any) -> ObjectShares:
        """Learn the shares of every class."""
        self.classes_ = np.unique(y)
        self.means_ = [ObjectMeans().fit(X, y == label) for label in self.classes_]
        return self

    def decision_function(self, X: Pairs) -> Array:
        """Return the shares, of two classes by how much the second has the larger one."""
        shares = np.stack([means.predict(X) for means in self.means_], axis=1)
        return np.asarray(shares[:, 1] - shares[:, 0] if len(self.means_) == 2 else shares)

    def predict(self, X: Pairs) -> NDArray[Any]:
        """Return the class with the largest share."""
        return np.asarray(self.classes_[np.argmax([means.predict(X) for means in self.means_], axis=0)])


def setting_of(model: Any, asked: str | None) -> str:
    """Return the setting of a report: the one that is asked for, or that of the folds that chose C."""
    if asked is not None and asked not in SETTINGS:
        raise ValueError(f"setting must be one of {', '.join(SETTINGS)}, got {asked!r}")
    return str(asked or getattr(getattr(model, "cv", None), "setting", "pairs"))


def new_in(setting: str, names: Sequence[str] = ("left object", "right object")) -> str:
    """Say what is new in a setting.

    >>> new_in("left", ("drug", "cell")), new_in("both")
    ('a new drug', 'a new left object with a new right object')
    """
    left, right = names
    known = f"a new pair of a known {left} and a known {right}"
    both = f"a new {left} with a new {right}"
    return {"pairs": known, "left": f"a new {left}", "right": f"a new {right}", "both": both}[setting]


def pair_folds(X: Pairs, setting: str, n_folds: int, n_repeats: int, seed: int) -> list[Any]:
    """Return training and held-out pairs, round by round, every pair held out once in each.

    Where both objects are new, every block of left by right objects is held out in turn; of one kind, no training pair
    touches an object of the fold.
    """
    splits: list[Any] = []
    for state in range(seed, seed + n_repeats):
        if setting == "pairs":
            splits += PairKFold(min(n_folds, len(X)), random_state=state).split(X)
            continue
        k = min(n_folds, *(np.unique(column).size for column in X.index.T), *[BLOCKS] * (setting == "both"))
        draw = np.random.RandomState(state)
        of_left = draw.permutation(np.arange(len(X.left)) % k)
        of_right = of_left if X.one_kind else draw.permutation(np.arange(len(X.right)) % k)
        left, right = of_left[X.left_of], of_right[X.right_of]
        for f in range(k):
            for g in range(k) if setting == "both" else [f]:
                here, there = left == f, right == g
                test = {"left": here, "right": there, "both": here & there}[setting]
                touched = {"left": here, "right": there, "both": here | there}[setting]
                if X.one_kind:
                    touched = np.isin(left, (f, g)) | np.isin(right, (f, g))
                if test.any() and touched.all():
                    raise ValueError(f"a fold of setting={setting!r} leaves no training pair")
                if test.any():
                    splits.append((np.flatnonzero(~touched), np.flatnonzero(test)))
    return splits


def without_search(model: Any, fitted: Any) -> Any:
    """Return a model that does not choose C and norm again; weights by evidence are found anew."""
    from ..estimators import MKLClassifier, MKLRegressor

    if not hasattr(model, "Cs") or getattr(model, "criterion", "convex") != "convex":
        return clone(model)
    kind: Any = MKLClassifier if hasattr(fitted, "classes_") else MKLRegressor
    known = model.get_params(deep=False)
    same = {name: known[name] for name in kind().get_params(deep=False) if name in known}
    return kind(**same | {"C": float(np.mean(fitted.C_)), "norm": fitted.norm_})


def names_of(subject: Subject) -> tuple[str, str]:
    """Return what a left and a right object are called."""
    known = subject.note.get("pairs") or {}
    return str(known.get("left_id", "left object")), str(known.get("right_id", "right object"))


def expected_section(subject: Subject) -> str:
    """Return the score in every setting, beside that of the means of objects and of all pairs."""
    refits, X, y = subject.refits, subject.X, subject.y
    plain = without_search(subject.bare, subject.estimator)
    simple: list[tuple[str, Any]] = [
        ("means of the objects", ObjectShares() if refits.classify else ObjectMeans()),
        (refits.baseline.name, DummyClassifier() if refits.classify else DummyRegressor()),
    ]
    kind, rows, missing = refits.main, [], ""
    for setting in SETTINGS:
        what, scores = new_in(setting, names_of(subject)), dict[str, list[float]]()
        if setting == subject.setting:
            what, scores = f"{what} (this page)", {"this model": refits.ours.scores[kind.name]}
        try:
            splits = refits.splits if scores else pair_folds(X, setting, FOLDS, 1, subject.seed)
            for name, model in simple if scores else [("this model", plain), *simple]:
                fits = [(clone(model).fit(X[train], y[train]), test) for train, test in splits]
                scores[name] = [kind.of(y[test], fit.predict(X[test]), None) for fit, test in fits]
        except ValueError as error:  # few objects, or a class that a fold lacks
            missing += f'<p class="quiet">Not shown, {escape(what)}: {escape(str(error))}.</p>'
            continue
        means = [float(np.nanmean(values)) for values in scores.values()]
        if setting == subject.setting:
            means[0] = refits.ours.measures[kind.name].mean
        rows.append([what, *((mean, kind.shown(mean)) for mean in means), len(splits)])
    text = (
        "How good a model of pairs is depends on what is new in a pair. This page is about "
        f"{new_in(str(subject.setting), names_of(subject))}: such pairs are held out everywhere below. Other settings "
        "are fits with C and norm of this one, on other folds."
    )
    return (
        f'<h2 id="expect">What you may expect</h2><p>{escape(text)}</p>'
        + table(
            ["what is new", "this model", *(name for name, _ in simple), "fits"],
            rows,
            f"Held-out {kind.name}",
        )
        + missing
    )


def measured_section(subject: Subject) -> str:
    """Return what was measured and what is predicted, as tables of left by right objects with their margins."""
    X, classes, names = subject.X, subject.refits.classes, names_of(subject)

    def numbers(values: Any) -> Array:
        return np.asarray(values if classes is None else np.searchsorted(classes, values), dtype=float)

    known = X.to_grid(numbers(subject.y))
    there = ~np.isnan(known)
    text, order = (
        f"{there.sum():,} of {there.size:,} pairs were measured ({percent(float(there.mean()))})",
        [],
    )
    for axis, name in enumerate(names):
        counts = there.sum(axis=1 - axis)
        some = np.flatnonzero(counts)
        text += f"; a median of {np.median(counts[some]):g} of each {name} ({counts[some].min()} to {counts.max()})"
        text += f", {counts.size - some.size} have none" if counts.size > some.size else ""
        some = some[np.argsort(np.nansum(known, axis=1 - axis)[some] / counts[some], kind="stable")]
        order.append(some[np.unique(np.linspace(0, some.size - 1, min(some.size, MOST_DRAWN)).astype(int))])
    every = X[np.zeros(order[0].size * order[1].size, dtype=int)]
    every.index = np.stack(np.meshgrid(*order, indexing="ij"), axis=-1).reshape(-1, 2)
    grids = {"known": known[np.ix_(*order)]}
    grids["said"] = numbers(subject.model.predict(every)).reshape(grids["known"].shape)

    def draw(ax: Any) -> None:
        canvas = ax.figure
        ax.remove()
        rows = [["top", ".", "."], ["known", "side", "said"]]
        axes = canvas.subplot_mosaic(rows, width_ratios=[4, 0.7, 4], height_ratios=[0.7, 4])
        ends = {"vmin": np.nanmin(grids["known"]), "vmax": np.nanmax(grids["known"])}
        for name, grid in grids.items():
            shown = axes[name].imshow(grid, aspect="auto", interpolation="nearest", cmap="viridis", **ends)
            axes[name].set(xticks=[], yticks=[], xlabel=names[1])
        axes["known"].set_ylabel(names[0])
        axes["said"].set_title("predicted, all pairs")
        bar = canvas.colorbar(shown, ax=axes["said"], fraction=0.06, pad=0.02)
        if classes is not None:
            bar.set_ticks(range(len(classes)), labels=[shorten(str(label), 16) for label in classes])
        counts = [there.sum(axis=1 - axis)[order[axis]] for axis in (0, 1)]
        axes["top"].bar(range(counts[1].size), counts[1], width=1.0, color=INK)
        axes["top"].set(xlim=(-0.5, counts[1].size - 0.5), xticks=[], title="measured")
        axes["side"].barh(range(counts[0].size), counts[0], height=1.0, color=INK)
        axes["side"].set(ylim=(counts[0].size - 0.5, -0.5), yticks=[])
        tidy(axes["top"], "y")
        tidy(axes["side"], "x")

    what = (
        "Tables of left by right objects: what was measured, and what is predicted; bars count measured pairs"
    )
    caption = "In the order of their means; bars count measured pairs, empty cells were not measured."
    if max(there.shape) > MOST_DRAWN:
        caption += f" At most {MOST_DRAWN} objects of a side are drawn, from the lowest to the highest mean."
    picture = drawn(draw, (WIDTH, 4.6), what, "measured")
    return f'<h2 id="measured">What was measured</h2><p>{escape(text)}.</p>{figure(picture, caption)}'


def sides_section(subject: Subject) -> str:
    """Return the weights of all products as a table of left by right kernels, and its margins with their ranges."""
    from ..inspection import pair_table

    *sides, terms = factors_of(subject.estimator.kernels_)
    shares, tables = pair_table(subject.model), ""
    for axis, (kernels, name) in enumerate(zip(sides, names_of(subject), strict=True)):
        sums = shares.sum(axis=1 - axis).to_numpy()
        refits = subject.refits.stability.weights @ np.eye(len(kernels))[terms[:, axis]]
        low, high = refits.min(axis=0), refits.max(axis=0)
        ranges = [(high[j], f"{number(low[j])} – {number(high[j])}") for j in range(len(kernels))]
        rows = [[kernels[j].name, float(sums[j]), ranges[j]] for j in np.argsort(-sums, kind="stable")]
        head = [f"kernel of {name}", "weight", "range of the refits"]
        tables += table(head, rows, f"Weights by kernel of {name}")
    values = shares.to_numpy()

    def draw(ax: Any) -> None:
        image = ax.imshow(values, cmap="Blues", vmin=0.0, aspect="auto")
        for axis, labels in ((ax.xaxis, shares.columns), (ax.yaxis, shares.index)):
            axis.set_ticks(range(len(labels)), [shorten(label, 44) for label in labels])
        ax.tick_params(axis="x", labelrotation=90)
        for (i, j), share in np.ndenumerate(values):
            if share >= 0.005:
                light = "#ffffff" if share > 0.5 * np.nanmax(values) else INK
                ax.text(j, i, f"{100 * share:.0f}", ha="center", va="center", color=light, fontsize="small")
        ax.figure.colorbar(image, ax=ax, label="weight", fraction=0.04, pad=0.02)

    size = (WIDTH, min(10.0, 3.6 + 0.3 * len(values)))
    picture = drawn(
        draw, size, "Weights of products of left and right kernels; the tables have their sums", "sides"
    )
    text = (
        "Every kernel of pairs is a product of one on each side. “constant” is what an object adds whatever its "
        "partner is, “identity” what is learnt of single objects by heart: a new object has nothing of that. Where "
        "kernels resemble each other a sparse fit picks one of them almost by chance."
    )
    return (
        f'<h2 id="views">Which kernels matter</h2><p>{escape(text)}</p>'
        + figure(picture, "Shares of the weight, in per cent, of left (rows) by right kernels (columns).")
        + tables
    )
