"""Pairs of objects on the page: what was measured, what may be expected of new objects, weights of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from .._typing import Array
from ..displays.colours import ACCENT, FAINT, INK, shorten, tidy
from ..kernels.pairwise import factors_of
from ..views import PairKFold, Pairs
from ..views.pairs import SETTINGS
from ._html import WIDTH, drawn, figure, number, percent, table

if TYPE_CHECKING:
    from ._refits import Subject

#: rounds in which means of left and of right objects are taken by turns
TURNS = 10
#: folds of the settings that the page is not about
FOLDS = 4
#: objects of a side that are drawn, and listed
MOST_DRAWN, MOST_LISTED = 150, 10


class ObjectMeans(RegressorMixin, BaseEstimator):
    """Predict pairs by the mean of all targets and what their objects, as far as known, add to it on average."""

    def fit(self, X: Pairs, y: Any) -> ObjectMeans:
        """Take means of left and of right objects by turns."""
        y = np.asarray(y, dtype=float)
        self.mean_, self.effects_ = float(y.mean()), [np.zeros(len(X.left)), np.zeros(len(X.right))]
        rest = y - self.mean_
        for _ in range(TURNS):
            for effects, column in zip(self.effects_, X.index.T, strict=True):
                rest = rest + effects[column]
                counts = np.maximum(np.bincount(column, minlength=len(effects)), 1)
                effects[:] = np.bincount(column, rest, minlength=len(effects)) / counts
                rest = rest - effects[column]
        return self

    def predict(self, X: Pairs) -> Array:
        """Add up the mean and both objects; of one without training pairs nothing is added."""
        return np.asarray(self.mean_ + self.effects_[0][X.left_of] + self.effects_[1][X.right_of])


class ObjectShares(ClassifierMixin, BaseEstimator):
    """Predict the class that is most frequent for both objects of a pair together, as :class:`ObjectMeans` does."""

    def fit(self, X: Pairs, y: Any) -> ObjectShares:
        """Learn the shares of every class."""
        self.classes_ = np.unique(y)
        self.means_ = [ObjectMeans().fit(X, y == label) for label in self.classes_]
        return self

    def decision_function(self, X: Pairs) -> Array:
        """Return the shares, of two classes that of the second beyond a half."""
        shares = np.stack([means.predict(X) for means in self.means_], axis=1)
        return np.asarray(shares[:, 1] - 0.5 if len(self.classes_) == 2 else shares)

    def predict(self, X: Pairs) -> NDArray[Any]:
        """Return the class with the largest share."""
        return np.asarray(self.classes_[np.argmax([means.predict(X) for means in self.means_], axis=0)])


def setting_of(model: Any, asked: str | None) -> str:
    """Return the setting of a report: the one that is asked for, that of the folds that chose C, or new pairs."""
    if asked is not None and asked not in SETTINGS:
        raise ValueError(f"setting must be one of {', '.join(SETTINGS)}, got {asked!r}")
    return str(asked or getattr(getattr(model, "cv", None), "setting", "pairs"))


def expectation(setting: str, names: Sequence[str] = ("left object", "right object")) -> str:
    """Say what an error in a setting stands for.

    >>> expectation("left", ("drug", "cell"))
    'what you may expect for a new drug'
    """
    left, right = names
    new = {"pairs": f"new pair of a known {left} and a known {right}", "left": f"new {left}", "right": f"new {right}",
           "both": f"new {left} with a new {right}"}  # fmt: skip
    return f"what you may expect for a {new[setting]}"


def pair_folds(X: Pairs, setting: str, n_folds: int, n_repeats: int, seed: int) -> list[Any]:
    """Return training and held-out pairs, round by round, every pair held out once in each.

    Where both objects are new, every block of left by right objects is held out in turn; of one kind, no training pair
    touches an object that is held out.
    """
    used = [np.unique(column).size for column in (X.index.ravel(),) * 2 if X.one_kind] or [
        np.unique(column).size for column in X.index.T
    ]
    sizes = {"pairs": len(X), "left": used[0], "right": used[1], "both": min(used)}
    k = min(n_folds, sizes[setting], 4 if setting == "both" else n_folds)
    if k < 2:
        raise ValueError(f"folds of setting={setting!r} need at least two objects that can be left out")
    splits: list[Any] = []
    for seed_of_round in range(seed, seed + n_repeats):
        if setting == "pairs":
            splits += PairKFold(k, random_state=seed_of_round).split(X)
            continue
        rng = np.random.RandomState(seed_of_round)
        of_left = rng.permutation(np.arange(len(X.left)) % k)
        of_right = of_left if X.one_kind else rng.permutation(np.arange(len(X.right)) % k)
        left, right = of_left[X.left_of], of_right[X.right_of]
        for f in range(k):
            for g in range(k) if setting == "both" else [f]:
                here, there = left == f, right == g
                test = {"left": here, "right": there, "both": here & there}[setting]
                touched = {"left": here, "right": there, "both": here | there}[setting]
                if X.one_kind:
                    touched = np.isin(left, (f, g)) | np.isin(right, (f, g))
                if test.any() and touched.all():
                    raise ValueError(
                        f"a fold of setting={setting!r} leaves no training pair: use fewer folds"
                    )
                if test.any():
                    splits.append((np.flatnonzero(~touched), np.flatnonzero(test)))
    return splits


def without_search(model: Any, fitted: Any) -> Any:
    """Return a model that does not choose C and norm again; weights by evidence are found anew."""
    from ..estimators import MKLClassifier, MKLRegressor

    if not hasattr(model, "Cs") or model.criterion != "convex":
        return clone(model)
    kind = MKLClassifier if hasattr(fitted, "classes_") else MKLRegressor
    known = model.get_params(deep=False)
    kept = {name: known[name] for name in kind().get_params(deep=False) if name in known}
    return kind(**kept | {"C": float(np.mean(fitted.C_)), "norm": fitted.norm_, "n_jobs": None})


def names_of(subject: Subject) -> tuple[str, str]:
    """Return what a left and a right object are called."""
    known = subject.note.get("pairs") or {}
    return str(known.get("left_id", "left object")), str(known.get("right_id", "right object"))


def expected_section(subject: Subject) -> str:
    """Return the error in every setting, beside what means of objects and of all pairs have."""
    refits, X, classify = subject.refits, subject.X, subject.refits.classify
    plain = without_search(subject.bare, subject.estimator)
    simple: list[tuple[str, Any]] = [("means of the objects", ObjectShares() if classify else ObjectMeans())]
    simple.append((refits.baseline.name, DummyClassifier() if classify else DummyRegressor()))
    kind, rows, dots, why = refits.main, [], [], []
    for setting in SETTINGS:
        try:
            splits = pair_folds(X, setting, FOLDS, 1, subject.seed)
        except ValueError as error:
            why.append(f"{expectation(setting, names_of(subject))}: {error}")
            continue
        main = setting == subject.setting
        splits = refits.splits if main else splits
        scores: dict[str, list[float]] = {"this model": list(refits.ours.scores[kind.name]) if main else []}
        for train, test in splits:
            fits = simple if main else [("this model", plain), *simple]
            if classify and np.unique(subject.y[train]).size < np.unique(subject.y).size:
                continue
            for name, model in fits:
                one = clone(model).fit(X[train], subject.y[train])
                values = one.decision_function(X[test]) if hasattr(one, "decision_function") else None
                if classify and values is None:  # no pair is before another
                    many = len(one.classes_)
                    values = np.zeros((len(test), many) if many > 2 else len(test))
                scores.setdefault(name, []).append(kind.of(subject.y[test], one.predict(X[test]), values))
        means = [float(np.nanmean(values)) if values else np.nan for values in scores.values()]
        dots.append((setting, means))
        what = expectation(setting, names_of(subject)).removeprefix("what you may expect for ")
        rows.append(
            [what + (" (this page)" if main else ""), *((m, kind.shown(m)) for m in means), len(splits)]
        )

    def draw(ax: Any) -> None:
        for row, (_, means) in enumerate(dots):
            ax.hlines(row, np.nanmin(means), np.nanmax(means), color=FAINT, linewidth=3)
            for mean, marker, colour in zip(means, "osx", (ACCENT, INK, INK), strict=True):
                ax.plot([mean], [row], marker, color=colour, markersize=8, label=None)
        ax.set_yticks(range(len(dots)), [row[0] for row in rows])
        ax.set_ylim(len(dots) - 0.5, -0.5)
        ax.set_xlabel(f"{kind.name} on held-out folds")
        tidy(ax, "x")

    picture = drawn(
        draw,
        (WIDTH, 1.0 + 0.42 * len(dots)),
        "Dots: scores by setting; the table has the numbers",
        "settings",
    )
    text = (
        "How good a model of pairs is depends on what is new in a pair. "
        f"This page is about {expectation(subject.setting, names_of(subject))}: such pairs are held out everywhere "
        "below. The other settings are fits with C and norm of this one, on other folds."
    )
    head = ["held out", "this model", *(name for name, _ in simple), "fits"]
    return (
        f'<h2 id="expect">What you may expect</h2><p>{escape(text)}</p>'
        + figure(picture, f"Round: this model, square: means of the objects, cross: {refits.baseline.name}.")
        + table(head, rows, f"{kind.name} by what is new")
        + "".join(f'<p class="quiet">Not shown, {escape(one)}.</p>' for one in why)
    )


def measured_section(subject: Subject) -> str:
    """Return what was measured and what is predicted, as tables of left by right objects with their margins."""
    X, refits = subject.X, subject.refits
    classes = refits.classes
    values = (
        np.asarray(subject.y, dtype=float)
        if classes is None
        else np.searchsorted(classes, subject.y).astype(float)
    )
    known, error = X.to_grid(values), X.to_grid(-refits.right(refits.ours))
    there = ~np.isnan(known)
    order, kept = [], []
    for axis in (0, 1):
        counts = there.sum(axis=1 - axis)
        means = np.divide(
            np.nansum(known, axis=1 - axis), counts, out=np.full(len(counts), np.nan), where=counts > 0
        )
        by_mean = np.argsort(means, kind="stable")[: np.count_nonzero(counts)]
        few = np.unique(np.linspace(0, by_mean.size - 1, min(by_mean.size, MOST_DRAWN)).astype(int))
        order.append(by_mean[few])
        kept.append(by_mean.size)
    at = np.ix_(*order)
    every = np.stack(np.meshgrid(*order, indexing="ij"), axis=-1).reshape(-1, 2)
    asked = X[np.zeros(len(every), dtype=int)]
    asked.index = every
    said = subject.model.predict(asked)
    said = np.asarray(said, dtype=float) if classes is None else np.searchsorted(classes, said)
    said = np.asarray(said, dtype=float).reshape(known[at].shape)
    left, right = names_of(subject)

    def draw(ax: Any) -> None:
        canvas = ax.figure
        ax.remove()
        axes = canvas.subplot_mosaic(
            [["top", ".", "."], ["known", "side", "said"]], width_ratios=[4, 0.7, 4], height_ratios=[0.7, 4]
        )
        ends = {"vmin": np.nanmin(known[at]), "vmax": np.nanmax(known[at])}
        for name, grid, title in (("known", known[at], f"measured"), ("said", said, "predicted, all pairs")):
            shown = axes[name].imshow(grid, aspect="auto", interpolation="nearest", cmap="viridis", **ends)
            axes[name].set(xticks=[], yticks=[], xlabel=right, title=title if name == "said" else None)
        axes["known"].set_ylabel(left)
        counted = there[at]
        axes["top"].bar(range(counted.shape[1]), there[:, order[1]].sum(axis=0), width=1.0, color=INK)
        axes["top"].set(xlim=(-0.5, counted.shape[1] - 0.5), xticks=[], title="measured")
        axes["side"].barh(range(counted.shape[0]), there[order[0]].sum(axis=1), height=1.0, color=INK)
        axes["side"].set(ylim=(counted.shape[0] - 0.5, -0.5), yticks=[])
        for name, grid in (("top", "y"), ("side", "x")):
            tidy(axes[name], grid)
        canvas.colorbar(shown, ax=axes["said"], fraction=0.06, pad=0.02)

    what = "Two tables of left by right objects: what was measured, and what is predicted; bars count the measured pairs"
    picture = drawn(draw, (WIDTH, 4.6), what, "measured")
    cells, held = int(there.sum()), []
    total = there.shape[0] * there.shape[1]
    text = f"{cells:,} of {total:,} pairs were measured ({percent(cells / total)})"
    for axis, (name, side) in enumerate(((left, X.left), (right, X.right))):
        counts = there.sum(axis=1 - axis)
        some = counts[counts > 0]
        gone = counts.size - some.size
        text += f"; of each {name} {np.median(some):g} in the middle ({some.min()} to {some.max()})"
        text += f", of {gone} none" if gone else ""
        mean = np.nanmean(np.where(there.any(axis=1 - axis, keepdims=True), error, 0.0), axis=1 - axis)
        worst = np.argsort(-np.where(counts > 0, mean, -np.inf), kind="stable")[:MOST_LISTED]
        rows = [
            [str(j if side.names is None else side.names[j]), int(counts[j]),
             (mean[j], percent(1.0 + mean[j]) if classes is not None else number(float(np.sqrt(mean[j]))))]
            for j in worst if counts[j]
        ]  # fmt: skip
        head = [name, "measured", "predicted right" if classes is not None else "RMSE"]
        held.append(table(head, rows, f"Held-out predictions: the hardest, by {name}"))
    numbers = (
        ""
        if classes is None
        else " Colours are " + ", ".join(f"{k}: “{c}”" for k, c in enumerate(classes)) + "."
    )
    cut = " Some objects are drawn, from the lowest to the highest mean." if max(kept) > MOST_DRAWN else ""
    caption = f"In the order of their means; bars count measured pairs, empty cells were not.{numbers}{cut}"
    return (
        f'<h2 id="measured">What was measured</h2><p>{escape(text)}.</p>{figure(picture, caption)}'
        + "".join(held)
    )


def heaviest_sides(subject: Subject) -> str:
    """Say which kernel of each side has the most weight."""
    from ..inspection import pair_table

    shares = pair_table(subject.model)
    said = []
    for name, sums in zip(names_of(subject), (shares.sum(axis=1), shares.sum(axis=0)), strict=True):
        said.append(f"on {name} “{sums.idxmax()}”, with {percent(float(sums.max()), 0)} of it")
    return f"The kernels with the most weight are {', and '.join(said)}."


def sides_section(subject: Subject) -> str:
    """Return the weights of all products as a table of left by right kernels, and its margins with their ranges."""
    from ..inspection import pair_table

    lefts, rights, terms = factors_of(subject.estimator.kernels_)
    shares = pair_table(subject.model)
    refitted = subject.refits.stability.weights
    parts = []
    for axis, (kernels, which) in enumerate(((lefts, "left"), (rights, "right"))):
        name = names_of(subject)[axis]
        summed = shares.sum(axis=1 - axis).to_numpy()
        again = np.stack([np.bincount(terms[:, axis], row, minlength=len(kernels)) for row in refitted])
        rows = [
            [kernels[j].name, float(summed[j]), (again[:, j].mean(), f"{number(again[:, j].min())} – {number(again[:, j].max())}")]
            for j in np.argsort(-summed, kind="stable")
        ]  # fmt: skip
        parts.append(
            table([f"kernel on {name}", "weight", "range of the refits"], rows, f"Weights of {which} kernels")
        )

    def draw(ax: Any) -> None:
        image = ax.imshow(shares.to_numpy(), cmap="Blues", vmin=0.0, aspect="auto")
        ax.set_xticks(
            range(len(rights)),
            [shorten(kernel.name, 26) for kernel in rights],
            rotation=45,
            ha="right",
            rotation_mode="anchor",
        )
        ax.set_yticks(range(len(lefts)), [shorten(kernel.name, 30) for kernel in lefts])
        for (i, j), share in np.ndenumerate(shares.to_numpy()):
            if share >= 0.005:
                dark = share > 0.55 * np.nanmax(shares.to_numpy())
                ax.text(
                    j,
                    i,
                    f"{100 * share:.0f}",
                    ha="center",
                    va="center",
                    color="#ffffff" if dark else INK,
                    fontsize="small",
                )
        ax.figure.colorbar(image, ax=ax, label="weight", fraction=0.04, pad=0.02)

    size = (WIDTH, min(9.0, 2.2 + 0.3 * len(lefts)))
    picture = drawn(
        draw, size, "Weights of products of left and right kernels; the tables have their sums", "sides"
    )
    text = (
        "Every kernel of pairs is a product of one on each side. Rows answer which descriptions of a left object matter, "
        "columns those of a right one. “constant” is what an object adds whatever its partner is, “identity” what is "
        "learnt of single objects by heart: a new object has nothing of that. Where kernels resemble each other a "
        "sparse fit picks one of them almost by chance."
    )
    return (
        f'<h2 id="views">Which kernels matter</h2><p>{escape(text)}</p>'
        + figure(picture, "Shares of the weight, in per cent; white is none.")
        + "".join(parts)
    )
