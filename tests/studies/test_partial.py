"""A study of which only some runs were made: nothing is decided, and nothing ends in an error of Python."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from math import inf, nan
from pathlib import Path

import pandas as pd
import pytest

from kernelweave_studies import STUDIES, load_study
from kernelweave_studies.study import Part, Report
from kernelweave_studies.tables import Targets

RESULTS = Path(__file__).parents[2] / "studies" / "results"
PARTS = [(study, part) for study in STUDIES for part in load_study(study).parts]


#: some of the runs: the first row, the first runs, and those of one kind only
BEGINNINGS = {
    "first row": lambda rows: rows.head(1),
    "first third": lambda rows: rows.head(max(1, len(rows) // 3)),
    **{
        f"one value of column {k}": lambda rows, k=k: rows[rows.iloc[:, k] == rows.iloc[-1, k]]
        for k in range(3)
    },
}


def drawn(report, figure):
    """Draw everything once; finding room for it would draw it twice more."""
    figure.set_layout_engine("none")
    figure.savefig(BytesIO(), dpi=15)


@pytest.mark.gate_runs(only=lambda study, part, names: len(names) == 2)
@pytest.mark.parametrize(
    "names", [("first third", "one value of column 2"), tuple(BEGINNINGS)], ids=["two", "all"]
)
@pytest.mark.parametrize(("study", "part"), PARTS, ids=[f"{study}-{part.name}" for study, part in PARTS])
def test_some_of_the_runs_decide_nothing(study, part, names, tmp_path, capsys, monkeypatch):
    """Rows of the runs in studies/results, of which some are left out, go through the whole mechanism."""
    path = RESULTS / f"{study}_{part.name}_runs.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand")
    whole = pd.read_csv(path).drop(columns="settings")
    monkeypatch.setattr(Report, "picture", drawn)
    made = 0
    for number, name in enumerate(names):
        rows = BEGINNINGS[name](whole)
        said: list[str] = []
        runs = [{"run": k} for k in range(3)]
        some = replace(
            part, keys=lambda repeats, runs=runs: runs[:repeats], repeats=3, quick_repeats=1, missing=tuple,
            work=lambda key, rows=rows: rows.to_dict("records"), quick_first={}, quick_at_least=1,
        )  # fmt: skip
        lines = some.run(study, tmp_path / str(number), "command", quick=True, say=said.append, seconds=60.0)
        out = capsys.readouterr().out + "\n".join([*said, *lines])
        assert "PASS" not in out
        assert "FAIL" not in out
        assert "out-of-bounds" not in out
        made += not any("no table yet" in line for line in said)
    assert made  # a table from a part of the runs is the rule


@pytest.mark.parametrize(("study", "part"), PARTS, ids=[f"{study}-{part.name}" for study, part in PARTS])
def test_all_runs_decide(study, part, tmp_path, monkeypatch):
    monkeypatch.setattr(Report, "picture", lambda self, figure: None)
    path = RESULTS / f"{study}_{part.name}_runs.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand")
    lines = part.report(pd.read_csv(path), Report(tmp_path, study, part.name, "command"))
    assert not [line for line in lines if line.startswith(("so far", "not run"))]


def test_verdicts(capsys):
    targets = Targets()
    targets.at_most("a", 1.0, 2.0)
    targets.at_most("b", 3.0, 2.0)
    targets.at_least("c", nan, 2.0)  # all was run and nothing came of it
    targets.were_run("d", 8, 8)
    targets.were_run("e", 3, 8)
    assert [target.verdict for target in targets.all] == ["PASS", "FAIL", "FAIL", "PASS", "not run"]
    assert [target.reached for target in targets.all] == [True, False, False, True, False]
    partial = Targets(complete=False)
    partial.at_most("a", 1.0, 2.0)
    partial.at_least("b", inf, 2.0)
    partial.at_most("c", nan, 2.0)
    partial.were_run("d", 8, 8)
    assert [str(target) for target in partial.all] == [
        "so far  a: 1 (at most 2)",
        "so far  b: inf (at least 2)",
        "not run  c: (at most 2)",
        "so far  d: 8 (at least 8)",
    ]


def part_with(report, work=lambda key: [{"value": 1.0}]):
    return Part(
        "one",
        "A part",
        {},
        lambda repeats: [{"seed": s} for s in range(repeats)],
        work,
        report,
        4,
        2,
        quick_at_least=2,
    )


def test_a_part_knows_whether_it_is_complete(tmp_path):
    seen = []
    part = part_with(lambda rows, report: seen.append(report.complete) or [])
    part.run("s", tmp_path, "c", quick=True, say=lambda text: None)
    part.run("s", tmp_path, "c", repeats=3, say=lambda text: None)
    part.run("s", tmp_path, "c", say=lambda text: None)
    part.run("s", tmp_path, "c", repeats=6, say=lambda text: None)
    part.run(
        "s", tmp_path, "c", quick=True, say=lambda text: None
    )  # of the runs that there are, two are asked for
    assert seen == [False, False, True, True, False]


def test_too_few_runs_are_no_error_and_enough_are(tmp_path):
    def report(rows, report):
        return [str(rows["value"].iloc[99])]

    said: list[str] = []
    assert part_with(report).run("s", tmp_path, "c", quick=True, say=said.append) == []
    assert said[-1].startswith("one: no table yet: it needs more runs than were made")
    assert "indexer" not in " ".join(said)
    with pytest.raises(IndexError):
        part_with(report).run("s", tmp_path, "c", say=said.append)
