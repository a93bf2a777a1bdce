"""A package that cannot be written to, and users without a home: containers."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from kernelweave._numerics import compiled

from .children import SOURCE, run

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users and their permissions are POSIX")

NOBODY = 65534
#: every module with compiled functions, which need a place for their cache when they are made; and one call
COMPILES = """
    import importlib, pkgutil, sys
    import kernelweave._numerics as room
    for module in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"kernelweave._numerics.{module.name}")
    import numba, numpy as np
    from kernelweave._numerics.passes import mirror
    a = np.arange(9.0).reshape(3, 3)
    mirror(a, np.array([0, 3]))
    assert np.array_equal(a, a.T)
    assert numba.config.CACHE_DIR == "", numba.config.CACHE_DIR  # other people's functions are left alone
    print(mirror.stats.cache_path)
"""


#: users that no table knows have no home where HOME does not say
HOMELESS = """
    import pwd
    def unknown(user): raise KeyError(user)
    pwd.getpwuid = unknown
"""


@pytest.fixture
def installed(tmp_path):
    """A copy of the package that cannot be written to."""
    package = tmp_path / "site" / "kernelweave"
    shutil.copytree(SOURCE / "kernelweave", package, ignore=shutil.ignore_patterns("__pycache__"))
    folders = [path for path in package.rglob("*") if path.is_dir()]
    for folder in [package, *folders]:
        folder.chmod(0o555)
    for name in ("tmp", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "home").chmod(0o555)
    yield tmp_path
    for folder in [package, *folders]:
        folder.chmod(0o755)


def obey_permissions():
    """Take from root what lets it write where it may not (CAP_DAC_OVERRIDE), for the process that is started next."""
    import ctypes

    if os.getuid() == 0:
        dropped = ctypes.CDLL(None, use_errno=True).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP
        assert dropped == 0, os.strerror(ctypes.get_errno())


def compile_there(installed, home):
    env = {"HOME": home, "TMPDIR": str(installed / "tmp"), "NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None}
    code = COMPILES if home else HOMELESS + COMPILES
    return run(
        code, source=installed / "site", env=env, cwd=installed / "home", preexec_fn=obey_permissions
    ).strip()


@pytest.mark.skipif(sys.platform != "linux", reason="root is bound by permissions through Linux capabilities")
@pytest.mark.parametrize("has_home", [True, False], ids=["read-only home", "no home"])
def test_compiles_into_a_private_folder_where_nothing_else_can_be_written(installed, has_home):
    home = str(installed / "home") if has_home else None
    used = Path(compile_there(installed, home))
    assert used.is_relative_to(installed / "tmp")
    private = installed / "tmp" / f"kernelweave-{os.getuid()}"
    assert used.is_relative_to(private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    kept = set(private.rglob("*.nbi"))
    assert kept
    # the next process finds it again
    assert Path(compile_there(installed, home)) == used
    assert set(private.rglob("*.nbi")) == kept


def test_a_folder_that_others_prepared_is_not_used(tmp_path, monkeypatch):
    """What lies in the cache is executed: a folder of the expected name must be ours, closed, and no link."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name = tmp_path / f"kernelweave-{os.getuid()}"

    def found():
        compiled.private_folder.cache_clear()
        return compiled.private_folder()

    try:
        assert found() == name
        assert found() == name
        name.chmod(0o770)
        assert found() != name
        name.rmdir()
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        name.symlink_to(tmp_path / "elsewhere")
        assert found() != name
        assert stat.S_IMODE(found().stat().st_mode) == 0o700
        name.unlink()
        name.write_text("")
        assert found().is_dir()
        if os.getuid() == 0:
            name.unlink()
            name.mkdir(mode=0o700)
            os.chown(name, NOBODY, NOBODY)
            assert found() != name
    finally:
        compiled.private_folder.cache_clear()


def test_without_any_place_functions_are_compiled_and_not_kept(monkeypatch):
    monkeypatch.setattr(compiled, "private_folder", lambda: None)
    monkeypatch.setattr(compiled, "_would_litter", lambda: True)
    assert compiled.njit(nogil=True)(lambda x: x + 1)(1) == 2


def test_a_full_disk_under_the_cache_is_no_error(monkeypatch):
    """numba saves after compiling: what cannot be kept can still be run."""
    from numba.core.caching import IndexDataCacheFile

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    function = compiled.njit()(_twice)
    assert function(21) == 42


def _twice(x):
    return 2 * x


def test_all_compiled_functions_are_made_in_one_place():
    for path in (SOURCE / "kernelweave").rglob("*.py"):
        if path.name != "compiled.py":
            text = path.read_text()
            assert "import numba" not in text, path
            assert "from numba" not in text, path


def test_without_a_compiler_functions_are_what_they_were():
    run(
        """
        from kernelweave._numerics.compiled import njit
        def double(x): return 2 * x
        assert njit(cache=True)(double) is double
        """,
        env={"NUMBA_DISABLE_JIT": "1"},
    )
