"""What is fitted and predicted does not depend on ``n_jobs``, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave._numerics import tiles
from kernelweave.banks import bound, power
from kernelweave.banks import build as stored


@pytest.fixture
def small_parts(monkeypatch):
    """As on large problems: everything is cut into several parts."""
    monkeypatch.setattr(power, "ROWS_TO_CUT", 20)
    monkeypatch.setattr(stored, "CACHED_ENTRIES", 2000)
    monkeypatch.setattr(stored, "MANY_BLOCKS", 2)
    monkeypatch.setattr(tiles, "TILE", 8)
    monkeypatch.setattr(bound, "BLOCK_ENTRIES", 500)
    monkeypatch.setattr(bound, "FEW_VALUES", 0)


@pytest.mark.parametrize("storage", ["auto", "lazy"])
def test_fits_and_predictions(small_parts, storage):
    X, y = make_classification(150, 6, n_informative=4, flip_y=0.2, random_state=0)
    bank = kw.per_feature(kw.gaussian([0.5, 1.0, 2.0])) + kw.polynomial([1, 2]) + kw.gaussian([1.0, 3.0])
    models = [MKLClassifier(bank, n_jobs=n, storage=storage, tol=1e-4).fit(X, y) for n in (None, 2, 5)]
    for model in models[1:]:
        for name in ("weights_", "dual_coef_", "intercept_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name), name)
        assert model.certificate_.primal == models[0].certificate_.primal
        assert model.n_passes_ == models[0].n_passes_
        np.testing.assert_array_equal(model.decision_function(X), models[0].decision_function(X))
