"""
An encoding model with three feature spaces
===========================================

Hundreds of targets, say voxels, respond to a stimulus that is described by three feature spaces. Which space does each
target need? Weights and ridge are chosen per target by the restricted marginal likelihood, all targets together in a
second or two.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import MeanKernelRidgeRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.displays import VarianceDisplay
from kernelweave.inspection import r2_split, variance_shares

# %%
# Three spaces of different sizes. Targets move from the first space to the second, and the third is for nothing.
rng = np.random.default_rng(0)
n, t = 400, 300
sizes = {"contours": 30, "motion": 60, "noise": 200}
ends = np.cumsum([0, *sizes.values()])
views = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(sizes)}
X = rng.normal(size=(n, ends[-1]))
share = np.linspace(0.0, 1.0, t)


def response(name):
    part = X[:, views[name]] @ rng.normal(size=(sizes[name], t))
    return part / part.std(axis=0)


Y = np.sqrt(0.6 * (1 - share)) * response("contours") + np.sqrt(0.6 * share) * response("motion")
Y += np.sqrt(0.4) * rng.normal(size=(n, t))
train, new = slice(0, 250), slice(250, None)

# %%
# One weight per space and target, against one ridge on the mean kernel.
bank = kw.per_view(views, kw.linear())
model = MKLRegressorCV(bank, criterion="reml").fit(X[train], Y[train])
mean = MeanKernelRidgeRegressor(bank).fit(X[train], Y[train])
print(f"weights per target: R2 {model.score(X[new], Y[new]):.3f}")
print(f"mean kernel:        R2 {mean.score(X[new], Y[new]):.3f}")
print(model.targets_["status"].value_counts())

# %%
# What the model takes each space to contribute to the variance, over targets.
VarianceDisplay(variance_shares(model)).plot()
plt.show()

# %%
# The same question asked of new data: R2 split between two spaces, one point per target.
VarianceDisplay(r2_split(model, X[new], Y[new])).plot_pair("contours", "motion")
plt.show()
