"""``kernelweave reproduce``."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import kernelweave
from kernelweave.cli import main
from kernelweave_studies.smkl import study as smkl


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


#: takes the studies away, as from an installation that lacks them
WITHOUT_STUDIES = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "kernelweave_studies":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.parametrize("words", [[], ["smkl", "--quick"]])
def test_studies_that_are_not_installed_are_an_error_in_one_line(words):
    code = f"{WITHOUT_STUDIES}\nfrom kernelweave.cli import main\nmain({['reproduce', *words]})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "kernelweave_studies" in done.stderr
    assert "is not installed" in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_library_needs_no_studies(tmp_path):
    """Every module of the library, and its other commands, work where the studies are not installed."""
    code = f"""{WITHOUT_STUDIES}
import importlib, pkgutil, kernelweave
from kernelweave.cli import main
for module in pkgutil.walk_packages(kernelweave.__path__, "kernelweave."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name != "kernelweave_studies", module.name
main(["methods"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "simplemkl" in done.stdout


def test_the_studies_are_named_in_one_module_of_the_library():
    package = Path(kernelweave.__file__).parent
    naming = [path for path in package.rglob("*.py") if "kernelweave_studies" in path.read_text()]
    assert naming == [package / "cli" / "commands.py"]
