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
    "kernelweave.distributed.workers.ClusterCost": "kernelweave.cluster.workers.ClusterCost",
    "kernelweave.estimators._similarity_inputs.FunctionSource": "kernelweave.similarity.inputs.FunctionSource",
    "kernelweave.estimators._similarity_inputs.HeldSource": "kernelweave.similarity.inputs.HeldSource",
    "kernelweave.estimators._similarity_inputs.Source": "kernelweave.similarity.inputs.Source",
    "kernelweave.estimators._similarity_methods.SimilarityFit": "kernelweave.similarity.fits.SimilarityFit",
    "kernelweave.estimators.similarity.SimilarityClassifier": "kernelweave.similarity.classifier.SimilarityClassifier",
    "kernelweave.estimators.spectrum.Denoise": "kernelweave.similarity.transformers.Denoise",
    "kernelweave.estimators.spectrum.Flip": "kernelweave.similarity.transformers.Flip",
    "kernelweave.estimators.spectrum.Shift": "kernelweave.similarity.transformers.Shift",
    "kernelweave.estimators.spectrum.SimilarityFeatures": "kernelweave.similarity.transformers.SimilarityFeatures",
    "kernelweave.estimators.spectrum.Square": "kernelweave.similarity.transformers.Square",
    "kernelweave.persistence._tables.SavedTable": "kernelweave._estimating.tables.SavedTable",
    "kernelweave.problems.similarity.DualPoint": "kernelweave.similarity.points.DualPoint",
    "kernelweave.problems.similarity.SimilarityCertificate": "kernelweave.similarity.points.SimilarityCertificate",
    "kernelweave.problems.similarity_losses.AbsoluteLoss": "kernelweave.similarity.losses.absolute.AbsoluteLoss",
    "kernelweave.problems.similarity_losses.FrobeniusLoss": "kernelweave.similarity.losses.frobenius.FrobeniusLoss",
    "kernelweave.problems.similarity_losses.SquaredLoss": "kernelweave.similarity.losses.squared.SquaredLoss",
    "kernelweave.problems.similarity_losses.UserLoss": "kernelweave.similarity.losses.user.UserLoss",
    "kernelweave.solvers.obscure.Obscure": "kernelweave.solvers.online.obscure.Obscure",
    "kernelweave.solvers.similarity.emkl.EMKL": "kernelweave.similarity.solvers.emkl.EMKL",
    "kernelweave.solvers.similarity.eskl.ESKL": "kernelweave.similarity.solvers.eskl.ESKL",
    "kernelweave.solvers.similarity.indsvm.IndSVM": "kernelweave.similarity.solvers.indsvm.IndSVM",
    "kernelweave.solvers.similarity.rekl.REKL": "kernelweave.similarity.solvers.rekl.REKL",
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
