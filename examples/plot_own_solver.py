"""
A solver of your own
====================

A solver is one class: ``init``, ``step`` and ``point``. The loop, the certificate, the stopping, the trace and the
progress bar are the library's. Here: multiplicative updates, which let the weight of a kernel grow with what it
contributes.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import ConvergenceDisplay
from kernelweave.problems import Oracle, Point, relative_gap
from kernelweave.solvers import Solver, begin, inner_target


@dataclass
class State:
    """What the solver keeps between steps."""

    oracle: Oracle
    tol: float


# %%
# ``needs`` says what the solver can do: an l1 norm. Anything else is refused before any work, naming solvers that fit.
class Multiplicative(Solver, registered_as="multiplicative_example"):
    """Weights times the square root of what their kernels contribute, in turn with an SVM."""

    needs = ("simplex",)
    default_max_iter = 300

    def init(self, problem, start, tol):
        weights, inner = begin(problem, start)
        return State(problem.oracle(weights, inner, inner_target(1.0, tol)), tol)

    def step(self, problem, state):
        here = state.oracle
        grown = here.weights * np.sqrt(np.maximum(here.quad, 0.0))
        gap = relative_gap(here.inner.primal, problem.dual(here.inner.beta, here.quad))
        again = problem.oracle(grown / grown.sum(), here.inner, inner_target(gap, state.tol))
        return State(again, state.tol)

    def point(self, state) -> Point:
        return state.oracle.point


# %%
# It is used like any other, and its point is certified like any other's.
X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
bank = kw.gaussian([1.0, 2.0, 4.0, 8.0]) + kw.per_feature(kw.gaussian([0.5, 1.0]))
fits = {
    "multiplicative": MKLClassifier(bank, solver=Multiplicative(), tol=1e-2).fit(X, y),
    "newton": MKLClassifier(bank, solver="newton", tol=1e-2).fit(X, y),
}
for name, clf in fits.items():
    print(f"{name}: {clf.certificate_}")
ConvergenceDisplay.from_estimators(fits).ax_.set_xscale("log")
plt.show()

# %%
# In a file ``src/kernelweave/solvers/multiplicative.py`` it would be found by ``solver="multiplicative"``, the tests,
# the tables and the command line; CONTRIBUTING.md walks through that.
