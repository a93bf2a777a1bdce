"""Times to an event at the command line: options, targets, the estimator, predicted curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from click import UsageError

from .._components import nearest
from ._note import Note
from ._tables import text_of
from ._terminal import say
from ._views import require_column

if TYPE_CHECKING:
    from ._options import Options


def check_survival(options: Options) -> None:
    """Refuse what models of survival would ignore, and one of --time and --event without the other."""
    if not (options.time and options.event):
        raise UsageError(
            "--time and --event go together: when a row was last seen, and whether with the event"
        )
    ignored = {
        "--target": options.target, "--class-weight": options.class_weight, "--noise-rate": options.noise_rate,
        "--novelty": options.novelty, "--task": options.task != "auto",
    }  # fmt: skip
    for option, value in ignored.items():
        if value:
            raise UsageError(
                f"--time and {option} do not go together: times to an event are learnt; remove {option}"
            )
    from ..losses import SurvivalLoss, registry
    from ..metrics import SCORES

    if options.scoring is not None and options.scoring not in SCORES:
        raise UsageError(
            f"--scoring takes one of {', '.join(SCORES)} with --time, got {options.scoring!r}."
            f"{nearest(options.scoring, list(SCORES))}"
        )
    known = [name for name in registry if issubclass(registry[name], SurvivalLoss)]
    if options.loss is not None and options.loss not in known:
        raise UsageError(f"--loss takes one of {', '.join(known)} with --time, got {options.loss!r}")


def followed(frame: Any, options: Options, notes: list[str] | None = None) -> tuple[Any, Any]:
    """Return times with events, and strata where there are any; ``notes`` gets what counts as the event."""
    from ..metrics import survival

    of = {"--time": options.time, "--event": options.event, "--strata": options.strata}
    for option, column in of.items():
        if column is not None:
            require_column(frame, column, options.data, f" for {option}")
    event, value = frame[options.event], options.event_value
    if value is not None:  # what is typed is a text, and 1.0 in a table is 1
        event = event.map(text_of, na_action="ignore").astype(object)
        value = next((text for text in event.dropna().unique() if text.lower() == value.lower()), value)
    try:
        y = survival(frame[options.time], event, value)
    except ValueError as error:
        said = str(error).replace("kernelweave.survival(time, event, event_value=...)", "--event-value VALUE")
        raise ValueError(f"--time {options.time} --event {options.event}: {said}") from None
    if not y["event"].any():
        raise ValueError(f"no row of {options.event!r} has the event: nothing can be learnt")
    if notes is not None:
        seen = ", ".join(map(repr, dict.fromkeys(frame[options.event][y["event"]].tolist())))
        notes.append(f"{int(y['event'].sum())} of {len(y)} rows have the event ({options.event} = {seen})")
    if options.strata is None:
        return y, None
    strata = frame[options.strata]
    if missing := int(strata.isna().sum()):
        raise ValueError(
            f"column {options.strata!r} of --strata is missing in {missing} rows: give every row a stratum"
        )
    return y, strata.map(text_of).to_numpy(dtype=object).astype(str)


def survival_estimator(kernels: Any, options: Options, y: Any, groups: Any, settings: dict[str, Any]) -> Any:
    """Return the estimator that the options ask for; ``settings`` are those of every estimator."""
    import kernelweave as kw

    fixed = None if options.C in (None, "cv") else float(str(options.C))
    if not options.chooses:
        return kw.MKLSurvival(kernels, **settings | {"C": fixed})
    # folds are stratified by event: each has one, and somebody without where anybody is
    of_groups = np.arange(len(y)) if groups is None else groups
    kinds = np.unique(y["event"])
    fewest = min(np.unique(of_groups[y["event"] == kind]).size for kind in kinds)
    if fewest < 2:
        what = "rows" if groups is None else "groups of --fold-groups"
        raise ValueError(f"--C cv needs two {what} with the event, and two without, at least: give a number")
    cv: Any = min(options.folds, fewest)
    if groups is not None:
        from ..report.folds import group_folds

        cv = group_folds(cv, True)
    settings |= {"cv": cv, "norms": options.tried_norms or None, "scoring": options.scoring}
    settings |= {} if fixed is None else {"Cs": [fixed]}
    return kw.MKLSurvivalCV(kernels, **settings)


def times_of(text: str) -> list[float]:
    """Read ``--at 12,36,60``.

    >>> times_of("12, 36.5")
    [12.0, 36.5]
    """
    try:
        times = [float(part) for part in text.split(",")]
    except ValueError:
        times = []
    if not times or not all(0.0 <= time < np.inf for time in times):
        raise UsageError(f"--at takes times, separated by commas, such as 12,36,60; got {text!r}")
    return times


def predicted_risks(model: Any, X: Any, frame: Any, note: Note, at: Sequence[float]) -> dict[str, Any]:
    """Return columns of the risk, and of the probability to be without event at some times."""
    from ..inspection import final_estimator
    from ..metrics import curves_of

    columns = {"risk": model.predict(X)}
    if not at:
        return columns
    last = float(final_estimator(model).unique_times_[-1])
    if late := [f"{time:g}" for time in at if time > last]:
        say(
            f"note: nobody was followed beyond {last:g}: S({', '.join(late)}) is the value there, and what happens "
            "later is not known",
            err=True,
        )
    strata = None
    if note.strata is not None:
        require_column(frame, note.strata, "the table", ", the strata of the model, which curves need")
        strata = frame[note.strata].map(text_of).to_numpy(dtype=object).astype(str)
    survived = np.array([curve(np.array(at)) for curve in curves_of(model, X, strata)])
    return columns | {f"S({time:g})": survived[:, k] for k, time in enumerate(at)}
