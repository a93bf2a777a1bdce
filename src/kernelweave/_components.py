"""Components: parameters and registries of kernels, losses, norms and solvers.

A component is a scikit-learn object without ``fit``: ``get_params``, ``set_params``, ``clone`` and nested names such
as ``solver__tol`` work.  A class enters the registry of its subpackage by naming itself where it is defined::

    class Level(Solver, registered_as="level"): ...

and every place that lists what there is (string arguments, error messages, tests, the command line) finds it there.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from inspect import signature
from textwrap import wrap
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from sklearn import get_config  # type: ignore[attr-defined]  # its stub does not know it
from sklearn.base import BaseEstimator

T = TypeVar("T")

#: what the parameters of estimators are about, in the order in which they are shown: by ``repr``, in notebooks, in
#: signatures, docstrings and the API reference
PARAMETER_GROUPS: dict[str, tuple[str, ...]] = {
    "model": (
        "kernels", "similarity", "method", "criterion", "noise_rate", "suspect_weight", "confidence",
        "budget", "exact_set", "crowd", "crowd_rounds", "loss", "quantiles", "norm", "rho", "C", "Cs", "norms",
        "nu", "n_folds", "cv", "scoring", "probability", "rule", "rank", "error", "sampling", "fit_intercept",
        "normalize", "center", "missing", "multi_class", "multi_output", "class_weight", "nuisance", "leave_one_out",
    ),
    "stopping": (
        "solver", "tol", "max_rounds", "max_iter", "max_seconds", "warm_start", "checkpoint", "callback", "verbose",
        "random_state",
    ),
    "memory and precision": ("storage", "dtype", "memory_budget", "targets_in_batch"),
    "hardware": ("n_jobs", "device"),
}  # fmt: skip
PLACES = {
    name: (number, place)
    for number, names in enumerate(PARAMETER_GROUPS.values())
    for place, name in enumerate(names)
}
#: of a parameter that somebody's own estimator adds
OWN = (0, len(PARAMETER_GROUPS["model"]))


def store_parameters(estimator: object, given: Mapping[str, object]) -> None:
    """Keep the ``locals()`` of a constructor, each under its own name: scikit-learn's rule, in one line."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


class ParametersInGroups:
    """Makes an estimator show its parameters in the groups of ``PARAMETER_GROUPS``."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(super()._get_param_names(), key=lambda name: PLACES.get(name, OWN))  # type: ignore[misc]

    @classmethod
    def parameter_groups(cls) -> dict[str, list[str]]:
        """Return the names of the parameters by group, in order."""
        groups: dict[str, list[str]] = {group: [] for group in PARAMETER_GROUPS}
        for name in cls._get_param_names():
            groups[list(groups)[PLACES.get(name, OWN)[0]]].append(name)
        return {group: names for group, names in groups.items() if names}

    def _shown_parameters(self) -> dict[str, str]:
        """Return the parameters that are not at their defaults (or all, as scikit-learn is configured), by group."""
        defaults, shown = signature(type(self)).parameters, {}
        for group, names in self.parameter_groups().items():
            texts = {name: repr(getattr(self, name)) for name in names}
            if get_config()["print_changed_only"]:
                texts = {name: text for name, text in texts.items() if text != repr(defaults[name].default)}
            # a component of several lines is wrapped with the others
            parts = (
                f"{name}={' '.join(text.split()) if chr(10) in text else text}"
                for name, text in texts.items()
            )
            shown[group] = ", ".join(parts)
        return {group: text for group, text in shown.items() if text}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the call that makes such an estimator, a line for every group where it is long."""
        name, groups = type(self).__name__, list(self._shown_parameters().values())
        text = f"{name}({', '.join(groups)})"
        if len(text) > LINE:
            indent = " " * (len(name) + 1)
            options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
            lines = [wrap(group, LINE - len(indent) - 1, **options) for group in groups]
            text = f"{name}(" + f",\n{indent}".join(f"\n{indent}".join(group) for group in lines) + ")"
        half = N_CHAR_MAX // 2
        return text if len(text) <= N_CHAR_MAX else f"{text[:half]}...{text[-half:]}"


#: length of a line of ``repr``
LINE = 80


class ShownInNotebooks:
    """Makes notebooks show what ``_html_repr`` returns, also with scikit-learn 1.6, which draws its own diagram."""

    def _html_repr(self) -> str:
        raise NotImplementedError

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._html_repr()
        return shown


