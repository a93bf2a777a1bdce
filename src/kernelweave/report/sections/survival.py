"""Sections on times to an event: curves by predicted risk, calibration, hazard ratios, residuals."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...displays import CalibrationDisplay, SurvivalDisplay
from ...displays.survival import THIRDS
from ...inspection import risk_groups
from ...inspection.explain import feature_names
from ...inspection.followed import calibrated
from ...inspection.views import transformed
from ...metrics import kaplan_meier
from .._html import WIDTH, drawn, figure, folded, number, short, table
from .._refits import Subject
from ..survival import SurvivalRefits, TimesToEvent, hazard_ratios

#: times at which the numbers at risk are shown, samples listed with the largest residuals
AT_RISK, WORST = 5, 10
#: samples of a group below which no calibration is shown
FEWEST = 20


def survival_section(subject: Subject) -> str:
    """Return curves, calibration, hazard ratios and residuals; nothing where targets are no times to an event."""
    if subject.y.dtype.names is None:
        return ""
    return _curves(subject) + _calibration(subject) + _ratios(subject) + _residuals(subject)


def _targets(subject: Subject) -> TimesToEvent:
    return cast(TimesToEvent, subject.refits.targets)


def _curves(subject: Subject) -> str:
    """Return Kaplan and Meier's curves of the thirds of held-out risk, and the numbers at risk."""
    refits, y = cast(SurvivalRefits, subject.refits), subject.y
    group = risk_groups(refits.place)
    times = np.linspace(0.0, float(y["time"].max()), AT_RISK + 1)[:-1]
    rows: list[list[Any]] = []
    for third in np.unique(group).tolist():
        own = y[group == third]
        curve = kaplan_meier(own)
        half = curve.x[curve.y <= 0.5]
        median = (float(half[0]), short(float(half[0]))) if half.size else (np.inf, "not reached")
        left = [int(np.sum(own["time"] >= time)) for time in times]
        rows.append([THIRDS[third], len(own), int(own["event"].sum()), median, *left])
    picture = drawn(
        lambda ax: SurvivalDisplay.from_predictions(y, refits.place, ax=ax), (WIDTH, 3.8),
        "Curves: share without event over time of thirds by held-out risk; the table below has the numbers", "thirds",
    )  # fmt: skip
    return (
        '<h2 id="survival">What happened to whom</h2><p>Samples of the first round, each predicted by a fit that did '
        "not see it, in thirds by their risk within the fold. The curves are what happened to them (Kaplan and Meier); "
        f"the log-rank test that all are the same has a p-value of {refits.p_value:.2g}.</p>"
        + figure(picture, "Share without event over time, by thirds of held-out risk.")
        + table(
            ["third", "samples", "events", "median time", *(f"at {short(time)}" for time in times)],
            rows,
            "Samples of each third, and how many were still at risk at some times",
        )
    )


def _calibration(subject: Subject) -> str:
    """Return predicted against observed shares at three horizons."""
    refits, targets, y = subject.refits, _targets(subject), subject.y
    curves, horizons = refits.ours.decision, targets.horizons
    if curves is None or not np.isfinite(curves[0]).all():
        return ""
    at = np.searchsorted(targets.times, horizons)
    found = calibrated(y, curves[0][:, at], horizons, max(2, min(5, len(y) // FEWEST)))
    picture = drawn(
        lambda ax: CalibrationDisplay(found).plot(ax=ax), (WIDTH, 4.4),
        "Lines: observed against predicted share without event; the table below has the numbers", "horizons",
    )  # fmt: skip
    rows = [
        [(row.time, short(row.time)), int(row.samples), row.predicted, row.observed]
        for row in found.itertuples()
    ]
    off = float(np.average(np.abs(found["predicted"] - found["observed"]), weights=found["samples"]))
    return (
        '<h3 id="horizons">Calibration</h3><p>Held-out samples in groups of equal size by the predicted probability to '
        "be without event, at the quartiles of the event times: where probabilities are what they say, the points lie "
        f"on the dashed line. They are {number(off)} away from it on average.</p>"
        + figure(picture, "Observed against predicted share without event.")
        + folded(
            "The numbers", table(["time", "samples", "predicted", "observed"], rows, "Groups of samples")
        )
    )


def _ratios(subject: Subject) -> str:
    """Return the hazard ratios of the columns that always count; nothing where there are none."""
    ratios = hazard_ratios(subject.model, transformed(subject.model, subject.X))
    if ratios is None:
        return ""
    refits = [other for other in _targets(subject).ratios if other is not None]
    rows: list[list[Any]] = []
    names = feature_names(subject.model, subject.estimator)
    for column, ratio in ratios.items():
        own = [float(other[column]) for other in refits if column in other]
        spread = f"{number(min(own))} – {number(max(own))}" if own else "–"
        rows.append([str(names[column]), float(ratio), (float(np.mean(own)) if own else np.nan, spread)])
    return (
        '<h3 id="ratios">Covariates that always count</h3><p>How many times larger the hazard is for a standard '
        "deviation more of a column, everything else equal. The range is that of the refits, which share most of their "
        "samples: it is no confidence interval.</p>"
        + table(["column", "hazard ratio", "range of the refits"], rows, "Hazard ratios")
    )


def _residuals(subject: Subject) -> str:
    """Return the held-out samples whose time was the least expected."""
    refits, y = subject.refits, subject.y
    curves = refits.ours.decision
    if curves is None or not np.isfinite(curves[0]).all():
        return ""
    expected = np.abs(np.log(np.maximum(curves[0][:, -1], 1e-12)))
    residual = y["event"] - expected
    # deviance: residuals of few events and of many on one scale
    surprise = expected - y["event"] * (1.0 + np.log(np.maximum(expected, 1e-12)))
    order = np.argsort(-surprise, kind="stable")[:WORST]
    rows = [
        [subject.names[i], (float(y["time"][i]), short(float(y["time"][i]))), "event" if y["event"][i] else "none seen",
         float(expected[i]), float(residual[i])]
        for i in order
    ]  # fmt: skip
    return (
        '<h3 id="residuals">Residuals</h3><p>The martingale residual is one where the event was seen, less the events '
        "that were to be expected of the sample until it was last seen, by a fit that did not see it: near one, the "
        "event came much too soon; far below zero, it stayed away for long.</p>"
        + table(["row", "time", "seen", "events expected", "residual"], rows, "The least expected")
    )
