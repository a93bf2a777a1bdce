"""AnnData and MuData in and out: as stand-ins that offer the same, and as the packages themselves where they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLSurvival, Views, omics, survival
from kernelweave import kernels as kw
from kernelweave.estimators.fitted import function_of
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.inspection import group_table

GENES = [f"G{j}" for j in range(20)]
SETS = {f"S{k}": GENES[4 * k : 4 * k + 4] for k in range(5)}


class Matrix:
    """What is used of AnnData."""

    def __init__(self, X, obs, var):
        self.X, self.obs, self.var = X, obs, var
        self.layers, self.uns, self.obsm = {}, {}, {}

    obs_names = property(lambda self: self.obs.index)
    var_names = property(lambda self: self.var.index)

    def __getitem__(self, key):
        rows, columns = key
        made = Matrix(self.X[rows][:, columns], self.obs.iloc[rows], self.var.iloc[columns])
        made.layers = {name: values[rows][:, columns] for name, values in self.layers.items()}
        return made


class Modalities:
    """What is used of MuData."""

    def __init__(self, mod):
        self.mod = mod
        names = list(dict.fromkeys(name for one in mod.values() for name in one.obs_names))
        self.obs, self.uns, self.obsm = pd.DataFrame(index=names), {}, {}
        self.X = self.layers = None
        self.var_names = pd.Index([name for one in mod.values() for name in one.var_names])

    obs_names = property(lambda self: self.obs.index)


@pytest.fixture(params=["stand-in", "anndata"])
def make(request):
    if request.param == "stand-in":
        return Matrix
    anndata = pytest.importorskip("anndata", reason="the extra omics is not installed")
    return lambda X, obs, var: anndata.AnnData(X, obs=obs, var=var)


@pytest.fixture(params=["stand-in", "mudata"])
def make_several(request):
    if request.param == "stand-in":
        return Matrix, Modalities
    anndata = pytest.importorskip("anndata", reason="the extra omics is not installed")
    mudata = pytest.importorskip("mudata", reason="the extra omics is not installed")
    return (lambda X, obs, var: anndata.AnnData(X, obs=obs, var=var)), mudata.MuData


def cells(make, n=80, sparse=True, seed=0):
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 2, size=n)
    counts = rng.poisson(0.7, size=(n, 20)) + np.where(np.arange(20) < 4, 2 * state[:, None], 0)
    X = np.log1p(counts)
    obs = pd.DataFrame(
        {"state": pd.Categorical(np.where(state, "sick", "well"))}, [f"c{i}" for i in range(n)]
    )
    return make(sp.csr_matrix(X) if sparse else X, obs, pd.DataFrame(index=GENES))


def fitted(data, y="state", **params):
    return MKLClassifier(kw.from_groups(SETS, kw.linear()), loss="logistic", C=0.1, **params).fit(data, y)


@pytest.mark.parametrize("sparse", [True, False])
def test_same_as_a_table(make, sparse):
    data = cells(make, sparse=sparse)
    model = fitted(data)
    dense = data.X.toarray() if sparse else data.X
    frame = pd.DataFrame(dense, columns=GENES)
    plain = fitted(frame, data.obs["state"].to_numpy())
    assert model.classes_.tolist() == ["sick", "well"]
    assert list(model.feature_names_in_) == GENES
    np.testing.assert_allclose(model.decision_function(data), plain.decision_function(frame), atol=1e-8)
    assert model.score(data, "state") == plain.score(frame, data.obs["state"].to_numpy())
    (term, *_) = function_of(model).each()
    assert sp.issparse(term.kernels.samples) == sparse


def test_genes_in_another_order(make):
    data = cells(make)
    model = fitted(data)
    shuffled = data[np.arange(80), np.random.default_rng(1).permutation(20)]
    np.testing.assert_allclose(model.decision_function(shuffled), model.decision_function(data))
    with pytest.raises(ValueError, match="'G19', which the model was fitted on"):
        model.predict(data[np.arange(80), np.arange(19)])


def test_targets_are_found_by_the_names_of_cells(make):
    data = cells(make)
    order = np.random.default_rng(2).permutation(80)[:60]
    model = fitted(data, data.obs["state"].iloc[order])
    again = fitted(data[np.sort(order), np.arange(20)])
    np.testing.assert_allclose(model.decision_function(data), again.decision_function(data), atol=1e-3)


def test_layers(make):
    data = cells(make)
    data.layers["half"] = data.X * 0.5
    view = omics.cells(data, layer="half")
    assert view.names == ("half",)
    assert sp.issparse(view["half"])
    model = fitted(view, data.obs["state"])
    assert model.score(view[[0, 1, 2]], data.obs["state"].to_numpy()[:3]) >= 0.0
    with pytest.raises(ValueError, match="knows no view 'X'"):
        model.predict(data)
    with pytest.raises(ValueError, match=r"no layer 'hafl'\. Did you mean 'half'"):
        omics.cells(data, layer="hafl")
    with pytest.raises(ValueError, match="modalities are those of MuData"):
        omics.cells(data, modalities=["rna"])


def test_modalities_are_views(make_several):
    make, several = make_several
    rna = cells(make)
    protein = make(
        np.random.default_rng(3).normal(size=(80, 3)), pd.DataFrame(index=rna.obs_names), pd.DataFrame(index=list("pqr"))
    )  # fmt: skip
    data = several({"rna": rna, "protein": protein})
    data.obs["kind"] = rna.obs["state"].astype(str).to_numpy()
    bank = kw.from_groups(SETS, kw.linear()) + kw.linear().on("protein")
    model = MKLClassifier(bank, loss="logistic", C=0.1).fit(data, "kind")
    assert model.kernel_names_[-1] == "linear on protein"
    assert model.weights_[0] > 0.5
    omics.annotate(model, data)
    assert "kernelweave_predicted" in data.obs
    alone = omics.cells(data, modalities=["protein"])
    assert alone.names == ("protein",)
    with pytest.raises(ValueError, match=r"no modality 'protien'\. Did you mean 'protein'"):
        omics.cells(data, modalities=["protien"])
    fewer = several({"rna": rna[np.arange(70), np.arange(20)], "protein": protein})
    fewer.obs["kind"] = rna.obs["state"].astype(str).reindex(fewer.obs_names).to_numpy()
    with pytest.raises(ValueError, match="view 'rna' is missing for 10 of 80"):
        MKLClassifier(bank, loss="logistic").fit(fewer, "kind")


def test_results_go_back(make, tmp_path):
    data = cells(make)
    model = fitted(data)
    omics.annotate(model, data, key="mkl")
    np.testing.assert_allclose(data.obs["mkl_decision"], model.decision_function(data))
    assert (data.obs["mkl_predicted"] == model.predict(data)).all()
    assert data.obs["mkl_probability"].min() >= 0.5
    told = data.uns["mkl"]
    assert told["groups"]["group"].iloc[0] == "S0"
    assert told["certificate"]["relative_gap"] <= 1e-3
    groups = data.obsm["mkl_groups"]
    np.testing.assert_allclose(
        groups.to_numpy().sum(axis=1) + model.intercept_, model.decision_function(data), atol=1e-10
    )
    if hasattr(data, "write_h5ad"):
        data.write_h5ad(tmp_path / "cells.h5ad")


def test_table_of_groups_by_the_name_of_the_target(make):
    data = cells(make)
    table = group_table(fitted(data), data, "state", n_refits=2)
    assert table["group"][0] == "S0"
    assert table["selected"][0] == 1.0
    assert set(table["top_members"][0].split(", ")) == set(GENES[:4])


def test_several_classes_and_regression(make):
    data = cells(make)
    data.obs["age"] = np.asarray(data.X[:, [5]].todense()).ravel() + 1.0
    data.obs["kind"] = np.where(np.arange(80) % 3 == 0, "c", data.obs["state"].astype(str))
    model = fitted(data, "kind")
    omics.annotate(model, data)
    assert "kernelweave_decision" not in data.obs
    assert data.uns["kernelweave"]["groups"]["variance"].sum() == pytest.approx(1.0)
    ridge = MKLRegressor(kw.from_groups(SETS, kw.linear())).fit(data, "age")
    omics.annotate(ridge, data, key="age_fit")
    assert ridge.score(data, "age") > 0.5
    np.testing.assert_allclose(data.obs["age_fit_predicted"], ridge.predict(data))


def test_one_cell_classes_are_told(make):
    data = cells(make)
    labels = data.obs["state"].astype(str).to_numpy()
    labels[7] = "odd"
    data.obs["rare"] = labels
    with pytest.warns(KernelWeaveWarning, match="one cell only: 'odd'"):
        fitted(data, "rare")
    search = MKLClassifierCV(kw.from_groups(SETS, kw.linear()), loss="logistic", Cs=[0.1], cv=3)
    with (
        pytest.warns(KernelWeaveWarning, match="one cell only"),
        pytest.warns(UserWarning, match="least populated"),
        pytest.raises(ValueError, match="no training sample of class 'odd', which has 1"),
    ):
        search.fit(data, "rare")


def test_bad_input_is_refused(make):
    data = cells(make)
    with pytest.raises(ValueError, match=r"no column 'stat'\. Did you mean 'state'"):
        fitted(data, "stat")
    with pytest.raises(ValueError, match="names a column, but X is ndarray"):
        fitted(data.X.toarray(), "state")
    data.obs["state"] = data.obs["state"].astype(object)
    data.obs.loc["c3", "state"] = None
    with pytest.raises(ValueError, match="1 of 80 cells have no 'state': leave them out"):
        fitted(data)
    with pytest.raises(ValueError, match="AnnData or MuData is needed, got dict"):
        omics.cells({"X": data.X})
    twice = make(data.X, data.obs, pd.DataFrame(index=["G0", *GENES[:19]]))
    with pytest.raises(ValueError, match=r"two columns named 'G0': call \.var_names_make_unique"):
        fitted(twice, np.arange(80) % 2)


def test_raw_counts_are_told(make):
    data = cells(make)
    data.X = sp.csr_matrix(np.random.default_rng(4).poisson(80.0, size=(80, 20)).astype(float))
    with pytest.warns(KernelWeaveWarning, match="holds raw counts"):
        Views(data)


def test_times_to_an_event_are_read_from_obs(make):
    """Targets from the table of the samples, in another order; sets of genes; risks and curves of other samples."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, len(GENES)))
    dies, leaves = rng.exponential(np.exp(-X[:, :4].sum(axis=1))), rng.exponential(2.0, 90)
    obs = pd.DataFrame(
        {"event": dies <= leaves, "time": np.minimum(dies, leaves)}, index=[f"P{i}" for i in range(90)]
    )
    data = make(X, obs, pd.DataFrame(index=GENES))
    train, test = data[np.arange(60), :], data[np.arange(60, 90), :]
    model = MKLSurvival(kw.from_groups(SETS, kw.linear()), C=0.1)
    model.fit(train, train.obs[["event", "time"]].iloc[::-1])
    plain = MKLSurvival(kw.from_groups(SETS, kw.linear()), C=0.1)
    table = pd.DataFrame(X, columns=GENES)
    plain.fit(table[:60], survival(obs["time"][:60], obs["event"][:60]))
    np.testing.assert_allclose(model.predict(test), plain.predict(table[60:]), atol=1e-8)
    assert max(model.view_weights_, key=model.view_weights_.get) == "S0"
    assert model.score(test, test.obs[["event", "time"]]) > 0.7
    assert len(model.predict_survival_function(test)) == 30
