"""The example for sequences, on sequences made here."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "proteins.py"


@pytest.fixture
def example():
    pytest.importorskip("parasail")
    spec = importlib.util.spec_from_file_location("proteins", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_from_a_fasta_file_to_a_classifier(example, tmp_path, capsys):
    rng = np.random.default_rng(0)
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    lines = []
    for family in ("a.1.1", "b.2.2"):
        ancestor = rng.choice(letters, 60)
        for k in range(18):
            child = np.where(rng.random(60) < 0.4, rng.choice(letters, 60), ancestor)[rng.integers(0, 10) :]
            lines += [f">{family}-{k} {family}", "".join(child)]
    (tmp_path / "few.fasta").write_text("\n".join(lines))
    accuracy = example.main(tmp_path / "few.fasta", "a.1.1", "b.2.2")
    assert set(accuracy) == {"denoise", "eskl", "rekl"}
    assert min(accuracy.values()) > 0.8
    assert "is proved to be within" in capsys.readouterr().out


@pytest.mark.skipif("KERNELWEAVE_DATA" not in os.environ, reason="KERNELWEAVE_DATA is not set")
def test_scores_are_those_of_the_data_set(example):
    from kernelweave_studies.datasets import load_similarity

    held = load_similarity("scop40")
    path = Path(os.environ["KERNELWEAVE_DATA"]) / "scop40" / "proteins.fasta"
    sequences, families = example.read_fasta(path)
    assert families == held.target.tolist()
    for i, j in ((0, 1), (5, 9), (100, 300)):
        for f in (example.smith_waterman, example.needleman_wunsch):
            given = held.similarities[held.names.index(f.__name__)][i, j]
            assert f(sequences[i], sequences[j]) == pytest.approx(given, rel=1e-5)
