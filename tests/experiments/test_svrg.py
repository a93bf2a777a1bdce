"""The SVRG study: its problems are what they are said to be, and its tables are computed from the rows alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kernelweave.experiments import load_study
from kernelweave.experiments.svrg import exponents, passes, robust, theorem
from kernelweave.experiments.svrg.data import NORMS, cosine_views, optimum, random_problem, view_problem
from kernelweave.experiments.svrg.rivals import lbfgs_values
from kernelweave.solvers import Stop, registry, solve

from .parts import report_of


def reported(tmp_path, part, rows):
    frame = pd.DataFrame(rows)
    lines = part.report(frame, report_of(tmp_path, "svrg", "x"))
    return lines, pd.read_csv(tmp_path / "svrg_x.csv"), (tmp_path / "svrg_x.md").read_text()


def test_the_views():
    features, starts, y = cosine_views(0, n=50, views=4)
    assert features.shape == (50, 80)
    np.testing.assert_array_equal(starts, [0, 20, 40, 60, 80])
    lengths = np.add.reduceat(features**2, starts[:-1], axis=1)
    np.testing.assert_allclose(lengths, 1.0)
    assert set(y) == {-1.0, 1.0}


def test_random_problems_take_every_norm_in_turn():
    about = [random_problem(number)[1] for number in range(5)]
    assert [a["p"] for a in about] == list(NORMS)
    problem, _ = random_problem(3)
    diagonals = problem.bank.diag().mean(axis=1)
    assert diagonals.max() / diagonals.min() > 10  # badly scaled


def test_optimum_against_another_solver():
    newton = solve(view_problem(0, 1.5, n=60, views=3), registry["newton"](), Stop(tol=1e-9))
    assert optimum(view_problem(0, 1.5, n=60, views=3)) == pytest.approx(newton.certificate.primal, rel=1e-8)
    values = lbfgs_values(view_problem(0, 1.5, n=60, views=3), 500)
    assert values[-1][2] == pytest.approx(newton.certificate.primal, rel=1e-8)
    assert [point[0] for point in values[:3]] == [1, 2, 3]
    assert np.all(np.diff([value for _, _, value in values]) <= 0)


def test_table_of_passes(tmp_path):
    rows = [
        {
            "p": p,
            "seed": seed,
            "method": method,
            "last": 1e-9,
            "to 0.01": 5.0,
            "to 0.0001": 9.0,
            "to 1e-08": last,
        }
        for seed, last in enumerate([40.0, 60.0, np.nan])
        for p in passes.PS
        for method in ("svrg", "lbfgs")
    ]
    lines, table, text = reported(tmp_path, passes, rows)
    assert [line[:4] for line in lines] == ["PASS", "PASS", "FAIL"]  # a median of 60 against 190, 62 and 44
    assert "60" in lines[2]
    assert set(table["reached (1e-08)"]) == {"2 of 3"}
    assert "FAIL  p = 2" in text


def test_divergence_is_counted(tmp_path):
    rows = [
        {"problem": k, "p": 2.0, "variant": variant, "status": status, "relative_gap": 1e-4, "passes": 10.0,
         "diverged": diverged}
        for k in range(2)
        for variant, status, diverged in (("corrected", "converged", False), ("paper", "stalled", True))
    ]  # fmt: skip
    lines, table, _ = reported(tmp_path, robust, rows)
    assert lines[0].startswith("PASS")
    assert dict(zip(table["variant"], table["diverged"], strict=True)) == {"corrected": 0, "paper": 2}
    rows[0]["diverged"] = True
    assert reported(tmp_path, robust, rows)[0][0].startswith("FAIL")


def test_one_badly_scaled_problem():
    ours, printed = robust.work({"problem": 2})
    assert (ours["variant"], printed["variant"]) == ("corrected", "paper")
    assert not ours["diverged"]
    assert ours["relative_gap"] <= 1e-3


def test_slopes_are_those_of_powers(tmp_path):
    rows = [
        {"method": "svrg", "n": n, "F": F, "seed": 0, "eps": eps, "passes": 3.0 * F**0.4 - 2 * np.log10(eps)}
        for n, F in [(n, 10) for n in exponents.NS] + [(500, F) for F in exponents.FS]
        for eps in (1e-1, 1e-2, 1e-4, 1e-6)
    ]
    _, table, _ = reported(tmp_path, exponents, rows)
    assert table["exponent of n"][0] == pytest.approx(1.0)  # passes do not depend on n
    assert table["passes a digit"][0] == pytest.approx(2.0)
    assert 0.1 < table["exponent of F"][0] < 0.4
    assert exponents.slope(np.array([1.0, 2.0, 4.0]), np.array([3.0, 12.0, 48.0])) == pytest.approx(2.0)
    assert np.isnan(exponents.slope(np.array([1.0, 2.0]), np.array([3.0, 12.0])))


def test_exact_epochs_miss_what_theorem_1_promises(tmp_path):
    rows = [{"p": p, "seed": 0, **row} for p in (1.1, 2.0) for row in theorem.work({"p": p, "seed": 0})]
    lines, table, _ = reported(tmp_path, theorem, rows)
    assert lines[0].startswith("PASS")
    verdict = {(row["p"], row["eps"]): row["Theorem 1"] for _, row in table.iterrows()}
    assert verdict[1.1, 1e-8] == "fails"
    assert verdict[2.0, 1e-8] == "holds"


def test_the_study_is_listed():
    study = load_study("svrg")
    assert [part.name for part in study.parts] == ["passes", "robust", "exponents", "q", "theorem1"]
    assert len(list(study.parts[1].keys(20))) == 100
    assert not exponents.missing()
