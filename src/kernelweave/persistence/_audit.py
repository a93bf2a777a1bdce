"""Looking through the description of a model before anything in it is built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ._allowed import allowed_parts, is_estimator
from ._powers import KEYED_BY_STEPS, MACHINE, MOST_JOBS, PATHS, parameter_of

__all__ = ["Audit", "Finding", "audit"]

#: nodes that stand for something that can be called
CODE = ("FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode")
#: levels of JSON; a model in a pipeline in a pipeline has about thirty
MOST_LEVELS = 300


class Finding(NamedTuple):
    """Something that a model file may not hold: where it is, what it is, whether it is a function, and why not."""

    where: str
    what: str
    code: bool = False
    why: str = "which is not on the list of types that a model file may hold"

    def __str__(self) -> str:
        return f"{self.where} is {self.what}" + (f", {self.why}" if self.why else "")

    def for_the_author(self) -> str:
        """Return the message for saving a model."""
        if not self.why:
            return str(self)
        what = (
            f"the function {self.what}" if self.code else f"a {self.what}, which is not on the list of types"
        )
        return (
            f"{self.where} is {what}, and a model file holds data, no code. Replace it by a component of the library, "
            "or use pickle between programs that trust each other"
        )


@dataclass
class Audit:
    """What a description holds: things that may not be there, types, and the names and formats of its arrays.

    ``changed`` says whether choices for another machine were replaced in the description.
    """

    findings: list[Finding] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    arrays: set[tuple[str, str]] = field(default_factory=set)
    changed: bool = False


def audit(description: Any, n_jobs: int | None = None) -> Audit:
    """Return everything in the description that is not on the list, with the way to it.

    The same function judges what is about to be saved and what is about to be loaded, and it does not rely on what
    ``skops`` trusts: a node is fine only if its kind and its type are both listed.  It looks at every node once.

    Numbers of jobs, memory budgets and verbosity are choices for the machine of whoever wrote the file: in the
    description, in place, they become what leaves the choice to this machine, and numbers of jobs become ``n_jobs``.
    """
    too_deep = Finding("model", f"nested in more than {MOST_LEVELS} levels", why="")
    if _levels(description) > MOST_LEVELS:
        return Audit([too_deep])
    result = Audit()
    try:
        result.findings += _contradictions(description)
        if not result.findings:  # only then is the description no larger than it looks
            result.findings += [
                *_root(description),
                *_Walk(allowed_parts(), result, n_jobs).nodes(description, "model"),
            ]
    except RecursionError:  # whoever calls is deep in calls already
        return Audit([too_deep])
    return result


def _levels(value: Any) -> int:
    """How deeply dictionaries and lists are nested, found without recursion."""
    deepest, open_values = 0, [(value, 1)]
    while open_values:
        here, level = open_values.pop()
        deepest = max(deepest, level)
        if level > MOST_LEVELS:
            break
        inside = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        open_values += [(part, level + 1) for part in inside if isinstance(part, dict | list)]
    return deepest


def _contradictions(description: Any) -> list[Finding]:
    """Find numbers of objects that stand at two different descriptions.

    ``skops`` builds an object at the first place of its number and takes it again at the others, whatever these say.
    ``save`` writes the whole description at every place, so equal numbers have equal descriptions, but for numbers and
    names of files inside them, and a model is no larger than its text.  Anything else could hide one object behind
    another, or unfold a short text without end.
    """
    ranks: dict[Any, int] = {}
    rank_of: dict[int, int] = {}
    findings: list[Finding] = []

    def rank(value: Any) -> int:
        """Return the same whole number for equal values, which are compared by the ranks of their parts."""
        if isinstance(value, dict):
            parts = [(name, rank(part)) for name, part in value.items() if name not in ("__id__", "file")]
            key: Any = ("dict", *parts)
        elif isinstance(value, list):
            key = ("list", *map(rank, value))
        else:
            key = (type(value), value)
        own = ranks.setdefault(key, len(ranks))
        if isinstance(value, dict) and "__id__" in value:
            number = value["__id__"]
            if type(number) is not int or rank_of.setdefault(number, own) != own:
                findings.append(Finding("model", f"two different things under the number {number!r}", why=""))
        return own

    rank(description)
    return findings


def _root(node: Any) -> Iterator[Finding]:
    """A file holds a model: something that can be fitted."""
    if isinstance(node, dict) and node.get("__loader__") == "ObjectNode":
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if name in allowed_parts()["ObjectNode"] and not is_estimator(name):
            yield Finding("model", f"a {name}, which is no estimator", why="")
    elif isinstance(node, dict) and f"{node.get('__loader__')}" in allowed_parts():
        yield Finding("model", f"a {node.get('__class__')}, which is no estimator", why="")


class _Walk:
    """Visits the nodes of a description, notes types and arrays, and yields what may not be there."""

    def __init__(self, allowed: dict[str, frozenset[str]], result: Audit, n_jobs: int | None) -> None:
        self.allowed, self.result, self.n_jobs = allowed, result, n_jobs
        #: class of the object, and name of its attribute, that the walk is in
        self.owner = self.attribute = ""

    def nodes(self, node: Any, where: str) -> Iterator[Finding]:
        if not isinstance(node, dict) or not isinstance(node.get("__loader__"), str):
            yield Finding(where, "something that is not an object at all")
            return
        kind, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
        if name not in self.allowed.get(kind, frozenset()):
            yield Finding(where, name, kind in CODE)
            return
        self.result.types.add(name)
        yield from getattr(self, f"_{kind.removesuffix('Node').lower()}")(node, where)

    def _json(self, node: Any, where: str) -> Iterator[Finding]:
        value = _parsed(node)
        if value is _NO_JSON:
            yield Finding(where, "text that is no JSON", why="")
        elif isinstance(value, dict | list):  # these have nodes of their own, which are looked into
            yield Finding(where, "a dictionary or a list that is written as a text", why="")

    def _type(self, node: Any, where: str) -> Iterator[Finding]:
        return iter(())

    def _function(self, node: Any, where: str) -> Iterator[Finding]:
        """A function is its name, and that is on the list."""
        if node.get("content") is not None:
            yield Finding(where, "a function with something in it", why="")

    def _maskedarray(self, node: Any, where: str) -> Iterator[Finding]:
        content = node.get("content")
        if not isinstance(content, dict) or set(content) != {"data", "mask"}:
            yield Finding(where, "a masked array without values and a mask", why="")
            return
        for part, value in content.items():
            if not isinstance(value, dict) or value.get("__loader__") != "NdArrayNode":
                yield Finding(f"{where}.{part}", "no array", why="")
            else:
                yield from self.nodes(value, f"{where}.{part}")

    def _slice(self, node: Any, where: str) -> Iterator[Finding]:
        content = node.get("content")
        if not isinstance(content, dict) or any(
            type(content.get(end)) not in (int, str, type(None)) for end in ("start", "stop", "step")
        ):
            yield Finding(where, "a slice that has no ends", why="")

    def _dict(self, node: Any, where: str, attributes: bool = False) -> Iterator[Finding]:
        """Entries of a dictionary, or attributes of an object, which are one in the file."""
        content, keys = node.get("content"), node.get("key_types")
        yield from self.nodes(keys, f"{'attributes' if attributes else 'keys'} of {where}")
        if not isinstance(content, dict):
            yield Finding(where, "a dictionary without entries", why="")
            return
        kinds = keys.get("content") if isinstance(keys, dict) else None
        if not isinstance(kinds, list) or len(kinds) != len(content):
            yield Finding(where, "a dictionary whose keys are not all of a kind that is said", why="")
        for key in content:
            inside = f"{where}.{key}" if attributes else f"{where}[{key!r}]"
            if attributes:
                self.attribute = str(key)
                yield from self._power(content, str(key), inside)
            else:
                yield from self._key(str(key), inside)
            yield from self.nodes(content[key], inside)

    def _object(self, node: Any, where: str) -> Iterator[Finding]:
        """Attributes of an object, written as people write them: ``model.kernels``."""
        content = node.get("content")
        if content is None:
            return
        name = f"{content.get('__module__')}.{content.get('__class__')}" if isinstance(content, dict) else ""
        if not isinstance(content, dict) or content.get("__loader__") != "DictNode":
            yield from self.nodes(content, where)
            yield Finding(where, "an object whose state is no dictionary", why="")
        elif name != "builtins.dict":
            yield Finding(where, name)
        else:
            outside = self.owner, self.attribute
            self.owner = f"{node.get('__module__')}.{node.get('__class__')}"
            yield from self._dict(content, where, attributes=True)
            self.owner, self.attribute = outside

    def _power(self, state: Any, attribute: str, where: str) -> Iterator[Finding]:
        """Parameters with power over the machine that loads the file: see ``_powers``."""
        if attribute not in MACHINE:
            return
        value = state[attribute]
        parsed = _parsed(value)
        if attribute in PATHS:
            code = isinstance(value, dict) and value.get("__loader__") in CODE  # refused as what it is
            # of solvers, "memory" is a number of steps
            steps = type(parsed) is int and self.owner.startswith("kernelweave.solvers.")
            if parsed is not None and not code and not steps:
                yield Finding(
                    where,
                    "set: a file may not say what is read, written or called when a model is fitted",
                    why="",
                )
            return
        number = parsed is None or (type(parsed) is int and abs(parsed) <= MOST_JOBS)
        if attribute == "n_jobs" and not number:
            yield Finding(where, f"not a number of jobs from -{MOST_JOBS} to {MOST_JOBS}", why="")
        default = self.n_jobs if attribute == "n_jobs" else MACHINE[attribute]
        if parsed != default:
            state[attribute] = {
                "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
                "content": json.dumps(default), "is_json": True,
            }  # fmt: skip
            self.result.changed = True

    def _key(self, key: str, where: str) -> Iterator[Finding]:
        """Keys that scikit-learn may set as parameters of an estimator, or hand to a function, by their name.

        Which dictionaries of its classes it does that with is not for a list here: all keys are held to it but those
        that are known to be names of steps.  Keys in objects of the library are names of views, columns and classes.
        """
        applied = not self.owner.startswith("kernelweave.") and self.attribute not in KEYED_BY_STEPS
        if applied and parameter_of(key) in MACHINE:
            yield Finding(
                where,
                f"a value for {parameter_of(key)}: a file may not say what is read, written, called or printed, nor "
                "how many processes are started, when a model is fitted; leave it out, or save best_estimator_ of "
                "the search",
                why="",
            )

    def _several(self, node: Any, where: str) -> Iterator[Finding]:
        content = node.get("content")
        if not isinstance(content, list):
            yield Finding(where, "a sequence without entries", why="")
            return
        for position, value in enumerate(content):
            yield from self.nodes(value, f"{where}[{position}]")

    _list = _tuple = _set = _several

    def _ndarray(self, node: Any, where: str) -> Iterator[Finding]:
        if node.get("type") == "json":
            yield from self._several(node, where)
            yield from self.nodes(node.get("shape"), f"shape of {where}")
        else:
            yield from self._file(node, where, "array")

    def _sparsematrix(self, node: Any, where: str) -> Iterator[Finding]:
        yield from self._file(node, where, str(node["__class__"])[:3])

    def _file(self, node: Any, where: str, kind: str) -> Iterator[Finding]:
        if isinstance(node.get("file"), str):
            self.result.arrays.add((node["file"], kind))
        else:
            yield Finding(where, "an array without values", why="")

    def _dtype(self, node: Any, where: str) -> Iterator[Finding]:
        yield from self.nodes(node.get("content"), where)


_NO_JSON = object()


def _parsed(node: Any) -> Any:
    """Return the value of a node that holds JSON, or a mark that it holds none."""
    if not isinstance(node, dict) or node.get("__loader__") != "JsonNode":
        return _NO_JSON
    try:
        return json.loads(node.get("content"))  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return _NO_JSON
