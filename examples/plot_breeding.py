"""
Breeding values from a pedigree and markers
===========================================

Four traits of animals that share ancestors. What is inherited is described by a kernel of the pedigree and by one
kernel of markers per chromosome; what a pen does to the animals in it is a nuisance, which is part of the model and no
part of the prediction for an animal that will live elsewhere.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.displays import VarianceDisplay
from kernelweave.inspection import variance_shares

# %%
# A pedigree of three generations, and markers that are dropped through it: every animal gets one allele of each parent.
rng = np.random.default_rng(0)
founders, born, markers = 40, 130, {"chromosome 1": 150, "chromosome 2": 150}
n, p = founders + 2 * born, sum(markers.values())
parents = np.full((n, 2), -1)
alleles = np.empty((n, 2, p), dtype=int)
alleles[:founders] = rng.random((founders, 2, p)) < rng.uniform(0.1, 0.9, size=p)
generations = [np.arange(founders), np.arange(founders, founders + born), np.arange(founders + born, n)]
for before, after in pairwise(generations):
    half = len(before) // 2
    for animal in after:
        parents[animal] = rng.choice(before[:half]), rng.choice(before[half:])
        for side, parent in enumerate(parents[animal]):
            which = np.repeat(rng.integers(0, 2, size=p // 10), 10)  # whole stretches are inherited together
            alleles[animal, side] = alleles[parent, which, np.arange(p)]

# %%
# The relationship of two animals by pedigree, Henderson's table: an animal is as close to another as its parents are on
# average, and as close to itself as one plus half the relationship of its parents.
A = np.eye(n)
for i in range(founders, n):
    sire, dam = parents[i]
    A[i, :i] = A[:i, i] = 0.5 * (A[sire, :i] + A[dam, :i])
    A[i, i] = 1.0 + 0.5 * A[sire, dam]

# %%
# Samples are rows: a factor of the relationship matrix is a table whose linear kernel it is. The pen is a number; a
# narrow Gaussian compares numbers for equality.
pen = rng.integers(0, 12, size=n)
X = np.column_stack([np.linalg.cholesky(A), alleles.sum(axis=1), pen])
views = {"pedigree": slice(0, n)}
first = n
for name, count in markers.items():
    views[name] = slice(first, first + count)
    first += count
bank = kw.per_view(views, kw.linear()) + kw.per_view({"pen": [first]}, kw.gaussian(0.1))


def standardised(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


# %%
# Four traits: many small effects all over, large ones on one chromosome each, and one that is hardly inherited.
genotype = alleles.sum(axis=1)
effects = rng.normal(size=(p, 4))
effects[150:, 1] = effects[:150, 2] = 0.0
breeding = standardised(genotype @ effects) * np.sqrt([0.5, 0.5, 0.5, 0.05])
noise = standardised(rng.normal(size=(n, 4))) * np.sqrt([0.3, 0.3, 0.3, 0.75])
Y = breeding + standardised(rng.normal(size=(12, 4)))[pen] * np.sqrt(0.2) + noise
traits = ["growth", "milk", "fertility", "temper"]

# %%
# The last generation has no records yet. Its breeding values are predicted from the others'; the pen is left out.
old, young = np.concatenate(generations[:2]), generations[2]
model = MKLRegressorCV(bank, criterion="reml", nuisance="pen").fit(X[old], Y[old])
predicted = model.predict(X[young])
for k, trait in enumerate(traits):
    accuracy = np.corrcoef(predicted[:, k], breeding[young, k])[0, 1]
    print(f"{trait:10s} correlation with the true breeding value {accuracy:.2f}")

# %%
# What each part contributes to the variance of each trait.
shares = variance_shares(model)
VarianceDisplay(shares).plot()
plt.show()
print(np.round(np.vstack([shares.by_view(), shares.rest]), 2))

# %%
# One trait alone comes with standard errors, as breeders report them.
one = MKLRegressorCV(bank, criterion="reml", nuisance="pen").fit(X[old], Y[old, 0])
print(one.variance_components_.round(2))
