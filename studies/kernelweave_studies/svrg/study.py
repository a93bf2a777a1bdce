"""SVRG for lp-norm MKL [APO17]: passes, robustness, Table 1 as measured exponents, and two of its claims.

The paper has no experiments; what there is to hold against it are the complexities of its Table 1 and its theorem.
"""

from __future__ import annotations

from ..study import Part, Study
from . import exponents, passes, robust, theorem

STUDY = Study(
    "svrg",
    "Multiple Kernel Learning via Multi-Epochs SVRG",
    (
        Part.of(
            passes, "passes", "Passes to an accuracy, beside L-BFGS and Pegasos", repeats=10, quick_repeats=2
        ),
        Part.of(robust, "robust", "Badly scaled random problems", repeats=20, quick_repeats=2),
        Part.of(exponents, "exponents", "Table 1: measured exponents", repeats=3, quick_repeats=1),
        Part(
            "q",
            "Larger q, faster convergence?",
            theorem.Q_SETTINGS,
            theorem.q_keys,
            theorem.q_work,
            theorem.q_report,
            repeats=5,
            quick_repeats=1,
        ),
        Part.of(theorem, "theorem1", "Theorem 1 with exact epochs", repeats=5, quick_repeats=1),
    ),
)
