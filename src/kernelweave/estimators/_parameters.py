"""Parameters of estimators: kept as given, and settled where they are no choice."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TypeVar

__all__ = ["keep_parameters", "settled"]

Estimator = TypeVar("Estimator", bound=type)


def keep_parameters(estimator: object, given: dict[str, object]) -> None:
    """Keep what a constructor was given, each under its own name: scikit-learn's rule, in one line.

    ``given`` are the ``locals()`` of the constructor.
    """
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def settled(**values: object) -> Callable[[Estimator], Estimator]:
    """Decorate an estimator that settles parameters of its parent: they leave its constructor.

    A parameter without effect would be a promise that is not kept.

    Examples
    --------
    >>> from kernelweave import MeanKernelClassifier, MKLClassifier
    >>> "norm" in MKLClassifier().get_params(), "norm" in MeanKernelClassifier().get_params()
    (True, False)
    """

    def decorate(cls: Estimator) -> Estimator:
        parent = cls.__init__  # type: ignore[misc]
        whole = signature(parent)

        @wraps(parent)
        def __init__(self, *arguments, **named):  # type: ignore[no-untyped-def]
            for name in named.keys() & values.keys():
                raise TypeError(f"{cls.__name__} takes no {name!r}: it is {values[name]!r}")
            parent(self, *arguments, **named, **values)

        chosen = [part for name, part in whole.parameters.items() if name not in values]
        __init__.__signature__ = whole.replace(parameters=chosen)  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return decorate
