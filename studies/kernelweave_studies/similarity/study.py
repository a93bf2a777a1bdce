"""Kernels from indefinite similarities [KTBB10]: Tables 1, 2 and 3, a garbage similarity, and what is certified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..datasets import load_similarity, load_uci
from ..study import Key, Part, Row, Study, at_hand, not_at_hand
from . import certificates
from . import report as reports
from .data import FAMILIES, MOST, NOISE, PROTEINS, REAL, SHARE, UCI, protein_split, single_split
from .data import garbage as with_garbage
from .methods import CS, FINAL, METHODS, RHOS, SINGLE, TUNING, run_similarity_method

GARBAGE = (
    "Denoise, smooth",
    "l1-MKL on denoised, smooth",
    "mean of denoised, smooth",
    "ESKL, squared",
    "ESKL, frobenius",
    "ESKL, l1",
    "EMKL, frobenius",
    "REKL, frobenius",
)
_SETTINGS = {"C": CS, "rho": RHOS, "tuning": TUNING, "final": FINAL, "version": 1}


def _runs(sets: list[str], methods: Any, repeats: int) -> list[Key]:
    """Return one run per set, seed and method; a split of all sets before the next."""
    return [{"data": s, "seed": t, "method": m} for t in range(repeats) for s in sets for m in methods]


def _single_sets() -> list[str]:
    return [*at_hand(load_uci, UCI), *at_hand(load_similarity, REAL)]


def _families() -> list[str]:
    return list(FAMILIES) if at_hand(load_similarity, ["scop40"]) else []


def _row(row: Row) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "method"}]


def single_work(key: Key) -> list[Row]:
    """One method on one similarity."""
    seed = int(key["seed"])
    return _row(run_similarity_method(str(key["method"]), single_split(str(key["data"]), seed), seed))


def protein_work(key: Key) -> list[Row]:
    """One method on one superfamily."""
    seed = int(key["seed"])
    return _row(run_similarity_method(str(key["method"]), protein_split(str(key["data"]), seed), seed))


def garbage_work(key: Key) -> list[Row]:
    """One method where one of three similarities is noise."""
    seed = int(key["seed"])
    split = with_garbage(protein_split(str(key["data"]), seed), seed)
    return _row(run_similarity_method(str(key["method"]), split, seed))


def _settings(methods: Any, **more: Any) -> Mapping[str, Any]:
    return {**_SETTINGS, "methods": list(methods), **more}


def _of_proteins(
    name: str, title: str, methods: Any, work: Callable[..., Any], report: Callable[..., Any], repeats: int
) -> Part:
    return Part(
        name,
        title,
        _settings(methods, train=PROTEINS),
        lambda repeats: _runs(_families(), methods, repeats),
        work,
        report,
        repeats=repeats,
        quick_repeats=1,
        missing=lambda: not_at_hand(load_similarity, ["scop40"]),
    )


STUDY = Study(
    "similarity",
    "Efficient algorithms for learning kernels from multiple similarity matrices with general convex loss functions",
    (
        Part(
            "table1",
            "Tables 1 and 2: one indefinite similarity",
            _settings(SINGLE, most=MOST, share=SHARE, noise=NOISE),
            lambda repeats: _runs(_single_sets(), SINGLE, repeats),
            single_work,
            reports.single,
            repeats=5,
            quick_repeats=1,
            missing=lambda: [*not_at_hand(load_uci, UCI), *not_at_hand(load_similarity, REAL)],
        ),
        _of_proteins(
            "table3", "Table 3: three similarities of proteins", METHODS, protein_work, reports.proteins, 5
        ),
        _of_proteins(
            "garbage", "One of three similarities is noise", GARBAGE, garbage_work, reports.garbage, 2
        ),
        Part(
            "certificates",
            "Against a conic solver; iterations; a thousand samples; rates; the printed algorithm",
            certificates.SETTINGS,
            lambda repeats: certificates.keys(),
            certificates.work,
            certificates.report,
            repeats=1,
            quick_repeats=1,
            missing=certificates.missing,
        ),
    ),
)
