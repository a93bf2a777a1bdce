"""Which module a class of this library is in today, whatever module a file says.

A file names classes by module and name. Modules are regrouped between versions, names of classes are not: no two
classes that a file may hold have the same name, so that the name alone says which one is meant.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from ._allowed import allowed_objects
from ._archive import Archive

__all__ = ["rewritten", "update_names"]


def update_names(description: Any) -> bool:
    """Write today's modules into a description, in place; return whether one was different.

    Nothing is judged here: what a name may be is for the audit, which sees today's names.
    """
    today = {name.rpartition(".")[2]: name.rpartition(".")[0] for name in allowed_objects() if _is_own(name)}
    changed, remaining = False, [description]
    while remaining:  # without recursion: how deep a description is has not been looked at yet
        node = remaining.pop()
        if isinstance(node, dict):
            module, kind = node.get("__module__"), node.get("__class__")
            if isinstance(module, str) and isinstance(kind, str) and _is_own(module):
                now = today.get(kind, module)
                changed |= now != module
                node["__module__"] = now
            remaining += node.values()
        elif isinstance(node, list):
            remaining += node
    return changed


def _is_own(name: str) -> bool:
    """Whether a class or module is one of this library's."""
    return name.startswith("kernelweave.")


def rewritten(archive: Archive, member: str, value: Any) -> bytes:
    """Return the archive with one member replaced by ``value`` as JSON."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:  # read once, at once: not worth packing
        for name in archive.members:
            file.writestr(name, json.dumps(value) if name == member else archive.read(name))
    return buffer.getvalue()
