"""The study: its data, its rivals, its tables and its verdict; nothing that takes long."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.parts import report_of
from kernelweave.estimators import held_similarities
from kernelweave.experiments import load_study
from kernelweave.experiments.similarity import certificates, data, methods
from kernelweave.experiments.similarity import report as reports
from kernelweave.experiments.similarity.certificates import keys as all_runs
from kernelweave.experiments.similarity.paper import TABLE3, TABLE12

from .making import similarities


def split(n=40, seed=0):
    S, y = similarities(n=n, m=3, seed=seed)
    order = np.argsort(y, kind="stable")
    half = n // 4
    return data.SimilaritySplit(S, y, np.r_[order[:half], order[-half:]], order[half:-half])


def test_parts():
    study = load_study("similarity")
    assert [part.name for part in study.parts] == ["table1", "table3", "garbage", "certificates"]


def test_the_papers_numbers():
    assert TABLE12["heart"]["ESKL, l1"] == (78.8, 79.5)
    assert TABLE3["a.4.1"]["REKL, frobenius"] == (84.4, 86.5)
    assert set(TABLE3) == set(data.FAMILIES)
    known = set(methods.METHODS)
    assert all(set(line) <= known for table in (TABLE12, TABLE3) for line in table.values())


@pytest.mark.parametrize(
    "name", ["Denoise", "l1-MKL on denoised, smooth", "ridge, mean of denoised, smooth", "REKL, frobenius"]
)
def test_a_method_is_tuned_on_the_training_part(name, monkeypatch):
    monkeypatch.setattr(methods, "CS", (1.0, 10.0))
    monkeypatch.setattr(methods, "RHOS", (5.0,))
    row = methods.run_similarity_method(name, split(), 0)
    assert 0.4 <= row["accuracy"] <= 1.0
    assert 0.0 <= row["f_score"] <= 1.0
    assert (row["rho"] == 5.0) == name.startswith("REKL")
    assert row["relative_gap"] < 0.05


def test_denoised_mkl_is_mkl_on_denoised_blocks():
    from kernelweave import MKLClassifier
    from kernelweave.kernels import clip_spectrum

    one = split()
    model = methods.DenoisedMKL(held_similarities(one.stack), "uniform", 1.0, "classical")
    model.fit(one.train[:, None], one.y[one.train])
    kernels = [clip_spectrum(S[np.ix_(one.train, one.train)]) for S in one.stack]
    other = MKLClassifier("precomputed", norm="uniform", tol=1e-2).fit(kernels, one.y[one.train])
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)


def test_garbage_replaces_the_first_similarity_only():
    one = split()
    spoilt = data.garbage(one, 0)
    np.testing.assert_array_equal(spoilt.stack[1:], one.stack[1:])
    assert abs(np.corrcoef(spoilt.stack[0].ravel(), one.stack[0].ravel())[0, 1]) < 0.3


def fake_rows(gain, sets=8, splits=5, seed=0):
    """Scores of every method; the learned ones better by ``gain``."""
    rng = np.random.default_rng(seed)
    rows = []
    for d in data.FAMILIES[:sets]:
        for s in range(splits):
            base = rng.uniform(0.7, 0.8)
            for m in methods.METHODS:
                learned = m in reports.SEVERAL
                score = base + gain * learned + rng.normal(0, 0.005)
                rows.append(
                    {
                        "data": d, "seed": s, "method": m, "accuracy": score, "f_score": score, "C": 1.0,
                        "rho": 5.0 if learned else np.nan, "relative_gap": 0.01, "iterations": 10,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("gain", "word"), [(0.05, "ahead"), (0.0, "no difference shown"), (-0.05, "behind")])
def test_the_verdict_follows_from_the_tests(gain, word, tmp_path, capsys):
    report = report_of(tmp_path, "similarity", "table3")
    reports.proteins(fake_rows(gain), report)
    text = (tmp_path / "similarity_table3.md").read_text()
    verdict = next(line for line in text.splitlines() if line.startswith("**Verdict**"))
    assert word in verdict
    assert "[53.1]" in text  # the paper's number beside ours
    assert (tmp_path / "similarity_table3.png").exists()
    assert "PASS  superfamilies: 8" in capsys.readouterr().out


def test_unfinished_tables_say_so(tmp_path, capsys):
    report = report_of(tmp_path, "similarity", "table3")
    reports.proteins(fake_rows(0.0, sets=3, splits=1), report)
    out = capsys.readouterr().out
    assert "not run  superfamilies: 3" in out
    assert "not run  splits: 1" in out
    text = (tmp_path / "similarity_table3.md").read_text()
    assert "p = 1 over splits" in text  # one split shows nothing


def test_other_tables(tmp_path):
    rows = fake_rows(0.01, sets=3, splits=2)
    singles = rows[rows["method"].isin(methods.SINGLE)].replace({"a.4.1": "sonar", "b.1.18": "voting"})
    reports.single(singles, report_of(tmp_path, "similarity", "table1"))
    assert "[71.5]" in (tmp_path / "similarity_table1.md").read_text()
    reports.garbage(rows, report_of(tmp_path, "similarity", "garbage"))
    assert "mean" in (tmp_path / "similarity_garbage.md").read_text()


def test_certificates_in_small(tmp_path, monkeypatch, capsys):
    for name, value in {"sdp": 10, "iterations": 20, "thousand": 25, "rate": 15, "steps": 30}.items():
        monkeypatch.setitem(certificates.SETTINGS, name, value)
    wanted = [
        key
        for key in all_runs()
        if key["data"] == "gaussian" and key["rho"] == 5.0 and key["loss"] == "frobenius"
    ]
    rows = pd.DataFrame([{**key, **row} for key in wanted for row in certificates.work(key)])
    certificates.report(rows, report_of(tmp_path, "similarity", "certificates"))
    out = capsys.readouterr().out
    assert "FAIL" not in out
    assert "room of the bounds" in out
    assert (tmp_path / "similarity_certificates.png").exists()
