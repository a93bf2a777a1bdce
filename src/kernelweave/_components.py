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
from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from sklearn import get_config  # type: ignore[attr-defined]  # its stub does not know it
from sklearn.base import BaseEstimator

T = TypeVar("T")


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


def nearest(word: str, known: Iterator[str] | list[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known word, or nothing."""
    close = difflib.get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


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
