"""
Which views say who lives longer?
=================================

Patients are followed until they die or are lost to sight. Four tables describe each of them; two of these say something
about survival beyond what the clinic knows already. A sparse fit finds them.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import MKLSurvivalCV, metrics, survival
from kernelweave import kernels as kw
from kernelweave.displays import CalibrationDisplay, SurvivalDisplay, WeightsDisplay
from kernelweave.inspection import contributions, kernel_views

# %%
# 260 patients: age and stage count, and so do RNA and methylation; proteins and mutations do not.
rng = np.random.default_rng(0)
n = 260
clinic = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n) - 1.0])
hidden = rng.normal(size=(n, 4))
sizes = {"rna": 30, "methylation": 20, "proteins": 15, "mutations": 25}
tables = [
    hidden[:, [k]] + rng.normal(size=(n, size)) for k, size in enumerate(sizes.values())
]  # every table follows a process of its own
X = np.hstack([clinic, *tables])
risk = 0.5 * clinic.sum(axis=1) + hidden[:, 0] + 0.8 * hidden[:, 1]
dies, leaves = 30 * rng.weibull(1.3, n) * np.exp(-risk / 1.3), rng.uniform(10, 120, n)
y = survival(np.minimum(dies, leaves), dies <= leaves)
train, test = np.arange(180), np.arange(180, n)

# %%
# The clinical columns always count: what is learnt is beyond them. C is chosen by the partial likelihood of held-out
# patients.
ends = np.cumsum([2, *sizes.values()])
views = {name: slice(start, end) for name, start, end in zip(sizes, ends[:-1], ends[1:], strict=True)}
bank = kw.always(kw.linear().on([0, 1]), weight=100.0)
bank += kw.per_view(views, kw.linear(), kw.gaussian([0.5, 1.0, 2.0], relative=True))
model = MKLSurvivalCV(bank, cv=3).fit(X[train], y[train])
print(model.certificate_)
print(f"concordance of {len(test)} other patients: {model.score(X[test], y[test]):.3f}")

# %%
# The weights that were learnt; those of proteins and mutations are small or zero.
of_kernel = kernel_views(model)
for name in views:
    print(f"{name:12} {model.weights_[of_kernel == name].sum():.2f}")
WeightsDisplay(model.weights_[1:], list(model.kernel_names_[1:])).plot()
plt.show()

# %%
# What happened to the other patients, in thirds by their predicted risk; and the curves that are predicted for three.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
scores = model.predict(X[test])
SurvivalDisplay.from_predictions(y[test], scores, ax=left)
three = test[np.argsort(scores)[[5, len(test) // 2, -6]]]
names = [f"patient {k}" for k in three]
SurvivalDisplay.from_estimator(model, X[three], names=names, ax=right)
plt.show()

# %%
# Whether probabilities are what they say, at the quartiles of the event times.
CalibrationDisplay.from_estimator(model, X[test], y[test], n_groups=4)
plt.show()

# %%
# The risk of one patient, split by view; and how good the curves are beside the one that is the same for everybody.
print(contributions(model, X[three]).table(2).round(2))
times = metrics.times_between(y[test], y["time"][train].max())
curves = np.array([curve(times) for curve in model.predict_survival_function(X[test])])
same = np.tile(metrics.kaplan_meier(y[train])(times), (len(test), 1))
for name, survived in (("model", curves), ("Kaplan-Meier", same)):
    print(f"{name:12} Brier score {metrics.integrated_brier_score(y[train], y[test], survived, times):.3f}")
