"""Kernels on sequences against naive double loops over their definitions."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave import SimilarityClassifier
from kernelweave import kernels as kw

texts = st.lists(st.text(alphabet="ACGTN", max_size=9), min_size=2, max_size=6)
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}


def words(text: str, k: int, strands: bool = False) -> Counter:
    both = [text, "".join(COMPLEMENT[letter] for letter in reversed(text))] if strands else [text]
    found = (one[i : i + k] for one in both for i in range(len(one) - k + 1))
    return Counter(word for word in found if "N" not in word)


def naive(counts: list[Counter], compare: str) -> np.ndarray:
    """Compare all pairs by a double loop."""
    K = np.empty((len(counts), len(counts)))
    for i, a in enumerate(counts):
        for j, b in enumerate(counts):
            inner = sum(a[word] * b[word] for word in a)
            if compare == "tanimoto":
                larger = sum((a | b).values())
                K[i, j] = sum((a & b).values()) / larger if larger else 1.0
            elif compare == "cosine":
                lengths = sum(v * v for v in a.values()) * sum(v * v for v in b.values())
                K[i, j] = inner / np.sqrt(lengths) if lengths else 0.0
            else:
                K[i, j] = inner
    return K


@settings(max_examples=60, deadline=None)
@given(texts, st.integers(1, 4), st.sampled_from(["cosine", "product", "tanimoto"]), st.booleans())
def test_spectrum_is_the_naive_double_loop(X, k, compare, strands):
    wanted = naive([words(text, k, strands) for text in X], compare)
    kernel = kw.spectrum(k, alphabet="dna", reverse_complement=strands, compare=compare)
    np.testing.assert_allclose(kernel(X), wanted, atol=1e-12)
    # parts that training samples do not have change nothing between them and new ones
    settled = kernel.resolve(X[:1])
    np.testing.assert_allclose(settled(X, X[:1]), wanted[:, :1], atol=1e-12)
    np.testing.assert_allclose(settled(X[:1]), wanted[:1, :1], atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(texts, st.integers(1, 3), st.integers(1, 2))
def test_mismatch_is_the_naive_double_loop(X, k, mismatches):
    if mismatches >= k:
        with pytest.raises(ValueError, match="below k"):
            kw.spectrum(k, mismatches=mismatches, alphabet="dna")
        return
    every = ["".join(word) for word in product("ACGT", repeat=k)]
    counts = []
    for text in X:
        own = words(text, k)
        near = {
            word: sum(n for w, n in own.items() if sum(map(str.__ne__, w, word)) <= mismatches)
            for word in every
        }
        counts.append(Counter(near))
    kernel = kw.spectrum(k, mismatches=mismatches, alphabet="dna", compare="product")
    np.testing.assert_allclose(kernel(X), naive(counts, "product"), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(texts, st.integers(1, 3), st.integers(1, 2))
def test_gapped_is_the_naive_double_loop(X, k, gaps):
    counts = []
    for text in X:
        own: Counter = Counter()
        for i in range(len(text) - k - gaps + 1):
            for places in combinations(range(k + gaps), k):
                word = "".join(text[i + place] if place in places else "-" for place in range(k + gaps))
                own[word] += "N" not in word
        counts.append(own)
    for compare in ("product", "tanimoto"):
        kernel = kw.spectrum(k, gaps, alphabet="dna", compare=compare)
        np.testing.assert_allclose(kernel(X), naive([+own for own in counts], compare), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet="AB", min_size=5, max_size=5), min_size=2, max_size=5), st.integers(1, 4))
def test_weighted_degree_is_the_naive_double_loop(X, degree):
    wanted = np.zeros((len(X), len(X)))
    for i, a in enumerate(X):
        for j, b in enumerate(X):
            for k in range(1, degree + 1):
                same = sum(a[p : p + k] == b[p : p + k] for p in range(5 - k + 1))
                wanted[i, j] += 2 * (degree - k + 1) / (degree * (degree + 1)) * same
    np.testing.assert_allclose(kw.weighted_degree(degree, compare="product")(X), wanted, atol=1e-12)


def test_spelling_does_not_matter_where_there_is_an_alphabet():
    dna = kw.spectrum(2, alphabet="dna")
    assert np.allclose(dna(["ACGTT", "acguu"]), 1.0)
    assert np.allclose(kw.spectrum(2)(["AC", "ac"]), np.eye(2))
    assert np.allclose(kw.spectrum(2, alphabet="AB")(["AB", "BA"]), np.eye(2))
    # both strands of a sequence are alike
    both = kw.spectrum(3, alphabet="dna", reverse_complement=True)
    assert np.allclose(both(["AACGT", "ACGTT"]), 1.0)
    # rings are numbered as one likes, and chlorine is no carbon
    smiles = kw.spectrum(3, alphabet="smiles")
    assert np.allclose(smiles(["C1CCC1", "C2CCC2"]), 1.0)
    assert np.allclose(kw.spectrum(1, alphabet="smiles")(["Cl", "C"]), np.eye(2))


def test_hashed_columns_are_as_many_as_asked_for():
    X = ["ACGTACGGT", "TTGACA", "CCCCCC"]
    kernel = kw.spectrum(3, n_features=1 << 16).resolve(X)
    assert np.allclose(kernel(X), kw.spectrum(3)(X))
    assert kw.spectrum(3, n_features=4).resolve(X).rank(1) <= 4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: kw.spectrum(0), "k of a spectrum kernel must be"),
        (lambda: kw.spectrum(3, alphabet="protien"), "Did you mean 'protein'"),
        (lambda: kw.spectrum(3, alphabet=7), "alphabet must be one of"),
        (lambda: kw.spectrum(3, compare="dot"), "compare must be one of"),
        (lambda: kw.spectrum(3, n_features=0), "n_features of kernel"),
        (lambda: kw.spectrum(3, reverse_complement=True), "goes with alphabet='dna'"),
        (lambda: kw.spectrum(3, mismatches=1), "mismatches need an alphabet"),
        (lambda: kw.spectrum(9, 0, 4, "protein"), "choose fewer, below k"),
        (lambda: kw.weighted_degree(3, compare="tanimoto"), "no whole counts"),
        (lambda: kw.alignment(opening=-1), "opening of an alignment"),
        (lambda: kw.spectrum(2, alphabet="dna")(["ACGT", "AC7"]), "row 1: 'AC7' has '7'"),
        (lambda: kw.spectrum(2)(["ACGT", None, 3.0]), "row 1: there is none; row 2: float 3"),
        (lambda: kw.spectrum(2)(np.eye(3)), "takes one column of objects, and there are 3"),
        (lambda: kw.weighted_degree(2)(["ACGT", "AC"]), "row 1: 'AC' has 2 letters where others have 4"),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_more_parts_than_a_model_should_keep(monkeypatch):
    monkeypatch.setattr("kernelweave.kernels.objects.MOST_PARTS", 3)
    with pytest.raises(ValueError, match=r"5 different parts .* n_features=2\*\*18"):
        kw.spectrum(2).resolve(["ABCDEF"])
    kw.spectrum(2, n_features=3).resolve(["ABCDEF"])


def test_alignments_are_similarities():
    parasail = pytest.importorskip("parasail")
    rng = np.random.default_rng(0)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    X = ["".join(rng.choice(letters, size=size)) for size in rng.integers(5, 40, size=24)]
    local, whole = kw.alignment(), kw.alignment(local=False, opening=10, extension=2)
    score = parasail.sw(X[0], X[1], 11, 1, parasail.blosum62).score
    own = [parasail.sw(x, x, 11, 1, parasail.blosum62).score for x in X[:2]]
    assert local(X)[0, 1] == pytest.approx(score / np.sqrt(own[0] * own[1]))
    score = parasail.nw(X[0], X[1], 10, 2, parasail.blosum62).score
    own = [parasail.nw(x, x, 10, 2, parasail.blosum62).score for x in X[:2]]
    assert whole(X)[0, 1] == pytest.approx(score / np.sqrt(own[0] * own[1]))
    assert np.linalg.eigvalsh(whole(X))[0] < -0.1
    from kernelweave import MKLClassifier

    y = np.arange(24) % 2
    with pytest.raises(ValueError, match="not positive semi-definite"):
        MKLClassifier(whole).fit(X, y)
    model = SimilarityClassifier([whole]).fit(X, y)
    assert model.predict(X[:3]).shape == (3,)
    with pytest.raises(ValueError, match="no substitution matrix 'blosum'"):
        kw.alignment("blosum")(X[:2])
    with pytest.raises(ValueError, match="an empty text"):
        local([*X, ""])
