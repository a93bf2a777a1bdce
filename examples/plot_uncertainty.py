"""
How sure is a prediction?
=========================

Three answers that are easily taken for each other: a certificate, about the optimum; calibration, about probabilities;
and coverage, about intervals or sets of classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.model_selection import train_test_split

from kernelweave import MKLClassifierCV
from kernelweave import kernels as kw

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 4))
y = np.where(1.5 * np.sin(2 * X[:, 0]) + X[:, 1] + rng.logistic(size=3000) > 0, "yes", "no")
X_train, X_new, y_train, y_new = train_test_split(X, y, train_size=300, random_state=0)
model = MKLClassifierCV(kw.per_feature(kw.gaussian([0.5, 1.0, 2.0]))).fit(X_train, y_train)

# %%
# The certificate says that nothing better was missed on the training samples.
print(model.certificate_)

# %%
# The folds that chose C have also said what decision values are worth: a sigmoid makes probabilities of them. On new
# samples they are as frequent as they say. Right: the share of new samples that sets of classes contain, where a class
# is in the set if its probability is above a threshold that 200 samples set aside have given (split conformal
# prediction, which MAPIE does for any estimator).
values, shares = model.decision_function(X_new), model.predict_proba(X_new)
aside, rest = slice(0, 200), slice(200, None)
own = shares[np.arange(y_new.size), np.searchsorted(model.classes_, y_new)]
levels = np.array([0.6, 0.7, 0.8, 0.9, 0.95])
thresholds = np.sort(own[aside])[np.floor(201 * (1 - levels)).astype(int) - 1]
covered = [np.mean(own[rest] >= threshold) for threshold in thresholds]
sizes = [np.mean(np.sum(shares[rest] >= threshold, axis=1)) for threshold in thresholds]

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
trace = model.trace_
left.semilogy(trace["iteration"], trace["relative_gap"], "o-", color="0.15")
left.axhline(1e-3, color="#c8641e")
left.set(xlabel="iteration", ylabel="relative gap", title="certificate: the optimum")
observed, predicted = calibration_curve(y_new == "yes", shares[:, 1], n_bins=10)
middle.plot([0, 1], [0, 1], color="#c8641e")
middle.plot(predicted, observed, "o", color="0.15")
middle.set(xlabel="predicted probability", ylabel="observed share", title="calibration: probabilities")
right.plot([0.55, 1], [0.55, 1], color="#c8641e")
right.plot(levels, covered, "o", color="0.15")
for level, share, size in zip(levels, covered, sizes, strict=True):
    right.annotate(
        f"{size:.2f} classes", (level, share), xytext=(6, -12), textcoords="offset points", fontsize=8
    )
right.set(
    xlabel="asked for", ylabel="new samples inside", title="coverage: sets of classes", xlim=(0.55, 1.12)
)
plt.show()
