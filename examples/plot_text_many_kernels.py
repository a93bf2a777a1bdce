"""
Text with 6,000 kernels
=======================

One kernel per word: the fit picks the words that tell two kinds of text apart. The texts are docstrings of NumPy and of
SciPy, so nothing has to be downloaded; the task is to say which package a docstring is from.
"""

import importlib
import inspect
import pkgutil
import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import WeightsDisplay


# %%
# Docstrings of public functions and classes; the names of the packages are taken out.
def docstrings(package, prefix):
    found = {}
    names = [package.__name__] + [
        m.name for m in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]
    for name in sorted(names):
        if any(
            part.startswith("_") or part in ("tests", "conftest", "testing", "f2py")
            for part in name.split(".")
        ):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for what in vars(module).values():
            owner = getattr(what, "__module__", None) or ""
            text = inspect.getdoc(what) if callable(what) and str(owner).startswith(prefix) else None
            if text and len(text) > 300:
                found[text] = None
    return [text.lower().replace("numpy", "").replace("scipy", "") for text in found]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    texts = [docstrings(np, "numpy"), docstrings(scipy, "scipy")]
texts = [group[:600] for group in texts]
y = np.repeat(["NumPy", "SciPy"], [len(group) for group in texts])
vectoriser = TfidfVectorizer(max_features=6000, token_pattern=r"[a-z]{2,}", sublinear_tf=True)
X = vectoriser.fit_transform(texts[0] + texts[1])
print(f"{X.shape[0]} texts, {X.shape[1]} words")

# %%
# Every word is a linear kernel of rank one on a sparse matrix: the whole bank is the matrix itself. For so many thin
# kernels ``solver="auto"`` takes first-order steps, which leave a little weight everywhere; ``newton`` has exact zeros.
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
bank = kw.per_feature(kw.linear())
clf = MKLClassifier(bank, C=100.0, normalize=None, solver="newton", tol=1e-2).fit(X_train, y_train)
print(f"accuracy {clf.score(X_test, y_test):.3f}, {np.count_nonzero(clf.weights_)} words used")
print(clf.certificate_)

# %%
# The words.
words = vectoriser.get_feature_names_out()
WeightsDisplay(clf.weights_, words).plot(top=20)
plt.show()
