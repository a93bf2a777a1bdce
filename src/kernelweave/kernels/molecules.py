"""Kernels on molecules written as SMILES, and their descriptors; RDKit is imported where it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._components import nearest
from .._numerics.stopping import check_time
from ._kernel import readable
from ._numeric import checked_number
from .objects import Parts, PartsKernel, checked_family, entries, joined

#: kinds of fingerprints, and what they count
KINDS = ("morgan", "features", "atom_pairs", "torsions", "paths")
#: fingerprints that are remembered: those of a training set are asked for by every kernel, fold and block
REMEMBERED = 1 << 16


def rdkit() -> Any:
    """Return RDKit's module of molecules, with its messages about invalid SMILES switched off."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise ValueError("molecules need RDKit: pip install 'kernelweave[molecules]'") from None
    rdBase.DisableLog("rdApp.*")
    return Chem


@lru_cache(maxsize=64)
def _generator(kind: str, radius: int, bits: int | None) -> Any:
    rdkit()
    from rdkit.Chem import rdFingerprintGenerator as made

    size: dict[str, Any] = {} if bits is None else {"fpSize": bits}
    if kind == "morgan":
        return made.GetMorganGenerator(radius=radius, **size)
    if kind == "features":
        atoms = made.GetMorganFeatureAtomInvGen()
        return made.GetMorganGenerator(radius=radius, atomInvariantsGenerator=atoms, **size)
    others: dict[str, Any] = {
        "atom_pairs": made.GetAtomPairGenerator,
        "torsions": made.GetTopologicalTorsionGenerator,
        "paths": made.GetRDKitFPGenerator,
    }
    return others[kind](**size)


@lru_cache(maxsize=REMEMBERED)
def _fingerprint(smiles: str, kind: str, radius: int, bits: int | None, counts: bool) -> Any:
    """Return the positions and counts of a fingerprint, None where the SMILES is invalid."""
    check_time()
    molecule = rdkit().MolFromSmiles(smiles)
    if molecule is None:
        return None
    maker = _generator(kind, radius, bits)
    if bits is None:
        found = maker.GetSparseCountFingerprint(molecule)
    elif counts:
        found = maker.GetCountFingerprint(molecule)
    else:
        return np.array(maker.GetFingerprint(molecule).GetOnBits(), dtype=np.uint64), 1.0
    parts = found.GetNonzeroElements()
    codes = np.fromiter(parts.keys(), dtype=np.uint64, count=len(parts))
    return codes, np.fromiter(parts.values(), dtype=float, count=len(parts)) if counts else 1.0


@dataclass(eq=False, repr=False)
class Fingerprint(PartsKernel, registered_as="fingerprint"):
    """Substructures that two molecules share; see :func:`fingerprint`."""

    kind: str = "morgan"
    radius: Any = 2
    bits: Any = 2048
    counts: bool = True
    compare: str = "tanimoto"

    for_texts = _varied = "radius"
    n_features = None
    _objects = "SMILES"

    @property
    def name(self) -> str:
        shown = [f"radius={readable(self.radius)}"] if self.kind in ("morgan", "features") else []
        shown += [f"bits={self.bits}"] if self.bits != 2048 else []
        shown += [] if self.counts else ["binary"]
        shown += [self.compare] if self.compare != "tanimoto" else []
        return f"fingerprint({', '.join([self.kind, *shown])})"

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.kind not in KINDS:
            raise ValueError(
                f"the kind of a fingerprint must be one of {', '.join(KINDS)}, got {self.kind!r}"
            )
        checked_number(self.radius, "the radius of a fingerprint", strict=False, whole=True)
        if self.bits is not None:
            checked_number(self.bits, "bits of a fingerprint", whole=True)

    def _found(self, smiles: str) -> Any:
        radius = int(self.radius) if self.kind in ("morgan", "features") else 0
        return _fingerprint(smiles, self.kind, radius, self.bits, bool(self.counts))

    def _problem(self, what: Any) -> str | None:
        return f"{what[:40]!r} is no valid SMILES" if self._found(what) is None else None

    def _parts(self, objects: list[Any]) -> Parts:
        found = [self._found(smiles) for smiles in objects]
        return joined([(np.full(len(codes), i), codes, counts) for i, (codes, counts) in enumerate(found)])


def fingerprint(
    kind: str = "morgan", radius: Any = 2, bits: int | None = 2048, counts: bool = True, compare: str = "tanimoto"
) -> Any:  # fmt: skip
    """Return kernels of the substructures that two molecules share: RDKit's fingerprints of SMILES under Tanimoto.

    ``pip install 'kernelweave[molecules]'``.

    Parameters
    ----------
    kind : {"morgan", "features", "atom_pairs", "torsions", "paths"}
        Neighbourhoods of atoms (ECFP), the same of pharmacophoric features (FCFP), pairs of atoms with their distance,
        chains of four atoms, or paths of bonds.
    radius : int or sequence of int
        Of neighbourhoods, in bonds; one gives a kernel, a sequence a stack.
    bits : int or None
        Positions that substructures are folded into; None keeps them apart.
    counts : bool
        How often a substructure is there, or whether it is.
    compare : {"tanimoto", "cosine", "product"}
        ``sum min / sum max``, the Tanimoto similarity of binary fingerprints, or an inner product, which has explicit
        features (:func:`spectrum`).

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> [kernel.name for kernel in kw.fingerprint(radius=[1, 2], counts=False)]
    ['fingerprint(morgan, radius=1, binary)', 'fingerprint(morgan, radius=2, binary)']
    """

    def make(radius: int) -> Fingerprint:
        return Fingerprint(kind, radius, bits, counts, compare)

    return checked_family(make, radius, "the radius of a fingerprint", strict=False)


def descriptors(smiles: Sequence[str] | Any, names: Sequence[str] | None = None) -> Any:
    """Return RDKit's descriptors of molecules as a table of numbers, a view beside their fingerprints.

    Parameters
    ----------
    smiles : sequence of str
    names : sequence of str or None
        Names of descriptors; by default all, about 200.

    Returns
    -------
    DataFrame
        One row for each molecule; NaN where RDKit has no finite number.
    """
    import pandas as pd

    chem = rdkit()
    from rdkit.Chem import Descriptors

    known = dict(Descriptors.descList)
    wanted = list(known) if names is None else list(names)
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"RDKit has no descriptor {unknown[0]!r}.{nearest(unknown[0], list(known))}")
    Fingerprint().check_samples(smiles)
    rows = []
    for one in entries(smiles):
        check_time()
        molecule = chem.MolFromSmiles(one)
        rows.append([known[name](molecule) for name in wanted])
    values = np.array(rows, dtype=float).reshape(len(rows), len(wanted))
    # some are estimates of charges that are beyond any number
    values[~(np.abs(values) < 1e150)] = np.nan
    return pd.DataFrame(values, columns=wanted, index=smiles.index if hasattr(smiles, "iloc") else None)
