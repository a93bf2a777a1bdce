"""
Molecules: solubility from SMILES
=================================

Molecules are texts (SMILES), and kernels compare them as they are: by substrings, which need nothing else, and by
fingerprints where RDKit is installed (``pip install 'kernelweave[molecules]'``). The molecules are made up here, and
their solubility follows a rule: carbon and chlorine take from it, oxygen and nitrogen add to it, what is beside what
matters, and measurements are noisy.
"""

import importlib.util
import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from kernelweave import MKLRegressor
from kernelweave import kernels as kw
from kernelweave.displays import WeightsDisplay

#: parts, and what they do to the logarithm of the solubility
PARTS = {"C": -0.4, "C(C)": -0.7, "C(=O)": 0.3, "C(O)": 0.9, "C(N)": 0.7, "C(Cl)": -0.6, "c1ccc(cc1)": -1.5}
#: and what some do beside each other: an OH beside a C=O binds to that and not to water
BESIDE = {("C(=O)", "C(O)"): -1.5, ("C(O)", "C(=O)"): -1.5, ("C(=O)", "C(N)"): 1.0, ("C(N)", "C(=O)"): 1.0}

rng = np.random.default_rng(0)
smiles, y = [], []
for _ in range(400):
    parts = rng.choice(list(PARTS), rng.integers(3, 8))
    smiles.append("C" + "".join(parts) + "C")
    rule = sum(PARTS[part] for part in parts) + sum(BESIDE.get(two, 0.0) for two in itertools.pairwise(parts))
    y.append(rule + 0.3 * rng.normal())
smiles, y = np.array(smiles, dtype=object), np.array(y)
print(*smiles[:4], sep="\n")

# %%
# Substrings of one to eight letters, where Cl is one letter and all numbers of rings are alike; with RDKit also Morgan
# fingerprints of three radii. All are on the same column, and the norm shares the weight among them.
bank = kw.spectrum([1, 3, 5, 8], alphabet="smiles", compare="tanimoto")
if importlib.util.find_spec("rdkit"):
    bank += kw.fingerprint(radius=[1, 2, 3])
model = MKLRegressor(bank, C=100.0, norm=2).fit(smiles[:300], y[:300])
print(model.certificate_)
WeightsDisplay.from_estimator(model)
plt.show()

# %%
# New molecules, and how far off the predictions are. A ridge regression on counts of letters knows the composition
# and not what is next to what; the noise in the measurements is 0.3.
predicted = model.predict(smiles[300:])
counts = make_pipeline(
    CountVectorizer(analyzer="char", lowercase=False), RidgeCV(np.logspace(-3, 3, 13))
).fit(smiles[:300], y[:300])


def rmse(values):
    return float(np.sqrt(np.mean((values - y[300:]) ** 2)))


errors = {"kernels on SMILES": rmse(predicted), "counts of letters": rmse(counts.predict(smiles[300:]))}
print(errors)

fig, ax = plt.subplots(figsize=(4.8, 4.4), constrained_layout=True)
ax.axline((0, 0), slope=1, color="0.7", zorder=0)
ax.plot(y[300:], predicted, "o", alpha=0.7)
ax.set_xlabel("measured")
ax.set_ylabel("predicted")
ax.set_title(f"new molecules: error {errors['kernels on SMILES']:.2f}")
plt.show()

# sphinx_gallery_thumbnail_number = 2
