"""The SMKL study: its data, its rows, and the reports made of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kernelweave import kernels as kw
from kernelweave.experiments import load_study
from kernelweave.experiments.smkl import convergence, data
from kernelweave.experiments.smkl import report as reports
from kernelweave.experiments.smkl import study as smkl
from kernelweave.experiments.smkl.paper import TABLE2, TABLE3
from kernelweave.norms import Fixed

from .parts import report_of


def test_toy_is_standardised_by_its_training_part_and_the_irrelevant_come_last():
    whole, relevant = data.toy_split(6, 3), data.toy_split(0, 3)
    assert whole.X.shape == (50, 40)
    assert whole.X_test.shape == (450, 40)
    assert relevant.X.shape == (50, 34)
    np.testing.assert_allclose(whole.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(whole.X.std(axis=0), 1, atol=1e-12)
    np.testing.assert_array_equal(whole.X[:, :34], relevant.X)  # the same draw, features taken away
    np.testing.assert_array_equal(whole.y, relevant.y)
    assert abs(whole.X_test.mean()) > 1e-6  # not by its own mean


def blobs(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    X = rng.normal(size=(n, 3)) + 2.0 * y[:, None] * np.array([1.0, 0.0, 0.0])
    test = rng.normal(size=(n, 3)) + 2.0 * y[:, None] * np.array([1.0, 0.0, 0.0])
    return replace(data.toy_split(0, 0), X=X, y=y, X_test=test, y_test=y)


@pytest.mark.parametrize("method", smkl.METHODS, ids=lambda method: method.name)
def test_a_row_holds_what_the_tables_need(method):
    row = smkl.run_method(
        method, kw.per_feature(kw.gaussian([0.5, 1.0, 2.0])), blobs(), tol=1e-2, max_iter=500
    )
    assert row["method"] == method.name
    assert 0.7 < row["accuracy"] <= 1.0
    assert row["C"] > 0
    assert row["relative_gap"] <= 1e-2
    assert row["passes"] > 0
    assert 1 <= row["kernels"] <= 9
    assert 1 - 1e-9 <= row["effective_kernels"] <= 9 + 1e-9


def test_a_single_value_is_not_tuned():
    fixed = replace(smkl.L1, name="fixed", Cs=(3.0,))
    row = smkl.run_method(fixed, kw.linear() + kw.gaussian(1.0), blobs(), tol=1e-3, max_iter=None)
    assert row["C"] == 3.0


@pytest.mark.parametrize("m", [1, 3])
def test_effective_kernels_of_equal_weights(m):
    """The exponential of the entropy: as many as have a weight, the same for each."""
    for norm, kernels in (("uniform", m), (Fixed(np.append(np.full(m, 0.3), np.zeros(4))), m + 4)):
        equal = replace(smkl.L1, norms=(norm,), Cs=(1.0,))
        row = smkl.run_method(
            equal, kw.gaussian(np.arange(1.0, kernels + 1)), blobs(), tol=1e-2, max_iter=500
        )
        assert row["effective_kernels"] == pytest.approx(m)
        assert row["kernels"] == m


def test_tuning_never_sees_the_test_part():
    split = blobs()
    shuffled = replace(split, y_test=split.y_test[::-1].copy())
    method = smkl.L1
    kernels = kw.per_feature(kw.gaussian([0.5, 2.0]))
    one = smkl.run_method(method, kernels, split, tol=1e-2, max_iter=500)
    other = smkl.run_method(method, kernels, shuffled, tol=1e-2, max_iter=500)
    assert one["C"] == other["C"]
    assert one["passes"] == other["passes"]
    assert one["accuracy"] == pytest.approx(1 - other["accuracy"])


def made_up(paper, seeds=4):
    """Rows as a run would leave them: SMKL at the paper's mean on every set, the others below."""
    rng = np.random.default_rng(0)
    rows = []
    for name, known in paper.items():
        for seed in range(seeds):
            for place, method in enumerate(smkl.METHODS):
                accuracy = known["SMKL"][0] / 100 - 0.02 * abs(place - 2) + 0.001 * rng.normal()
                rows.append(
                    {
                        "data": name, "seed": seed, "method": method.name, "accuracy": accuracy, "kernels": 20 + seed,
                        "effective_kernels": 9.0, "fit_seconds": 0.1, "tuning_seconds": 1.0, "passes": 5.0,
                        "relative_gap": 1e-3, "iterations": 3,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("paper", "report"),
    [(TABLE2, smkl.report_table2), (TABLE3, smkl.report_table3)],
    ids=["table2", "table3"],
)
def test_tables_put_the_papers_numbers_beside_ours(paper, report, tmp_path):
    lines = report(made_up(paper), report_of(tmp_path, "smkl", "table"))
    table = pd.read_csv(tmp_path / "smkl_table.csv")
    assert table["data"].tolist() == list(paper)
    first = table.iloc[0]
    known = next(iter(paper.values()))["SMKL"]
    assert first["paper: SMKL"] == f"{known[0]:.1f} ± {known[1]:.1f}"
    assert float(first["SMKL"].split()[0]) == pytest.approx(known[0], abs=0.2)
    sign, plain, _, corrected = first["p, SMKL and L1-MKL"].split()
    assert sign == ">"
    assert float(plain) < 0.001 < float(corrected)
    assert {"smkl_table.md", "smkl_table.png", "smkl_table_cost.csv"} <= {p.name for p in tmp_path.iterdir()}
    assert all(line.startswith("PASS") for line in lines)
    assert bool(lines) == (paper is TABLE2)
    assert "L1 < L2 < SMKL, holds on " + ", ".join(paper) in (tmp_path / "smkl_table.md").read_text()


def test_cells_are_means_and_deviations_of_the_runs(tmp_path):
    rows = made_up(TABLE2)
    smkl.report_table2(rows, report_of(tmp_path, "smkl", "table"))
    table = pd.read_csv(tmp_path / "smkl_table.csv").set_index("data")
    for (name, method), found in rows.groupby(["data", "method"])["accuracy"]:
        assert table.loc[name, method] == f"{100 * found.mean():.1f} ± {100 * found.std(ddof=1):.1f}"
    smkl.report_table2(rows[rows["seed"] == 0], report_of(tmp_path, "smkl", "single"))
    single = pd.read_csv(tmp_path / "smkl_single.csv").set_index("data")
    first = rows.iloc[0]
    assert float(single.loc[first["data"], first["method"]]) == pytest.approx(
        100 * first["accuracy"], abs=0.05
    )


def test_runs_that_lack_a_method_are_not_compared(tmp_path):
    whole = made_up(TABLE2)
    some = whole[(whole["seed"] > 0) | (whole["method"] != "L1-MKL")]
    tests = []
    for number, rows in enumerate((some, whole[whole["seed"] > 0], whole)):
        smkl.report_table2(rows, report_of(tmp_path, "smkl", f"table{number}"))
        table = pd.read_csv(tmp_path / f"smkl_table{number}.csv")
        tests.append(table["p, SMKL and L1-MKL"].tolist())
    assert tests[0] == tests[1] != tests[2]


def test_a_column_far_from_the_papers_is_said_to_be(tmp_path):
    rows = made_up(TABLE2)
    rows.loc[rows["data"] == "pima", "accuracy"] -= 0.1
    lines = smkl.report_table2(rows, report_of(tmp_path, "smkl", "table2"))
    assert [line for line in lines if line.startswith("FAIL")] == [line for line in lines if "pima" in line]


def test_ablations_are_named_and_the_paper_stands_below(tmp_path):
    rows = made_up(TABLE2)
    rows = rows[rows["method"].isin(["SMKL", "L1-MKL"])]
    reports.ablation_table(rows, report_of(tmp_path, "smkl", "ablation"))
    changed = pd.read_csv(tmp_path / "smkl_ablation.csv")["changed"].tolist()
    assert changed == ["L1-MKL", "nothing", "the paper"]


def test_toy_from_the_work_to_the_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(smkl, "TOY", (smkl.MEAN, smkl.RIDGE))
    monkeypatch.setattr(
        smkl, "TOY_SOLVERS", (replace(smkl.L1, name="L1-MKL by newton", solver="newton", Cs=(1.0,)),)
    )
    rows = []
    for irrelevant in (6, 0):
        for seed in range(2):
            key = {"irrelevant": irrelevant, "seed": seed}
            rows += [{**key, **row} for row in smkl.work_toy(key)]
    assert len(rows) == 2 * 2 + 2 * 3  # solvers are compared where nothing is irrelevant
    reports.toy_figure(pd.DataFrame(rows), report_of(tmp_path, "smkl", "toy"))
    assert pd.read_csv(tmp_path / "smkl_toy.csv")["features"].tolist() == [40, 34]
    assert "L1-MKL by newton" in (tmp_path / "smkl_toy_cost.md").read_text()
    assert (tmp_path / "smkl_toy.png").stat().st_size > 10_000


def test_convergence_report_checks_the_bounds(tmp_path):
    adaptive = [
        {"what": "adaptive", "C": 1.0, "seed": seed, "gap": gap, "passes": passes + seed, "reached": True}
        for gap, passes in ((1e-2, 300.0), (1e-3, 1700.0))
        for seed in range(3)
    ]
    paper = [
        {
            "what": "paper", "C": 1.0, "seed": 0, "variant": variant, "step": step, "excess": 1.0 / (step + 1),
            "l1_excess": 1.0, "lam": 0.1, "smoothing_error": 0.1, "smoothing_bound": 0.3,
            "theorem4": 2.0 / (step + 1), "corollary5": 2.3,
        }
        for variant in ("paper", "adaptive") for step in range(5)
    ]  # fmt: skip
    lines = convergence.report(pd.DataFrame(adaptive + paper), report_of(tmp_path, "smkl", "convergence"))
    assert [line[:4] for line in lines] == ["PASS", "FAIL", "PASS", "PASS", "PASS", "PASS"]


def test_sets_that_are_not_at_hand_are_named(monkeypatch):
    def refuse(name, **options):
        raise FileNotFoundError(f"data set {name!r} is not at hand.")

    monkeypatch.setattr(smkl, "load_text", refuse)
    part = {part.name: part for part in load_study("smkl").parts}["table3"]
    assert part.keys(2) == []
    assert part.missing() == [f"data set 'text{k}' is not at hand" for k in range(1, 6)]
