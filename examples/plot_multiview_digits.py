"""
Several views of handwritten digits
===================================

Each digit is described in three ways: its pixels, sums over rows and columns, and the size of its Fourier coefficients.
The fit says how much of each the classifier needs, and with what certainty.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kernelweave import MeanKernelClassifier, MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import KernelMatrixDisplay, WeightsDisplay

# %%
# Three views, side by side in one array.
digits = load_digits()
keep = np.flatnonzero(np.isin(digits.target, [3, 5, 8, 9]))[:500]
images, y = digits.images[keep], digits.target[keep]
profiles = np.hstack([images.sum(axis=1), images.sum(axis=2)])
fourier = np.abs(np.fft.rfft2(images)).reshape(len(y), -1)
X = np.hstack([images.reshape(len(y), -1), profiles, fourier])
ends = np.cumsum([0, 64, 16, fourier.shape[1]])
views = {name: slice(*ends[k : k + 2]) for k, name in enumerate(["pixels", "profiles", "fourier"])}

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# A linear kernel and three Gaussians on each view; widths are in median distances of the view.
bank = kw.per_view(views, kw.linear(), kw.gaussian([0.5, 1.0, 2.0], relative=True))
clf = MKLClassifier(bank, C=10.0).fit(X_train, y_train)
mean = MeanKernelClassifier(bank, C=10.0).fit(X_train, y_train)
print(f"learnt weights: accuracy {clf.score(X_test, y_test):.3f}")
print(f"mean kernel:    accuracy {mean.score(X_test, y_test):.3f}")
print(clf.certificate_)

# %%
# Which kernels it stands on, under their views.
WeightsDisplay.from_estimator(clf, group_by="view")
plt.show()

# %%
# What the digits look like to the mixture, sorted by class.
KernelMatrixDisplay.from_estimator(clf, X_test, y_test)
plt.show()
