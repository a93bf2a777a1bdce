"""Looking through the description of a model before anything in it is built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ._allowed import allowed_parts

__all__ = ["Finding", "strangers"]

#: nodes that stand for something that can be called
CODE = ("FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode")


class Finding(NamedTuple):
    """Something that a model file may not hold: where it is, what it is, and whether it is a function."""

    where: str
    what: str
    code: bool = False


def strangers(description: Any) -> list[Finding]:
    """Return everything in the description that is not on the list, with the way to it.

    The same function judges what is about to be saved and what is about to be loaded, and it does not rely on what
    ``skops`` trusts: a node is fine only if its kind and its type are both listed.
    """
    return list(_nodes(description, "model", allowed_parts()))


def _nodes(node: Any, where: str, allowed: dict[str, frozenset[str]]) -> Iterator[Finding]:
    if not isinstance(node, dict) or not isinstance(node.get("__loader__"), str):
        yield Finding(where, "something that is not an object at all")
        return
    kind, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
    if name not in allowed.get(kind, frozenset()):
        yield Finding(where, name, kind in CODE)
        return
    content: Any = node.get("content")
    if kind == "JsonNode":
        try:
            json.loads(content)
        except (TypeError, ValueError):
            yield Finding(where, "text that is no JSON")
    elif kind == "DictNode":
        yield from _nodes(node.get("key_types"), f"keys of {where}", allowed)
        for key, value in content.items() if isinstance(content, dict) else ():
            yield from _nodes(value, f"{where}[{key!r}]", allowed)
    elif kind == "ObjectNode":
        yield from _attributes(content, where, allowed)
    elif kind in ("ListNode", "TupleNode", "SetNode") or node.get("type") == "json":
        for position, value in enumerate(content if isinstance(content, list) else ()):
            yield from _nodes(value, f"{where}[{position}]", allowed)
        if "shape" in node:
            yield from _nodes(node["shape"], f"shape of {where}", allowed)
    elif kind == "DTypeNode":
        yield from _nodes(content, where, allowed)


def _attributes(content: Any, where: str, allowed: dict[str, frozenset[str]]) -> Iterator[Finding]:
    """Attributes of an object, written as people write them: ``model.kernels``."""
    if content is None:
        return
    plain = isinstance(content, dict) and content.get("__loader__") == "DictNode"
    entries = content.get("content") if plain else None
    if not isinstance(entries, dict):
        yield from _nodes(content, where, allowed)
        return
    name = f"{content.get('__module__')}.{content.get('__class__')}"
    if name != "builtins.dict":
        yield Finding(where, name)
        return
    yield from _nodes(content.get("key_types"), f"attributes of {where}", allowed)
    for key, value in entries.items():
        yield from _nodes(value, f"{where}.{key}", allowed)
