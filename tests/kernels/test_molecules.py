"""Kernels on molecules against RDKit's own similarities."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest

from kernelweave import MKLRegressor
from kernelweave import kernels as kw
from kernelweave.persistence import ModelFileError, load, save

SMILES = [
    "CCO", "CCN", "c1ccccc1O", "c1ccccc1N", "CC(=O)O", "CC(=O)N", "c1ccncc1", "CCCCCl", "C1CC1", "OCCO",
    "CC(C)CC(C)(C)C", "c1ccc2ccccc2c1", "CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "CCCCCCCC",
    "C(C(=O)O)N", "O=C(O)c1ccccc1", "CCOC(=O)C", "ClC(Cl)Cl", "CS(=O)C",
]  # fmt: skip


@pytest.mark.parametrize("counts", [True, False])
def test_tanimoto_is_that_of_rdkit(counts):
    pytest.importorskip("rdkit")
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator as made

    features = made.GetMorganFeatureAtomInvGen()
    makers = {
        ("morgan", 2): made.GetMorganGenerator(radius=2, fpSize=2048),
        ("morgan", 0): made.GetMorganGenerator(radius=0, fpSize=2048),
        ("features", 2): made.GetMorganGenerator(radius=2, fpSize=2048, atomInvariantsGenerator=features),
        ("atom_pairs", 2): made.GetAtomPairGenerator(fpSize=2048),
        ("torsions", 2): made.GetTopologicalTorsionGenerator(fpSize=2048),
        ("paths", 2): made.GetRDKitFPGenerator(fpSize=2048),
    }
    molecules = [Chem.MolFromSmiles(smiles) for smiles in SMILES]
    for (kind, radius), maker in makers.items():
        prints = [maker.GetCountFingerprint(m) if counts else maker.GetFingerprint(m) for m in molecules]
        wanted = np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
        empty = np.array([not kw.fingerprint(kind, radius)._found(s)[0].size for s in SMILES])
        wanted[np.ix_(empty, empty)] = 1.0  # two molecules without any part are equal here
        kernel = kw.fingerprint(kind, radius, counts=counts)
        np.testing.assert_allclose(kernel(SMILES), wanted, atol=1e-12)
        settled = kernel.resolve(SMILES[:8])
        np.testing.assert_allclose(settled(SMILES[8:], SMILES[:8]), wanted[8:, :8], atol=1e-12)


def test_parts_may_be_kept_apart():
    pytest.importorskip("rdkit")
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator as made

    maker = made.GetMorganGenerator(radius=2)
    prints = [maker.GetSparseCountFingerprint(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
    wanted = np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
    np.testing.assert_allclose(kw.fingerprint(bits=None)(SMILES), wanted, atol=1e-12)


def test_invalid_smiles_are_listed():
    pytest.importorskip("rdkit")
    said = r"2 of 4 samples are none: row 1: 'C1CC' is no valid SMILES; row 3: float 2.5"
    with pytest.raises(ValueError, match=said):
        MKLRegressor(kw.fingerprint()).fit(["C", "C1CC", "CC", 2.5], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="row 1: 'C1CC'"):
        kw.descriptors(["C", "C1CC"])
    with pytest.raises(ValueError, match="kind of a fingerprint must be one of"):
        kw.fingerprint("ecfp")
    with pytest.raises(ValueError, match="bits of a fingerprint"):
        kw.fingerprint(bits=-1)


def test_descriptors_are_a_view_beside_fingerprints(tmp_path):
    pytest.importorskip("rdkit")
    import pandas as pd

    table = kw.descriptors(
        pd.Series(SMILES, index=list("abcdefghijklmnopqrst")), ["MolWt", "TPSA", "RingCount"]
    )
    assert table.loc["a", "MolWt"] == pytest.approx(46.07, abs=0.01)
    assert list(table.index[:2]) == ["a", "b"]
    with pytest.raises(ValueError, match="no descriptor 'MolWeight'"):
        kw.descriptors(SMILES, ["MolWeight"])
    assert kw.descriptors(SMILES[:2]).shape[0] == 2
    y = table["TPSA"].to_numpy()
    X = {"structure": SMILES, "numbers": (table - table.mean()) / table.std()}
    model = MKLRegressor(kw.fingerprint(radius=[1, 2]) + kw.gaussian(1.0), C=100.0)
    X["numbers"] = X["numbers"].reset_index(drop=True)
    model.fit(X, y)
    assert model.kernel_names_.tolist() == [
        "fingerprint(morgan, radius=1) on structure",
        "fingerprint(morgan, radius=2) on structure",
        "gaussian(width=1) on numbers",
    ]
    assert model.certificate_.relative_gap <= 1e-3
    mean, spread = model.predict(X, return_std=True)
    assert np.all(spread > 0)
    save(model, tmp_path / "m.skops")
    np.testing.assert_allclose(load(tmp_path / "m.skops").predict(X), mean)


def test_without_rdkit_it_says_what_to_install(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    model = MKLRegressor(kw.fingerprint()).fit(SMILES, np.arange(20.0))
    linear = MKLRegressor(kw.fingerprint(compare="cosine")).fit(SMILES, np.arange(20.0))
    table = MKLRegressor(kw.tanimoto()).fit(np.eye(20), np.arange(20.0))
    for name, one in (("kept", model), ("linear", linear), ("numbers", table)):
        save(one, tmp_path / name)
    kept = builtins.__import__

    def without(name, *arguments, **named):
        if name.startswith("rdkit"):
            raise ImportError(name)
        return kept(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in [name for name in sys.modules if name.startswith("rdkit")]:
        monkeypatch.delitem(sys.modules, name)
    from kernelweave.kernels import molecules

    molecules._fingerprint.cache_clear()
    with pytest.raises(ModelFileError, match=r"pip install 'kernelweave\[molecules\]'"):
        load(tmp_path / "kept")
    # fingerprints that are numbers need no RDKit, and of features no molecule is kept
    assert load(tmp_path / "numbers").predict(np.eye(20)).shape == (20,)
    with pytest.raises(ValueError, match=r"pip install 'kernelweave\[molecules\]'"):
        load(tmp_path / "linear").predict(["CCO"])
