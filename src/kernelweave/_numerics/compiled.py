"""``njit`` for the library: cached wherever something can be written, and never cut in two by Ctrl-C.

Every compiled function of the library is made by the ``njit`` of this module, which takes numba's options; one that
only compiled functions call is made by ``inner``, which compiles in half the time.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

from ..exceptions import KernelWeaveWarning, warn_at_caller
from .stopping import uninterrupted

with uninterrupted():  # half of numba cannot be imported again
    import numba
    import numpy.ma  # noqa: F401  (numba imports it with the first call)
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic, overload

settings: Any = numba.config  # module attributes that numba makes when it is imported

__all__ = ["inner", "intrinsic", "ir", "njit", "overload", "private_folder", "types"]


#: no references are counted: half of what short loops on parts of arrays cost, and much of what compiling them does
UNCOUNTED: Any = {"_nrt": False}
#: folders of which a warning has said that something in them is damaged
_damaged: set[str] = set()
#: why nothing happens for a while
ANNOUNCEMENT = "kernelweave: compiling for this machine, once"
HOW_LONG = "(up to half a minute; `kernelweave compile` does it ahead)"


def njit(makes_arrays: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba when it is first called, in one piece, and keep the result on disk.

    One that makes no arrays, but works on what it is given and on parts of that, says so: it need not count references.
    """
    settled = {"cache": True, "no_cfunc_wrapper": True} | ({} if makes_arrays else UNCOUNTED)

    def decorate(function: Callable[..., Any]) -> Any:
        return _in_one_piece(_cached(function, options | settled))

    return decorate


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that compiled functions alone call: it cannot be called from Python, and makes no arrays.

    What would unpack its arguments, and a file for it in the cache, take as long as the function itself.
    """
    decorate: Callable[[Callable[..., Any]], Any] = numba.njit(
        **options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} | UNCOUNTED
    )
    return decorate


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Cache where numba would; in a private temporary folder where it finds no place; nowhere if that fails too."""
    if not _would_litter():
        # "no locator available": neither the package nor a home can be written to
        with suppress(RuntimeError):
            return numba.njit(**options)(function)
    folder = private_folder()
    if folder is not None:
        given = settings.CACHE_DIR
        settings.CACHE_DIR = str(folder)  # read when the function is made, and not after
        try:
            with suppress(RuntimeError):
                return numba.njit(**options)(function)
        finally:
            settings.CACHE_DIR = given
    return numba.njit(**options | {"cache": False})(function)


def _would_litter() -> bool:
    """Whether numba would make a folder called ``~`` where it stands, as it does for users without a home."""
    unknown_home = os.path.expanduser("~").startswith("~")
    return unknown_home and not settings.CACHE_DIR and not os.access(Path(__file__).parent, os.W_OK)


@cache
def private_folder() -> Path | None:
    """Return a temporary folder that no other user can write to, the same for all processes of a user.

    What is cached is code: a folder of that name that somebody else made, or that others can write to, is not used.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"kernelweave-{user}"
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = os.lstat(folder)
        private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
        if stat.S_ISDIR(status.st_mode) and private:
            return folder
        return Path(tempfile.mkdtemp(prefix="kernelweave-"))
    except OSError:
        return None


@cache
def _stamp_of_all_files() -> tuple[tuple[int, int], ...]:
    """Times and sizes of all modules here: compiled code holds that of functions it calls, from other files too."""
    every = [path.stat() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return tuple((status.st_mtime_ns, status.st_size) for status in every)


class _Announcement:
    """Say on the error stream that code is compiled: once in a process, and not in its workers.

    On a terminal the line has the functions that were compiled and the seconds, and goes when nothing is compiled.
    """

    def __init__(self) -> None:
        self.functions, self.under_way, self.began = 0, 0, 0.0

    def begin(self) -> None:
        """Say that one more function is compiled, perhaps for one that is."""
        self.began = self.began or time.perf_counter()
        self.functions, self.under_way = self.functions + 1, self.under_way + 1
        self._show()

    def end(self) -> None:
        """Say that a function is there."""
        self.under_way = max(self.under_way - 1, 0)
        self._show()

    def _show(self) -> None:
        import multiprocessing

        with suppress(Exception):  # there is no such stream, or it is closed
            if multiprocessing.parent_process() is not None:
                return
            if sys.stderr.isatty():
                seconds = f"{time.perf_counter() - self.began:.0f} s, function {self.functions}"
                line = f"{ANNOUNCEMENT}: {seconds}" if self.under_way else ""
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
            elif self.functions == self.under_way == 1:
                print(f"{ANNOUNCEMENT} {HOW_LONG}", file=sys.stderr, flush=True)


announcement = _Announcement()


def _in_one_piece(dispatcher: Any) -> Any:
    """Hold Ctrl-C back while the function is compiled, and go on where its file is damaged or cannot be written."""
    if not hasattr(dispatcher, "_compile_for_args"):  # NUMBA_DISABLE_JIT leaves functions as they are
        return dispatcher
    compiling = dispatcher._compile_for_args

    @wraps(compiling)
    def compile_for_args(*arguments: Any, **named: Any) -> Any:
        with uninterrupted():
            return compiling(*arguments, **named)

    dispatcher._compile_for_args = compile_for_args
    kept = dispatcher._cache
    with suppress(AttributeError):  # numba itself asks for the time of the function's own file alone
        kept._cache_file._source_stamp = (kept._cache_file._source_stamp, _stamp_of_all_files())
    loading, keeping = kept.load_overload, kept.save_overload

    @wraps(loading)
    def load_overload(*arguments: Any, **named: Any) -> Any:
        try:
            loaded = loading(*arguments, **named)
            if loaded is None:
                announcement.begin()
            return loaded
        except Exception as error:  # a pickle that was cut short can make its reader raise anything
            folder = kept.cache_path
            if folder not in _damaged:  # further files of a folder say nothing new
                _damaged.add(folder)
                warn_at_caller(
                    f"compiled code that is kept in {folder} cannot be read ({str(error) or type(error).__name__}): it "
                    "is compiled again, which takes a while. If this warning comes back, delete that folder",
                    KernelWeaveWarning,
                )
            with suppress(OSError):
                kept.flush()  # else the damaged index would be read again when the result is kept
            return None

    @wraps(keeping)
    def save_overload(*arguments: Any, **named: Any) -> None:
        announcement.end()
        with suppress(Exception):  # a full disk, a folder that may not be written to, a damaged index
            keeping(*arguments, **named)

    kept.load_overload, kept.save_overload = load_overload, save_overload
    return dispatcher
