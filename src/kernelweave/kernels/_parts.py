"""Parameters of kernels inside a stack or a family, under names that a grid search can write."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Self

from ._kernel import KernelSpec

__all__ = ["NamedParts"]


class NamedParts(KernelSpec):
    """A spec that holds a sequence of others, each a parameter by its position and by its family.

    ``kernels__0__width`` and ``kernels__gaussian__width`` are the width of the first kernel, a Gaussian.  Of several of
    one family each has a number: ``gaussian-1``, ``gaussian-2``, as in ``sklearn.pipeline.make_pipeline``.
    """

    #: parameter with the sequence
    _sequence: ClassVar[str] = "parts"

    def _named_parts(self) -> dict[str, int]:
        """Positions of the parts by every name they have."""
        parts = getattr(self, self._sequence)
        if not isinstance(parts, tuple | list):
            return {}
        families = [_family(part) for part in parts]
        counts, seen = Counter(families), Counter[str]()
        names: dict[str, int] = {str(place): place for place in range(len(parts))}
        for place, family in enumerate(families):
            seen[family] += 1
            names[family if counts[family] == 1 else f"{family}-{seen[family]}"] = place
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` those of every part as well.

        >>> from kernelweave import kernels as kw
        >>> bank = kw.gaussian(2.0) + kw.linear()
        >>> bank.get_params()["0__width"], bank.get_params()["gaussian__width"]
        (2.0, 2.0)
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if not deep:
            return params
        parts = getattr(self, self._sequence)
        for name, place in self._named_parts().items():
            part = parts[place]
            params[name] = part
            if hasattr(part, "get_params") and not isinstance(part, type):
                params |= {f"{name}__{inner}": value for inner, value in part.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the stack, whole parts, and parameters of parts.

        >>> from kernelweave import kernels as kw
        >>> bank = kw.gaussian(2.0) + kw.linear()
        >>> bank.set_params(gaussian__width=3.0)[0].name
        'gaussian(width=3)'
        """
        if self._sequence in params:
            setattr(self, self._sequence, params.pop(self._sequence))
        places, parts = self._named_parts(), list(getattr(self, self._sequence) or ())
        for name in [name for name in params if name in places]:
            parts[places[name]] = params.pop(name)
        inside: dict[int, dict[str, Any]] = {}
        for name in [name for name in params if name.partition("__")[0] in places and "__" in name]:
            whose, _, inner = name.partition("__")
            inside.setdefault(places[whose], {})[inner] = params.pop(name)
        for place, values in inside.items():
            parts[place].set_params(**values)
        if inside or any(
            new is not old for new, old in zip(parts, getattr(self, self._sequence), strict=True)
        ):
            setattr(self, self._sequence, type(getattr(self, self._sequence))(parts))
        return super().set_params(**params) if params else self


def _family(part: Any) -> str:
    """What a part is called: its family, or its class in small letters."""
    family = getattr(part, "family", None)
    return family if isinstance(family, str) else type(part).__name__.lower()
