"""To repeat this: the command, and everything else that decides the numbers."""

from __future__ import annotations

import platform
from html import escape
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np

from .._subject import Subject

__all__ = ["section"]


def section(subject: Subject) -> str:
    """Return the command and the settings."""
    estimator, refits, note = subject.estimator, subject.refits, subject.note
    facts = {
        "model": _written(estimator),
        "C": np.array2string(np.asarray(estimator.C_), precision=6) if hasattr(estimator, "C_") else "",
        "samples": str(len(subject.y)),
        "kernels": f"{len(estimator.kernel_names_)}, normalisation {estimator.normalize or 'none'}"
        f"{', centred' if estimator.center else ''}",
        "stopping": f"relative gap of {estimator.tol:g}",
        "folds of this page": f"{refits.folds} x {refits.rounds}, random state {subject.seed}"
        + (", whole groups" if subject.groups is not None else ""),
        "versions": ", ".join(
            f"{name} {version(name)}" for name in ("kernelweave", "scikit-learn", "numpy", "numba")
        ),
        "machine": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    }
    for key in ("data", "target", "id"):
        if note.get(key):
            facts[key] = str(note[key])
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
    command = f"<pre>{escape(note['command'])}</pre>" if note.get("command") else ""
    return f'<h2 id="repeat">To repeat this</h2>{command}<dl>{listed}</dl>'


def _written(estimator: Any) -> str:
    """Write an estimator with the parameters that are not its defaults; the kernels have a table of their own."""
    defaults = {name: one.default for name, one in signature(type(estimator)).parameters.items()}
    said = [
        f"{name}={value!r}"
        for name, value in estimator.get_params(deep=False).items()
        if name not in ("kernels", "verbose") and repr(value) != repr(defaults.get(name))
    ]
    return f"{type(estimator).__name__}({', '.join(['kernels', *said])})"
