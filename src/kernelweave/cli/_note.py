"""A model file with the note of ``kernelweave fit`` beside the model, and a model in words and numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._terminal import say

COLUMNS = ("numbers", "categories", "objects")
TASKS = ("classification", "regression", "novelty", "survival")


@dataclass
class Note:
    """Note of ``fit`` beside a model, so that ``predict`` and ``report`` know what to do with a table."""

    data: str  # name of the file that the model was fitted on
    target: str  # column of the labels, or of the event; empty where nothing but novelty is predicted
    task: str  # whether they are classes or numbers, or there are none
    id: str | None  # column that names the rows
    rows: int  # number of training samples
    views: dict[str, list[str]] = field(default_factory=dict)  # columns of each; empty where none was named
    columns: dict[str, str] = field(
        default_factory=dict
    )  # numbers, categories or objects; empty for matrices
    gram: list[str] = field(default_factory=list)  # names of the kernel matrices; empty for columns
    missing: str = "error"  # what became of rows that lack a view
    fold_groups: str | None = None  # column whose rows of the same value were held out together
    time: str | None = None  # column of the times to an event
    event_value: str | None = None  # what is the event there, where it was said
    strata: str | None = None  # column of the groups with a baseline hazard of their own
    folds: int = 5  # of the cross-validation that chose C
    na: list[str] = field(default_factory=list)  # texts that were read as missing cells
    strip: bool = False  # whether white space around texts was removed
    categories: dict[str, list[str]] = field(default_factory=dict)  # those of the training table, by column
    reading: dict[str, Any] = field(default_factory=dict)  # what was done to the table: ``Remarks.as_dict()``
    guessing: float | None = None  # score of always saying the most frequent class, or the mean
    command: str | None = None  # the command that was typed
    pairs: dict[str, Any] = field(default_factory=dict)  # of pairs: setting, ids, and how to read new objects
    C: float | None = None  # what cross-validation chose, for a regression

    def as_dict(self) -> dict[str, Any]:
        """Return the note as model files hold it."""
        written = dict(vars(self))
        C = written.pop("C")
        return written if C is None else written | {"C by cross-validation": C}


def open_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return a model and the label of its file; one sentence says where another scikit-learn wrote it."""
    from importlib.metadata import version

    from sklearn.exceptions import InconsistentVersionWarning

    from ..persistence import loaded

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, label = loaded(path)
    others = [warning for warning in caught if not issubclass(warning.category, InconsistentVersionWarning)]
    if len(others) < len(caught):
        wrote, here = label["scikit-learn"], version("scikit-learn")
        say(
            f"warning: {path} was written with scikit-learn {wrote}, this is {here}: what its steps compute may have "
            "changed",
            err=True,
        )
    for warning in others:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return model, label


def checked_note(label: dict[str, Any], path: Path) -> Note:
    """Return the note in the label of a model file, or say that ``fit`` of this version did not write it."""
    note = label["note"]
    if "columns" not in note:
        raise ValueError(
            f"{path} was not written by 'kernelweave fit', which notes the columns: load it in Python with "
            "kernelweave.persistence.load"
        )

    def is_text(value: Any) -> bool:
        return value is None or isinstance(value, str)

    def are_texts(values: Any) -> bool:
        return isinstance(values, list) and all(isinstance(text, str) for text in values)

    def is_pairs(known: Any) -> bool:
        texts, sides = ("setting", "left_id", "right_id", "coverage"), ("left", "right")
        return isinstance(known, dict) and (
            not known
            or (
                all(isinstance(known.get(key), str) for key in texts)
                and all(isinstance(known.get(key), dict) and are_texts(list(known[key])) for key in sides)
            )
        )

    columns, na, reading, rows = note["columns"], note.get("na"), note.get("reading"), note.get("rows")
    # of the remarks only the new names of columns are used again
    renamed = {} if reading is None else reading.get("renamed", {}) if isinstance(reading, dict) else None
    fits = {
        "command": is_text(note.get("command")),
        "columns": isinstance(columns, dict) and all(kind in COLUMNS for kind in columns.values()),
        "gram": are_texts(note.get("gram")),
        "id": is_text(note.get("id")),
        **{key: is_text(note.get(key)) for key in ("fold_groups", "time", "event_value", "strata")},
        "na": na is None or are_texts(na),
        "pairs": is_pairs(note.get("pairs", {})),
        "reading": isinstance(renamed, dict) and are_texts(list(renamed.values())),
        "rows": type(rows) is int and rows > 0,
        "strip": isinstance(note.get("strip"), bool | None),
        "target": isinstance(note.get("target"), str),
        "task": note.get("task") in TASKS,
    }
    wrong = [key for key, right in fits.items() if not right]
    if wrong:
        raise ValueError(
            f"{path} does not say {wrong[0]!r} as this version needs it (it was written by kernelweave "
            f"{label['kernelweave']}): fit again, or load it in Python with kernelweave.persistence.load"
        )
    fields = Note.__dataclass_fields__
    known = {key: value for key, value in note.items() if key in fields and value is not None}
    return Note(**{"data": "", "id": None, **known, "C": note.get("C by cross-validation")})


