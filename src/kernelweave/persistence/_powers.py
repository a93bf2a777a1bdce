"""Parameters of estimators that reach beyond the model: files they read and write, functions they call, processes.

They say how a fit was run, not what was learnt.  In a file from somebody else they would be orders to the machine that
refits the model: a ``memory`` is a folder of pickles to be loaded, a ``checkpoint`` a file to be written over.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DROPPED", "MACHINE", "MOST_JOBS", "PATHS", "cleared"]

#: never in a model file
PATHS = frozenset(("memory", "checkpoint", "callback"))
#: of these, what ``save`` leaves out without a word; a callback is code, which it refuses
DROPPED = PATHS - {"callback"}
#: what else is somebody's choice for their own machine, with the value that leaves it to this one
MACHINE = {**dict.fromkeys(PATHS), "n_jobs": None, "memory_budget": None, "verbose": False}
#: processes that a file may ask for: prediction in a column transformer starts them
MOST_JOBS = 1024


def cleared(model: Any, *, machine: bool = False) -> Any:
    """Return an unfitted copy of a model without orders to the machine, nested estimators included.

    Parameters
    ----------
    model : estimator
    machine : bool, default=False
        Clear numbers of jobs, memory budgets and verbosity too, as for a model that somebody else made.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernelweave import MKLClassifier
    >>> model = make_pipeline(MKLClassifier(checkpoint="fit.npz", n_jobs=2), memory="cache")
    >>> copy = cleared(model)
    >>> copy.memory is None, copy[-1].checkpoint is None, copy[-1].n_jobs
    (True, True, 2)
    """
    from sklearn.base import clone

    names = MACHINE if machine else dict.fromkeys(PATHS)
    copy = clone(model)
    settings = {
        name: names[name.rpartition("__")[2]]
        for name, value in copy.get_params(deep=True).items()
        if name.rpartition("__")[2] in names and value is not None
    }
    return copy.set_params(**settings)
