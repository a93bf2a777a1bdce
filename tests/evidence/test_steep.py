"""Weights so large that rounding decides: mixtures are still inverted, and what is no kernel is still refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.evidence import Design, Points

X, CLASSES = load_iris(return_X_y=True)
RAW = X[:, :3]


def polynomials() -> np.ndarray:
    return np.array([(RAW @ RAW.T + 1.0) ** degree for degree in (1, 2, 3)])


def log_det(design: Design, weights: np.ndarray) -> float:
    return float(Points(design, weights[None], np.array([1])).log_det[0])


@pytest.mark.parametrize("factor", [1e2, 1e5, 1e7, 1e9, 1e11])
def test_determinants_of_steep_mixtures_are_those_of_their_eigenvalues(factor: float) -> None:
    design = Design.of(polynomials())
    weights = factor * np.array([0.1, 1.0, 0.5])
    values = np.linalg.eigvalsh(np.tensordot(weights, design.kernels, axes=1))
    # eigenvalues are known up to the rounding of the largest, of which a logarithm sees the share in 1 + value
    unknown = 1e-14 * values[-1] * len(values)
    expected = np.sum(np.log1p(np.maximum(values, 0.0)))
    assert log_det(design, weights) == pytest.approx(expected, rel=1e-6, abs=len(values) * np.log1p(unknown))


@pytest.mark.parametrize("where", ["memory", "device"])
@pytest.mark.parametrize("factor", [10.0, 1e5, 1e12])
def test_an_indefinite_matrix_is_refused_at_any_weight(factor: float, where: str) -> None:
    values, vectors = np.linalg.eigh(polynomials()[2])
    values[20] = -1e-2 * values[-1]
    design = Design.of(((vectors * values) @ vectors.T)[None])
    if where == "device":
        pytest.importorskip("torch")
        design = design.on("cpu")
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        log_det(design, np.array([factor]))


def test_a_device_inverts_steep_mixtures_too() -> None:
    pytest.importorskip("torch")
    design = Design.of(polynomials())
    weights = np.array([[1.0, 1.0, 1.0], [1e7, 0.0, 1e6]])
    here, there = (Points(one, weights, np.array([1, 1])) for one in (design, design.on("cpu")))
    np.testing.assert_allclose(there.log_det, here.log_det, rtol=1e-6)


def test_raw_columns_and_polynomials_are_fitted() -> None:
    # narrow Gaussians interpolate the classes: the noise goes to nothing and the weights beyond all bounds
    model = MKLRegressorCV(kw.preset("stpmkl"), criterion="reml").fit(X, CLASSES)
    assert np.all(np.isfinite(model.weights_))
    assert model.score(X, CLASSES) > 0.9


def test_leave_one_out_of_raw_columns_is_fitted() -> None:
    _, kept = np.unique(RAW, axis=0, return_index=True)
    model = MKLRegressorCV(kw.per_feature(kw.polynomial((1, 2, 3))), criterion="loo").fit(
        RAW[kept], X[kept, 3]
    )
    assert np.all(np.isfinite(model.weights_))
    assert model.score(RAW[kept], X[kept, 3]) > 0.9