TOP = 12
#: where ``fit`` leaves the facts in the note of a model file
FACTS = "facts"
#: what a fact has to be; everything else is only passed on
KINDS: dict[str, Any] = {
    **dict.fromkeys(("model", "status", "certificate_in_words"), str),
    **dict.fromkeys(("training_rows", "kernels", "kernels_used"), int),
    **dict.fromkeys(("norm", "loss"), (str, int, float)),
    **dict.fromkeys(("certificate", "views"), dict),
    "C": (int, float, list),
    "solver": (str, type(None)),
    "weights": list,
}


def describe(model: Any, label: dict[str, Any]) -> dict[str, Any]:
    """Return everything worth knowing about a model and the label of its file as plain data."""
    import numpy as np

    from ..estimators.fitted import weight_origin
    from ..inspection import final_estimator, kernel_views, tied_views
    from ..inspection.views import as_shares, learnt_weights

    estimator = final_estimator(model)
    if not hasattr(estimator, "certificate_"):
        raise ValueError(f"there is no certificate to tell of: the model is a {type(estimator).__name__}")
    origin = weight_origin(estimator)
    shares, views = learnt_weights(model), kernel_views(model)
    used = int(np.count_nonzero(shares))
    # shares of the learnt weight, where there is any: what is given may be any number of times larger
    shown = origin.learnt | origin.nothing
    shares = as_shares(np.where(shown, shares, 0.0))
    order = np.argsort(-shares, kind="stable")
    certificate, note = estimator.certificate_, label["note"]
    loss = "hinge"  # an SVM on learned kernels
    if hasattr(estimator, "loss_"):
        # its name where its parameters are the defaults
        plain, loss = type(estimator.loss_).registered_as, repr(estimator.loss_)
        loss = str(plain) if plain and loss == repr(type(estimator.loss_)()) else loss
    facts = {
        "model": type(estimator).__name__,
        "kernelweave": label.get("kernelweave"),
        "task": note.get("task"),
        "target": note.get("target"),
        "training_rows": note.get("rows"),
        "events": getattr(estimator, "n_events_", None),
        "classes": [str(c) for c in estimator.classes_] if hasattr(estimator, "classes_") else None,
        "kernels": len(shares),
        "kernels_used": used,
        "C": np.asarray(getattr(estimator, "C_", estimator.C)).tolist(),
        "norm": _norm(estimator),
        "loss": loss,
        "solver": estimator.solver_,
        "status": estimator.status_,
        "certificate": {
            "primal": float(certificate.primal),
            "dual": float(certificate.dual),
            "relative_gap": float(certificate.relative_gap),
        },
        "certificate_in_words": repr(certificate),
        "weights_learnt": int(np.count_nonzero(origin.learnt)),
        "weights_in_words": origin.sentence,
        "views": {name: float(shares[views == name].sum()) for name in dict.fromkeys(views[shown].tolist())},
        "weights": [
            {"kernel": str(estimator.kernel_names_[j]), "view": str(views[j]), "weight": float(shares[j])}
            for j in order
            if shares[j] > 0
        ],
    }
    if hasattr(estimator, "decision_"):  # models of earlier versions do not say why
        facts["decision"] = str(estimator.decision_)
    if note.get("pairs"):
        facts["pairs"] = _of_pairs(model, note["pairs"])
    if note.get("reading"):
        facts["reading"] = note["reading"]
    ties = tied_views(model)
    if ties is not None:
        facts["tied_choices"] = {
            "choices": ties.choices[["norm", "C", "score"]].to_dict("records"),
            "views": {name: list(ends) for name, ends in ties.ranges.items()},
        }
    findings = [str(sentence) for sentence in getattr(estimator, "findings_", ())]
    if findings:
        facts["findings"] = findings
    if hasattr(estimator, "noise_rate_"):
        facts["noise_rate"] = float(estimator.noise_rate_)
        facts["noise_rate_interval"] = [float(end) for end in estimator.noise_rate_interval_]
    if isinstance(note.get("guessing"), float):  # files of earlier versions do not have it
        facts["score_of_guessing"] = note["guessing"]
    if hasattr(estimator, "best_score_"):
        facts["cross_validated_score"] = float(estimator.best_score_)
        plain = "accuracy" if facts["classes"] else "R2"
        scoring = getattr(getattr(estimator, "loss_", None), "held_out_score", plain)
        facts["scoring"] = str(estimator.scoring or scoring)
    return facts


