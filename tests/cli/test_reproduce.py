"""``kernelweave reproduce``."""

import pytest
from click.testing import CliRunner

from kernelweave.cli import main
from kernelweave.experiments.smkl import study as smkl


def reproduce(*arguments):
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_without_a_study_it_lists_them():
    for arguments in ((), ("--list",)):
        found = reproduce(*arguments)
        assert found.exit_code == 0
        assert "smkl" in found.output
        assert "table2" in found.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("smk",), "Did you mean 'smkl'"), (("smkl", "--only", "table9"), "it has toy, table2, table3")],
)
def test_unknown_names_are_refused_before_any_work(arguments, words, tmp_path):
    found = reproduce(*arguments, "-o", str(tmp_path / "out"))
    assert found.exit_code == 2
    assert words in found.output
    assert not (tmp_path / "out").exists()


def test_a_part_is_run_written_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(smkl, "TOY", (smkl.MEAN,))
    monkeypatch.setattr(smkl, "TOY_SOLVERS", ())
    found = reproduce("smkl", "--only", "toy", "--repeats", "1", "-o", str(tmp_path))
    assert found.exit_code == 0, found.output
    assert "| features |" in found.output
    assert (tmp_path / "smkl_toy.md").exists()
    again = reproduce("smkl", "--only", "toy", "--repeats", "1", "-o", str(tmp_path))
    assert "7 of 7 runs are done already" in again.output
