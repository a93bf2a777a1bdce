"""StPMKL [YMJZY12]: accuracy against noise, convergence, the equivalence with l1-MKL, noise rates, crowd labels.

The paper prints figures and no numbers, so there is nothing to put beside ours but its claims.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave.estimators import NoisyLabelMKLClassifier

from ..datasets import load_crowd, load_uci
from ..study import Key, Part, Row, Study, at_hand, not_at_hand
from . import convergence, equivalence, stopping
from . import report as reports
from .data import flipped_split, study_kernels
from .methods import (
    BUDGETS,
    CROWD_METHODS,
    FOLD_CS,
    METHODS,
    TOL,
    VALIDATION_CS,
    run_crowd_method,
    run_noisy_method,
)

SETS = ("ionosphere", "heart", "sonar", "pima", "breast")
RATE_SETS = (*SETS, "wdbc")
NOISE = (0.0, 0.1, 0.2, 0.3, 0.4)

_SETTINGS = {"tol": TOL, "validation": VALIDATION_CS, "budgets": BUDGETS, "folds": FOLD_CS}


def accuracy_keys(repeats: int) -> list[Key]:
    """Every set at every noise; a trial of all before the next."""
    return [
        {"data": s, "q": q, "seed": t} for t in range(repeats) for s in at_hand(load_uci, SETS) for q in NOISE
    ]


def accuracy_work(key: Key) -> list[Row]:
    """All methods on one split."""
    split = flipped_split(str(key["data"]), float(key["q"]), int(key["seed"]))
    return [run_noisy_method(name, study_kernels(), split, int(key["seed"])) for name in METHODS]


def rate_keys(repeats: int) -> list[Key]:
    """Noise that leaves the labels some information."""
    sets = at_hand(load_uci, RATE_SETS)
    return [{"data": s, "q": q, "seed": t} for t in range(repeats) for s in sets for q in NOISE[:-1]]


def rate_work(key: Key) -> list[Row]:
    """Estimated rate, its interval, and how many of the flipped labels are among the first suspects."""
    split = flipped_split(str(key["data"]), float(key["q"]), int(key["seed"]))
    model = NoisyLabelMKLClassifier(study_kernels()).fit(split.X, split.y)
    low, high = model.noise_rate_interval_
    first = model.suspects_[: round(0.2 * split.y.size)]
    flips = int(split.flipped.sum())
    return [
        {
            "realised": split.realised,
            "estimated": model.noise_rate_,
            "low": low,
            "high": high,
            "found": float(split.flipped[first].sum() / flips) if flips else np.nan,
        }
    ]


def crowd_keys(repeats: int) -> list[Key]:
    """Return one run per method: the split is given."""
    return (
        [{"method": name, "seed": 0} for name in CROWD_METHODS]
        if at_hand(load_crowd, ["music_genre"])
        else []
    )


def crowd_work(key: Key) -> list[Row]:
    """One method on the music genres."""
    return [run_crowd_method(str(key["method"]))]


def _missing(sets: tuple[str, ...]) -> list[str]:
    return not_at_hand(load_uci, sets)


def _once(module: Any, name: str, title: str) -> Part:
    """Return a part whose runs are made once for every data set at hand."""
    return Part.of(
        module,
        name,
        title,
        keys=lambda repeats: module.keys(at_hand(load_uci, SETS)),
        repeats=1,
        quick_repeats=1,
        missing=lambda: _missing(SETS),
    )


STUDY = Study(
    "stpmkl",
    "Multiple Kernel Learning from Noisy Labels by Stochastic Programming",
    (
        Part(
            "accuracy",
            "Figure 1, left: accuracy against the noise rate",
            {**_SETTINGS, "methods": list(METHODS)},
            accuracy_keys,
            accuracy_work,
            reports.accuracy,
            quick_repeats=1,
            missing=lambda: _missing(SETS),
        ),
        _once(convergence, "convergence", "Figure 1, right: gap against iterations"),
        _once(equivalence, "equivalence", "StPMKL is l1-MKL at a smaller lambda"),
        Part.of(
            stopping,
            "stopping",
            "Stopped early and converged",
            keys=lambda repeats: stopping.keys(at_hand(load_uci, SETS), repeats),
            repeats=5,
            quick_repeats=1,
            missing=lambda: _missing(SETS),
        ),
        Part(
            "rates",
            "Noise rates and suspects",
            {"version": 2},
            rate_keys,
            rate_work,
            reports.rates,
            missing=lambda: _missing(RATE_SETS),
        ),
        Part(
            "crowd",
            "Crowd labels: music genres",
            {"methods": list(CROWD_METHODS), "bank": "default"},
            crowd_keys,
            crowd_work,
            reports.crowd,
            repeats=1,
            quick_repeats=1,
            missing=lambda: not_at_hand(load_crowd, ["music_genre"]),
        ),
    ),
)
