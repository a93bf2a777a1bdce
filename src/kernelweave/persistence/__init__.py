"""Saved models: no code in the file, none run when it is loaded.

A model file is a zip archive: arrays in NumPy's format, a description of the objects in JSON (both by ``skops``), and
``kernelweave.json``, which says what wrote it.  Loading builds objects of an exact list of types and nothing else.
Pickle works on every estimator as scikit-learn asks, but a pickle can run any code when it is loaded: do not load one
from somebody else, and share models with :func:`save` instead.

>>> import tempfile
>>> from pathlib import Path
>>> from sklearn.datasets import load_iris
>>> from kernelweave import MKLClassifier
>>> X, y = load_iris(return_X_y=True)
>>> path = Path(tempfile.mkdtemp()) / "iris.skops"
>>> save(MKLClassifier().fit(X, y), path)
>>> load(path).score(X, y) > 0.9
True
"""

from ._audit import cleared
from ._file import ModelFileError, about, load, loaded, save

__all__ = ["ModelFileError", "about", "cleared", "load", "loaded", "save"]
__dir__ = __all__.copy  # completion shows the public names alone
