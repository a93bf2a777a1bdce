"""
Responses of cells to drugs, and what is new
============================================

Every sample is a pair: a drug and a cell line. Several tables describe each side; which of them matter together is
learnt, and what may be expected depends on what is new: the pair, the drug, the cell line, or both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from kernelweave import MKLRegressorCV, PairKFold, Pairs
from kernelweave import kernels as kw
from kernelweave.inspection import pair_table
from kernelweave.report.pairs import ObjectMeans

# %%
# Fifty drugs with a structure, targets and a table of noise; forty cell lines with expression, mutations and noise. The
# response is what targets and expression say together, and some drugs act on everything. Fewer than half of the
# pairs were measured, popular drugs more often.
rng = np.random.default_rng(0)
names = ({"structure": 8, "targets": 6, "batch": 8}, {"expression": 10, "mutations": 6, "plate": 8})
drugs, cells = (
    {name: rng.normal(size=(count, width)) for name, width in tables.items()}
    for count, tables in zip((50, 40), names, strict=True)
)
hits = (
    np.tanh(drugs["targets"] @ rng.normal(size=(6, 3)))
    @ np.tanh(cells["expression"] @ rng.normal(size=(10, 3))).T
)
response = hits + drugs["structure"][:, :1] + 0.5 * rng.normal(size=hits.shape)
popular = rng.uniform(0.2, 0.7, size=(50, 1))
response[rng.random(response.shape) > popular] = np.nan
X = Pairs.from_grid(drugs, cells, response)
y = X.labels
print(X)

# %%
# Kernels on each table, all products of a left and a right one, and effects of single objects. C and the norm are
# chosen as the model will be used: for drugs that nobody has measured.
left, right = (
    kw.per_view({name: name for name in tables}, kw.linear(), kw.gaussian(1.0, relative=True))
    for tables in names
)
bank = kw.pairs(left=left, right=right)
Cs = [0.03, 0.3, 3.0, 30.0]
model = MKLRegressorCV(bank, Cs=Cs, cv=PairKFold(4, setting="left")).fit(X, y)
print(model.certificate_)

# %%
# Rows say which descriptions of a drug matter, columns which of a cell line. "constant" is what a drug does to all
# cells; nothing of "identity" is of use for a new one.
shares = pair_table(model, margins=True)
print(shares["all"].round(2).to_string())
print(shares.loc["all"].round(2).to_string())

# %%
# What is new decides how good the predictions are. Each setting has its own folds, and C is chosen inside them, on
# folds of the same setting. Beside the model are the means of the objects, as far as they are known.
settings = {"pairs": "new pair", "left": "new drug", "right": "new cell line", "both": "both new"}
scores = {}
for setting, called in settings.items():
    folds = PairKFold(4, setting=setting)
    inside = MKLRegressorCV(bank, Cs=Cs, norm="l1", cv=PairKFold(3, setting=setting))
    scores[called] = [cross_val_score(one, X, y, cv=folds).mean() for one in (inside, ObjectMeans())]
    print(f"{called:<14} R2 {scores[called][0]:.2f}, means of the objects {scores[called][1]:.2f}")

# %%
# What was measured, what the model says of all pairs, and what may be expected.
every = Pairs.from_grid(drugs, cells, np.zeros(response.shape))
predicted = every.to_grid(model.predict(every))
rows, columns = np.argsort(np.nanmean(response, axis=1)), np.argsort(np.nanmean(response, axis=0))
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", width_ratios=[1, 1, 0.9])
ends = np.nanpercentile(response, [2, 98])
for ax, grid, title in zip(axes, (response, predicted), ("measured", "predicted"), strict=False):
    image = ax.imshow(
        grid[np.ix_(rows, columns)], aspect="auto", vmin=ends[0], vmax=ends[1], interpolation="nearest"
    )
    ax.set(title=title, xlabel="cell lines", ylabel="drugs", xticks=[], yticks=[])
figure.colorbar(image, ax=axes[:2], label="response", fraction=0.04)
places = np.arange(len(scores))
for shift, what in enumerate(("this model", "means of the objects")):
    axes[2].barh(places + 0.38 * shift, [both[shift] for both in scores.values()], height=0.36, label=what)
axes[2].set_yticks(places + 0.19, list(scores))
axes[2].invert_yaxis()
axes[2].set(xlabel="R2 on held-out pairs", title="what may be expected")
axes[2].legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=2)
plt.show()
