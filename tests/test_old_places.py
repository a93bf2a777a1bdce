"""Modules that the pages of an earlier version named still answer, and say where their contents are now."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from kernelweave import cluster, distributed, estimators, similarity, solvers


@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("kernelweave.solvers.similarity", "similarity_solvers", "kernelweave.similarity.solvers"),
        ("kernelweave.solvers.similarity.eskl", "ESKL", "kernelweave.similarity.solvers.eskl"),
        ("kernelweave.inspection.similarity", "indefiniteness", "kernelweave.similarity.diagnosis"),
    ],
)
def test_old_modules_answer_and_warn(old, name, new):
    with pytest.warns(DeprecationWarning, match=f"{old}.{name} is now {new}.{name}"):
        value = getattr(importlib.import_module(old), name)
    assert value is getattr(importlib.import_module(new), name)
    with pytest.raises(AttributeError):
        getattr(importlib.import_module(old), "nothing" + name)


def test_the_library_itself_uses_none_of_them():
    code = "import kernelweave.cli.methods; from kernelweave.solvers import registry; print(len(registry))"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:kernelweave", "-c", code],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(solvers.registry)


def test_the_cluster_is_reached_by_its_public_name():
    assert distributed.__all__ == cluster.__all__
    assert all(getattr(distributed, name) is getattr(cluster, name) for name in distributed.__all__)


def test_estimators_show_those_of_the_similarity_room():
    for name in (
        "SimilarityClassifier",
        "SimilarityFeatures",
        "Denoise",
        "Flip",
        "Shift",
        "Square",
        "held_similarities",
    ):
        assert getattr(estimators, name) is getattr(similarity, name)
        assert name in estimators.__all__
