"""To repeat this: the command, and everything else that decides the numbers."""

from __future__ import annotations

import platform
from html import escape
from importlib.metadata import version

import numpy as np

from .._subject import Subject

__all__ = ["section"]


def section(subject: Subject) -> str:
    """Return the command and the settings."""
    estimator, refits, note = subject.estimator, subject.refits, subject.note
    facts = {
        "model": repr(estimator) if len(repr(estimator)) < 2000 else type(estimator).__name__,
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
