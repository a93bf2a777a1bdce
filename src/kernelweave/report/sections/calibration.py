"""Whether probabilities are what they say."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...displays.colours import ACCENT, INK, tidy
from .._drawing import WIDTH, drawn
from .._html import figure, number, table
from .._subject import Subject

__all__ = ["reliability", "section"]

BINS = 10


def section(subject: Subject) -> str:
    """Return predicted against observed shares; nothing where the model has no probabilities."""
    refits = subject.refits
    shares = refits.ours.probability
    if refits.classes is None or shares is None:
        return ""
    said, true, count = reliability(refits.y, shares, refits.classes)
    brier = float(np.mean(np.sum((shares - (refits.y[:, None] == refits.classes)) ** 2, axis=2)))
    error = float(np.average(np.abs(said - true), weights=count))
    what = (
        f"probability of “{refits.classes[1]}”" if len(refits.classes) == 2 else "probability of each class"
    )
    text = (
        f"Held-out samples by predicted {what}: where probabilities are what they say, the points lie on the line. "
        f"They are {number(error)} away from it on average (expected calibration error); the Brier score is "
        f"{number(brier)} (0 is perfect)."
    )
    rows = [[float(s), float(t), int(c)] for s, t, c in zip(said, true, count, strict=True)]
    return (
        f'<h3 id="calibration">Calibration</h3><p>{escape(text)}</p>'
        + figure(_picture(said, true, count), "Larger dots stand for more samples.")
        + table(["predicted probability", "observed share", "predictions"], rows, "Ten bins of equal width")
    )


def reliability(y: Any, shares: Any, classes: Any) -> tuple[Any, Any, Any]:
    """Return mean prediction, observed share and count of every bin that has any; several classes are pooled."""
    columns = [1] if len(classes) == 2 else range(len(classes))
    said = np.concatenate([shares[:, :, k].ravel() for k in columns])
    happened = np.concatenate([np.tile(y == classes[k], len(shares)) for k in columns]).astype(float)
    bins = np.minimum((said * BINS).astype(int), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    some = count > 0
    mean_said = np.bincount(bins, said, BINS)[some] / count[some]
    return mean_said, np.bincount(bins, happened, BINS)[some] / count[some], count[some]


def _picture(said: Any, true: Any, count: Any) -> str:
    def draw(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], color=ACCENT, linewidth=1.6)
        ax.scatter(said, true, s=20 + 180 * count / count.max(), color=INK)
        ax.set(
            xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="predicted probability", ylabel="observed share"
        )
        tidy(ax, "both")

    what = "Dots: observed share against predicted probability; the table below has the numbers"
    return drawn(draw, (WIDTH, 4.4), what, "calibration")
