"""Models that version 0.2.0 saved load, and say what they said then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelweave import Views, inspection
from kernelweave.persistence import load

MODELS = Path(__file__).parent / "models_0_2_0"
VALUES = json.loads((MODELS / "values.json").read_text())
SAMPLES = {name: np.array(VALUES.pop(name)) for name in ("new", "matrices")}
SAMPLES |= {"precomputed": SAMPLES["matrices"], "similarity": SAMPLES["matrices"][1]}
SAMPLES["missing"] = Views({"a": SAMPLES["new"][:, :2], "b": SAMPLES["new"][:, 2:]})


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_model_of_0_2_0(name):
    model, samples = load(MODELS / f"{name}.skops"), SAMPLES.get(name, SAMPLES["new"])
    methods = ("decision_function", "predict", "transform")
    say = next(getattr(model, method) for method in methods if hasattr(model, method))
    np.testing.assert_allclose(say(samples), VALUES[name], rtol=1e-10, atol=1e-12)
    if name not in ("similarity", "features", "evidence", "search"):
        parts = inspection.contributions(model, samples)
        np.testing.assert_allclose(parts.decision, VALUES[name], rtol=1e-9, atol=1e-11)
    # parameters that came later are there, at their defaults
    assert type(model)(**model.get_params(deep=False)).get_params(deep=False).keys()


def test_a_baseline_of_0_2_0_is_the_same_baseline_when_it_is_fitted_again():
    model = load(MODELS / "mean.skops")
    X = np.random.default_rng(1).normal(size=(20, 3))
    model.fit(X, X[:, 0] > 0)
    np.testing.assert_allclose(model.weights_, np.full(4, 0.25))
