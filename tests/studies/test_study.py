"""Studies: runs are kept, resumed and never mixed."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import kernelweave_studies
from kernelweave_studies import STUDIES, load_study
from kernelweave_studies.study import Part


class Recorder:
    """The work of a part, which remembers what it was asked for and can be interrupted."""

    def __init__(self, stop_at=None):
        self.asked, self.stop_at = [], stop_at

    def __call__(self, key):
        if key["seed"] == self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(dict(key))
        return [{"method": name, "accuracy": key["rate"] + 0.1 * key["seed"]} for name in ("a", "b")]


def part_of(work, reported, **changes):
    def keys(repeats):
        return [{"data": "x", "rate": 1.0, "seed": seed} for seed in range(repeats)]

    def report(rows, where):
        reported.append(rows)
        where.table([{"rows": len(rows)}], "A note.", "Title")
        return ["done"]

    part = Part("one", "A part", {"grid": (1, 2)}, keys, work, report, repeats=4, quick_repeats=2)
    return replace(part, **changes)


def run(part, folder, **options):
    return part.run("study", folder, "kernelweave reproduce study", say=lambda text: None, **options)


def test_a_quick_run_is_the_beginning_of_the_whole(tmp_path):
    work, reported = Recorder(), []
    part = part_of(work, reported)
    assert run(part, tmp_path, quick=True) == ["done"]
    assert [key["seed"] for key in work.asked] == [0, 1]
    run(part, tmp_path)
    assert [key["seed"] for key in work.asked] == [0, 1, 2, 3]
    assert len(reported[0]) == 4  # two rows a run
    assert len(reported[1]) == 8
    # a report of fewer repeats leaves the others out, and runs nothing
    run(part, tmp_path, repeats=3)
    assert len(reported[2]) == 6
    assert len(work.asked) == 4


def test_an_interrupted_study_keeps_what_is_done_and_goes_on(tmp_path):
    reported = []
    with pytest.raises(KeyboardInterrupt):
        run(part_of(Recorder(stop_at=2), reported), tmp_path)
    assert not reported
    assert sorted(set(pd.read_csv(tmp_path / "study_one_runs.csv")["seed"])) == [0, 1]
    again = Recorder()
    run(part_of(again, reported), tmp_path)
    assert [key["seed"] for key in again.asked] == [2, 3]
    assert reported[0]["accuracy"].tolist() == [1.0, 1.0, 1.1, 1.1, 1.2, 1.2, 1.3, 1.3]


def test_rows_of_other_settings_are_not_mixed_in(tmp_path):
    work, reported = Recorder(), []
    run(part_of(work, reported), tmp_path)
    run(part_of(work, reported, settings={"grid": (1, 3)}), tmp_path)
    assert len(work.asked) == 8
    assert len(reported[1]) == 8


def test_restart_forgets(tmp_path):
    work = Recorder()
    run(part_of(work, []), tmp_path)
    run(part_of(work, []), tmp_path, restart=True)
    assert len(work.asked) == 8


def test_tables_name_the_command_the_machine_and_what_was_not_run(tmp_path):
    run(part_of(Recorder(), [], missing=lambda: ["wpbc is not at hand"]), tmp_path)
    text = (tmp_path / "study_one.md").read_text()
    assert text.startswith("# Title\n\n`kernelweave reproduce study`, 20")
    assert "Python 3" in text
    assert "A note." in text
    assert "**Not run**: wpbc is not at hand." in text
    assert "| rows |\n| --- |\n| 8 |" in text
    assert (tmp_path / "study_one.csv").read_text().split() == ["rows", "8"]


def test_nothing_to_run_writes_nothing(tmp_path):
    assert run(part_of(Recorder(), [], keys=lambda repeats: []), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_loads_and_its_parts_have_names_of_their_own(name):
    study = load_study(name)
    assert study.name == name
    names = [part.name for part in study.parts]
    assert len(set(names)) == len(names)
    for part in study.parts:
        assert 0 <= part.quick_repeats <= part.repeats  # none: too large for a quick look
    assert any(part.quick_repeats for part in study.parts)


def test_unknown_study():
    with pytest.raises(ValueError, match="Known studies: smkl, stpmkl"):
        load_study("smlk")


def test_studies_import_no_private_part_of_a_subpackage():
    """Modules and names with an underscore inside a subpackage of the library are its own."""
    taken = []
    for path in sorted(Path(kernelweave_studies.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelweave."):
                names = [*node.module.split(".")[2:], *[alias.name for alias in node.names]]
                taken += [(path.name, node.module, name) for name in names if name.startswith("_")]
    assert not taken


def test_results_of_studies_are_with_them_and_those_in_docs_are_linked():
    root = Path(__file__).parents[2]
    if not (root / "studies" / "results").exists():
        pytest.skip("results are in the repository and not in the source distribution")
    pages = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "docs" / "results").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    parts = [f"{study}_{part.name}" for study in STUDIES for part in load_study(study).parts]
    ours = re.compile(rf"({'|'.join(parts)})(_cost|_work|_runs)?\.(md|png|csv)")
    shown = {path.name for path in (root / "docs" / "results").iterdir() if path.is_file()}
    kept = {path.name for path in (root / "studies" / "results").iterdir()}
    assert not [name for name in shown if ours.fullmatch(name)]
    assert not [
        name for name in kept if not (ours.fullmatch(name) or re.search(r"_(runs|curves)\.csv$", name))
    ]
    linked = set(re.findall(r"studies/results/([\w.]+\.(?:md|png|csv))", text))
    assert linked <= kept
    assert {name for name in shown if f"results/{Path(name).stem}." not in text} == set()
