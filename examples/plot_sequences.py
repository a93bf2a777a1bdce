"""
Promoters: sequences beside measurements
========================================

A table has a DNA sequence for every gene, and two numbers. Which words tell active genes from the others, and do the
numbers help? The data are made up: active genes have a TATA box somewhere, the accessibility of the region is
noisy evidence, and the length of the gene is no evidence at all.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import WeightsDisplay

rng = np.random.default_rng(0)
active = np.arange(400) % 2
promoters = []
for is_active in active:
    letters = "".join(rng.choice(list("ACGT"), size=80))
    place = rng.integers(0, 74)
    box = "TATAAA" if is_active and rng.random() < 0.8 else "".join(rng.permutation(list("TATAAA")))
    promoters.append(letters[:place] + box + letters[place + 6 :])
table = pd.DataFrame(
    {
        "promoter": promoters,
        "accessibility": active + rng.normal(size=400),
        "length": rng.normal(size=400),
    }
)
print(table.head(3))

# %%
# Words of three to six letters are four kernels on the column of sequences; each number has a Gaussian. Both kinds of
# evidence are expected to count, so weights are shared (``norm=2``). ``spectrum`` needs no
# alignment.
words = kw.spectrum([3, 4, 5, 6], alphabet="dna").on("promoter")
numbers = kw.per_feature(kw.gaussian(1.0, relative=True), columns=["accessibility", "length"])
clf = MKLClassifier(words + numbers, norm=2, C=10.0).fit(table, active)
print(clf.certificate_)

WeightsDisplay.from_estimator(clf)
plt.show()

# %%
# Held-out accuracy, by five folds: sequences alone, numbers alone, and both.
both = MKLClassifier(words + numbers, norm=2, C=10.0)
scores = {
    "words and numbers": cross_val_score(both, table, active),
    "words alone": cross_val_score(MKLClassifier(words, norm=2, C=10.0), table, active),
    "numbers alone (SVC)": cross_val_score(
        make_pipeline(StandardScaler(), SVC()), table[["accessibility", "length"]], active
    ),
}
fig, ax = plt.subplots(figsize=(7, 2.4), constrained_layout=True)
names, means = list(scores), [score.mean() for score in scores.values()]
errors = [score.std(ddof=1) / np.sqrt(score.size) for score in scores.values()]
ax.barh(names, means, xerr=errors, color=["C0", "C0", "0.6"])
for place, mean in enumerate(means):
    ax.text(0.505, place, f"{mean:.2f}", va="center", color="white")
ax.set_xlim(0.5, 1.0)
ax.set_xlabel("accuracy, mean of five folds and its standard error")
ax.invert_yaxis()
plt.show()

# %%
# Sequences that are aligned, whose letters have a meaning by their place, want ``kw.weighted_degree`` instead;
# alignment scores (``kw.alignment``) are no kernels, and go to :class:`kernelweave.SimilarityClassifier`.

# sphinx_gallery_thumbnail_number = 2
