"""
Finding wrong labels
====================

A seventh of the labels is flipped. ``NoisyLabelMKLClassifier`` estimates how many are wrong, says which to look at
first, and fits in a way that can live with them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, NoisyLabelMKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import NoiseDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
flipped = np.random.default_rng(0).random(y_train.size) < 1 / 7
noisy = np.where(flipped, 1 - y_train, y_train)

# %%
# The same kernels for both: Gaussians on all features and on every single one.
bank = kw.gaussian([2.0, 4.0, 8.0]) + kw.per_feature(kw.gaussian([0.5, 1.0, 2.0]))
plain = MKLClassifier(bank).fit(X_train, noisy)
robust = NoisyLabelMKLClassifier(bank).fit(X_train, noisy)
print(f"MKLClassifier:           {plain.score(X_test, y_test):.3f} on clean test labels")
print(f"NoisyLabelMKLClassifier: {robust.score(X_test, y_test):.3f} ({robust.picked_})")
low, high = robust.noise_rate_interval_
print(f"estimated noise {robust.noise_rate_:.3f} ({low:.3f} to {high:.3f}), true {flipped.mean():.3f}")

# %%
# The crosses are the labels that were flipped: nearly all are on the left, where one would look first.
NoiseDisplay.from_estimator(robust, wrong=flipped)
plt.show()
