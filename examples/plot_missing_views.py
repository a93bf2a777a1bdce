"""
Samples that lack whole views
=============================

Digits in three views, of which every sample loses each with probability 0.4. The features of a missing view are
predicted from the views at hand, or replaced by their mean, or the columns are filled with their means before.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from kernelweave import MKLClassifier, Views, ViewScaler
from kernelweave import kernels as kw
from kernelweave.inspection import drop_view

# %%
# Three views of the same digits, and who lacks which.
digits = load_digits()
keep = np.flatnonzero(np.isin(digits.target, [3, 5, 8, 9]))[:500]
images, y = digits.images[keep], digits.target[keep]
tables = {
    "pixels": images.reshape(len(y), -1),
    "profiles": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
    "fourier": np.abs(np.fft.rfft2(images)).reshape(len(y), -1),
}
rng = np.random.default_rng(0)
lost = rng.random((len(y), 3)) < 0.4
lost[lost.all(axis=1), rng.integers(0, 3)] = False
views = Views({name: np.where(lost[:, [k]], np.nan, table) for k, (name, table) in enumerate(tables.items())})
print(views)
X_train, X_test, y_train, y_test = train_test_split(views, y, test_size=0.4, stratify=y, random_state=0)

# %%
# The same model with both ways to complete the kernels.
bank = kw.gaussian([0.5, 1.0, 2.0], relative=True)
accuracy = {}
for how in ("mean", "predict"):
    model = make_pipeline(ViewScaler(), MKLClassifier(bank, norm=2, missing=how)).fit(X_train, y_train)
    accuracy[how] = model.score(X_test, y_test)
print(model[-1].missing_patterns_)
print({name: round(r2, 2) for name, r2 in model[-1].view_predictability_.items()})

# %%
# Beside it: the mean of every column in the gaps, and the samples that have everything.
wide, new = (np.asarray(ViewScaler().fit(X_train).transform(X), dtype=float) for X in (X_train, X_test))
columns = MKLClassifier(kw.per_view(X_train.groups, bank), norm=2)
accuracy["column mean"] = columns.fit(np.nan_to_num(wide), y_train).score(np.nan_to_num(new), y_test)
whole = np.flatnonzero(X_train.present.all(axis=1))
accuracy["complete samples"] = columns.fit(wide[whole], y_train[whole]).score(np.nan_to_num(new), y_test)

plt.barh(list(accuracy), list(accuracy.values()))
plt.xlim(0.5, 1.0)
plt.xlabel("accuracy on held-out samples")
plt.tight_layout()
plt.show()

# %%
# Do the Fourier coefficients pay? The model without them, and its accuracy by cross-validation.
print(drop_view(model, X_train, y_train, "fourier"))
