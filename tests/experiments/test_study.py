"""Studies: runs are kept, resumed and never mixed."""

import builtins
import io

import pandas as pd
import pytest

from kernelweave.experiments import STUDIES, load_study

from . import parts


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

    made = {"keys": keys, "work": work, "report": report, "settings": {"grid": (1, 2)}}
    return parts.part_of(**made | changes)


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


def test_tables_are_utf8_whatever_the_locale_says(tmp_path, monkeypatch):
    """As under LC_ALL=C where Python does not take UTF-8 instead: files that name no encoding are ASCII."""
    opened = io.open

    def ascii_by_default(file, mode="r", buffering=-1, encoding=None, *others, **options):
        plain = encoding in (None, "locale") and "b" not in mode
        return opened(file, mode, buffering, "ascii" if plain else encoding, *others, **options)

    for module in (io, builtins):
        monkeypatch.setattr(module, "open", ascii_by_default)
    part = part_of(
        Recorder(),
        [],
        report=lambda rows, where: where.table([{"accuracy": "80.0 ± 1.0"}], "Über", "T") or [],
    )
    run(part, tmp_path)
    assert "80.0 ± 1.0" in (tmp_path / "study_one.md").read_text(encoding="utf-8")
    assert "80.0 ± 1.0" in (tmp_path / "study_one.csv").read_text(encoding="utf-8")


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
