"""
How far can weights be trusted?
===============================

A sparse fit picks a few kernels. Would it pick the same ones from other samples? And what do they contribute to a
single decision?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import WeightsDisplay
from kernelweave.inspection import contributions, feature_weights, view_p_values, weight_stability

data = load_breast_cancer(as_frame=True)
X, y = data.data.iloc[:300], data.target_names[data.target[:300]]
views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
bank = kw.per_view(views, kw.linear(), kw.gaussian([0.5, 1.0, 2.0], relative=True))
model = make_pipeline(StandardScaler(), MKLClassifier(bank)).fit(X, y)

# %%
# Refits on repeated folds: the bars are mean weights, the lines the range of the refits. Single kernels jump about more
# than their views do.
stability = weight_stability(model, X, y, n_refits=20)
print(stability)
print(stability.by_view().round(3))
WeightsDisplay.from_stability(stability)
plt.show()

# %%
# Is a view needed? Its part of the held-out decisions is shuffled among the samples.
print(view_p_values(model, X, y, n_permutations=199).round(3))

# %%
# One decision, split by view: the parts and the intercept add up to the decision value.
parts = contributions(model, X.iloc[:20])
shown, values = parts.view_names, parts.by_view()
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
left = np.zeros(20), np.zeros(20)
for k, (name, grey) in enumerate(zip(shown, ("0.15", "0.5", "0.8"), strict=True)):
    for sign, start in zip((1, -1), left, strict=True):
        part = np.where(np.sign(values[:, k]) == sign, values[:, k], 0.0)
        ax.bar(range(20), part, bottom=start, color=grey, label=name if sign == 1 else None)
        start += part
ax.plot(range(20), parts.decision, "D", color="#c8641e", label="decision value")
ax.axhline(0.0, color="black", linewidth=0.8)
ax.set(xlabel="sample", ylabel="contribution")
ax.legend(frameon=False, ncols=2)
plt.show()

# %%
# Linear kernels can be read feature by feature.
table = feature_weights(model)
print(table.reindex(table["weight"].abs().sort_values(ascending=False).index).head(8).round(3))
