"""Parameters of estimators that reach beyond the model: files they read and write, functions they call, processes.

They say how a fit was run, not what was learnt.  In a file from somebody else they would be orders to the machine that
refits the model: a ``memory`` is a folder of pickles to be loaded, a ``checkpoint`` a file to be written over.  A
search sets parameters by name, so a key of its grid (``"model__checkpoint"``) is held to the same list as an attribute.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "DROPPED",
    "KEYED_BY_STEPS",
    "MACHINE",
    "MOST_JOBS",
    "PATHS",
    "cleared",
    "is_default",
    "parameter_of",
]

#: never in a model file
PATHS = frozenset(("memory", "checkpoint", "callback"))
#: what else is somebody's choice for their own machine, with the value that leaves it to this one
MACHINE: dict[str, Any] = {
    **dict.fromkeys(PATHS),
    "n_jobs": None,
    "pre_dispatch": "2*n_jobs",
    "memory_budget": None,
    "verbose": False,
}
#: of these, what ``save`` leaves out without a word; a callback is code, which it refuses
DROPPED = {name: default for name, default in MACHINE.items() if name != "callback"}
#: numbers of jobs that mean anything; a loaded model has none of its own
MOST_JOBS = 1024
#: dictionaries of scikit-learn whose keys are names of steps, and are never set as parameters
KEYED_BY_STEPS = frozenset(("transformer_weights", "output_indices_", "_transformer_to_input_indices"))
#: parameters of scikit-learn whose keys are set as parameters, or handed to a function as arguments
APPLIED = frozenset(("param_grid", "param_distributions", "kw_args", "inv_kw_args"))


def parameter_of(key: str) -> str:
    """Return the parameter that ``set_params`` sets for a key: ``"pipeline__model__C"`` sets ``C``."""
    return key.rpartition("__")[2]


def is_default(name: str, value: Any) -> bool:
    """Whether one of these parameters leaves the choice to the machine; ``memory`` of a solver is a number of steps."""
    steps = name == "memory" and type(value) is int
    same = isinstance(value, bool | int | str) and value == MACHINE[name]
    return value is MACHINE[name] or same or steps


def cleared(model: Any, *, machine: bool = False) -> Any:
    """Return an unfitted copy of a model without orders to the machine, nested estimators and grids included.

    Parameters
    ----------
    model : estimator
    machine : bool, default=False
        Clear numbers of jobs, memory budgets and verbosity too, as for a model that somebody else made.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernelweave import MKLClassifier
    >>> model = make_pipeline(MKLClassifier(checkpoint="fit.npz", n_jobs=2), memory="cache")
    >>> copy = cleared(model)
    >>> copy.memory is None, copy[-1].checkpoint is None, copy[-1].n_jobs
    (True, True, 2)
    >>> cleared(GridSearchCV(model, {"memory": ["a", "b"], "mklclassifier__C": [1.0, 10.0]})).param_grid
    {'mklclassifier__C': [1.0, 10.0]}
    """
    import numpy as np
    from sklearn.base import clone

    names = MACHINE if machine else dict.fromkeys(PATHS)

    def inside(value: Any) -> Any:
        """Clear what a search sets: keys that are such parameters, and estimators among the values."""
        if isinstance(value, dict):
            return {key: inside(part) for key, part in value.items() if parameter_of(str(key)) not in names}
        if isinstance(value, list | tuple):
            return type(value)([inside(part) for part in value])
        if isinstance(value, np.ndarray) and value.dtype == object:
            return [inside(part) for part in value.ravel()]
        return cleared(value, machine=machine) if hasattr(value, "get_params") else value

    copy = clone(model)
    settings = {}
    for name, value in copy.get_params(deep=True).items():
        last = parameter_of(name)
        if last in names and not is_default(last, value):
            settings[name] = names[last]
        elif last in APPLIED and value is not None:
            settings[name] = inside(value)
    return copy.set_params(**settings)
