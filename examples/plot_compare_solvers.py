"""
Comparing solvers
=================

All solvers have the same certificate, so they can be compared by what they need to reach it: passes over the
kernels, which do not depend on the machine, or seconds, which do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import ConvergenceDisplay

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X)[:300], y[:300]
bank = kw.gaussian(2.0 ** np.arange(-1, 5)) + kw.per_feature(kw.gaussian([0.5, 1.0, 2.0]))

# %%
# The same problem by five solvers.
fits = {}
for solver in ("newton", "level", "silp", "simplemkl", "subgradient"):
    fits[solver] = MKLClassifier(bank, solver=solver, tol=1e-3).fit(X, y)
    trace = fits[solver].trace_
    passes, seconds = trace["passes"].iloc[-1], trace["seconds"].iloc[-1]
    print(f"{solver:12} {len(trace):4} iterations  {passes:7.1f} passes  {seconds:6.2f} s")

# %%
# By passes.
ConvergenceDisplay.from_estimators(fits).ax_.set_xscale("log")
plt.show()

# %%
# By seconds.
ConvergenceDisplay.from_estimators(fits, x="seconds").ax_.set_xscale("log")
plt.show()

# %%
# They end at the same weights, as far as the gap allows.
for solver, clf in fits.items():
    print(f"{solver:12} objective {clf.certificate_.primal:.4f}, lower bound {clf.certificate_.dual:.4f}")
