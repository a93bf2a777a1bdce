"""
From sequences to a classifier
==============================

Alignment scores say how alike two proteins are, but the matrix of scores need not be a kernel: global alignments of
sequences of unlike lengths have a large negative eigenvalue. This example reads a FASTA file whose headers end in a
superfamily, scores all pairs by Smith-Waterman (local) and Needleman-Wunsch (global) alignment, looks at the two
similarities, and learns to tell one superfamily from another.

    pip install 'kernelweave[sequences]'
    KERNELWEAVE_DATA=/path/to/data python examples/proteins.py
    python examples/proteins.py proteins.fasta c.1.8 b.1.18
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from kernelweave import SimilarityClassifier
from kernelweave.inspection import agreement, indefiniteness

try:
    import parasail
except ImportError:
    sys.exit("this example needs parasail: pip install 'kernelweave[sequences]'")

# %%
# Sequences and their superfamilies
# ---------------------------------


def read_fasta(path: Path) -> tuple[list[str], list[str]]:
    """Return sequences, and the last word of their headers."""
    sequences: list[str] = []
    families: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith(">"):
            families.append(line.split()[-1])
            sequences.append("")
        else:
            sequences[-1] += line.strip()
    return sequences, families


# %%
# Two similarities
# ----------------
# A function of two samples is all that ``SimilarityClassifier`` needs. Scores are divided by those of the sequences
# with themselves, so that every sequence is 1 to itself.

OPEN, EXTEND, MATRIX = 11, 1, parasail.blosum62


@cache
def _self_score(align, a: str) -> float:
    return float(align(a, a, OPEN, EXTEND, MATRIX).score)


def _likeness(align, a: str, b: str) -> float:
    score = align(a, b, OPEN, EXTEND, MATRIX).score
    return score / np.sqrt(_self_score(align, a) * _self_score(align, b))


def smith_waterman(a: str, b: str) -> float:
    """Local alignment: the best matching pieces."""
    return _likeness(parasail.sw_striped_sat, a, b)


def needleman_wunsch(a: str, b: str) -> float:
    """Global alignment: the whole of both."""
    return _likeness(parasail.nw_striped_sat, a, b)


def main(path: Path, positive: str, negative: str, most: int = 60) -> dict[str, float]:
    """Train on two thirds of two superfamilies, and print what is found."""
    sequences, families = read_fasta(path)
    rng = np.random.default_rng(0)
    chosen = []
    for family in (positive, negative):
        members = np.flatnonzero(np.array(families) == family)
        chosen += rng.permutation(members)[:most].tolist()
    X, y = [sequences[i] for i in chosen], [families[i] for i in chosen]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)

    # %%
    # A look before learning
    # ----------------------
    similarities = [smith_waterman, needleman_wunsch]
    stack = np.array([[[f(a, b) for b in X_train] for a in X_train] for f in similarities])
    for f, S in zip(similarities, stack, strict=True):
        print(f"{f.__name__}: {indefiniteness(S)}\n")
    print(agreement(stack, y_train, [f.__name__ for f in similarities]), "\n")

    # %%
    # Learning
    # --------
    # New sequences are scored against the training sequences, and each is classified from its own scores alone.
    accuracy = {}
    for method in ("denoise", "eskl", "rekl"):
        model = SimilarityClassifier(similarities, method=method, C=10.0).fit(X_train, y_train)
        accuracy[method] = model.score(X_test, y_test)
        print(f"{method:<8} accuracy {accuracy[method]:.2f}   {model.certificate_}")
    return accuracy


if __name__ == "__main__":
    default = Path(os.environ.get("KERNELWEAVE_DATA", ".")) / "scop40" / "proteins.fasta"
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    if not file.exists():
        sys.exit(f"{file} does not exist: name a FASTA file, or set KERNELWEAVE_DATA")
    main(file, *(sys.argv[2:4] if len(sys.argv) > 3 else ("c.1.8", "b.1.18")))
