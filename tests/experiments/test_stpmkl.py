"""The StPMKL study: its splits, its rows, and the reports made of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from kernelweave import kernels as kw
from kernelweave.experiments.stpmkl import convergence, crowd, data, equivalence, stopping
from kernelweave.experiments.stpmkl import report as reports
from kernelweave.experiments.stpmkl import study as stpmkl
from kernelweave.experiments.stpmkl.methods import METHODS, run_noisy_method

from . import parts

NAMES = list(METHODS)


@pytest.fixture
def toy(monkeypatch):
    """Stands in for a UCI set: two features that matter, one that is constant."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(120, 2)), np.ones(120)])
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    monkeypatch.setattr(data, "load_uci", lambda name, return_X_y: (X, y))
    monkeypatch.setattr(data, "study_kernels", lambda: kw.gaussian([0.25, 0.5, 1.0]))


def test_splits_are_scaled_by_the_training_part_and_flips_are_nested(toy):
    none, some, more = (data.flipped_split("toy", q, 3) for q in (0.0, 0.2, 0.4))
    assert none.X.min() == 0.0
    assert none.X.max() == 1.0
    assert none.X.shape == (96, 3)
    assert not none.flipped.any()
    assert np.all(more.flipped[some.flipped])  # a larger q flips the same labels, and others
    np.testing.assert_array_equal(some.y != none.y, some.flipped)
    np.testing.assert_array_equal(some.y_test, none.y_test)  # test labels are clean
    assert some.realised == pytest.approx(0.2, abs=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_runs_and_learns(toy, name):
    split = data.flipped_split("toy", 0.1, 0)
    row = run_noisy_method(name, kw.gaussian([0.25, 0.5, 1.0]), split, 0)
    assert row["method"] == name
    assert row["accuracy"] > 0.75
    assert row["C"] > 0


def report_of(tmp_path, part):
    return parts.report_of(tmp_path, "stpmkl", part)


def accuracies(lead):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {
                "data": name, "q": q, "seed": seed, "method": method, "seconds": 1.0, "picked": "",
                "accuracy": 0.8 - 0.3 * q + 0.01 * rng.normal() + (lead if method == "auto" else 0.0),
            }
            for name in ("heart", "sonar") for q in stpmkl.NOISE for seed in range(4) for method in NAMES
        ]
    )  # fmt: skip


@pytest.mark.parametrize(("lead", "verdict"), [(0.06, "PASS"), (-0.05, "FAIL")])
def test_accuracy_report_judges_auto(tmp_path, lead, verdict):
    lines = reports.accuracy(accuracies(lead), report_of(tmp_path, "accuracy"))
    assert len(lines) == 5 + 3  # five noise rates against the baselines, three against l1-MKL
    assert all(line.startswith(verdict) for line in lines)
    table = pd.read_csv(tmp_path / "stpmkl_accuracy.csv")
    assert len(table) == 2 * 5 + 5
    assert (tmp_path / "stpmkl_accuracy.png").stat().st_size > 10_000
    assert "auto and StPMKL" in (tmp_path / "stpmkl_accuracy.md").read_text()


def test_rates_report(tmp_path):
    rows = pd.DataFrame(
        [
            {"data": name, "q": q, "seed": seed, "realised": q, "estimated": q + off, "low": q - 0.05, "high": q + 0.1, "found": 0.9}
            for name, off in (("breast", 0.01), ("ionosphere", 0.08), ("pima", 0.09)) for q in (0.0, 0.2) for seed in range(3)
        ]
    )  # fmt: skip
    lines = reports.rates(rows, report_of(tmp_path, "rates"))
    failed = [line for line in lines if line.startswith("FAIL")]
    assert len(failed) == 2  # ionosphere, both rates; for pima the estimate is a bound only
    assert all("ionosphere" in line for line in failed)


def test_a_rate_row_finds_the_flips(toy):
    (row,) = stpmkl.rate_work({"data": "toy", "q": 0.1, "seed": 0})
    assert row["low"] <= row["high"]
    assert 0.5 < row["found"] <= 1.0


def test_convergence_in_the_papers_units(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(convergence, "STEPS", 60)
    rows = []
    for method in convergence.VARIANTS:
        key = {"data": "toy", "method": method}
        rows += [{**key, **row} for row in convergence.work(key)]
    frame = pd.DataFrame(rows)
    last = frame.groupby("method")["gap"].last()
    assert last["the default solver"] < 1e-6
    assert last["AMP, adaptive"] < last["AMP, the paper's step"]
    convergence.report(frame, report_of(tmp_path, "convergence"))
    assert (tmp_path / "stpmkl_convergence.png").exists()


def test_the_equivalence_holds_and_the_control_does_not_always(toy, tmp_path, monkeypatch):
    rows = []
    for lam, share in ((0.02, 0.4), (0.005, 0.4)):
        key = {"data": "toy", "lam": lam, "share": share}
        rows += [{**key, **row} for row in equivalence.work(key)]
    frame = pd.DataFrame(rows)
    assert (frame["r"] < 1).all()
    assert (frame["agreement"] == 1.0).all()
    assert (frame["agreement_difference"] < 1e-3).all()
    assert (frame["control_difference"] > 1e-2).all()
    lines = equivalence.report(frame, report_of(tmp_path, "equivalence"))
    assert lines[0].startswith("PASS")


def test_early_stopping_ends_at_the_optimum(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(stopping, "study_kernels", lambda: kw.gaussian([0.25, 0.5, 1.0]))
    monkeypatch.setattr(stopping, "STEPS", (2, 400))
    monkeypatch.setattr(stopping, "RHO", 60.0)
    key = {"data": "toy", "q": 0.2, "lam": 0.01, "seed": 0}
    rows = pd.DataFrame([{**key, **row} for row in stopping.work(key)])
    assert rows["stopped"].tolist() == ["2", "400", "optimum"]
    assert rows["gap"].is_monotonic_decreasing
    # near the optimum the averaged blocks decide as the shared coefficients do
    assert rows["accuracy"].iloc[1] == pytest.approx(rows["accuracy"].iloc[2], abs=0.1)
    stopping.report(rows, report_of(tmp_path, "stopping"))
    assert "optimum" in (tmp_path / "stpmkl_stopping.md").read_text()


def test_crowd_methods_and_their_table(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    votes = [
        {"task": i, "worker": w, "label": y[i] if rng.random() < 0.7 else "abc"[rng.integers(3)]}
        for i in range(60) for w in range(3)
    ]  # fmt: skip
    made = Bunch(
        data=X[:60], target=y[:60], annotations=pd.DataFrame(votes), test_data=X[60:], test_target=y[60:]
    )
    monkeypatch.setattr(crowd, "load_crowd", lambda name: made)
    names = [name for name in crowd.CROWD_METHODS if "Dawid" not in name]
    rows = pd.DataFrame([{"method": name, **crowd.run_crowd_method(name)} for name in names])
    assert (rows["accuracy"] > 0.6).all()
    rows = pd.concat(
        [
            rows,
            pd.DataFrame(
                [{"method": "auto, Dawid-Skene", "accuracy": np.nan, "seconds": 0.0, "picked": "no"}]
            ),
        ]
    )
    lines = reports.crowd(rows, report_of(tmp_path, "crowd"))
    assert len(lines) == 2
    assert "not run" in (tmp_path / "stpmkl_crowd.md").read_text()