class Component(ShownInNotebooks, BaseEstimator):
    """Base of the plain Python building blocks: parameters in ``__init__``, nothing learnt."""

    registered_as: str | None = None
    #: arguments of ``__init__`` that hold what was settled on samples: no parameters, and gone in a clone
    settled: ClassVar[tuple[str, ...]] = ()
    #: where the classes of a subpackage are found by name; set by their base class
    components: ClassVar[Registry[Any]]

    def __init_subclass__(cls, registered_as: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if registered_as is not None:
            cls.registered_as = registered_as
            cls.components.add(registered_as, cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [name for name in super()._get_param_names() if name not in cls.settled]

    def everything(self) -> dict[str, Any]:
        """Return the parameters and what was settled on samples: all that makes two components different."""
        state: dict[str, Any] = self.get_params(deep=False)
        return state | {name: getattr(self, name) for name in self.settled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        fill_in_parameters(self)

    def _html_repr(self) -> str:  # a component is not an estimator: no diagram
        from html import escape

        return f"<code>{escape(repr(self))}</code>"


def fill_in_parameters(restored: BaseEstimator) -> None:
    """Give an object from a file of an earlier version the parameters that came later, at their defaults."""
    for name, parameter in signature(type(restored).__init__).parameters.items():
        # a parameter may have the name of a method: its value is kept elsewhere then
        method = callable(getattr(type(restored), name, None))
        if parameter.default is not parameter.empty and not method:
            restored.__dict__.setdefault(name, parameter.default)


def same_component(left: Any, right: Any) -> bool:
    """Return whether two components, or parameters of components, are equal in every number."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, Component):
        mine, other = left.everything(), right.everything()
        return all(same_component(mine[name], other[name]) for name in mine)
    if isinstance(left, np.ndarray):
        return left.dtype != object and np.array_equal(left, right)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same_component, left, right))
    return isinstance(left, (bool, int, float, str)) and left == right


def check_switch(name: str, value: object) -> None:
    """Raise where a switch is neither on nor off: ``center='no'`` would be on.

    >>> check_switch("center", "no")
    Traceback (most recent call last):
    ValueError: center must be True or False, got 'no'
    """
    number = isinstance(value, int | float | np.number) and value in (0, 1)
    if not (isinstance(value, bool | np.bool_) or number):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def is_number(value: object) -> bool:
    """Whether a parameter is a real number, and not a truth value."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise where a parameter is none of the words that it may be."""
    known = tuple(choices)
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def check_whole(name: str, value: Any, least: int = 1, or_none: bool = False) -> None:
    """Raise where a parameter is no whole number, or a smaller one than it may be."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not ((whole and value >= least) or (or_none and value is None)):
        raise ValueError(
            f"{name} must be a whole number >= {least}{' or None' if or_none else ''}, got {value!r}"
        )


def check_positive(name: str, value: Any, or_none: bool = False) -> None:
    """Raise where a parameter is not a finite number above zero."""
    if not ((is_number(value) and np.isfinite(value) and value > 0) or (or_none and value is None)):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def closest(word: str, known: list[str]) -> str | None:
    """Return the known word that another one is a slip of, whatever the case; None where they only share letters.

    >>> closest("gausian", ["gaussian", "linear"]), closest("label", ["age", "dose"])
    ('gaussian', None)
    """
    lower = {str(name).lower(): name for name in known}
    found = difflib.get_close_matches(str(word).lower(), lower, n=1, cutoff=0.6)
    return lower[found[0]] if found else None


def nearest(word: str, known: Iterator[str] | list[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known word, or nothing."""
    close = closest(word, list(known))
    return f" Did you mean {close!r}?" if close else ""


#: packages with a registry
_WITH_REGISTRY: set[str] = set()


def _import_below(package: str) -> None:
    """Import a module or every public module of a package, and of packages in it without a registry of their own."""
    for module in pkgutil.iter_modules(getattr(importlib.import_module(package), "__path__", ())):
        if not module.name.startswith("_"):
            name = f"{package}.{module.name}"
            importlib.import_module(name)
            if module.ispkg and name not in _WITH_REGISTRY:
                _import_below(name)


class Registry(Mapping[str, type[T]], Generic[T]):
    """The classes of one subpackage by name; its modules are imported when it is first used."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        self.package = package
        _WITH_REGISTRY.add(package)
        self._classes: dict[str, type[T]] = {}
        self._loaded = self._loading = False
        self._lock = threading.RLock()

    def add(self, name: str, cls: type[T]) -> None:
        """Enter ``cls`` under ``name``; a second class of the same name is refused."""
        known = self._classes.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ValueError(f"two {self.plural} are called {name!r}: {known!r} and {cls!r}")
        self._classes[name] = cls

    def _load(self) -> dict[str, type[T]]:
        if self._loaded:
            return self._classes
        with self._lock:  # other threads wait until all classes are there
            if not (self._loaded or self._loading):  # the modules may ask, too, while they are imported
                self._loading = True
                try:
                    _import_below(self.package)
                    self._loaded = True
                finally:  # after an interrupt the next use begins again
                    self._loading = False
        return self._classes

    def __getitem__(self, name: str) -> type[T]:
        classes = self._classes if self._loaded else self._load()
        if name not in classes:
            raise ValueError(
                f"unknown {self.kind} {name!r}.{nearest(name, list(classes))} "
                f"Known {self.plural}: {', '.join(sorted(classes))}."
            )
        return classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._load()))

    def __len__(self) -> int:
        return len(self._load())

    def make(self, what: Any, base: type[T], **parameters: Any) -> T:
        """Return a component from an instance (as it is), a class or a registered name."""
        if isinstance(what, base):
            return what
        if isinstance(what, type) and issubclass(what, base):
            return what(**parameters)
        if isinstance(what, str):
            return self[what](**parameters)
        raise ValueError(
            f"{self.kind} must be a name ({', '.join(self)}) or a {base.__name__} instance, not {what!r}"
        )
