"""Files of compiled code that were cut short, written over or cannot be read: the code is compiled again."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

from kernelweave._numerics import compiled
from kernelweave.exceptions import KernelWeaveWarning

from .children import run


def total(values):
    s = 0.0
    for value in values:
        s += value
    return s


DAMAGE = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-1],
    "other bytes": lambda content: bytes(range(256)) * 8,
    "zeros": lambda content: bytes(len(content)),
    "another pickle": lambda content: b"\x80\x04K\x01.",
    "a name that is not there": lambda content: b"\x80\x04\x8c\x05nosuc\x8c\x01x\x93.",
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that decorates, calls and returns the compiled function, as a new process would."""
    monkeypatch.setattr(compiled.settings, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled, "_damaged", set())

    def make():
        function = compiled.njit()(total)
        assert function(np.arange(4.0)) == 6.0
        return function

    return make


def files(folder, kind):
    found = sorted(folder.rglob(f"*.{kind}"))
    assert found
    return found


#: numba takes an index that is another pickle for that of another version, and compiles without a word
CASES = [(kind, how) for kind in ("nbi", "nbc") for how in DAMAGE if (kind, how) != ("nbi", "another pickle")]


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_damaged_files_are_compiled_again(made, tmp_path, kind, how):
    made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(made().stats.cache_hits.values()) == 1
    for path in files(tmp_path, kind):
        path.write_bytes(DAMAGE[how](path.read_bytes()))
    with pytest.warns(KernelWeaveWarning, match="is compiled again") as caught:
        assert sum(made().stats.cache_hits.values()) == 0
    assert len(caught) == 1
    assert str(tmp_path) in str(caught[0].message)
    # what was compiled again was kept again
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(made().stats.cache_hits.values()) == 1


def test_one_line_says_that_code_is_compiled(made, capfd, monkeypatch):
    monkeypatch.setattr(compiled, "announcement", compiled._Announcement())
    made()
    made()  # from the cache
    assert capfd.readouterr().err == f"{compiled.ANNOUNCEMENT} {compiled.HOW_LONG}\n"
    monkeypatch.setattr(compiled, "announcement", compiled._Announcement())
    made()
    assert capfd.readouterr().err == ""


def test_on_a_terminal_the_line_counts_and_goes(made, capfd, monkeypatch):
    monkeypatch.setattr(compiled, "announcement", compiled._Announcement())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    made()
    shown = capfd.readouterr().err.split("\r\x1b[K")
    assert shown[1].startswith(f"{compiled.ANNOUNCEMENT}: 0 s, ")
    assert shown[1].endswith(" function 1")
    assert shown[-1] == ""


def test_code_is_compiled_again_where_another_file_of_the_folder_changed(made, tmp_path, monkeypatch):
    """Functions that it calls may be in that file, and numba looks at the function's own alone."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "compiled.py").write_text("")
    monkeypatch.setattr(compiled, "__file__", str(folder / "compiled.py"))
    compiled._stamp_of_all_files.cache_clear()
    made()
    assert sum(made().stats.cache_hits.values()) == 1
    (folder / "other.py").write_text("changed = True\n")
    compiled._stamp_of_all_files.cache_clear()
    try:
        assert sum(made().stats.cache_hits.values()) == 0
        assert sum(made().stats.cache_hits.values()) == 1
    finally:
        monkeypatch.undo()
        compiled._stamp_of_all_files.cache_clear()


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_something_else_in_the_place_of_a_file(made, tmp_path, kind):
    """It cannot be replaced, so that the code is compiled again every time."""
    made()
    for path in files(tmp_path, kind):
        path.unlink()
        path.mkdir()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made()
        made()
    assert len(caught) <= 1, "one warning of a folder is enough"


def test_a_fit_on_a_cache_of_which_every_file_is_damaged(tmp_path):
    code = """
        import sys, warnings
        import numpy as np
        from kernelweave import MKLClassifier, kernels as kw
        X = np.random.default_rng(0).normal(size=(30, 3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = MKLClassifier(kw.linear(), storage="dense").fit(X, X[:, 0] > 0)
        print(model.status_, len([w for w in caught if "is compiled again" in str(w.message)]))
    """
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(code, env=env).split() == ["converged", "0"]
    for kind in ("nbi", "nbc"):
        for path in files(tmp_path, kind):
            path.write_bytes(path.read_bytes()[: os.path.getsize(path) // 3])
    status, warned = run(code, env=env).split()
    assert status == "converged"
    assert int(warned) == 1
    assert run(code, env=env).split() == ["converged", "0"]