def _of_pairs(model: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Return what there is to say of a model of pairs: the setting of its scores, and weights by side."""
    from ..inspection import pair_table
    from ..report.pairs import new_in

    table = pair_table(model)
    sides = (("left_kernels", table.sum(axis=1)), ("right_kernels", table.sum(axis=0)))
    return {
        "setting": known["setting"],
        "coverage": known["coverage"],
        "new": new_in(known["setting"], (known["left_id"], known["right_id"])),
        **{name: {str(kernel): float(share) for kernel, share in sums.items()} for name, sums in sides},
    }


def noted(label: dict[str, Any]) -> dict[str, Any] | None:
    """Return the facts that ``fit`` left in the label of a file; None where there are none of this shape.

    Reading them takes no model, and so no second to import what builds one.
    """
    facts = label["note"].get(FACTS)
    if not isinstance(facts, dict) or any(
        not isinstance(facts.get(key), kind) for key, kind in KINDS.items()
    ):
        return None
    try:
        in_words(facts)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None
    return facts


def _norm(estimator: Any) -> str | float:
    """Return the norm that was fitted: as it was asked for, or by its label where another one was fitted."""
    from ..norms import make_norm

    asked, fitted = getattr(estimator, "norm", None), str(estimator.norm_name_)
    if asked is None or (isinstance(asked, str) and asked == "auto"):  # chosen, or by a rule
        return fitted
    if make_norm(asked).label != fitted:
        return fitted
    if isinstance(asked, str | int | float):
        return asked
    return repr(asked) if asked.registered_as else fitted


def _score_in_words(facts: dict[str, Any]) -> str | None:
    """Write the held-out score beside that of guessing; None where nothing is known of either."""
    if "cross_validated_score" not in facts:
        if "score_of_guessing" not in facts:
            return None
        return "no score: nothing was held out to choose C; --report compares on held-out folds"
    pairs = facts.get("pairs", {})
    score = f"{facts['scoring']} {facts['cross_validated_score']:.3f} on "
    if pairs:
        score += "such held-out pairs (of the best C and norm)"
        score = f"what you may expect for {pairs['new']}: {score}"
    else:
        score += "held-out folds (of the best setting)"
    if "score_of_guessing" in facts:
        nothing = "the most frequent class" if facts["classes"] else "the mean"
        score += f"; always {nothing}: {facts['score_of_guessing']:.3f}"
    return score


def in_words(facts: dict[str, Any]) -> str:
    """Write the facts for people."""
    from ._terminal import on_one_line, strip, table

    facts = on_one_line(facts)
    C = ", ".join(f"{c:g}" for c in (facts["C"] if isinstance(facts["C"], list) else [facts["C"]]))
    what = "classes " + ", ".join(facts["classes"]) if facts["classes"] else "a number"
    if facts.get("task") == "novelty":
        what = "what is usual"
    if facts.get("events") is not None:
        what = f"a time to an event, which {facts['events']} rows have"
    # models that were saved from Python have no table behind them
    target = f" for {facts['target']!r}" if facts["target"] else ""
    fitted = "" if facts["training_rows"] is None else f", fitted on {facts['training_rows']} rows"
    lines = [
        f"{facts['model']}{target} ({what}){fitted}",
        f"norm {facts['norm']}, loss {facts['loss']}, C = {C}, solver {facts['solver']}",
        f"{facts['kernels_used']} of {facts['kernels']} kernels have weight",
    ]
    # files of earlier versions say nothing of some
    lines += [facts[name] for name in ("decision", "weights_in_words") if facts.get(name)]
    pairs = facts.get("pairs", {})
    if pairs:
        lines.append(pairs["coverage"])
    if line := _score_in_words(facts):
        lines.append(line)
    if "noise_rate" in facts:
        rate, low, high = (f"{100 * r:.1f}" for r in (facts["noise_rate"], *facts["noise_rate_interval"]))
        lines.append(f"noise rate {rate} % (between {low} and {high} %)")
    for side in ("left", "right") if pairs else ():
        heaviest = sorted(pairs[f"{side}_kernels"].items(), key=lambda item: -item[1])[:TOP]
        rows = [[name, f"{weight:.3f}", strip(weight)] for name, weight in heaviest]
        lines += ["", table([f"{side} kernel", "weight", "share"], rows, right=[1])]
    if len(facts["views"]) > 1 and not pairs:
        heaviest = sorted(facts["views"].items(), key=lambda item: -item[1])[:TOP]
        rows = [[name, f"{weight:.3f}", strip(weight)] for name, weight in heaviest]
        head = ["view", "weight", "share"]
        ties = facts.get("tied_choices")
        if ties:
            several = len({choice["norm"] for choice in ties["choices"]}) > 1
            head.append(f"among {len(ties['choices'])} tied choices of C{' and norm' if several else ''}")
            for row in rows:
                low, high = ties["views"][row[0]]
                row.append(f"{low:.3f} to {high:.3f}")
        lines += ["", table(head, rows, right=[1, 3])]
    rows = [[w["kernel"], f"{w['weight']:.3f}"] for w in facts["weights"][:TOP]]
    lines += ["", table(["kernel", "weight"], rows, right=[1])]
    rest = facts["weights"][TOP:]
    if rest:
        lines.append(f"  and {len(rest)} others with {sum(w['weight'] for w in rest):.3f} together")
    return "\n".join([*lines, "", facts["certificate_in_words"]])
