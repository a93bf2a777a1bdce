"""Kernels on sequences: words that they share, at any place or at the same, and alignment scores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import comb
from typing import Any, ClassVar

import numpy as np

from .._components import check_switch, nearest
from .._numerics.stopping import check_time
from ._kernel import readable
from ._numeric import checked_number
from .functions import evaluate_pairs
from .objects import OfObjects, Parts, PartsKernel, checked_family, entries, joined, mixed

#: letters of an alphabet, and what stands for one of several or for none: words with one of these are left out
ALPHABETS = {"protein": ("ACDEFGHIKLMNPQRSTVWY", "BJOUXZ*-."), "dna": ("ACGT", "NRYSWKMBDHV-.")}
COMPLEMENT = str.maketrans("ACGTU", "TGCAA")
#: power of this, an odd number, by which letters of a word are told apart by their places
BASE = 0x5851F42D4C957F2D
#: neighbours of a word beyond which mismatches are refused
MOST_NEIGHBOURS = 20_000


@cache
def _spellings(letters: str, wildcards: str, folded: bool) -> frozenset[str]:
    """Return the characters that a sequence may have."""
    every = letters + wildcards
    return frozenset(every + every.lower() + "uU" * ("T" in letters) if folded else every)


class SequenceKernel(PartsKernel):
    """Base of kernels on texts: the words that begin at each of their letters."""

    #: names of parameters that are whole numbers, with the least they can be
    _numbers: ClassVar[dict[str, int]]
    alphabet: Any
    reverse_complement: bool
    mismatches: int

    def check_parameters(self) -> None:
        super().check_parameters()
        for name, least in self._numbers.items():
            checked_number(
                getattr(self, name), f"{name} of a {self.family} kernel", strict=least > 0, whole=True
            )
        alphabet, named = self.alphabet, [*ALPHABETS, "smiles"]
        close = nearest(alphabet, named) if isinstance(alphabet, str) and alphabet else ""
        if alphabet not in (None, *named) and (close or not isinstance(alphabet, str) or not alphabet):
            raise ValueError(
                f"alphabet must be one of {', '.join(named)}, a text of letters, or None for any characters, got "
                f"{alphabet!r}.{close}"
            )
        if self.reverse_complement and alphabet != "dna":
            raise ValueError(f"reverse_complement=True goes with alphabet='dna', not {alphabet!r}")

    def _letters(self) -> tuple[str, str] | None:
        """Return letters and wildcards; None where all characters are letters."""
        return (
            None if self.alphabet in (None, "smiles") else ALPHABETS.get(self.alphabet, (self.alphabet, ""))
        )

    def _text(self, what: str) -> str:
        """Return a sequence in the spelling in which letters are compared."""
        if self.alphabet == "smiles":  # an atom is one letter, and numbers of rings are all alike
            return re.sub(r"\d", "0", what.replace("Cl", "L").replace("Br", "R"))
        if self.alphabet not in ALPHABETS:
            return what
        return what.upper().replace("U", "T") if self.alphabet == "dna" else what.upper()

    def _problem(self, what: Any) -> str | None:
        letters = self._letters()
        if letters is None or _spellings(*letters, self.alphabet in ALPHABETS).issuperset(what):
            return None
        strange = min(set(self._text(what)).difference(*letters))
        return f"{what[:30]!r} has {strange!r}, which is no letter of alphabet {self.alphabet!r}"

    def _patterns(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield lengths of pieces of a sequence, and the places in a piece whose letters are a word."""
        raise NotImplementedError

    def _parts(self, objects: list[Any]) -> Parts:
        texts, owners = [self._text(what) for what in objects], np.arange(len(objects))
        if self.reverse_complement:  # both strands count
            texts += [text.translate(COMPLEMENT)[::-1] for text in texts]
            owners = np.concatenate([owners, owners])
        sizes = np.array([len(text) for text in texts], dtype=np.intp)
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        follow = np.repeat(np.cumsum(sizes), sizes) - np.arange(points.size)  # letters from here to the end
        owners, letters = np.repeat(owners, sizes), self._letters()
        there = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)
        there[points] = True
        different = np.flatnonzero(there)
        at = np.cumsum(there)[points] - 1
        digits = different
        if letters is not None:  # -1 for wildcards
            digits = np.array([letters[0].find(chr(point)) for point in different], dtype=np.intp)
        values, digits = mixed(different)[at], digits[at]
        found = []
        for number, (length, places) in enumerate(self._patterns()):
            check_time()
            size = max(points.size - length + 1, 0)
            whole, codes = follow[:size] >= length, np.zeros(size, dtype=np.uint64)
            for place in places:
                whole &= digits[place : place + size] >= 0
                codes *= np.uint64(BASE)
                codes += values[place : place + size]
            begins = np.flatnonzero(whole)
            codes = codes[begins]
            own = digits[begins[:, None] + np.array(places)] if self.mismatches else digits
            parts = self._counted_as(codes, follow[begins], own, number)
            found += [(owners[begins], code, count) for code, count in parts]
        return joined(found)

    def _counted_as(self, codes: Any, follow: Any, digits: Any, pattern: int) -> list[tuple[Any, Any]]:
        """Return codes and counts of the parts that the words of a pattern stand for."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        first, *others = self._numbers
        shown = [f"{first}={readable(getattr(self, first))}"]
        shown += [f"{name}={readable(getattr(self, name))}" for name in others if getattr(self, name)]
        shown += [f"alphabet={self.alphabet}"] if self.alphabet is not None else []
        shown += ["both strands"] if self.reverse_complement else []
        shown += [self.compare] if self.compare != "cosine" else []
        shown += [f"n_features={self.n_features}"] if self.n_features is not None else []
        return f"{self.family}({', '.join(shown)})"


@dataclass(eq=False, repr=False)
class Spectrum(SequenceKernel, registered_as="spectrum"):
    """Words that two sequences share; see :func:`spectrum`."""

    k: Any
    gaps: int = 0
    mismatches: int = 0
    alphabet: Any = None
    reverse_complement: bool = False
    compare: str = "cosine"
    n_features: int | None = None

    for_texts = _varied = "k"
    _numbers = {"k": 1, "gaps": 0, "mismatches": 0}  # noqa: RUF012

    def check_parameters(self) -> None:
        super().check_parameters()
        letters = self._letters()
        if self.mismatches and letters is None:
            raise ValueError("mismatches need an alphabet: 'protein', 'dna', or a text of the letters")
        others = len(letters[0]) - 1 if letters else 0
        neighbours = sum(comb(self.k, i) * others**i for i in range(self.mismatches + 1))
        if self.mismatches >= self.k or neighbours > MOST_NEIGHBOURS:
            raise ValueError(
                f"{self.mismatches} mismatches in words of {self.k} letters count every word {neighbours} times: "
                "choose fewer, below k, or gaps"
            )

    def _patterns(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        length = self.k + self.gaps
        return ((length, places) for places in combinations(range(length), self.k))

    def _counted_as(self, codes: Any, follow: Any, digits: Any, pattern: int) -> list[tuple[Any, Any]]:
        found, letters = [codes], self._letters() or ("", "")
        alphabet = mixed([ord(letter) for letter in letters[0]])
        for changes in range(1, self.mismatches + 1):
            for places in combinations(range(self.k), changes):
                for shifts in product(range(1, alphabet.size), repeat=changes):
                    other = codes.copy()
                    for place, shift in zip(places, shifts, strict=True):
                        old, power = digits[:, place], pow(BASE, self.k - 1 - place, 1 << 64)
                        other += (alphabet[(old + shift) % alphabet.size] - alphabet[old]) * np.uint64(power)
                    found.append(other)
        return [(mixed(one + mixed(pattern)), 1.0) for one in found]


@dataclass(eq=False, repr=False)
class WeightedDegree(SequenceKernel, registered_as="weighted_degree"):
    """Words that two aligned sequences have at the same places; see :func:`weighted_degree`."""

    degree: Any
    alphabet: Any = None
    compare: str = "cosine"
    n_features: int | None = None

    reverse_complement = False
    mismatches = 0
    length = None
    _objects = "aligned sequences, texts of one length"
    for_texts = _varied = "degree"
    _numbers = {"degree": 1}  # noqa: RUF012

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.compare == "tanimoto":
            raise ValueError("a weighted_degree kernel has no whole counts: compare='cosine' or 'product'")

    def _settled(self, objects: list[Any]) -> Any:
        return self._with(length=len(objects[0]) if objects else None)

    def check_samples(self, A: Any, where: str = "", rows: np.ndarray | None = None) -> None:
        if self.length is None:
            first = next((what for what in entries(A) if isinstance(what, str)), "")
            self._with(length=len(first)).check_samples(A, where, rows)
        else:
            super().check_samples(A, where, rows)

    def _problem(self, what: Any) -> str | None:
        if len(what) != self.length:
            return f"{what[:30]!r} has {len(what)} letters where others have {self.length}"
        return super()._problem(what)

    def _patterns(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        return ((size, tuple(range(size))) for size in range(1, self.degree + 1))

    def _counted_as(self, codes: Any, follow: Any, digits: Any, pattern: int) -> list[tuple[Any, Any]]:
        # Sonnenburg, Raetsch and Rieck (2007): beta_k = 2 (d - k + 1) / (d (d + 1))
        beta = 2.0 * (self.degree - pattern) / (self.degree * (self.degree + 1))
        return [(mixed(codes + mixed(follow * self.degree + pattern)), np.sqrt(beta))]


@dataclass(eq=False, repr=False)
class Alignment(OfObjects, registered_as="alignment"):
    """Alignment scores over those of the sequences with themselves; see :func:`alignment`."""

    matrix: str = "blosum62"
    opening: int = 11
    extension: int = 1
    local: bool = True

    sure = False

    @property
    def name(self) -> str:
        costs = "" if (self.opening, self.extension) == (11, 1) else f", {self.opening}, {self.extension}"
        return f"alignment({self.matrix}{costs}{'' if self.local else ', global'})"

    def _problem(self, what: Any) -> str | None:
        return None if what else "an empty text"

    def _score(self) -> Any:
        """Return a function that scores two sequences, and remembers the scores of sequences with themselves."""
        try:
            import parasail
        except ImportError:
            raise ValueError("alignments need parasail: pip install 'kernelweave[sequences]'") from None
        if not isinstance(getattr(parasail, self.matrix, None), parasail.Matrix):
            raise ValueError(
                f"parasail has no substitution matrix {self.matrix!r}: blosum62, pam120 and others"
            )
        matrix, costs = getattr(parasail, self.matrix), (self.opening, self.extension)
        align = parasail.sw_striped_sat if self.local else parasail.nw_striped_sat
        own: dict[str, float] = {}

        def score(a: str, b: str) -> float:
            check_time()
            for one in (a, b):
                if one not in own:
                    own[one] = float(max(align(one, one, *costs, matrix).score, 1))
            return float(align(a, b, *costs, matrix).score / np.sqrt(own[a] * own[b]))

        return score

    def base(self, A: Any, B: Any) -> np.ndarray:
        left = self._checked(A)
        right = left if A is B else self._checked(B)
        return evaluate_pairs(self._score(), left, right, f"kernel {self.name!r}")

    def base_diag(self, A: Any) -> np.ndarray:
        score = self._score()
        return np.array([score(one, one) for one in self._checked(A)], dtype=float)


def spectrum(
    k: Any = 3, gaps: int = 0, mismatches: int = 0, alphabet: str | None = None, reverse_complement: bool = False,
    compare: str = "cosine", n_features: int | None = None,
) -> Any:  # fmt: skip
    """Return kernels of the words of k letters that two sequences share, wherever they are (Leslie et al. 2002).

    Parameters
    ----------
    k : int or sequence of int
        One gives a kernel, a sequence a stack.
    gaps : int, default=0
        Places in a piece of ``k + gaps`` letters that may hold any letter: there is a word for each choice of the k
        places that count (Ghandi et al. 2014).
    mismatches : int, default=0
        A word counts for all words that differ from it in at most so many letters, 77 for four letters of proteins and
        one mismatch (Leslie et al. 2004).  There must be an alphabet.
    alphabet : {"protein", "dna", "smiles"}, text of letters or None
        Characters beyond the alphabet are refused, and words with a wildcard of it (X, N, a gap) are left out; of
        ``"protein"`` and ``"dna"`` upper and lower case are alike, and U is T.  ``"smiles"`` takes Cl and Br for one
        letter each, and all numbers of rings for the same.  None takes texts as they are.
    reverse_complement : bool
        Whether the words of the other strand count as well.
    compare : {"cosine", "product", "tanimoto"}
        Inner product of the counts over both lengths, inner product, or sum of the smaller counts over that of the
        larger ones, which has no explicit features.
    n_features : int or None
        Columns that words are folded into by a hash; by default every word of the training samples has one.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.spectrum(2)(["ABAB", "BABA", "CC"]).round(2)
    array([[1. , 0.8, 0. ],
           [0.8, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> [kernel.name for kernel in kw.spectrum([3, 4], mismatches=1, alphabet="dna").on("promoter")][0]
    'spectrum(k=3, mismatches=1, alphabet=dna) on promoter'
    """
    what, more = "k of a spectrum kernel", (alphabet, reverse_complement, compare, n_features)
    return checked_family(Spectrum, k, what, gaps, mismatches, *more)


def weighted_degree(
    degree: Any = 3, alphabet: str | None = None, compare: str = "cosine", n_features: int | None = None
) -> Any:
    """Return kernels of the words that aligned sequences have at the same place (Raetsch and Sonnenburg 2004).

    Words of k letters, for k up to ``degree`` d, count ``2 (d - k + 1) / (d (d + 1))``.

    Parameters
    ----------
    degree : int or sequence of int
    alphabet, compare, n_features
        As for :func:`spectrum`, but for ``compare="tanimoto"``.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.weighted_degree(2)(["ACGT", "ACCT"]).round(2)
    array([[1.  , 0.64],
           [0.64, 1.  ]])
    """
    what = "the degree of a weighted_degree kernel"
    return checked_family(WeightedDegree, degree, what, alphabet, compare, n_features)


def alignment(
    matrix: str = "blosum62", opening: int = 11, extension: int = 1, local: bool = True
) -> Alignment:
    """Return alignment scores of sequences, over the root of the scores of both with themselves; by parasail.

    They are similarities and **not** positive semidefinite in general: an estimator that needs kernels refuses a matrix
    with negative eigenvalues, :class:`SimilarityClassifier` takes any.  ``pip install 'kernelweave[sequences]'``.

    Parameters
    ----------
    matrix : str, default="blosum62"
        Name of a substitution matrix of parasail.
    opening, extension : int
        What the first letter of a gap costs, and every other.
    local : bool, default=True
        Smith-Waterman (the best matching pieces), or Needleman-Wunsch (the whole of both).

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.alignment().name
    'alignment(blosum62)'
    """
    for name, cost in (("opening", opening), ("extension", extension)):
        checked_number(cost, f"{name} of an alignment", strict=False, whole=True)
    check_switch("local", local)
    return Alignment(matrix, opening, extension, bool(local))
