"""Kernels on groups from elsewhere: what is found, what is left out, what is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import GroupsDisplay
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.inspection import group_table

GENES = [f"G{j}" for j in range(12)]
SETS = "GROWTH\thttp://x\tG0\tG1\tG2\n\nREPAIR\tna\tG2\tG3\tG3\tNOWHERE\n\t\nRARE\tna\tELSEWHERE\tG11\n"


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 12)), columns=GENES)
    return X, np.where(X["G0"] + X["G1"] + 0.3 * rng.normal(size=n) > 0, "sick", "well")


def written(tmp_path, text=SETS, name="sets.gmt"):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["sets.gmt", "sets.gmt.gz"])
def test_gene_sets_become_kernels_and_losses_are_counted(tmp_path, name):
    spec = kw.from_gmt(
        written(tmp_path, SETS.replace("\t\n", "\n"), name), kw.linear(), min_size=2, residual=True
    )
    X, y = table()
    found = spec.coverage(X)
    assert found.positions == {"GROWTH": (0, 1, 2), "REPAIR": (2, 3)}
    assert found.missing == {"REPAIR": ("NOWHERE",), "RARE": ("ELSEWHERE",)}
    assert found.small == {"RARE": 1}
    assert found.residual == tuple(range(4, 12))
    with pytest.warns(
        KernelWeaveWarning, match=r"2 names in 2 groups are no column.*1 groups have too few.*'RARE'"
    ):
        model = MKLClassifier(spec, loss="logistic").fit(X, y)
    assert model.kernel_names_.tolist() == ["linear on GROWTH", "linear on REPAIR", "linear on in no group"]
    assert model.weights_[0] > 0.8


def test_a_line_without_genes_is_refused_with_its_number(tmp_path):
    with pytest.raises(ValueError, match=r"sets\.gmt, line 4: a gene set is a name, a description and genes"):
        kw.from_gmt(written(tmp_path, SETS.replace("\t\n", "EMPTY\tna\n")), kw.linear())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A\tna\tG0\nB\tna\tG1\nA\tna\tG2\n", r"sets of the same name: 'A'"),
        ("\n\n  \n", r"no gene set: every line is empty"),
        ("\xff\xfe\tna\tG0\n".encode("latin-1"), r"no text in UTF-8"),
    ],
)
def test_files_that_are_no_gene_sets(tmp_path, text, said):
    path = tmp_path / "sets.gmt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=said):
        kw.from_gmt(path, kw.linear())


def test_no_gene_in_the_table():
    spec = kw.from_groups({"A": ["ENSG1", "ENSG2"]}, kw.linear())
    X, y = table()
    with pytest.raises(
        ValueError, match=r"none of the 1 groups has 1 columns.*'ENSG1', the table has 'G0'.*identifiers"
    ):
        MKLClassifier(spec).fit(X, y)


def test_missing_columns_as_an_error():
    spec = kw.from_groups({"A": ["G0", "X1"], "B": ["X1", "X2"]}, kw.linear(), missing_columns="error")
    with pytest.raises(
        ValueError, match=r"2 names in 2 groups.*group 'A' lacks 'X1'.*missing_columns='drop'"
    ):
        spec.expand(kw.Schema.of(table()[0]))


def test_tables_without_names_need_them_or_positions():
    X, y = table()
    by_name = kw.from_groups({"A": ["G0", "G1"], "B": ["G5"]}, kw.linear())
    with pytest.raises(
        ValueError, match=r"samples have no names: pass a data frame, or from_groups\(\.\.\., columns="
    ):
        MKLClassifier(by_name).fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match=r"columns has 2 names for a table of 12"):
        kw.from_groups({"A": ["a"]}, kw.linear(), columns=["a", "b"]).expand(kw.Schema(12))
    fits = [
        MKLClassifier(kw.from_groups(groups, kw.linear(), columns=names)).fit(samples, y)
        for groups, names, samples in (
            ({"A": ["G0", "G1"], "B": ["G5"]}, None, X),
            ({"A": ["G0", "G1"], "B": ["G5"]}, GENES, sp.csr_matrix(X.to_numpy())),
            ({"A": [0, 1], "B": 5}, None, X.to_numpy()),
        )
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.weights_, fits[0].weights_, atol=2e-3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"groups": {}}, "needs a mapping"),
        ({"groups": {"A": []}}, "group 'A': a group is a list"),
        ({"groups": {"A": [0.5]}}, "group 'A': a group is a list"),
        ({"families": ()}, "at least one family"),
        ({"missing_columns": "keep"}, "one of drop, error, got 'keep'"),
        ({"min_size": 0}, "min_size must be a whole number >= 1"),
    ],
)
def test_bad_groups_are_refused_when_they_are_made(change, said):
    given = {"groups": {"A": ["G0"]}, "families": (kw.linear(),)} | change
    with pytest.raises(ValueError, match=said):
        kw.from_groups(given.pop("groups"), *given.pop("families"), **given)


def test_groups_from_a_table_of_columns(tmp_path):
    spec = kw.from_groups(written(tmp_path, "column, group\nG0,a\nG1,a\n\nG1,b\n", "groups.csv"), kw.linear())
    assert spec.coverage(table()[0]).positions == {"a": (0, 1), "b": (1,)}
    for text, said in (
        ("gene,set\nG0,a\n", r"columns 'column' and 'group'; got gene, set"),
        ("column,group\nG0,\n", r"line 2: both a column and a group"),
        ("column,group\n", r"names no group"),
    ):
        with pytest.raises(ValueError, match=said):
            kw.from_groups(written(tmp_path, text, "groups.csv"), kw.linear())


# ---- the table of a fit --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, y = table(200)
    sets = {"growth": GENES[:3], "shared": ["G1", "G5", "G6"], "noise": GENES[7:]}
    model = MKLClassifier(
        kw.from_groups(sets, kw.linear(), kw.random_fourier(3.0, n_features=20)),
        loss="logistic", solver="block_descent",
    )  # fmt: skip
    return model.fit(X, y), X, y


def test_shares_of_the_variance_add_up_and_the_members_are_named(fitted):
    model, X, y = fitted
    found = group_table(model, X, y, n_refits=3, n_permutations=39, top=2).set_index("group")
    assert found.index[0] == "growth"
    assert found["weight"].sum() == pytest.approx(1.0)
    assert found["variance"].sum() == pytest.approx(1.0)
    assert found.loc["growth", "variance"] > 0.5
    assert found["size"].to_dict() == {"growth": 3, "shared": 3, "noise": 5}
    assert set(found.loc["growth", "top_members"].split(", ")) == {"G0", "G1"}
    assert found.loc["growth", "selected"] == 1.0
    assert found.loc["growth", "p_value"] == pytest.approx(1 / 40)
    with pytest.raises(ValueError, match="need y"):
        group_table(model, X, n_refits=2)
    with pytest.raises(ValueError, match="top must be a whole number"):
        group_table(model, X, top=-1)


def test_the_picture_shows_the_heaviest(fitted):
    model, X, _ = fitted
    display = GroupsDisplay.from_estimator(model, X, ax=Figure().subplots(), top=1)
    assert len(display.bars_) == 1
    assert display.labels(1) == ["growth (3)"]
    assert "of 3 groups" in display.ax_.get_title()
    with pytest.raises(ValueError, match="no column size, variance"):
        GroupsDisplay(pd.DataFrame({"group": [], "weight": []}))
