"""
Samples that lack whole views
=============================

Digits in three views, of which every sample loses each with probability 0.4. The features of a missing view are
predicted from the views at hand, or replaced by their mean. Beside that: the other ways that people take.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from kernelweave import MKLClassifier, Views, ViewScaler
from kernelweave import kernels as kw
from kernelweave.inspection import add_view, drop_view

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
# Columns filled in before: by their means, by the nearest samples, by ridge regression on the other views.
scaler = ViewScaler().fit(X_train)
scaled, scaled_new = scaler.transform(X_train), scaler.transform(X_test)
wide, new = np.asarray(scaled, dtype=float), np.asarray(scaled_new, dtype=float)
columns = MKLClassifier(kw.per_view(X_train.groups, bank), norm=2)
accuracy["column mean"] = columns.fit(np.nan_to_num(wide), y_train).score(np.nan_to_num(new), y_test)
neighbours = KNNImputer().fit(wide)
filled = neighbours.transform(wide), neighbours.transform(new)
accuracy["column neighbours"] = columns.fit(filled[0], y_train).score(filled[1], y_test)
filled = np.nan_to_num(wide), np.nan_to_num(new)
for name, own in X_train.groups.items():
    others = np.setdiff1d(np.arange(wide.shape[1]), own)
    have = X_train.present[:, X_train.position(name)]
    ridge = RidgeCV(np.logspace(0, 4, 5)).fit(filled[0][have][:, others], wide[have][:, own])
    for table, views in zip(filled, (X_train, X_test), strict=True):
        gone = ~views.present[:, views.position(name)]
        table[np.ix_(gone, own)] = ridge.predict(table[gone][:, others])
accuracy["column ridge"] = columns.fit(filled[0], y_train).score(filled[1], y_test)

# %%
# No similarity where a view is missing; complete samples alone; a model for every pattern of new samples.
stack, cross = np.zeros((3, len(wide), len(wide))), np.zeros((3, len(new), len(wide)))
for k in range(3):
    have, theirs = np.flatnonzero(scaled.present[:, k]), np.flatnonzero(scaled_new.present[:, k])
    kernel = kw.gaussian(1.0, relative=True).resolve(scaled.blocks[k][have])
    stack[k][np.ix_(have, have)] = kernel(scaled.blocks[k][have])
    cross[k][np.ix_(theirs, have)] = kernel(scaled_new.blocks[k][theirs], scaled.blocks[k][have])
zeros = MKLClassifier("precomputed", norm=2, normalize=None).fit(stack, y_train)
accuracy["zeros"] = zeros.score(cross, y_test)
whole = np.flatnonzero(X_train.present.all(axis=1))
complete = MKLClassifier(bank, norm=2, missing="predict").fit(scaled[whole], y_train[whole])
accuracy["complete samples"] = complete.score(scaled_new, y_test)
right = np.zeros(len(y_test), dtype=bool)
for pattern in np.unique(scaled_new.present, axis=0):
    names = [name for name, here in zip(scaled.names, pattern, strict=True) if here]
    rows = np.flatnonzero(np.all(scaled_new.present == pattern, axis=1))
    mine = scaled.only(names)
    have = np.flatnonzero(mine.present.all(axis=1))
    alone = MKLClassifier(bank, norm=2).fit(mine[have], y_train[have])
    right[rows] = alone.predict(scaled_new.only(names)[rows]) == y_test[rows]
accuracy["model per pattern"] = right.mean()

plt.barh(list(accuracy), list(accuracy.values()))
plt.xlim(0.5, 1.0)
plt.xlabel("accuracy on held-out samples")
plt.tight_layout()
plt.show()

# %%
# Do the Fourier coefficients pay? The model without them, and its accuracy by cross-validation.
print(drop_view(model, X_train, y_train, "fourier"))

# %%
# A view that comes late: the model on two views, and what the third one adds.
early = make_pipeline(ViewScaler(), MKLClassifier(bank, norm=2, missing="predict"))
two = X_train.only(["profiles", "fourier"])
some = np.flatnonzero(two.present.any(axis=1))
early.fit(two[some], y_train[some])
print(add_view(early, two[some], y_train[some], "pixels", X_train["pixels"][some]))
