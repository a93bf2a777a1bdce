"""Where classes are now that files of earlier versions name by another module."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from ._archive import Archive

__all__ = ["MOVED", "rewritten", "update_names"]

#: name in files written before -> name today
MOVED = {
    "kernelweave.estimators._partial.Stream": "kernelweave.solvers.online._stream.Stream",
    "kernelweave.solvers.obscure.Obscure": "kernelweave.solvers.online.obscure.Obscure",
    "kernelweave.solvers.svrg.SVRG": "kernelweave.solvers.svrg.solver.SVRG",
    "kernelweave.solvers.ufo.Pegasos": "kernelweave.solvers.online.pegasos.Pegasos",
    "kernelweave.solvers.ufo.UFO": "kernelweave.solvers.online.ufo.UFO",
}


def update_names(description: Any) -> bool:
    """Write today's names into a description, in place; return whether one was different.

    Nothing is judged here: what a name may be is for the audit, which sees today's names.
    """
    changed, remaining = False, [description]
    while remaining:  # without recursion: how deep a description is has not been looked at yet
        node = remaining.pop()
        if isinstance(node, dict):
            today = MOVED.get(f"{node.get('__module__')}.{node.get('__class__')}")
            if today is not None:
                node["__module__"], _, node["__class__"] = today.rpartition(".")
                changed = True
            remaining += node.values()
        elif isinstance(node, list):
            remaining += node
    return changed


def rewritten(archive: Archive, member: str, value: Any) -> bytes:
    """Return the archive with one member replaced by ``value`` as JSON."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:  # read once, at once: not worth packing
        for name in archive.members:
            file.writestr(name, json.dumps(value) if name == member else archive.read(name))
    return buffer.getvalue()
