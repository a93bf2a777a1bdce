"""
Which gene sets tell two kinds of cells apart?
==============================================

Simulated counts of 1,000 cells, 50 overlapping gene sets, four of them at work: one kernel per set, a sparse mixture,
and how sure its choice is. The cells come as an AnnData object where that package is installed, and as a table where
it is not: every line after that is the same for both.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import GroupsDisplay
from kernelweave.inspection import group_table

# %%
# Every cell has a library size, every set a programme that shifts all of its genes together. In four sets the programme
# depends on the kind of cell.
rng = np.random.default_rng(0)
n_cells, n_genes = 1000, 1200
genes = [f"GENE{j}" for j in range(n_genes)]
sets = {
    f"PATHWAY_{j:02d}": rng.choice(genes, size=rng.integers(20, 40), replace=False).tolist()
    for j in range(50)
}
truth = ["PATHWAY_03", "PATHWAY_11", "PATHWAY_27", "PATHWAY_40"]
kind = rng.integers(0, 2, size=n_cells)
log_rate = pd.DataFrame(rng.normal(0.0, 0.3, size=(1, n_genes)).repeat(n_cells, axis=0), columns=genes)
for name, members in sets.items():
    programme = 0.25 * rng.normal(size=n_cells) + (0.3 * (2 * kind - 1) if name in truth else 0.0)
    log_rate[members] += programme[:, None]
depth = rng.lognormal(0.0, 0.3, size=(n_cells, 1))
counts = pd.DataFrame(rng.poisson(depth * np.exp(log_rate)), columns=genes)

# %%
# Counts per cell on a logarithmic scale: in an AnnData object, with the kinds of the cells in a column of ``obs``, or
# in a table. This looks at one cell at a time, so it may be done before cells are held out.
X = np.log1p(counts.div(counts.sum(axis=1), axis=0) * 1e3)
labels = np.where(kind, "stimulated", "resting")
X.index = [f"CELL{i}" for i in range(n_cells)]
if find_spec("anndata") is None:
    cells, target = X, labels
else:
    from anndata import AnnData

    cells, target = AnnData(X, obs=pd.DataFrame({"kind": labels}, index=X.index)), "kind"

# %%
# The genes of a set move together, which its leading principal components catch. Means are learnt by the model
# (``center=True``), from the cells of each refit: those of all cells would tell a refit about the cells of its test.
bank = kw.from_groups(sets, kw.principal(), min_size=5)
clf = MKLClassifier(bank, loss="logistic", C=0.1, center=True).fit(cells, target)
print(clf.solver_, clf.certificate_)

# %%
# The table of groups: how heavy a set is, in how many refits it was selected again, and whether held-out cells need it.
# With a larger C, l1 gives a little weight to many sets; p-values, adjusted for their number, say which to believe.
table = group_table(clf, cells, target, n_refits=5, n_permutations=999)
print(table.head(8)[["group", "weight", "variance", "selected", "p_holm", "size"]].round(2))
found = set(table["group"][table["p_holm"] <= 0.05])
print("found:", sorted(found & set(truth)), "beside:", sorted(found - set(truth)))

# %%
GroupsDisplay(table).plot(top=20)
plt.show()
